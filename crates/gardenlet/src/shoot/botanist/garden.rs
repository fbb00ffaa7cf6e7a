//! What an operation reads in the garden before it starts, and the Cluster object that tells extensions of it [EXT-70..72].

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_apimachinery::pointer::Pointed;
use gardener_apis::constants::SEED_NAMESPACE_PREFIX;
use gardener_apis::core::v1beta1::{ControllerRegistration, Project, SecretBinding, Seed, Shoot};
use gardener_apis::security::v1alpha1::CredentialsBinding;
use gardener_controller::Read;
use gardener_flow::TaskError;
use gardener_rules::shoot_operation::OperationType;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt};
use parking_lot::RwLock;
use serde_json::{Value, json};

use super::{Botanist, Domain, Done, State, extensions, secrets};
use crate::Config;
use crate::apply;
use crate::components::access;

/// An object as it is sent to extensions: with kind, without managedFields.
pub(crate) fn whole<K: serde::Serialize>(object: &K) -> Result<Value, TaskError> {
    let mut value = serde_json::to_value(object)?;
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    Ok(value)
}

/// The cloud profile of a shoot, of whichever kind, as a CloudProfile [EXT-70].
async fn cloud_profile(config: &Config, shoot: &Shoot) -> Result<Value, TaskError> {
    let reference = shoot.spec.cloud_profile.clone().unwrap_or_default();
    let kind = if reference.kind.is_empty() {
        "CloudProfile"
    } else {
        reference.kind.as_str()
    };
    let name = if reference.name.is_empty() {
        shoot.spec.cloud_profile_name.clone().unwrap_or_default()
    } else {
        reference.name.clone()
    };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("core.gardener.cloud", "v1beta1", kind));
    let api: Api<DynamicObject> = if kind == "NamespacedCloudProfile" {
        Api::namespaced_with(config.garden.clone(), &shoot.namespace().unwrap_or_default(), &resource)
    } else {
        Api::all_with(config.garden.clone(), &resource)
    };
    let mut profile = whole(&api.read(&name).await?)?;
    if kind == "NamespacedCloudProfile" {
        let spec = profile.at("/status/cloudProfileSpec").cloned().unwrap_or_default();
        if let Some(fields) = profile.as_object_mut() {
            fields.insert("kind".to_owned(), "CloudProfile".into());
            fields.insert("spec".to_owned(), spec);
            fields.remove("status");
        }
    }
    Ok(profile)
}

async fn secret_data(config: &Config, namespace: &str, name: &str) -> Result<BTreeMap<String, ByteString>, TaskError> {
    let api: Api<Secret> = Api::namespaced(config.garden.clone(), namespace);
    Ok(api.read(name).await?.data.unwrap_or_default())
}

/// The internal domain and the domain that a shoot's external name lies in.
async fn domains(config: &Config, shoot: &Shoot, seed: &Seed) -> Result<(Option<Domain>, Option<Domain>), TaskError> {
    let dns = &seed.spec.dns;
    let mut known = Vec::new();
    for (is_internal, one) in dns
        .internal
        .iter()
        .map(|one| (true, one))
        .chain(dns.defaults.iter().map(|one| (false, one)))
    {
        let reference = &one.credentials_ref;
        let namespace = reference.namespace.clone().unwrap_or_else(|| "garden".to_owned());
        let credentials = secret_data(config, &namespace, reference.name.as_deref().unwrap_or_default()).await?;
        let domain = Domain {
            name: one.domain.clone(),
            provider: one.r#type.clone(),
            zone: one.zone.clone(),
            credentials,
        };
        known.push((is_internal, domain));
    }
    let mut internal = known
        .iter()
        .find(|(is_internal, _)| *is_internal)
        .map(|(_, domain)| domain.clone());
    if internal.is_none() {
        internal = labelled_domain(config, "internal-domain", |_| true).await?;
    }
    let Some(wanted) = shoot.spec.dns.as_ref().and_then(|one| one.domain.clone()) else {
        return Ok((internal, None));
    };
    let providers = shoot.spec.dns.iter().flat_map(|one| &one.providers);
    let own = providers.clone().find(|one| one.primary == Some(true));
    if let Some(own) = own {
        let provider = own.r#type.clone().unwrap_or_default();
        if provider == "unmanaged" {
            return Ok((internal, None));
        }
        let secret = own
            .secret_name
            .clone()
            .or_else(|| own.credentials_ref.as_ref().map(|one| one.name.clone()));
        if let Some(secret) = secret {
            let credentials = secret_data(config, &shoot.namespace().unwrap_or_default(), &secret).await?;
            return Ok((
                internal,
                Some(Domain {
                    name: wanted,
                    provider,
                    zone: None,
                    credentials,
                }),
            ));
        }
    }
    let lies_in = |domain: &str| wanted == domain || wanted.ends_with(&format!(".{domain}"));
    let found = known
        .into_iter()
        .filter(|(is_internal, domain)| !*is_internal && lies_in(&domain.name));
    let found = found.map(|(_, domain)| domain).max_by_key(|domain| domain.name.len());
    match found {
        Some(domain) => Ok((internal, Some(domain))),
        None => Ok((internal, labelled_domain(config, "default-domain", lies_in).await?)),
    }
}

