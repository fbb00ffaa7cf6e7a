//! Of the garden's objects, what edges are made of. The graph follows every change of a Shoot's status: reading all of it would cost more than
//! the graph does. The kinds themselves are in `apis`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Metadata.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Metadata {
    pub(crate) uid: Option<String>,
    pub(crate) annotations: Option<BTreeMap<String, String>>,
    pub(crate) owner_references: Option<Vec<Reference>>,
}

impl Metadata {
    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.as_ref()?.get(key).map(String::as_str)
    }
}

/// A reference of whatever form: absent members are empty.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Reference {
    pub(crate) api_version: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
}

impl Reference {
    pub(crate) fn is(&self, api_version: &str, kind: &str) -> bool {
        self.api_version.as_deref() == Some(api_version) && self.kind.as_deref() == Some(kind)
    }

    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.name.as_deref().unwrap_or_default()
    }
}

/// An element of `resources`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct NamedResource {
    pub(crate) resource_ref: Reference,
}

/// Objects of one kind, told by the members of spec and status that are read.
macro_rules! objects {
    ($($(#[$meta:meta])* $name:ident { $($member:ident: $type:ty),* $(,)? })*) => {
        $(
            $(#[$meta])*
            #[derive(Debug, Default, Deserialize)]
            #[serde(rename_all = "camelCase", default)]
            pub(crate) struct $name {
                $(pub(crate) $member: Option<$type>,)*
            }
        )*
    };
}

objects! {
    BackupBucket { spec: BackupBucketSpec, status: BackupBucketStatus }
    BackupBucketSpec { credentials_ref: Reference, seed_name: String, shoot_ref: Reference }
    BackupBucketStatus { generated_secret_ref: Reference }
    BackupEntry { metadata: Metadata, spec: BackupEntrySpec, status: WithSeed }
    BackupEntrySpec { bucket_name: String, seed_name: String, shoot_ref: Reference }
    /// What has a seed's name.
    WithSeed { seed_name: String }
    Bastion { spec: BastionSpec }
    BastionSpec { seed_name: String, shoot_ref: Reference }
    CertificateSigningRequest { spec: CertificateSigningRequestSpec }
    CertificateSigningRequestSpec { request: String, usages: Vec<String> }
    ControllerDeployment { helm: Helm, resources: Vec<NamedResource> }
    Helm { oci_repository: OciRepository }
    OciRepository { pull_secret_ref: Reference, ca_bundle_secret_ref: Reference }
    ControllerInstallation { spec: ControllerInstallationSpec }
    ControllerInstallationSpec {
        registration_ref: Reference, deployment_ref: Reference, seed_ref: Reference, shoot_ref: Reference
    }
    CredentialsBinding { credentials_ref: Reference }
    SecretBinding { secret_ref: Reference }
    Project { spec: ProjectSpec }
    ProjectSpec { namespace: String }
    ServiceAccount { secrets: Vec<Reference> }
    Gardenlet { metadata: Metadata, spec: GardenletSpec }
    GardenletSpec { deployment: GardenletDeployment, config: GardenletConfiguration }
    GardenletDeployment { helm: Helm }
    ManagedSeed { metadata: Metadata, spec: ManagedSeedSpec }
    ManagedSeedSpec { shoot: Reference, gardenlet: GardenletConfig }
    GardenletConfig { bootstrap: String, config: GardenletConfiguration }
    GardenletConfiguration { seed_config: Seed }
    Seed { spec: SeedSpec, status: SeedStatus }
    SeedSpec { backup: WithCredentials, dns: SeedDns, resources: Vec<NamedResource> }
    /// What has a reference to credentials.
    WithCredentials { credentials_ref: Reference }
    SeedDns { provider: WithCredentials, internal: WithCredentials, defaults: Vec<WithCredentials> }
    SeedStatus { client_certificate_expiration_timestamp: jiff::Timestamp }
    Shoot { metadata: Metadata, spec: ShootSpec, status: WithSeed }
    ShootSpec {
        seed_name: String,
        secret_binding_name: String,
        credentials_binding_name: String,
        cloud_profile_name: String,
        cloud_profile: Reference,
        exposure_class_name: String,
        kubernetes: Kubernetes,
        dns: ShootDns,
        resources: Vec<NamedResource>,
    }
    ShootDns { providers: Vec<WithCredentials> }
    AuditConfig { audit_policy: AuditPolicy }
    AuditPolicy { config_map_ref: Reference }
    StructuredAuthentication { config_map_name: String }
    StructuredAuthorization { config_map_name: String, kubeconfigs: Vec<AuthorizerKubeconfig> }
    AuthorizerKubeconfig { secret_name: String }
    KubeApiServer {
        audit_config: AuditConfig,
        structured_authentication: StructuredAuthentication,
        structured_authorization: StructuredAuthorization,
    }
}

/// A member whose name does not follow the rule of camel case.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Kubernetes {
    #[serde(rename = "kubeAPIServer")]
    pub(crate) kube_api_server: Option<KubeApiServer>,
}
