//! How problematic webhooks are changed so that a shoot can live with them [ST-110]–[ST-112].

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta};

use super::{LEASES, LONGEST, LONGEST_FOR_LEASES, Labels, ROWS, Row, WARNING, Webhook, is_own, label, webhook};

/// By this label, whose value must be `true`, people keep a configuration as it is.
const EXCLUDED: &str = "remediation.webhook.shoot.gardener.cloud/exclude";
/// What stands in front of the modifications in the annotation.
const ATTENTION: &str = "ATTENTION: This webhook configuration has been modified by Gardener, for it could keep nodes from joining the cluster \
    or system components from running. Please see \
    https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/#best-practices-and-warnings for what webhooks should look \
    like, change this configuration where it comes from, and remove this annotation then. More is told in \
    https://github.com/gardener/gardener/blob/master/docs/usage/shoot/shoot_status.md#constraints.\n\
    The following modifications have been made:";

/// What is to be different of a webhook. What is none stays.
#[derive(Debug, Default, PartialEq)]
struct Remedy {
    timeout: Option<i32>,
    failure_policy: Option<&'static str>,
    /// `objectSelector` and `namespaceSelector`.
    selectors: Option<(LabelSelector, LabelSelector)>,
    /// What is done, in words.
    notes: Vec<String>,
}

/// Whether nobody may change a configuration.
fn is_excluded(metadata: &ObjectMeta) -> bool {
    label(metadata, EXCLUDED) == Some("true") || is_own(metadata)
}

/// One requirement for each label that is in none of the others: whoever has it is not meant.
fn without(rows: &[&Row], labels: impl Fn(&Row) -> Option<Labels>) -> Vec<LabelSelectorRequirement> {
    let mut seen = BTreeSet::new();
    let all = rows.iter().filter_map(|row| labels(row)).flatten();
    all.filter(|label| seen.insert(**label))
        .map(|(key, value)| LabelSelectorRequirement {
            key: (*key).to_owned(),
            operator: "NotIn".to_owned(),
            values: Some(vec![(*value).to_owned()]),
        })
        .collect()
}

/// Requirements as Go writes them.
fn in_words(requirements: &[LabelSelectorRequirement]) -> String {
    let words = requirements.iter().map(|own| {
        let values = own.values.as_deref().unwrap_or_default().join(" ");
        format!("{{{} {} [{values}]}}", own.key, own.operator)
    });
    format!("[{}]", words.collect::<Vec<_>>().join(" "))
}

fn extended(selector: Option<&LabelSelector>, more: Vec<LabelSelectorRequirement>) -> LabelSelector {
    let mut selector = selector.cloned().unwrap_or_default();
    if !more.is_empty() {
        selector.match_expressions.get_or_insert_default().extend(more);
    }
    selector
}

impl Webhook<'_> {
    /// What is to be done about it. It is judged as it is: what one step does the next one sees only in another run [ST-111].
    fn remedy(&self) -> Remedy {
        let mut remedy = Remedy::default();
        let mut note = |field: &str, what: &str| {
            remedy
                .notes
                .push(format!("{field} of webhook {:?} was {what}", self.name));
        };
        let is_slow = |longest: i32| self.timeout.is_none_or(|timeout| timeout > longest);
        if is_slow(LONGEST_FOR_LEASES) && self.matches_any(&LEASES) {
            remedy.timeout = Some(LONGEST_FOR_LEASES);
            note("timeoutSeconds", &format!("set to {LONGEST_FOR_LEASES}"));
        }
        if is_slow(LONGEST) {
            remedy.timeout = Some(LONGEST);
            note("timeoutSeconds", &format!("set to {LONGEST}"));
        }
        if self.failure_policy == Some("Ignore") {
            return remedy;
        }
        let is_matched = |row: &&Row| self.rules.iter().any(|rule| self.matches(rule, row));
        let rows: Vec<&Row> = ROWS.iter().filter(is_matched).collect();
        if rows.is_empty() {
            return remedy;
        }
        // no selector helps where nobody knows the labels
        if rows.iter().any(|row| row.namespace.is_none() && row.object.is_none()) {
            remedy.failure_policy = Some("Ignore");
            note("failurePolicy", "set to Ignore");
        }
        let (objects, namespaces) = (without(&rows, |row| row.object), without(&rows, |row| row.namespace));
        for (field, more) in [("objectSelector", &objects), ("namespaceSelector", &namespaces)] {
            if !more.is_empty() {
                note(field, &format!("extended with {}", in_words(more)));
            }
        }
        remedy.selectors = Some((extended(self.objects, objects), extended(self.namespaces, namespaces)));
        remedy
    }
}

