//! Vertices of the graph: objects by kind, namespace and name.

/// The kinds that stand in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the kinds' own names
pub enum Kind {
    BackupBucket,
    BackupEntry,
    Bastion,
    CertificateSigningRequest,
    CloudProfile,
    ClusterRoleBinding,
    ConfigMap,
    ControllerDeployment,
    ControllerInstallation,
    ControllerRegistration,
    CredentialsBinding,
    ExposureClass,
    Gardenlet,
    InternalSecret,
    Lease,
    ManagedSeed,
    Namespace,
    NamespacedCloudProfile,
    Project,
    Secret,
    SecretBinding,
    Seed,
    ServiceAccount,
    Shoot,
    ShootState,
    WorkloadIdentity,
}

impl Kind {
    /// How many kinds there are.
    pub(crate) const COUNT: usize = Self::WorkloadIdentity as usize + 1;

    /// Edges lead to a higher rank, but for those from and to the kind in which a graph's paths end. So a graph has no cycle but through those.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Self::CertificateSigningRequest
            | Self::CloudProfile
            | Self::ClusterRoleBinding
            | Self::ConfigMap
            | Self::ControllerRegistration
            | Self::ExposureClass
            | Self::InternalSecret
            | Self::Lease
            | Self::NamespacedCloudProfile
            | Self::Project
            | Self::Secret
            | Self::ShootState
            | Self::WorkloadIdentity => 0,
            Self::BackupBucket
            | Self::Bastion
            | Self::ControllerDeployment
            | Self::CredentialsBinding
            | Self::Namespace
            | Self::SecretBinding
            | Self::ServiceAccount => 1,
            Self::BackupEntry | Self::ControllerInstallation => 2,
            Self::Gardenlet => 3,
            Self::Seed => 4,
            Self::ManagedSeed => 5,
            Self::Shoot => 6,
        }
    }
}

/// An object, whether it exists or is only named by others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vertex {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace; empty for cluster-scoped kinds.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

impl Vertex {
    /// A vertex of a namespaced kind.
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// A vertex of a cluster-scoped kind.
    pub fn global(kind: Kind, name: &str) -> Self {
        Self::new(kind, "", name)
    }
}

impl std::fmt::Display for Vertex {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        write!(out, "{:?}:{}{slash}{}", self.kind, self.namespace, self.name)
    }
}
