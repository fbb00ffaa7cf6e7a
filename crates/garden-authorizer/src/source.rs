//! The kinds whose objects make edges: where they are, and what of an object the edges need.

use crate::objects;
use crate::vertex::Kind;

/// All that follows from the kinds' names and from where they are.
macro_rules! kinds {
    ($($kind:ident => ($group:literal, $resource:literal)),* $(,)?) => {
        /// The kinds whose objects make edges.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs)] // the kinds' own names
        pub enum Source {
            $($kind,)*
        }

        /// An object, as much of it as its edges need.
        #[derive(Debug)]
        pub struct Object(Read);

        #[derive(Debug)]
        enum Read {
            $($kind(objects::$kind),)*
        }

        impl Source {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$kind),*];

            /// Group and resource.
            pub fn resource(self) -> (&'static str, &'static str) {
                match self {
                    $(Self::$kind => ($group, $resource),)*
                }
            }

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
    BackupBucket => ("core.gardener.cloud", "backupbuckets"),
    BackupEntry => ("core.gardener.cloud", "backupentries"),
    Bastion => ("operations.gardener.cloud", "bastions"),
    CertificateSigningRequest => ("certificates.k8s.io", "certificatesigningrequests"),
    ControllerDeployment => ("core.gardener.cloud", "controllerdeployments"),
    ControllerInstallation => ("core.gardener.cloud", "controllerinstallations"),
    CredentialsBinding => ("security.gardener.cloud", "credentialsbindings"),
    Gardenlet => ("seedmanagement.gardener.cloud", "gardenlets"),
    ManagedSeed => ("seedmanagement.gardener.cloud", "managedseeds"),
    Project => ("core.gardener.cloud", "projects"),
    SecretBinding => ("core.gardener.cloud", "secretbindings"),
    Seed => ("core.gardener.cloud", "seeds"),
    ServiceAccount => ("", "serviceaccounts"),
    Shoot => ("core.gardener.cloud", "shoots"),
);
