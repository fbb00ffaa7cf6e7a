//! What informers leave out of objects of which there are many. A `Volume` alone takes three kilobytes, whatever it is.

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, PodTemplateSpec};

/// Gives back what vectors have in reserve.
pub(crate) fn spec(spec: &mut PodSpec) {
    spec.volumes.iter_mut().for_each(Vec::shrink_to_fit);
    spec.init_containers.iter_mut().for_each(containers);
    containers(&mut spec.containers);
}

fn containers(containers: &mut Vec<Container>) {
    containers.shrink_to_fit();
    for container in containers {
        container.env.iter_mut().for_each(Vec::shrink_to_fit);
        container.ports.iter_mut().for_each(Vec::shrink_to_fit);
        container.volume_mounts.iter_mut().for_each(Vec::shrink_to_fit);
    }
}

pub(crate) fn pod(pod: &mut Pod) {
    pod.spec.iter_mut().for_each(spec);
    if let Some(status) = &mut pod.status {
        status.conditions.iter_mut().for_each(Vec::shrink_to_fit);
        status.container_statuses.iter_mut().for_each(Vec::shrink_to_fit);
        status.init_container_statuses.iter_mut().for_each(Vec::shrink_to_fit);
    }
}

pub(crate) fn template(template: &mut PodTemplateSpec) {
    template.spec.iter_mut().for_each(spec);
}

/// What controllers and scheduler need of a pod: of its volumes only the claims. The kubelet has copies of its own.
pub(crate) fn pod_for_controllers(pod: &mut Pod) {
    if let Some(spec) = &mut pod.spec {
        spec.volumes
            .iter_mut()
            .for_each(|volumes| volumes.retain(|volume| volume.persistent_volume_claim.is_some()));
    }
    self::pod(pod);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn controllers_see_claims_and_the_rest_stays() {
        let object = json!({"spec": {
            "containers": [{"name": "c", "image": "i", "env": [{"name": "A"}]}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "x"}}, {"name": "config", "configMap": {"name": "m"}}],
        }});
        let mut pod: Pod = serde_json::from_value(object.clone()).unwrap();
        pod_for_controllers(&mut pod);
        let mut expected = object;
        expected["spec"]["volumes"].as_array_mut().unwrap().truncate(1);
        assert_eq!(pod, serde_json::from_value::<Pod>(expected).unwrap());
    }
}
