//! Well-known names of the garden: annotations, labels, finalizers, operations, groups of users, fixed object names.
//!
//! Sources: [GAPI-32] – [GAPI-66], section A.5 of the garden API, the control plane and extension contracts.

/// Gardener's version, as its components tell it, such as `v0.1.0`.
pub const VERSION: &str = concat!("v", env!("CARGO_PKG_VERSION"));
/// The namespace of the garden that holds what all seeds and projects share.
pub const GARDEN_NAMESPACE: &str = "garden";
/// Prefix of the namespaces that hold what only one seed may see.
pub const SEED_NAMESPACE_PREFIX: &str = "seed-";
/// Prefix of project namespaces.
pub const PROJECT_NAMESPACE_PREFIX: &str = "garden-";
/// The scheduler's name.
pub const DEFAULT_SCHEDULER_NAME: &str = "default-scheduler";
/// The processors that machines may have.
pub const ARCHITECTURES: [&str; 2] = ["amd64", "arm64"];

/// Finalizers, [GAPI-50].
pub mod finalizer {
    /// Held by the controllers of most kinds.
    pub const GARDENER: &str = "gardener";
    /// On shoots and on what they refer to.
    pub const REFERENCE_PROTECTION: &str = "gardener.cloud/reference-protection";
    /// On credentials that a SecretBinding uses.
    pub const SECRET_BINDING: &str = "gardener.cloud/secretbinding";
    /// On credentials that a CredentialsBinding uses.
    pub const CREDENTIALS_BINDING: &str = "gardener.cloud/credentialsbinding";
    /// On ControllerRegistrations and Seeds.
    pub const CONTROLLER_REGISTRATION: &str = "core.gardener.cloud/controllerregistration";
    /// On ControllerDeployments.
    pub const CONTROLLER_DEPLOYMENT: &str = "core.gardener.cloud/controllerdeployment";
    /// On ControllerInstallations.
    pub const CONTROLLER_INSTALLATION: &str = "core.gardener.cloud/controllerinstallation";
    /// On the credentials that a BackupBucket uses or generates.
    pub const BACKUP_BUCKET: &str = "core.gardener.cloud/backupbucket";
    /// On ShootStates.
    pub const SHOOT_STATE: &str = "core.gardener.cloud/shootstate";
}

/// Annotations.
pub mod annotation {
    /// What to do once: see [`super::operation`].
    pub const OPERATION: &str = "gardener.cloud/operation";
    /// What to do in the next maintenance time window.
    pub const MAINTENANCE_OPERATION: &str = "maintenance.gardener.cloud/operation";
    /// When a controller last wrote; shows that an operation was asked for anew.
    pub const TIMESTAMP: &str = "gardener.cloud/timestamp";
    /// Who created the object.
    pub const CREATED_BY: &str = "gardener.cloud/created-by";
    /// Must be true before a DELETE is accepted.
    pub const CONFIRMATION_DELETION: &str = "confirmation.gardener.cloud/deletion";
    /// Asks to give up what cannot be deleted.
    pub const CONFIRMATION_FORCE_DELETION: &str = "confirmation.gardener.cloud/force-deletion";
    /// Who confirmed the deletion.
    pub const DELETION_CONFIRMED_BY: &str = "deletion.gardener.cloud/confirmed-by";
    /// On a BackupEntry: what its shoot is for.
    pub const SHOOT_PURPOSE: &str = "shoot.gardener.cloud/purpose";
    /// Asks to delete a BackupEntry at once.
    pub const BACKUP_ENTRY_FORCE_DELETION: &str = "backupentry.core.gardener.cloud/force-deletion";
    /// Comma separated one-time tasks of the next reconciliation.
    pub const SHOOT_TASKS: &str = "shoot.gardener.cloud/tasks";
    /// When a shoot is deleted by itself.
    pub const SHOOT_EXPIRATION_TIMESTAMP: &str = "shoot.gardener.cloud/expiration-timestamp";
    /// Set when a confined change waits for a retry.
    pub const SHOOT_NEEDS_RETRY: &str = "maintenance.shoot.gardener.cloud/needs-retry-operation";
    /// Leaves a shoot alone.
    pub const SHOOT_IGNORE: &str = "shoot.gardener.cloud/ignore";
    /// `managed`: the landscape's own issuer of service account tokens.
    pub const AUTHENTICATION_ISSUER: &str = "authentication.gardener.cloud/issuer";
    /// Asks for a live control plane migration.
    pub const LIVE_MIGRATION: &str = "migration.gardener.cloud/live-migrate";
    /// Lets a live control plane migration go however far.
    pub const LIVE_MIGRATION_DISTANT: &str = "migration.gardener.cloud/allow-distant-regions";
    /// How far a live control plane migration may go at most, on region ConfigMaps.
    pub const LIVE_MIGRATION_THRESHOLD: &str = "migration.gardener.cloud/inter-region-distance-threshold";
    /// Comma separated names of the cloud profiles that a region ConfigMap is for.
    pub const SCHEDULING_CLOUD_PROFILES: &str = "scheduling.gardener.cloud/cloudprofiles";
    /// The type of a DNS provider, on domain secrets.
    pub const DNS_PROVIDER: &str = "dns.gardener.cloud/provider";
    /// The domain, on domain secrets.
    pub const DNS_DOMAIN: &str = "dns.gardener.cloud/domain";
    /// Higher goes first among default domains.
    pub const DNS_DEFAULT_DOMAIN_PRIORITY: &str = "dns.gardener.cloud/domain-default-priority";
    /// Keeps a project namespace when the project goes.
    pub const KEEP_NAMESPACE: &str = "namespace.gardener.cloud/keep-after-project-deletion";
    /// The type of a ControllerDeployment that only v1beta1 knows.
    pub const CONTROLLER_DEPLOYMENT_TYPE: &str = "migration.controllerdeployment.gardener.cloud/type";
    /// The configuration of a ControllerDeployment that only v1beta1 knows.
    pub const CONTROLLER_DEPLOYMENT_PROVIDER_CONFIG: &str =
        "migration.controllerdeployment.gardener.cloud/providerConfig";
}

