//! Control planes do not migrate live here: upstream's feature gate for it is off by default, and there is none to switch on, [ADM-32n].

use gardener_apimachinery::field::{Error, Path};
use gardener_apimachinery::meta::is_true;
use gardener_apis::constants::annotation;

use super::Check;

impl Check<'_> {
    /// What is said to a shoot that asks for it.
    pub(super) fn live_migration(&self) -> Option<Error> {
        let asked = self.shoot.annotation(annotation::LIVE_MIGRATION).is_some_and(is_true);
        asked.then(|| {
            let path = Path::new("metadata.annotations").key(annotation::LIVE_MIGRATION);
            let why = "the \"LiveControlPlaneMigration\" feature gate is disabled in gardener-apiserver";
            Error::forbidden(&path, why)
        })
    }
}
