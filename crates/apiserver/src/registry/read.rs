//! `get`, `list`, and where a watch starts.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use gardener_apimachinery::field::{Error, Path, go_quote};
use gardener_apimachinery::go_json::type_of;
use gardener_apimachinery::selector::{FieldSelector, LabelSelector};
use gardener_apimachinery::{ApiError, go_json};
use gardener_store::{Entry, ListOptions, ReadError, Revision};
use serde::Serialize;
use serde_json::Value;

use super::Scope;
use crate::definition::Definition;
use crate::object::Head;
use crate::request::Query;

/// How long a reader waits for a revision that is not there yet, and how often it is looked whether it is: as upstream's caches.
const FRESHNESS_PATIENCE: Duration = Duration::from_secs(3);
const FRESHNESS_INTERVAL: Duration = Duration::from_millis(100);

/// What a list or watch asks for.
#[derive(Clone, Debug, Default)]
pub struct ListQuery {
    /// Labels to select by.
    pub labels: LabelSelector,
    /// Fields to select by.
    pub fields: FieldSelector,
    /// Most objects to answer.
    pub limit: Option<usize>,
    /// Where an earlier answer stopped.
    pub continue_token: Option<String>,
    /// The revision asked for; `0` and absence are different.
    pub resource_version: Option<String>,
    /// `Exact` or `NotOlderThan`.
    pub resource_version_match: Option<String>,
    /// Whether a watch begins with what is there; absent, its revision decides.
    pub initial_events: Option<bool>,
    /// Whether a watch tells from time to time how far it is.
    pub bookmarks: bool,
}

/// Kinds without a namespace that upstream does not even select by an empty one; of others it does not matter.
const WITHOUT_NAMESPACE: [&str; 5] = [
    "certificatesigningrequests",
    "controllerinstallations",
    "namespaces",
    "nodes",
    "projects",
];

impl ListQuery {
    /// Reads a query string.
    ///
    /// # Errors
    /// 400 for selectors and numbers that cannot be read, or fields that cannot be selected; 422 for options that do not go together.
    pub fn read(query: &Query, definition: &Definition, watching: bool) -> Result<Self, ApiError> {
        // upstream reads the numbers before it looks at anything else
        query.number::<i64>("timeoutSeconds")?;
        let limit = query
            .number::<i64>("limit")?
            .and_then(|limit| usize::try_from(limit).ok())
            // what is read from the cache comes at once
            .filter(|limit| *limit > 0 && query.get("resourceVersion") != Some("0"));
        let labels = LabelSelector::parse(query.get("labelSelector").unwrap_or_default())
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let fields = FieldSelector::parse(query.get("fieldSelector").unwrap_or_default())
            .map_err(|error| ApiError::bad_request(error.to_string()))?;
        let read = Self {
            labels,
            fields,
            limit,
            continue_token: query.get("continue").map(str::to_owned),
            resource_version: query.get("resourceVersion").map(str::to_owned),
            resource_version_match: query.get("resourceVersionMatch").map(str::to_owned),
            initial_events: query.optional_flag("sendInitialEvents"),
            bookmarks: query.flag("allowWatchBookmarks"),
        };
        read.check(watching)?;
        let supported = definition.strategy.selectable_fields();
        for (path, _, _) in read.fields.terms() {
            let known = path == "metadata.name"
                || path == "metadata.namespace" && !WITHOUT_NAMESPACE.contains(&definition.plural.as_str())
                || supported.iter().any(|field| field.name == *path);
            if !known {
                let mut known: Vec<&str> = supported.iter().map(|field| &*field.name).collect();
                known.extend(["metadata.name", "metadata.namespace"]);
                known.sort_unstable();
                return Err(unknown_field(path, &known, definition));
            }
        }
        Ok(read)
    }

    /// The same of who reads page after page even if no limit is asked for: all on one page, but by the rules of limited lists.
    #[must_use]
    pub(crate) fn in_pages(&self) -> Self {
        Self {
            limit: self.limit.or(Some(usize::MAX)),
            ..self.clone()
        }
    }

