//! DNSRecord: the record stands in the status, where a resolver of the landscape finds it. Nothing outside is written.

use async_trait::async_trait;
use gardener_apis::core::v1beta1::Condition;
use gardener_apis::extensions::v1alpha1::{Cluster, DNSRecord};
use gardener_controller::conditions;
use gardener_extension::{Actuator, ActuatorError, Context, Outcome};
use serde_json::json;

/// Seconds that a record may be kept, where nothing is said.
const DEFAULT_TTL: i64 = 120;
/// The condition that marks a first success.
const CREATED: &str = "Created";

/// The zone of a record: as said, as found before, or what follows the name's first label [3.8].
pub(crate) fn zone(record: &DNSRecord) -> String {
    let said = record.spec.zone.as_deref().or(record.status.zone.as_deref());
    said.filter(|zone| !zone.is_empty()).map_or_else(
        || {
            let name = record.spec.name.trim_start_matches("*.");
            name.split_once('.').map_or(name, |(_, rest)| rest).to_owned()
        },
        str::to_owned,
    )
}

pub(crate) struct Local;

#[async_trait]
impl Actuator<DNSRecord> for Local {
    async fn reconcile(
        &self,
        context: &Context,
        object: &DNSRecord,
        _: Option<&Cluster>,
    ) -> Result<Outcome, ActuatorError> {
        let now = context.clock.time();
        let old = conditions::get_or_init(&object.status.conditions, CREATED, &now);
        let created = conditions::with(&old, "True", "DNSRecordCreated", "The DNS record was created.", &now);
        let all: Vec<Condition> = conditions::merge(object.status.conditions.clone(), [created]);
        let spec = &object.spec;
        Ok(Outcome::with_status(json!({
            "zone": zone(object),
            "conditions": all,
            "providerStatus": {
                "apiVersion": "local.provider.extensions.gardener.cloud/v1alpha1",
                "kind": "DNSRecordStatus",
                "name": spec.name,
                "recordType": spec.record_type,
                "values": spec.values,
                "ttl": spec.ttl.unwrap_or(DEFAULT_TTL),
            },
        })))
    }

    async fn delete(&self, _: &Context, _: &DNSRecord, _: Option<&Cluster>) -> Result<(), ActuatorError> {
        Ok(())
    }
}
