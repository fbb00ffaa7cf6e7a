//! Edges of ManagedSeeds and Gardenlets: what their gardenlets need, and what lets these in for the first time while they cannot get in otherwise.

use gardener_apis::constants::{GARDEN_NAMESPACE, annotation, operation};

use super::{Scope, shoot};
use crate::bootstrap;
use crate::graph::Contribution;
use crate::names;
use crate::objects::{Gardenlet, GardenletConfiguration, ManagedSeed, Metadata};
use crate::vertex::{Kind, Vertex};

/// What ManagedSeeds say who want a bootstrap token, and a service account.
const BOOTSTRAP_TOKEN: &str = "BootstrapToken";
const BOOTSTRAP_SERVICE_ACCOUNT: &str = "ServiceAccount";

/// Whether something asks for a new kubeconfig of its gardenlet.
fn renews(metadata: Option<&Metadata>) -> bool {
    metadata.and_then(|metadata| metadata.annotation(annotation::OPERATION)) == Some(operation::RENEW_KUBECONFIG)
}

/// What is known of a seed that decides whether a gardenlet may be let in for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Registered {
    /// There is no such seed.
    No,
    /// There is, and its gardenlet's client certificate is good as far as anybody knows.
    Yes,
    /// The client certificate of its gardenlet has expired.
    Expired,
}

impl Gardenlet {
    /// Edges of a Gardenlet; `seed` is the seed of its name. Unlike a ManagedSeed's, a Gardenlet's own token counts only when the seed is there.
    pub(crate) fn edges(&self, own: &Vertex, scope: Scope, seed: Registered) -> Contribution {
        let mut made = Contribution::default();
        let self_hosted = own.name.strip_prefix(names::SELF_HOSTED_PREFIX);
        match (scope, self_hosted) {
            (Scope::Seeds, None) => {}
            (Scope::Shoots, Some(name)) => {
                made.add_to(own, shoot(&own.namespace, name));
                return made;
            }
            _ => return made,
        }
        made.add_seed(own, Some(&own.name.to_string()));
        let Some(spec) = &self.spec else { return made };
        let Some(config) = &spec.config else { return made };
        made.add_backup_of(config, own);
        let token = bootstrap::token_secret(&own.namespace, &own.name);
        let token = Vertex::new(Kind::Secret, names::KUBE_SYSTEM, &token);
        if seed == Registered::Expired || seed == Registered::Yes && renews(self.metadata.as_ref()) {
            made.add_from(token, own);
        } else {
            made.vertices.insert(token);
        }
        let helm = spec.deployment.as_ref().and_then(|deployment| deployment.helm.as_ref());
        if let Some(repository) = helm.and_then(|helm| helm.oci_repository.as_ref()) {
            for reference in [&repository.ca_bundle_secret_ref, &repository.pull_secret_ref]
                .into_iter()
                .flatten()
            {
                made.add_from(Vertex::new(Kind::Secret, &own.namespace, reference.name()), own);
            }
        }
        made
    }
}

impl Contribution {
    /// The credentials with which the seed of a gardenlet's configuration keeps backups.
    fn add_backup_of(&mut self, config: &GardenletConfiguration, to: &Vertex) {
        let spec = config.seed_config.as_ref().and_then(|seed| seed.spec.as_ref());
        let backup = spec.and_then(|spec| spec.backup.as_ref());
        self.add_credentials(backup.and_then(|backup| backup.credentials_ref.as_ref()), None, to);
    }
}

impl ManagedSeed {
    /// Edges of a ManagedSeed; `seed` is the seed of its name. The edge to its Seed is left out for self-hosted shoots: there it would lead
    /// nowhere but back.
    pub(crate) fn edges(&self, own: &Vertex, scope: Scope, seed: Registered) -> Contribution {
        let mut made = Contribution::default();
        let Some(spec) = &self.spec else { return made };
        let seed_vertex = Vertex::global(Kind::Seed, &own.name);
        made.add_from(seed_vertex.clone(), own);
        if let Some(reference) = &spec.shoot {
            made.add_to(own, shoot(&own.namespace, reference.name()));
        }
        if scope == Scope::Seeds {
            made.add_to(own, seed_vertex.clone());
        }
        let Some(gardenlet) = &spec.gardenlet else { return made };
        let bootstrap = gardenlet.bootstrap.as_deref().unwrap_or_default();
        let token = Vertex::new(
            Kind::Secret,
            names::KUBE_SYSTEM,
            &bootstrap::token_secret(&own.namespace, &own.name),
        );
        if scope == Scope::Shoots {
            // upstream, too, does not look at the Seed here: mostly there is none yet
            if bootstrap == BOOTSTRAP_TOKEN {
                made.add_from(token, own);
            }
            return made;
        }
        let Some(config) = &gardenlet.config else { return made };
        made.add_backup_of(config, own);
        let template = config.seed_config.as_ref().and_then(|seed| seed.spec.as_ref());
        // so that the seed can register itself
        made.add_resources(
            template.and_then(|spec| spec.resources.as_ref()),
            GARDEN_NAMESPACE,
            &seed_vertex,
        );
        if seed == Registered::Yes && !renews(self.metadata.as_ref()) {
            made.vertices.insert(token);
            return made;
        }
        match bootstrap {
            BOOTSTRAP_TOKEN => made.add_from(token, own),
            BOOTSTRAP_SERVICE_ACCOUNT => {
                let account = bootstrap::service_account(&own.name);
                made.add_from(Vertex::new(Kind::ServiceAccount, &own.namespace, &account), own);
                let binding = bootstrap::binding(&own.namespace, &own.name);
                made.add_from(Vertex::global(Kind::ClusterRoleBinding, &binding), own);
            }
            _ => {}
        }
        made
    }
}