    /// Checks how the options go together.
    fn check(&self, watching: bool) -> Result<(), ApiError> {
        let path = Path::new("resourceVersionMatch");
        let forbidden = |why: &str| Error::forbidden(&path, why);
        let by_match = self.resource_version_match.as_deref();
        let mut errors = Vec::new();
        if watching {
            if self.initial_events.is_some() && by_match != Some("NotOlderThan") {
                errors.push(forbidden(
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ));
            }
            if by_match.is_some() && self.initial_events.is_none() {
                errors.push(forbidden(
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ));
            }
            if let Some(other) = by_match.filter(|by_match| *by_match != "NotOlderThan") {
                errors.push(Error::not_supported(&path, other, &["NotOlderThan"]));
            }
            if by_match.is_some() && self.continue_token.is_some() {
                errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
            }
        } else if let Some(by_match) = by_match {
            if self.resource_version.is_none() {
                errors.push(forbidden(
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ));
            }
            if self.continue_token.is_some() {
                errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
            }
            if !matches!(by_match, "Exact" | "NotOlderThan") {
                errors.push(Error::not_supported(&path, by_match, &["Exact", "NotOlderThan", ""]));
            }
            if by_match == "Exact" && self.resource_version.as_deref() == Some("0") {
                errors.push(forbidden(
                    "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
                ));
            }
        }
        // who lists before it watches looks at this once more, when all else is well
        let lists = matches!(self.resource_version.as_deref(), None | Some("" | "0"));
        if watching && lists && self.continue_token.is_some() && errors.is_empty() {
            errors.push(forbidden("resourceVersionMatch is forbidden when continue is provided"));
        }
        let initial_events = Path::new("sendInitialEvents");
        if !watching && self.initial_events.is_some() {
            errors.push(Error::forbidden(
                &initial_events,
                "sendInitialEvents is forbidden for list",
            ));
        }
        match errors.is_empty() {
            true => Ok(()),
            false => Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", &errors)),
        }
    }

    /// The revision that must be there before the answer can be given; none, if any will do or the query is refused anyway.
    fn needed_revision(&self) -> Option<Revision> {
        match &self.continue_token {
            Some(token) => Revision::try_from(read_token(token).ok()?.revision).ok(),
            None => parse_revision(self.resource_version.as_deref()).ok().flatten(),
        }
    }

    /// Whether an object is selected.
    pub fn selects(&self, entry: &Entry, definition: &Definition) -> bool {
        if self.labels.is_empty() && self.fields.is_empty() {
            return true;
        }
        let head = Head::of(entry, definition);
        self.labels.matches_by(|key| head.label(key)) && self.fields.matches(|path| head.field(path))
    }
}

/// An answer to a list.
pub struct Page {
    /// The selected objects.
    pub entries: Vec<Arc<Entry>>,
    /// The revision of the whole list.
    pub revision: Revision,
    /// Where to go on, when there is more.
    pub continue_token: Option<String>,
    /// How many more there are; unknown with selectors.
    pub remaining: Option<u64>,
}

#[derive(Debug, Default, PartialEq, Serialize)]
struct Continue {
    #[serde(rename = "v")]
    version: String,
    /// Negative: whatever is newest.
    #[serde(rename = "rv")]
    revision: i64,
    /// A slash, the path of the last object told, and a zero byte: the key where to go on.
    #[serde(rename = "start")]
    after: String,
}

