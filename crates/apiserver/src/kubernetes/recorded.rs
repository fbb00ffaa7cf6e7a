//! What a real kube-apiserver told of itself, as recorded in `recorded/`.

/// Aggregated discovery of the core group.
pub(super) const DISCOVERY_CORE: &str = include_str!("../../recorded/discovery/api.json");
/// Aggregated discovery of the other groups.
pub(super) const DISCOVERY_GROUPS: &str = include_str!("../../recorded/discovery/apis.json");
/// Table columns.
pub(super) const TABLES: &str = include_str!("../../recorded/tables.json");
/// Roles and bindings that a fresh cluster has.
pub(super) const BOOTSTRAP_RBAC: &str = include_str!("../../recorded/bootstrap-rbac.json");
/// Other objects that a fresh cluster has.
pub(super) const BOOTSTRAP_OBJECTS: &str = include_str!("../../recorded/bootstrap-objects.json");

/// OpenAPI v3 documents by path.
pub(super) const OPENAPI: &[(&str, &str)] = &[
    ("api/v1", include_str!("../../recorded/openapi-v3/api_v1.json")),
    (
        "apis/admissionregistration.k8s.io/v1",
        include_str!("../../recorded/openapi-v3/apis_admissionregistration.k8s.io_v1.json"),
    ),
    (
        "apis/apiextensions.k8s.io/v1",
        include_str!("../../recorded/openapi-v3/apis_apiextensions.k8s.io_v1.json"),
    ),
    (
        "apis/apiregistration.k8s.io/v1",
        include_str!("../../recorded/openapi-v3/apis_apiregistration.k8s.io_v1.json"),
    ),
    (
        "apis/apps/v1",
        include_str!("../../recorded/openapi-v3/apis_apps_v1.json"),
    ),
    (
        "apis/authentication.k8s.io/v1",
        include_str!("../../recorded/openapi-v3/apis_authentication.k8s.io_v1.json"),
    ),
    (
        "apis/authorization.k8s.io/v1",
        include_str!("../../recorded/openapi-v3/apis_authorization.k8s.io_v1.json"),
    ),
    (
        "apis/autoscaling/v1",
        include_str!("../../recorded/openapi-v3/apis_autoscaling_v1.json"),
    ),
    (
        "apis/autoscaling/v2",
        include_str!("../../recorded/openapi-v3/apis_autoscaling_v2.json"),
    ),
    (
        "apis/batch/v1",
        include_str!("../../recorded/openapi-v3/apis_batch_v1.json"),
    ),
    (
        "apis/certificates.k8s.io/v1",
        include_str!("../../recorded/openapi-v3/apis_certificates.k8s.io_v1.json"),
    ),
    (
        "apis/coordination.k8s.io/v1",
        include_str!("../../recorded/openapi-v3/apis_coordination.k8s.io_v1.json"),
    ),
    (
        "apis/discovery.k8s.io/v1",
        include_str!("../../recorded/openapi-v3/apis_discovery.k8s.io_v1.json"),
    ),
    (
        "apis/events.k8s.io/v1",
        include_str!("../../recorded/openapi-v3/apis_events.k8s.io_v1.json"),
    ),
    (
        "apis/flowcontrol.apiserver.k8s.io/v1",
        include_str!("../../recorded/openapi-v3/apis_flowcontrol.apiserver.k8s.io_v1.json"),
    ),
    (
        "apis/networking.k8s.io/v1",
        include_str!("../../recorded/openapi-v3/apis_networking.k8s.io_v1.json"),
    ),
    (
        "apis/node.k8s.io/v1",
        include_str!("../../recorded/openapi-v3/apis_node.k8s.io_v1.json"),
    ),
    (
        "apis/policy/v1",
        include_str!("../../recorded/openapi-v3/apis_policy_v1.json"),
    ),
    (
        "apis/rbac.authorization.k8s.io/v1",
        include_str!("../../recorded/openapi-v3/apis_rbac.authorization.k8s.io_v1.json"),
    ),
    (
        "apis/resource.k8s.io/v1",
        include_str!("../../recorded/openapi-v3/apis_resource.k8s.io_v1.json"),
    ),
    (
        "apis/scheduling.k8s.io/v1",
        include_str!("../../recorded/openapi-v3/apis_scheduling.k8s.io_v1.json"),
    ),
    (
        "apis/storage.k8s.io/v1",
        include_str!("../../recorded/openapi-v3/apis_storage.k8s.io_v1.json"),
    ),
];
