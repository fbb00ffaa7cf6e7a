//! Certificate signing requests: approves those of nodes, signs what is approved, deletes what is old.

use std::sync::Arc;
use std::time::Duration;

use gardener_controller::{Action, ObjectRef, Queue, apply};
use gardener_pki::Issued;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};
use kube::Api;
use kube::api::PostParams;

use crate::Role;
use crate::environment::{Environment, key_of};
use crate::error::Error;

mod decide;

use decide::{Recognized, recognize, usages_of};

/// How long a certificate is valid that does not ask for less.
const VALIDITY: Duration = Duration::from_secs(365 * 24 * 3600);

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    environment.feed(
        &environment.informers.signing_requests,
        &queue,
        Role::ControllerManager,
        |request| vec![key_of(request)],
    );
    environment.reconcile("csrsigning", Role::ControllerManager, 4, queue, reconcile);
}

fn has(request: &CertificateSigningRequest, type_: &str) -> bool {
    let conditions = request.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|own| own.type_ == type_ && own.status == "True")
}

fn condition(
    type_: &str,
    reason: &str,
    message: &str,
    now: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time,
) -> CertificateSigningRequestCondition {
    CertificateSigningRequestCondition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_update_time: Some(now.clone()),
        last_transition_time: Some(now.clone()),
    }
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let Some(found) = environment.informers.signing_requests.get(&key) else {
        return Ok(Action::Done);
    };
    let request = &found.object;
    let api: Api<CertificateSigningRequest> = environment.cluster_api(&key.cluster);
    let age = environment
        .clock()
        .now()
        .duration_since(crate::pods::created_at(&request.metadata));
    let age = Duration::try_from(age).unwrap_or(Duration::ZERO);
    let signed = request
        .status
        .as_ref()
        .is_some_and(|status| status.certificate.is_some());
    let keep = decide::kept_for(
        signed,
        has(request, "Approved"),
        has(request, "Denied") || has(request, "Failed"),
    );
    if age >= keep {
        apply::delete(&api, &key.name).await?;
        return Ok(Action::Done);
    }
    let again = Ok(Action::RequeueAfter(keep - age));
    if signed || has(request, "Denied") || has(request, "Failed") {
        return again;
    }
    let now = environment.clock().time();
    if !has(request, "Approved") {
        let Some(recognized) = recognize(request) else {
            return again;
        };
        if recognized == Recognized::Serving && !environment.config.approve_kubelet_serving {
            return again;
        }
        let mut approved = request.clone();
        let conditions = approved
            .status
            .get_or_insert_default()
            .conditions
            .get_or_insert_default();
        conditions.push(condition("Approved", "AutoApproved", recognized.message(), &now));
        let _: CertificateSigningRequest = api
            .replace_subresource("approval", &key.name, &PostParams::default(), &approved)
            .await?;
        return again;
    }
    sign(&environment, &key, request, &api).await?;
    again
}

async fn sign(
    environment: &Environment,
    key: &ObjectRef,
    request: &CertificateSigningRequest,
    api: &Api<CertificateSigningRequest>,
) -> Result<(), Error> {
    let Some((client, server)) = usages_of(&request.spec.signer_name) else {
        return Ok(());
    };
    let Some((certificate, private)) = (environment.config.signing_ca)(&key.cluster) else {
        return Ok(());
    };
    let now = environment.clock().time();
    let fail = async |reason: &str, message: &str| {
        let failed = condition("Failed", reason, message, &now);
        apply::patch_status_locked(api, request, |request| {
            request
                .status
                .get_or_insert_default()
                .conditions
                .get_or_insert_default()
                .push(failed);
        })
        .await
        .map(|_| ())
        .map_err(Error::from)
    };
    if let Err(why) = decide::permitted(request) {
        return fail("SignerValidationFailure", &why).await;
    }
    let asked = request
        .spec
        .expiration_seconds
        .and_then(|seconds| u64::try_from(seconds).ok());
    // at least ten minutes, at most a year
    let validity = asked.map_or(VALIDITY, |seconds| Duration::from_secs(seconds.max(600)).min(VALIDITY));
    let text = String::from_utf8_lossy(&request.spec.request.0).into_owned();
    let authority = Issued {
        certificate,
        key: private,
    };
    let time = environment.clock().now().as_second();
    let signed = match gardener_pki::sign(&text, &authority, time, validity, client, server) {
        Ok(signed) => signed,
        Err(error) => return fail("SigningError", &error.to_string()).await,
    };
    let signed = ByteString(signed.into_bytes());
    apply::patch_status_locked(api, request, |request| {
        request.status.get_or_insert_default().certificate = Some(signed);
    })
    .await?;
    Ok(())
}
