//! The two admission plugins that ask webhooks.

use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::go_quote;
use gardener_merge::JsonPatch;
use serde_json::Value;
use tokio::time::Instant;

use super::call;
use super::registered::Hook;
use super::review::{self, Unusable, Verdict};
use crate::cluster::LogicalCluster;
use crate::decode::{self, Format};
use crate::definition::{Admission, Attributes, Operation};
use crate::intercept::conditions;
use crate::intercept::form::{Form, Forms, is_main_kind, known, shape};
use crate::intercept::matching::{self, Invocation};
use crate::intercept::reinvocation::Who;
use crate::intercept::request;
use crate::metrics::admission::{End, Turn};
use crate::metrics::waits;

/// Lets webhooks change objects, one after the other.
pub struct MutatingAdmissionWebhook;

/// Lets webhooks refuse requests; all are asked at once.
pub struct ValidatingAdmissionWebhook;

/// Why a webhook's turn ended without its consent.
enum Failed {
    /// It could not be asked, or gave no usable answer (and this is the code of that); the webhook's failure policy decides what that means.
    Call(String, u16),
    /// It refuses the request.
    Refused(ApiError),
    /// The request is refused, and not by it.
    Broken(ApiError),
}

impl Failed {
    /// It gave no answer that can be used.
    fn unusable(why: String) -> Self {
        Self::Call(why, call::UNAVAILABLE)
    }

    /// The refusal of the request, or none where failures are ignored: `ignored` notes that.
    fn judged(self, hook: &Hook, ignored: impl FnOnce(&str)) -> Result<(), ApiError> {
        match self {
            Self::Refused(error) | Self::Broken(error) => Err(error),
            Self::Call(why, _) => {
                let why = format!("failed calling webhook {}: {why}", go_quote(&hook.name));
                if hook.fails_closed {
                    return Err(ApiError::internal(why));
                }
                tracing::warn!(webhook = %hook.uid, %why, "ignored, as the webhook wants it");
                ignored(&hook.name);
                Ok(())
            }
        }
    }
}

/// Counts a webhook's turn, which took so long.
fn count<T>(
    cluster: &LogicalCluster,
    hook: &Hook,
    (step, operation): (&'static str, Operation),
    taken: Duration,
    ended: &Result<T, Failed>,
) {
    let turn = Turn {
        name: hook.name.clone(),
        step,
        operation,
    };
    let end = match ended {
        Ok(_) => End::Allowed,
        Err(Failed::Refused(error)) => End::Refused(error.code()),
        Err(Failed::Broken(_)) => End::Broken,
        Err(Failed::Call(_, code)) => End::Failed {
            code: *code,
            ignored: !hook.fails_closed,
        },
    };
    cluster.metrics().webhooks.count(turn, end, taken);
}

#[async_trait]
impl Admission for MutatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        "MutatingAdmissionWebhook"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        let Some(cluster) = attributes.context.lister.cluster() else {
            return Ok(());
        };
        let hooks = cluster.webhooks().mutating(cluster);
        if hooks.is_empty() || matching::is_exempt(attributes) {
            return Ok(());
        }
        attributes
            .reinvocation
            .turn(Who::Webhooks, attributes.object.as_deref());
        let audited = attributes.audited.clone();
        for (index, hook) in hooks.iter().enumerate() {
            let Some(invocation) = concerned(cluster, hook, attributes).await? else {
                continue;
            };
            if attributes.reinvocation.leaves_out(Who::Webhooks, &hook.uid) {
                continue;
            }
            let at = (attributes.reinvocation.round(), index);
            let begun = Instant::now();
            let ended = mutate(cluster, hook, &invocation, attributes).await;
            let taken = begun.elapsed();
            waits::add(taken);
            count(cluster, hook, ("admit", attributes.operation), taken, &ended);
            match ended {
                Ok(patch) => {
                    audited.mutated(at, &hook.configuration, &hook.name, patch.as_ref());
                    if patch.is_some() {
                        attributes.reinvocation.changed(Who::Webhooks);
                    }
                }
                Err(failed) => {
                    audited.mutated(at, &hook.configuration, &hook.name, None);
                    failed.judged(hook, |name| audited.failed_open("mutation", at, name))?;
                }
            }
            if hook.reinvocable {
                attributes.reinvocation.acted(Who::Webhooks, &hook.uid);
            }
        }
        attributes
            .reinvocation
            .leave(Who::Webhooks, attributes.object.as_deref());
        Ok(())
    }
}

#[async_trait]
impl Admission for ValidatingAdmissionWebhook {
    fn name(&self) -> &'static str {
        "ValidatingAdmissionWebhook"
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let Some(cluster) = attributes.context.lister.cluster() else {
            return Ok(());
        };
        let hooks = cluster.webhooks().validating(cluster);
        if hooks.is_empty() || matching::is_exempt(attributes) {
            return Ok(());
        }
        let mut calls: Vec<(&Hook, Invocation)> = Vec::new();
        for hook in hooks.iter() {
            if let Some(invocation) = concerned(cluster, hook, attributes).await? {
                calls.push((hook, invocation));
            }
        }
        let mut forms = Forms::default();
        for (_, invocation) in &calls {
            let form = forms.get(cluster, attributes, invocation).await;
            form.map_err(ApiError::internal)?;
        }
        let asked = calls.iter().enumerate().map(|(index, (hook, invocation))| {
            let form = forms.made(invocation);
            async move {
                let Some(form) = form else { return Ok(()) };
                let begun = Instant::now();
                let ended = ask(cluster, hook, invocation, attributes, form, false).await;
                let at = ("validating", attributes.operation);
                count(cluster, hook, at, begun.elapsed(), &ended);
                match ended {
                    Ok(_) => Ok(()),
                    Err(failed) => failed.judged(hook, |name| {
                        attributes.audited.failed_open("validating", (0, index), name);
                    }),
                }
            }
        });
        let begun = Instant::now();
        let answered = join_all(asked).await;
        waits::add(begun.elapsed());
        answered.into_iter().collect()
    }
}

