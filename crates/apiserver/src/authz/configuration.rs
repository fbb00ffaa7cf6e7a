//! `AuthorizationConfiguration` (`apiserver.config.k8s.io`): which authorizers are asked, in which order.
//!
//! Read and checked here as kube-apiserver does; [`super::chain`] makes authorizers of it. ABAC is not supported.

use std::collections::BTreeSet;
use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use gardener_apimachinery::duration::Duration as GoDuration;
use gardener_apimachinery::field::{self, Error, ErrorList, Path};
use gardener_apimachinery::names;
use serde::Deserialize;
use serde_json::Value;

use super::conditions::Condition;
use crate::config_file::{self, Known};

const KIND: config_file::Kind = config_file::Kind::of_config("AuthorizationConfiguration");

/// The types of authorizers, in the order in which messages list them.
const TYPES: [&str; 6] = ["ABAC", "AlwaysAllow", "AlwaysDeny", "Node", "RBAC", "Webhook"];
/// How long answers are kept that allow, unless the configuration says otherwise.
pub const KEEP_ALLOWED: Duration = Duration::from_secs(5 * 60);
/// How long other answers are kept.
pub const KEEP_OTHERS: Duration = Duration::from_secs(30);
/// The longest that a webhook may take.
pub const LONGEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Most conditions of a webhook.
const MOST_CONDITIONS: usize = 64;

/// Why a configuration cannot be used. Every configuration of a server ends in `failed to load …` or in findings, as upstream's.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// It is no such document.
    #[error("failed to load AuthorizationConfiguration from file: {0}")]
    Malformed(String),
    /// Fields are wrong.
    #[error("{}", field::aggregate(.0))]
    Invalid(ErrorList),
    /// Authorizers do not have the names of their types, or some that must be there are missing.
    #[error("{}", field::aggregate(.0))]
    Unfit(Vec<String>),
    /// It wants what is not there.
    #[error("{0}: ABAC is not supported: use RBAC, or a webhook")]
    Abac(Path),
    /// It wants what only other servers can do.
    #[error(
        "{0}: InClusterConfig is not possible for the API server itself: use KubeConfigFile, with a kubeconfig that leads to the webhook"
    )]
    InCluster(Path),
}

/// Which authorizers are asked, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// They.
    pub authorizers: Vec<Configured>,
}

/// One authorizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configured {
    /// Its name; that of its type, or a webhook's own.
    pub name: String,
    /// What it is.
    pub kind: Kind,
}

/// What an authorizer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Allows everything.
    AlwaysAllow,
    /// Has nothing against what others allow, and allows nothing.
    AlwaysDeny,
    /// What nodes may do.
    Node,
    /// Roles and bindings.
    Rbac,
    /// Another server.
    Webhook(WebhookConfiguration),
}

/// How another server is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookConfiguration {
    /// How long one question may take.
    pub timeout: Duration,
    /// How long answers are kept that allow; zero: not at all.
    pub keep_allowed: Duration,
    /// How long other answers are kept.
    pub keep_others: Duration,
    /// The version of SubjectAccessReview that it reads.
    pub version: ReviewVersion,
    /// Whether no answer is a refusal.
    pub fails_closed: bool,
    /// The kubeconfig that leads to it.
    pub kubeconfig: PathBuf,
    /// Expressions that must hold for a question that is put to it.
    pub conditions: Vec<String>,
}

/// The versions of SubjectAccessReview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewVersion {
    /// `v1`.
    V1,
    /// `v1beta1`.
    V1Beta1,
}

impl ReviewVersion {
    /// A version by its name.
    pub fn of(name: &str) -> Option<Self> {
        match name {
            "v1" => Some(Self::V1),
            "v1beta1" => Some(Self::V1Beta1),
            _ => None,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V1Beta1 => "v1beta1",
        }
    }
}

