//! The kinds whose objects make edges: where they are, and what of an object the edges need.

use crate::objects;
use crate::vertex::Kind;

/// The kinds whose objects make edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // the kinds' own names
pub enum Source {
    BackupBucket,
    BackupEntry,
    Bastion,
    CertificateSigningRequest,
    ControllerDeployment,
    ControllerInstallation,
    CredentialsBinding,
    Gardenlet,
    ManagedSeed,
    Project,
    SecretBinding,
    Seed,
    ServiceAccount,
    Shoot,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::BackupBucket,
        Self::BackupEntry,
        Self::Bastion,
        Self::CertificateSigningRequest,
        Self::ControllerDeployment,
        Self::ControllerInstallation,
        Self::CredentialsBinding,
        Self::Gardenlet,
        Self::ManagedSeed,
        Self::Project,
        Self::SecretBinding,
        Self::Seed,
        Self::ServiceAccount,
        Self::Shoot,
    ];

    /// Group and resource.
    pub fn resource(self) -> (&'static str, &'static str) {
        const CORE: &str = "core.gardener.cloud";
        match self {
            Self::BackupBucket => (CORE, "backupbuckets"),
            Self::BackupEntry => (CORE, "backupentries"),
            Self::Bastion => ("operations.gardener.cloud", "bastions"),
            Self::CertificateSigningRequest => ("certificates.k8s.io", "certificatesigningrequests"),
            Self::ControllerDeployment => (CORE, "controllerdeployments"),
            Self::ControllerInstallation => (CORE, "controllerinstallations"),
            Self::CredentialsBinding => ("security.gardener.cloud", "credentialsbindings"),
            Self::Gardenlet => ("seedmanagement.gardener.cloud", "gardenlets"),
            Self::ManagedSeed => ("seedmanagement.gardener.cloud", "managedseeds"),
            Self::Project => (CORE, "projects"),
            Self::SecretBinding => (CORE, "secretbindings"),
            Self::Seed => (CORE, "seeds"),
            Self::ServiceAccount => ("", "serviceaccounts"),
            Self::Shoot => (CORE, "shoots"),
        }
    }
}

/// What is the same for each kind.
macro_rules! kinds {
    ($($kind:ident),* $(,)?) => {
        /// An object, as much of it as its edges need.
        #[derive(Debug)]
        pub struct Object(Read);

        #[derive(Debug)]
        enum Read {
            $($kind(objects::$kind),)*
        }

        impl Source {
            /// An object from its JSON; none if it cannot be read. This is what takes time when a garden is large: it can be done on several threads.
            pub fn read(self, json: &[u8]) -> Option<Object> {
                let read = match self {
                    $(Self::$kind => Read::$kind(serde_json::from_slice(json).ok()?),)*
                };
                Some(Object(read))
            }

            pub(crate) fn kind(self) -> Kind {
                match self {
                    $(Self::$kind => Kind::$kind,)*
                }
            }
        }

        $(impl Of for objects::$kind {
            fn of(object: Object) -> Option<Self> {
                match object.0 {
                    Read::$kind(read) => Some(read),
                    _ => None,
                }
            }
        })*
    };
}

/// A kind's own object; none if it is of another kind.
pub(crate) trait Of: Sized {
    fn of(object: Object) -> Option<Self>;
}

kinds!(
    BackupBucket,
    BackupEntry,
    Bastion,
    CertificateSigningRequest,
    ControllerDeployment,
    ControllerInstallation,
    CredentialsBinding,
    Gardenlet,
    ManagedSeed,
    Project,
    SecretBinding,
    Seed,
    ServiceAccount,
    Shoot,
);