/// Labels.
pub mod label {
    /// On definitions in seeds that are deleted only when that was confirmed: `true` [EXT-130].
    pub const DELETION_PROTECTED: &str = "gardener.cloud/deletion-protected";
    /// The role of an object.
    pub const ROLE: &str = "gardener.cloud/role";
    /// The purpose of a secret.
    pub const PURPOSE: &str = "gardener.cloud/purpose";
    /// The name of the project, on its namespace.
    pub const PROJECT_NAME: &str = "project.gardener.cloud/name";
    /// The summary of a shoot's health.
    pub const SHOOT_STATUS: &str = "shoot.gardener.cloud/status";
    /// Set on shoots that run their own control plane.
    pub const SHOOT_SELF_HOSTED: &str = "shoot.gardener.cloud/self-hosted";
    /// What labels of credentials begin with that tell for which provider they are; the provider's type follows, and the value is `true`.
    pub const SHOOT_PROVIDER_PREFIX: &str = "provider.shoot.gardener.cloud/";
    /// A seed's provider.
    pub const SEED_PROVIDER: &str = "seed.gardener.cloud/provider";
    /// A seed's region.
    pub const SEED_REGION: &str = "seed.gardener.cloud/region";
    /// Set on seeds that are self-hosted shoots.
    pub const SEED_SELF_HOSTED: &str = "seed.gardener.cloud/self-hosted-shoot-cluster";
    /// Prefix of the labels that name an object's seeds: `name.seed.gardener.cloud/<seed>=true`.
    pub const SEED_NAME_PREFIX: &str = "name.seed.gardener.cloud/";
    /// Prefix of provider type labels.
    pub const EXTENSION_PROVIDER_PREFIX: &str = "provider.extensions.gardener.cloud/";
    /// Prefix of extension type labels.
    pub const EXTENSION_EXTENSION_PREFIX: &str = "extensions.extensions.gardener.cloud/";
    /// Prefix of container runtime type labels.
    pub const EXTENSION_CONTAINER_RUNTIME_PREFIX: &str = "containerruntime.extensions.gardener.cloud/";
    /// Prefix of DNS provider type labels.
    pub const EXTENSION_DNS_RECORD_PREFIX: &str = "dnsrecord.extensions.gardener.cloud/";
    /// Prefix of labels that name the types of self-hosted shoots' exposures.
    pub const EXTENSION_SELF_HOSTED_SHOOT_EXPOSURE_PREFIX: &str = "selfhostedshootexposure.extensions.gardener.cloud/";
    /// Prefix of networking type labels.
    pub const EXTENSION_NETWORKING_PREFIX: &str = "networking.extensions.gardener.cloud/";
    /// Prefix of operating system type labels.
    pub const EXTENSION_OPERATING_SYSTEM_CONFIG_PREFIX: &str = "operatingsystemconfig.extensions.gardener.cloud/";
    /// What a ConfigMap is to scheduling: `region-config` has distances between regions.
    pub const SCHEDULING_PURPOSE: &str = "scheduling.gardener.cloud/purpose";
    /// Only seeds and shoots may write objects with this label.
    pub const UPDATE_RESTRICTION: &str = "gardener.cloud/update-restriction";
    /// Allows system components on a pool's nodes.
    pub const WORKER_SYSTEM_COMPONENTS: &str = "worker.gardener.cloud/system-components";
    /// A node's pool.
    pub const WORKER_POOL: &str = "worker.gardener.cloud/pool";
}

