//! Which edges an object makes [AUTH-3]. A → B: access to B implies access to A.
//!
//! There are two graphs, as upstream: one whose paths end in seeds, and one for self-hosted shoots; some kinds make other edges there. Where the
//! specification draws an edge that upstream does not (a NamespacedCloudProfile's parent: everybody may read CloudProfiles by role), there is none.
//! Bootstrap tokens that nobody needs now are vertices without an edge, so that they are not taken for something that is not there.

mod managed_seeds;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use gardener_apis::constants::{GARDEN_NAMESPACE, annotation};
use gardener_rules::csr_approval::{Request, gardenlets};

use crate::bootstrap;
use crate::graph::Contribution;
use crate::names;
use crate::objects::*;
use crate::vertex::{Kind, Vertex};

const CORE: &str = "v1";
const GARDENER_CORE: &str = "core.gardener.cloud/v1beta1";
const SECURITY: &str = "security.gardener.cloud/v1alpha1";

pub(crate) use managed_seeds::Registered;

/// For which graph edges are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Paths end in seeds.
    Seeds,
    /// Paths end in self-hosted shoots.
    Shoots,
}

/// A kind whose edges follow from the object alone.
pub(crate) trait MakesEdges {
    fn edges(&self, own: Vertex, scope: Scope) -> Contribution;
}

impl Contribution {
    fn add_from(&mut self, from: Vertex, to: &Vertex) {
        self.edges.insert((from, to.clone()));
    }

    fn add_to(&mut self, from: &Vertex, to: Vertex) {
        self.edges.insert((from.clone(), to));
    }

    fn add_seed(&mut self, from: &Vertex, seed: Option<&String>) {
        if let Some(seed) = seed.filter(|seed| !seed.is_empty()) {
            self.add_to(from, Vertex::global(Kind::Seed, seed));
        }
    }

    /// An edge from the credentials that a reference names. `namespace` is the namespace of references that have none.
    fn add_credentials(&mut self, reference: Option<&Reference>, namespace: Option<&str>, to: &Vertex) {
        let Some(reference) = reference else { return };
        let namespace = namespace.unwrap_or(reference.namespace());
        let kind = if reference.is(CORE, "Secret") {
            Kind::Secret
        } else if reference.is(SECURITY, "WorkloadIdentity") {
            Kind::WorkloadIdentity
        } else {
            return;
        };
        self.add_from(Vertex::new(kind, namespace, reference.name()), to);
    }

    /// Edges from what an object lists as its resources, all of one namespace.
    fn add_resources(&mut self, resources: Option<&Vec<NamedResource>>, namespace: &str, to: &Vertex) {
        for NamedResource { resource_ref } in resources.into_iter().flatten() {
            if resource_ref.is(CORE, "ConfigMap") {
                self.add_from(Vertex::new(Kind::ConfigMap, namespace, resource_ref.name()), to);
            } else {
                self.add_credentials(Some(resource_ref), Some(namespace), to);
            }
        }
    }

    fn add_name(&mut self, kind: Kind, namespace: &str, name: Option<&String>, to: &Vertex) {
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            self.add_from(Vertex::new(kind, namespace, name), to);
        }
    }
}

fn shoot(namespace: &str, name: &str) -> Vertex {
    Vertex::new(Kind::Shoot, namespace, name)
}

impl MakesEdges for BackupBucket {
    fn edges(&self, own: Vertex, _: Scope) -> Contribution {
        let mut made = Contribution::default();
        let Some(spec) = &self.spec else { return made };
        made.add_credentials(spec.credentials_ref.as_ref(), None, &own);
        made.add_seed(&own, spec.seed_name.as_ref());
        let generated = self
            .status
            .as_ref()
            .and_then(|status| status.generated_secret_ref.as_ref());
        if let Some(reference) = generated {
            made.add_from(Vertex::new(Kind::Secret, reference.namespace(), reference.name()), &own);
        }
        if let Some(reference) = &spec.shoot_ref {
            made.add_to(&own, shoot(reference.namespace(), reference.name()));
        }
        made.vertices.insert(own);
        made
    }
}

