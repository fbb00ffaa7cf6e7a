//! APIServices of the versions that are served here: made when they are missing, so that clients see one list of all versions. Those of custom
//! resources go with their definitions.

use std::collections::BTreeMap;

use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::{APIService, APIServiceSpec};
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams};

use super::availability::listed;
use crate::cluster::LogicalCluster;

/// Reason and message of the condition of what is served here.
pub(crate) const LOCAL: (&str, &str) = ("Local", "Local APIServices are always available");
/// Tells that an APIService was made by this controller, and how: `onstart` or `true`.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
/// Places of custom resources' groups and versions.
const CUSTOM: (i32, i32) = (1000, 100);

/// Places of Kubernetes' own groups and versions, kube-apiserver's.
const BUILT_IN: [(&str, &str, i32, i32); 26] = [
    ("", "v1", 18000, 1),
    ("apps", "v1", 17800, 15),
    ("events.k8s.io", "v1", 17750, 15),
    ("authentication.k8s.io", "v1", 17700, 15),
    ("authorization.k8s.io", "v1", 17600, 15),
    ("autoscaling", "v1", 17500, 15),
    ("autoscaling", "v2", 17500, 30),
    ("batch", "v1", 17400, 15),
    ("certificates.k8s.io", "v1", 17300, 15),
    ("networking.k8s.io", "v1", 17200, 15),
    ("policy", "v1", 17100, 15),
    ("rbac.authorization.k8s.io", "v1", 17000, 15),
    ("storage.k8s.io", "v1", 16800, 15),
    ("admissionregistration.k8s.io", "v1", 16700, 15),
    ("admissionregistration.k8s.io", "v1beta1", 16700, 12),
    ("apiextensions.k8s.io", "v1", 16700, 15),
    ("scheduling.k8s.io", "v1", 16600, 15),
    ("coordination.k8s.io", "v1", 16500, 15),
    ("node.k8s.io", "v1", 16300, 15),
    ("discovery.k8s.io", "v1", 16200, 15),
    ("resource.k8s.io", "v1", 16200, 21),
    ("resource.k8s.io", "v1beta2", 16200, 15),
    ("resource.k8s.io", "v1beta1", 16200, 9),
    ("flowcontrol.apiserver.k8s.io", "v1", 16100, 21),
    ("internal.apiserver.k8s.io", "v1alpha1", 16000, 9),
    ("storagemigration.k8s.io", "v1beta1", 15800, 9),
];

/// The place of a group whose versions are served here among all groups; higher comes first.
pub(crate) fn group_priority(group: &str) -> i32 {
    // the group of APIServices has none of its own
    if group == "apiregistration.k8s.io" {
        return 20_000;
    }
    let known = BUILT_IN.iter().find(|known| known.0 == group);
    known.map_or(CUSTOM.0, |known| known.2)
}

/// Makes what is missing and removes what is no longer served.
pub(super) async fn register(cluster: &LogicalCluster, services: &Api<APIService>) {
    let wanted = wanted(cluster);
    let there = listed(cluster);
    for service in &there {
        let name = service.metadata.name.as_deref().unwrap_or_default();
        let managed = service.metadata.labels.as_ref().and_then(|labels| labels.get(MANAGED));
        if managed.is_some_and(|managed| managed == "true") && !wanted.contains_key(name) {
            report(name, services.delete(name, &DeleteParams::default()).await);
        }
    }
    for (name, service) in wanted {
        let known = there.iter().any(|own| own.metadata.name.as_deref() == Some(&name));
        if !known {
            report(&name, services.create(&PostParams::default(), &service).await);
        }
    }
}

/// Who was faster, another replica or a user, is right.
fn report<T>(name: &str, outcome: Result<T, kube::Error>) {
    if let Err(error) = outcome {
        tracing::debug!(api_service = name, %error, "not registered");
    }
}

/// The APIServices of all versions that are served here, by name.
fn wanted(cluster: &LogicalCluster) -> BTreeMap<String, APIService> {
    let mut wanted = BTreeMap::new();
    let reviews = crate::reviews::of(cluster)
        .iter()
        .map(|review| (review.group, review.version, false));
    let definitions = cluster.definitions();
    let served = definitions.iter().flat_map(|definition| {
        let custom = definition.strategy.validates_schema();
        let versions = definition.versions.iter().filter(|version| version.served);
        versions.map(move |version| (definition.group.as_str(), version.name.as_str(), custom))
    });
    for (group, version, custom) in served.chain(reviews) {
        let built_in = BUILT_IN.iter().find(|known| (known.0, known.1) == (group, version));
        let (place, managed) = match built_in {
            Some((_, _, group, version)) => ((*group, *version), "onstart"),
            None if custom => (CUSTOM, "true"),
            None => continue,
        };
        let name = format!("{version}.{group}");
        let service = APIService {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                labels: Some([(MANAGED.to_owned(), managed.to_owned())].into()),
                ..ObjectMeta::default()
            },
            spec: Some(APIServiceSpec {
                group: Some(group.to_owned()),
                version: Some(version.to_owned()),
                group_priority_minimum: place.0,
                version_priority: place.1,
                ..APIServiceSpec::default()
            }),
            status: None,
        };
        wanted.insert(name, service);
    }
    wanted
}
