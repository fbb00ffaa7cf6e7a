//! `Policy` (`audit.k8s.io/v1`): of which requests how much is told. Read, checked and applied as kube-apiserver does.

use std::fmt;

use bytes::Bytes;
use gardener_apimachinery::field::{self, Error, ErrorList, Path};
use gardener_apimachinery::names;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::authz::Attributes;
use crate::decode::{self, Format};
use crate::{meta, rbac};

const API_VERSION: &str = "audit.k8s.io/v1";
const KIND: &str = "Policy";

/// How much is told of a request; each tells what those before it tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Level {
    /// Nothing.
    #[default]
    None,
    /// Who asked for what, and with which outcome.
    Metadata,
    /// The request's object, too.
    Request,
    /// The answer's object, too.
    RequestResponse,
}

/// When something is told of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// It came in.
    RequestReceived,
    /// The answer begins, of one that lasts.
    ResponseStarted,
    /// The answer has ended.
    ResponseComplete,
    /// Its handler panicked.
    Panic,
}

const LEVELS: [&str; 4] = ["None", "Metadata", "Request", "RequestResponse"];
const STAGES: [&str; 4] = ["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"];

impl fmt::Display for Stage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, formatter)
    }
}

/// Why a policy cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// It is no such document.
    #[error("failed decoding: {0}")]
    Malformed(String),
    /// It is of another kind.
    #[error("unknown group version field {api_version}, Kind={kind} in policy: expected {API_VERSION}, Kind={KIND}")]
    Foreign {
        /// Its `apiVersion`.
        api_version: String,
        /// Its `kind`.
        kind: String,
    },
    /// Fields are wrong.
    #[error("{}", field::aggregate(.0))]
    Invalid(ErrorList),
    /// It has no rules: then nothing would be told.
    #[error("loaded illegal policy with 0 rules")]
    Empty,
}

/// What is told of requests: by the first rule that a request matches.
#[derive(Debug)]
pub struct Policy(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    concerns: Concerns,
    told: Told,
}

/// What is told of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) level: Level,
    pub(super) omit_stages: Vec<Stage>,
    pub(super) omit_managed_fields: bool,
}

/// A policy as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Document {
    rules: Vec<Concerns>,
    omit_stages: Vec<String>,
    omit_managed_fields: Option<bool>,
}

/// A rule as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Concerns {
    level: String,
    users: Option<Vec<String>>,
    user_groups: Option<Vec<String>>,
    verbs: Option<Vec<String>>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    omit_stages: Vec<String>,
    omit_managed_fields: Option<bool>,
}

/// Resources of a group.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

/// A name of an enumeration; none of one that is not there.
fn named<T: for<'a> Deserialize<'a>>(name: &str) -> Option<T> {
    serde_json::from_value(Value::from(name)).ok()
}

fn stages(names: &[String]) -> impl Iterator<Item = Stage> {
    names.iter().filter_map(|name| named(name))
}

fn validate_stages(names: &[String], at: &Path, errors: &mut ErrorList) {
    for (index, name) in names.iter().enumerate() {
        if !STAGES.contains(&name.as_str()) {
            let why = format!("allowed stages are {}", STAGES.join(","));
            errors.push(Error::invalid(&at.index(index), name.as_str(), why));
        }
    }
}

impl Document {
    /// All that is wrong with it, in kube-apiserver's words.
    pub fn validate(&self) -> ErrorList {
        let mut errors = ErrorList::new();
        validate_stages(&self.omit_stages, &Path::new("omitStages"), &mut errors);
        let at = Path::new("rules");
        for (index, rule) in self.rules.iter().enumerate() {
            rule.validate(&at.index(index), &mut errors);
        }
        errors
    }
}

impl Policy {
    /// Reads a policy, YAML or JSON. Fields that are not known are ignored.
    ///
    /// # Errors
    /// [`PolicyError`].
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let malformed = |why: &dyn fmt::Display| PolicyError::Malformed(why.to_string());
        let document = decode::decode(&Bytes::copy_from_slice(text.as_bytes()), Format::Yaml)
            .map_err(|error| malformed(&error.message()))?
            .value;
        let (api_version, kind) = (meta::text(&document, "/apiVersion"), meta::text(&document, "/kind"));
        if (api_version, kind) != (API_VERSION, KIND) {
            let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
            return Err(PolicyError::Foreign { api_version, kind });
        }
        let document: Document = serde_json::from_value(document).map_err(|error| malformed(&error))?;
        let errors = document.validate();
        if !errors.is_empty() {
            return Err(PolicyError::Invalid(errors));
        }
        if document.rules.is_empty() {
            return Err(PolicyError::Empty);
        }
        let (everywhere, omit_managed_fields) = (document.omit_stages, document.omit_managed_fields);
        let rules = document.rules.into_iter().map(|concerns| Rule {
            told: Told {
                level: named(&concerns.level).unwrap_or_default(),
                omit_stages: stages(&concerns.omit_stages).chain(stages(&everywhere)).collect(),
                omit_managed_fields: concerns.omit_managed_fields.or(omit_managed_fields) == Some(true),
            },
            concerns,
        });
        Ok(Self(rules.collect()))
    }

    /// What is told of a request; none, if nothing is.
    pub(super) fn told(&self, attributes: &Attributes<'_>) -> Option<&Told> {
        let rule = self.0.iter().find(|rule| rule.concerns.matches(attributes))?;
        Some(&rule.told).filter(|told| told.level > Level::None)
    }
}