impl Continue {
    /// As Go's decoder reads it: by names in any case.
    ///
    /// # Errors
    /// The first misfit in Go's words.
    fn of_json(token: &Value) -> Result<Self, String> {
        // of a number that is none of the field's the digits are told
        let found = |value: &Value, expected: &str| match value {
            Value::Number(number) if expected == "int64" => format!("number {number}"),
            other => type_of(other).to_owned(),
        };
        let Value::Object(members) = token else {
            return match token.is_null() {
                true => Ok(Self::default()),
                false => Err(format!(
                    "json: cannot unmarshal {} into Go value of type storage.continueToken",
                    type_of(token)
                )),
            };
        };
        let mut read = Self::default();
        for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
            let field = name.to_ascii_lowercase();
            let expected = match (field.as_str(), value) {
                ("v", Value::String(text)) => {
                    read.version.clone_from(text);
                    continue;
                }
                ("start", Value::String(text)) => {
                    read.after.clone_from(text);
                    continue;
                }
                ("rv", Value::Number(number)) if number.is_i64() => {
                    read.revision = number.as_i64().unwrap_or_default();
                    continue;
                }
                ("v" | "start", _) => "string",
                ("rv", _) => "int64",
                _ => continue,
            };
            return Err(format!(
                "json: cannot unmarshal {} into Go struct field continueToken.{field} of type {expected}",
                found(value, expected)
            ));
        }
        Ok(read)
    }
}

/// What is said of a token whose revision is compacted.
const CONTINUE_TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

impl Scope {
    /// Lists the collection.
    ///
    /// # Errors
    /// 400 for tokens that cannot be read, 410 for revisions that are compacted, 504 for revisions that are not there yet.
    pub fn list(&self, query: &ListQuery) -> Result<Page, ApiError> {
        let prefix = self.cluster.path(&self.namespace, "");
        let mut options = ListOptions {
            at: None,
            after: None,
            limit: None,
        };
        if let Some(token) = &query.continue_token {
            let start = read_token(token)?;
            let wanted = query.resource_version.as_deref();
            if wanted.is_some_and(|revision| !matches!(revision, "" | "0")) {
                return Err(ApiError::bad_request(
                    "specifying resource version is not allowed when using continue",
                ));
            }
            let after = start.after.trim_end_matches('\0');
            options.after = Some(format!("{prefix}{after}"));
            options.at = Revision::try_from(start.revision).ok();
        } else {
            let wanted = parse_revision(query.resource_version.as_deref())
                .map_err(|error| ApiError::bad_request(format!("invalid resource version: {}", error.message())))?;
            match query.resource_version_match.as_deref() {
                Some("Exact") => options.at = wanted.filter(|revision| *revision > 0),
                Some("NotOlderThan") | None => {
                    // without a match rule, a limited list at a revision is an exact one; one object is not listed, but looked up
                    let is_list = query.fields.exact("metadata.name").is_none();
                    if query.resource_version_match.is_none() && query.limit.is_some() && is_list {
                        options.at = wanted.filter(|revision| *revision > 0);
                    }
                    if let Some(revision) = wanted {
                        self.not_before(revision)?;
                    }
                }
                Some(_) => {}
            }
        }
        let selective = !(query.labels.is_empty() && query.fields.is_empty());
        if !selective {
            options.limit = query.limit;
        }
        let listing = match query.fields.exact("metadata.name") {
            // one name is one look-up, not a scan
            Some(name)
                if options.at.is_none()
                    && options.after.is_none()
                    && !(self.definition.namespaced && self.namespace.is_empty()) =>
            {
                let revision = self.cluster.store().revision_of(&self.definition.topic);
                let entries = self.cluster.store().get(&self.key(name)).into_iter().collect();
                gardener_store::Listing {
                    entries,
                    revision,
                    remaining: 0,
                }
            }
            _ => self
                .cluster
                .store()
                .list(&self.definition.topic, &prefix, &options)
                .map_err(|error| {
                    list_error(
                        error,
                        options.after.as_deref().and_then(|path| path.strip_prefix(&prefix)),
                    )
                })?,
        };
        let mut entries = listing.entries;
        let mut more = listing.remaining > 0;
        if selective {
            let (all, limit) = (entries.len(), query.limit.unwrap_or(usize::MAX));
            let mut looked_at = 0;
            let mut selected = Vec::new();
            for entry in entries {
                if selected.len() >= limit {
                    break;
                }
                looked_at += 1;
                if query.selects(&entry, &self.definition) {
                    selected.push(entry);
                }
            }
            // whether there are more of them nobody knows before looking on
            more = looked_at < all;
            entries = selected;
        }
        let continue_token = match entries.last() {
            Some(last) if more => {
                let after = last
                    .key
                    .path
                    .strip_prefix(prefix.as_str())
                    .unwrap_or(&last.key.path)
                    .to_owned();
                Some(token(listing.revision.cast_signed(), &after))
            }
            _ => None,
        };
        let remaining = (!selective && continue_token.is_some()).then_some(listing.remaining);
        Ok(Page {
            entries,
            revision: listing.revision,
            continue_token,
            remaining,
        })
    }

