//! Which admission webhooks of a shoot may keep its nodes from joining and its system components from coming up [ST-100]–[ST-107]. How they are
//! changed so that they do not is in [`remediation`].

pub mod remediation;

use std::collections::BTreeMap;

use gardener_apimachinery::field::Path;
use gardener_apimachinery::meta::validate_label_selector;
use gardener_apimachinery::selector::LabelSelector as Selector;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, RuleWithOperations, ValidatingWebhookConfiguration,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

/// The annotation in which Gardener tells what it changed of a configuration.
const WARNING: &str = "gardener.cloud/warning";
/// What a webhook that is ignored when it fails may take, in seconds.
const LONGEST: i32 = 15;
/// What any webhook may take for leases of nodes and controllers, in seconds.
const LONGEST_FOR_LEASES: i32 = 3;

type Labels = &'static [(&'static str, &'static str)];

const KUBE_SYSTEM: Option<Labels> = Some(&[
    ("shoot.gardener.cloud/no-cleanup", "true"),
    ("gardener.cloud/purpose", "kube-system"),
    ("kubernetes.io/metadata.name", "kube-system"),
]);
const DEFAULT: Option<Labels> = Some(&[("kubernetes.io/metadata.name", "default")]);
const SYSTEM_PODS: Option<Labels> = Some(&[("shoot.gardener.cloud/no-cleanup", "true"), ("origin", "gardener")]);
/// Objects without labels; other than objects of which nobody knows the labels.
const NO_LABELS: Option<Labels> = Some(&[]);

/// Objects that a cluster cannot live without.
struct Row {
    group: &'static str,
    versions: &'static [&'static str],
    resource: &'static str,
    /// The empty one is the object itself.
    subresources: &'static [&'static str],
    cluster_scoped: bool,
    /// The labels of the namespace, if there is one that is known.
    namespace: Option<Labels>,
    /// The labels of the objects, if they are known.
    object: Option<Labels>,
}

const MAIN: &[&str] = &[""];
const WITH_STATUS: &[&str] = &["", "status"];
const WITH_SCALE: &[&str] = &["", "scale"];
const WITH_BOTH: &[&str] = &["", "status", "scale"];
const V1: &[&str] = &["v1"];
const APPS: &[&str] = &["v1", "v1beta1", "v1beta2"];
const EXTENSIONS: &[&str] = &["v1beta1"];
const BETA: &[&str] = &["v1", "v1beta1"];
const RBAC: &[&str] = &["v1", "v1alpha1", "v1beta1"];

type Place = (&'static str, &'static [&'static str], &'static str);

/// Objects of a namespace.
const fn of(
    namespace: Option<Labels>,
    (group, versions, resource): Place,
    subresources: &'static [&'static str],
) -> Row {
    Row {
        group,
        versions,
        resource,
        subresources,
        cluster_scoped: false,
        namespace,
        object: None,
    }
}

/// Objects of the cluster.
const fn whole((group, versions, resource): Place, subresources: &'static [&'static str]) -> Row {
    Row {
        cluster_scoped: true,
        ..of(None, (group, versions, resource), subresources)
    }
}