impl MakesEdges for BackupEntry {
    fn edges(&self, own: Vertex, scope: Scope) -> Contribution {
        let mut made = Contribution::default();
        let Some(spec) = &self.spec else { return made };
        if let Some(bucket) = &spec.bucket_name {
            made.add_from(Vertex::global(Kind::BackupBucket, bucket), &own);
        }
        made.add_seed(&own, spec.seed_name.as_ref());
        made.add_seed(&own, self.status.as_ref().and_then(|status| status.seed_name.as_ref()));
        let owners = self
            .metadata
            .as_ref()
            .and_then(|metadata| metadata.owner_references.as_ref());
        let named = match scope {
            Scope::Shoots => spec.shoot_ref.as_ref(),
            Scope::Seeds => owners
                .into_iter()
                .flatten()
                .find(|owner| owner.kind.as_deref() == Some("Shoot")),
        };
        if let Some(reference) = named.filter(|reference| !reference.name().is_empty()) {
            made.add_to(&own, shoot(&own.namespace, reference.name()));
        }
        made.vertices.insert(own);
        made
    }
}

impl MakesEdges for Bastion {
    fn edges(&self, own: Vertex, scope: Scope) -> Contribution {
        let mut made = Contribution::default();
        let Some(spec) = &self.spec else { return made };
        match scope {
            Scope::Seeds => made.add_seed(&own, spec.seed_name.as_ref()),
            Scope::Shoots => {
                if let Some(reference) = &spec.shoot_ref {
                    made.add_to(&own, shoot(&own.namespace, reference.name()));
                }
            }
        }
        made.vertices.insert(own);
        made
    }
}

impl MakesEdges for CertificateSigningRequest {
    fn edges(&self, own: Vertex, _: Scope) -> Contribution {
        let mut made = Contribution::default();
        let Some(spec) = &self.spec else { return made };
        let asked = spec.request.as_ref().and_then(|text| STANDARD.decode(text).ok());
        let usages = spec.usages.as_deref().unwrap_or_default();
        let Some(request) = asked.and_then(|pem| Request::read(&pem, "", usages)) else {
            return made;
        };
        if let Ok(seed) = gardenlets::seed_client(&request) {
            made.add_seed(&own, Some(&seed.to_owned()));
        }
        if let Ok((namespace, name)) = gardenlets::shoot_client(&request) {
            made.add_to(&own, shoot(namespace, name));
        }
        made
    }
}

impl MakesEdges for ControllerDeployment {
    /// What the values ask for counts wherever the chart is; upstream forgets it where the deployment holds the chart itself, so that its gardenlets
    /// cannot render such values.
    fn edges(&self, own: Vertex, _: Scope) -> Contribution {
        let mut made = Contribution::default();
        let repository = self.helm.as_ref().and_then(|helm| helm.oci_repository.as_ref());
        let secrets = repository.map(|repository| [&repository.pull_secret_ref, &repository.ca_bundle_secret_ref]);
        for reference in secrets.into_iter().flatten().flatten() {
            made.add_from(Vertex::new(Kind::Secret, GARDEN_NAMESPACE, reference.name()), &own);
        }
        for NamedResource { resource_ref } in self.resources.iter().flatten() {
            let kind = match resource_ref.kind.as_deref() {
                Some("Secret") => Kind::Secret,
                Some("ConfigMap") => Kind::ConfigMap,
                _ => continue,
            };
            made.add_from(Vertex::new(kind, GARDEN_NAMESPACE, resource_ref.name()), &own);
        }
        made
    }
}

impl MakesEdges for ControllerInstallation {
    fn edges(&self, own: Vertex, _: Scope) -> Contribution {
        let mut made = Contribution::default();
        let Some(spec) = &self.spec else { return made };
        if let Some(reference) = &spec.registration_ref {
            made.add_from(Vertex::global(Kind::ControllerRegistration, reference.name()), &own);
        }
        if let Some(reference) = &spec.deployment_ref {
            made.add_from(Vertex::global(Kind::ControllerDeployment, reference.name()), &own);
        }
        made.add_seed(
            &own,
            spec.seed_ref.as_ref().and_then(|reference| reference.name.as_ref()),
        );
        if let Some(reference) = &spec.shoot_ref {
            made.add_to(&own, shoot(reference.namespace(), reference.name()));
        }
        made.vertices.insert(own);
        made
    }
}