/// Tells in a configuration's metadata what was done; nothing if there was nothing to do.
fn tell(metadata: &mut ObjectMeta, notes: &[String]) -> bool {
    if notes.is_empty() {
        return false;
    }
    let notes: Vec<String> = notes.iter().map(|note| format!("\n- {note}")).collect();
    let annotations = metadata.annotations.get_or_insert_default();
    annotations.insert(WARNING.to_owned(), format!("{ATTENTION}{}", notes.concat()));
    true
}

/// A configuration of webhooks.
pub trait Configuration {
    /// Changes what is problematic, and tells whether there was something [ST-111], [ST-112].
    fn remediate(&mut self) -> bool;
}

macro_rules! configuration {
    ($($kind:ty),*) => {$(
        impl Configuration for $kind {
            fn remediate(&mut self) -> bool {
                if is_excluded(&self.metadata) {
                    return false;
                }
                let mut notes = Vec::new();
                for own in self.webhooks.iter_mut().flatten() {
                    let mut remedy = webhook!(own).remedy();
                    notes.append(&mut remedy.notes);
                    own.timeout_seconds = remedy.timeout.or(own.timeout_seconds);
                    if let Some(policy) = remedy.failure_policy {
                        own.failure_policy = Some(policy.to_owned());
                    }
                    if let Some((objects, namespaces)) = remedy.selectors {
                        own.object_selector = Some(objects);
                        own.namespace_selector = Some(namespaces);
                    }
                }
                // selectors that were only made empty select the same as before
                tell(&mut self.metadata, &notes)
            }
        }
    )*};
}

