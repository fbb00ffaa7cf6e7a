//! Objects stay as small, and as few, as the operator wants, [ADM-76]. Without configuration there is no limit.

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::quantity::Amount;
use gardener_apiserver::UserInfo;
use gardener_apiserver::definition::{Admission, Attributes, Operation};
use serde::Deserialize;
use serde_json::Value;

use super::{denied, is_project};

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
    pub count: Option<usize>,
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

impl ResourceSize {
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
            if there >= most {
                return Some(format!("maximum resource count exceeded! max allowed: {most}"));
            }
        }
        let most: Amount = limit.size.as_ref()?.0.parse().ok()?;
        let own = size(attributes.object.as_ref()?);
        (i64::try_from(own).is_ok_and(|own| Amount::units(own) > most))
            .then(|| format!("maximum resource size exceeded! Size in request: {own} bytes, max allowed: {most}"))
    }
}

#[async_trait]
impl Admission for ResourceSize {
    fn name(&self) -> &'static str {
        "validate-resource-size.gardener.cloud"
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
