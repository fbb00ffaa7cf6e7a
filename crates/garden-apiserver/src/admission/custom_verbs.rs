//! Some fields may only be set or changed by who has a verb for that, [ADM-61], [CVA-1] – [CVA-5].

use std::collections::BTreeSet;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apis::core::v1beta1::{NamespacedCloudProfile, Project, ProjectMember, RBAC_GROUP, Shoot, Worker};
use gardener_apiserver::UserInfo;
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use k8s_openapi::api::rbac::v1::Subject;

use super::{typed, typed_old};

/// How the names of service accounts begin, as users.
const SERVICE_ACCOUNTS: &str = "system:serviceaccount:";

/// The plugin.
pub(super) struct CustomVerbAuthorizer;

/// A verb that a write needs, and what it lets its user do.
#[derive(Debug, PartialEq, Eq)]
struct Needed {
    verb: &'static str,
    what: &'static str,
}

impl Needed {
    fn check(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let user = attributes.context.user;
        let definition = attributes.definition;
        let allowed = attributes.context.lister.allowed(
            user,
            self.verb,
            &definition.group,
            &definition.plural,
            attributes.namespace,
            attributes.name,
        );
        match allowed {
            true => Ok(()),
            false => Err(attributes.forbidden(&format!(
                "user {:?} is not allowed to {} for {:?}",
                user.name, self.what, definition.plural
            ))),
        }
    }
}

/// Who a user is taken for an owner by. A project without one will be the user's own.
fn owns(user: &UserInfo, owner: Option<&Subject>) -> bool {
    let Some(owner) = owner else { return true };
    match owner.kind.as_str() {
        "ServiceAccount" => {
            let account = user.name.strip_prefix(SERVICE_ACCOUNTS);
            let account = account.and_then(|account| account.split_once(':'));
            account == Some((owner.namespace.as_deref().unwrap_or_default(), owner.name.as_str()))
        }
        "User" => owner.name == user.name,
        "Group" => user.groups.contains(&owner.name),
        _ => false,
    }
}

/// Service accounts are everybody's matter who may write a project; groups of them are not.
fn is_service_account(api_group: Option<&str>, kind: &str, name: &str) -> bool {
    match kind {
        "ServiceAccount" => api_group.unwrap_or_default().is_empty(),
        "User" => api_group == Some(RBAC_GROUP) && name.starts_with(SERVICE_ACCOUNTS),
        _ => false,
    }
}

/// Kind, name and role of each membership of people and groups, but for those of the owner; an empty role for who has none.
fn memberships(members: &[ProjectMember], owner: Option<&Subject>) -> BTreeSet<(String, String, String)> {
    let owner = owner.filter(|owner| !is_service_account(owner.api_group.as_deref(), &owner.kind, &owner.name));
    let is_owner = |member: &ProjectMember| {
        owner.is_some_and(|owner| (owner.kind.as_str(), owner.name.as_str()) == (&member.kind, &member.name))
    };
    let people = members.iter().filter(|member| {
        !is_service_account(member.api_group.as_deref(), &member.kind, &member.name) && !is_owner(member)
    });
    let mut all = BTreeSet::new();
    for member in people {
        let mut roles = member.all_roles();
        if roles.is_empty() {
            roles.push(String::new());
        }
        let member = |role| (member.kind.clone(), member.name.clone(), role);
        all.extend(roles.into_iter().map(member));
    }
    all
}

/// The first verb that a write of a project needs: nothing else is asked for then, [CVA-2].
fn of_project(new: &Project, old: &Project, user: &UserInfo) -> Option<Needed> {
    // as upstream, which takes tolerations that come or go as a whole for a whitelist, even an empty one
    let whitelist = |project: &Project| project.spec.tolerations.as_ref().map(|both| both.whitelist.clone());
    if whitelist(new) != whitelist(old) {
        return Some(Needed {
            verb: "modify-spec-tolerations-whitelist",
            what: "modify .spec.tolerations.whitelist",
        });
    }
    let owner = new.spec.owner.as_ref();
    let people = |project: &Project| memberships(&project.spec.members, owner);
    let has_other_people = new.spec.members != old.spec.members && people(new) != people(old);
    if has_other_people && !owns(user, owner) {
        return Some(Needed {
            verb: "manage-members",
            what: "manage human users or groups in .spec.members",
        });
    }
    let before = old.spec.owner.as_ref();
    (before != owner && !owns(user, before)).then_some(Needed {
        verb: "manage-members",
        what: "manage owner in .spec.owner",
    })
}

