//! What the controllers share while they run: the garden, its informers, and how a controller is made.

use std::fmt::Debug;
use std::time::Duration;

use gardener_controller::events::Recorder;
use gardener_controller::informer::Watched;
use gardener_controller::{Controller, Informer, Informers, Queue, apply};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::jiff::Timestamp;
use kube::runtime::watcher;
use kube::{Api, Resource};
use tokio_util::sync::CancellationToken;

use crate::Config;

/// Why a reconciliation failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReconcileError {
    /// The garden refused.
    #[error("{}", gardener_controller::api_error(.0))]
    Api(#[from] kube::Error),
    /// The garden refused.
    #[error(transparent)]
    Apply(#[from] apply::ApplyError),
    /// Something else stands in the way; the words tell what.
    #[error("{0}")]
    Blocked(String),
}

impl ReconcileError {
    /// Whether the object is not there.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Api(error) => apply::is_not_found(error),
            Self::Apply(error) => error.is_not_found(),
            Self::Blocked(_) => false,
        }
    }
}

/// What the controllers share. Clones are handles on the same.
#[derive(Clone)]
pub(crate) struct Manager {
    pub config: Config,
    pub informers: Informers,
    pub stop: CancellationToken,
}

impl Manager {
    /// A manager whose informers watch as told, until `stop`.
    pub fn new(config: Config, watching: watcher::Config, stop: CancellationToken) -> Self {
        let informers = Informers::new(config.garden.clone(), watching, &stop);
        config.monitor.follows(Some(informers.clone()));
        Self {
            config,
            informers,
            stop,
        }
    }

    /// The informer of a kind.
    pub fn informer<K: Watched + Resource<DynamicType = ()>>(&self) -> Informer<K> {
        self.informers.of()
    }

    /// All objects of a kind.
    pub fn all<K: Resource<DynamicType = ()>>(&self) -> Api<K> {
        Api::all(self.config.garden.clone())
    }

    /// The objects of a kind in a namespace.
    pub fn within<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.config.garden.clone(), namespace)
    }

    /// A controller of this name that works on so many objects at once.
    pub fn controller<K>(&self, name: &'static str, concurrent_syncs: usize, queue: Queue<K>) -> Controller<K>
    where
        K: Ord + Clone + Debug + Send + Sync + 'static,
    {
        Controller::new(name, concurrent_syncs, queue).watched_by(&self.config.monitor)
    }

    /// What writes the events of a controller.
    pub fn recorder(&self, controller: &str) -> Recorder {
        let component = format!("{controller}-controller");
        Recorder::new(self.config.garden.clone(), self.config.clock.clone(), component)
    }
}

/// An object that may be gone: one that is, is none.
pub(crate) fn or_gone<T, E: Into<ReconcileError>>(read: Result<T, E>) -> Result<Option<T>, ReconcileError> {
    match read.map_err(Into::into) {
        Ok(object) => Ok(Some(object)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// How long it is until shortly after a time: what is due then is over.
pub(crate) fn until(time: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(time.duration_since(now)).unwrap_or_default() + Duration::from_millis(1)
}
