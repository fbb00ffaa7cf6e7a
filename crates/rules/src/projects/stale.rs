//! Projects that nobody uses any more [GCM-6].

use gardener_apis::core::v1beta1::{Project, ProjectStatus, SecretBinding, Shoot};
use gardener_apis::security::v1alpha1::CredentialsBinding;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// How long projects may be unused, in days.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// `minimumLifetimeDays`: how old a project, and how long ago its last activity must be.
    pub minimum_lifetime: i64,
    /// `staleGracePeriodDays`: how long it is stale until the date of its deletion is told.
    pub grace_period: i64,
    /// `staleExpirationTimeDays`: how long it is stale until it is deleted.
    pub expiration: i64,
}

fn after(time: Timestamp, days: i64) -> Timestamp {
    let days = SignedDuration::from_hours(days.saturating_mul(24).clamp(0, i64::from(i32::MAX)));
    time.saturating_add(days).unwrap_or(Timestamp::MAX)
}

/// Whether a project is too young, or was active too lately, to be stale.
pub fn is_fresh(project: &Project, patience: Patience, now: Timestamp) -> bool {
    let created = project.metadata.creation_timestamp.as_ref();
    let active = project.status.last_activity_timestamp.as_ref();
    let times = [created, active].into_iter().flatten();
    times
        .into_iter()
        .any(|time| after(time.0, patience.minimum_lifetime) > now)
}

/// Marks a project as one that is used.
pub fn mark_used(status: &mut ProjectStatus) {
    status.stale_since_timestamp = None;
    status.stale_auto_delete_timestamp = None;
}

/// Marks a project as one that is not used. The date of its deletion may move into the future, but never comes nearer, as long as it is told.
pub fn mark_stale(status: &mut ProjectStatus, patience: Patience, now: Timestamp) {
    let since = status.stale_since_timestamp.get_or_insert(Time(now)).0;
    if after(since, patience.grace_period) > now {
        status.stale_auto_delete_timestamp = None;
        return;
    }
    let date = after(since, patience.expiration);
    let known = status.stale_auto_delete_timestamp.as_ref().map(|time| time.0);
    if known.is_none_or(|known| date > known) {
        status.stale_auto_delete_timestamp = Some(Time(date));
    }
}

/// Whether the time of a stale project has come.
pub fn is_over(status: &ProjectStatus, now: Timestamp) -> bool {
    let date = status.stale_auto_delete_timestamp.as_ref();
    date.is_some_and(|date| now >= date.0)
}

