//! From a decoded body to an object of the resource's kind: right kind, known fields only, the schema's and the kind's defaults.

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, Path, go_quote};
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::type_meta::unreadable;
use gardener_schema::json::is_empty;
use gardener_schema::{Empty, RESOURCE_FIELDS, Schema};
use serde_json::{Map, Value, json};

use super::{FieldValidation, Scope, WriteOptions, numbers};
use crate::decode::{self, Source, Unknown};
use crate::definition::{Context, Version, go_package};
use crate::{meta, reviews};

/// Kinds of older versions that upstream still reads, though it does not serve those versions.
const NOT_SERVED: [(&str, &[&str]); 15] = [
    ("admissionregistration.k8s.io", &["v1beta1"]),
    ("apiextensions.k8s.io", &["v1beta1"]),
    ("apps", &["v1beta1", "v1beta2"]),
    ("authentication.k8s.io", &["v1beta1"]),
    ("authorization.k8s.io", &["v1beta1"]),
    ("autoscaling", &["v2beta1", "v2beta2"]),
    ("batch", &["v1beta1"]),
    ("certificates.k8s.io", &["v1beta1"]),
    ("coordination.k8s.io", &["v1beta1"]),
    ("discovery.k8s.io", &["v1beta1"]),
    ("events.k8s.io", &["v1beta1"]),
    ("extensions", &["v1beta1"]),
    ("networking.k8s.io", &["v1beta1"]),
    ("policy", &["v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1alpha1", "v1beta1"]),
];

/// Why a body is no object of the kind.
pub(crate) enum Misfit {
    /// Its fields do not fit.
    Fields {
        /// What could not be made of what.
        subject: String,
        /// What Go's decoder says.
        why: String,
    },
    /// They do, but what the object embeds cannot be read.
    Embedded {
        /// What could not be made of what.
        subject: String,
        /// What Go says.
        why: String,
    },
    /// Something else.
    Other(ApiError),
}

impl From<ApiError> for Misfit {
    fn from(error: ApiError) -> Self {
        Self::Other(error)
    }
}

impl From<Misfit> for ApiError {
    fn from(misfit: Misfit) -> Self {
        match misfit {
            Misfit::Fields { subject, why } | Misfit::Embedded { subject, why } => {
                Self::bad_request(format!("{subject}: {why}"))
            }
            Misfit::Other(error) => error,
        }
    }
}

/// Kinds that are posted to subresources, and versions besides the newest in which upstream reads them.
const IN_SCHEME: [(&str, &str); 1] = [("Eviction", "v1beta1")];

/// Kinds that the scheme of every version has.
const SHARED_OPTIONS: [&str; 7] = [
    "CreateOptions",
    "DeleteOptions",
    "GetOptions",
    "ListOptions",
    "PatchOptions",
    "UpdateOptions",
    "WatchEvent",
];

/// Kinds of the core group that are no resources.
const NO_RESOURCES: [&str; 12] = [
    "Binding",
    "List",
    "NodeProxyOptions",
    "PodAttachOptions",
    "PodExecOptions",
    "PodLogOptions",
    "PodPortForwardOptions",
    "PodProxyOptions",
    "PodStatusResult",
    "RangeAllocation",
    "SerializedReference",
    "ServiceProxyOptions",
];

/// Kinds that have no version, so that they are known in all.
pub(crate) const UNVERSIONED: [&str; 5] = ["APIGroup", "APIGroupList", "APIResourceList", "APIVersions", "Status"];

/// The package of a kind's Go type, which is that of its version if it has one.
fn go_version<'v>(version: &'v str, kind: &str) -> &'v str {
    match UNVERSIONED.contains(&kind) {
        true => "v1",
        false => version,
    }
}

/// Whether upstream reads this version of a group, though it does not serve it.
fn is_older(group: &str, version: &str) -> bool {
    let mut known = NOT_SERVED.iter();
    known.any(|(own, versions)| *own == group && versions.contains(&version))
}

/// What cannot be made of a body of a kind and version.
pub(crate) fn subject(kind: &str, version: &str, wanted: &str) -> String {
    format!("{kind} in version \"{version}\" cannot be handled as a {wanted}")
}

/// What is wrong with a body that names no kind.
pub(crate) fn missing_kind(body: &[u8]) -> String {
    format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(body))
}

