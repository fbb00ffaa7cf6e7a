//! Defaults of namespaced cloud profiles: types may be used unless it is said that not, [VAL-NC3].

use super::*;
use crate::core::v1beta1::cloud_profile::{default_machine_types, default_volume_types};

/// Fills in what the user left out.
pub fn default_namespaced_cloud_profile(profile: &mut NamespacedCloudProfile) {
    default_machine_types(&mut profile.spec.machine_types);
    default_volume_types(&mut profile.spec.volume_types);
}
