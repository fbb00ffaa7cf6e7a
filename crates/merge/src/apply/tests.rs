//! Flows of server-side apply and updates, and laws.

use gardener_apimachinery::pointer::Pointed;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::fixtures::{self, CUSTOM, DEPLOYMENT};

const NOW: &str = "2026-01-01T00:00:00Z";
const LATER: &str = "2026-01-01T00:00:05Z";

fn applier(name: &str) -> Manager<'_> {
    Manager {
        name,
        operation: Operation::Apply,
        api_version: "apps/v1",
        subresource: "",
    }
}

fn updater(name: &str) -> Manager<'_> {
    Manager {
        operation: Operation::Update,
        ..applier(name)
    }
}

fn try_apply(live: Option<&Value>, config: Value, name: &str, force: bool, now: &str) -> Result<Value, ApplyError> {
    apply(live, &config, &DEPLOYMENT, &applier(name), force, now, &Set::new())
}

fn applied(live: Option<&Value>, config: Value, name: &str) -> Value {
    try_apply(live, config, name, false, NOW).unwrap()
}

fn updated(live: Option<&Value>, mut new: Value, name: &str, now: &str) -> Value {
    update(live, &mut new, &DEPLOYMENT, &updater(name), now, &Set::new());
    new
}

/// A deployment with this spec.
fn deployment(spec: Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "default"}, "spec": spec})
}

fn containers(list: Value) -> Value {
    json!({"template": {"spec": {"containers": list}}})
}

/// What a manager owns, as paths.
fn owned(object: &Value, name: &str) -> Vec<String> {
    let managed = Managed::decode(object.at("/metadata/managedFields")).unwrap();
    let found = managed.entries.iter().filter(|(identity, _)| identity.manager == name);
    found
        .flat_map(|(_, ownership)| ownership.fields.set().paths())
        .collect()
}

fn time(object: &Value, name: &str) -> String {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["manager"] == name).unwrap();
    entry["time"].as_str().unwrap().to_owned()
}

fn conflicts(error: ApplyError) -> Vec<String> {
    match error {
        ApplyError::Conflicts(list) => list.into_iter().map(|c| format!("{} {}", c.manager, c.field)).collect(),
        other => panic!("expected conflicts, found {other}"),
    }
}

#[test]
fn created_by_apply() {
    let object = applied(
        None,
        deployment(json!({"replicas": 3, "selector": {"matchLabels": {"a": "b"}}})),
        "kubectl",
    );
    assert_eq!(
        object["metadata"]["managedFields"],
        json!([{"manager": "kubectl", "operation": "Apply", "apiVersion": "apps/v1", "time": NOW, "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:replicas": {}, "f:selector": {}}}}])
    );
}

