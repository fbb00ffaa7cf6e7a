//! What a pod's volumes need before its containers can start.

use gardener_controller::Read;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Volume};
use kube::{Api, Client};

/// Something that a volume refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Secret(String),
    ConfigMap(String),
    Claim(String),
}

fn of_volume(pod: &str, volume: &Volume) -> Vec<Source> {
    let mut sources = Vec::new();
    if let Some(secret) = volume.secret.as_ref().filter(|source| source.optional != Some(true)) {
        sources.extend(secret.secret_name.clone().map(Source::Secret));
    }
    if let Some(map) = volume
        .config_map
        .as_ref()
        .filter(|source| source.optional != Some(true))
    {
        sources.push(Source::ConfigMap(map.name.clone()));
    }
    if let Some(claim) = &volume.persistent_volume_claim {
        sources.push(Source::Claim(claim.claim_name.clone()));
    }
    if volume.ephemeral.is_some() {
        sources.push(Source::Claim(format!("{pod}-{}", volume.name)));
    }
    for part in volume
        .projected
        .iter()
        .flat_map(|projected| projected.sources.iter().flatten())
    {
        if let Some(secret) = part.secret.as_ref().filter(|source| source.optional != Some(true)) {
            sources.push(Source::Secret(secret.name.clone()));
        }
        if let Some(map) = part.config_map.as_ref().filter(|source| source.optional != Some(true)) {
            sources.push(Source::ConfigMap(map.name.clone()));
        }
    }
    sources
}

/// What the pod's volumes refer to, with the volume's name.
pub(super) fn sources(pod: &Pod) -> Vec<(String, Source)> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_ref());
    volumes
        .into_iter()
        .flatten()
        .flat_map(|volume| {
            of_volume(name, volume)
                .into_iter()
                .map(|source| (volume.name.clone(), source))
        })
        .collect()
}

/// Why the volumes of a pod cannot be mounted yet; none if they can.
///
/// # Errors
/// What the API says, except that something is not there.
pub(super) async fn missing(client: &Client, pod: &Pod) -> Result<Option<String>, kube::Error> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    for (volume, source) in sources(pod) {
        let why = match source {
            Source::Secret(name) => {
                let found = Api::<Secret>::namespaced(client.clone(), namespace)
                    .get_metadata_opt(&name)
                    .await?;
                found.is_none().then(|| format!("secret \"{name}\" not found"))
            }
            Source::ConfigMap(name) => {
                let found = Api::<ConfigMap>::namespaced(client.clone(), namespace)
                    .get_metadata_opt(&name)
                    .await?;
                found.is_none().then(|| format!("configmap \"{name}\" not found"))
            }
            Source::Claim(name) => {
                let claims = Api::<PersistentVolumeClaim>::namespaced(client.clone(), namespace);
                let found = claims.read_opt(&name).await?;
                let phase = found.as_ref().and_then(|claim| claim.status.as_ref()?.phase.as_deref());
                match (&found, phase) {
                    (None, _) => Some(format!("persistentvolumeclaim \"{name}\" not found")),
                    (Some(_), Some("Bound")) => None,
                    (Some(_), _) => Some(format!("persistentvolumeclaim \"{name}\" is not bound")),
                }
            }
        };
        if let Some(why) = why {
            return Ok(Some(format!(
                "MountVolume.SetUp failed for volume \"{volume}\" : {why}"
            )));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn volumes_tell_what_they_need() {
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {"containers": [], "volumes": [
            {"name": "a", "secret": {"secretName": "s"}},
            {"name": "b", "secret": {"secretName": "o", "optional": true}},
            {"name": "c", "projected": {"sources": [{"configMap": {"name": "m"}}, {"serviceAccountToken": {"path": "t"}}]}},
            {"name": "d", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "e", "emptyDir": {}},
        ]}}))
        .unwrap();
        let found: Vec<Source> = sources(&pod).into_iter().map(|(_, source)| source).collect();
        assert_eq!(
            found,
            [
                Source::Secret("s".into()),
                Source::ConfigMap("m".into()),
                Source::Claim("c".into())
            ]
        );
    }
}
