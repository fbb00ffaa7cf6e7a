//! A request as its level knows it.

use std::sync::Arc;

use http::{Method, Uri};

use super::schema::Schema;
use crate::question::Question;
use crate::request::{self, Query};
use crate::user::UserInfo;

/// A request. What is told of it to people is read from its address then, for hardly anybody asks.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) schema: Arc<Schema>,
    pub(super) user: Arc<UserInfo>,
    pub(super) method: Method,
    pub(super) uri: Uri,
    /// Whether flows of its level are told apart.
    pub(super) is_of_flow: bool,
    pub(super) watches: bool,
    /// Whether it may change something.
    pub(super) changes: bool,
}

/// What is told of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Details {
    pub(super) distinguisher: String,
    pub(super) verb: String,
    pub(super) path: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// Group and version.
    pub(super) version: String,
    pub(super) resource: String,
    pub(super) subresource: String,
}

impl Asked {
    pub(super) fn details(&self) -> Details {
        let path = request::decode_path(self.uri.path()).into_owned();
        let (target, query) = (
            request::target(&path),
            Query::parse(self.uri.query().unwrap_or_default()),
        );
        let question = Question::of(&self.method, &target, &query);
        let own = question.by(&self.user);
        let distinguisher = match self.is_of_flow {
            true => self.schema.distinguishes.by(&self.user, own.namespace),
            false => "",
        };
        let version = match (own.group, own.version) {
            ("", version) => version.to_owned(),
            (group, version) => format!("{group}/{version}"),
        };
        Details {
            distinguisher: distinguisher.to_owned(),
            verb: own.verb.to_owned(),
            namespace: own.namespace.to_owned(),
            name: own.name.to_owned(),
            version,
            resource: own.resource.to_owned(),
            subresource: own.subresource.to_owned(),
            path,
        }
    }
}