/// [ST-104]
const ROWS: [Row; 33] = [
    Row {
        object: SYSTEM_PODS,
        ..of(KUBE_SYSTEM, ("", V1, "pods"), WITH_STATUS)
    },
    of(KUBE_SYSTEM, ("", V1, "configmaps"), MAIN),
    of(DEFAULT, ("", V1, "endpoints"), MAIN),
    of(KUBE_SYSTEM, ("", V1, "endpoints"), MAIN),
    of(KUBE_SYSTEM, ("", V1, "secrets"), MAIN),
    of(KUBE_SYSTEM, ("", V1, "serviceaccounts"), MAIN),
    of(KUBE_SYSTEM, ("", V1, "services"), WITH_STATUS),
    of(DEFAULT, ("", V1, "services"), WITH_STATUS),
    whole(("", V1, "nodes"), WITH_STATUS),
    Row {
        namespace: KUBE_SYSTEM,
        object: KUBE_SYSTEM,
        ..whole(("", V1, "namespaces"), WITH_STATUS)
    },
    of(KUBE_SYSTEM, ("apps", APPS, "controllerrevisions"), MAIN),
    of(KUBE_SYSTEM, ("apps", APPS, "daemonsets"), WITH_STATUS),
    of(KUBE_SYSTEM, ("apps", APPS, "deployments"), WITH_SCALE),
    of(KUBE_SYSTEM, ("apps", APPS, "replicasets"), WITH_BOTH),
    of(KUBE_SYSTEM, ("extensions", EXTENSIONS, "controllerrevisions"), MAIN),
    of(KUBE_SYSTEM, ("extensions", EXTENSIONS, "daemonsets"), WITH_STATUS),
    of(KUBE_SYSTEM, ("extensions", EXTENSIONS, "deployments"), WITH_SCALE),
    of(KUBE_SYSTEM, ("extensions", EXTENSIONS, "replicasets"), WITH_BOTH),
    of(KUBE_SYSTEM, ("extensions", EXTENSIONS, "networkpolicies"), MAIN),
    of(None, ("coordination.k8s.io", BETA, "leases"), MAIN),
    of(KUBE_SYSTEM, ("networking.k8s.io", BETA, "networkpolicies"), MAIN),
    whole(("rbac.authorization.k8s.io", RBAC, "clusterroles"), MAIN),
    whole(("rbac.authorization.k8s.io", RBAC, "clusterrolebindings"), MAIN),
    of(KUBE_SYSTEM, ("rbac.authorization.k8s.io", RBAC, "roles"), MAIN),
    of(KUBE_SYSTEM, ("rbac.authorization.k8s.io", RBAC, "rolebindings"), MAIN),
    whole(("apiextensions.k8s.io", V1, "customresourcedefinitions"), WITH_STATUS),
    whole(
        ("apiextensions.k8s.io", EXTENSIONS, "customresourcedefinitions"),
        WITH_STATUS,
    ),
    whole(("apiregistration.k8s.io", V1, "apiservices"), WITH_STATUS),
    whole(("apiregistration.k8s.io", EXTENSIONS, "apiservices"), WITH_STATUS),
    whole(("certificates.k8s.io", V1, "certificatesigningrequests"), WITH_STATUS),
    whole(("certificates.k8s.io", V1, "certificatesigningrequests"), &["approval"]),
    whole(("scheduling.k8s.io", V1, "priorityclasses"), MAIN),
    whole(("scheduling.k8s.io", EXTENSIONS, "priorityclasses"), MAIN),
];

/// The leases of nodes and of controllers.
const LEASES: [Row; 1] = [Row {
    object: NO_LABELS,
    ..of(KUBE_SYSTEM, ("coordination.k8s.io", BETA, "leases"), MAIN)
}];

/// A webhook, as far as it matters here. `matchPolicy`, `matchConditions` and whom it asks do not [ST-107].
#[derive(Clone, Copy, Debug)]
pub struct Webhook<'a> {
    /// Its name.
    pub name: &'a str,
    /// `failurePolicy`.
    pub failure_policy: Option<&'a str>,
    /// `timeoutSeconds`.
    pub timeout: Option<i32>,
    /// `objectSelector`.
    pub objects: Option<&'a LabelSelector>,
    /// `namespaceSelector`.
    pub namespaces: Option<&'a LabelSelector>,
    /// `rules`.
    pub rules: &'a [RuleWithOperations],
}

fn has(list: Option<&Vec<String>>, wanted: &str) -> bool {
    list.is_some_and(|list| list.iter().any(|own| own == "*" || own == wanted))
}

/// Whether one of the rule's resources means one of the row's; what has no subresource means the object alone.
fn means(rule: &RuleWithOperations, row: &Row) -> bool {
    rule.resources.iter().flatten().any(|own| {
        let (resource, subresource) = own.split_once('/').unwrap_or((own, ""));
        let same = |one: &str| subresource == "*" || subresource == one;
        (resource == "*" || resource == row.resource) && row.subresources.iter().any(|one| same(one))
    })
}

/// Whether a selector lets through what has these labels; one that selects nothing in particular lets all through, and so does every one where the labels are
/// not known.
fn selects(selector: Option<&LabelSelector>, labels: Option<Labels>) -> bool {
    let (Some(selector), Some(labels)) = (selector, labels) else {
        return true;
    };
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    let labels: BTreeMap<String, String> = labels.iter().map(owned).collect();
    Selector::from(selector).matches(&labels)
}