/// All verbs that a write of a namespaced cloud profile needs.
fn of_cloud_profile(new: &NamespacedCloudProfile, old: &NamespacedCloudProfile) -> Vec<Needed> {
    let mut needed = Vec::new();
    let mut need = |differs: bool, verb, what| needed.extend(differs.then_some(Needed { verb, what }));
    let (new, old) = (&new.spec, &old.spec);
    need(
        new.kubernetes != old.kubernetes,
        "modify-spec-kubernetes",
        "modify .spec.kubernetes",
    );
    need(
        new.machine_images != old.machine_images,
        "modify-spec-machineimages",
        "modify .spec.machineImages",
    );
    need(
        new.provider_config != old.provider_config,
        "modify-spec-providerconfig",
        "modify .spec.providerConfig",
    );
    needed
}

/// What a write of a shoot needs that changes the pool of its control plane.
fn of_shoot(new: &Shoot, old: Option<&Shoot>) -> Option<Needed> {
    let pool = |shoot: &Shoot| -> Option<Worker> {
        let mut pools = shoot.spec.provider.workers.iter();
        pools.find(|worker| worker.control_plane.is_some()).cloned()
    };
    (pool(new) != old.and_then(pool)).then_some(Needed {
        verb: "mark-self-hosted",
        what: "modify .spec.provider.workers[].controlPlane",
    })
}

#[async_trait]
impl Admission for CustomVerbAuthorizer {
    fn name(&self) -> &'static str {
        "CustomVerbAuthorizer"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        if !matches!(attributes.operation, Operation::Create | Operation::Update) || !attributes.subresource.is_empty()
        {
            return Ok(());
        }
        let mut needed = Vec::new();
        if let Some(new) = typed::<Project>(attributes) {
            let old = typed_old::<Project>(attributes).unwrap_or_default();
            needed.extend(of_project(&new, &old, attributes.context.user));
        }
        if let Some(new) = typed::<NamespacedCloudProfile>(attributes) {
            let old = typed_old::<NamespacedCloudProfile>(attributes).unwrap_or_default();
            needed = of_cloud_profile(&new, &old);
        }
        if let Some(new) = typed::<Shoot>(attributes) {
            needed.extend(of_shoot(&new, typed_old::<Shoot>(attributes).as_deref()));
        }
        needed.iter().try_for_each(|needed| needed.check(attributes))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn user(name: &str, groups: &[&str]) -> UserInfo {
        UserInfo::new(name, groups)
    }