/// A body that is no object of the kind at all.
pub(crate) fn unrecognized(kind: &str, why: &str, body: &[u8]) -> ApiError {
    let shown = decode::summary(body);
    ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({shown})"
    ))
}

impl Scope {
    /// Whether an object should tell a custom resource, but names no kind. Nothing else tells of what kind a custom resource is.
    pub(crate) fn is_kindless(&self, object: &Value) -> bool {
        let is_told = self.definition.is_go_type() || !meta::text(object, "/kind").is_empty();
        !is_told && unreadable(object).is_none()
    }

    /// What is said of a body that names no kind. Who does not look at its fields reads it in another way.
    fn kindless(&self, kind: &str, object: &Value, (options, source): (&WriteOptions, &Source)) -> Misfit {
        let (body, json) = source.told(object);
        match options.field_validation {
            FieldValidation::Ignore => self.misfit(missing_kind(&json)),
            FieldValidation::Strict | FieldValidation::Warn => unrecognized(kind, &missing_kind(&body), &body).into(),
        }
    }

    /// Brings a decoded body into shape. `source` tells what the value does not tell of the body.
    pub(crate) fn accept(
        &self,
        context: &Context<'_>,
        object: &mut Value,
        options: &WriteOptions,
        source: &Source,
        warnings: &mut Vec<String>,
    ) -> Result<(), Misfit> {
        let version = self.spec()?;
        if self.is_kindless(object) {
            return Err(self.kindless(&version.kind, object, (options, source)));
        }
        if object.is_null() {
            *object = Value::Object(Map::new());
        }
        if let Some(why) = unreadable(object) {
            return Err(unrecognized(&version.kind, &why, object.to_string().as_bytes()).into());
        }
        self.check_kind(object, version, (options, source), warnings)?;
        if let Value::Object(members) = object {
            members.insert("apiVersion".into(), self.definition.api_version(&self.version).into());
            members.insert("kind".into(), version.kind.clone().into());
        }
        let (mut unknown, mut empties) = (Vec::new(), Vec::new());
        if let Some(schema) = &version.schema {
            if source.has_whole_floats() && !self.definition.is_go_type() {
                numbers::read(object);
            }
            // of custom resources only the metadata has a Go type; the rest is validated
            let decoded = match self.definition.is_go_type() {
                true => {
                    schema.canonicalize(object);
                    let decoded = schema.decode(object, &version.kind);
                    // which of two misfits is told depends on their order, which hardly any body needs
                    decoded.map_err(|why| {
                        let told = schema.decode_in(object, &version.kind, source.order().as_ref());
                        told.err().unwrap_or(why)
                    })
                }
                false => {
                    schema.canonicalize_metadata(object);
                    schema.decode_metadata(object, &version.kind)
                }
            };
            decoded.map_err(|error| self.misfit(error.to_string()))?;
            let embedded = self.definition.strategy.decode_embedded(&self.version, object);
            embedded.map_err(|why| Misfit::Embedded {
                subject: self.subject(),
                why,
            })?;
            if !self.definition.is_go_type() {
                schema.read_embedded(object).map_err(|why| self.misfit(why))?;
                schema.drop_empty_metadata(object);
            }
            let looked = options.field_validation != FieldValidation::Ignore;
            if looked {
                unknown = match self.definition.is_go_type() {
                    true => schema.unknown_fields(object),
                    false => schema.unknown_fields_of_resource(object),
                };
            }
            // where every field is known, as in most bodies, there is nothing to prune
            if version.prunes && !(looked && unknown.is_empty()) {
                schema.prune(object);
            }
            if self.definition.is_go_type() {
                keep_reset(object);
                empties = drop_empty(schema, object, self.definition.strategy.lists_kept_empty());
                add_structs(schema, object);
            }
        }
        let unknown = match self.definition.is_go_type() {
            true => Unknown::OnTheWay(unknown),
            false => Unknown::Afterwards(unknown),
        };
        let judged = source.judge(unknown, options.field_validation, warnings);
        judged.map_err(|why| self.misfit(why))?;
        if let Some(warning) = single_owners(object, "") {
            warnings.push(warning);
        }
        self.fill_defaults(context, object, source)?;
        // in the place of some there are defaults now
        empties.retain(|empty| object.at(&empty.at).is_none_or(is_empty));
        self.empties.note(empties);
        Ok(())
    }

