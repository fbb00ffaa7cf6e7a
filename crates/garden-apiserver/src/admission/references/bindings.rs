//! What bindings bind: credentials and quotas that their author may read, of the right provider, [ADM-51], [ADM-52].

use gardener_apimachinery::ApiError;
use gardener_apis::constants::group;
use gardener_apis::core::v1beta1::*;
use gardener_apis::security::v1alpha1::{CredentialsBinding, WorkloadIdentity};
use gardener_apiserver::definition::Attributes;
use gardener_rules::csr_approval::gardenlets::GARDENADM_USER_PREFIX;
use gardener_rules::quota;
use k8s_openapi::api::core::v1::ObjectReference;

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
pub(super) fn secret_binding(attributes: &Attributes<'_>, binding: &SecretBinding) -> Result<(), ApiError> {
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
}

/// Checks a CredentialsBinding.
pub(super) fn credentials_binding(attributes: &Attributes<'_>, binding: &CredentialsBinding) -> Result<(), ApiError> {
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
}

fn check(attributes: &Attributes<'_>, binding: &Binding<'_>, uses: impl Fn(&Shoot) -> bool) -> Result<(), ApiError> {
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
        return Err(attributes.forbidden(&format!(
            "{} cannot reference a {} you are not allowed to read",
            binding.kind, credentials.kind
        )));
    }
    exists(attributes, credentials, binding.namespace, binding.name)?;
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
            return Err(attributes.forbidden(&format!(
                "{} cannot reference a quota you are not allowed to read",
                binding.kind
            )));
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