fn is_invalid(selector: Option<&LabelSelector>) -> bool {
    selector.is_some_and(|own| !validate_label_selector(own, &Path::root()).is_empty())
}

impl Webhook<'_> {
    /// Whether a rule is asked for a row [ST-102].
    fn matches(&self, rule: &RuleWithOperations, row: &Row) -> bool {
        // nobody knows what a selector lets through that cannot be read
        if is_invalid(self.objects) || is_invalid(self.namespaces) {
            return true;
        }
        let writes = has(rule.operations.as_ref(), "CREATE") || has(rule.operations.as_ref(), "UPDATE");
        let versions = || row.versions.iter().any(|own| has(rule.api_versions.as_ref(), own));
        let in_scope = match rule.scope.as_deref() {
            Some("Namespaced") => !row.cluster_scoped,
            Some("Cluster") => row.cluster_scoped,
            _ => true,
        };
        let has_namespace = !row.cluster_scoped || row.resource == "namespaces";
        writes
            && in_scope
            && has(rule.api_groups.as_ref(), row.group)
            && versions()
            && means(rule, row)
            && selects(self.objects, row.object)
            && (!has_namespace || selects(self.namespaces, row.namespace))
    }

    fn matches_any(&self, rows: &[Row]) -> bool {
        let of = |rule: &RuleWithOperations| rows.iter().any(|row| self.matches(rule, row));
        self.rules.iter().any(of)
    }

    /// Whether it may keep nodes or system components from coming up [ST-101].
    pub fn is_problematic(&self) -> bool {
        let is_slow = |longest: i32| self.timeout.is_none_or(|timeout| timeout > longest);
        let is_ignored = self.failure_policy.is_some_and(|policy| policy != "Fail");
        (is_slow(LONGEST_FOR_LEASES) && self.matches_any(&LEASES))
            || ((!is_ignored || is_slow(LONGEST)) && self.matches_any(&ROWS))
    }
}

/// What is found of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A webhook is problematic; the words tell which.
    Problematic(String),
    /// Gardener has changed one that was; the words tell which.
    Remediated(String),
}

fn label<'a>(metadata: &'a ObjectMeta, key: &str) -> Option<&'a str> {
    metadata.labels.as_ref()?.get(key).map(String::as_str)
}

/// Whether a configuration is Gardener's own.
fn is_own(metadata: &ObjectMeta) -> bool {
    label(metadata, "resources.gardener.cloud/managed-by") == Some("gardener")
}

