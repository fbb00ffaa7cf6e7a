//! The secrets of a control plane [CP-70..76].

use std::collections::BTreeMap;
use std::net::IpAddr;

use gardener_controller::Read;
use gardener_controller::secrets::{
    Certificate, Class, Generate, Kind, Rotation, SecretConfig, SignedBy, Token, Usage, data,
};
use gardener_flow::TaskError;
use gardener_rules::credentials_rotation::Keys;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::ResourceExt;
use kube::api::{DeleteParams, ListParams};

use super::{Botanist, Done};
use crate::components::kube_apiserver::EncryptionKey;
use crate::components::{access, service_names};
use gardener_apis::core::v1beta1::Shoot;

/// The authorities [CP-71].
const AUTHORITIES: [&str; 6] = [
    "ca",
    "ca-client",
    "ca-etcd",
    "ca-etcd-peer",
    "ca-front-proxy",
    "ca-istio-basic-auth-server",
];
const AUTHORITIES_OF_WORKERS: [&str; 3] = ["ca-kubelet", "ca-metrics-server", "ca-vpn"];

/// The key that values are encrypted with.
pub(super) const ENCRYPTION_KEY: &str = "kube-apiserver-etcd-encryption-key";
/// Who encrypts where nobody else is named; its keys do not tell it [CP-115].
const DEFAULT_ENCRYPTION_PROVIDER: &str = "aescbc";