/// Values of label [`label::ROLE`].
pub mod role {
    /// Credentials of a default domain.
    pub const DEFAULT_DOMAIN: &str = "default-domain";
    /// Credentials of the internal domain.
    pub const INTERNAL_DOMAIN: &str = "internal-domain";
    /// Configuration of the managed issuer.
    pub const SHOOT_SERVICE_ACCOUNT_ISSUER: &str = "shoot-service-account-issuer";
    /// On project namespaces.
    pub const PROJECT: &str = "project";
    /// Names of the cluster CA's objects in the project namespace.
    pub const CA_CLUSTER: &str = "ca-cluster";
    /// The client CA's InternalSecret in the project namespace.
    pub const CA_CLIENT: &str = "ca-client";
}

/// Values of annotation [`annotation::OPERATION`], [GAPI-32], [GAPI-34].
pub mod operation {
    /// Reconcile now.
    pub const RECONCILE: &str = "reconcile";
    /// Start again after a failure.
    pub const RETRY: &str = "retry";
    /// Do maintenance now.
    pub const MAINTAIN: &str = "maintain";
    /// Write the state for another seed and give up control.
    pub const MIGRATE: &str = "migrate";
    /// Take over with the written state.
    pub const RESTORE: &str = "restore";
    /// A bastion is still used.
    pub const KEEPALIVE: &str = "keepalive";
    /// Let the gardenlet ask for a new client certificate.
    pub const RENEW_KUBECONFIG: &str = "renew-kubeconfig";
    /// On the Secret with a gardenlet's kubeconfig: ask for a new client certificate now.
    pub const RENEW: &str = "renew";
    /// Update in place although an update is pending.
    pub const FORCE_IN_PLACE_UPDATE: &str = "force-in-place-update";
    /// Start the rotation of all credentials.
    pub const ROTATE_CREDENTIALS_START: &str = "rotate-credentials-start";
    /// The same, workers follow by hand.
    pub const ROTATE_CREDENTIALS_START_WITHOUT_WORKERS_ROLLOUT: &str =
        "rotate-credentials-start-without-workers-rollout";
    /// Complete the rotation of all credentials.
    pub const ROTATE_CREDENTIALS_COMPLETE: &str = "rotate-credentials-complete";
    /// Start the rotation of the certificate authorities.
    pub const ROTATE_CA_START: &str = "rotate-ca-start";
    /// The same, workers follow by hand.
    pub const ROTATE_CA_START_WITHOUT_WORKERS_ROLLOUT: &str = "rotate-ca-start-without-workers-rollout";
    /// Complete the rotation of the certificate authorities.
    pub const ROTATE_CA_COMPLETE: &str = "rotate-ca-complete";
    /// Start the rotation of the service account signing key.
    pub const ROTATE_SERVICE_ACCOUNT_KEY_START: &str = "rotate-serviceaccount-key-start";
    /// The same, workers follow by hand.
    pub const ROTATE_SERVICE_ACCOUNT_KEY_START_WITHOUT_WORKERS_ROLLOUT: &str =
        "rotate-serviceaccount-key-start-without-workers-rollout";
    /// Complete the rotation of the service account signing key.
    pub const ROTATE_SERVICE_ACCOUNT_KEY_COMPLETE: &str = "rotate-serviceaccount-key-complete";
    /// Rotate the etcd encryption key in one go.
    pub const ROTATE_ETCD_ENCRYPTION_KEY: &str = "rotate-etcd-encryption-key";
    /// Start the rotation of the etcd encryption key.
    pub const ROTATE_ETCD_ENCRYPTION_KEY_START: &str = "rotate-etcd-encryption-key-start";
    /// Complete the rotation of the etcd encryption key.
    pub const ROTATE_ETCD_ENCRYPTION_KEY_COMPLETE: &str = "rotate-etcd-encryption-key-complete";
    /// Rotate the passwords of the observability stack.
    pub const ROTATE_OBSERVABILITY_CREDENTIALS: &str = "rotate-observability-credentials";
    /// Rotate the SSH key pair of the nodes.
    pub const ROTATE_SSH_KEYPAIR: &str = "rotate-ssh-keypair";
    /// Prefix: roll out the named pools that wait during a rotation.
    pub const ROTATE_ROLLOUT_WORKERS: &str = "rotate-rollout-workers";
    /// Prefix: roll out the named pools.
    pub const ROLLOUT_WORKERS: &str = "rollout-workers";
}