fn problem(kind: &str, metadata: &ObjectMeta, webhooks: &[Webhook<'_>]) -> Option<Problem> {
    if label(metadata, "app") == Some("gardener-resource-manager") || is_own(metadata) {
        return None;
    }
    let name = metadata.name.as_deref().unwrap_or_default();
    if let Some(found) = webhooks.iter().find(|webhook| webhook.is_problematic()) {
        let policy = found.failure_policy.unwrap_or("nil");
        let timeout = match found.timeout {
            Some(seconds) => format!("and {seconds}s timeout"),
            None => "and unset timeoutSeconds".to_owned(),
        };
        return Some(Problem::Problematic(format!(
            "{kind} {name:?} is problematic: webhook {:?} with failurePolicy {policy:?} {timeout} might prevent worker nodes from properly joining the shoot cluster",
            found.name
        )));
    }
    let warning = metadata
        .annotations
        .as_ref()
        .and_then(|annotations| annotations.get(WARNING));
    warning.filter(|text| !text.is_empty()).map(|_| {
        Problem::Remediated(format!(
            "{kind} {name:?} is problematic and was remediated by Gardener (please check its annotations for details)."
        ))
    })
}

/// A webhook of either kind of configuration: the two have the members that matter here by the same names.
macro_rules! webhook {
    ($own:expr) => {
        Webhook {
            name: &$own.name,
            failure_policy: $own.failure_policy.as_deref(),
            timeout: $own.timeout_seconds,
            objects: $own.object_selector.as_ref(),
            namespaces: $own.namespace_selector.as_ref(),
            rules: $own.rules.as_deref().unwrap_or_default(),
        }
    };
}
use webhook;

/// The first problem of a cluster's configurations; validating ones come first [ST-100].
pub fn first_problem(
    validating: &[ValidatingWebhookConfiguration],
    mutating: &[MutatingWebhookConfiguration],
) -> Option<Problem> {
    let of_validating = validating.iter().map(|own| {
        let webhooks: Vec<Webhook<'_>> = own.webhooks.iter().flatten().map(|own| webhook!(own)).collect();
        problem("ValidatingWebhookConfiguration", &own.metadata, &webhooks)
    });
    let of_mutating = mutating.iter().map(|own| {
        let webhooks: Vec<Webhook<'_>> = own.webhooks.iter().flatten().map(|own| webhook!(own)).collect();
        problem("MutatingWebhookConfiguration", &own.metadata, &webhooks)
    });
    of_validating.chain(of_mutating).flatten().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// A configuration with one webhook: pods on CREATE, `Fail`, ten seconds, unless told otherwise; null takes a member away.
    fn configuration(changes: Value) -> Value {
        let mut webhook = json!({
            "name": "w", "admissionReviewVersions": ["v1"], "clientConfig": {}, "sideEffects": "None",
            "failurePolicy": "Fail", "timeoutSeconds": 10,
        });
        let mut rule =
            json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]});
        for (key, value) in changes.as_object().unwrap() {
            let into = match key.as_str() {
                "operations" | "apiGroups" | "apiVersions" | "resources" | "scope" => &mut rule,
                _ => &mut webhook,
            };
            into[key] = value.clone();
        }
        if webhook.get("rules").is_none() {
            webhook["rules"] = json!([rule]);
        }
        json!({"metadata": {"name": "c"}, "webhooks": [webhook]})
    }

    fn problem_of(configuration: Value) -> Option<Problem> {
        let own: ValidatingWebhookConfiguration = serde_json::from_value(configuration.clone()).unwrap();
        let found = first_problem(&[own], &[]);
        let other: MutatingWebhookConfiguration = serde_json::from_value(configuration).unwrap();
        assert_eq!(first_problem(&[], &[other]).is_some(), found.is_some());
        found
    }

    fn not_in(key: &str, values: &[&str]) -> Value {
        json!({"matchExpressions": [{"key": key, "operator": "NotIn", "values": values}]})
    }

    #[test]
    fn st_101_107_worked_cases() {
        let purpose = || not_in("gardener.cloud/purpose", &["kube-system"]);
        let both = || not_in("kubernetes.io/metadata.name", &["kube-system", "default"]);
        let leases = |policy: &str, timeout: i32| json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "failurePolicy": policy, "timeoutSeconds": timeout});
        let with = |mut own: Value, key: &str, value: Value| {
            own[key] = value;
            own
        };
        let foo_exists = json!({"matchExpressions": [{"key": "foo", "operator": "Exists"}]});
        let widgets = json!({"operations": ["CREATE"], "apiGroups": ["acme.example"], "apiVersions": ["v1"], "resources": ["widgets"]});
        let secrets =
            json!({"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]});
        let table = [
            ("W-H1", json!({}), true),
            ("W-H2", json!({"operations": ["DELETE"]}), false),
            ("W-H3", json!({"failurePolicy": "Ignore", "timeoutSeconds": 15}), false),
            ("W-H4", json!({"failurePolicy": "Ignore", "timeoutSeconds": 16}), true),
            ("W-H5", json!({"failurePolicy": "Ignore", "timeoutSeconds": null}), true),
            ("W-H6", json!({"failurePolicy": null, "timeoutSeconds": 1}), true),
            ("W-H7", json!({"namespaceSelector": purpose()}), false),
            (
                "W-H8",
                json!({"namespaceSelector": {"matchExpressions": [{"key": "foo", "operator": "In", "values": ["bar"]}]}}),
                false,
            ),
            (
                "W-H9",
                json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}),
                true,
            ),
            (
                "W-H10",
                json!({"objectSelector": not_in("origin", &["gardener"])}),
                false,
            ),
            (
                "W-H11",
                json!({"objectSelector": {"matchLabels": {"origin": "gardener"}}, "namespaceSelector": foo_exists}),
                false,
            ),
            (
                "W-H12",
                json!({"resources": ["nodes"], "namespaceSelector": purpose()}),
                true,
            ),
            (
                "W-H13",
                json!({"resources": ["nodes"], "objectSelector": foo_exists}),
                true,
            ),
            ("W-H14", json!({"resources": ["nodes"], "scope": "Namespaced"}), false),
            (
                "W-H15",
                json!({"resources": ["namespaces"], "objectSelector": purpose()}),
                false,
            ),
            (
                "W-H16",
                json!({"resources": ["namespaces"], "namespaceSelector": purpose()}),
                false,
            ),
            ("W-H17", leases("Ignore", 3), false),
            ("W-H18", leases("Ignore", 4), true),
            (
                "W-H19",
                with(leases("Ignore", 10), "namespaceSelector", purpose()),
                false,
            ),
            (
                "W-H20",
                with(
                    leases("Ignore", 10),
                    "objectSelector",
                    json!({"matchLabels": {"foo": "bar"}}),
                ),
                false,
            ),
            ("W-H21", with(leases("Fail", 3), "namespaceSelector", purpose()), true),
            (
                "W-H22",
                json!({"resources": ["services"], "namespaceSelector": purpose()}),
                true,
            ),
            (
                "ST-106",
                json!({"resources": ["services"], "namespaceSelector": both()}),
                false,
            ),
            (
                "W-H23",
                json!({"apiGroups": ["apps"], "resources": ["statefulsets"]}),
                false,
            ),
            (
                "W-H24",
                json!({"apiGroups": ["apps"], "resources": ["deployments/status"]}),
                false,
            ),
            (
                "W-H25",
                json!({"apiGroups": ["apps"], "resources": ["deployments/*"]}),
                true,
            ),
            ("W-H26", json!({"apiGroups": ["apps"], "resources": ["*"]}), true),
            (
                "W-H27",
                json!({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/status"], "namespaceSelector": both()}),
                true,
            ),
            (
                "W-H28",
                json!({"apiGroups": ["acme.example"], "resources": ["widgets"]}),
                false,
            ),
            ("W-H29", json!({"rules": [widgets, secrets]}), true),
            ("ST-102.3", json!({"resources": ["pods/binding"]}), false),
            ("ST-102.4", json!({"scope": "Cluster"}), false),
            (
                "ST-102.7",
                json!({"resources": ["widgets"], "objectSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
                true,
            ),
        ];
        for (id, changes, expected) in table {
            let found = problem_of(configuration(changes));
            assert_eq!(found.is_some(), expected, "{id}: {found:?}");
        }
    }

    #[test]
    fn st_82_what_is_told_first() {
        let told = problem_of(configuration(json!({"failurePolicy": null, "timeoutSeconds": null})));
        let words = "ValidatingWebhookConfiguration \"c\" is problematic: webhook \"w\" with failurePolicy \"nil\" and unset timeoutSeconds might prevent worker nodes from properly joining the shoot cluster";
        assert_eq!(told, Some(Problem::Problematic(words.to_owned())));
        // W-H30, W-H31
        let labelled = |label: &str, value: &str| {
            let mut own = configuration(json!({}));
            own["metadata"]["labels"] = json!({label: value});
            own
        };
        assert!(problem_of(labelled("remediation.webhook.shoot.gardener.cloud/exclude", "true")).is_some());
        assert_eq!(
            problem_of(labelled("resources.gardener.cloud/managed-by", "gardener")),
            None
        );
        assert_eq!(problem_of(labelled("app", "gardener-resource-manager")), None);
        // W-H32
        let mut warned = configuration(json!({"operations": ["DELETE"]}));
        warned["metadata"]["annotations"] = json!({"gardener.cloud/warning": "x"});
        assert!(
            matches!(problem_of(warned.clone()), Some(Problem::Remediated(words)) if words.contains("was remediated by Gardener"))
        );
        let problematic = serde_json::from_value(configuration(json!({}))).unwrap();
        let warned = serde_json::from_value(warned).unwrap();
        assert!(
            matches!(first_problem(&[warned], &[problematic]), Some(Problem::Remediated(_))),
            "validating ones come first"
        );
    }
}