#[test]
fn created_by_update() {
    let mut new = deployment(json!({"replicas": 3}));
    new["metadata"]["labels"] = json!({"app": "x"});
    let object = updated(None, new, "curl", NOW);
    assert_eq!(
        object["metadata"]["managedFields"],
        json!([{"manager": "curl", "operation": "Update", "apiVersion": "apps/v1", "time": NOW, "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}}, "f:spec": {"f:replicas": {}}}}])
    );
}

#[test]
fn conflict_and_force() {
    let live = updated(
        None,
        deployment(json!({"replicas": 1})),
        "kubectl-client-side-apply",
        NOW,
    );
    let config = deployment(json!({"replicas": 2}));
    let error = try_apply(Some(&live), config.clone(), "me", false, NOW).unwrap_err();
    let answer = ApiError::from(error);
    assert_eq!(answer.code(), 409);
    assert_eq!(
        answer.message(),
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using apps/v1: .spec.replicas"
    );
    assert_eq!(
        serde_json::to_value(answer.status()).unwrap()["details"],
        json!({"causes": [{"reason": "FieldManagerConflict",
            "message": "conflict with \"kubectl-client-side-apply\" using apps/v1", "field": ".spec.replicas"}]})
    );
    let forced = try_apply(Some(&live), config, "me", true, NOW).unwrap();
    assert_eq!(forced["spec"]["replicas"], 2);
    assert_eq!(owned(&forced, "me"), [".spec.replicas"]);
    assert!(owned(&forced, "kubectl-client-side-apply").is_empty());
}

#[test]
fn several_conflicts_are_listed_by_manager() {
    let live = applied(None, deployment(json!({"replicas": 1, "paused": true})), "b");
    let live = updated(
        Some(&live),
        deployment(json!({"replicas": 1, "paused": true, "minReadySeconds": 1})),
        "a",
        NOW,
    );
    let config = deployment(json!({"replicas": 2, "paused": false, "minReadySeconds": 2}));
    let error = try_apply(Some(&live), config, "me", false, NOW).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 3 conflicts: conflicts with \"a\" using apps/v1:\n- .spec.minReadySeconds\nconflicts with \"b\":\n\
         - .spec.paused\n- .spec.replicas"
    );
}

#[test]
fn same_value_is_shared_and_kept_until_the_last_owner_goes() {
    let live = applied(None, deployment(json!({"replicas": 1, "paused": true})), "a");
    let live = applied(Some(&live), deployment(json!({"paused": true})), "b");
    assert_eq!(owned(&live, "b"), [".spec.paused"]);
    let live = applied(Some(&live), deployment(json!({"replicas": 1})), "a");
    assert_eq!(live["spec"], json!({"replicas": 1, "paused": true}), "b still owns it");
    let live = applied(Some(&live), deployment(json!({"minReadySeconds": 1})), "b");
    assert_eq!(live["spec"], json!({"replicas": 1, "minReadySeconds": 1}));
    let live = applied(
        Some(&live),
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}}),
        "b",
    );
    assert_eq!(live["spec"], json!({"replicas": 1}));
    assert!(owned(&live, "b").is_empty(), "who owns nothing has no entry");
}

#[test]
fn what_nobody_applied_stays() {
    let live = applied(
        None,
        deployment(json!({"replicas": 1, "strategy": {"type": "RollingUpdate"}})),
        "a",
    );
    // A default that the server filled in belongs to nobody.
    let mut with_default = live.clone();
    with_default["spec"]["progressDeadlineSeconds"] = json!(600);
    let after = applied(
        Some(&with_default),
        deployment(json!({"strategy": {"type": "RollingUpdate"}})),
        "a",
    );
    assert_eq!(
        after["spec"],
        json!({"strategy": {"type": "RollingUpdate"}, "progressDeadlineSeconds": 600})
    );
}

#[test]
fn associative_lists() {
    let a = json!({"name": "a", "image": "1", "ports": [{"containerPort": 80, "protocol": "TCP"}]});
    let live = applied(
        None,
        deployment(containers(json!([a, {"name": "b", "image": "1"}]))),
        "a",
    );
    assert_eq!(
        owned(&live, "a"),
        [
            ".spec.template.spec.containers[name=\"a\"]",
            ".spec.template.spec.containers[name=\"b\"]",
            ".spec.template.spec.containers[name=\"a\"].image",
            ".spec.template.spec.containers[name=\"a\"].name",
            ".spec.template.spec.containers[name=\"a\"].ports[containerPort=80,protocol=\"TCP\"]",
            ".spec.template.spec.containers[name=\"a\"].ports[containerPort=80,protocol=\"TCP\"].containerPort",
            ".spec.template.spec.containers[name=\"a\"].ports[containerPort=80,protocol=\"TCP\"].protocol",
            ".spec.template.spec.containers[name=\"b\"].image",
            ".spec.template.spec.containers[name=\"b\"].name",
        ]
    );
    // A port without protocol is that of the default protocol.
    let other = json!([{"name": "a", "ports": [{"containerPort": 80, "name": "http"}]}, {"name": "c", "image": "3"}]);
    let live = applied(Some(&live), deployment(containers(other)), "other");
    assert_eq!(
        live["spec"]["template"]["spec"]["containers"],
        json!([
            {"name": "a", "image": "1", "ports": [{"containerPort": 80, "protocol": "TCP", "name": "http"}]},
            {"name": "b", "image": "1"}, {"name": "c", "image": "3"}])
    );
    // Container b goes with its only owner, a stays as it is shared.
    let live = applied(
        Some(&live),
        deployment(containers(json!([{"name": "d", "image": "4"}]))),
        "a",
    );
    assert_eq!(
        live["spec"]["template"]["spec"]["containers"],
        json!([{"name": "a", "ports": [{"containerPort": 80, "name": "http"}]}, {"name": "c", "image": "3"}, {"name": "d", "image": "4"}])
    );
}

