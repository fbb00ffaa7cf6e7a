//! Objects stay as small, and as few, as the operator wants, [ADM-76]. Without configuration there is no limit. What is wrong with a configuration is
//! told here, too.

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::quantity::Amount;
use gardener_apiserver::UserInfo;
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use serde::Deserialize;
use serde_json::Value;

use super::{denied, is_project};

/// What it is called; its configuration goes by this name, too.
pub const NAME: &str = "validate-resource-size.gardener.cloud";

/// gardener-admission-controller's `server.resourceAdmissionConfiguration`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResourceSize {
    /// The first limit that fits a resource holds.
    #[serde(default)]
    pub limits: Vec<Limit>,
    /// Who may do more.
    #[serde(default)]
    pub unrestricted_subjects: Vec<Subject>,
    /// What happens to what is too much.
    #[serde(default)]
    pub operation_mode: Mode,
}

/// A limit for some resources; `*` means all.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Limit {
    /// Their groups.
    #[serde(default)]
    pub api_groups: Vec<String>,
    /// Their versions.
    #[serde(default)]
    pub api_versions: Vec<String>,
    /// Their plural names.
    #[serde(default)]
    pub resources: Vec<String>,
    /// The most bytes of an object as JSON without its status and managed fields.
    pub size: Option<k8s_openapi::apimachinery::pkg::api::resource::Quantity>,
    /// The most objects of a kind without namespaces.
    pub count: Option<i64>,
}

/// A subject of RBAC.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Subject {
    /// `User`, `Group` or `ServiceAccount`.
    pub kind: String,
    /// Its group of kinds; not looked at.
    #[serde(default)]
    pub api_group: String,
    /// Its name; `*` for users and groups means all.
    pub name: String,
    /// The namespace of a service account.
    #[serde(default)]
    pub namespace: String,
}

/// What happens to what is too much.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It is refused.
    #[default]
    Block,
    /// It is told in the log.
    Log,
}

impl Subject {
    fn is(&self, user: &UserInfo) -> bool {
        let fits = |name: &str| self.name == "*" || self.name == name;
        match (self.kind.as_str(), user.name.strip_prefix("system:serviceaccount:")) {
            ("ServiceAccount", Some(account)) => account == format!("{}:{}", self.namespace, self.name),
            ("User", None) => fits(&user.name),
            ("Group", None) => user.groups.iter().any(|group| fits(group)),
            _ => false,
        }
    }
}

impl Subject {
    fn validate(&self, path: &Path, errors: &mut ErrorList) {
        if !KINDS.contains(&self.kind.as_str()) {
            errors.push(Error::not_supported(&path.child("kind"), self.kind.as_str(), &KINDS));
        }
        let mut wrong =
            |member: &str, value: &str, why: &str| errors.push(Error::invalid(&path.child(member), value, why));
        if self.name.is_empty() {
            wrong("name", &self.name, "name must not be empty");
        }
        match self.kind.as_str() {
            "ServiceAccount" => {
                if self.namespace.is_empty() {
                    wrong("namespace", &self.namespace, "name must not be empty");
                }
                if !self.api_group.is_empty() {
                    wrong("apiGroup", &self.api_group, "apiGroup must be empty");
                }
            }
            "User" | "Group" => {
                if !self.namespace.is_empty() {
                    wrong("namespace", &self.namespace, "name must be empty");
                }
                if self.api_group != RBAC {
                    errors.push(Error::not_supported(
                        &path.child("apiGroup"),
                        self.api_group.as_str(),
                        &[RBAC],
                    ));
                }
            }
            _ => {}
        }
    }
}

impl Limit {
    fn validate(&self, path: &Path, errors: &mut ErrorList) {
        let mut wrong = |path: Path, value: Value, why: &str| errors.push(Error::invalid(&path, value, why));
        // upstream calls versions by another name than the field has
        for (member, list, may_be_empty) in [
            ("resources", &self.resources, false),
            ("apiGroups", &self.api_groups, true),
            ("versions", &self.api_versions, false),
        ] {
            let at = path.child(member);
            for (j, own) in list
                .iter()
                .enumerate()
                .filter(|(_, own)| own.is_empty() && !may_be_empty)
            {
                wrong(at.index(j), own.as_str().into(), "must not be empty");
            }
            if list.is_empty() {
                wrong(at, self.resources.clone().into(), "must at least have one element");
            }
        }
        if self.count.is_none() && self.size.is_none() {
            let why = "at least one of size or count must be specified";
            wrong(path.clone(), self.resources.clone().into(), why);
        }
        if let Some(count) = self.count.filter(|count| *count < 0) {
            wrong(path.child("count"), count.into(), "value must not be negative");
        }
        if let Some(size) = &self.size {
            match size.0.parse::<Amount>() {
                Ok(amount) if amount < Amount::units(0) => {
                    wrong(path.child("size"), size.0.as_str().into(), "value must not be negative");
                }
                Ok(_) => {}
                Err(_) => wrong(path.child("size"), size.0.as_str().into(), "must be a quantity"),
            }
        }
    }
}

fn fits(list: &[String], own: &str) -> bool {
    list.iter().any(|name| name == "*" || name == own)
}

/// The bytes that count of an object.
fn size(object: &Value) -> usize {
    let mut object = object.clone();
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
        if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
    }
    object.to_string().len()
}

const KINDS: [&str; 3] = ["User", "Group", "ServiceAccount"];
const RBAC: &str = "rbac.authorization.k8s.io";

