//! Impersonation: requests that are made as somebody else. Who may make a request as whom is asked in several ways, the narrow ones first: one
//! may be allowed to do one thing as others of one kind (`impersonate-on:<mode>:<verb>` beside `impersonate:<mode>`), or everything as somebody
//! (`impersonate`).

use std::collections::{BTreeMap, HashMap};

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{ErrorList, Path, aggregate, go_quote};
use http::header::HeaderMap;
use parking_lot::Mutex;

use crate::authz::node::{NODE_USER_PREFIX, NODES_GROUP};
use crate::authz::{self, Attributes, Authorizer, Decision};
use crate::cluster::LogicalCluster;
use crate::kubernetes::domain_prefixed;
use crate::question::Question;
use crate::user::{ANONYMOUS, AUTHENTICATED, MASTERS, UNAUTHENTICATED, UserInfo, account_of};
use crate::{meta, request};

/// The group of resources that stand for what is impersonated.
const GROUP: &str = "authentication.k8s.io";
/// The node that a service account's token is bound to, among what is known of the account.
pub(crate) const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
/// Which facts are known of an account that acts as its own node; which ones they are is no matter of who may do so.
const NODE_KEYS: &str = "authentication.kubernetes.io/associated-node-keys";
/// From how many groups or extra values on it is asked whether all of them are allowed.
const MANY: usize = 4;
/// For how many users it is kept in which way they impersonated last.
const KEPT: usize = 10_000;

/// A way to be allowed to impersonate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A service account acts as the node on which it runs.
    AssociatedNode,
    /// Any node.
    ArbitraryNode,
    /// A service account.
    ServiceAccount,
    /// A user that is neither.
    UserInfo,
    /// Anybody, for any request.
    Unconstrained,
}

impl Mode {
    /// All in the order in which they are tried.
    const ALL: [Self; 5] = [
        Self::AssociatedNode,
        Self::ArbitraryNode,
        Self::ServiceAccount,
        Self::UserInfo,
        Self::Unconstrained,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Unconstrained => "",
        }
    }

    fn is_constrained(self) -> bool {
        self != Self::Unconstrained
    }

    /// The verb that is asked for of whatever is impersonated.
    fn verb(self) -> String {
        match self.is_constrained() {
            true => format!("impersonate:{}", self.name()),
            false => "impersonate".to_owned(),
        }
    }

    /// Whether users like `wanted` are impersonated in this way.
    fn is_for(self, wanted: &UserInfo, requestor: &UserInfo) -> bool {
        let has_only_name = wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let (node, account) = (node_of(&wanted.name), valid_account_of(&wanted.name));
        match self {
            Self::AssociatedNode => {
                let own = requestor.extra.get(NODE_NAME).map(Vec::as_slice);
                let is_own = node.is_some_and(|node| own.is_some_and(|own| *own == [node]));
                has_only_name && is_own && valid_account_of(&requestor.name).is_some()
            }
            Self::ArbitraryNode => has_only_name && node.is_some(),
            Self::ServiceAccount => has_only_name && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Unconstrained => true,
        }
    }
}

/// In which way users impersonated last, which is tried first the next time: of several refusals the first is told.
#[derive(Default)]
pub(crate) struct LastModes(Mutex<HashMap<String, Mode>>);

impl LastModes {
    fn of(&self, user: &str) -> Option<Mode> {
        self.0.lock().get(user).copied()
    }

    fn keep(&self, user: &str, mode: Mode) {
        let mut kept = self.0.lock();
        if kept.len() >= KEPT && !kept.contains_key(user) {
            kept.clear();
        }
        kept.insert(user.to_owned(), mode);
    }
}

/// The node whose user has this name.
fn node_of(user: &str) -> Option<&str> {
    let node = user.strip_prefix(NODE_USER_PREFIX)?;
    meta::dns1123_subdomain(node).is_empty().then_some(node)
}

/// Namespace and name of the service account whose user has this name, if there can be one.
fn valid_account_of(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = account_of(user)?;
    let is_valid = meta::dns1123_label(namespace).is_empty() && meta::dns1123_subdomain(name).is_empty();
    is_valid.then_some((namespace, name))
}