impl Concerns {
    fn validate(&self, at: &Path, errors: &mut ErrorList) {
        match self.level.as_str() {
            "" => errors.push(Error::required(&at.child("level"), "")),
            known if LEVELS.contains(&known) => {}
            other => errors.push(Error::not_supported(&at.child("level"), other, &LEVELS)),
        }
        let urls = at.child("nonResourceURLs");
        for (index, url) in self.non_resource_urls.iter().enumerate().filter(|(_, url)| *url != "*") {
            let mut wrong = |why: &str| errors.push(Error::invalid(&urls.index(index), url.as_str(), why));
            if !url.starts_with('/') {
                wrong("non-resource URL rules must begin with a '/' character");
            }
            if url.strip_suffix('*').unwrap_or(url).contains('*') {
                wrong("non-resource URL wildcards '*' must be the final character of the rule");
            }
        }
        // it is not told which of them it is
        let resources = at.child("resources");
        for own in &self.resources {
            let wrong = match own.group.as_str() {
                "" | "*" => Vec::new(),
                group => names::dns_subdomain(group),
            };
            if !wrong.is_empty() {
                let why = wrong.join(",");
                errors.push(Error::invalid(&resources.child("group"), own.group.as_str(), why));
            }
            if !own.resource_names.is_empty() && own.resources.is_empty() {
                let why = "using resourceNames requires at least one resource";
                let names = Value::from(own.resource_names.clone());
                errors.push(Error::invalid(&resources.child("resourceNames"), names, why));
            }
        }
        validate_stages(&self.omit_stages, &at.child("omitStages"), errors);
        let is_of_resources = !self.resources.is_empty() || !self.namespaces.is_empty();
        if is_of_resources && !self.non_resource_urls.is_empty() {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(Error::invalid(&urls, Value::from(self.non_resource_urls.clone()), why));
        }
    }

    fn matches(&self, attributes: &Attributes<'_>) -> bool {
        let user = attributes.user;
        let groups = listed(&self.user_groups);
        if !open_to(listed(&self.users), &user.name)
            || !(groups.is_empty() || user.groups.iter().any(|group| groups.contains(group)))
            || !open_to(listed(&self.verbs), attributes.verb)
        {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return attributes.is_resource
                && open_to(&self.namespaces, attributes.namespace)
                && (self.resources.is_empty() || self.resources.iter().any(|own| own.covers(attributes)));
        }
        if !self.non_resource_urls.is_empty() {
            let urls = &mut self.non_resource_urls.iter();
            return !attributes.is_resource && urls.any(|url| rbac::url_covers(url, attributes.path));
        }
        true
    }
}

/// A list that may be left out, which says the same as an empty one.
fn listed(list: &Option<Vec<String>>) -> &[String] {
    list.as_deref().unwrap_or_default()
}

/// Whether a list that names something, or is empty and means everything, has a name.
fn open_to(list: &[String], name: &str) -> bool {
    list.is_empty() || list.iter().any(|own| own == name)
}