#[test]
fn order_follows_the_configuration() {
    let list = |names: &[&str]| -> Value { names.iter().map(|name| json!({"name": name, "image": "x"})).collect() };
    for (live, config, expected) in [
        (vec!["a", "b", "c"], vec!["c", "a"], vec!["b", "c", "a"]),
        (vec!["a", "b", "c"], vec!["a", "c"], vec!["a", "b", "c"]),
        (vec!["a", "b"], vec!["c"], vec!["a", "b", "c"]),
        (vec!["a", "b"], vec!["c", "b"], vec!["a", "c", "b"]),
        (vec![], vec!["c", "b"], vec!["c", "b"]),
    ] {
        let before = updated(None, deployment(containers(list(&live))), "u", NOW);
        let after = applied(Some(&before), deployment(containers(list(&config))), "a");
        let found = &after["spec"]["template"]["spec"]["containers"];
        assert_eq!(found, &list(&expected), "{live:?} and {config:?}");
    }
}

#[test]
fn scale_belongs_to_the_subresource() {
    let live = applied(None, deployment(json!({"replicas": 1, "paused": false})), "me");
    let mut scaled = live.clone();
    scaled["spec"]["replicas"] = json!(5);
    let scaler = Manager {
        subresource: "scale",
        ..updater("autoscaler")
    };
    update(Some(&live), &mut scaled, &DEPLOYMENT, &scaler, LATER, &Set::new());
    assert_eq!(owned(&scaled, "me"), [".spec.paused"]);
    let entry = &scaled["metadata"]["managedFields"][1];
    assert_eq!(
        (&entry["subresource"], &entry["time"]),
        (&json!("scale"), &json!(LATER))
    );
    let error = try_apply(Some(&scaled), deployment(json!({"replicas": 1})), "me", false, NOW).unwrap_err();
    assert_eq!(
        conflicts(error),
        ["\"autoscaler\" with subresource \"scale\" using apps/v1 .spec.replicas"]
    );
    // Leaving the field out hands it over.
    let handed = applied(Some(&scaled), deployment(json!({"paused": false})), "me");
    assert_eq!(handed["spec"]["replicas"], 5);
}

#[test]
fn nothing_changes_times_stay() {
    let config = deployment(json!({"replicas": 1}));
    let live = applied(None, config.clone(), "me");
    let again = try_apply(Some(&live), config, "me", false, LATER).unwrap();
    assert_eq!(again, live);
    let mut sent = live.clone();
    update(
        Some(&live),
        &mut sent,
        &DEPLOYMENT,
        &updater("other"),
        LATER,
        &Set::new(),
    );
    assert_eq!(sent, live);
    let more = try_apply(
        Some(&live),
        deployment(json!({"replicas": 1, "paused": true})),
        "me",
        false,
        LATER,
    )
    .unwrap();
    assert_eq!(time(&more, "me"), LATER);
}

#[test]
fn updates_take_over_and_removals_free() {
    let live = applied(
        None,
        deployment(json!({"replicas": 1, "paused": true, "minReadySeconds": 3})),
        "me",
    );
    let mut new = live.clone();
    new["spec"] = json!({"replicas": 2, "paused": true});
    let live = updated(Some(&live), new, "other", LATER);
    assert_eq!(owned(&live, "me"), [".spec.paused"]);
    assert_eq!(owned(&live, "other"), [".spec.replicas"]);
    assert_eq!(time(&live, "me"), NOW);
    // Removing alone takes nothing, so there is no entry for it.
    let mut new = live.clone();
    new["spec"] = json!({"replicas": 2});
    let live = updated(Some(&live), new, "third", LATER);
    assert!(owned(&live, "me").is_empty() && owned(&live, "third").is_empty());
}