/// Groups or a uid were to be impersonated, but no user; in upstream's words, which show Go's form of the request.
fn nobody_impersonated(wanted: &UserInfo) -> ApiError {
    let quoted = |values: &[String]| {
        values
            .iter()
            .map(|value| go_quote(value))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let groups = match wanted.groups.as_slice() {
        [] => "(nil)".to_owned(),
        groups => format!("{{{}}}", quoted(groups)),
    };
    let extra = match wanted.extra.is_empty() {
        true => "(nil)".to_owned(),
        false => {
            let parts = wanted.extra.iter();
            let parts = parts.map(|(key, values)| format!("{}:[]string{{{}}}", go_quote(key), quoted(values)));
            format!("{{{}}}", parts.collect::<Vec<_>>().join(", "))
        }
    };
    let uid = go_quote(&wanted.uid);
    ApiError::bad_request(format!(
        "requested &user.DefaultInfo{{Name:\"\", UID:{uid}, Groups:[]string{groups}, Extra:map[string][]string{extra}}} without impersonating a user name"
    ))
}

/// Whom the headers of a request name; none if nobody.
fn wanted(headers: &HeaderMap) -> Result<Option<UserInfo>, ApiError> {
    let all = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter();
        values
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
            .collect()
    };
    let first = |name: &str| all(name).into_iter().next().unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (header, value) in headers {
        if let Some(key) = header.as_str().strip_prefix("impersonate-extra-") {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            let key = request::decode_path(key).into_owned();
            extra.entry(key).or_default().push(value);
        }
    }
    let wanted = UserInfo {
        name: first("impersonate-user"),
        uid: first("impersonate-uid"),
        groups: all("impersonate-group"),
        extra,
    };
    match wanted.name.is_empty() {
        false => Ok(Some(wanted)),
        true if wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty() => Ok(None),
        true => Err(nobody_impersonated(&wanted)),
    }
}

/// What a constrained way refuses of extra facts, whoever asks.
fn refused_extra(extra: &BTreeMap<String, Vec<String>>) -> Option<String> {
    let says = |what: &str| Some(format!("impersonating {what} in extra is not allowed"));
    extra.iter().find_map(|(key, values)| {
        if key.is_empty() {
            return says("the empty string key");
        }
        let mut wrong = ErrorList::new();
        domain_prefixed(key, &Path::new("extra").child("key"), &mut wrong);
        if !wrong.is_empty() {
            return says("an invalid key").map(|said| format!("{said}: {}", aggregate(&wrong)));
        }
        if key.chars().any(char::is_uppercase) {
            return says("a non-lowercase key").map(|said| format!("{said}: {}", go_quote(key)));
        }
        match values.iter().any(String::is_empty) {
            true => says("the empty string value"),
            false => None,
        }
    })
}

/// Asks for one user whether another may be impersonated in one way.
struct Asker<'a> {
    cluster: &'a LogicalCluster,
    authorizer: &'a dyn Authorizer,
    requestor: &'a UserInfo,
    mode: Mode,
}

impl Asker<'_> {
    async fn check(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        match self.authorizer.ask(self.cluster, attributes).await {
            Ok(Decision::Allow) => Ok(()),
            Ok(Decision::Deny(reason) | Decision::NoOpinion(reason)) => Err(refusal(attributes, &reason)),
            Err(undecided) => Err(refusal(attributes, &undecided.why)),
        }
    }

    fn attributes<'q>(&'q self, verb: &'q str, group: &'q str, resource: &'q str, name: &'q str) -> Attributes<'q> {
        Attributes {
            version: "v1",
            ..Attributes::of_resource(self.requestor, verb, group, resource, "", name)
        }
    }

    /// Whom the requestor may be in this way.
    async fn user(&self, wanted: &UserInfo, question: &Question<'_>) -> Result<UserInfo, ApiError> {
        if self.mode.is_constrained() {
            let asked = question.by(self.requestor);
            let verb = format!("impersonate-on:{}:{}", self.mode.name(), asked.verb);
            self.check(&Attributes { verb: &verb, ..asked }).await?;
        }
        let verb = self.mode.verb();
        let group = if self.mode.is_constrained() { GROUP } else { "" };
        let mut user = wanted.clone();
        let mut of_name = self.attributes(&verb, group, "users", &wanted.name);
        if let Some(node) = node_of(&wanted.name).filter(|_| self.mode.is_constrained()) {
            let is_any = self.mode == Mode::AssociatedNode;
            (of_name.resource, of_name.name) = ("nodes", if is_any { "*" } else { node });
            user.groups = vec![NODES_GROUP.to_owned()];
        }
        if let Some((namespace, name)) = valid_account_of(&wanted.name) {
            of_name.resource = "serviceaccounts";
            (of_name.namespace, of_name.name) = (namespace, name);
            if wanted.groups.is_empty() {
                let all = "system:serviceaccounts";
                user.groups = vec![all.to_owned(), format!("{all}:{namespace}")];
            }
        }
        self.check(&of_name).await?;
        if !wanted.uid.is_empty() {
            self.check(&self.attributes(&verb, GROUP, "uids", &wanted.uid)).await?;
        }
        self.check_groups(&verb, group, &wanted.groups).await?;
        self.check_extra(&verb, &wanted.extra).await?;
        let everybody = match user.name == ANONYMOUS {
            true => Some(UNAUTHENTICATED),
            false => Some(AUTHENTICATED).filter(|_| !user.is_in(UNAUTHENTICATED)),
        };
        if let Some(everybody) = everybody.filter(|group| !user.is_in(group)) {
            user.groups.push(everybody.to_owned());
        }
        Ok(user)
    }

    async fn check_groups(&self, verb: &str, group: &str, wanted: &[String]) -> Result<(), ApiError> {
        let of = |name| self.attributes(verb, group, "groups", name);
        if self.mode.is_constrained() {
            if wanted.iter().any(String::is_empty) {
                let why = "impersonating the empty string group is not allowed";
                return Err(refusal(&of(""), why));
            }
            if wanted.iter().any(|group| group == MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(refusal(&of(MASTERS), why));
            }
            if wanted.len() >= MANY && self.check(&of("*")).await.is_ok() {
                return Ok(());
            }
        }
        for name in wanted {
            self.check(&of(name)).await?;
        }
        Ok(())
    }

    async fn check_extra(&self, verb: &str, wanted: &BTreeMap<String, Vec<String>>) -> Result<(), ApiError> {
        let of = |key, value| Attributes {
            subresource: key,
            ..self.attributes(verb, GROUP, "userextras", value)
        };
        if self.mode.is_constrained() {
            if let Some(why) = refused_extra(wanted) {
                return Err(refusal(&of("", ""), &why));
            }
            let values: usize = wanted.values().map(Vec::len).sum();
            if (wanted.len() >= MANY || values >= MANY) && self.check(&of("*", "*")).await.is_ok() {
                return Ok(());
            }
        }
        for (key, values) in wanted {
            for value in values {
                self.check(&of(key, value)).await?;
            }
        }
        Ok(())
    }
}