    /// Waits until what a list asks for is there, but not for long: who is refused then asks again.
    pub(crate) async fn wait_for(&self, query: &ListQuery) {
        if let Some(revision) = query.needed_revision() {
            self.wait_for_revision(revision).await;
        }
    }

    /// As [`Scope::wait_for`], for one revision. Who reads what upstream has not in its caches does not wait.
    pub(crate) async fn wait_for_revision(&self, revision: Revision) {
        let store = self.cluster.store();
        let is_there = || store.revision_of(&self.definition.topic) >= revision;
        if is_there() || !self.is_cached() {
            return;
        }
        let comes = async {
            while !is_there() {
                tokio::time::sleep(FRESHNESS_INTERVAL).await;
                // whether it cannot be found out is told by who reads
                let _ = store.catch_up().await;
            }
        };
        let _ = tokio::time::timeout(FRESHNESS_PATIENCE, comes).await;
    }

    /// Refuses revisions that the store has not reached.
    pub(crate) fn not_before(&self, revision: Revision) -> Result<(), ApiError> {
        let current = self.cluster.store().revision_of(&self.definition.topic);
        if revision <= current {
            return Ok(());
        }
        let error = too_new(revision, current);
        Err(match self.is_cached() {
            true => error.with_retry(1),
            false => error,
        })
    }

    /// Whether upstream reads objects of the kind from its cache, which tells some things otherwise than etcd. It reads all but events from there.
    pub(crate) fn is_cached(&self) -> bool {
        !(self.definition.plural == "events" && self.definition.is_go_type())
    }
}

/// What is asked for will be there later, if at all.
fn too_new(requested: Revision, current: Revision) -> ApiError {
    ApiError::new(
        504,
        "Timeout",
        format!("Timeout: Too large resource version: {requested}, current: {current}"),
    )
    .with_causes(vec![k8s_openapi::apimachinery::pkg::apis::meta::v1::StatusCause {
        reason: Some("ResourceVersionTooLarge".into()),
        message: Some("Too large resource version".into()),
        field: None,
    }])
}

/// A revision from its text; `None` for absence.
///
/// # Errors
/// 400 when the text is no number.
pub(crate) fn parse_revision(text: Option<&str>) -> Result<Option<Revision>, ApiError> {
    match text {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(|_| {
            ApiError::unclassified(format!(
                "resourceVersion: Invalid value: {}: {}",
                go_quote(text),
                not_a_number(text)
            ))
        }),
    }
}

/// The revision that an object tells which is sent.
///
/// # Errors
/// 500, as upstream has it, when the text is no number.
pub(crate) fn sent_revision(text: &str) -> Result<Revision, ApiError> {
    text.parse().map_err(|_| ApiError::unclassified(not_a_number(text)))
}

/// What Go says of a text that is no unsigned number.
fn not_a_number(text: &str) -> String {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let why = if is_number {
        "value out of range"
    } else {
        "invalid syntax"
    };
    format!("strconv.ParseUint: parsing {}: {why}", go_quote(text))
}

/// A field that selectors of this kind do not know.
fn unknown_field(path: &str, known: &[&str], definition: &Definition) -> ApiError {
    let plain = known == ["metadata.name", "metadata.namespace"];
    match (definition.group.as_str(), definition.plural.as_str()) {
        ("batch", "jobs") => {
            return ApiError::bad_request(format!("field label {} not supported for Job", go_quote(path)));
        }
        (group @ "resource.k8s.io", "resourceslices") => {
            let why = format!("field label not supported for {group}/v1, Kind=ResourceSlice: {path}");
            return ApiError::bad_request(why);
        }
        _ => {}
    }
    ApiError::bad_request(if plain && definition.is_go_type() {
        let known: Vec<String> = known.iter().map(|field| go_quote(field)).collect();
        format!(
            "{} is not a known field selector: only {}",
            go_quote(path),
            known.join(", ")
        )
    } else {
        format!("field label not supported: {path}")
    })
}