/// Who encrypts with a shoot's key; empty for the default, whose keys are older than the choice.
fn encryption_provider(shoot: &Shoot) -> &str {
    let server = shoot.spec.kubernetes.kube_api_server.as_ref();
    let wanted = server.and_then(|own| own.encryption_config.as_ref());
    let wanted = wanted
        .and_then(|own| own.provider.r#type.as_deref())
        .unwrap_or_default();
    match wanted {
        DEFAULT_ENCRYPTION_PROVIDER => "",
        other => other,
    }
}

/// When which configuration was last rotated [CP-76].
pub(crate) fn rotations(shoot: &Shoot) -> BTreeMap<String, Timestamp> {
    let mut times = BTreeMap::new();
    let rotation = shoot
        .status
        .credentials
        .as_ref()
        .and_then(|one| one.rotation.clone())
        .unwrap_or_default();
    let mut set = |name: &str, time: Option<Timestamp>| {
        if let Some(time) = time {
            times.insert(name.to_owned(), time);
        }
    };
    let authorities = rotation
        .certificate_authorities
        .and_then(|one| one.last_initiation_time)
        .map(|time| time.0);
    for name in AUTHORITIES
        .iter()
        .chain(&AUTHORITIES_OF_WORKERS)
        .chain(&["kube-apiserver-static-token"])
    {
        set(name, authorities);
    }
    set(
        "service-account-key",
        rotation
            .service_account_key
            .and_then(|one| one.last_initiation_time)
            .map(|time| time.0),
    );
    set(
        ENCRYPTION_KEY,
        rotation
            .etcd_encryption_key
            .and_then(|one| one.last_initiation_time)
            .map(|time| time.0),
    );
    set(
        "ssh-keypair",
        rotation
            .ssh_keypair
            .and_then(|one| one.last_initiation_time)
            .map(|time| time.0),
    );
    set(
        "observability-ingress-users",
        rotation
            .observability
            .and_then(|one| one.last_initiation_time)
            .map(|time| time.0),
    );
    times
}

fn certificate(name: &str, usage: Usage, dns_names: Vec<String>, ip_addresses: Vec<IpAddr>) -> SecretConfig {
    SecretConfig {
        name: name.to_owned(),
        kind: Kind::Certificate(Certificate {
            usage,
            common_name: name.to_owned(),
            organizations: Vec::new(),
            dns_names,
            ip_addresses,
            with_ca: false,
        }),
    }
}

impl Botanist {
    fn remember(&self, config: &str) {
        let mut state = self.state.write();
        for (class, suffix) in [(Class::Current, ""), (Class::Bundle, "-bundle")] {
            if let Some(secret) = self.manager.get(config, class) {
                state.secrets.insert(format!("{config}{suffix}"), secret.name_any());
            }
        }
    }

    async fn generate(&self, config: SecretConfig, how: Generate) -> Result<Secret, TaskError> {
        let secret = self.manager.generate(&config, &how).await?;
        self.remember(&config.name);
        Ok(secret)
    }

    async fn certificates(&self, ca: &str, configs: Vec<SecretConfig>) -> Done {
        for config in configs {
            let how = Generate {
                signed_by: Some(SignedBy::ca(ca)),
                ..Generate::default()
            };
            self.generate(config, how).await?;
        }
        Ok(())
    }

    /// Whether old generations are no longer kept: the rotation is completing [CP-72].
    fn keep_old(phase: &str) -> Rotation {
        Rotation::KeepOld {
            ignore_old: phase == "Completing",
        }
    }

    /// Generates authorities, keys and passwords, and the kubeconfig that components share [CP-F5].
    pub(crate) async fn initialize_secrets(&self) -> Done {
        let shoot = self.shoot();
        let rotation = shoot
            .status
            .credentials
            .as_ref()
            .and_then(|one| one.rotation.clone())
            .unwrap_or_default();
        let authorities = rotation
            .certificate_authorities
            .map(|one| one.phase)
            .unwrap_or_default();
        let of_workers: &[&str] = if self.is_workerless() {
            &[]
        } else {
            &AUTHORITIES_OF_WORKERS
        };
        for name in AUTHORITIES.iter().chain(of_workers) {
            let common_name = if *name == "ca" { "kubernetes" } else { name };
            let config = SecretConfig {
                name: (*name).to_owned(),
                kind: Kind::CertificateAuthority {
                    common_name: common_name.to_owned(),
                },
            };
            let how = Generate {
                persist: true,
                rotation: Self::keep_old(&authorities),
                ..Generate::default()
            };
            self.generate(config, how).await?;
        }
        let kept = |phase: String| Generate {
            persist: true,
            rotation: Self::keep_old(&phase),
            ..Generate::default()
        };
        let named = |name: &str, kind: Kind| SecretConfig {
            name: name.to_owned(),
            kind,
        };
        let key_phase = rotation.service_account_key.map(|one| one.phase).unwrap_or_default();
        self.generate(named("service-account-key", Kind::ServiceAccountKey), kept(key_phase))
            .await?;
        let encryption_phase = rotation.etcd_encryption_key.map(|one| one.phase).unwrap_or_default();
        let key = Kind::EncryptionKey {
            length: 32,
            provider: encryption_provider(&shoot).to_owned(),
        };
        self.generate(named(ENCRYPTION_KEY, key), kept(encryption_phase))
            .await?;
        if self.has_ssh_access() {
            self.generate(named("ssh-keypair", Kind::SshKeyPair), kept(String::new()))
                .await?;
        }
        let users = Kind::BasicAuth {
            username: "admin".to_owned(),
            password_length: 32,
        };
        self.generate(
            named("observability-ingress-users", users),
            Generate {
                persist: true,
                ..Generate::default()
            },
        )
        .await?;
        let token = Token {
            username: "health-check".to_owned(),
            id: "health-check".to_owned(),
            groups: Vec::new(),
        };
        self.generate(
            named("kube-apiserver-static-token", Kind::StaticTokens(vec![token])),
            Generate {
                persist: true,
                ..Generate::default()
            },
        )
        .await?;
        if !self.is_workerless() {
            let tunnel = Kind::EncryptionKey {
                length: 256,
                provider: String::new(),
            };
            self.generate(named("vpn-seed-server-tlsauth", tunnel), Generate::default())
                .await?;
        }
        let (name, kubeconfig) = access::generic_kubeconfig(&self.namespace, &self.cluster_ca()?);
        self.state
            .write()
            .secrets
            .insert("generic-token-kubeconfig".to_owned(), name);
        self.apply(&[kubeconfig]).await?;
        self.component_certificates().await?;
        self.copy_credentials().await
    }

    async fn component_certificates(&self) -> Done {
        let namespace = &self.namespace;
        let view = self.view();
        let cluster = view.cluster();
        let mut names = service_names("kube-apiserver", namespace);
        names.extend(service_names("kubernetes", "default"));
        names.extend([namespace.clone(), cluster.internal_host.clone()]);
        names.extend(cluster.external_host.clone());
        names.extend(view.shoot.spec.dns.as_ref().and_then(|dns| dns.domain.clone()));
        names.sort();
        names.dedup();
        let mut addresses: Vec<IpAddr> = vec![[127, 0, 0, 1].into()];
        addresses.extend(cluster.service_address(1));
        let server = |name: &str, names: Vec<String>| certificate(name, Usage::Server, names, Vec::new());
        let client = |name: &str, user: &str, group: &[&str]| SecretConfig {
            name: name.to_owned(),
            kind: Kind::Certificate(Certificate {
                usage: Usage::Client,
                common_name: user.to_owned(),
                organizations: group.iter().map(|one| (*one).to_owned()).collect(),
                dns_names: Vec::new(),
                ip_addresses: Vec::new(),
                with_ca: false,
            }),
        };
        let mut servers = vec![
            certificate("kube-apiserver", Usage::Server, names, addresses),
            server(
                "kube-controller-manager-server",
                service_names("kube-controller-manager", namespace),
            ),
            server(
                "gardener-resource-manager-server",
                service_names("gardener-resource-manager", namespace),
            ),
        ];
        if !cluster.is_workerless() {
            servers.push(server(
                "kube-scheduler-server",
                service_names("kube-scheduler", namespace),
            ));
        }
        self.certificates("ca", servers).await?;
        let both = |name: &str, names: Vec<String>| {
            certificate(name, Usage::ServerAndClient, names, vec![[127, 0, 0, 1].into()])
        };
        let mut etcd_names = Vec::new();
        for service in ["etcd-main", "etcd-events"] {
            for suffix in ["client", "local", "peer"] {
                etcd_names.extend(service_names(&format!("{service}-{suffix}"), namespace));
            }
            etcd_names.push(format!("*.{service}-peer.{namespace}.svc"));
        }
        self.certificates(
            "ca-etcd",
            vec![
                both("etcd-server", etcd_names.clone()),
                client("etcd-client", "etcd-client", &[]),
            ],
        )
        .await?;
        if !cluster.failure_tolerance().is_empty() {
            let peers = ["etcd-peer-server-main", "etcd-peer-server-events"];
            self.certificates("ca-etcd-peer", peers.map(|name| both(name, etcd_names.clone())).into())
                .await?;
        }
        self.certificates(
            "ca-front-proxy",
            vec![client("kube-aggregator", "system:kube-aggregator", &[])],
        )
        .await?;
        if !cluster.is_workerless() {
            let kubelet = client("kube-apiserver-kubelet", "system:kube-apiserver:kubelet", &[]);
            self.certificates("ca-kubelet", vec![kubelet]).await?;
            let tunnel = vec![
                both("vpn-seed-server", service_names("vpn-seed-server", namespace)),
                client("kube-apiserver-http-proxy", "kube-apiserver-http-proxy", &[]),
            ];
            self.certificates("ca-vpn", tunnel).await?;
            self.certificates(
                "ca-metrics-server",
                vec![server("metrics-server", service_names("metrics-server", "kube-system"))],
            )
            .await?;
        }
        Ok(())
    }

    /// Whether users may log in to nodes.
    pub(crate) fn has_ssh_access(&self) -> bool {
        self.shoot().spec.ssh_access_enabled()
    }

    /// A generated secret.
    pub(crate) fn generated(&self, config: &str, class: Class) -> Result<Secret, TaskError> {
        self.manager
            .get(config, class)
            .ok_or_else(|| TaskError::new(format!("secret {config:?} has not been generated yet")))
    }

    /// The certificates of an authority that are trusted, PEM.
    pub(crate) fn bundle(&self, authority: &str) -> Result<String, TaskError> {
        let bundle = self.generated(authority, Class::Bundle)?;
        Self::text(&bundle, data::BUNDLE)
            .ok_or_else(|| TaskError::new(format!("the bundle of {authority:?} has no {}", data::BUNDLE)))
    }

    /// The certificates of the API server's authority.
    pub(crate) fn cluster_ca(&self) -> Result<String, TaskError> {
        self.bundle("ca")
    }

    /// The keys that values are encrypted with, the one that writes first [CP-92].
    pub(crate) fn encryption_keys(&self, which: Keys) -> Result<Vec<EncryptionKey>, TaskError> {
        let read = |secret: &Secret| {
            Some(EncryptionKey {
                name: Self::text(secret, data::ENCRYPTION_KEY_NAME)?,
                secret: Self::text(secret, data::ENCRYPTION_SECRET)?,
                provider: Self::text(secret, data::ENCRYPTION_PROVIDER)
                    .unwrap_or_else(|| DEFAULT_ENCRYPTION_PROVIDER.to_owned()),
            })
        };
        let current = Some(self.generated(ENCRYPTION_KEY, Class::Current)?);
        let old = self.manager.get(ENCRYPTION_KEY, Class::Old);
        let secrets = match which {
            Keys::NewWrites => [current, old],
            Keys::OldWrites => [old, current],
        };
        Ok(secrets.iter().flatten().filter_map(read).collect())
    }

    /// Deletes what no longer belongs to the control plane [CP-30].
    pub(crate) async fn clean_up_secrets(&self) -> Done {
        self.manager.cleanup().await?;
        let current = self.view().cluster().secret("generic-token-kubeconfig");
        let api: Api<Secret> = self.seed_api();
        let listed = api
            .read_list(&ListParams::default().labels("name=generic-token-kubeconfig"))
            .await?;
        for secret in listed {
            if secret.name_any() != current {
                gardener_controller::apply::delete_with(&api, &secret.name_any(), &DeleteParams::default()).await?;
            }
        }
        Ok(())
    }
}