/// Whether and how a webhook is to be asked, its conditions included.
async fn concerned(
    cluster: &LogicalCluster,
    hook: &Hook,
    attributes: &Attributes<'_>,
) -> Result<Option<Invocation>, ApiError> {
    let Some(invocation) = matching::invocation(cluster, &hook.constraints, attributes)? else {
        return Ok(None);
    };
    if hook.conditions.is_empty() {
        return Ok(Some(invocation));
    }
    let form = Form::of(cluster, attributes, &invocation)
        .await
        .map_err(ApiError::internal)?;
    let request = request::of(attributes, &invocation);
    let hold = conditions::hold(
        cluster,
        &hook.conditions,
        hook.fails_closed,
        attributes,
        &form,
        &request,
        None,
    )
    .map_err(|why| attributes.forbidden(&why))?;
    Ok(hold.then_some(invocation))
}

/// Asks one webhook, and notes its warnings.
async fn ask(
    cluster: &LogicalCluster,
    hook: &Hook,
    invocation: &Invocation,
    attributes: &Attributes<'_>,
    form: &Form,
    mutating: bool,
) -> Result<Verdict, Failed> {
    if attributes.context.dry_run && !hook.in_dry_run {
        return Err(Failed::Broken(ApiError::bad_request(format!(
            "admission webhook {} does not support dry run",
            go_quote(&hook.name)
        ))));
    }
    let Some(version) = review::version(&hook.review_versions) else {
        return Err(Failed::Call(
            "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
                .into(),
            400,
        ));
    };
    let uid = cluster.chance().uid();
    let asked = review::request(
        version,
        &uid,
        attributes,
        invocation,
        form.object.as_ref(),
        form.old.as_ref(),
    );
    let failed = |why: String, code| Failed::Call(format!("failed to call webhook: {why}"), code);
    let timeout = attributes.patience(hook.timeout).map_err(Failed::Broken)?;
    let answer = match call::ask(cluster, &hook.endpoint, timeout, &asked).await {
        Ok(answer) => answer,
        Err(unanswered) => {
            // nobody waits any more, whatever the webhook says of failures
            attributes.patience(hook.timeout).map_err(Failed::Broken)?;
            return Err(failed(unanswered.why, unanswered.code));
        }
    };
    let verdict = review::verdict(version, &uid, mutating, answer).map_err(|unusable| match unusable {
        Unusable::Undecodable(why) => failed(why, call::UNAVAILABLE),
        Unusable::Invalid(why) => Failed::unusable(format!("received invalid webhook response: {why}")),
    })?;
    for (key, value) in &verdict.audit_annotations {
        attributes.audited.annotate(format!("{}/{key}", hook.name), value);
    }
    attributes.warnings.extend(verdict.warnings.iter().cloned());
    if !verdict.allowed {
        return Err(Failed::Refused(review::refusal(&hook.name, verdict.status)));
    }
    Ok(verdict)
}

/// Asks a webhook and makes the change it asks for. Answers the patch, if the object is another one now.
async fn mutate(
    cluster: &LogicalCluster,
    hook: &Hook,
    invocation: &Invocation,
    attributes: &mut Attributes<'_>,
) -> Result<Option<Value>, Failed> {
    let refused = |error: ApiError| Failed::Broken(ApiError::internal(error));
    let form = Form::of(cluster, attributes, invocation).await.map_err(refused)?;
    let verdict = ask(cluster, hook, invocation, attributes, &form, true).await?;
    if verdict.patch.is_empty() {
        return Ok(None);
    }
    let undecodable = |why: &dyn std::fmt::Display| {
        Failed::unusable(format!("received undecodable patch in webhook response: {why}"))
    };
    let decoded = decode::decode(&verdict.patch.into(), Format::Json).map_err(|error| undecodable(&error.message()))?;
    let patch = JsonPatch::of(&decoded.value).map_err(|error| undecodable(&error))?;
    if patch.is_empty() {
        return Ok(None);
    }
    let Some(before) = form.object else {
        return Err(Failed::Broken(ApiError::internal(format!(
            "admission webhook {} attempted to modify the object, which is not supported for this operation",
            go_quote(&hook.name)
        ))));
    };
    if verdict.patch_type != "JSONPatch" {
        let why = format!("unsupported patch type {}", go_quote(&verdict.patch_type));
        return Err(Failed::unusable(why));
    }
    let internal = |why: &dyn std::fmt::Display| Failed::Broken(ApiError::internal(why));
    let mut patched = patch.apply(&before).map_err(|error| internal(&error))?;
    if is_main_kind(attributes) {
        let definition = invocation.definition(attributes);
        shape(definition, invocation, attributes, &mut patched).map_err(|why| Failed::Broken(why.into()))?;
        let mut completed = patched.clone();
        if let Some(version) = known(definition, &invocation.version).filter(|version| version.completes)
            && let Some(schema) = &version.schema
        {
            schema.complete(&mut completed);
        }
        let changed = completed != before;
        let stored = Form::to_stored(cluster, attributes, invocation, patched).await;
        attributes.object = Some(stored.map_err(refused)?.into());
        return Ok(changed.then_some(decoded.value));
    }
    let changed = patched != before;
    attributes.object = Some(patched.into());
    Ok(changed.then_some(decoded.value))
}