    /// Refuses, or notes, what a body of another version is not as what it says that it is: upstream reads it before it compares versions.
    fn judge_as_told(
        &self,
        object: &Value,
        (group, told): (&str, &str),
        (options, source): (&WriteOptions, &Source),
        warnings: &mut Vec<String>,
    ) -> Result<(), Misfit> {
        let own = self.spec()?;
        // of versions that are not served nothing else is known
        let known = self.definition.version(told).filter(|_| group == self.definition.group);
        let Some(schema) = known.unwrap_or(own).schema.as_ref() else {
            return Ok(());
        };
        let judged = source.judge_decoded(schema, (object, &own.kind), options.field_validation, warnings);
        judged.map_err(|why| Misfit::Fields {
            subject: subject(&own.kind, told, &own.kind),
            why,
        })
    }

    fn misfit(&self, why: String) -> Misfit {
        Misfit::Fields {
            subject: self.subject(),
            why,
        }
    }

    /// What cannot be made of a body.
    fn subject(&self) -> String {
        let kind = self.spec().map_or("", |version| version.kind.as_str());
        subject(kind, &self.version, kind)
    }

    /// As [`Scope::judge_as_told`], of a custom resource: unless it says that it is of the resource's kind, only its metadata is read.
    fn judge_custom_as_told(
        &self,
        object: &Value,
        (api_version, kind): (&str, &str),
        (options, source): (&WriteOptions, &Source),
        warnings: &mut Vec<String>,
    ) -> Result<(), Misfit> {
        let own = self.spec()?;
        let (group, told) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let Some(schema) = own.schema.as_ref() else {
            return Ok(());
        };
        let misfit = |expected, why| Misfit::Fields {
            subject: subject(kind, told, expected),
            why,
        };
        if object.get("apiVersion").is_some_and(Value::is_null) {
            let why = ".apiVersion accessor error: <nil> is of the type <nil>, expected string";
            return Err(misfit(&own.kind, why.to_owned()));
        }
        let mut metadata = json!({"metadata": object.get("metadata").cloned().unwrap_or_default()});
        schema.canonicalize_metadata(&mut metadata);
        let decoded = schema.decode_metadata(&metadata, &own.kind);
        decoded.map_err(|error| misfit(&own.kind, error.to_string()))?;
        let is_own = group == self.definition.group && kind == own.kind;
        let as_told = self
            .definition
            .version(told)
            .and_then(|version| version.schema.as_ref());
        let unknown = match as_told {
            _ if options.field_validation == FieldValidation::Ignore => Vec::new(),
            Some(schema) if is_own => schema.unknown_fields_of_resource(object),
            None if is_own => {
                // of a version that there is not, nothing else is known either
                let others = object.as_object().into_iter().flat_map(Map::keys);
                let others = others.filter(|name| !RESOURCE_FIELDS.contains(&name.as_str()));
                let of_metadata = schema.unknown_fields_of_resource(&metadata).into_iter();
                of_metadata.chain(others.cloned()).collect()
            }
            _ => schema.unknown_fields_of_resource(&metadata),
        };
        let judged = source.judge(Unknown::Afterwards(unknown), options.field_validation, warnings);
        // what was read is what upstream expected it to be
        judged.map_err(|why| misfit(kind, why))
    }