    fn project(owner: Value, members: Value) -> Project {
        serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {"owner": owner, "members": members}}))
            .unwrap()
    }

    fn verb(new: &Project, old: &Project, user: &UserInfo) -> Option<&'static str> {
        of_project(new, old, user).map(|needed| needed.what)
    }

    const MEMBERS: Option<&str> = Some("manage human users or groups in .spec.members");
    const OWNER: Option<&str> = Some("manage owner in .spec.owner");

    fn subject(kind: &str, name: &str) -> Value {
        let group = if kind == "ServiceAccount" { "" } else { RBAC_GROUP };
        json!({"apiGroup": group, "kind": kind, "name": name})
    }

    fn member(kind: &str, name: &str, roles: &[&str]) -> Value {
        let mut member = subject(kind, name);
        member["role"] = roles[0].into();
        member["roles"] = json!(roles[1..]);
        member
    }

    #[test]
    fn cva_1_members_count_from_the_beginning() {
        let members = json!([member("User", "bob", &["owner"]), member("User", "carol", &["admin"])]);
        let of_bob = project(subject("User", "bob"), members);
        let none = Project::default();
        assert_eq!(verb(&of_bob, &none, &user("alice", &[])), MEMBERS);
        assert_eq!(verb(&of_bob, &none, &user("bob", &[])), None);
        let alone = project(subject("User", "bob"), json!([member("User", "bob", &["owner"])]));
        assert_eq!(verb(&alone, &none, &user("alice", &[])), None);
    }

    #[test]
    fn cva_4_what_counts_as_a_change_of_members() {
        let alice = user("alice", &[]);
        let with = |more: Value| {
            let members = json!([member("User", "bob", &["owner"]), more]);
            project(subject("User", "bob"), members)
        };
        let old = with(member("User", "carol", &["admin", "viewer"]));
        for (name, more, expected) in [
            ("order of roles", member("User", "carol", &["viewer", "admin"]), None),
            ("roles", member("User", "carol", &["admin"]), MEMBERS),
            ("somebody else", member("User", "dave", &["admin", "viewer"]), MEMBERS),
            (
                "a group of accounts",
                member("Group", "system:serviceaccounts:x", &["admin"]),
                MEMBERS,
            ),
        ] {
            assert_eq!(verb(&with(more), &old, &alice), expected, "{name}");
        }
        let account = with(member("ServiceAccount", "robot", &["admin"]));
        let as_user = with(member("User", "system:serviceaccount:x:robot", &["admin"]));
        assert_eq!(verb(&account, &as_user, &alice), None);
        let mut owner_too = account.clone();
        owner_too.spec.members[0].roles = vec!["uam".into()];
        assert_eq!(verb(&owner_too, &account, &alice), None);
    }

    #[test]
    fn cva_5_who_owns() {
        let account = json!({"kind": "ServiceAccount", "name": "robot", "namespace": "garden-p"});
        let subject = |value: Value| serde_json::from_value::<Subject>(value).unwrap();
        for (owner, who, expected) in [
            (
                subject(account.clone()),
                user("system:serviceaccount:garden-p:robot", &[]),
                true,
            ),
            (
                subject(account),
                user("system:serviceaccount:garden-q:robot", &[]),
                false,
            ),
            (
                subject(super::tests::subject("Group", "team")),
                user("alice", &["team"]),
                true,
            ),
            (
                subject(super::tests::subject("User", "alice")),
                user("bob", &["alice"]),
                false,
            ),
        ] {
            assert_eq!(owns(&who, Some(&owner)), expected, "{owner:?} {who:?}");
        }
        assert!(owns(&user("anybody", &[]), None));
    }

    #[test]
    fn cva_2_the_first_that_applies_decides() {
        let old = project(subject("User", "bob"), json!([]));
        let mut new = project(subject("User", "carol"), json!([member("User", "dave", &["admin"])]));
        assert_eq!(verb(&new, &old, &user("alice", &[])), MEMBERS);
        assert_eq!(verb(&new, &old, &user("carol", &[])), OWNER);
        assert_eq!(verb(&new, &old, &user("bob", &[])), MEMBERS);
        new.spec.tolerations = serde_json::from_value(json!({"whitelist": [{"key": "a"}]})).unwrap();
        let first = Some("modify .spec.tolerations.whitelist");
        assert_eq!(verb(&new, &old, &user("carol", &[])), first);
    }

    #[test]
    fn adm_61_control_planes_of_ones_own() {
        let shoot = |workers: Value| -> Shoot {
            serde_json::from_value(json!({"spec": {"provider": {"type": "local", "workers": workers}}})).unwrap()
        };
        let worker =
            |maximum: i32| json!({"name": "cp", "machine": {"type": "m"}, "maximum": maximum, "controlPlane": {}});
        let (none, one, two) = (shoot(json!([])), shoot(json!([worker(1)])), shoot(json!([worker(2)])));
        assert!(of_shoot(&none, None).is_none() && of_shoot(&one, Some(&one)).is_none());
        for (new, old) in [
            (&one, None),
            (&one, Some(&none)),
            (&two, Some(&one)),
            (&none, Some(&one)),
        ] {
            assert_eq!(of_shoot(new, old).unwrap().verb, "mark-self-hosted");
        }
    }
}
