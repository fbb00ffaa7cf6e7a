//! What is wrong with extension objects, as the webhooks of gardener-resource-manager judge them in seeds [EXT-131]. Here are the kinds
//! that only need some fields and keep others; those with more to say have a file each.

mod dns_record;
mod network;
mod operating_system_config;
mod self_hosted_shoot_exposure;
mod worker;

use gardener_apimachinery::field::{ErrorList, Path};

use super::*;
use crate::validation::extension_object::{ExtensionObject, is_unnamed, required};
use crate::validation::immutable;

/// A kind whose spec needs some fields and keeps some.
macro_rules! plain {
    ($kind:ident, $spec:ident, $namespaced:literal, $words:literal, |$own:ident| [$($needed:expr),*], keeps: [$($kept:ident => $name:literal),*]) => {
        impl ExtensionObject for $kind {
            type Spec = $spec;
            const NAMESPACED: bool = $namespaced;
            const WORDS: &'static str = $words;

            fn spec(&self) -> &$spec {
                &self.spec
            }

            fn validate_content(&self) -> ErrorList {
                let $own = &self.spec;
                required(&Path::new("spec"), &[$($needed),*])
            }

            fn validate_changes(new: &$spec, old: &$spec, path: &Path) -> ErrorList {
                let mut errors = ErrorList::new();
                $(errors.extend(immutable(&new.$kept, &old.$kept, &path.child($name)));)*
                errors
            }
        }
    };
}

plain!(BackupBucket, BackupBucketSpec, false, "backup bucket",
    |own| [("type", own.r#type.is_empty()), ("region", own.region.is_empty()), ("secretRef.name", is_unnamed(&own.secret_ref))],
    keeps: [r#type => "type", region => "region"]);
plain!(BackupEntry, BackupEntrySpec, false, "backup entry",
    |own| [
        ("type", own.r#type.is_empty()),
        ("bucketName", own.bucket_name.is_empty()),
        ("region", own.region.is_empty()),
        ("secretRef.name", is_unnamed(&own.secret_ref))
    ],
    keeps: [r#type => "type"]);
plain!(Bastion, BastionSpec, true, "bastion",
    |own| [("type", own.r#type.is_empty()), ("userData", own.user_data.0.is_empty()), ("ingress", own.ingress.is_empty())],
    keeps: [r#type => "type", user_data => "userData"]);
plain!(ControlPlane, ControlPlaneSpec, true, "control plane",
    |own| [("type", own.r#type.is_empty()), ("region", own.region.is_empty()), ("secretRef.name", is_unnamed(&own.secret_ref))],
    keeps: [r#type => "type", region => "region"]);
plain!(Extension, ExtensionSpec, true, "extension",
    |own| [("type", own.r#type.is_empty())],
    keeps: [r#type => "type"]);
plain!(Infrastructure, InfrastructureSpec, true, "infrastructure",
    |own| [("type", own.r#type.is_empty()), ("region", own.region.is_empty()), ("secretRef.name", is_unnamed(&own.secret_ref))],
    keeps: [r#type => "type", region => "region"]);

impl ExtensionObject for ContainerRuntime {
    type Spec = ContainerRuntimeSpec;
    const NAMESPACED: bool = true;
    const WORDS: &'static str = "container runtime";

    fn spec(&self) -> &ContainerRuntimeSpec {
        &self.spec
    }

    fn validate_content(&self) -> ErrorList {
        let spec = &self.spec;
        let needed = [
            ("type", spec.r#type.is_empty()),
            ("binaryPath", spec.binary_path.is_empty()),
            ("workerPool.name", spec.worker_pool.name.is_empty()),
        ];
        required(&Path::new("spec"), &needed)
    }

    fn validate_changes(new: &ContainerRuntimeSpec, old: &ContainerRuntimeSpec, path: &Path) -> ErrorList {
        let mut errors = immutable(&new.r#type, &old.r#type, &path.child("type"));
        let (after, before) = (&new.worker_pool.name, &old.worker_pool.name);
        errors.extend(immutable(after, before, &path.child("workerPool").child("name")));
        errors
    }
}

#[cfg(test)]
mod tests;