/// Values of annotation [`annotation::SHOOT_TASKS`], [DEF-51].
pub mod task {
    /// Reconcile the Infrastructure.
    pub const DEPLOY_INFRASTRUCTURE: &str = "deployInfrastructure";
    /// Reconcile the DNSRecord of the internal domain.
    pub const DEPLOY_DNS_RECORD_INTERNAL: &str = "deployDNSRecordInternal";
    /// Reconcile the DNSRecord of the external domain.
    pub const DEPLOY_DNS_RECORD_EXTERNAL: &str = "deployDNSRecordExternal";
    /// Reconcile the DNSRecord of the ingress domain.
    pub const DEPLOY_DNS_RECORD_INGRESS: &str = "deployDNSRecordIngress";
    /// Restart the pods of the control plane.
    pub const RESTART_CONTROL_PLANE_PODS: &str = "restartControlPlanePods";
    /// Restart core addons in the shoot.
    pub const RESTART_CORE_ADDONS: &str = "restartCoreAddons";
    /// All tasks that are written on creation, in their order.
    pub const ALL: [&str; 4] = [
        DEPLOY_INFRASTRUCTURE,
        DEPLOY_DNS_RECORD_INTERNAL,
        DEPLOY_DNS_RECORD_EXTERNAL,
        DEPLOY_DNS_RECORD_INGRESS,
    ];
}

/// Taints of seeds.
pub mod seed_taint {
    /// Only shoots that tolerate it go to such a seed.
    pub const PROTECTED: &str = "seed.gardener.cloud/protected";
}

/// Taint that keeps pods from nodes until the critical components run.
pub const TAINT_CRITICAL_COMPONENTS_NOT_READY: &str = "node.gardener.cloud/critical-components-not-ready";

/// Groups of users, [GAPI-63], [AUTH-1].
pub mod group {
    /// All gardenlets.
    pub const SEEDS: &str = "gardener.cloud:system:seeds";
    /// All gardenlets of self-hosted shoots.
    pub const SHOOTS: &str = "gardener.cloud:system:shoots";
    /// Gardener administrators with administrator's rights in a shoot.
    pub const SYSTEM_ADMINS: &str = "gardener.cloud:system:admins";
    /// Project members with administrator's rights in a shoot.
    pub const PROJECT_ADMINS: &str = "gardener.cloud:project:admins";
    /// Gardener administrators with read access to a shoot.
    pub const SYSTEM_VIEWERS: &str = "gardener.cloud:system:viewers";
    /// Project members with read access to a shoot.
    pub const PROJECT_VIEWERS: &str = "gardener.cloud:project:viewers";
}

/// Names of advertised addresses, [GAPI-61].
pub mod advertised_address {
    /// By the external domain.
    pub const EXTERNAL: &str = "external";
    /// By the internal domain.
    pub const INTERNAL: &str = "internal";
    /// By the seed's wildcard certificate.
    pub const WILDCARD_TLS_SEED_BOUND: &str = "wildcard-tls-seed-bound";
    /// Without DNS.
    pub const UNMANAGED: &str = "unmanaged";
    /// The service account issuer.
    pub const SERVICE_ACCOUNT_ISSUER: &str = "service-account-issuer";
}
