//! The bucket of a seed with backups: a BackupBucket in the garden, named as the seed's UID [EXT-3.9]. The backupbucket controller has it made.

use gardener_apis::core::v1beta1::{BackupBucket, Seed};
use gardener_controller::Read;
use gardener_controller::apply as patching;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};

use crate::Config;
use crate::failed::Failed;

/// Makes the bucket that the seed asks for.
///
/// # Errors
/// When the garden refuses.
pub(super) async fn ensure(config: &Config, seed: &Seed) -> Result<(), Failed> {
    let (Some(backup), Some(uid)) = (&seed.spec.backup, seed.uid()) else {
        return Ok(());
    };
    let mut initial = BackupBucket::default();
    initial.metadata.name = Some(uid);
    let region = backup
        .region
        .clone()
        .unwrap_or_else(|| seed.spec.provider.region.clone());
    let api: Api<BackupBucket> = Api::all(config.garden.clone());
    patching::create_or_patch(&api, initial, |bucket| {
        bucket.metadata.owner_references = seed.controller_owner_ref(&()).map(|owner| vec![owner]);
        bucket.spec.provider.r#type.clone_from(&backup.provider);
        bucket.spec.provider.region.clone_from(&region);
        bucket.spec.provider_config.clone_from(&backup.provider_config);
        bucket.spec.seed_name = Some(seed.name_any());
        bucket.spec.credentials_ref.clone_from(&backup.credentials_ref);
    })
    .await?;
    Ok(())
}

/// Deletes the seed's buckets. Answers how many are still there.
///
/// # Errors
/// When the garden refuses, as it does while backups are in a bucket.
pub(super) async fn delete(config: &Config, seed: &Seed) -> Result<usize, Failed> {
    let api: Api<BackupBucket> = Api::all(config.garden.clone());
    let listed = api.read_list(&ListParams::default()).await?;
    let own: Vec<_> = listed
        .iter()
        .filter(|bucket| bucket.spec.seed_name.as_deref() == Some(seed.name_any().as_str()))
        .collect();
    for bucket in &own {
        patching::delete(&api, &bucket.name_any()).await?;
    }
    Ok(own.len())
}
