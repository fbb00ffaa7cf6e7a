//! What is wrong with Etcds, as etcd-druid has it and the webhooks of gardener-resource-manager judge it in seeds.

use gardener_apimachinery::field::{Error, ErrorList, Path};

use super::{Etcd, EtcdBackupStore, EtcdSpec};
use crate::validation::extension_object::ExtensionObject;
use crate::validation::{IMMUTABLE, immutable, shown};

/// Where backups can be: names of stores, and of the providers that have them.
const STORES: [&str; 16] = [
    "aws",
    "S3",
    "stackit",
    "azure",
    "ABS",
    "alicloud",
    "OSS",
    "openstack",
    "Swift",
    "gcp",
    "GCS",
    "dell",
    "ECS",
    "openshift",
    "OCS",
    "Local",
];

impl ExtensionObject for Etcd {
    type Spec = EtcdSpec;
    const NAMESPACED: bool = true;
    const WORDS: &'static str = "etcd";

    fn spec(&self) -> &EtcdSpec {
        &self.spec
    }

    fn validate_content(&self) -> ErrorList {
        let path = Path::new("spec").child("backup").child("store");
        let store = self.spec.backup.store.as_ref();
        store.map(|store| self.store(store, &path)).unwrap_or_default()
    }

    fn validate_changes(new: &EtcdSpec, old: &EtcdSpec, path: &Path) -> ErrorList {
        let mut errors = ErrorList::new();
        if let (Some(after), Some(before)) = (&new.backup.store, &old.backup.store) {
            let at = path.child("backup").child("store").child("prefix");
            errors.extend(immutable(&after.prefix, &before.prefix, &at));
        }
        let (after, before) = (&new.member_name_prefix, &old.member_name_prefix);
        errors.extend(immutable(after, before, &path.child("memberNamePrefix")));
        errors
    }

    fn frozen(new: &EtcdSpec, _: &EtcdSpec, path: &Path) -> Error {
        Error::invalid(path, shown(new), IMMUTABLE)
    }
}

impl Etcd {
    fn store(&self, store: &EtcdBackupStore, path: &Path) -> ErrorList {
        let mut errors = ErrorList::new();
        let named = |part: &Option<String>| store.prefix.contains(part.as_deref().unwrap_or_default());
        if !named(&self.metadata.namespace) || !named(&self.metadata.name) {
            let why = "must contain object name and namespace";
            errors.push(Error::invalid(&path.child("prefix"), store.prefix.as_str(), why));
        }
        let provider = store.provider.as_deref().unwrap_or_default();
        if !provider.is_empty() && provider != "local" && !STORES.contains(&provider) {
            let why = format!("unsupported storage provider: '{provider}'");
            errors.push(Error::invalid(&path.child("provider"), provider, why));
        }
        errors
    }
}
