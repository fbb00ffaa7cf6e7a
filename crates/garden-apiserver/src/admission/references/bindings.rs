//! What bindings bind: credentials and quotas that their author may read, of the right provider, [ADM-51], [ADM-52].

use gardener_apimachinery::ApiError;
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::constants::{group, label};
use gardener_apis::core::v1beta1::*;
use gardener_apis::security::v1alpha1::{CredentialsBinding, WorkloadIdentity};
use gardener_apiserver::definition::Attributes;
use gardener_rules::csr_approval::gardenlets::GARDENADM_USER_PREFIX;
use gardener_rules::quota;
use k8s_openapi::api::core::v1::ObjectReference;
use serde_json::{Value, json};

use super::{CORE, INTERNAL_SECRET, Kind, SECRET, WORKLOAD_IDENTITY, exists, readable, text};
use crate::lookup;

/// What both kinds of bindings have.
struct Binding<'a> {
    /// The name of its kind.
    kind: &'static str,
    credentials: Kind,
    namespace: &'a str,
    name: &'a str,
    providers: Vec<&'a str>,
    quotas: &'a [ObjectReference],
}

/// Checks a SecretBinding.
pub(super) async fn secret_binding(attributes: &Attributes<'_>, binding: &SecretBinding) -> Result<(), ApiError> {
    let providers = binding.provider.iter().flat_map(|provider| provider.r#type.split(','));
    let own = Binding {
        kind: "SecretBinding",
        credentials: SECRET,
        namespace: text(&binding.secret_ref.namespace),
        name: text(&binding.secret_ref.name),
        providers: providers.collect(),
        quotas: &binding.quotas,
    };
    let name = binding.metadata.name.as_ref();
    check(attributes, &own, |shoot| {
        shoot.spec.secret_binding_name.as_ref() == name
    })
    .await
}

/// Checks a CredentialsBinding.
pub(super) async fn credentials_binding(
    attributes: &Attributes<'_>,
    binding: &CredentialsBinding,
) -> Result<(), ApiError> {
    let reference = &binding.credentials_ref;
    let credentials = match text(&reference.api_version) {
        "v1" => SECRET,
        "security.gardener.cloud/v1alpha1" => WORKLOAD_IDENTITY,
        "core.gardener.cloud/v1beta1" => INTERNAL_SECRET,
        _ => {
            return Err(attributes.forbidden(
                "unknown credentials ref: CredentialsBinding is referencing neither a Secret nor an InternalSecret nor a WorkloadIdentity",
            ));
        }
    };
    let own = Binding {
        kind: "CredentialsBinding",
        credentials,
        namespace: text(&reference.namespace),
        name: text(&reference.name),
        providers: vec![&binding.provider.r#type],
        quotas: &binding.quotas,
    };
    let name = binding.metadata.name.as_ref();
    check(attributes, &own, |shoot| {
        shoot.spec.credentials_binding_name.as_ref() == name
    })
    .await
}

async fn check(
    attributes: &Attributes<'_>,
    binding: &Binding<'_>,
    uses: impl Fn(&Shoot) -> bool + Send,
) -> Result<(), ApiError> {
    let context = attributes.context;
    let providers = binding.providers.join(" ");
    let shoots = lookup::list::<Shoot>(context.lister, Some(attributes.namespace));
    let other = |shoot: &&Shoot| uses(shoot) && !binding.providers.contains(&shoot.spec.provider.r#type.as_str());
    if let Some(shoot) = shoots.iter().find(other) {
        return Err(attributes.forbidden(&format!(
            "{} is referenced by shoot {:?}, but provider types ([{providers}]) do not match with the shoot provider type {:?}",
            binding.kind,
            shoot.own_name(),
            shoot.spec.provider.r#type
        )));
    }
    let user = context.user;
    let gardenadm = user.name.starts_with(GARDENADM_USER_PREFIX) && user.is_in(group::SHOOTS);
    let may_read = |group: &str, resource: &str, namespace: &str, name: &str| {
        (gardenadm && namespace == attributes.namespace) || readable(attributes, group, resource, namespace, name)
    };
    let credentials = binding.credentials;
    if !may_read(credentials.group, credentials.resource, binding.namespace, binding.name) {
        // upstream names the kind of its internal object, which has none
        return Err(attributes.forbidden(&format!(
            " cannot reference a {} you are not allowed to read",
            credentials.kind
        )));
    }
    if binding.namespace.is_empty() {
        // a reference gets its binding's namespace only if that tells it itself; without one there is nothing to ask
        return Err(attributes.forbidden("the server could not find the requested resource"));
    }
    exists(attributes, credentials, binding.namespace, binding.name)?;
    if credentials.kind != WORKLOAD_IDENTITY.kind {
        try_credentials(attributes, binding).await?;
    }
    if let Some(identity) = lookup::get::<WorkloadIdentity>(context.lister, binding.namespace, binding.name)
        .filter(|_| credentials.kind == WORKLOAD_IDENTITY.kind)
    {
        let system = identity.spec.target_system.r#type;
        if !binding.providers.contains(&system.as_str()) {
            return Err(attributes.forbidden(&format!(
                "CredentialsBinding provider type ([{providers}]) does not match with WorkloadIdentity provider type {system}"
            )));
        }
    }
    let (mut for_project, mut for_credentials) = (0, 0);
    for reference in binding.quotas {
        let (namespace, name) = (text(&reference.namespace), text(&reference.name));
        if !may_read(CORE, "quotas", namespace, name) {
            return Err(attributes.forbidden(" cannot reference a quota you are not allowed to read"));
        }
        let quota = lookup::get::<Quota>(context.lister, namespace, name)
            .ok_or_else(|| attributes.forbidden(&format!("quota.core.gardener.cloud {name:?} not found")))?;
        match quota::is_for_project(&quota).map_err(|why| attributes.forbidden(&why))? {
            true => for_project += 1,
            false => for_credentials += 1,
        }
        if for_project > 1 || for_credentials > 1 {
            return Err(attributes.forbidden("only one quota per scope (project or credentials) can be assigned"));
        }
    }
    Ok(())
}

/// Has everybody who looks at credentials of a provider look at those that are bound: extensions do so when Secrets with the provider's label are
/// written, and what is bound may have been written without it [ADM-52].
async fn try_credentials(attributes: &Attributes<'_>, binding: &Binding<'_>) -> Result<(), ApiError> {
    let context = attributes.context;
    let Kind { group, resource, .. } = binding.credentials;
    // where there is only a set of objects nobody looks
    let Some(cluster) = context.lister.cluster() else {
        return Ok(());
    };
    let Some(stored) = context.lister.get(group, resource, binding.namespace, binding.name) else {
        return Ok(());
    };
    for provider in &binding.providers {
        let trial = trial_of(&stored, binding, provider);
        cluster
            .try_to_create(group, resource, binding.namespace, trial)
            .await
            .map_err(|why| attributes.forbidden(&format!("{provider} provider secret sanity check failed: {why}")))?;
    }
    Ok(())
}

/// Credentials as they would look if they were made for a provider.
fn trial_of(stored: &Value, binding: &Binding<'_>, provider: &str) -> Value {
    let mut labels = stored.at("/metadata/labels").cloned().unwrap_or_else(|| json!({}));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert(format!("{}{provider}", label::SHOOT_PROVIDER_PREFIX), "true".into());
    }
    let mut trial = json!({
        "apiVersion": stored.get("apiVersion"), "kind": stored.get("kind"),
        "metadata": {"generateName": binding.name, "namespace": binding.namespace, "labels": labels},
    });
    for key in ["type", "data"] {
        if let (Some(value), Some(trial)) = (stored.get(key), trial.as_object_mut()) {
            trial.insert(key.to_owned(), value.clone());
        }
    }
    if let (Some(annotations), Some(metadata)) = (
        stored.at("/metadata/annotations"),
        trial.get_mut("metadata").and_then(Value::as_object_mut),
    ) {
        metadata.insert("annotations".to_owned(), annotations.clone());
    }
    trial
}
