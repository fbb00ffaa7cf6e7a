//! Machines: how pools become machine deployments, how deployments roll, which machines go first, when one counts as failed.

pub mod deletion;
pub mod health;
pub mod node_limit;
pub mod pools;
pub mod rollout;

/// `status.currentStatus.phase` of a machine [MCH-5].
pub mod phase {
    /// It exists or is made; its node has not joined.
    pub const PENDING: &str = "Pending";
    /// It exists; there is no cluster to join.
    pub const AVAILABLE: &str = "Available";
    /// Its node is ready.
    pub const RUNNING: &str = "Running";
    /// Its node was ready, and is not or is gone.
    pub const UNKNOWN: &str = "Unknown";
    /// Creation or health took too long.
    pub const FAILED: &str = "Failed";
    /// It cannot be made.
    pub const CRASH_LOOP_BACK_OFF: &str = "CrashLoopBackOff";
    /// It goes.
    pub const TERMINATING: &str = "Terminating";
}

/// Well-known keys [MCH-13].
pub mod key {
    /// Label of machines: the node's name.
    pub const NODE: &str = "node";
    /// Label of machines, sets and deployments: the deployment's name.
    pub const NAME: &str = "name";
    /// Label of sets and machines: which template they come from.
    pub const TEMPLATE_HASH: &str = "machine-template-hash";
    /// Label of machines: no graceful drain.
    pub const FORCE_DELETION: &str = "force-deletion";
    /// Label of sets and deployments: no machine is created.
    pub const FREEZE: &str = "freeze";
    /// Label of sets: no machine is created.
    pub const SCALE_UP_DISABLED: &str = "node.machine.sapcloud.io/scale-up-disabled";
    /// Label of machines and nodes: how an update in place ended.
    pub const UPDATE_RESULT: &str = "node.machine.sapcloud.io/update-result";
    /// Annotation of machines: lower goes first.
    pub const PRIORITY: &str = "machinepriority.machine.sapcloud.io";
    /// Annotation of machines: since when the autoscaler wants it gone.
    pub const MARKED_FOR_DELETION: &str = "machine.sapcloud.io/marked-for-deletion-time";
    /// Annotation of deployments and sets: when the autoscaler last changed the replicas.
    pub const SCALED_AT: &str = "machine.sapcloud.io/last-deployment-replica-change-by-scaler-time";
    /// Annotation of deployments: which machines the autoscaler wants gone.
    pub const TRIGGER_DELETION: &str = "node.machine.sapcloud.io/trigger-deletion-by-mcm";
    /// Annotation of machines and nodes: whether a failed machine is kept.
    pub const PRESERVE: &str = "node.machine.sapcloud.io/preserve";
    /// Annotation of sets: the deployment's replicas when it was last visited.
    pub const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
    /// Annotation of sets: the deployment's replicas with surge when it was last visited.
    pub const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";
    /// Annotation of sets: the number of the rollout.
    pub const REVISION: &str = "deployment.kubernetes.io/revision";
    /// Taint of nodes of old sets, and annotation of those sets.
    pub const PREFER_NO_SCHEDULE: &str = "deployment.machine.sapcloud.io/prefer-no-schedule";
    /// Label of nodes: the machine's name.
    pub const MACHINE_NAME: &str = "node.gardener.cloud/machine-name";
    /// Annotation of nodes: what of the node template was applied.
    pub const LAST_APPLIED: &str = "node.machine.sapcloud.io/last-applied-anno-labels-taints";
}

/// The finalizer of machines, sets and deployments [MCH-3].
pub const FINALIZER: &str = "machine.sapcloud.io/machine-controller-manager";
/// The finalizer of machine classes and their credentials [MCH-3].
pub const CLASS_FINALIZER: &str = "machine.sapcloud.io/machine-controller";