    /// Refuses a body that names another kind or version.
    fn check_kind(
        &self,
        object: &Value,
        version: &Version,
        sent: (&WriteOptions, &Source),
        warnings: &mut Vec<String>,
    ) -> Result<(), Misfit> {
        let expected = self.definition.api_version(&self.version);
        let named = |pointer: &str, default: &str| match meta::text(object, pointer) {
            "" if self.definition.is_go_type() => default.to_owned(),
            text => text.to_owned(),
        };
        let (api_version, kind) = (named("/apiVersion", &expected), named("/kind", &version.kind));
        let api_version = core_named(&api_version).to_owned();
        if kind == version.kind && api_version == expected {
            return Ok(());
        }
        let other_version = || {
            ApiError::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({expected})"
            ))
        };
        if !self.definition.is_go_type() {
            self.judge_custom_as_told(object, (&api_version, &kind), sent, warnings)?;
            if api_version != expected {
                return Err(other_version().into());
            }
            // what replaces an object must tell its revision first
            if !self.name.is_empty() && meta::resource_version(object).is_empty() {
                return Ok(());
            }
            let error = Error::invalid(&Path::new("kind"), kind.as_str(), format!("must be {}", version.kind));
            return Err(ApiError::invalid(&self.definition.group, &kind, meta::name(object), &[error]).into());
        }
        let (group, own_version) = api_version.rsplit_once('/').unwrap_or(("", &api_version));
        let cannot = |why: String| {
            let subject = subject(&kind, own_version, &version.kind);
            Err(Misfit::Fields { subject, why })
        };
        if !self.is_registered(group, own_version, &kind) {
            return cannot(format!(
                "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:111\""
            ));
        }
        if kind == version.kind {
            self.judge_as_told(object, (group, own_version), sent, warnings)?;
            return Err(other_version().into());
        }
        let own_version = go_version(own_version, &kind);
        cannot(format!(
            "converting ({own_version}.{kind}) to ({}.{}): unknown conversion",
            self.definition.go_package(),
            version.kind
        ))
    }

    /// Refuses what is posted to a subresource but is of another kind than `expected`.
    pub(crate) fn check_posted_kind(&self, expected: (&str, &str, &str), body: &Value) -> Result<(), ApiError> {
        let Some(why) = self.other_kind(expected, body) else {
            return Ok(());
        };
        let api_version = match meta::text(body, "/apiVersion") {
            "" => expected.1,
            told => told,
        };
        let version = api_version.rsplit('/').next().unwrap_or_default();
        let kind = match meta::text(body, "/kind") {
            "" => expected.2,
            told => told,
        };
        let subject = subject(kind, version, expected.2);
        Err(ApiError::bad_request(format!("{subject}: {why}")))
    }

    /// Refuses what is posted to a subresource in another namespace.
    pub(crate) fn check_posted_namespace(&self, body: &Value) -> Result<(), ApiError> {
        let namespace = meta::namespace(body);
        if !namespace.is_empty() && namespace != self.namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        Ok(())
    }

    /// Why a body is not of the kind that a subresource takes, if so. What it does not tell is what is expected.
    pub(crate) fn other_kind(&self, expected: (&str, &str, &str), body: &Value) -> Option<String> {
        let (api_version, kind) = (meta::text(body, "/apiVersion"), meta::text(body, "/kind"));
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        if !kind.is_empty() && !version.is_empty() && kind != expected.2 && self.is_registered(group, version, kind) {
            let version = go_version(version, kind);
            return Some(format!(
                "converting ({version}.{kind}) to ({}.{}): unknown conversion",
                go_package(expected.0),
                expected.2
            ));
        }
        let (found_group, found_version) = match api_version {
            "" => (expected.0, expected.1),
            _ => (group, version),
        };
        let found_kind = if kind.is_empty() { expected.2 } else { kind };
        let is_older =
            found_group == expected.0 && found_kind == expected.2 && IN_SCHEME.contains(&(found_kind, found_version));
        let is_other = (found_group, found_version, found_kind) != expected && !is_older;
        is_other.then(|| {
            let slash = if found_group.is_empty() { "" } else { "/" };
            format!(
                "no kind {} is registered for version \"{found_group}{slash}{found_version}\" in scheme \"pkg/runtime/scheme.go:111\"",
                go_quote(found_kind)
            )
        })
    }

    /// Whether upstream reads objects of a kind that resources have.
    fn is_registered(&self, group: &str, version: &str, told: &str) -> bool {
        let kind = told.strip_suffix("List").unwrap_or(told);
        let definitions = self.cluster.config().resources.iter();
        let mut of_group = definitions.filter(|definition| definition.group == group);
        let is_served = of_group.any(|definition| {
            let mut versions = definition.versions.iter();
            versions.any(|own| own.name == version && own.kind == kind)
        });
        let is_review = reviews::of(&self.cluster)
            .iter()
            .any(|own| (own.group, own.version, own.kind) == (group, version, told));
        let same_kind = self.spec().is_ok_and(|own| own.kind == kind);
        let moved = group == "extensions" && matches!(self.definition.group.as_str(), "apps" | "networking.k8s.io");
        let is_shared = UNVERSIONED.contains(&told)
            || (group, version) == ("", "v1") && NO_RESOURCES.contains(&told)
            || SHARED_OPTIONS.contains(&kind)
                && self
                    .cluster
                    .config()
                    .resources
                    .iter()
                    .any(|definition| definition.group == group && definition.version(version).is_some());
        is_served
            || is_review
            || is_shared
            || same_kind && is_older(group, version) && (group == self.definition.group || moved)
    }

    fn fill_defaults(&self, context: &Context<'_>, object: &mut Value, source: &Source) -> Result<(), ApiError> {
        // what a write of the status does not change comes from what is stored; custom resources' has to be read all the same
        let kept = |key: &str| matches!(key, "apiVersion" | "kind" | "metadata" | "status");
        if self.keeps_all_but_status()
            && self.definition.is_go_type()
            && !self.definition.strategy.owns_all_sent()
            && !self.is_to_be_made()
            && let Value::Object(members) = object
        {
            members.retain(|key, _| kept(key));
        }
        // the defaults in built-in kinds' documents only tell which Go fields are no pointers
        if self.definition.strategy.validates_schema()
            && let Some(schema) = &self.spec()?.schema
        {
            match source.is_merged() {
                true => schema.fill_defaults(object),
                false => schema.apply_defaults(object),
            }
        }
        self.definition.strategy.default(context, object);
        Ok(())
    }
}