impl GroupResources {
    fn covers(&self, attributes: &Attributes<'_>) -> bool {
        if self.group != attributes.group && self.group != "*" {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        if !open_to(&self.resource_names, attributes.name) {
            return false;
        }
        let (resource, subresource) = (attributes.resource, attributes.subresource);
        self.resources.iter().any(|own| match own.split_once('/') {
            _ if own == "*" => true,
            None => own == resource && subresource.is_empty(),
            Some(("*", of)) if !subresource.is_empty() && of == subresource => true,
            Some((of, "*")) => of == resource,
            Some((of, own)) => of == resource && own == subresource && !subresource.is_empty(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::Question;
    use crate::request::{Query, target};
    use crate::user::UserInfo;

    fn policy(rules: &str) -> Result<Policy, PolicyError> {
        Policy::parse(&format!("apiVersion: {API_VERSION}\nkind: {KIND}\n{rules}"))
    }

    fn level(policy: &Policy, user: &UserInfo, method: &http::Method, path: &str) -> Level {
        let (target, query) = (target(path), Query::parse(""));
        let question = Question::of(method, &target, &query);
        policy.told(&question.by(user)).map_or(Level::None, |told| told.level)
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let policy = policy(
            "rules:\n\
             - {level: None, users: [system:kube-proxy], verbs: [watch]}\n\
             - {level: None, userGroups: [system:nodes], resources: [{resources: [nodes, nodes/status]}]}\n\
             - {level: RequestResponse, resources: [{resources: [pods]}], namespaces: [a]}\n\
             - {level: Metadata, resources: [{group: '*', resources: ['*/status', deployments/*]}]}\n\
             - {level: Request, resources: [{resources: [secrets], resourceNames: [one]}]}\n\
             - {level: Metadata, nonResourceURLs: [/healthz*, /version]}\n\
             - {level: Request, resources: [{group: apps}]}\n",
        )
        .unwrap();
        let jane = UserInfo::new("jane", &[]);
        let node = UserInfo::new("system:node:a", &["system:nodes"]);
        let (get, post) = (&http::Method::GET, &http::Method::POST);
        for (user, method, path, expected) in [
            (&node, get, "/api/v1/nodes/a", Level::None),
            (&jane, get, "/api/v1/nodes/a", Level::None),
            (&jane, get, "/api/v1/nodes/a/status", Level::Metadata),
            (&node, get, "/api/v1/nodes/a/status", Level::None),
            (&jane, post, "/api/v1/namespaces/a/pods", Level::RequestResponse),
            (&jane, post, "/api/v1/namespaces/a/pods/x/exec", Level::None),
            (&jane, post, "/api/v1/namespaces/b/pods", Level::None),
            (&jane, get, "/api/v1/namespaces/b/secrets/one", Level::Request),
            (&jane, get, "/api/v1/namespaces/b/secrets/two", Level::None),
            (&jane, get, "/healthz/ping", Level::Metadata),
            (&jane, get, "/version", Level::Metadata),
            (&jane, get, "/version/", Level::None),
            (&jane, get, "/apis/apps/v1/namespaces/b/daemonsets", Level::Request),
            (&jane, get, "/apis/apps/v1/namespaces/b/deployments/x", Level::Metadata),
            (
                &jane,
                get,
                "/apis/apps/v1/namespaces/b/deployments/x/scale",
                Level::Metadata,
            ),
        ] {
            assert_eq!(level(&policy, user, method, path), expected, "{} {path}", user.name);
        }
    }

    #[test]
    fn stages_and_managed_fields_are_left_out_by_rule_or_everywhere() {
        let policy = policy(
            "omitStages: [RequestReceived]\nomitManagedFields: true\nrules:\n\
             - {level: Request, verbs: [get], omitStages: [Panic], omitManagedFields: false}\n\
             - {level: Metadata}\n",
        )
        .unwrap();
        let told = |verb| {
            let user = UserInfo::anonymous();
            let (target, query) = (target("/api/v1/pods"), Query::parse(""));
            let mut attributes = Question::of(&http::Method::GET, &target, &query);
            attributes.verb = std::borrow::Cow::Borrowed(verb);
            policy.told(&attributes.by(&user)).cloned().unwrap()
        };
        let expected = Told {
            level: Level::Request,
            omit_stages: vec![Stage::Panic, Stage::RequestReceived],
            omit_managed_fields: false,
        };
        assert_eq!(told("get"), expected);
        let expected = Told {
            level: Level::Metadata,
            omit_stages: vec![Stage::RequestReceived],
            omit_managed_fields: true,
        };
        assert_eq!(told("list"), expected);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (rules, expected) in [
            ("", "loaded illegal policy with 0 rules"),
            ("rules: [{}]", "rules[0].level: Required value"),
            (
                "rules: [{level: Loud}]",
                "rules[0].level: Unsupported value: \"Loud\": supported values: ",
            ),
            (
                "rules: [{level: None, nonResourceURLs: [healthz]}]",
                "rules[0].nonResourceURLs[0]: Invalid value: \"healthz\": non-resource URL rules must begin with a '/' character",
            ),
            (
                "rules: [{level: None, nonResourceURLs: [/a*b]}]",
                "non-resource URL wildcards '*' must be the final character of the rule",
            ),
            (
                "rules: [{level: None, nonResourceURLs: [/a], namespaces: [b]}]",
                "rules cannot apply to both regular resources and non-resource URLs",
            ),
            (
                "rules: [{level: None, resources: [{group: rbac.authorization.k8s.io/v1}]}]",
                "rules[0].resources.group: Invalid value: \"rbac.authorization.k8s.io/v1\"",
            ),
            (
                "rules: [{level: None, resources: [{resourceNames: [a]}]}]",
                "using resourceNames requires at least one resource",
            ),
            (
                "omitStages: [Late]\nrules: [{level: None}]",
                "omitStages[0]: Invalid value: \"Late\": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic",
            ),
            ("rules: 7", "failed decoding: "),
        ] {
            let told = policy(rules).unwrap_err().to_string();
            assert!(told.contains(expected), "{rules}: {told}");
        }
        let foreign = Policy::parse("apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]");
        assert!(
            foreign
                .unwrap_err()
                .to_string()
                .contains("unknown group version field audit.k8s.io/v1beta1")
        );
        assert!(policy("rules: [{level: None, nonResourceURLs: ['*', /a*, /]}]").is_ok());
    }
}
