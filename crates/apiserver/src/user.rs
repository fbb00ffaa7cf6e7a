//! Who asks: the identity that authentication found and authorization judges.

use std::collections::BTreeMap;

use serde::Serialize;

/// The user who presented no credentials.
pub const ANONYMOUS: &str = "system:anonymous";
/// The group of everybody who presented valid credentials.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of everybody who presented none.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group that may do everything.
pub const MASTERS: &str = "system:masters";
/// The user that an API server is to itself.
const APISERVER: &str = "system:apiserver";
/// The program that [`APISERVER`] is; what it writes is owned by that.
pub(crate) const KUBE_APISERVER: &str = "kube-apiserver";

/// A user as Kubernetes knows one: a name, groups, and extra facts. Serializes as `UserInfo` of `authentication.k8s.io/v1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UserInfo {
    /// Unique name, e.g. `system:serviceaccount:kube-system:default`.
    #[serde(rename = "username", skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Unique id; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Groups, `system:authenticated` included.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// More facts, e.g. the pod a token is bound to.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// What an API server asks and writes by itself: it may do everything.
    pub fn apiserver() -> Self {
        Self::new(APISERVER, &[MASTERS])
    }

    /// What a client inside this process says that its program is, from which the owner of what it writes is named. Clients from outside say
    /// it themselves; here the user is the program.
    pub(crate) fn program(&self) -> &str {
        match self.name.as_str() {
            APISERVER => KUBE_APISERVER,
            name => name.rsplit(':').next().unwrap_or_default(),
        }
    }

    /// An authenticated user of the given groups.
    pub fn new(name: &str, groups: &[&str]) -> Self {
        let mut groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        Self {
            name: name.to_owned(),
            groups,
            ..Self::default()
        }
    }

    /// Puts a user whose credentials are good into the group of all of those, unless it says of itself that it is in that of the others.
    pub(crate) fn admit(&mut self) {
        if self.name != ANONYMOUS && !self.is_in(AUTHENTICATED) && !self.is_in(UNAUTHENTICATED) {
            self.groups.push(AUTHENTICATED.to_owned());
        }
    }

    /// The caller without credentials.
    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.into(),
            groups: vec![UNAUTHENTICATED.into()],
            ..Self::default()
        }
    }

    /// A service account's identity.
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        let mut user = Self::new(
            &format!("system:serviceaccount:{namespace}:{name}"),
            &["system:serviceaccounts", &format!("system:serviceaccounts:{namespace}")],
        );
        user.uid = uid.to_owned();
        user
    }

    /// Namespace and name of the service account that the user is, if it is one.
    pub fn account(&self) -> Option<(&str, &str)> {
        account_of(&self.name)
    }

    /// Whether the user is in a group.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Whether the user may do everything.
    pub fn is_master(&self) -> bool {
        self.is_in(MASTERS)
    }
}

/// Namespace and name of the service account whose user has this name.
pub fn account_of(user: &str) -> Option<(&str, &str)> {
    user.strip_prefix("system:serviceaccount:")?.split_once(':')
}
