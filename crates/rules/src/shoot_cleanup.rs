//! What is removed from a shoot before its nodes and its infrastructure go, so that nothing outlives it which costs money [CLN-1]. Which objects
//! those are, how they are asked to go, and when they are made to; not how they are found.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

/// A kind that is cleaned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its group; empty for the core group.
    pub group: &'static str,
    /// Its version.
    pub version: &'static str,
    /// Its name.
    pub kind: &'static str,
    /// Its name in paths.
    pub plural: &'static str,
}

const fn kind(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Kind {
    Kind {
        group,
        version,
        kind,
        plural,
    }
}

const ADMISSION: &str = "admissionregistration.k8s.io";
const SNAPSHOTS: &str = "snapshot.storage.k8s.io";
/// Volumes that are attached to nodes: once those are gone, nobody detaches them any more [CP-120].
pub const VOLUME_ATTACHMENTS: Kind = kind("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments");

/// What may be asked before anything else goes.
const WEBHOOKS: &[Kind] = &[
    kind(
        ADMISSION,
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
    ),
    kind(
        ADMISSION,
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    ),
];
const EXTENDED_APIS: &[Kind] = &[
    kind("apiregistration.k8s.io", "v1", "APIService", "apiservices"),
    kind(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    ),
];
const RESOURCES: &[Kind] = &[
    kind("batch", "v1", "CronJob", "cronjobs"),
    kind("apps", "v1", "DaemonSet", "daemonsets"),
    kind("apps", "v1", "Deployment", "deployments"),
    kind("networking.k8s.io", "v1", "Ingress", "ingresses"),
    kind("batch", "v1", "Job", "jobs"),
    kind("", "v1", "Pod", "pods"),
    kind("apps", "v1", "ReplicaSet", "replicasets"),
    kind("", "v1", "ReplicationController", "replicationcontrollers"),
    kind("", "v1", "Service", "services"),
    kind("apps", "v1", "StatefulSet", "statefulsets"),
    kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
];
/// What is still cleaned where the owner asked for no cleaning: it stands for something outside of the cluster.
const COSTLY_RESOURCES: &[Kind] = &[
    kind("", "v1", "Service", "services"),
    kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
];
const SNAPSHOT_KINDS: &[Kind] = &[
    kind(SNAPSHOTS, "v1", "VolumeSnapshot", "volumesnapshots"),
    kind(SNAPSHOTS, "v1", "VolumeSnapshotContent", "volumesnapshotcontents"),
];

impl Kind {
    /// The labels by which those of a kind are chosen that are cleaned [CLN-6].
    pub fn selector(&self) -> &'static str {
        match self.kind {
            "APIService" => "gardener.cloud/role!=system-component,!kube-aggregator.kubernetes.io/automanaged",
            "Service" => {
                "provider!=kubernetes,gardener.cloud/role!=system-component,shoot.gardener.cloud/no-cleanup!=true"
            }
            _ => "gardener.cloud/role!=system-component,shoot.gardener.cloud/no-cleanup!=true",
        }
    }

    /// The kind as it is told of an object that is left [CLN-15].
    pub fn shown(&self) -> String {
        format!("{}/{}, Kind={}", self.group, self.version, self.kind)
    }
}

/// A step of the cleaning; they follow each other [CLN-2].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Webhooks, which could keep everything else from going.
    Webhooks,
    /// APIs that came by definitions and services, and so what was made of them.
    ExtendedApis,
    /// Workload, and what stands for something outside of the cluster.
    Resources,
    /// Snapshots of volumes; they go with the resources, but take their time.
    Snapshots,
}

