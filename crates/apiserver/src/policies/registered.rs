//! Policies and bindings as they are stored, compiled once per change. A request costs one look at whether anything changed.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_store::{Entry, Key};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ParamKind, ParamRef, ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
};
use serde::Serialize;

use super::mutations::Mutations;
use super::rules::Rules;
use crate::cluster::LogicalCluster;
use crate::followed::Followed;
use crate::intercept::matching::{Constraints, GROUP};
use crate::object;

/// A policy.
pub(super) struct Policy<R> {
    pub(super) name: String,
    /// What was written and when: a policy that did not change is not compiled again.
    written: (Key, u64),
    pub(super) constraints: Constraints,
    /// Of which kind its parameters are.
    pub(super) param_kind: Option<ParamKind>,
    /// What it says.
    pub(super) rules: R,
}

/// What happens if a policy does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Action {
    Deny,
    Warn,
    Audit,
}

/// A policy's binding.
pub(super) struct Binding {
    pub(super) name: String,
    /// `None`: wherever the policy holds.
    pub(super) constraints: Option<Constraints>,
    pub(super) params: Option<ParamRef>,
    /// Of policies that validate.
    pub(super) actions: Vec<Action>,
}

/// Bindings by the names of their policies.
pub(super) type Bindings = BTreeMap<String, Vec<Binding>>;

/// The newest policies that validate.
pub(super) fn policies(
    followed: &mut Followed<Vec<Arc<Policy<Rules>>>>,
    cluster: &LogicalCluster,
) -> Arc<Vec<Arc<Policy<Rules>>>> {
    compiled(followed, cluster, "validatingadmissionpolicies", |entry| {
        let policy: ValidatingAdmissionPolicy = object::parse(entry)?;
        let spec = policy.spec.unwrap_or_default();
        Some(Policy {
            name: policy.metadata.name.unwrap_or_default(),
            written: (entry.key.clone(), entry.mod_revision),
            constraints: Constraints::of(&spec.match_constraints.clone().unwrap_or_default()),
            param_kind: spec.param_kind.clone(),
            rules: Rules::compile(&spec),
        })
    })
}

/// The newest policies that change objects.
pub(super) fn mutating(
    followed: &mut Followed<Vec<Arc<Policy<Mutations>>>>,
    cluster: &LogicalCluster,
) -> Arc<Vec<Arc<Policy<Mutations>>>> {
    compiled(followed, cluster, "mutatingadmissionpolicies", |entry| {
        let policy: MutatingAdmissionPolicy = object::parse(entry)?;
        let spec = policy.spec.unwrap_or_default();
        Some(Policy {
            name: policy.metadata.name.unwrap_or_default(),
            written: (entry.key.clone(), entry.mod_revision),
            constraints: Constraints::of(&spec.match_constraints.clone().unwrap_or_default()),
            param_kind: spec.param_kind.clone(),
            rules: Mutations::compile(&spec),
        })
    })
}

fn compiled<R>(
    followed: &mut Followed<Vec<Arc<Policy<R>>>>,
    cluster: &LogicalCluster,
    plural: &str,
    compile: impl Fn(&Entry) -> Option<Policy<R>>,
) -> Arc<Vec<Arc<Policy<R>>>> {
    let before = followed.last();
    followed.current(cluster, (GROUP, plural), |entries| {
        let compiled = |entry: &Arc<Entry>| {
            let is_same =
                |policy: &&Arc<Policy<R>>| policy.written.0 == entry.key && policy.written.1 == entry.mod_revision;
            let known = before.iter().find(is_same);
            known.map(Arc::clone).or_else(|| compile(entry).map(Arc::new))
        };
        entries.iter().filter_map(compiled).collect()
    })
}

/// The newest bindings of policies that validate.
pub(super) fn bindings(followed: &mut Followed<Bindings>, cluster: &LogicalCluster) -> Arc<Bindings> {
    bound(followed, cluster, "validatingadmissionpolicybindings", binding)
}

/// The newest bindings of policies that change objects.
pub(super) fn mutating_bindings(followed: &mut Followed<Bindings>, cluster: &LogicalCluster) -> Arc<Bindings> {
    bound(followed, cluster, "mutatingadmissionpolicybindings", mutating_binding)
}

fn bound(
    followed: &mut Followed<Bindings>,
    cluster: &LogicalCluster,
    plural: &str,
    binding: fn(&Entry) -> Option<(String, Binding)>,
) -> Arc<Bindings> {
    followed.current(cluster, (GROUP, plural), |entries| {
        let mut bindings = Bindings::new();
        for (policy, binding) in entries.iter().filter_map(|entry| binding(entry)) {
            bindings.entry(policy).or_default().push(binding);
        }
        bindings
    })
}

fn binding(entry: &Entry) -> Option<(String, Binding)> {
    let binding: ValidatingAdmissionPolicyBinding = object::parse(entry)?;
    let spec = binding.spec;
    let actions = spec
        .validation_actions
        .iter()
        .filter_map(|action| match action.as_str() {
            "Deny" => Some(Action::Deny),
            "Warn" => Some(Action::Warn),
            "Audit" => Some(Action::Audit),
            _ => None,
        });
    let bound = Binding {
        name: binding.metadata.name.unwrap_or_default(),
        constraints: spec.match_resources.as_ref().map(Constraints::of),
        params: spec.param_ref,
        actions: actions.collect(),
    };
    Some((spec.policy_name, bound))
}

fn mutating_binding(entry: &Entry) -> Option<(String, Binding)> {
    let binding: MutatingAdmissionPolicyBinding = object::parse(entry)?;
    let spec = binding.spec?;
    let bound = Binding {
        name: binding.metadata.name.unwrap_or_default(),
        constraints: spec.match_resources.as_ref().map(Constraints::of),
        params: spec.param_ref,
        actions: Vec::new(),
    };
    Some((spec.policy_name.unwrap_or_default(), bound))
}
