//! Workers.

use gardener_apimachinery::field::{Error, ErrorList, Path};

use crate::constants::ARCHITECTURES;
use crate::extensions::v1alpha1::{Worker, WorkerPool, WorkerSpec};
use crate::validation::extension_object::{ExtensionObject, is_unnamed, required};
use crate::validation::{immutable, resource_amount};

impl ExtensionObject for Worker {
    type Spec = WorkerSpec;
    const NAMESPACED: bool = true;
    const WORDS: &'static str = "worker";

    fn spec(&self) -> &WorkerSpec {
        &self.spec
    }

    fn validate_content(&self) -> ErrorList {
        let (spec, path) = (&self.spec, Path::new("spec"));
        let needed = [
            ("type", spec.r#type.is_empty()),
            ("region", spec.region.is_empty()),
            ("secretRef.name", is_unnamed(&spec.secret_ref)),
        ];
        let mut errors = required(&path, &needed);
        for (i, one) in spec.pools.iter().enumerate() {
            errors.extend(pool(one, &path.child("pools").index(i)));
        }
        errors
    }

    fn validate_changes(new: &WorkerSpec, old: &WorkerSpec, path: &Path) -> ErrorList {
        let mut errors = immutable(&new.r#type, &old.r#type, &path.child("type"));
        errors.extend(immutable(&new.region, &old.region, &path.child("region")));
        errors
    }
}

fn pool(pool: &WorkerPool, path: &Path) -> ErrorList {
    let image = pool.machine_image.as_ref();
    let needed = [
        ("machineType", pool.machine_type.is_empty()),
        ("machineImage.name", image.is_none_or(|image| image.name.is_empty())),
        (
            "machineImage.version",
            image.is_none_or(|image| image.version.is_empty()),
        ),
    ];
    let mut errors = required(path, &needed);
    if let Some(architecture) = &pool.architecture
        && !ARCHITECTURES.contains(&architecture.as_str())
    {
        let at = path.child("architecture");
        errors.push(Error::not_supported(&at, architecture.as_str(), &ARCHITECTURES));
    }
    errors.extend(required(path, &[("name", pool.name.is_empty())]));
    let capacity = pool.node_template.iter().flat_map(|template| &template.capacity);
    for (name, amount) in capacity {
        let at = path.child("nodeTemplate").child("capacity").child(name);
        errors.extend(resource_amount(name, amount, &at));
    }
    errors
}