impl Step {
    /// The kinds of a step; fewer of them where the owner asked for no cleaning [CLN-23].
    pub fn kinds(self, skips_cleanup: bool) -> &'static [Kind] {
        match (self, skips_cleanup) {
            (Self::Webhooks, _) => WEBHOOKS,
            (Self::ExtendedApis, true) => &[],
            (Self::ExtendedApis, false) => EXTENDED_APIS,
            (Self::Resources, true) => COSTLY_RESOURCES,
            (Self::Resources, false) => RESOURCES,
            (Self::Snapshots, _) => SNAPSHOT_KINDS,
        }
    }

    /// Its annotation on the shoot, seconds after which objects are made to go, and which part of those they get to go by themselves [CLN-19].
    fn settings(self) -> (&'static str, i64, f64) {
        match self {
            Self::Webhooks => (
                "shoot.gardener.cloud/cleanup-webhooks-finalize-grace-period-seconds",
                300,
                1.0,
            ),
            Self::ExtendedApis => (
                "shoot.gardener.cloud/cleanup-extended-apis-finalize-grace-period-seconds",
                3600,
                0.1,
            ),
            Self::Resources => (RESOURCES_ANNOTATION, 300, 1.0),
            Self::Snapshots => (RESOURCES_ANNOTATION, 3600, 0.5),
        }
    }
}

const RESOURCES_ANNOTATION: &str = "shoot.gardener.cloud/cleanup-kubernetes-resources-finalize-grace-period-seconds";
/// Where the control plane's namespace tells when the cleaning of resources began.
pub const START_ANNOTATION: &str = "shoot.gardener.cloud/cleanup-kubernetes-resources-start-time";
/// Seconds that an object gets to go by itself unless the owner says otherwise.
const GRACE: i64 = 300;

/// How objects of a step are asked to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Seconds that the deletion gives them.
    pub grace_period_seconds: u32,
    /// How long after the time of their deletion their finalizers are taken away.
    pub finalize_after: SignedDuration,
}

impl Manner {
    /// At once, with as much time for finalizers as anything has.
    pub const AT_ONCE: Self = Self {
        grace_period_seconds: 0,
        finalize_after: SignedDuration::from_secs(GRACE),
    };
}

fn seconds_of(annotations: &BTreeMap<String, String>, key: &str) -> Result<Option<i64>, String> {
    let parse = |text: &String| {
        let number = text.parse::<i64>();
        number.map_err(|_| format!("annotation {key} must be a number of seconds, but is {text:?}"))
    };
    annotations.get(key).map(parse).transpose()
}

/// How the objects of a step are asked to go; the owner's annotations can only make it shorter [CLN-20].
///
/// # Errors
/// The annotation is no whole number.
pub fn manner(step: Step, annotations: &BTreeMap<String, String>) -> Result<Manner, String> {
    let (key, default, factor) = step.settings();
    let wish = seconds_of(annotations, key)?.filter(|seconds| *seconds < default);
    let (grace, after) = match wish.map(|seconds| seconds.max(0)) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "below an hour"
        )]
        Some(seconds) => ((seconds as f64 * factor) as i64, seconds),
        None => (GRACE, default),
    };
    Ok(Manner {
        grace_period_seconds: u32::try_from(grace).unwrap_or_default(),
        finalize_after: SignedDuration::from_secs(after),
    })
}

/// From when on objects that are new do not count any more: who makes them anew would keep the shoot for ever [CLN-17].
///
/// # Errors
/// The annotation is no whole number.
pub fn too_new(start: Timestamp, annotations: &BTreeMap<String, String>) -> Result<Timestamp, String> {
    let seconds = seconds_of(annotations, RESOURCES_ANNOTATION)?.unwrap_or(GRACE);
    Ok(start
        .saturating_add(SignedDuration::from_secs(seconds))
        .unwrap_or(start))
}

/// What is to be done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It is asked to go.
    Delete,
    /// Its finalizers are taken away.
    Finalize,
    /// It goes by itself, or has time for that.
    Wait,
}

/// What is to be done with an object that was asked to go at some time, or not yet [CLN-10].
pub fn act(deleted_at: Option<Timestamp>, has_finalizers: bool, manner: Manner, now: Timestamp) -> Act {
    let Some(deleted_at) = deleted_at else {
        return Act::Delete;
    };
    match now.duration_since(deleted_at) > manner.finalize_after && has_finalizers {
        true => Act::Finalize,
        false => Act::Wait,
    }
}

/// What is known of an object that is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Its namespace, if its kind has them.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created_at: Option<Timestamp>,
}

/// Whether an object that is still there does not count: its namespace is gone, or it was made too late [CLN-17].
pub fn is_ignored(left: &Left, namespaces: &[String], too_new: Timestamp) -> bool {
    let is_orphan = left.namespace.as_ref().is_some_and(|own| !namespaces.contains(own));
    is_orphan || left.created_at.is_some_and(|created| created > too_new)
}