#[test]
fn entries_that_clients_send() {
    let live = applied(None, deployment(json!({"replicas": 1})), "me");
    let with = |entries: Value| {
        let mut new = live.clone();
        new["metadata"]["uid"] = json!("1");
        new["metadata"]["managedFields"] = entries;
        new
    };
    for kept in [json!(null), json!([]), json!([{"manager": "broken"}])] {
        let found = updated(Some(&live), with(kept.clone()), "other", LATER);
        assert_eq!(owned(&found, "me"), [".spec.replicas"], "{kept}");
    }
    let reset = updated(Some(&live), with(json!([{}])), "other", LATER);
    assert!(reset["metadata"].get("managedFields").is_none());
    let other = json!([{"manager": "x", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:replicas": {}}}}]);
    let found = updated(Some(&live), with(other.clone()), "other", LATER);
    assert_eq!(found["metadata"]["managedFields"], other);
    let mut new = with(other);
    let status = Manager {
        subresource: "status",
        ..updater("other")
    };
    update(Some(&live), &mut new, &DEPLOYMENT, &status, LATER, &Set::new());
    assert_eq!(owned(&new, "me"), [".spec.replicas"], "not through a subresource");
    assert!(matches!(
        try_apply(None, with(json!([{}])), "me", false, NOW),
        Err(ApplyError::ManagedFieldsSent)
    ));
}

#[test]
fn objects_without_entries() {
    let live = deployment(json!({"replicas": 1, "paused": true}));
    let mut new = live.clone();
    new["spec"]["replicas"] = json!(2);
    assert!(
        updated(Some(&live), new, "u", NOW)["metadata"]
            .get("managedFields")
            .is_none()
    );
    let found = applied(Some(&live), deployment(json!({"paused": true})), "me");
    assert_eq!(owned(&found, BEFORE_FIRST_APPLY), [".spec.paused", ".spec.replicas"]);
    let error = try_apply(Some(&live), deployment(json!({"replicas": 2})), "me", false, NOW).unwrap_err();
    assert_eq!(
        conflicts(error),
        ["\"before-first-apply\" using apps/v1 .spec.replicas"]
    );
}

#[test]
fn kubectl_takes_over_from_client_side_apply() {
    let config = deployment(json!({"replicas": 1, "paused": true}));
    let mut new = config.clone();
    new["metadata"]["annotations"] = json!({LAST_APPLIED: config.to_string()});
    let live = updated(None, new, "kubectl-client-side-apply", NOW);
    let change = deployment(json!({"replicas": 2}));
    assert!(try_apply(Some(&live), change.clone(), "someone", false, NOW).is_err());
    let found = applied(Some(&live), change.clone(), "kubectl");
    assert_eq!(found["spec"]["replicas"], 2);
    let kept = annotation(&found).unwrap();
    assert_eq!(serde_json::from_str::<Value>(kept).unwrap(), change);
    // What another changed since is not taken over.
    let mut new = live.clone();
    new["spec"]["replicas"] = json!(7);
    let live = updated(Some(&live), new, "hpa", NOW);
    assert_eq!(
        conflicts(try_apply(Some(&live), change, "kubectl", false, NOW).unwrap_err()),
        ["\"hpa\" using apps/v1 .spec.replicas"]
    );
}

#[test]
fn reset_fields_are_not_owned() {
    let status = Set::of_fields(&["status"]);
    let mut config = deployment(json!({"replicas": 1}));
    config["status"] = json!({"replicas": 1});
    let object = apply(None, &config, &DEPLOYMENT, &applier("me"), false, NOW, &status).unwrap();
    assert_eq!(owned(&object, "me"), [".spec.replicas"]);
    let mut new = config.clone();
    update(None, &mut new, &DEPLOYMENT, &updater("u"), NOW, &status);
    assert_eq!(owned(&new, "u"), [".spec.replicas"]);
}

#[test]
fn nobody_owns_elements_that_cannot_be_told_apart() {
    let custom =
        |list: Value| json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": {"list": list}});
    let written = |live: Option<&Value>, list: Value| {
        let mut new = custom(list);
        update(live, &mut new, &CUSTOM, &updater("me"), NOW, &Set::new());
        new
    };
    let told = written(None, json!([{"name": "a"}]));
    assert!(!owned(&told, "me").is_empty());
    for live in [None, Some(&told)] {
        for untold in [json!({}), Value::Null] {
            let found = written(live, json!([{"name": "a"}, untold]));
            assert_eq!(found["metadata"].get("managedFields"), None, "{found}");
        }
    }
}

#[test]
fn what_go_always_writes_is_owned_with_what_it_is_in() {
    let volume = json!([{"name": "v", "hostPath": {}}]);
    let object = updated(
        None,
        deployment(json!({"template": {"spec": {"volumes": volume}}})),
        "me",
        NOW,
    );
    let place = r#".spec.template.spec.volumes[name="v"].hostPath"#;
    let owned = owned(&object, "me");
    for path in [place.to_owned(), format!("{place}.path")] {
        assert!(owned.contains(&path), "{path} is not in {owned:?}");
    }
}

#[test]
fn atomic_and_free_parts() {
    let spec = |spec: Value| json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "a"}, "spec": spec});
    let run = |live: Option<&Value>, config: Value, name: &str, force| {
        apply(live, &spec(config), &CUSTOM, &applier(name), force, NOW, &Set::new())
    };
    let live = run(
        None,
        json!({"atomic": {"a": "1"}, "free": {"x": {"y": 1}, "l": [1]}, "settings": {"k": "v"}, "set": ["a", "b"], "plain": ["p"]}),
        "me",
        false,
    )
    .unwrap();
    assert_eq!(
        owned(&live, "me"),
        [
            ".spec.atomic",
            ".spec.plain",
            ".spec.free.l",
            ".spec.free.x",
            ".spec.free.x.y",
            ".spec.set[=\"a\"]",
            ".spec.set[=\"b\"]",
            ".spec.settings.k",
        ]
    );
    let error = run(
        Some(&live),
        json!({"atomic": {"b": "1"}, "free": {"x": {"z": 1}, "l": [2]}, "plain": []}),
        "you",
        false,
    )
    .unwrap_err();
    assert_eq!(
        conflicts(error),
        ["\"me\" .spec.atomic", "\"me\" .spec.plain", "\"me\" .spec.free.l",]
    );
    let live = run(
        Some(&live),
        json!({"free": {"x": {"z": 1}}, "set": ["c", "b"], "settings": {"l": "w"}}),
        "you",
        false,
    )
    .unwrap();
    let live = run(Some(&live), json!({"settings": {"k": "v"}}), "me", false).unwrap();
    assert_eq!(
        live["spec"],
        json!({"free": {"x": {"z": 1}}, "settings": {"k": "v", "l": "w"}, "set": ["c", "b"]})
    );
}