configuration!(MutatingWebhookConfiguration, ValidatingWebhookConfiguration);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::webhooks::{Problem, first_problem};

    /// A configuration with one webhook for a resource of a group.
    fn configuration(group: &str, resource: &str, operation: &str, policy: &str, timeout: i32) -> Value {
        json!({"metadata": {"name": "c"}, "webhooks": [{
            "name": "w", "admissionReviewVersions": ["v1"], "clientConfig": {}, "sideEffects": "None",
            "failurePolicy": policy, "timeoutSeconds": timeout,
            "rules": [{"operations": [operation], "apiGroups": [group], "apiVersions": ["v1"], "resources": [resource]}],
        }]})
    }

    /// A configuration that may be read as one of either kind.
    fn shown(own: &ValidatingWebhookConfiguration) -> Value {
        let mut shown = serde_json::to_value(own).unwrap();
        let members = shown.as_object_mut().unwrap();
        members.retain(|key, _| !matches!(key.as_str(), "kind" | "apiVersion"));
        shown
    }

    /// The configuration after a run, and what was noted.
    fn remediated(configuration: &Value) -> (Value, Vec<String>) {
        let mut own: ValidatingWebhookConfiguration = serde_json::from_value(configuration.clone()).unwrap();
        let mut other: MutatingWebhookConfiguration = serde_json::from_value(configuration.clone()).unwrap();
        let is_changed = own.remediate();
        assert_eq!(other.remediate(), is_changed);
        let changed = shown(&own);
        let warning = changed["metadata"]["annotations"][WARNING].as_str().unwrap_or_default();
        assert_eq!(
            is_changed,
            warning.starts_with("ATTENTION: This webhook configuration has been modified by Gardener")
        );
        let notes = warning.split_once("The following modifications have been made:\n- ");
        let notes = notes.map_or(Vec::new(), |(_, notes)| {
            notes.split("\n- ").map(str::to_owned).collect()
        });
        (changed, notes)
    }

    fn problem(configuration: &Value) -> Option<Problem> {
        first_problem(&[serde_json::from_value(configuration.clone()).unwrap()], &[])
    }

    fn without(labels: &[(&str, &str)]) -> Value {
        let own = labels
            .iter()
            .map(|(key, value)| json!({"key": key, "operator": "NotIn", "values": [value]}));
        json!({"matchExpressions": own.collect::<Vec<_>>()})
    }

    #[test]
    fn st_111_worked_cases() {
        let pods = || configuration("", "pods", "CREATE", "Fail", 10);
        let system = without(&[
            ("shoot.gardener.cloud/no-cleanup", "true"),
            ("gardener.cloud/purpose", "kube-system"),
            ("kubernetes.io/metadata.name", "kube-system"),
        ]);
        let own = without(&[("shoot.gardener.cloud/no-cleanup", "true"), ("origin", "gardener")]);
        let of = |changed: &Value, key: &str| changed["webhooks"][0][key].clone();

        let (changed, notes) = remediated(&pods());
        assert_eq!(of(&changed, "namespaceSelector"), system, "W-R1");
        assert_eq!(of(&changed, "objectSelector"), own, "W-R1");
        assert_eq!(
            (of(&changed, "failurePolicy"), of(&changed, "timeoutSeconds")),
            (json!("Fail"), json!(10)),
            "W-R1"
        );
        let words = "objectSelector of webhook \"w\" was extended with [{shoot.gardener.cloud/no-cleanup NotIn [true]} {origin NotIn [gardener]}]";
        assert_eq!((notes.len(), notes[0].as_str()), (2, words), "W-R1");
        assert!(
            notes[1].starts_with("namespaceSelector of webhook \"w\" was extended with [{shoot"),
            "W-R1"
        );

        // W-R7
        let mut again: ValidatingWebhookConfiguration = serde_json::from_value(changed.clone()).unwrap();
        assert!(!again.remediate(), "W-R7");
        assert_eq!(shown(&again), changed, "W-R7");
        assert!(matches!(problem(&changed), Some(Problem::Remediated(_))), "W-R7");
        let mut confirmed = changed;
        confirmed["metadata"]["annotations"] = json!({});
        assert_eq!(problem(&confirmed), None, "W-R7");

        let (changed, notes) = remediated(&configuration("", "nodes", "CREATE", "Fail", 10));
        assert_eq!(of(&changed, "failurePolicy"), "Ignore", "W-R2");
        assert_eq!(of(&changed, "namespaceSelector"), json!({}), "W-R2");
        assert_eq!(of(&changed, "objectSelector"), json!({}), "W-R2");
        assert_eq!(notes, ["failurePolicy of webhook \"w\" was set to Ignore"], "W-R2");

        let widgets = configuration("acme.example", "widgets", "DELETE", "Fail", 30);
        let (changed, notes) = remediated(&widgets);
        let mut expected = widgets;
        expected["webhooks"][0]["timeoutSeconds"] = json!(15);
        assert_eq!(changed["webhooks"], expected["webhooks"], "W-R3");
        assert_eq!(notes, ["timeoutSeconds of webhook \"w\" was set to 15"], "W-R3");

        let leases = |policy, timeout| configuration("coordination.k8s.io", "leases", "CREATE", policy, timeout);
        let (changed, notes) = remediated(&leases("Ignore", 10));
        assert_eq!(of(&changed, "timeoutSeconds"), 3, "W-R4");
        assert_eq!(notes, ["timeoutSeconds of webhook \"w\" was set to 3"], "W-R4");

        let (changed, notes) = remediated(&leases("Fail", 30));
        assert_eq!(
            (of(&changed, "failurePolicy"), of(&changed, "timeoutSeconds")),
            (json!("Ignore"), json!(15)),
            "W-R5"
        );
        let set = |seconds: &str| format!("timeoutSeconds of webhook \"w\" was set to {seconds}");
        assert_eq!(notes[..2], [set("3"), set("15")], "W-R5");
        let (changed, notes) = remediated(&changed);
        assert_eq!(of(&changed, "timeoutSeconds"), 3, "W-R5");
        assert_eq!(notes, [set("3")], "W-R5: the annotation is overwritten");

        let labelled = |key: &str, value: &str| {
            let mut own = pods();
            own["metadata"]["labels"] = json!({key: value});
            own
        };
        let excluded = labelled(EXCLUDED, "true");
        let (changed, notes) = remediated(&excluded);
        assert_eq!((&changed["webhooks"], notes.len()), (&excluded["webhooks"], 0), "W-R6");
        assert!(matches!(problem(&changed), Some(Problem::Problematic(_))), "W-R6");
        for (key, value, is_changed) in [
            (EXCLUDED, "True", true),
            ("resources.gardener.cloud/managed-by", "gardener", false),
            ("app", "gardener-resource-manager", true),
        ] {
            let (_, notes) = remediated(&labelled(key, value));
            assert_eq!(!notes.is_empty(), is_changed, "{key}");
        }
    }

    #[test]
    fn st_111_what_is_there_stays() {
        let mut pods = configuration("", "pods", "CREATE", "Fail", 10);
        pods["webhooks"][0]["objectSelector"] = without(&[("a", "b")]);
        let (changed, _) = remediated(&pods);
        let own = &changed["webhooks"][0]["objectSelector"]["matchExpressions"];
        assert_eq!(own[0]["key"], "a");
        assert_eq!(own.as_array().unwrap().len(), 3);
        // of two rules that match the same rows each label is named once
        let mut twice = configuration("", "configmaps", "CREATE", "Fail", 10);
        let more = json!({"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["secrets", "endpoints"]});
        twice["webhooks"][0]["rules"].as_array_mut().unwrap().push(more);
        let (changed, _) = remediated(&twice);
        let selector = &changed["webhooks"][0]["namespaceSelector"]["matchExpressions"];
        let keys: Vec<(&str, &str)> = selector
            .as_array()
            .unwrap()
            .iter()
            .map(|own| (own["key"].as_str().unwrap(), own["values"][0].as_str().unwrap()))
            .collect();
        let name = "kubernetes.io/metadata.name";
        assert_eq!(
            keys.iter().filter(|own| own.0 == name).count(),
            2,
            "kube-system and default: {keys:?}"
        );
        assert_eq!(keys.len(), 4, "{keys:?}");
    }
}
