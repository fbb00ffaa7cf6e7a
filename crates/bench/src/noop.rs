//! `bench noop`: what a reconciliation of a healthy shoot writes when nothing is to do. The contract with extensions has some objects
//! written each time; what changes besides those, the Shoot itself, events and leases is too much.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, Discovery};
use serde_json::json;

use crate::Figure;
use crate::landscape::{is_healthy, shoots, until};
use crate::ready;
use crate::running::Gardener;

/// Versions of objects by cluster, kind, namespace and name.
type Versions = BTreeMap<String, String>;
/// What happened to objects.
type Changes = BTreeMap<String, &'static str>;

/// Kinds of a seed that every reconciliation writes: the Cluster tells extensions the newest Shoot [EXT-71], the others ask an extension to
/// reconcile [EXT-24].
const TOLD_EACH_TIME: [&str; 7] = [
    "Cluster",
    "ContainerRuntime",
    "ControlPlane",
    "Extension",
    "Network",
    "OperatingSystemConfig",
    "Worker",
];

/// Compares all objects of garden, seed and shoot before and after.
pub async fn measure(binary: &Path) -> anyhow::Result<Vec<Figure>> {
    let mut landscape = Gardener::up(binary, None)?;
    let garden = ready::healthy(&mut landscape, 1).await?;
    let clusters = [
        ("garden", garden.clone()),
        ("seed", landscape.cluster(binary, &["seed", "local"]).await?),
        (
            "shoot",
            landscape.cluster(binary, &["shoot", "garden-local/local"]).await?,
        ),
    ];
    // what follows the creation, e.g. care, comes to rest first
    let mut before = versions(&clusters).await?;
    until("nothing changes any more", Duration::from_secs(120), async || {
        tokio::time::sleep(Duration::from_secs(5)).await;
        let now = versions(&clusters).await?;
        let calm = changes(&before, &now).is_empty();
        before = now;
        Ok(calm)
    })
    .await?;
    let operation = shoots(&garden).get("local").await?.status.last_operation;
    let patch = json!({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}});
    shoots(&garden)
        .patch("local", &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    let api = shoots(&garden);
    until("the shoot is reconciled", Duration::from_secs(300), async || {
        let shoot = api.get("local").await?;
        let annotated = shoot
            .metadata
            .annotations
            .as_ref()
            .is_some_and(|all| all.contains_key("gardener.cloud/operation"));
        Ok(!annotated && is_healthy(&shoot) && shoot.status.last_operation != operation)
    })
    .await?;
    let (told, changed): (Changes, Changes) = changes(&before, &versions(&clusters).await?)
        .into_iter()
        .partition(|(object, how)| *how == "written" && is_told(object));
    let mut figures = vec![Figure::new("objects looked at", before.len())];
    for (name, changes) in [
        ("objects written to tell extensions [EXT-24], [EXT-71]", told),
        ("others written but the Shoot, events and leases", changed),
    ] {
        figures.push(Figure::new(name, changes.len()));
        figures.extend(
            changes
                .into_iter()
                .map(|(object, how)| Figure::new(format!("  {object}"), how)),
        );
    }
    Ok(figures)
}

fn is_told(object: &str) -> bool {
    let mut words = object.split(' ');
    words.next() == Some("seed") && words.next().is_some_and(|kind| TOLD_EACH_TIME.contains(&kind))
}

async fn versions(clusters: &[(&str, Client)]) -> anyhow::Result<Versions> {
    let mut versions = Versions::new();
    for (cluster, client) in clusters {
        let discovery = Discovery::new(client.clone()).run().await?;
        for group in discovery.groups() {
            for (resource, capabilities) in group.recommended_resources() {
                let passing = matches!(resource.kind.as_str(), "Event" | "Lease")
                    || (*cluster == "garden" && resource.kind == "Shoot");
                if passing || !capabilities.supports_operation(kube::discovery::verbs::LIST) {
                    continue;
                }
                let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
                for object in api.list(&ListParams::default()).await? {
                    let metadata = object.metadata;
                    let name = format!(
                        "{cluster} {} {}/{}",
                        resource.kind,
                        metadata.namespace.unwrap_or_default(),
                        metadata.name.unwrap_or_default()
                    );
                    versions.insert(name, metadata.resource_version.unwrap_or_default());
                }
            }
        }
    }
    Ok(versions)
}

/// Objects that are new, gone or written.
fn changes(before: &Versions, after: &Versions) -> Changes {
    let written = after.iter().filter_map(|(name, version)| match before.get(name) {
        None => Some((name.clone(), "created")),
        Some(old) if old != version => Some((name.clone(), "written")),
        Some(_) => None,
    });
    let gone = before
        .keys()
        .filter(|name| !after.contains_key(*name))
        .map(|name| (name.clone(), "deleted"));
    written.chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_told_apart() {
        let versions = |all: &[(&str, &str)]| -> Versions {
            all.iter()
                .map(|(name, version)| ((*name).to_owned(), (*version).to_owned()))
                .collect()
        };
        let before = versions(&[("same", "1"), ("written", "2"), ("deleted", "3")]);
        let after = versions(&[("same", "1"), ("written", "4"), ("created", "5")]);
        let found = changes(&before, &after);
        let found: Vec<_> = found.iter().map(|(name, how)| (name.as_str(), *how)).collect();
        assert_eq!(
            found,
            [("created", "created"), ("deleted", "deleted"), ("written", "written")]
        );
    }
}
