use super::*;
use crate::definition::Columns;
use crate::kubernetes::{resources, strategy};

/// What admission and stores add, and what differs each time.
fn reduce(object: &mut Value) {
    if let Some(members) = object.as_object_mut() {
        members.remove("status");
    }
    for key in ["generation", "finalizers", "annotations", "labels"] {
        meta::set(object, key, None);
    }
    if let Some(spec) = super::object(object, "/spec") {
        for key in [
            "priority",
            "preemptionPolicy",
            "tolerations",
            "clusterIP",
            "clusterIPs",
            "ipFamilies",
            "ipFamilyPolicy",
            "finalizers",
            "taints",
            "selector",
        ] {
            spec.remove(key);
        }
        for port in each(spec, "ports") {
            port.remove("nodePort");
        }
        if spec.get("template").is_some() {
            spec.remove("template");
        }
        if spec.is_empty() {
            object.as_object_mut().map(|members| members.remove("spec"));
        }
    }
}

#[test]
fn defaults_are_those_recorded() {
    let pairs: Vec<Value> = serde_json::from_str(include_str!("../../../recorded/defaults.json")).unwrap();
    let (all, _) = resources().unwrap();
    let mut compared = 0;
    for pair in pairs {
        let (mut input, mut output) = (pair["in"].clone(), pair["out"].clone());
        let api_version = meta::text(&input, "/apiVersion").to_owned();
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let kind = meta::text(&input, "/kind").to_owned();
        let definition = all
            .iter()
            .find(|d| d.group == group && d.versions.iter().any(|v| v.name == version && v.kind == kind))
            .unwrap();
        assert!(matches!(definition.version(version).unwrap().columns, Columns::Row(_)));
        let own = strategy::of(group, &definition.plural);
        let user = crate::UserInfo::default();
        let context = crate::definition::Context {
            user: &user,
            cluster: "c",
            now: k8s_openapi::jiff::Timestamp::UNIX_EPOCH,
            chance: 0,
            dry_run: false,
            verb: "",
            lister: &Nothing,
        };
        let schema = definition.version(version).unwrap().schema.clone().unwrap();
        schema.canonicalize(&mut input);
        schema.canonicalize(&mut output);
        own.default(&context, &mut input);
        schema.canonicalize(&mut input);
        reduce(&mut input);
        reduce(&mut output);
        // quantities are compared by their own rules elsewhere
        if matches!(kind.as_str(), "ResourceQuota") {
            continue;
        }
        assert_eq!(input, output, "{kind}");
        compared += 1;
    }
    assert!(compared > 40);
}

struct Nothing;

impl crate::definition::Lister for Nothing {
    fn release(&self, _: &str) {}

    fn reserve(&self, _: &str, _: jiff::Timestamp) -> bool {
        true
    }
    fn get(&self, _: &str, _: &str, _: &str, _: &str) -> Option<std::sync::Arc<Value>> {
        None
    }
    fn list(&self, _: &str, _: &str, _: Option<&str>) -> Vec<std::sync::Arc<Value>> {
        Vec::new()
    }
    fn field_values(&self, _: &str, _: &str, _: &str) -> Vec<String> {
        Vec::new()
    }
    fn with_field(&self, _: &str, _: &str, _: &str, _: &str) -> Vec<std::sync::Arc<Value>> {
        Vec::new()
    }
    fn allowed(&self, _: &crate::UserInfo, _: &str, _: &str, _: &str, _: &str, _: &str) -> bool {
        false
    }
    fn rules_for(
        &self,
        _: &crate::UserInfo,
        _: &str,
    ) -> (
        Vec<k8s_openapi::api::rbac::v1::PolicyRule>,
        Vec<k8s_openapi::api::rbac::v1::RoleRef>,
    ) {
        Default::default()
    }
    fn token_settings(&self) -> crate::authn::Settings {
        crate::authn::Settings::default()
    }
}