/// What may be used of a namespace: names of objects of a kind that shoots reach through bindings.
#[derive(Clone, Copy, Debug)]
pub enum Offered<'a> {
    /// Secrets, through SecretBindings.
    Secrets(&'a [String]),
    /// Credentials of a version and kind, through CredentialsBindings.
    Credentials(&'a str, &'a str, &'a [String]),
    /// Quotas, through bindings of both kinds.
    Quotas(&'a [String]),
}

/// All bindings and shoots.
pub struct Users<'a, S, C, H> {
    /// The SecretBindings.
    pub secret_bindings: &'a [S],
    /// The CredentialsBindings.
    pub credentials_bindings: &'a [C],
    /// The shoots.
    pub shoots: &'a [H],
}

impl<S, C, H> Users<'_, S, C, H>
where
    S: AsRef<SecretBinding>,
    C: AsRef<CredentialsBinding>,
    H: AsRef<Shoot>,
{
    /// Whether a shoot, in whatever namespace, uses something of a namespace through a binding.
    pub fn use_of(&self, namespace: &str, offered: Offered<'_>) -> bool {
        let named = |names: &[String], name: Option<&String>| name.is_some_and(|name| names.contains(name));
        let quota = |names: &[String], quotas: &[ObjectReference]| {
            let mut quotas = quotas.iter();
            quotas.any(|own| own.namespace.as_deref() == Some(namespace) && named(names, own.name.as_ref()))
        };
        let by_secret = |own: &SecretBinding| match offered {
            Offered::Secrets(names) => {
                own.secret_ref.namespace.as_deref() == Some(namespace) && named(names, own.secret_ref.name.as_ref())
            }
            Offered::Credentials(..) => false,
            Offered::Quotas(names) => quota(names, &own.quotas),
        };
        let by_credentials = |own: &CredentialsBinding| match offered {
            Offered::Secrets(_) => false,
            Offered::Credentials(api_version, kind, names) => {
                let reference = &own.credentials_ref;
                reference.api_version.as_deref() == Some(api_version)
                    && reference.kind.as_deref() == Some(kind)
                    && reference.namespace.as_deref() == Some(namespace)
                    && named(names, reference.name.as_ref())
            }
            Offered::Quotas(names) => quota(names, &own.quotas),
        };
        let mut secret = self
            .secret_bindings
            .iter()
            .map(AsRef::as_ref)
            .filter(|own| by_secret(own));
        let mut credentials = self.credentials_bindings.iter().map(AsRef::as_ref);
        secret.any(|own| self.is_used(&own.metadata, |shoot| shoot.spec.secret_binding_name.as_ref()))
            || credentials.any(|own| {
                by_credentials(own) && self.is_used(&own.metadata, |shoot| shoot.spec.credentials_binding_name.as_ref())
            })
    }

    fn is_used(
        &self,
        binding: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
        of: impl Fn(&Shoot) -> Option<&String>,
    ) -> bool {
        let mut shoots = self.shoots.iter().map(AsRef::as_ref);
        shoots.any(|shoot| shoot.metadata.namespace == binding.namespace && of(shoot) == binding.name.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use serde_json::{Value, json};

    const PATIENCE: Patience = Patience {
        minimum_lifetime: 30,
        grace_period: 14,
        expiration: 90,
    };

    fn at(text: &str) -> Timestamp {
        format!("{text}T00:00:00Z").parse().unwrap()
    }

    #[test]
    fn gcm_6_young_and_active_projects_are_not_stale() {
        for (created, active, now, expected) in [
            ("2026-01-01", None, "2026-01-30", true),
            ("2026-01-01", None, "2026-01-31", false),
            ("2026-01-01", Some("2026-03-01"), "2026-03-30", true),
            ("2026-01-01", Some("2026-03-01"), "2026-03-31", false),
        ] {
            let mut project = Project::default();
            project.metadata.creation_timestamp = Some(Time(at(created)));
            project.status.last_activity_timestamp = active.map(|active| Time(at(active)));
            assert_eq!(
                is_fresh(&project, PATIENCE, at(now)),
                expected,
                "{created} {active:?} {now}"
            );
        }
    }

    #[test]
    fn gcm_6_the_date_of_deletion() {
        let mut status = ProjectStatus::default();
        let told = |status: &ProjectStatus| status.stale_auto_delete_timestamp.as_ref().map(|time| time.0);
        for (now, date, over) in [
            ("2026-01-01", None, false),
            ("2026-01-14", None, false),
            ("2026-01-15", Some("2026-04-01"), false),
            ("2026-03-31", Some("2026-04-01"), false),
            ("2026-04-01", Some("2026-04-01"), true),
        ] {
            mark_stale(&mut status, PATIENCE, at(now));
            assert_eq!(
                (told(&status), is_over(&status, at(now))),
                (date.map(at), over),
                "{now}"
            );
        }
        assert_eq!(status.stale_since_timestamp, Some(Time(at("2026-01-01"))));
        let shorter = Patience {
            expiration: 20,
            ..PATIENCE
        };
        mark_stale(&mut status, shorter, at("2026-02-01"));
        assert_eq!(told(&status), Some(at("2026-04-01")), "it does not come nearer");
        let longer = Patience {
            expiration: 120,
            ..PATIENCE
        };
        mark_stale(&mut status, longer, at("2026-02-01"));
        assert_eq!(told(&status), Some(at("2026-05-01")));
        mark_used(&mut status);
        assert_eq!(status, ProjectStatus::default());
    }

    #[test]
    fn gcm_6_what_counts_is_a_shoot_behind_a_binding() {
        let object = |fields: Value| fields;
        let quota = json!([{"namespace": "garden-p", "name": "q"}]);
        let secret: SecretBinding = serde_json::from_value(object(json!({
            "metadata": {"name": "s", "namespace": "garden-other"}, "secretRef": {"name": "a", "namespace": "garden-p"},
            "quotas": quota,
        })))
        .unwrap();
        let credentials: CredentialsBinding = serde_json::from_value(object(json!({
            "metadata": {"name": "c", "namespace": "garden-other"}, "provider": {"type": "x"}, "quotas": [],
            "credentialsRef": {"apiVersion": "security.gardener.cloud/v1alpha1", "kind": "WorkloadIdentity",
                "name": "w", "namespace": "garden-p"},
        })))
        .unwrap();
        let shoot = |namespace: &str, spec: Value| -> Arc<Shoot> {
            let shoot = json!({"metadata": {"name": "one", "namespace": namespace}, "spec": spec});
            Arc::new(serde_json::from_value(shoot).unwrap())
        };
        let names = |name: &str| vec![name.to_owned()];
        let (a, w, q) = (names("a"), names("w"), names("q"));
        let identity = |names| Offered::Credentials("security.gardener.cloud/v1alpha1", "WorkloadIdentity", names);
        let by_secret = shoot("garden-other", json!({"secretBindingName": "s"}));
        let by_credentials = shoot("garden-other", json!({"credentialsBindingName": "c"}));
        let elsewhere = shoot(
            "garden-p",
            json!({"secretBindingName": "s", "credentialsBindingName": "c"}),
        );
        for (shoot, offered, expected) in [
            (&by_secret, Offered::Secrets(&a), true),
            (&by_secret, Offered::Secrets(&w), false),
            (&by_secret, Offered::Quotas(&q), true),
            (&by_secret, identity(&w), false),
            (&by_credentials, identity(&w), true),
            (&by_credentials, identity(&a), false),
            (&by_credentials, Offered::Credentials("v1", "Secret", &w), false),
            (&by_credentials, Offered::Quotas(&q), false),
            (&elsewhere, Offered::Secrets(&a), false),
            (&elsewhere, identity(&w), false),
        ] {
            let users = Users {
                secret_bindings: &[Arc::new(secret.clone())],
                credentials_bindings: &[Arc::new(credentials.clone())],
                shoots: std::slice::from_ref(shoot),
            };
            assert_eq!(
                users.use_of("garden-p", offered),
                expected,
                "{offered:?} {:?}",
                shoot.spec.secret_binding_name
            );
            assert!(!users.use_of("garden-q", offered));
        }
    }
}