/// A version as it is mostly told: the core group's name is empty, and may be told.
pub(crate) fn core_named(api_version: &str) -> &str {
    let core = api_version.strip_prefix('/').filter(|core| !core.contains('/'));
    core.unwrap_or(api_version)
}

/// Keeps the first of owner references that say the same. Answers what the client is told of it; `when` they were found, if not in what was sent.
pub(super) fn single_owners(object: &mut Value, when: &str) -> Option<String> {
    let owners = object
        .at_mut("/metadata/ownerReferences")
        .and_then(Value::as_array_mut)?;
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    let mut twice: Vec<String> = Vec::new();
    for owner in owners.drain(..) {
        match kept.contains(&owner) {
            true => twice.push(meta::text(&owner, "/uid").to_owned()),
            false => kept.push(owner),
        }
    }
    *owners = kept;
    twice.dedup();
    (!twice.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        )
    })
}

/// Adds the structs that Go always has at the top of an object, for they are defaulted and owned; the status comes from elsewhere.
fn add_structs(schema: &Schema, object: &mut Value) {
    let Some(members) = object.as_object_mut() else { return };
    let structs = schema
        .zero_fields()
        .filter(|(name, zero)| zero.is_object() && *name != "status");
    for (name, zero) in structs {
        members.entry(name).or_insert_with(|| zero.clone());
    }
}

/// Drops what Go leaves out when it writes, but for those lists that are something when they are empty. Answers what was empty.
fn drop_empty(schema: &Schema, object: &mut Value, kept: &[&str]) -> Vec<Empty> {
    let is_empty = |list: &Value| list.is_array() && is_empty(list);
    let kept: Vec<String> = kept
        .iter()
        .flat_map(|at| places(object, at))
        .filter(|at| object.at(at).is_some_and(is_empty))
        .collect();
    let empties = schema.drop_empty(object);
    for at in kept {
        let (parent, name) = at.rsplit_once('/').unwrap_or_default();
        if let Some(parent) = object.at_mut(parent).and_then(Value::as_object_mut) {
            parent.insert(name.to_owned(), json!([]));
        }
    }
    empties
}

/// The pointers that a pointer stands for in which `*` may be any element of a list.
fn places(object: &Value, at: &str) -> Vec<String> {
    let Some((list, rest)) = at.split_once("/*") else {
        return vec![at.to_owned()];
    };
    let elements = object.at(list).and_then(Value::as_array).map_or(0, Vec::len);
    (0..elements)
        .flat_map(|index| places(object, &format!("{list}/{index}{rest}")))
        .collect()
}

/// An empty list of managedFields asks to drop them all, as a list of one empty entry does: it must not get lost among what is left out.
fn keep_reset(object: &mut Value) {
    if let Some(Value::Array(entries)) = object.at_mut("/metadata/managedFields")
        && entries.is_empty()
    {
        entries.push(json!({}));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_may_stand_for_elements() {
        let object = json!({"a": [{"b": [1, 2]}, {}, {"b": [3]}], "c": []});
        assert_eq!(
            places(&object, "/a/*/b/*/d"),
            ["/a/0/b/0/d", "/a/0/b/1/d", "/a/2/b/0/d"]
        );
        assert_eq!(places(&object, "/c"), ["/c"]);
        assert!(places(&object, "/x/*/y").is_empty());
    }
}
