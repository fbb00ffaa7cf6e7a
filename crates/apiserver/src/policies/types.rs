//! Whether a policy's expressions fit the kinds that they are about. Nothing depends on it: the policy's author is told.

use std::collections::BTreeSet;
use std::sync::Arc;

use gardener_cel::{Declared, Environment};
use gardener_schema::rules::declared_whole;
use k8s_openapi::api::admissionregistration::v1::{
    ExpressionWarning, NamedRuleWithOperations, ParamKind, ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec,
};

use crate::cluster::LogicalCluster;
use crate::intercept::expressions::{self, Known, Variables};

/// How many kinds of one rule are looked at.
const MAX_KINDS: usize = 10;

/// Group, version and kind.
type Kind = (String, String, String);

/// What is to be told of a policy's validations and messages, by the kinds that its rules name without wildcards.
pub fn warnings(cluster: &LogicalCluster, policy: &ValidatingAdmissionPolicy) -> Vec<ExpressionWarning> {
    let Some(spec) = &policy.spec else {
        return Vec::new();
    };
    let params = spec.param_kind.as_ref().and_then(|kind| declared_params(cluster, kind));
    let mut environments = Vec::new();
    for kind in kinds(cluster, spec) {
        if let Some(object) = declared(cluster, &kind) {
            environments.push((kind, environment(spec, &object, params.as_ref())));
        }
    }
    let mut warnings = Vec::new();
    let mut check = |field_ref: String, source: &str| {
        let findings = environments.iter().filter_map(|((group, version, kind), environment)| {
            let why = environment.compile(source).err()?;
            Some(format!("{group}/{version}, Kind={kind}: {why}\n"))
        });
        let findings: Vec<String> = findings.collect();
        if !findings.is_empty() {
            let warning = findings.join("\n");
            warnings.push(ExpressionWarning { field_ref, warning });
        }
    };
    for (index, validation) in spec.validations.iter().flatten().enumerate() {
        check(format!("spec.validations[{index}].expression"), &validation.expression);
        if let Some(source) = validation
            .message_expression
            .as_deref()
            .filter(|source| !source.is_empty())
        {
            check(format!("spec.validations[{index}].messageExpression"), source);
        }
    }
    warnings
}

/// What a policy's expressions know where objects are of one kind.
fn environment(
    spec: &ValidatingAdmissionPolicySpec,
    object: &Arc<Declared>,
    params: Option<&Arc<Declared>>,
) -> Environment {
    let known = Known {
        params: spec.param_kind.is_some(),
        authorizer: true,
    };
    let mut environment = expressions::environment(known)
        .with("object", Arc::clone(object))
        .with("oldObject", Arc::clone(object));
    if let Some(params) = params {
        environment = environment.with("params", Arc::clone(params));
    }
    let mut variables = Variables::new(environment.clone());
    for variable in spec.variables.iter().flatten() {
        variables.add(&variable.name, &variable.expression);
    }
    variables.extend(environment)
}

fn declared_params(cluster: &LogicalCluster, kind: &ParamKind) -> Option<Arc<Declared>> {
    let version = kind.api_version.as_deref().unwrap_or_default();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = kind.kind.clone().unwrap_or_default();
    declared(cluster, &(group.to_owned(), version.to_owned(), kind))
}

fn declared(cluster: &LogicalCluster, (group, version, kind): &Kind) -> Option<Arc<Declared>> {
    let definition = cluster.of_kind(group, version, kind)?;
    Some(declared_whole(definition.version(version)?.schema.as_ref()?))
}

/// The kinds that a policy's rules name, in order.
fn kinds(cluster: &LogicalCluster, spec: &ValidatingAdmissionPolicySpec) -> BTreeSet<Kind> {
    let rules = spec.match_constraints.as_ref();
    let rules = rules.and_then(|constraints| constraints.resource_rules.as_deref());
    let mut kinds = BTreeSet::new();
    for rule in rules.unwrap_or_default() {
        let found = kinds_of(cluster, rule);
        let ends = found.len() >= MAX_KINDS;
        kinds.extend(found);
        if ends {
            break;
        }
    }
    kinds
}

/// The first kinds of a rule. A rule with a wildcard for groups or versions names none.
fn kinds_of(cluster: &LogicalCluster, rule: &NamedRuleWithOperations) -> Vec<Kind> {
    let sorted = |list: &Option<Vec<String>>, wildcards: &[char]| -> Vec<String> {
        let mut list: Vec<String> = list.clone().unwrap_or_default();
        list.retain(|one| !one.contains(wildcards));
        list.sort();
        list
    };
    let any = |list: &Option<Vec<String>>| list.iter().flatten().any(|one| one.contains('*'));
    if any(&rule.api_groups) || any(&rule.api_versions) {
        return Vec::new();
    }
    let resources = sorted(&rule.resources, &['*', '/']);
    let mut found = Vec::new();
    for group in sorted(&rule.api_groups, &[]) {
        for version in sorted(&rule.api_versions, &[]) {
            for plural in &resources {
                let definition = cluster.find(&group, plural);
                let own = definition.as_ref().and_then(|own| own.version(&version));
                if let Some(own) = own {
                    found.push((group.clone(), version.clone(), own.kind.clone()));
                }
                if found.len() == MAX_KINDS {
                    return found;
                }
            }
        }
    }
    found
}
