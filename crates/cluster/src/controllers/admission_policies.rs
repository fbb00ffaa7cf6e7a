//! Tells the authors of ValidatingAdmissionPolicies whether their expressions fit the kinds that they are about.

use std::sync::Arc;

use gardener_apiserver::policies;
use gardener_controller::{Action, ObjectRef, Queue, apply};
use k8s_openapi::api::admissionregistration::v1::{TypeChecking, ValidatingAdmissionPolicy};
use kube::Api;

use crate::Role;
use crate::environment::{Environment, key_of};
use crate::error::Error;

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    environment.feed(
        &environment.informers.admission_policies,
        &queue,
        Role::ControllerManager,
        |policy| vec![key_of(policy)],
    );
    environment.reconcile(
        "validatingadmissionpolicy-status",
        Role::ControllerManager,
        4,
        queue,
        reconcile,
    );
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let Some(policy) = environment.informers.admission_policies.get(&key) else {
        return Ok(Action::Done);
    };
    let policy = &policy.object;
    let generation = policy.metadata.generation.unwrap_or_default();
    let observed = policy.status.as_ref().and_then(|status| status.observed_generation);
    if generation <= observed.unwrap_or_default() {
        return Ok(Action::Done);
    }
    let Some((cluster, _)) = environment.config.server.cluster(&key.cluster) else {
        return Ok(Action::Done);
    };
    let warnings = policies::warnings(&cluster, policy);
    let api: Api<ValidatingAdmissionPolicy> = environment.cluster_api(&key.cluster);
    apply::patch_status_locked(&api, policy, |policy| {
        let status = policy.status.get_or_insert_default();
        status.observed_generation = Some(generation);
        status.type_checking = Some(TypeChecking {
            expression_warnings: (!warnings.is_empty()).then_some(warnings),
        });
    })
    .await?;
    Ok(Action::Done)
}
