//! The two Etcd objects of a control plane [CP-40], [CP-64].

use serde_json::{Value, json};

use super::Cluster;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Everything but events.
    Main,
    /// Events.
    Events,
}

impl Role {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Main, Self::Events];

    /// `main` or `events`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Events => "events",
        }
    }

    /// The object's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Main => "etcd-main",
            Self::Events => "etcd-events",
        }
    }

    fn capacity(self) -> &'static str {
        match self {
            Self::Main => "25Gi",
            Self::Events => "10Gi",
        }
    }
}

/// Where backups go.
#[derive(Clone, Debug)]
pub struct Backup {
    /// The provider of the bucket.
    pub provider: String,
    /// The bucket.
    pub bucket: String,
    /// The prefix in the bucket.
    pub prefix: String,
}

/// The cron schedule of full snapshots: in the first hour of the maintenance window, at a minute that the UID chooses [CP-64].
pub fn snapshot_schedule(begin: &str, uid: &str) -> String {
    let digits = |from: usize| begin.get(from..from + 2).and_then(|text| text.parse::<u32>().ok());
    let (hour, minute) = (digits(0).unwrap_or(22), digits(2).unwrap_or(0));
    let sum: u32 = uid.bytes().map(u32::from).sum();
    let minutes = (hour * 60 + minute + sum % 60) % (24 * 60);
    format!("{} {} * * *", minutes % 60, minutes / 60)
}

/// An Etcd object.
pub fn etcd(cluster: &Cluster<'_>, role: Role, replicas: i32, backup: Option<&Backup>) -> Value {
    let labels = json!({
        "app": "etcd-statefulset", "role": role.as_str(), "gardener.cloud/role": "controlplane", "high-availability-config.resources.gardener.cloud/type": "server",
    });
    let secret = |config: &str| json!({"name": cluster.secret(config), "namespace": cluster.namespace});
    let bundle =
        |config: &str| json!({"name": cluster.secret(config), "namespace": cluster.namespace, "dataKey": "bundle.crt"});
    let window = cluster
        .shoot
        .spec
        .maintenance
        .as_ref()
        .and_then(|one| one.time_window.as_ref());
    let begin = window.map_or("220000+0000", |window| window.begin.as_str());
    let uid = cluster.shoot.metadata.uid.as_deref().unwrap_or_default();
    let schedule = snapshot_schedule(begin, uid);
    let mut store = json!({
        "port": 8080,
        "resources": {"requests": {"cpu": "10m", "memory": "40Mi"}},
        "garbageCollectionPolicy": "Exponential",
        "garbageCollectionPeriod": "12h",
        "etcdSnapshotTimeout": "15m",
        "compression": {"enabled": true, "policy": "gzip"},
        "leaderElection": {"etcdConnectionTimeout": "5s", "reelectionPeriod": "5s"},
        "tls": {
            "tlsCASecretRef": bundle("ca-etcd-bundle"),
            "serverTLSSecretRef": secret("etcd-server"),
            "clientTLSSecretRef": secret("etcd-client"),
        },
    });
    if let (Some(backup), Some(fields)) = (backup.filter(|_| role == Role::Main), store.as_object_mut()) {
        fields.insert(
            "store".to_owned(),
            json!({
                "provider": backup.provider,
                "container": backup.bucket,
                "prefix": format!("{}/etcd-{}", backup.prefix, role.as_str()),
                "secretRef": {"name": "etcd-backup", "namespace": cluster.namespace},
            }),
        );
        fields.insert("fullSnapshotSchedule".to_owned(), schedule.clone().into());
        fields.insert("deltaSnapshotPeriod".to_owned(), "5m".into());
        fields.insert("deltaSnapshotMemoryLimit".to_owned(), "100Mi".into());
    }
    let capacity = cluster
        .seed
        .spec
        .volume
        .as_ref()
        .and_then(|volume| volume.minimum_size.as_ref());
    let capacity = larger(role.capacity(), capacity.map(|minimum| minimum.0.as_str()));
    let mut etcd = json!({
        "metrics": "basic",
        "defragmentationSchedule": schedule,
        "quota": "8Gi",
        "clientPort": 2379, "serverPort": 2380, "wrapperPort": 9095,
        "resources": {"requests": {"cpu": "50m", "memory": "150Mi"}},
        "clientUrlTls": {
            "tlsCASecretRef": bundle("ca-etcd-bundle"),
            "serverTLSSecretRef": secret("etcd-server"),
            "clientTLSSecretRef": secret("etcd-client"),
        },
    });
    if let (true, Some(fields)) = (!cluster.failure_tolerance().is_empty(), etcd.as_object_mut()) {
        fields.insert(
            "peerUrlTls".to_owned(),
            json!({"tlsCASecretRef": bundle("ca-etcd-peer-bundle"), "serverTLSSecretRef": secret(&format!("etcd-peer-server-{}", role.as_str()))}),
        );
    }
    json!({
        "apiVersion": "druid.gardener.cloud/v1alpha1", "kind": "Etcd",
        "metadata": {"name": role.name(), "namespace": cluster.namespace, "labels": labels},
        "spec": {
            "replicas": replicas,
            "priorityClassName": "gardener-system-500",
            "labels": labels,
            "annotations": {},
            "selector": {"matchLabels": {"app": "etcd-statefulset", "role": role.as_str()}},
            "etcd": etcd,
            "backup": store,
            "sharedConfig": {"autoCompactionMode": "periodic", "autoCompactionRetention": "30m"},
            "storageCapacity": capacity,
            "volumeClaimTemplate": format!("{}-{}", role.as_str(), role.name()),
        },
    })
}

/// The larger of two sizes; the first if the second cannot be read.
fn larger(own: &str, minimum: Option<&str>) -> String {
    use gardener_apimachinery::quantity::Amount;
    let size = |text: &str| text.parse::<Amount>().ok();
    match minimum {
        Some(minimum) if size(minimum) > size(own) => minimum.to_owned(),
        _ => own.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cp_64_snapshots_begin_in_the_first_hour_of_the_window() {
        let table = [
            ("220000+0000", "", "0 22 * * *"),
            ("220000+0000", "\u{1}", "1 22 * * *"),
            ("233000+0000", "a", "7 0 * * *"),
            ("nonsense", "", "0 22 * * *"),
        ];
        for (begin, uid, expected) in table {
            assert_eq!(snapshot_schedule(begin, uid), expected, "{begin}");
        }
    }

    #[test]
    fn cp_64_a_seed_s_minimum_size_counts() {
        assert_eq!(larger("10Gi", Some("20Gi")), "20Gi");
        assert_eq!(larger("25Gi", Some("20Gi")), "25Gi");
        assert_eq!(larger("25Gi", None), "25Gi");
    }
}
