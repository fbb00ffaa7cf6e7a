//! Renewing a gardenlet's certificate [AUTH-32]: when it is due, and how the new one takes the old one's place.

use std::sync::Arc;
use std::time::Duration;

use gardener_apis::constants::{annotation, operation};
use gardener_apis::core::v1beta1::Seed;
use gardener_controller::Read;
use gardener_controller::events::{Recorder, Severity};
use gardener_controller::reference::object_reference;
use gardener_controller::wait::{Patience, Verdict, wait_for};
use gardener_pki::ClientCertificate;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client, ResourceExt};
use parking_lot::RwLock;
use tokio::time::sleep;

use super::transport::Switch;
use super::{
    BootstrapError, Credentials, GardenAccess, GardenConnection, Holder, access_in, certificate, client_of, read, store,
};

/// How soon a rotation that failed is tried again.
const PAUSE: Duration = Duration::from_secs(10);
/// How long is slept at most: timers do not notice that a machine was asleep or its clock was set.
const LONGEST_SLEEP: Duration = Duration::from_secs(3600);

/// `kubeconfigValidity`: how long certificates shall be good, and when they are renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validity {
    /// What is asked for; the garden's own period if nothing is.
    pub validity: Option<Duration>,
    /// The percentage of the validity after which a certificate is renewed at the earliest.
    pub rotation_min_percent: u32,
    /// The percentage of the validity after which a certificate is renewed at the latest.
    pub rotation_max_percent: u32,
}

impl Default for Validity {
    /// Upstream's defaults.
    fn default() -> Self {
        Self {
            validity: None,
            rotation_min_percent: 70,
            rotation_max_percent: 90,
        }
    }
}

impl Validity {
    /// When a certificate is renewed: at a moment between the two percentages, drawn by `fraction` (from 0 to 1).
    pub(super) fn deadline(&self, certificate: &ClientCertificate, fraction: f64) -> i64 {
        let (min, max) = (
            f64::from(self.rotation_min_percent),
            f64::from(self.rotation_max_percent),
        );
        let share = (min + (max - min).max(0.0) * fraction) / 100.0;
        let whole = certificate.not_after.saturating_sub(certificate.not_before).max(0);
        // seconds of some years are exact in a double
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
        let passed = (whole as f64 * share) as i64;
        certificate.not_before.saturating_add(passed)
    }
}

/// Keeps a gardenlet's certificate fresh.
pub(super) struct Rotation {
    pub(super) connection: GardenConnection,
    /// The gardenlet's client of the garden.
    pub(super) garden: Client,
    /// Where new ways are told.
    pub(super) switch: Switch,
    /// Where the new expiration is told.
    pub(super) expires: Arc<RwLock<Option<Timestamp>>>,
}

/// Why a kubeconfig's time is over.
enum Due {
    /// A new one is to be asked for.
    Renew,
    /// Somebody else has put a new one there.
    Changed(Box<GardenAccess>),
}

impl Rotation {
    /// Renews certificates for as long as it is polled. Ways without a certificate are left alone until somebody puts another one there.
    pub(super) async fn run(self, mut access: GardenAccess) {
        loop {
            let next = match self.due(&access).await {
                Due::Changed(next) => *next,
                Due::Renew => self.renew(&access).await,
            };
            self.take(&next).await;
            access = next;
        }
    }

    /// Has the gardenlet go a new way. If it cannot be gone, the old one stays until the next one comes.
    async fn take(&self, access: &GardenAccess) {
        match client_of(&self.connection, access, &self.connection.kubeconfig_secret).await {
            Ok(client) => {
                self.switch.to(client);
                *self.expires.write() = access.expires();
                tracing::info!(expires = ?access.expires(), "the gardenlet goes by its new kubeconfig");
            }
            Err(error) => tracing::error!(%error, "the new kubeconfig is of no use"),
        }
    }

