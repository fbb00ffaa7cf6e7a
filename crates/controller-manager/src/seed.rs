//! Controllers of seeds `[GCM-20]`–`[GCM-23]`: whether gardenlets live, extensions and buckets are well, and the namespace with what a gardenlet
//! may read.

mod checks;
mod lifecycle;
mod secrets;

use crate::Manager;

pub(crate) async fn run(manager: &Manager) {
    tokio::join!(
        lifecycle::run(manager),
        checks::extensions(manager),
        checks::backup_buckets(manager),
        secrets::run(manager),
    );
}