/// What is told of objects of a kind that are left [CLN-15].
pub fn remaining(kind: &Kind, left: &[Left]) -> String {
    let shown: Vec<String> = left
        .iter()
        .map(|own| {
            format!(
                "{} {}/{}",
                kind.shown(),
                own.namespace.as_deref().unwrap_or_default(),
                own.name
            )
        })
        .collect();
    format!("remaining objects are still present: [{}]", shown.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let prefix = "shoot.gardener.cloud/cleanup-";
        let own = |(key, value): &(&str, &str)| {
            (
                format!("{prefix}{key}-finalize-grace-period-seconds"),
                (*value).to_owned(),
            )
        };
        pairs.iter().map(own).collect()
    }

    #[test]
    fn cln_19_20_owners_only_shorten() {
        let is = |step, pairs: &[(&str, &str)], grace, after| {
            let found = manner(step, &annotations(pairs)).unwrap();
            let found = (found.grace_period_seconds, found.finalize_after.as_secs());
            assert_eq!(found, (grace, after), "{step:?} {pairs:?}");
        };
        is(Step::Webhooks, &[], 300, 300);
        is(Step::Webhooks, &[("webhooks", "60")], 60, 60);
        is(Step::ExtendedApis, &[], 300, 3600);
        is(Step::ExtendedApis, &[("extended-apis", "600")], 60, 600);
        is(Step::Resources, &[("kubernetes-resources", "600")], 300, 300);
        is(Step::Snapshots, &[("kubernetes-resources", "600")], 300, 600);
        is(Step::Resources, &[("kubernetes-resources", "0")], 0, 0);
        is(Step::Resources, &[("kubernetes-resources", "-5")], 0, 0);
        assert!(manner(Step::Resources, &annotations(&[("kubernetes-resources", "5m")])).is_err());
    }

    #[test]
    fn cln_10_when_objects_are_made_to_go() {
        let manner = manner(Step::Resources, &BTreeMap::new()).unwrap();
        let deleted: Timestamp = "2026-05-01T10:00:00Z".parse().unwrap();
        let after = |seconds| deleted + SignedDuration::from_secs(seconds);
        for (deleted_at, has_finalizers, now, expected) in [
            (None, true, after(0), Act::Delete),
            (Some(deleted), true, after(300), Act::Wait),
            (Some(deleted), true, after(301), Act::Finalize),
            (Some(deleted), false, after(301), Act::Wait),
        ] {
            assert_eq!(act(deleted_at, has_finalizers, manner, now), expected, "{now}");
        }
    }

    #[test]
    fn cln_15_17_what_is_left() {
        let start: Timestamp = "2026-05-01T10:00:00Z".parse().unwrap();
        let left = |namespace: &str, seconds| Left {
            namespace: Some(namespace.to_owned()).filter(|own| !own.is_empty()),
            name: "a".to_owned(),
            created_at: Some(start + SignedDuration::from_secs(seconds)),
        };
        let limit = too_new(start, &BTreeMap::new()).unwrap();
        let namespaces = ["default".to_owned()];
        for (left, ignored) in [
            (left("default", 0), false),
            (left("default", 301), true),
            (left("gone", 0), true),
            (left("", 0), false),
        ] {
            assert_eq!(is_ignored(&left, &namespaces, limit), ignored, "{left:?}");
        }
        let pod = kind("", "v1", "Pod", "pods");
        let told = remaining(&pod, &[left("default", 0), left("", 0)]);
        assert_eq!(
            told,
            "remaining objects are still present: [/v1, Kind=Pod default/a /v1, Kind=Pod /a]"
        );
    }

    #[test]
    fn cln_23_without_cleanup_only_what_costs_money_goes() {
        assert!(Step::ExtendedApis.kinds(true).is_empty() && Step::Webhooks.kinds(true).len() == 2);
        let kinds = Step::Resources.kinds(true).iter().map(|kind| kind.kind);
        assert_eq!(kinds.collect::<Vec<_>>(), ["Service", "PersistentVolumeClaim"]);
        assert_eq!(Step::Resources.kinds(false).len(), 11);
    }
}