impl MakesEdges for CredentialsBinding {
    fn edges(&self, own: Vertex, _: Scope) -> Contribution {
        let mut made = Contribution::default();
        made.add_credentials(self.credentials_ref.as_ref(), None, &own);
        let internal = self.credentials_ref.as_ref();
        if let Some(reference) = internal.filter(|reference| reference.is(GARDENER_CORE, "InternalSecret")) {
            made.add_from(
                Vertex::new(Kind::InternalSecret, reference.namespace(), reference.name()),
                &own,
            );
        }
        made.vertices.insert(own);
        made
    }
}

impl MakesEdges for SecretBinding {
    fn edges(&self, own: Vertex, scope: Scope) -> Contribution {
        let mut made = Contribution::default();
        if let Some(reference) = self.secret_ref.as_ref().filter(|_| scope == Scope::Seeds) {
            made.add_from(Vertex::new(Kind::Secret, reference.namespace(), reference.name()), &own);
        }
        made
    }
}

impl MakesEdges for Project {
    fn edges(&self, own: Vertex, _: Scope) -> Contribution {
        let mut made = Contribution::default();
        if let Some(namespace) = self.spec.as_ref().and_then(|spec| spec.namespace.as_ref()) {
            made.add_to(&own, Vertex::global(Kind::Namespace, namespace));
        }
        made
    }
}

impl MakesEdges for ServiceAccount {
    fn edges(&self, own: Vertex, scope: Scope) -> Contribution {
        let mut made = Contribution::default();
        let of_shoot = own.name.starts_with(names::SHOOT_EXTENSION_ACCOUNT_PREFIX);
        match scope {
            Scope::Seeds if of_shoot || own.name.starts_with(bootstrap::SERVICE_ACCOUNT_PREFIX) => {
                for secret in self.secrets.iter().flatten() {
                    made.add_from(Vertex::new(Kind::Secret, &own.namespace, secret.name()), &own);
                }
                made.vertices.insert(own);
            }
            Scope::Shoots => {
                if let Some(name) = names::shoot_of_extension_account(&own.name) {
                    made.add_to(&own, shoot(&own.namespace, name));
                }
            }
            Scope::Seeds => {}
        }
        made
    }
}

impl MakesEdges for Seed {
    fn edges(&self, own: Vertex, scope: Scope) -> Contribution {
        let mut made = Contribution::default();
        if scope == Scope::Shoots {
            return made;
        }
        made.add_from(Vertex::global(Kind::Namespace, &names::seed_namespace(&own.name)), &own);
        made.add_from(
            Vertex::new(Kind::ConfigMap, names::KUBE_SYSTEM, names::CLUSTER_IDENTITY),
            &own,
        );
        made.add_from(Vertex::new(Kind::Lease, names::SEED_LEASE_NAMESPACE, &own.name), &own);
        let Some(spec) = &self.spec else { return made };
        let dns = spec.dns.as_ref();
        let credentials = [
            spec.backup.as_ref(),
            dns.and_then(|dns| dns.provider.as_ref()),
            dns.and_then(|dns| dns.internal.as_ref()),
        ];
        let defaults = dns.and_then(|dns| dns.defaults.as_ref());
        for holder in credentials.into_iter().flatten().chain(defaults.into_iter().flatten()) {
            made.add_credentials(holder.credentials_ref.as_ref(), None, &own);
        }
        made.add_resources(spec.resources.as_ref(), GARDEN_NAMESPACE, &own);
        made
    }
}

impl Shoot {
    /// The uid of a shoot whose issuer the landscape manages.
    pub(crate) fn managed_issuer(&self) -> Option<&str> {
        let metadata = self.metadata.as_ref()?;
        let managed = metadata.annotation(annotation::AUTHENTICATION_ISSUER) == Some("managed");
        metadata.uid.as_deref().filter(|_| managed)
    }

