//! Defaults of projects, [DEF-41], the merged form of roles, [GAPI-43], and the owner's role, [GAPI-38].

use k8s_openapi::api::rbac::v1::Subject;

use super::*;
use crate::constants::{GARDEN_NAMESPACE, seed_taint};

/// The API group of users and groups.
pub const RBAC_GROUP: &str = "rbac.authorization.k8s.io";

/// The role of the one owner.
pub const ROLE_OWNER: &str = "owner";
/// The role of members who may change everything but the members.
pub const ROLE_ADMIN: &str = "admin";

fn default_subject(subject: &mut Subject) {
    if matches!(subject.kind.as_str(), "User" | "Group") && subject.api_group.as_deref().unwrap_or_default().is_empty()
    {
        subject.api_group = Some(RBAC_GROUP.into());
    }
}

/// Fills in what the user left out.
pub fn default_project(project: &mut Project) {
    let spec = &mut project.spec;
    spec.owner.iter_mut().for_each(default_subject);
    for member in &mut spec.members {
        let empty = member.api_group.as_deref().unwrap_or_default().is_empty();
        if matches!(member.kind.as_str(), "User" | "Group") && empty {
            member.api_group = Some(RBAC_GROUP.into());
        }
        if member.role.is_empty() && member.roles.is_empty() {
            member.role = "viewer".into();
        }
        let roles = member.all_roles();
        // a first role that is told twice stays so, for the validation to tell
        if roles.iter().skip(1).all(|role| Some(role) != roles.first()) {
            member.set_roles(roles);
        }
    }
    if spec.namespace.as_deref() == Some(GARDEN_NAMESPACE) {
        let tolerations = spec.tolerations.get_or_insert_default();
        for list in [&mut tolerations.whitelist, &mut tolerations.defaults] {
            let protected = Toleration {
                key: seed_taint::PROTECTED.into(),
                value: None,
            };
            if !list.contains(&protected) {
                list.push(protected);
            }
        }
    }
}

impl ProjectMember {
    /// All roles: `role`, then `roles` without further mention of it, [GAPI-43].
    pub fn all_roles(&self) -> Vec<String> {
        if self.role.is_empty() {
            return self.roles.clone();
        }
        let others = self.roles.iter().filter(|role| **role != self.role);
        std::iter::once(&self.role).chain(others).cloned().collect()
    }

    /// Writes a list of roles back: the first as `role`, the rest as `roles`. An empty one, which is none, stays where it is found.
    pub fn set_roles(&mut self, roles: Vec<String>) {
        let mut others = roles.into_iter().peekable();
        self.role = others.next_if(|first| !first.is_empty()).unwrap_or_default();
        self.roles = others.collect();
    }

    /// Whether the member is this subject.
    pub fn is(&self, subject: &Subject) -> bool {
        fn text(value: &Option<String>) -> &str {
            value.as_deref().unwrap_or_default()
        }
        (self.kind.as_str(), self.name.as_str()) == (subject.kind.as_str(), subject.name.as_str())
            && text(&self.api_group) == text(&subject.api_group)
            && text(&self.namespace) == text(&subject.namespace)
    }

    /// A member that is this subject, with roles.
    pub fn of(subject: &Subject, roles: &[&str]) -> Self {
        let mut member = Self {
            api_group: subject.api_group.clone(),
            kind: subject.kind.clone(),
            name: subject.name.clone(),
            namespace: subject.namespace.clone(),
            ..Self::default()
        };
        member.set_roles(roles.iter().map(|role| (*role).to_owned()).collect());
        member
    }
}

/// How the names of service accounts begin, as users.
pub(super) const SERVICE_ACCOUNTS: &str = "system:serviceaccount:";

/// The form in which a project is stored, after validation: only the owner has the role `owner`, [GAPI-38].
pub fn canonicalize_project(project: &mut Project) {
    let Some(owner) = project.spec.owner.clone() else {
        return;
    };
    for member in &mut project.spec.members {
        let mut roles = member.all_roles();
        if member.is(&owner) {
            if !roles.iter().any(|role| role == ROLE_OWNER) {
                roles.push(ROLE_OWNER.into());
            }
        } else {
            roles.retain(|role| role != ROLE_OWNER);
        }
        member.set_roles(roles);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(value: serde_json::Value) -> ProjectMember {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn gapi_43_roles_are_one_list() {
        let one =
            member(serde_json::json!({"kind": "User", "name": "a", "role": "viewer", "roles": ["viewer", "uam"]}));
        assert_eq!(one.all_roles(), ["viewer", "uam"]);
        let mut wrong = member(serde_json::json!({"kind": "User", "name": "a", "roles": ["", "uam"]}));
        wrong.set_roles(wrong.all_roles());
        assert_eq!(wrong.all_roles(), ["", "uam"]);
    }

    #[test]
    fn gapi_38_only_the_owner_owns() {
        let mut project: Project = serde_json::from_value(serde_json::json!({"spec": {
            "owner": {"kind": "User", "name": "a"},
            "members": [{"kind": "User", "name": "a", "role": "admin"}, {"kind": "User", "name": "b", "role": "admin", "roles": ["owner"]}]
        }}))
        .unwrap();
        canonicalize_project(&mut project);
        assert_eq!(project.spec.members[0].all_roles(), ["admin", "owner"]);
        assert_eq!(project.spec.members[1].all_roles(), ["admin"]);
    }
}