#[test]
fn configurations_that_do_not_fit() {
    for (config, expected) in [
        (deployment(json!({"foo": 1})), ".spec.foo: field not declared in schema"),
        (
            deployment(json!({"replicas": "1"})),
            ".spec.replicas: expected numeric (int or float), got string",
        ),
        (
            deployment(containers(json!([{"name": "a"}, {"name": "a"}]))),
            ".spec.template.spec.containers: duplicate entries for key [name=\"a\"]",
        ),
        (
            deployment(containers(json!([1]))),
            ".spec.template.spec.containers: element 0: associative list with keys may not have non-map elements",
        ),
    ] {
        let error = try_apply(None, config, "me", false, NOW).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("failed to create typed patch object (default/d; apps/v1, Kind=Deployment): {expected}")
        );
        assert_eq!(ApiError::from(error).code(), 500, "as kube-apiserver answers");
    }
}

#[test]
fn many_updaters_are_merged() {
    let mut live = updated(None, deployment(json!({"replicas": 0})), "m00", NOW);
    for i in 1..15 {
        let mut new = live.clone();
        new["metadata"]["annotations"][format!("a{i}")] = json!("x");
        live = updated(
            Some(&live),
            new,
            &format!("m{i:02}"),
            &format!("2026-01-01T00:00:{i:02}Z"),
        );
    }
    let entries = live["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 10);
    assert!(entries.iter().any(|entry| entry["manager"] == "ancient-changes"));
}

fn custom_manager(name: &str, operation: Operation) -> Manager<'_> {
    Manager {
        name,
        operation,
        api_version: "a/v1",
        subresource: "",
    }
}