fn refusal(attributes: &Attributes<'_>, reason: &str) -> ApiError {
    ApiError::forbidden(
        attributes.group,
        attributes.resource,
        attributes.name,
        &authz::forbidden_message(attributes, reason),
    )
}

/// Whom a request is made as.
pub(crate) struct Impersonated {
    /// The user.
    pub(crate) user: UserInfo,
    /// The verb that was allowed, if it was that of a narrow way.
    pub(crate) constraint: Option<String>,
}

/// Applies impersonation headers, if the user may impersonate where `question` is asked. It is made only where there are such headers.
pub(crate) async fn impersonated<'a>(
    cluster: &LogicalCluster,
    user: &UserInfo,
    headers: &HeaderMap,
    question: impl FnOnce() -> Question<'a>,
) -> Result<Option<Impersonated>, ApiError> {
    match wanted(headers)? {
        Some(wanted) => acting_as(cluster, &*cluster.config().authorizer, user, &wanted, &question())
            .await
            .map(Some),
        None => Ok(None),
    }
}

/// Whom `user` acts as, if an authorizer allows that in some way.
async fn acting_as(
    cluster: &LogicalCluster,
    authorizer: &dyn Authorizer,
    user: &UserInfo,
    wanted: &UserInfo,
    question: &Question<'_>,
) -> Result<Impersonated, ApiError> {
    let last = cluster.last_modes().of(&user.name);
    let others = Mode::ALL.into_iter().filter(|mode| Some(*mode) != last);
    let mut refused = None;
    for mode in last.into_iter().chain(others).filter(|mode| mode.is_for(wanted, user)) {
        let mut requestor = user.clone();
        if mode == Mode::AssociatedNode {
            let keys = requestor.extra.into_keys().collect();
            requestor.extra = BTreeMap::from([(NODE_KEYS.to_owned(), keys)]);
        }
        let asker = Asker {
            cluster,
            authorizer,
            requestor: &requestor,
            mode,
        };
        match asker.user(wanted, question).await {
            Ok(impersonated) => {
                if last != Some(mode) {
                    cluster.last_modes().keep(&user.name, mode);
                }
                let constraint = mode.is_constrained().then(|| mode.verb());
                return Ok(Impersonated {
                    user: impersonated,
                    constraint,
                });
            }
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    // the last way is for everybody
    Err(refused.unwrap_or_else(ApiError::unauthorized))
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::request::{self, Query};

    /// Allows what its lines say: verb, group, resource with subresource, and name, separated by blanks.
    struct Lines(&'static str);

    impl Authorizer for Lines {
        fn authorize(&self, _: &LogicalCluster, asked: &Attributes<'_>) -> Decision {
            let resource = match asked.subresource {
                "" => asked.resource.to_owned(),
                subresource => format!("{}/{subresource}", asked.resource),
            };
            let line = format!("{} {} {resource} {}", asked.verb, asked.group, asked.name);
            match self.0.lines().any(|own| own.trim() == line.trim()) {
                true => Decision::Allow,
                false => Decision::NoOpinion(String::new()),
            }
        }
    }

    fn wanted(name: &str, groups: &[&str], uid: &str) -> UserInfo {
        UserInfo {
            name: name.to_owned(),
            uid: uid.to_owned(),
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
            extra: BTreeMap::new(),
        }
    }

    /// What becomes of requests to list pods as others: the groups they get, or why they are refused.
    async fn outcomes(lines: &'static str, requestor: &UserInfo, wanted: &[UserInfo]) -> Vec<String> {
        let cluster = LogicalCluster::in_memory();
        let (target, query) = (request::target("/api/v1/namespaces/n/pods"), Query::default());
        let question = Question::of(&Method::GET, &target, &query);
        let mut found = Vec::new();
        for wanted in wanted {
            let acting = acting_as(&cluster, &Lines(lines), requestor, wanted, &question).await;
            found.push(match acting {
                Ok(impersonated) => impersonated.user.groups.join(" "),
                Err(error) => error.message().to_owned(),
            });
        }
        found
    }

    #[tokio::test]
    async fn narrow_ways_come_first_and_tell_what_is_missing() {
        let lines = "impersonate-on:user-info:list  pods
            impersonate:user-info authentication.k8s.io users a
            impersonate:user-info authentication.k8s.io groups g";
        let bob = UserInfo::new("bob", &[]);
        let all = [
            wanted("a", &[], ""),
            wanted("a", &["g"], ""),
            wanted("a", &["h"], ""),
            wanted("a", &["system:masters"], ""),
            wanted("a", &[""], ""),
            wanted("a", &[], "1"),
            wanted("b", &[], ""),
            wanted("system:node:n", &[], ""),
            wanted("system:serviceaccount:n:s", &[], ""),
        ];
        assert_eq!(
            outcomes(lines, &bob, &all).await,
            [
                "system:authenticated",
                "g system:authenticated",
                "groups.authentication.k8s.io \"h\" is forbidden: User \"bob\" cannot impersonate:user-info resource \"groups\" in API group \"authentication.k8s.io\" at the cluster scope",
                "groups.authentication.k8s.io \"system:masters\" is forbidden: User \"bob\" cannot impersonate:user-info resource \"groups\" in API group \"authentication.k8s.io\" at the cluster scope: impersonating the system:masters group is not allowed",
                "groups.authentication.k8s.io is forbidden: User \"bob\" cannot impersonate:user-info resource \"groups\" in API group \"authentication.k8s.io\" at the cluster scope: impersonating the empty string group is not allowed",
                "uids.authentication.k8s.io \"1\" is forbidden: User \"bob\" cannot impersonate:user-info resource \"uids\" in API group \"authentication.k8s.io\" at the cluster scope",
                "users.authentication.k8s.io \"b\" is forbidden: User \"bob\" cannot impersonate:user-info resource \"users\" in API group \"authentication.k8s.io\" at the cluster scope",
                "pods is forbidden: User \"bob\" cannot impersonate-on:arbitrary-node:list resource \"pods\" in API group \"\" in the namespace \"n\"",
                "pods is forbidden: User \"bob\" cannot impersonate-on:serviceaccount:list resource \"pods\" in API group \"\" in the namespace \"n\"",
            ]
        );
    }

    #[tokio::test]
    async fn who_may_impersonate_at_all_is_told_of_that_from_then_on() {
        let lines = "impersonate  users a\nimpersonate  serviceaccounts s";
        let bob = UserInfo::new("bob", &[]);
        let all = [
            wanted("b", &[], ""),
            wanted("a", &[], ""),
            wanted("b", &[], ""),
            wanted("system:serviceaccount:n:s", &[], ""),
        ];
        assert_eq!(
            outcomes(lines, &bob, &all).await,
            [
                "pods is forbidden: User \"bob\" cannot impersonate-on:user-info:list resource \"pods\" in API group \"\" in the namespace \"n\"",
                "system:authenticated",
                "users \"b\" is forbidden: User \"bob\" cannot impersonate resource \"users\" in API group \"\" at the cluster scope",
                "system:serviceaccounts system:serviceaccounts:n system:authenticated",
            ]
        );
    }

    #[tokio::test]
    async fn accounts_act_as_the_node_on_which_they_run() {
        let lines = "impersonate-on:associated-node:list  pods
            impersonate:associated-node authentication.k8s.io nodes *";
        let mut agent = UserInfo::service_account("n", "agent", "");
        agent.extra.insert(NODE_NAME.to_owned(), vec!["one".to_owned()]);
        let all = [wanted("system:node:one", &[], ""), wanted("system:node:two", &[], "")];
        assert_eq!(
            outcomes(lines, &agent, &all).await,
            [
                "system:nodes system:authenticated",
                "pods is forbidden: User \"system:serviceaccount:n:agent\" cannot impersonate-on:arbitrary-node:list resource \"pods\" in API group \"\" in the namespace \"n\"",
            ]
        );
    }
}