/// A domain that a Secret of the garden describes by annotations. The seed has copies of these in its namespace of the garden.
async fn labelled_domain(
    config: &Config,
    role: &str,
    fits: impl Fn(&str) -> bool,
) -> Result<Option<Domain>, TaskError> {
    let namespace = format!("{SEED_NAMESPACE_PREFIX}{}", config.seed_name);
    let api: Api<Secret> = Api::namespaced(config.garden.clone(), &namespace);
    let listed = api
        .read_list(&ListParams::default().labels(&format!("gardener.cloud/role={role}")))
        .await?;
    let domains = listed.into_iter().filter_map(|secret| {
        let annotation = |key: &str| secret.annotations().get(key).cloned();
        let name = annotation("dns.gardener.cloud/domain").filter(|name| fits(name))?;
        Some(Domain {
            name,
            provider: annotation("dns.gardener.cloud/provider")?,
            zone: annotation("dns.gardener.cloud/zone"),
            credentials: secret.data.clone().unwrap_or_default(),
        })
    });
    Ok(domains.max_by_key(|domain| domain.name.len()))
}

impl Botanist {
    /// Reads what the operation needs.
    ///
    /// # Errors
    /// What could not be read.
    pub(crate) async fn gather(
        config: Config,
        shoot: Shoot,
        project: Project,
        seed: Seed,
        operation: OperationType,
    ) -> Result<Self, TaskError> {
        let namespace = shoot.status.technical_id.clone();
        let registrations: Api<ControllerRegistration> = Api::all(config.garden.clone());
        let ((internal, external), cloud_profile, registrations, identity, manager) = tokio::try_join!(
            domains(&config, &shoot, &seed),
            cloud_profile(&config, &shoot),
            async { Ok::<_, TaskError>(registrations.read_list(&ListParams::default()).await?) },
            crate::identity::of_garden(&config),
            async {
                let rotations = secrets::rotations(&shoot);
                Ok::<_, TaskError>(config.secrets_manager(&namespace, rotations).await?)
            },
        )?;
        Ok(Self {
            extensions: extensions::wanted(&shoot, &registrations),
            config,
            operation,
            project,
            seed,
            cloud_profile,
            namespace,
            garden_identity: identity,
            internal,
            external,
            manager,
            shoot: RwLock::new(Arc::new(shoot)),
            state: RwLock::new(State::default()),
            writing: tokio::sync::Mutex::default(),
        })
    }

    /// Writes the Cluster object [EXT-71].
    pub(crate) async fn sync_cluster(&self) -> Done {
        let kubeconfig = self.state.read().secrets.get("generic-token-kubeconfig").cloned();
        sync_cluster(&self.config, &self.shoot(), &self.seed, &self.cloud_profile, kubeconfig).await
    }

    /// The namespace of the control plane [CP-F1], [CP-2], [CP-3].
    pub(crate) async fn deploy_namespace(&self) -> Done {
        use k8s_openapi::api::core::v1::Namespace;
        let api: Api<Namespace> = Api::all(self.seed_client().clone());
        let current = api.read_opt(&self.namespace).await?;
        let annotation = |key: &str| current.as_ref().and_then(|one| one.annotations().get(key).cloned());
        let view = self.view();
        let cluster = view.cluster();
        let kept: Vec<String> = annotation(crate::components::namespace::ZONES)
            .map(|zones| {
                zones
                    .split(',')
                    .filter(|one| !one.is_empty())
                    .map(str::to_owned)
                    .collect()
            })
            .unwrap_or_default();
        let same =
            annotation(crate::components::namespace::FAILURE_TOLERANCE).as_deref() == Some(cluster.failure_tolerance());
        let zones = if same {
            kept
        } else {
            let mut order = self.seed.spec.provider.zones.clone();
            if !order.is_empty() {
                let by = usize::try_from(self.config.chance.below(order.len() as u64)).unwrap_or_default();
                order.rotate_left(by);
            }
            gardener_rules::shoot_zones::choose(cluster.failure_tolerance(), &kept.into_iter().collect(), &order)
                .map_err(TaskError::new)?
        };
        self.apply(&[crate::components::namespace::manifest(
            &cluster,
            &self.extension_types(),
            &zones,
        )])
        .await
    }