proptest! {
    #[test]
    fn what_is_left_out_of_a_comparison_is_forgotten(a in fixtures::custom_object(), b in fixtures::custom_object()) {
        for left_out in [&[][..], &["spec"], &["metadata.labels"], &["spec", "metadata.labels"], &["nothing"]] {
            let left_out = Set::of_fields(left_out);
            let mut whole = typed::compare(&a, &b, &CUSTOM);
            whole.forget(&left_out);
            prop_assert_eq!(typed::compare_but(&left_out, &a, &b, &CUSTOM, false), whole);
        }
    }

    #[test]
    fn applying_twice_is_applying_once(a in fixtures::custom_object(), b in fixtures::custom_object(), c in fixtures::custom_object()) {
        let run = |live: Option<&Value>, config: &Value, name: &str, now: &str| {
            apply(live, config, &CUSTOM, &custom_manager(name, Operation::Apply), true, now, &Set::new()).unwrap()
        };
        let mut live = run(None, &a, "one", NOW);
        live = run(Some(&live), &b, "two", NOW);
        live = run(Some(&live), &c, "one", NOW);
        // Empty associative lists are nobody's: an object of nothing else has no entries, and whoever applies then finds it made by others.
        prop_assume!(live.at("/metadata/managedFields").is_some());
        // Nor do they stay when they were emptied, and what else was emptied is null until it is applied again.
        prop_assume!(typed::compare(&c, &live, &CUSTOM).removed.is_empty() && !live.to_string().contains(":null"));
        prop_assert_eq!(&run(Some(&live), &c, "one", LATER), &live);
        // All that was applied is there, and owned.
        let fields = typed::compare(&NOTHING, &live, &CUSTOM).added;
        let mut wanted = typed::to_fieldset(&c, &CUSTOM);
        prop_assert!(wanted.difference(&fields).is_empty());
        prop_assert!(typed::compare(&c, &live, &CUSTOM).modified.is_empty());
        wanted.subtract(&STRIPPED);
        let mut entry = Managed::decode(live.at("/metadata/managedFields")).unwrap();
        let ownership = entry.entries.remove(&custom_manager("one", Operation::Apply).identity());
        prop_assert_eq!(ownership.map(|o| o.fields.set().into_owned()).unwrap_or_default(), wanted);
    }

    #[test]
    fn sole_applier_gets_what_it_says(a in fixtures::custom_object(), b in fixtures::custom_object()) {
        let manager = custom_manager("one", Operation::Apply);
        let live = apply(None, &a, &CUSTOM, &manager, false, NOW, &Set::new()).unwrap();
        let live = apply(Some(&live), &b, &CUSTOM, &manager, false, NOW, &Set::new()).unwrap();
        let fresh = apply(None, &b, &CUSTOM, &manager, false, NOW, &Set::new()).unwrap();
        // Empty associative lists are nobody's: an object of nothing else has no entries.
        prop_assume!(fresh.at("/metadata/managedFields").is_some());
        prop_assert_eq!(typed::to_fieldset(&live, &CUSTOM).difference(&typed::to_fieldset(&fresh, &CUSTOM)), Set::new());
        // An empty associative list is nobody's, so the object may have been without entries before.
        prop_assert_eq!(owned(&live, "one"), owned(&fresh, "one"));
    }

    #[test]
    fn every_value_has_an_owner_after_updates(a in fixtures::custom_object(), b in fixtures::custom_object(), c in fixtures::custom_object()) {
        let mut live = a;
        update(None, &mut live, &CUSTOM, &custom_manager("a", Operation::Update), NOW, &Set::new());
        for (mut new, name) in [(b, "b"), (c, "a")] {
            update(Some(&live), &mut new, &CUSTOM, &custom_manager(name, Operation::Update), LATER, &Set::new());
            live = new;
        }
        let managed = Managed::decode(live.at("/metadata/managedFields")).unwrap();
        let mut fields = Set::new();
        for ownership in managed.entries.values() {
            prop_assert!(fields.intersection(&ownership.fields.set()).is_empty(), "updaters never share");
            fields.extend(ownership.fields.set().into_owned());
        }
        let mut there = typed::to_fieldset(&live, &CUSTOM);
        there.subtract(&STRIPPED);
        prop_assert!(there.difference(&fields).is_empty(), "{:?}", there.difference(&fields).paths());
        let mut all = typed::compare(&NOTHING, &live, &CUSTOM).added;
        all.subtract(&STRIPPED);
        prop_assert_eq!(&fields.difference(&all), &Set::new(), "nothing is owned that is not there");
    }

    #[test]
    fn no_input_panics(live in fixtures::any_json(), new in fixtures::any_json(), force in any::<bool>()) {
        for schema in [&*DEPLOYMENT, &*CUSTOM] {
            let mut object = new.clone();
            update(Some(&live), &mut object, schema, &updater("u"), NOW, &Set::new());
            let _ = apply(Some(&live), &new, schema, &applier("kubectl"), force, NOW, &Set::new());
            let merged = typed::merge(&live, &new, schema);
            let _ = typed::compare(&live, &merged, schema);
            let fields = typed::to_fieldset(&new, schema);
            let mut rest = merged.clone();
            typed::remove(&mut rest, &fields, schema);
        }
        let fields = typed::to_fieldset(&new, &DEPLOYMENT);
        prop_assert_eq!(Set::from_fields_v1(&fields.clone().into_fields_v1()).unwrap(), fields);
    }

    #[test]
    fn stored_fields_are_touched_as_read_ones_are(a in fixtures::custom_object(), b in fixtures::custom_object()) {
        let (mine, theirs) = (typed::to_fieldset(&a, &CUSTOM), typed::to_fieldset(&b, &CUSTOM));
        for paths in [&theirs, &theirs.difference(&mine), &mine.difference(&theirs)] {
            let stored = mine.clone().into_fields_v1();
            let stored = Fields::Stored(std::borrow::Cow::Borrowed(&stored));
            prop_assert_eq!(stored.touches(paths), Fields::Read(mine.clone()).touches(paths));
        }
    }
}

#[test]
fn what_is_laid_over_an_object_keeps_the_rest_but_replaces_nothing_whole() {
    let live = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
        "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
    }});
    let over = |spec: Value| overlay(&live, &json!({"spec": spec}), &DEPLOYMENT);
    let merged =
        over(json!({"replicas": 2, "template": {"spec": {"containers": [{"name": "c", "tty": true}]}}})).unwrap();
    assert_eq!(merged["spec"]["replicas"], json!(2));
    let container = json!([{"name": "c", "image": "i", "tty": true}]);
    assert_eq!(merged["spec"]["template"]["spec"]["containers"], container);
    assert_eq!(merged["spec"]["selector"], live["spec"]["selector"]);
    let why = "invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector";
    assert_eq!(
        over(json!({"selector": {"matchLabels": {"c": "d"}}})),
        Err(why.to_owned())
    );
    let why = "failed to convert patch object to typed object: .spec.none: field not declared in schema";
    assert_eq!(over(json!({"none": 1})), Err(why.to_owned()));
}