impl Kind {
    /// The type's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::AlwaysAllow => "AlwaysAllow",
            Self::AlwaysDeny => "AlwaysDeny",
            Self::Node => "Node",
            Self::Rbac => "RBAC",
            Self::Webhook(_) => "Webhook",
        }
    }

    /// A type that needs no more than its name.
    pub fn of_mode(name: &str) -> Option<Self> {
        match name {
            "AlwaysAllow" => Some(Self::AlwaysAllow),
            "AlwaysDeny" => Some(Self::AlwaysDeny),
            "Node" => Some(Self::Node),
            "RBAC" => Some(Self::Rbac),
            _ => None,
        }
    }
}

impl Configured {
    /// An authorizer under the name of its type.
    pub fn of_kind(kind: Kind) -> Self {
        Self {
            name: kind.name().to_lowercase(),
            kind,
        }
    }
}

/// A configuration as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Document {
    authorizers: Option<Vec<Authorizer>>,
}

/// An authorizer as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Authorizer {
    /// Its type.
    pub r#type: String,
    /// Its name.
    pub name: String,
    /// How it is asked, if it is a webhook.
    pub webhook: Option<Webhook>,
}

/// A webhook as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Webhook {
    #[serde(rename = "authorizedTTL")]
    authorized_ttl: Option<GoDuration>,
    cache_authorized_requests: Option<bool>,
    #[serde(rename = "unauthorizedTTL")]
    unauthorized_ttl: Option<GoDuration>,
    cache_unauthorized_requests: Option<bool>,
    timeout: Option<GoDuration>,
    subject_access_review_version: String,
    match_condition_subject_access_review_version: String,
    failure_policy: String,
    /// How it is reached.
    pub connection_info: ConnectionInfo,
    match_conditions: Option<Vec<MatchCondition>>,
}

/// How a webhook is reached, as it is written.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ConnectionInfo {
    /// The way.
    pub r#type: String,
    /// The kubeconfig, if that is the way.
    pub kube_config_file: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct MatchCondition {
    expression: String,
}

impl Document {
    /// The authorizers, in order.
    pub fn authorizers(&self) -> &[Authorizer] {
        self.authorizers.as_deref().unwrap_or_default()
    }

    /// The authorizers, to be changed.
    pub fn authorizers_mut(&mut self) -> &mut [Authorizer] {
        self.authorizers.as_deref_mut().unwrap_or_default()
    }

    /// All that is wrong with them, where authorizers may have these types; `root` is the path of the list. Looks whether the kubeconfigs that are
    /// named are files.
    pub fn validate(&self, types: &[&str], root: &Path) -> ErrorList {
        validate(self.authorizers(), types, root)
    }
}

const DOCUMENT: Known = Known::Object(&[
    ("apiVersion", Known::Value),
    ("kind", Known::Value),
    ("authorizers", Known::List(&AUTHORIZER)),
]);
const AUTHORIZER: Known = Known::Object(&[("type", Known::Value), ("name", Known::Value), ("webhook", WEBHOOK)]);
const WEBHOOK: Known = Known::Object(&[
    ("authorizedTTL", Known::Value),
    ("cacheAuthorizedRequests", Known::Value),
    ("unauthorizedTTL", Known::Value),
    ("cacheUnauthorizedRequests", Known::Value),
    ("timeout", Known::Value),
    ("subjectAccessReviewVersion", Known::Value),
    ("matchConditionSubjectAccessReviewVersion", Known::Value),
    ("failurePolicy", Known::Value),
    (
        "connectionInfo",
        Known::Object(&[("type", Known::Value), ("kubeConfigFile", Known::Value)]),
    ),
    (
        "matchConditions",
        Known::List(&Known::Object(&[("expression", Known::Value)])),
    ),
]);