/// The version of the token's form.
const TOKEN_VERSION: &str = "meta.k8s.io/v1";

/// The last character of a token may stand for more bits than there are.
const TOKEN_FORM: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));

/// Reads where an earlier answer stopped; what is wrong is told in upstream's words.
fn read_token(token: &str) -> Result<Continue, ApiError> {
    let invalid = |why: String| ApiError::bad_request(format!("invalid continue token: {why}"));
    let bytes = TOKEN_FORM.decode(token).map_err(|error| {
        let at = match error {
            base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol { offset: at, .. } => at,
            base64::DecodeError::InvalidPadding => token.find('=').unwrap_or_default(),
            _ => token.len() / 4 * 4,
        };
        invalid(format!(
            "continue key is not valid: illegal base64 data at input byte {at}"
        ))
    })?;
    let wrong = |why: &str| Err(invalid(format!("continue key is not valid: {why}")));
    if let Some(why) = go_json::syntax_error(&bytes) {
        return wrong(&why);
    }
    let read = serde_json::from_slice(&bytes).map_err(|error| error.to_string());
    let token = match read.and_then(|token: Value| Continue::of_json(&token)) {
        Ok(token) => token,
        Err(why) => return wrong(&why),
    };
    if token.version != TOKEN_VERSION {
        return wrong(&format!(
            "server does not recognize this encoded version {}",
            token.version
        ));
    }
    if token.revision == 0 {
        return wrong("incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
    }
    if token.after.is_empty() {
        return wrong("encoded start key empty (version meta.k8s.io/v1)");
    }
    // the slash in front may be left out
    let path = token.after.strip_prefix('/').unwrap_or(&token.after);
    if path.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return wrong(&token.after);
    }
    Ok(Continue {
        after: path.to_owned(),
        ..token
    })
}

/// A token that continues a list behind a path.
fn token(revision: i64, after: &str) -> String {
    let json = serde_json::to_vec(&Continue {
        version: TOKEN_VERSION.to_owned(),
        revision,
        after: format!("/{after}\0"),
    });
    URL_SAFE_NO_PAD.encode(json.unwrap_or_default())
}

/// Why a list cannot be read, or not go on behind the path `after`.
fn list_error(error: ReadError, after: Option<&str>) -> ApiError {
    match (error, after) {
        (ReadError::Compacted { .. }, None) => {
            ApiError::expired("The resourceVersion for the provided list is too old.")
        }
        (ReadError::Compacted { .. }, Some(after)) => {
            let newest = -1;
            ApiError::expired(CONTINUE_TOO_OLD).with_continue(token(newest, after))
        }
        (error, _) => read_error(error),
    }
}

/// A read failure as an API error.
pub(crate) fn read_error(error: ReadError) -> ApiError {
    match error {
        ReadError::Compacted { requested, oldest } => {
            ApiError::expired(format!("too old resource version: {requested} ({oldest})"))
        }
        ReadError::Future { requested, current } => too_new(requested, current).with_retry(1),
    }
}

#[cfg(test)]
mod tests {
    use gardener_store::{Change, Expect};
    use serde_json::json;

    use super::*;
    use crate::cluster::LogicalCluster;
    use crate::object;

    /// The config maps of a namespace, in a cluster that remembers their last two changes.
    struct ConfigMaps {
        scope: Scope,
    }

    impl ConfigMaps {
        async fn named(names: &[&str]) -> Self {
            let cluster = LogicalCluster::in_memory_with(gardener_store::Options {
                events_per_topic: 2,
                ..Default::default()
            });
            let config_maps = Self {
                scope: Scope::of_kind(cluster, "", "configmaps"),
            };
            for name in names {
                config_maps.write(name).await;
            }
            config_maps
        }

