//! Workload kinds: selectors that must fit their templates, and what may not change.

use gardener_apimachinery::cron::Schedule;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::selector::LabelSelector;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as SelectorObject;
use serde_json::{Value, json};

use super::pods;
use super::strategy::Kind;
use crate::meta;

fn validate_template(object: &Value) -> ErrorList {
    let mut errors = validate_replicas(object);
    let spec = Path::new("spec");
    let selector = object.pointer("/spec/selector").cloned().unwrap_or(Value::Null);
    let labels = meta::string_map(object.pointer("/spec/template/metadata/labels"));
    match serde_json::from_value::<SelectorObject>(selector.clone()) {
        Ok(parsed) if parsed != SelectorObject::default() => {
            if !LabelSelector::from(&parsed).matches(&labels) {
                errors.push(Error::invalid(
                    &spec.child("template").child("metadata").child("labels"),
                    json!(labels),
                    "`selector` does not match template `labels`",
                ));
            }
        }
        _ if selector.is_null() => {
            errors.push(Error::required(&spec.child("selector"), ""));
            let labels = object.pointer("/spec/template/metadata/labels");
            errors.push(Error::invalid(
                &spec.child("template").child("metadata").child("labels"),
                labels.cloned().unwrap_or(Value::Null),
                "`selector` does not match template `labels`",
            ));
        }
        _ => errors.push(Error::invalid(
            &spec.child("selector"),
            selector,
            "empty selector is invalid for deployment",
        )),
    }
    let claims = object.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array);
    let claims: Vec<&str> = claims.into_iter().flatten().map(meta::name).collect();
    pods::validate_spec(
        object.pointer("/spec/template/spec").unwrap_or(&Value::Null),
        &claims,
        &spec.child("template").child("spec"),
        &mut errors,
    );
    let policy = meta::text(object, "/spec/template/spec/restartPolicy");
    if !policy.is_empty() && policy != "Always" && ["OnFailure", "Never"].contains(&policy) {
        errors.push(Error::not_supported(
            &spec.child("template").child("spec").child("restartPolicy"),
            policy,
            &["Always"],
        ));
    }
    errors
}

