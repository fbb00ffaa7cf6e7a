//! Whether a control plane is complete and healthy, and what observes it [ST-54], [ST-55].

use gardener_apis::druid::v1alpha1::Etcd;
use gardener_rules::care::control_plane as rules;
use kube::api::ListParams;

use super::checks::{Sight, Stop};
use super::{CONTROL_PLANE, OBSERVABILITY};

impl Sight<'_> {
    /// [ST-54]
    pub(super) async fn control_plane(&self) -> Result<(), Stop> {
        self.check_extensions(CONTROL_PLANE)?;
        let selected = ListParams::default().labels("gardener.cloud/role=controlplane");
        let etcds: Vec<Etcd> = self.in_control_plane(&selected).await?;
        rules::etcds(&etcds)?;
        let deployments = self
            .check_deployments("controlplane", &rules::deployments(self.shoot))
            .await?;
        if !self.shoot.is_workerless() && rules::has_prober(self.seed) {
            rules::none_scaled_down(&deployments)?;
        }
        let mut own = self.resources(|one, label| one.spec.class.is_some() && matches!(label, "" | CONTROL_PLANE));
        Ok(own.try_for_each(|one| self.check_resource(one))?)
    }

    /// [ST-55]
    pub(super) async fn observability(&self) -> Result<(), Stop> {
        self.check_extensions(OBSERVABILITY)?;
        if self.shoot.spec.purpose.as_deref() != Some("testing") {
            let required = rules::monitoring_deployments(self.shoot);
            self.check_deployments("monitoring", &required).await?;
        }
        let mut own = self.resources(|_, label| label == OBSERVABILITY);
        Ok(own.try_for_each(|one| self.check_resource(one))?)
    }
}