    fn cloud_profile(&self, namespace: &str) -> Option<Vertex> {
        let spec = self.spec.as_ref()?;
        if let Some(reference) = &spec.cloud_profile {
            return match reference.kind.as_deref().unwrap_or_default() {
                "" | "CloudProfile" => Some(Vertex::global(Kind::CloudProfile, reference.name())),
                "NamespacedCloudProfile" => {
                    Some(Vertex::new(Kind::NamespacedCloudProfile, namespace, reference.name()))
                }
                _ => None,
            };
        }
        let name = spec.cloud_profile_name.as_ref().filter(|name| !name.is_empty())?;
        Some(Vertex::global(Kind::CloudProfile, name))
    }
}

impl MakesEdges for Shoot {
    fn edges(&self, own: Vertex, scope: Scope) -> Contribution {
        let mut made = Contribution::default();
        let Some(spec) = &self.spec else { return made };
        let namespace = own.namespace.clone();
        made.add_from(Vertex::global(Kind::Namespace, &namespace), &own);
        made.add_seed(&own, spec.seed_name.as_ref());
        made.add_seed(&own, self.status.as_ref().and_then(|status| status.seed_name.as_ref()));
        for (kind, name) in [
            (Kind::SecretBinding, &spec.secret_binding_name),
            (Kind::CredentialsBinding, &spec.credentials_binding_name),
        ] {
            made.add_name(kind, &namespace, name.as_ref(), &own);
        }
        if let Some(profile) = self.cloud_profile(&namespace) {
            made.add_from(profile, &own);
        }
        made.add_name(Kind::ExposureClass, "", spec.exposure_class_name.as_ref(), &own);
        if let Some(server) = spec
            .kubernetes
            .as_ref()
            .and_then(|kubernetes| kubernetes.kube_api_server.as_ref())
        {
            let audit = server
                .audit_config
                .as_ref()
                .and_then(|audit| audit.audit_policy.as_ref());
            let audit = audit.and_then(|policy| policy.config_map_ref.as_ref());
            let authentication = server.structured_authentication.as_ref();
            let authorization = server.structured_authorization.as_ref();
            for name in [
                audit.and_then(|reference| reference.name.as_ref()),
                authentication.and_then(|own| own.config_map_name.as_ref()),
                authorization.and_then(|own| own.config_map_name.as_ref()),
            ] {
                made.add_name(Kind::ConfigMap, &namespace, name, &own);
            }
            for kubeconfig in authorization
                .and_then(|own| own.kubeconfigs.as_ref())
                .into_iter()
                .flatten()
            {
                made.add_name(Kind::Secret, &namespace, kubeconfig.secret_name.as_ref(), &own);
            }
        }
        let providers = spec.dns.as_ref().and_then(|dns| dns.providers.as_ref());
        for provider in providers.into_iter().flatten() {
            made.add_credentials(provider.credentials_ref.as_ref(), Some(&namespace), &own);
        }
        made.add_resources(spec.resources.as_ref(), &namespace, &own);
        // made for the shoot, without being named by it
        for (kind, suffixes) in [
            (Kind::Secret, &names::SECRETS[..]),
            (Kind::InternalSecret, &names::INTERNAL_SECRETS[..]),
            (Kind::ConfigMap, &names::CONFIG_MAPS[..]),
        ] {
            for suffix in suffixes {
                made.add_from(Vertex::new(kind, &namespace, &names::of_shoot(&own.name, suffix)), &own);
            }
        }
        made.add_from(Vertex::new(Kind::ShootState, &namespace, &own.name), &own);
        if scope == Scope::Shoots {
            made.add_from(
                Vertex::new(Kind::ConfigMap, names::KUBE_SYSTEM, names::CLUSTER_IDENTITY),
                &own,
            );
            let lease = format!("{}{}", names::SELF_HOSTED_PREFIX, own.name);
            made.add_from(Vertex::new(Kind::Lease, &namespace, &lease), &own);
        }
        made
    }
}

/// The Secret with the public keys of a shoot whose issuer the landscape manages, for each such shoot of a project.
pub(crate) fn issuer<'s>(
    namespace: &str,
    project: &str,
    shoots: impl IntoIterator<Item = (&'s String, &'s String)>,
) -> Contribution {
    let mut made = Contribution::default();
    for (name, uid) in shoots {
        let secret = names::issuer_secret(project, uid);
        made.add_from(
            Vertex::new(Kind::Secret, names::SHOOT_ISSUER_NAMESPACE, &secret),
            &shoot(namespace, name),
        );
    }
    made
}