/// Reads a configuration (YAML or JSON). Looks whether the kubeconfigs that it names are files.
///
/// # Errors
/// [`ConfigurationError`].
pub fn parse(text: &str) -> Result<Configuration, ConfigurationError> {
    let document = document(text).map_err(ConfigurationError::Malformed)?;
    let errors = document.validate(&TYPES, &Path::new("authorizers"));
    let authorizers = document.authorizers.unwrap_or_default();
    if !errors.is_empty() {
        return Err(ConfigurationError::Invalid(errors));
    }
    let misnamed = authorizers.iter().filter_map(|own| {
        let expected = own.r#type.to_lowercase();
        let fits = own.r#type == "Webhook" || expected == own.name;
        (!fits).then(|| {
            format!(
                "expected name {expected} for authorizer {} instead of {}",
                own.r#type, own.name
            )
        })
    });
    let misnamed: Vec<String> = misnamed.collect();
    if !misnamed.is_empty() {
        return Err(ConfigurationError::Unfit(misnamed));
    }
    let configured = authorizers.into_iter().enumerate().map(|(number, own)| {
        let path = Path::new("authorizers").index(number);
        let kind = match (Kind::of_mode(&own.r#type), own.webhook) {
            (Some(kind), _) => kind,
            (None, Some(webhook)) => Kind::Webhook(configured(webhook, &path)?),
            (None, None) => return Err(ConfigurationError::Abac(path.child("type"))),
        };
        Ok(Configured { name: own.name, kind })
    });
    Ok(Configuration {
        authorizers: configured.collect::<Result<_, _>>()?,
    })
}

fn document(text: &str) -> Result<Document, String> {
    match text.is_empty() {
        true => Ok(Document::default()),
        false => config_file::read(text, &KIND, &DOCUMENT),
    }
}

fn configured(own: Webhook, path: &Path) -> Result<WebhookConfiguration, ConfigurationError> {
    let kept = |ttl: Option<GoDuration>, cached: Option<bool>, default: Duration| match cached {
        Some(false) => Duration::ZERO,
        _ => given(ttl).map_or(default, GoDuration::to_std),
    };
    let Some(kubeconfig) = own.connection_info.kube_config_file else {
        return Err(ConfigurationError::InCluster(
            path.child("connectionInfo").child("type"),
        ));
    };
    Ok(WebhookConfiguration {
        timeout: own.timeout.map_or(LONGEST_TIMEOUT, GoDuration::to_std),
        keep_allowed: kept(own.authorized_ttl, own.cache_authorized_requests, KEEP_ALLOWED),
        keep_others: kept(own.unauthorized_ttl, own.cache_unauthorized_requests, KEEP_OTHERS),
        version: ReviewVersion::of(&own.subject_access_review_version).unwrap_or(ReviewVersion::V1),
        fails_closed: own.failure_policy == "Deny",
        kubeconfig: kubeconfig.into(),
        conditions: own
            .match_conditions
            .unwrap_or_default()
            .into_iter()
            .map(|own| own.expression)
            .collect(),
    })
}

/// A duration that says something: none, and zero, stand for the default.
fn given(duration: Option<GoDuration>) -> Option<GoDuration> {
    duration.filter(|duration| duration.as_nanos() != 0)
}

fn validate(authorizers: &[Authorizer], known: &[&str], root: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if authorizers.is_empty() {
        errors.push(Error::required(root, "at least one authorization mode must be defined"));
    }
    let (mut types, mut taken) = (BTreeSet::new(), BTreeSet::new());
    for (number, own) in authorizers.iter().enumerate() {
        let path = root.index(number);
        let (kind, at) = (own.r#type.as_str(), path.child("type"));
        if kind.is_empty() {
            errors.push(Error::required(&at, ""));
            continue;
        }
        if !known.contains(&kind) {
            errors.push(Error::not_supported(&at, kind, known));
            continue;
        }
        if !types.insert(kind) && kind != "Webhook" {
            errors.push(Error::duplicate(&at, kind));
            continue;
        }
        let (name, at) = (own.name.as_str(), path.child("name"));
        let wrong = names::dns_subdomain(name);
        if name.is_empty() {
            errors.push(Error::required(&at, ""));
        } else if taken.contains(name) {
            errors.push(Error::duplicate(&at, name));
        } else if !wrong.is_empty() {
            let why = format!("authorizer name is invalid: {}", wrong.join(", "));
            errors.push(Error::invalid(&at, name, why));
        }
        taken.insert(name);
        let at = path.child("webhook");
        match (kind, &own.webhook) {
            ("Webhook", Some(own)) => errors.extend(validate_webhook(own, &path)),
            ("Webhook", None) => errors.push(Error::required(&at, "required when type=Webhook")),
            (_, Some(_)) => errors.push(Error::invalid(
                &at,
                "non-null",
                "may only be specified when type=Webhook",
            )),
            (_, None) => {}
        }
    }
    errors
}

/// What is wrong with a webhook. As upstream, `path` is its authorizer's.
fn validate_webhook(own: &Webhook, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = path.child("timeout");
    match given(own.timeout) {
        None => errors.push(Error::required(&at, "")),
        Some(timeout) if timeout.as_nanos() < 0 || timeout.to_std() > LONGEST_TIMEOUT => {
            errors.push(Error::invalid(&at, timeout.to_string(), "must be > 0s and <= 30s"));
        }
        Some(_) => {}
    }
    for (name, ttl) in [
        ("authorizedTTL", own.authorized_ttl),
        ("unauthorizedTTL", own.unauthorized_ttl),
    ] {
        if let Some(ttl) = ttl.filter(|ttl| ttl.as_nanos() < 0) {
            errors.push(Error::invalid(&path.child(name), ttl.to_string(), "must be > 0s"));
        }
    }
    let conditions = own.match_conditions.as_deref().unwrap_or_default();
    let conditional = (!conditions.is_empty()).then_some("required if match conditions are specified");
    for (name, value, known, needed) in [
        (
            "subjectAccessReviewVersion",
            &own.subject_access_review_version,
            ["v1", "v1beta1"].as_slice(),
            Some(""),
        ),
        (
            "matchConditionSubjectAccessReviewVersion",
            &own.match_condition_subject_access_review_version,
            &["v1"],
            conditional,
        ),
        ("failurePolicy", &own.failure_policy, &["NoOpinion", "Deny"], Some("")),
    ] {
        let at = path.child(name);
        match (value.as_str(), needed) {
            ("", Some(why)) => errors.push(Error::required(&at, why)),
            ("", None) => {}
            (value, _) if !known.contains(&value) => errors.push(Error::not_supported(&at, value, known)),
            _ => {}
        }
    }
    errors.extend(validate_connection(&own.connection_info, &path.child("connectionInfo")));
    errors.extend(validate_conditions(conditions, &path.child("matchConditions")));
    errors
}

fn validate_connection(own: &ConnectionInfo, path: &Path) -> Option<Error> {
    let at = path.child("kubeConfigFile");
    let file = own.kube_config_file.as_deref();
    match (own.r#type.as_str(), file) {
        ("", _) => Some(Error::required(&path.child("type"), "")),
        ("InClusterConfig", None) => None,
        ("InClusterConfig", Some(file)) => Some(Error::invalid(&at, file, "can only be set when type=KubeConfigFile")),
        ("KubeConfigFile", None | Some("")) => Some(Error::required(&at, "")),
        ("KubeConfigFile", Some(file)) => {
            let why = match FilePath::new(file).is_absolute().then(|| std::fs::metadata(file)) {
                None => "must be an absolute path".to_owned(),
                Some(Err(error)) => format!("error loading file: {error}"),
                Some(Ok(found)) if !found.is_file() => "must be a regular file".to_owned(),
                Some(Ok(_)) => return None,
            };
            Some(Error::invalid(&at, file, why))
        }
        (other, file) => {
            let mut error = Error::not_supported(&path.child("type"), other, &["InClusterConfig", "KubeConfigFile"]);
            // upstream shows all of the connection
            error.show_as(format!(
                "{{\"Type\":{},\"KubeConfigFile\":{}}}",
                Value::from(other),
                Value::from(file)
            ));
            Some(error)
        }
    }
}

fn validate_conditions(conditions: &[MatchCondition], path: &Path) -> ErrorList {
    if conditions.len() > MOST_CONDITIONS {
        return vec![Error::too_many(path, conditions.len(), MOST_CONDITIONS)];
    }
    let (mut errors, mut seen) = (ErrorList::new(), BTreeSet::new());
    for (number, condition) in conditions.iter().enumerate() {
        let (at, expression) = (path.index(number).child("expression"), condition.expression.as_str());
        if expression.trim().is_empty() {
            errors.push(Error::required(&at, ""));
        } else if !seen.insert(expression) {
            errors.push(Error::duplicate(&at, expression));
        } else if let Err(why) = Condition::new(expression) {
            errors.push(Error::invalid(&at, expression, why));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(version: &str, authorizers: &str) -> String {
        format!(
            "apiVersion: apiserver.config.k8s.io/{version}\nkind: AuthorizationConfiguration\nauthorizers: [{authorizers}]\n"
        )
    }

    fn webhook(members: &str) -> String {
        document("v1", &format!("{{type: Webhook, name: a, webhook: {{{members}}}}}"))
    }

    #[test]
    fn authorizers_come_in_order_with_defaults() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let kubeconfig = file.path().display();
        for version in ["v1", "v1beta1", "v1alpha1"] {
            let text = document(
                version,
                &format!(
                    "{{type: Node, name: node}}, {{type: Webhook, name: a.b, webhook: {{timeout: 3s, subjectAccessReviewVersion: v1beta1, \
                     failurePolicy: Deny, matchConditionSubjectAccessReviewVersion: v1, cacheUnauthorizedRequests: false, \
                     connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {kubeconfig}}}, \
                     matchConditions: [{{expression: \"request.user == 'a'\"}}]}}}}, \
                     {{type: AlwaysDeny, name: alwaysdeny}}, {{type: RBAC, name: rbac}}"
                ),
            );
            let found = parse(&text).unwrap();
            let kinds: Vec<&str> = found.authorizers.iter().map(|own| own.kind.name()).collect();
            assert_eq!(kinds, ["Node", "Webhook", "AlwaysDeny", "RBAC"]);
            assert_eq!(
                found.authorizers[1],
                Configured {
                    name: "a.b".into(),
                    kind: Kind::Webhook(WebhookConfiguration {
                        timeout: Duration::from_secs(3),
                        keep_allowed: Duration::from_secs(300),
                        keep_others: Duration::ZERO,
                        version: ReviewVersion::V1Beta1,
                        fails_closed: true,
                        kubeconfig: file.path().to_owned(),
                        conditions: vec!["request.user == 'a'".into()],
                    }),
                }
            );
        }
    }

    #[test]
    fn what_is_wrong_is_told_in_upstreams_words() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().display();
        let good = format!(
            "{}: {}",
            "timeout", "3s, subjectAccessReviewVersion: v1, failurePolicy: Deny"
        );
        let with = |more: &str| webhook(&format!("{good}, {more}"));
        let in_cluster = "connectionInfo: {type: InClusterConfig}";
        let many = vec!["{expression: 'true'}"; 65].join(", ");
        for (text, expected) in [
            (String::new(), "authorizers: Required value: at least one authorization mode must be defined".to_owned()),
            ("kind: x".to_owned(), "failed to load AuthorizationConfiguration from file: Object 'apiVersion' is missing in '{\"kind\":\"x\"}'".to_owned()),
            (document("v2", ""), "failed to load AuthorizationConfiguration from file: no kind \"AuthorizationConfiguration\" is registered for version \"apiserver.config.k8s.io/v2\": expected AuthorizationConfiguration of apiserver.config.k8s.io/v1, v1beta1, v1alpha1".to_owned()),
            (document("v1", "{type: RBAC, name: rbac, x: 1}"), "failed to load AuthorizationConfiguration from file: strict decoding error: unknown field \"authorizers[0].x\"".to_owned()),
            (with("x: 1"), "failed to load AuthorizationConfiguration from file: strict decoding error: unknown field \"authorizers[0].webhook.x\"".to_owned()),
            (document("v1", "{name: rbac}"), "authorizers[0].type: Required value".to_owned()),
            (document("v1", "{type: X, name: x}"), "authorizers[0].type: Unsupported value: \"X\": supported values: \"ABAC\", \"AlwaysAllow\", \"AlwaysDeny\", \"Node\", \"RBAC\", \"Webhook\"".to_owned()),
            (document("v1", "{type: RBAC, name: rbac}, {type: RBAC, name: b}"), "authorizers[1].type: Duplicate value: \"RBAC\"".to_owned()),
            (document("v1", "{type: RBAC}"), "authorizers[0].name: Required value".to_owned()),
            (document("v1", "{type: RBAC, name: a}, {type: Node, name: a}"), "authorizers[1].name: Duplicate value: \"a\"".to_owned()),
            (document("v1", "{type: RBAC, name: roles}"), "expected name rbac for authorizer RBAC instead of roles".to_owned()),
            (document("v1", "{type: RBAC, name: rbac, webhook: {}}"), "authorizers[0].webhook: Invalid value: \"non-null\": may only be specified when type=Webhook".to_owned()),
            (document("v1", "{type: Webhook, name: a}"), "authorizers[0].webhook: Required value: required when type=Webhook".to_owned()),
            (document("v1", "{type: ABAC, name: abac}"), "authorizers[0].type: ABAC is not supported: use RBAC, or a webhook".to_owned()),
            (
                webhook(in_cluster),
                "[authorizers[0].timeout: Required value, authorizers[0].subjectAccessReviewVersion: Required value, authorizers[0].failurePolicy: Required value]".to_owned(),
            ),
            (
                webhook(&format!("timeout: 31s, authorizedTTL: -1s, unauthorizedTTL: -1m, subjectAccessReviewVersion: v2, failurePolicy: Ignore, {in_cluster}")),
                "[authorizers[0].timeout: Invalid value: \"31s\": must be > 0s and <= 30s, authorizers[0].authorizedTTL: Invalid value: \"-1s\": must be > 0s, \
                 authorizers[0].unauthorizedTTL: Invalid value: \"-1m0s\": must be > 0s, \
                 authorizers[0].subjectAccessReviewVersion: Unsupported value: \"v2\": supported values: \"v1\", \"v1beta1\", \
                 authorizers[0].failurePolicy: Unsupported value: \"Ignore\": supported values: \"NoOpinion\", \"Deny\"]".to_owned(),
            ),
            (with("connectionInfo: {}"), "authorizers[0].connectionInfo.type: Required value".to_owned()),
            (
                with("connectionInfo: {type: X}"),
                "authorizers[0].connectionInfo.type: Unsupported value: {\"Type\":\"X\",\"KubeConfigFile\":null}: supported values: \"InClusterConfig\", \"KubeConfigFile\"".to_owned(),
            ),
            (with(in_cluster), "authorizers[0].connectionInfo.type: InClusterConfig is not possible for the API server itself: use KubeConfigFile, with a kubeconfig that leads to the webhook".to_owned()),
            (with("connectionInfo: {type: InClusterConfig, kubeConfigFile: /x}"), "authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"/x\": can only be set when type=KubeConfigFile".to_owned()),
            (with("connectionInfo: {type: KubeConfigFile}"), "authorizers[0].connectionInfo.kubeConfigFile: Required value".to_owned()),
            (with("connectionInfo: {type: KubeConfigFile, kubeConfigFile: x}"), "authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"x\": must be an absolute path".to_owned()),
            (
                with(&format!("connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {folder}}}")),
                format!("authorizers[0].connectionInfo.kubeConfigFile: Invalid value: \"{folder}\": must be a regular file"),
            ),
            (with(&format!("{in_cluster}, matchConditions: [{{expression: 'true'}}]")), "authorizers[0].matchConditionSubjectAccessReviewVersion: Required value: required if match conditions are specified".to_owned()),
            (
                with(&format!("{in_cluster}, matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{{expression: ' '}}, {{expression: 'true'}}, {{expression: 'true'}}, {{expression: '1'}}]")),
                "[authorizers[0].matchConditions[0].expression: Required value, authorizers[0].matchConditions[2].expression: Duplicate value: \"true\", \
                 authorizers[0].matchConditions[3].expression: Invalid value: \"1\": must evaluate to bool but got int]".to_owned(),
            ),
            (with(&format!("{in_cluster}, matchConditionSubjectAccessReviewVersion: v1, matchConditions: [{many}]")), "authorizers[0].matchConditions: Too many: 65: must have at most 64 items".to_owned()),
        ] {
            assert_eq!(parse(&text).unwrap_err().to_string(), expected, "{text}");
        }
        let missing = format!("connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {folder}/none}}");
        let error = parse(&with(&missing)).unwrap_err().to_string();
        assert!(error.contains(": error loading file: "), "{error}");
    }
}