        async fn write(&self, name: &str) {
            let object = json!({"metadata": {"name": name, "namespace": "default"}});
            let put = Change::Put {
                key: self.scope.key(name),
                expect: Expect::Any,
                value: object::encode(&object),
            };
            self.scope.cluster.store().commit(put).await.unwrap();
        }

        /// Writes so often that no earlier revision is remembered.
        async fn compact(&self) {
            for _ in 0..4 {
                self.write("z").await;
            }
        }

        /// A page of one object: its name and the whole page.
        fn page(&self, continue_token: Option<String>) -> Result<(String, Page), ApiError> {
            let query = ListQuery {
                limit: Some(1),
                continue_token,
                ..ListQuery::default()
            };
            let page = self.scope.list(&query)?;
            let name = page.entries[0].key.path.rsplit('/').next().unwrap().to_owned();
            Ok((name, page))
        }
    }

    #[tokio::test]
    async fn a_list_whose_revision_is_compacted_can_be_continued_inconsistently() {
        let config_maps = ConfigMaps::named(&["a", "b", "c"]).await;
        let (name, first) = config_maps.page(None).unwrap();
        assert_eq!(name, "a");
        let stale = first.continue_token;
        assert_eq!(config_maps.page(stale.clone()).unwrap().0, "b", "it is remembered");

        config_maps.write("a2").await;
        config_maps.compact().await;
        let error = config_maps.page(stale).err().unwrap();
        assert_eq!((error.code(), error.reason()), (410, "Expired"));
        assert_eq!(error.message(), CONTINUE_TOO_OLD);
        let offered = error.status().metadata.continue_.clone();
        assert_eq!(
            read_token(offered.as_deref().unwrap()).unwrap(),
            Continue {
                version: TOKEN_VERSION.into(),
                revision: -1,
                after: "a\0".into(),
            }
        );

        let (name, second) = config_maps.page(offered).unwrap();
        assert_eq!(name, "a2", "the newest state, from where the first page ended");
        assert_eq!(second.revision, config_maps.scope.cluster.store().revision());
        let (name, _) = config_maps.page(second.continue_token).unwrap();
        assert_eq!(name, "b", "and on, consistently from here");
    }

    #[tokio::test(start_paused = true)]
    async fn a_revision_that_is_not_there_is_waited_for() {
        let config_maps = ConfigMaps::named(&["a"]).await;
        let next = config_maps.scope.cluster.store().revision() + 1;
        let query = ListQuery {
            resource_version: Some(next.to_string()),
            ..ListQuery::default()
        };
        let writes = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            config_maps.write("b").await;
        };
        let begun = tokio::time::Instant::now();
        futures::join!(config_maps.scope.wait_for(&query), writes);
        assert_eq!(begun.elapsed().as_secs(), 2);
        assert_eq!(config_maps.scope.list(&query).unwrap().entries.len(), 2);

        // it never comes
        let begun = tokio::time::Instant::now();
        config_maps.scope.wait_for_revision(next + 7).await;
        assert_eq!(begun.elapsed().as_secs(), 3);

        let events = Scope::of_kind(config_maps.scope.cluster.clone(), "", "events");
        let begun = tokio::time::Instant::now();
        events.wait_for_revision(next + 7).await;
        assert_eq!(begun.elapsed().as_secs(), 0);
    }

    #[tokio::test]
    async fn a_list_at_a_compacted_revision_has_nothing_to_continue() {
        let config_maps = ConfigMaps::named(&["a", "b"]).await;
        let revision = config_maps.scope.cluster.store().revision();
        let exact = ListQuery {
            limit: Some(1),
            resource_version: Some(revision.to_string()),
            resource_version_match: Some("Exact".into()),
            ..ListQuery::default()
        };
        assert_eq!(config_maps.scope.list(&exact).unwrap().entries.len(), 1);
        config_maps.compact().await;
        let error = config_maps.scope.list(&exact).err().unwrap();
        assert_eq!((error.code(), error.reason()), (410, "Expired"));
        assert_eq!(error.message(), "The resourceVersion for the provided list is too old.");
        assert_eq!(error.status().metadata.continue_, None);
    }
}