    /// `status.clusterIdentity` [CP-F2].
    pub(crate) async fn ensure_cluster_identity(&self) -> Done {
        let shoot = self.shoot();
        if shoot.status.cluster_identity.is_some() {
            return Ok(());
        }
        let identity = format!("{}-{}-{}", self.namespace, shoot.status.uid, self.garden_identity);
        self.patch_status(|shoot| shoot.status.cluster_identity = Some(identity.clone()))
            .await
    }

    /// The account's credentials [CP-F3].
    pub(crate) async fn deploy_cloud_provider_secret(&self) -> Done {
        let shoot = self.shoot();
        let namespace = shoot.namespace().unwrap_or_default();
        let (secret_namespace, name) = if let Some(binding) = &shoot.spec.credentials_binding_name {
            let api: Api<CredentialsBinding> = Api::namespaced(self.garden().clone(), &namespace);
            let reference = api.read(binding).await?.credentials_ref;
            (
                reference.namespace.unwrap_or(namespace),
                reference.name.unwrap_or_default(),
            )
        } else if let Some(binding) = &shoot.spec.secret_binding_name {
            let api: Api<SecretBinding> = Api::namespaced(self.garden().clone(), &namespace);
            let reference = api.read(binding).await?.secret_ref;
            (
                reference.namespace.unwrap_or(namespace),
                reference.name.unwrap_or_default(),
            )
        } else {
            return Ok(());
        };
        let data = secret_data(&self.config, &secret_namespace, &name).await?;
        self.apply(&[access::cloud_provider_secret(
            &self.namespace,
            &shoot,
            serde_json::to_value(data)?,
        )])
        .await
    }

    /// Whether the shoot has credentials.
    pub(crate) fn has_credentials(&self) -> bool {
        let shoot = self.shoot();
        shoot.spec.credentials_binding_name.is_some() || shoot.spec.secret_binding_name.is_some()
    }

    /// Copies of Secrets and ConfigMaps that the shoot refers to [EXT-80].
    pub(crate) async fn deploy_referenced_resources(&self) -> Done {
        let shoot = self.shoot();
        let namespace = shoot.namespace().unwrap_or_default();
        let mut objects = Vec::new();
        for one in &shoot.spec.resources {
            let reference = &one.resource_ref;
            let name = format!("ref-{}", reference.name);
            let metadata = json!({"name": name, "namespace": self.namespace});
            match reference.kind.as_str() {
                "Secret" => {
                    let data = secret_data(&self.config, &namespace, &reference.name).await?;
                    objects.push(json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data}));
                }
                "ConfigMap" => {
                    let api: Api<ConfigMap> = Api::namespaced(self.garden().clone(), &namespace);
                    let data = api.read(&reference.name).await?.data;
                    objects.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}));
                }
                _ => {}
            }
        }
        let name = "referenced-resources";
        if objects.is_empty() {
            return Ok(crate::managed_resource::delete(self.seed_client(), &self.namespace, name).await?);
        }
        let content = crate::managed_resource::Content {
            namespace: &self.namespace,
            name,
            class: Some("seed"),
            objects: &objects,
            labels: &[],
            keep_objects: false,
        };
        Ok(crate::managed_resource::deploy(self.seed_client(), &content).await?)
    }

    /// The time now.
    pub(crate) fn now(&self) -> Timestamp {
        self.config.clock.now()
    }
}

/// Writes the Cluster object of a shoot [EXT-70..72].
pub(crate) async fn sync_cluster(
    config: &Config,
    shoot: &Shoot,
    seed: &Seed,
    cloud_profile: &Value,
    kubeconfig: Option<String>,
) -> Done {
    let mut metadata = json!({"name": shoot.status.technical_id});
    if let (Some(name), Some(fields)) = (kubeconfig, metadata.as_object_mut()) {
        fields.insert(
            "annotations".to_owned(),
            json!({"generic-token-kubeconfig.secret.gardener.cloud/name": name}),
        );
    }
    let cluster = json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": metadata,
        "spec": {"cloudProfile": cloud_profile, "seed": whole(seed)?, "shoot": whole(shoot)?},
    });
    apply::apply(&config.seed, &cluster).await?;
    Ok(())
}

/// Writes the Cluster object of a shoot that is not worked on, with what is in the garden now; its kubeconfig stays as it is.
pub(crate) async fn sync_cluster_of(config: &Config, shoot: &Shoot, seed: &Seed) -> Done {
    let clusters: Api<gardener_apis::extensions::v1alpha1::Cluster> = Api::all(config.seed.clone());
    let current = clusters.read_opt(&shoot.status.technical_id).await?;
    let key = "generic-token-kubeconfig.secret.gardener.cloud/name";
    let kubeconfig = current.and_then(|one| one.annotations().get(key).cloned());
    let profile = cloud_profile(config, shoot).await?;
    sync_cluster(config, shoot, seed, &profile, kubeconfig).await
}