impl ResourceSize {
    /// Finds what is wrong with a configuration; `path` leads to it.
    pub fn validate_configuration(&self, path: &Path) -> ErrorList {
        let mut errors = Vec::new();
        for (i, subject) in self.unrestricted_subjects.iter().enumerate() {
            subject.validate(&path.child("unrestrictedSubjects").index(i), &mut errors);
        }
        for (i, limit) in self.limits.iter().enumerate() {
            limit.validate(&path.child("limits").index(i), &mut errors);
        }
        errors
    }

    /// What is too much in a write.
    fn excess(&self, attributes: &Attributes<'_>) -> Option<String> {
        let definition = attributes.definition;
        let limit = self.limits.iter().find(|limit| {
            fits(&limit.api_groups, &definition.group)
                && fits(&limit.api_versions, attributes.version)
                && fits(&limit.resources, &definition.plural)
        })?;
        let creates = attributes.operation == Operation::Create && attributes.namespace.is_empty();
        if let Some(most) = limit.count.filter(|_| creates) {
            let there = attributes
                .context
                .lister
                .list(&definition.group, &definition.plural, None)
                .len();
            if i64::try_from(there).unwrap_or(i64::MAX) >= most {
                return Some(format!("maximum resource count exceeded! max allowed: {most}"));
            }
        }
        let most: Amount = limit.size.as_ref()?.0.parse().ok()?;
        let own = size(attributes.object.as_deref()?);
        (i64::try_from(own).is_ok_and(|own| Amount::units(own) > most))
            .then(|| format!("maximum resource size exceeded! Size in request: {own} bytes, max allowed: {most}"))
    }
}

#[async_trait]
impl Admission for ResourceSize {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let user = attributes.context.user;
        if self.limits.is_empty()
            || !attributes.subresource.is_empty()
            || !matches!(attributes.operation, Operation::Create | Operation::Update)
            || self.unrestricted_subjects.iter().any(|subject| subject.is(user))
            || (!attributes.namespace.is_empty() && !is_project(attributes, attributes.namespace))
        {
            return Ok(());
        }
        let Some(why) = self.excess(attributes) else {
            return Ok(());
        };
        match self.operation_mode {
            Mode::Block => Err(denied(self.name(), attributes.forbidden(&why))),
            Mode::Log => {
                let resource = attributes.definition.plural.as_str();
                tracing::warn!(resource, name = attributes.name, user = user.name, why, "too large");
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn adm_76_status_and_managed_fields_do_not_count() {
        let small = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
        let large =
            json!({"metadata": {"name": "a", "managedFields": [{"x": "y"}]}, "data": {"k": "v"}, "status": {"a": 1}});
        assert_eq!(size(&small), size(&large));
    }

    #[test]
    fn adm_76_what_is_wrong_with_a_configuration() {
        let wrong: ResourceSize = serde_json::from_value(json!({
            "operationMode": "log",
            "unrestrictedSubjects": [
                {"kind": "User", "name": "a", "apiGroup": "rbac.authorization.k8s.io"},
                {"kind": "Robot", "name": ""},
                {"kind": "ServiceAccount", "name": "a", "apiGroup": "x"},
                {"kind": "Group", "name": "a", "namespace": "b"},
            ],
            "limits": [
                {"apiGroups": ["core.gardener.cloud"], "apiVersions": ["*"], "resources": ["shoots"], "size": "100k"},
                {"apiGroups": [""], "apiVersions": [""], "resources": [""], "count": 1},
                {"apiGroups": [], "apiVersions": [], "resources": []},
                {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "count": -1, "size": "-1"},
            ],
        }))
        .unwrap();
        let found = wrong.validate_configuration(&Path::new("c"));
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "c.unrestrictedSubjects[1].kind: Unsupported value: \"Robot\": supported values: \"User\", \"Group\", \"ServiceAccount\"",
                "c.unrestrictedSubjects[1].name: Invalid value: \"\": name must not be empty",
                "c.unrestrictedSubjects[2].namespace: Invalid value: \"\": name must not be empty",
                "c.unrestrictedSubjects[2].apiGroup: Invalid value: \"x\": apiGroup must be empty",
                "c.unrestrictedSubjects[3].namespace: Invalid value: \"b\": name must be empty",
                "c.unrestrictedSubjects[3].apiGroup: Unsupported value: \"\": supported values: \"rbac.authorization.k8s.io\"",
                "c.limits[1].resources[0]: Invalid value: \"\": must not be empty",
                "c.limits[1].versions[0]: Invalid value: \"\": must not be empty",
                "c.limits[2].resources: Invalid value: []: must at least have one element",
                "c.limits[2].apiGroups: Invalid value: []: must at least have one element",
                "c.limits[2].versions: Invalid value: []: must at least have one element",
                "c.limits[2]: Invalid value: []: at least one of size or count must be specified",
                "c.limits[3].count: Invalid value: -1: value must not be negative",
                "c.limits[3].size: Invalid value: \"-1\": value must not be negative",
            ]
        );
    }

    #[test]
    fn adm_76_some_may_do_more() {
        let subject = |kind: &str, name: &str, namespace: &str| Subject {
            kind: kind.into(),
            name: name.into(),
            namespace: namespace.into(),
            ..Subject::default()
        };
        let (user, account) = (
            UserInfo::new("admin", &["masters"]),
            UserInfo::new("system:serviceaccount:garden:robot", &["masters"]),
        );
        assert!(subject("User", "admin", "").is(&user) && subject("User", "*", "").is(&user));
        assert!(subject("Group", "masters", "").is(&user));
        assert!(subject("ServiceAccount", "robot", "garden").is(&account));
        // service accounts are meant by their own kind only
        assert!(!subject("Group", "masters", "").is(&account) && !subject("ServiceAccount", "robot", "x").is(&account));
    }
}
