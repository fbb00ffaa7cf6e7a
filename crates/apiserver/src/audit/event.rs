//! `Event` (`audit.k8s.io/v1`): what is told of a request at one stage.

use std::collections::BTreeMap;

use gardener_apimachinery::field::go_quote;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde::Serialize;
use serde_json::{Map, Value};

use super::policy::{Level, Stage};
use crate::authz::Attributes;
use crate::user::UserInfo;

/// What is told of a request at one stage. Serializes to the event's JSON.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    kind: &'static str,
    api_version: &'static str,
    level: Level,
    #[serde(rename = "auditID")]
    audit_id: String,
    pub(super) stage: Stage,
    #[serde(rename = "requestURI")]
    request_uri: String,
    verb: String,
    user: UserInfo,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) impersonated_user: Option<UserInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) authentication_metadata: Option<AuthenticationMetadata>,
    #[serde(rename = "sourceIPs", skip_serializing_if = "Vec::is_empty")]
    source_ips: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    user_agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) object_ref: Option<ObjectRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_status: Option<ResponseStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request_object: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) response_object: Option<Value>,
    request_received_timestamp: MicroTime,
    pub(super) stage_timestamp: MicroTime,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) annotations: BTreeMap<String, String>,
}

/// How a request was authenticated.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuthenticationMetadata {
    /// The verb that allowed the caller to stand for somebody, if it was that of a narrow way.
    pub(super) impersonation_constraint: String,
}

/// What a request is about.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectRef {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) resource: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) uid: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) api_group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) api_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) resource_version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) subresource: String,
}

/// The outcome: of an answer that is a `Status` what it says, else its code.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct ResponseStatus {
    pub(super) metadata: Map<String, Value>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) status: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) details: Option<Value>,
    pub(super) code: u16,
}

/// What is known of a request when it came in.
pub(super) struct Received {
    pub(super) audit_id: String,
    pub(super) uri: String,
    pub(super) source_ips: Vec<String>,
    pub(super) user_agent: String,
    pub(super) at: MicroTime,
}

impl Event {
    pub(super) fn new(level: Level, received: Received, attributes: &Attributes<'_>) -> Self {
        let object_ref = attributes.is_resource.then(|| ObjectRef {
            resource: attributes.resource.to_owned(),
            namespace: attributes.namespace.to_owned(),
            name: attributes.name.to_owned(),
            api_group: attributes.group.to_owned(),
            api_version: attributes.version.to_owned(),
            subresource: attributes.subresource.to_owned(),
            ..ObjectRef::default()
        });
        Self {
            kind: "Event",
            api_version: "audit.k8s.io/v1",
            level,
            audit_id: received.audit_id,
            stage: Stage::RequestReceived,
            request_uri: received.uri,
            verb: attributes.verb.to_owned(),
            user: attributes.user.clone(),
            impersonated_user: None,
            authentication_metadata: None,
            source_ips: received.source_ips,
            user_agent: received.user_agent,
            object_ref,
            response_status: None,
            request_object: None,
            response_object: None,
            stage_timestamp: received.at.clone(),
            request_received_timestamp: received.at,
            annotations: BTreeMap::new(),
        }
    }

    /// The event as JSON.
    pub fn json(&self) -> String {
        // text keys and values of JSON are all there is
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The event as `write` writes it; without objects if it would be longer than `longest`, and not at all if it still is.
    pub fn bounded(&self, longest: Option<usize>, write: impl Fn(&Self) -> String) -> Option<String> {
        let fits = |text: &String| longest.is_none_or(|longest| text.len() <= longest);
        let whole = write(self);
        if fits(&whole) {
            return Some(whole);
        }
        let mut shorter = self.clone();
        shorter.truncate();
        Some(write(&shorter)).filter(fits)
    }

    /// Removes what may be long, and says so.
    fn truncate(&mut self) {
        self.request_object = None;
        self.response_object = None;
        let annotation = ("audit.k8s.io/truncated".to_owned(), "true".to_owned());
        self.annotations.extend([annotation]);
    }

    /// The event as a line of text, in kube-apiserver's `legacy` format.
    pub fn line(&self) -> String {
        let list = |names: &[String]| names.iter().map(|name| go_quote(name)).collect::<Vec<_>>().join(",");
        let (user, groups) = match &self.user {
            user if user.name.is_empty() => ("<none>", "<none>".to_owned()),
            user if user.groups.is_empty() => (&*user.name, "<none>".to_owned()),
            user => (&*user.name, list(&user.groups)),
        };
        let (as_user, as_groups) = match &self.impersonated_user {
            None => ("<self>", "<lookup>".to_owned()),
            Some(user) if user.groups.is_empty() => (&*user.name, "<lookup>".to_owned()),
            Some(user) => (&*user.name, list(&user.groups)),
        };
        let object_ref = self.object_ref.as_ref();
        let namespace = object_ref.map(|own| &*own.namespace).filter(|own| !own.is_empty());
        let code = self.response_status.as_ref().map(|own| own.code.to_string());
        format!(
            "{} AUDIT: id={} stage={} ip={} method={} user={} groups={} as={} asgroups={} user-agent={} namespace={} uri={} response=\"{}\"",
            self.request_received_timestamp.0,
            go_quote(&self.audit_id),
            go_quote(&self.stage.to_string()),
            go_quote(self.source_ips.first().map_or("<unknown>", |ip| ip)),
            go_quote(&self.verb),
            go_quote(user),
            go_quote(&groups),
            go_quote(as_user),
            go_quote(&as_groups),
            go_quote(&self.user_agent),
            go_quote(namespace.unwrap_or("<none>")),
            go_quote(&self.request_uri),
            code.as_deref().unwrap_or("<deferred>"),
        )
    }
}