    /// Waits until something is to be done about the kubeconfig.
    async fn due(&self, access: &GardenAccess) -> Due {
        let connection = &self.connection;
        let secret = &connection.kubeconfig_secret;
        let api = connection.secrets(secret);
        let fraction = connection.chance.fraction();
        let certificate = access.certificate();
        let deadline = certificate.map(|own| connection.validity.deadline(&own, fraction));
        loop {
            let left = deadline.map(|deadline| deadline.saturating_sub(connection.clock.now().as_second()));
            if left.is_some_and(|left| left <= 0) {
                return Due::Renew;
            }
            let left = left.map_or(LONGEST_SLEEP, |left| Duration::from_secs(left.unsigned_abs()));
            let patience = Patience {
                recheck: LONGEST_SLEEP,
                timeout: left.min(LONGEST_SLEEP),
            };
            let judge = |found: Option<&Secret>| self.judge(found, access);
            if let Ok(due) = wait_for(&api, &secret.name, patience, judge).await {
                return due;
            }
        }
    }

    /// Whether what is stored asks for something to be done.
    fn judge(&self, found: Option<&Secret>, access: &GardenAccess) -> Verdict<Due, &'static str> {
        let Some(secret) = found else {
            return Verdict::Pending("the secret is gone");
        };
        if secret.annotations().get(annotation::OPERATION).map(String::as_str) == Some(operation::RENEW) {
            return Verdict::Ready(Due::Renew);
        }
        match access_in(found, &self.connection.kubeconfig_secret) {
            Ok(Some(stored)) if stored.credentials != access.credentials => {
                Verdict::Ready(Due::Changed(Box::new(stored)))
            }
            _ => Verdict::Pending("the certificate is fresh"),
        }
    }

    /// Asks for a new certificate until there is one, and keeps it.
    async fn renew(&self, access: &GardenAccess) -> GardenAccess {
        let mut told = false;
        loop {
            match self.try_to_renew(access).await {
                Ok(next) => return next,
                Err(error) => {
                    tracing::error!(%error, "the certificate rotation failed");
                    if !told {
                        self.tell(access, &error).await;
                        told = true;
                    }
                    sleep(PAUSE).await;
                }
            }
        }
    }

    async fn try_to_renew(&self, access: &GardenAccess) -> Result<GardenAccess, BootstrapError> {
        let connection = &self.connection;
        let issued = certificate::request(&self.garden, &connection.holder, connection.validity.validity).await?;
        // who put another server or authority there is not overruled
        let stored = read(connection, &connection.kubeconfig_secret).await;
        let base = stored.ok().flatten().unwrap_or_else(|| access.clone());
        let next = GardenAccess {
            credentials: Credentials::Certificate(issued.pair),
            ..base
        };
        store(connection, &next).await?;
        Ok(next)
    }

    /// Tells the garden that a certificate runs out.
    async fn tell(&self, access: &GardenAccess, error: &BootstrapError) {
        let Holder::Seed(name) = &self.connection.holder else {
            return;
        };
        let seeds: Api<Seed> = Api::all(self.garden.clone());
        let Ok(seed) = seeds.read(name).await else {
            return;
        };
        let now = self.connection.clock.now();
        let expires = access.expires().unwrap_or(now);
        let left = gardener_apimachinery::duration::Duration::from_secs(expires.duration_since(now).as_secs());
        let message = format!(
            "Failed to rotate the kubeconfig for the Garden API Server. Certificate expires in {left} ({expires}): {error}"
        );
        let recorder = Recorder::new(
            self.garden.clone(),
            self.connection.clock.clone(),
            "certificate-manager",
        );
        let about = object_reference(&seed, &());
        recorder
            .publish(
                &about,
                Severity::Warning,
                "GardenletCertificateRotationFailed",
                &message,
            )
            .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn auth_32_certificates_are_renewed_between_70_and_90_percent() {
        let certificate = ClientCertificate {
            common_name: "a".into(),
            not_before: 1000,
            not_after: 2000,
        };
        let default = Validity::default();
        assert_eq!(default.deadline(&certificate, 0.0), 1700);
        assert_eq!(default.deadline(&certificate, 0.5), 1800);
        assert_eq!(default.deadline(&certificate, 1.0), 1900);
        let own = |min, max| Validity {
            rotation_min_percent: min,
            rotation_max_percent: max,
            ..Validity::default()
        };
        assert_eq!(own(1, 100).deadline(&certificate, 0.0), 1010);
        assert_eq!(own(1, 100).deadline(&certificate, 1.0), 2000);
        // the wrong way round: at the earliest moment
        assert_eq!(own(90, 70).deadline(&certificate, 1.0), 1900);
    }
}