/// How a Deployment replaces its pods.
fn validate_strategy(object: &Value) -> ErrorList {
    let path = Path::new("spec").child("strategy").child("rollingUpdate");
    let rolling = object
        .pointer("/spec/strategy/rollingUpdate")
        .filter(|value| value.is_object());
    match (meta::text(object, "/spec/strategy/type"), rolling) {
        ("Recreate", Some(_)) => vec![Error::forbidden(
            &path,
            "may not be specified when strategy `type` is 'Recreate'",
        )],
        ("RollingUpdate", Some(rolling)) => {
            let is_none = |member: &str| {
                rolling
                    .get(member)
                    .is_some_and(|value| value.as_i64() == Some(0) || value.as_str() == Some("0%"))
            };
            match is_none("maxSurge") && is_none("maxUnavailable") {
                true => vec![Error::invalid(
                    &path.child("maxUnavailable"),
                    rolling.get("maxUnavailable").cloned().unwrap_or_default(),
                    "may not be 0 when `maxSurge` is 0",
                )],
                false => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

/// Jobs by the clock.
pub(super) fn cron_jobs(mut kind: Kind) -> Kind {
    kind.validate = |object| match meta::text(object, "/spec/schedule") {
        "" => vec![Error::required(&Path::new("spec").child("schedule"), "")],
        text => match Schedule::parse(text) {
            Ok(_) => Vec::new(),
            Err(error) => vec![Error::invalid(
                &Path::new("spec").child("schedule"),
                text,
                error.to_string(),
            )],
        },
    };
    kind
}

fn validate_replicas(object: &Value) -> ErrorList {
    match object.pointer("/spec/replicas").and_then(Value::as_i64) {
        Some(replicas) if replicas < 0 => vec![Error::invalid(
            &Path::new("spec").child("replicas"),
            replicas,
            "must be greater than or equal to 0",
        )],
        _ => Vec::new(),
    }
}

fn selector_unchanged(object: &Value, old: &Value) -> ErrorList {
    let selector = |object: &Value| object.pointer("/spec/selector").cloned().unwrap_or(Value::Null);
    if selector(object) == selector(old) {
        return Vec::new();
    }
    vec![Error::invalid(
        &Path::new("spec").child("selector"),
        selector(object),
        "field is immutable",
    )]
}

pub(super) fn deployments(mut kind: Kind) -> Kind {
    kind.validate = |object| {
        let mut errors = validate_template(object);
        errors.extend(validate_strategy(object));
        errors
    };
    kind.validate_update = selector_unchanged;
    kind.whole_first = true;
    kind
}

pub(super) fn scaled(mut kind: Kind) -> Kind {
    kind.validate = |object| {
        let mut errors = Vec::new();
        let template = Path::new("spec").child("template").child("spec");
        pods::validate_spec(
            object.pointer("/spec/template/spec").unwrap_or(&Value::Null),
            &[],
            &template,
            &mut errors,
        );
        errors.extend(validate_replicas(object));
        errors
    };
    kind.validate_update = |object, old| {
        if meta::text(object, "/kind") == "ReplicaSet" {
            selector_unchanged(object, old)
        } else {
            Vec::new()
        }
    };
    kind.fields = |object| {
        let replicas = object.pointer("/status/replicas").and_then(Value::as_i64).unwrap_or(0);
        vec![("status.replicas".into(), replicas.to_string())]
    };
    kind
}

pub(super) fn stateful_sets(mut kind: Kind) -> Kind {
    kind.validate = validate_template;
    kind.validate_update = |object, old| {
        let reduced = |object: &Value| {
            let mut spec = object.get("spec").cloned().unwrap_or(Value::Null);
            if let Some(spec) = spec.as_object_mut() {
                for key in [
                    "replicas",
                    "ordinals",
                    "template",
                    "updateStrategy",
                    "revisionHistoryLimit",
                    "persistentVolumeClaimRetentionPolicy",
                    "minReadySeconds",
                ] {
                    spec.remove(key);
                }
            }
            spec
        };
        if reduced(object) == reduced(old) {
            return Vec::new();
        }
        vec![Error::forbidden(
            &Path::new("spec"),
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        )]
    };
    kind.prepare_create = |_, set| {
        set_status(set, json!({"replicas": 0, "availableReplicas": 0}));
        Ok(())
    };
    kind
}

fn set_status(object: &mut Value, status: Value) {
    if let Some(members) = object.as_object_mut() {
        members.insert("status".into(), status);
    }
}

pub(super) fn daemon_sets(mut kind: Kind) -> Kind {
    kind.validate = validate_template;
    kind.validate_update = selector_unchanged;
    kind.whole_first = true;
    kind.prepare_create = |_, set| {
        set_status(
            set,
            json!({"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}),
        );
        set_template_generation(set, 1);
        Ok(())
    };
    kind.prepare_update = |_, set, old| {
        let generation = old
            .pointer("/metadata/annotations/deprecated.daemonset.template.generation")
            .and_then(Value::as_str)
            .and_then(|text| text.parse().ok())
            .unwrap_or(1);
        let changed = set.pointer("/spec/template") != old.pointer("/spec/template");
        set_template_generation(set, if changed { generation + 1 } else { generation });
        Ok(())
    };
    kind
}

fn set_template_generation(set: &mut Value, generation: i64) {
    let annotations = meta::metadata_mut(set)
        .entry("annotations")
        .or_insert_with(|| json!({}));
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.insert(
            "deprecated.daemonset.template.generation".into(),
            generation.to_string().into(),
        );
    }
}

pub(super) fn jobs(mut kind: Kind) -> Kind {
    kind.prepare_create = |_, job| {
        set_status(job, json!({}));
        if job.pointer("/spec/manualSelector").and_then(Value::as_bool) == Some(true) {
            return Ok(());
        }
        let (uid, name) = (meta::text(job, "/metadata/uid").to_owned(), meta::name(job).to_owned());
        let labels = [
            ("controller-uid", uid.clone()),
            ("job-name", name.clone()),
            ("batch.kubernetes.io/controller-uid", uid.clone()),
            ("batch.kubernetes.io/job-name", name),
        ];
        if let Some(spec) = job.get_mut("spec").and_then(Value::as_object_mut) {
            spec.insert(
                "selector".into(),
                json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}),
            );
            if let Some(template) = spec.get_mut("template").filter(|template| template.is_object()) {
                let own = meta::metadata_mut(template)
                    .entry("labels")
                    .or_insert_with(|| json!({}));
                if let Some(own) = own.as_object_mut() {
                    own.extend(
                        labels
                            .into_iter()
                            .map(|(key, value)| (key.to_owned(), Value::from(value))),
                    );
                }
            }
        }
        // as upstream, a job without labels takes its template's
        let template_labels = job.pointer("/spec/template/metadata/labels").cloned();
        if job
            .pointer("/metadata/labels")
            .and_then(Value::as_object)
            .is_none_or(serde_json::Map::is_empty)
        {
            meta::set(job, "labels", template_labels);
        }
        Ok(())
    };
    kind.validate = |job| {
        let mut errors = Vec::new();
        let template = Path::new("spec").child("template").child("spec");
        pods::validate_spec(
            job.pointer("/spec/template/spec").unwrap_or(&Value::Null),
            &[],
            &template,
            &mut errors,
        );
        let policy = meta::text(job, "/spec/template/spec/restartPolicy");
        if !["OnFailure", "Never"].contains(&policy) {
            errors.push(if policy.is_empty() || policy == "Always" {
                Error::required(
                    &template.child("restartPolicy"),
                    "valid values: \"OnFailure\", \"Never\"",
                )
            } else {
                Error::not_supported(&template.child("restartPolicy"), policy, &["OnFailure", "Never"])
            });
        }
        errors
    };
    kind.fields = |job| {
        vec![(
            "status.successful".into(),
            job.pointer("/status/succeeded")
                .and_then(Value::as_i64)
                .unwrap_or(0)
                .to_string(),
        )]
    };
    kind
}

pub(super) fn budgets(mut kind: Kind) -> Kind {
    kind.prepare_create = |_, budget| {
        set_status(
            budget,
            json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}),
        );
        Ok(())
    };
    kind.validate = |budget| {
        let has = |key: &str| budget.pointer(&format!("/spec/{key}")).is_some();
        if has("minAvailable") && has("maxUnavailable") {
            return vec![Error::invalid(
                &Path::new("spec"),
                budget.get("spec").cloned().unwrap_or(Value::Null),
                "minAvailable and maxUnavailable cannot be both set",
            )];
        }
        Vec::new()
    };
    kind
}
