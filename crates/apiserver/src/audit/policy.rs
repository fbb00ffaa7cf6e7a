//! `Policy` (`audit.k8s.io/v1`): of which requests how much is told. Read, checked and applied as kube-apiserver does.

use std::fmt;

use bytes::Bytes;
use gardener_apimachinery::field::{self, Error, ErrorList, Path};
use gardener_apimachinery::names;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::authz::Attributes;
use crate::decode::{self, Format};
use crate::meta;

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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// It came in.
    #[default]
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
#[derive(Clone, Debug)]
pub struct Policy {
    rules: Vec<Rule>,
    omit_stages: Vec<Stage>,
    omit_managed_fields: bool,
}

/// What is told of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) level: Level,
    pub(super) omit_stages: Vec<Stage>,
    pub(super) omit_managed_fields: bool,
}

/// A policy as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Written {
    rules: Vec<WrittenRule>,
    omit_stages: Vec<String>,
    omit_managed_fields: bool,
}

/// A rule as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct WrittenRule {
    level: String,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    non_resource_urls: Vec<String>,
    omit_stages: Vec<String>,
    omit_managed_fields: Option<bool>,
}

/// Resources of a group.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct GroupResources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

#[derive(Clone, Debug)]
struct Rule {
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    namespaces: Vec<String>,
    non_resource_urls: Vec<String>,
    told: Told,
}

/// A name of an enumeration; none of one that is not there.
fn named<T: for<'a> Deserialize<'a>>(name: &str) -> Option<T> {
    serde_json::from_value(Value::from(name)).ok()
}

fn stages(names: &[String], at: &Path, errors: &mut ErrorList) -> Vec<Stage> {
    let mut stages = Vec::new();
    for (index, name) in names.iter().enumerate() {
        match named(name) {
            Some(stage) => stages.push(stage),
            None => {
                let why = format!("allowed stages are {}", STAGES.join(","));
                errors.push(Error::invalid(&at.index(index), name.as_str(), why));
            }
        }
    }
    stages
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
        let written: Written = serde_json::from_value(document).map_err(|error| malformed(&error))?;
        let mut errors = ErrorList::new();
        let omit_stages = stages(&written.omit_stages, &Path::new("omitStages"), &mut errors);
        let at = Path::new("rules");
        let rules = written.rules.into_iter().enumerate();
        let rules: Vec<_> = rules
            .map(|(index, rule)| rule.read(&at.index(index), &omit_stages, written.omit_managed_fields, &mut errors))
            .collect();
        match (errors.is_empty(), rules.is_empty()) {
            (false, _) => Err(PolicyError::Invalid(errors)),
            (true, true) => Err(PolicyError::Empty),
            (true, false) => Ok(Self {
                rules,
                omit_stages,
                omit_managed_fields: written.omit_managed_fields,
            }),
        }
    }

    /// What is told of a request.
    pub(super) fn told(&self, attributes: &Attributes<'_>) -> Told {
        let rule = self.rules.iter().find(|rule| rule.matches(attributes));
        rule.map_or_else(
            || Told {
                level: Level::None,
                omit_stages: self.omit_stages.clone(),
                omit_managed_fields: self.omit_managed_fields,
            },
            |rule| rule.told.clone(),
        )
    }
}

impl WrittenRule {
    fn read(self, at: &Path, everywhere: &[Stage], omit_managed_fields: bool, errors: &mut ErrorList) -> Rule {
        let level = named(&self.level);
        match self.level.as_str() {
            _ if level.is_some() => {}
            "" => errors.push(Error::required(&at.child("level"), "")),
            other => errors.push(Error::not_supported(&at.child("level"), other, &LEVELS)),
        }
        let urls = at.child("nonResourceURLs");
        for (index, url) in self.non_resource_urls.iter().enumerate().filter(|(_, url)| *url != "*") {
            let mut wrong = |why: &str| errors.push(Error::invalid(&urls.index(index), url.as_str(), why));
            if !url.starts_with('/') {
                wrong("non-resource URL rules must begin with a '/' character");
            }
            if url.find('*').is_some_and(|at| at + 1 < url.len()) {
                wrong("non-resource URL wildcards '*' must be the final character of the rule");
            }
        }
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
        let mut omit_stages = stages(&self.omit_stages, &at.child("omitStages"), errors);
        omit_stages.extend(everywhere);
        let is_of_resources = !self.resources.is_empty() || !self.namespaces.is_empty();
        if is_of_resources && !self.non_resource_urls.is_empty() {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(Error::invalid(&urls, Value::from(self.non_resource_urls.clone()), why));
        }
        Rule {
            users: self.users,
            user_groups: self.user_groups,
            verbs: self.verbs,
            resources: self.resources,
            namespaces: self.namespaces,
            non_resource_urls: self.non_resource_urls,
            told: Told {
                level: level.unwrap_or_default(),
                omit_stages,
                omit_managed_fields: self.omit_managed_fields.unwrap_or(omit_managed_fields),
            },
        }
    }
}

/// Whether a list that names something, or is empty and means everything, has a name.
fn open_to(list: &[String], name: &str) -> bool {
    list.is_empty() || list.iter().any(|own| own == name)
}

impl Rule {
    fn matches(&self, attributes: &Attributes<'_>) -> bool {
        let user = attributes.user;
        let of_groups = || user.groups.iter().any(|group| self.user_groups.contains(group));
        if !open_to(&self.users, &user.name)
            || !(self.user_groups.is_empty() || of_groups())
            || !open_to(&self.verbs, attributes.verb)
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
            return !attributes.is_resource && urls.any(|url| covers(url, attributes.path));
        }
        true
    }
}

/// Whether a path is meant by a pattern, which may end with an asterisk.
fn covers(pattern: &str, path: &str) -> bool {
    pattern == path || pattern.ends_with('*') && path.starts_with(pattern.trim_end_matches('*'))
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
        policy.told(&Question::of(method, &target, &query).by(user)).level
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
            policy.told(&attributes.by(&user))
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
