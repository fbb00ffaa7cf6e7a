//! The CustomResourceDefinitions of everything that is served in a seed, as YAML documents.

/// Name (`<plural>.<group>`) and YAML text of each definition, in the order in which they are applied.
pub const ALL: &[(&str, &str)] = &[
    (
        "verticalpodautoscalercheckpoints.autoscaling.k8s.io",
        include_str!("../recorded/crds/autoscaling.k8s.io_verticalpodautoscalercheckpoints.yaml"),
    ),
    (
        "verticalpodautoscalers.autoscaling.k8s.io",
        include_str!("../recorded/crds/autoscaling.k8s.io_verticalpodautoscalers.yaml"),
    ),
    (
        "etcdcopybackupstasks.druid.gardener.cloud",
        include_str!("../recorded/crds/druid.gardener.cloud_etcdcopybackupstasks.yaml"),
    ),
    (
        "etcdopstasks.druid.gardener.cloud",
        include_str!("../recorded/crds/druid.gardener.cloud_etcdopstasks.yaml"),
    ),
    (
        "etcds.druid.gardener.cloud",
        include_str!("../recorded/crds/druid.gardener.cloud_etcds.yaml"),
    ),
    (
        "backupbuckets.extensions.gardener.cloud",
        include_str!("../recorded/crds/extensions.gardener.cloud_backupbuckets.yaml"),
    ),
    (
        "backupentries.extensions.gardener.cloud",
        include_str!("../recorded/crds/extensions.gardener.cloud_backupentries.yaml"),
    ),
    (
        "bastions.extensions.gardener.cloud",
        include_str!("../recorded/crds/extensions.gardener.cloud_bastions.yaml"),
    ),
    (
        "clusters.extensions.gardener.cloud",
        include_str!("../recorded/crds/extensions.gardener.cloud_clusters.yaml"),
    ),
    (
        "containerruntimes.extensions.gardener.cloud",
        include_str!("../recorded/crds/extensions.gardener.cloud_containerruntimes.yaml"),
    ),
    (
        "controlplanes.extensions.gardener.cloud",
        include_str!("../recorded/crds/extensions.gardener.cloud_controlplanes.yaml"),
    ),
    (
        "dnsrecords.extensions.gardener.cloud",
        include_str!("../recorded/crds/extensions.gardener.cloud_dnsrecords.yaml"),
    ),
    (
        "extensions.extensions.gardener.cloud",
        include_str!("../recorded/crds/extensions.gardener.cloud_extensions.yaml"),
    ),
    (
        "infrastructures.extensions.gardener.cloud",
        include_str!("../recorded/crds/extensions.gardener.cloud_infrastructures.yaml"),
    ),
    (
        "networks.extensions.gardener.cloud",
        include_str!("../recorded/crds/extensions.gardener.cloud_networks.yaml"),
    ),
    (
        "operatingsystemconfigs.extensions.gardener.cloud",
        include_str!("../recorded/crds/extensions.gardener.cloud_operatingsystemconfigs.yaml"),
    ),
    (
        "selfhostedshootexposures.extensions.gardener.cloud",
        include_str!("../recorded/crds/extensions.gardener.cloud_selfhostedshootexposures.yaml"),
    ),
    (
        "workers.extensions.gardener.cloud",
        include_str!("../recorded/crds/extensions.gardener.cloud_workers.yaml"),
    ),
    (
        "machineclasses.machine.sapcloud.io",
        include_str!("../recorded/crds/machine.sapcloud.io_machineclasses.yaml"),
    ),
    (
        "machinedeployments.machine.sapcloud.io",
        include_str!("../recorded/crds/machine.sapcloud.io_machinedeployments.yaml"),
    ),
    (
        "machines.machine.sapcloud.io",
        include_str!("../recorded/crds/machine.sapcloud.io_machines.yaml"),
    ),
    (
        "machinesets.machine.sapcloud.io",
        include_str!("../recorded/crds/machine.sapcloud.io_machinesets.yaml"),
    ),
    (
        "managedresources.resources.gardener.cloud",
        include_str!("../recorded/crds/resources.gardener.cloud_managedresources.yaml"),
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_defines_what_its_name_says() {
        for (name, text) in ALL {
            let named = text.lines().any(|line| line.trim() == format!("name: {name}"));
            assert!(named && text.contains("kind: CustomResourceDefinition"), "{name}");
        }
    }
}
