//! Subresources, tables and selectors, answered as a real gardener-apiserver did.

use super::*;

const GARDEN: &str = "/apis/core.gardener.cloud/v1beta1";
const MERGE: &str = "application/merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// A garden without plugins, in whose namespace `garden-dev` lives what tests make.
struct Plain(Pair);

impl Plain {
    async fn open() -> Self {
        let off = "NamespaceLifecycle,ResourceReferenceManager,ExtensionValidator,ShootTolerationRestriction,ShootExposureClass,ShootDNS,\
                   ShootManagedSeed,ShootNodeLocalDNSEnabledByDefault,ShootMutator,ShootValidator,ManagedSeed,ManagedSeedShoot";
        let pair = Pair::open(&flags(&format!("--disable-admission-plugins={off}"))).await;
        pair.create("/api/v1/namespaces", &json!({"metadata": {"name": "garden-dev"}}))
            .await;
        Self(pair)
    }

    async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
        let caller = Caller {
            user: Some(UserInfo::new("admin", &[user::MASTERS])),
            ..Caller::default()
        };
        self.0.ask(caller, method, path, headers, body).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask("GET", path, &[], &Value::Null).await
    }

    async fn refused(&self, method: &str, path: &str, body: &Value, code: u16, message: &str) {
        let (found, answer) = self.ask(method, path, &[], body).await;
        assert_eq!(
            (found, answer["message"].as_str().unwrap_or_default()),
            (code, message),
            "{path}"
        );
    }

    async fn shoot(&self) -> Value {
        let shoot = json!({"metadata": {"name": "one"}, "spec": {
            "cloudProfile": {"kind": "CloudProfile", "name": "local"}, "region": "local", "kubernetes": {"version": "1.35.0"},
            "provider": {"type": "local"},
        }, "status": {"technicalID": "sent"}});
        let path = format!("{GARDEN}/namespaces/garden-dev/shoots");
        let (code, made) = self.ask("POST", &path, &[], &shoot).await;
        assert_eq!(code, 201, "{made}");
        made
    }

    /// The path of a bastion, and the bastion.
    async fn bastion(&self) -> (String, Value) {
        let core = |kind: &str| format!("{GARDEN}/namespaces/garden-dev/{kind}");
        let binding = json!({
            "metadata": {"name": "local"}, "provider": {"type": "local"},
            "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "local", "namespace": "garden-dev"},
        });
        let bindings = "/apis/security.gardener.cloud/v1alpha1/namespaces/garden-dev/credentialsbindings";
        let (code, made) = self.ask("POST", bindings, &[], &binding).await;
        assert_eq!(code, 201, "{made}");
        let shoot = json!({"metadata": {"name": "one"}, "spec": {
            "cloudProfile": {"kind": "CloudProfile", "name": "local"}, "region": "local", "kubernetes": {"version": "1.35.0"},
            "networking": {"type": "calico"}, "credentialsBindingName": "local", "seedName": "here",
            "provider": {"type": "local", "workers": [{
                "name": "w", "minimum": 1, "maximum": 1, "machine": {"type": "local", "image": {"name": "local", "version": "1.0.0"}},
            }]},
        }});
        let (code, made) = self.ask("POST", &core("shoots"), &[], &shoot).await;
        assert_eq!(code, 201, "{made}");
        let path = "/apis/operations.gardener.cloud/v1alpha1/namespaces/garden-dev/bastions";
        let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOtPn9OLsSAbv2BI/keck83ql19gEhaoHIeZVwm0q9Gw";
        let bastion = json!({"metadata": {"name": "b"}, "spec": {
            "shootRef": {"name": "one"}, "sshPublicKey": key, "ingress": [{"ipBlock": {"cidr": "1.2.3.4/32"}}],
        }});
        let (code, made) = self.ask("POST", path, &[], &bastion).await;
        assert_eq!(code, 201, "{made}");
        (format!("{path}/b"), made)
    }
}

/// [GAPI-66]
#[tokio::test(flavor = "multi_thread")]
async fn a_binding_is_the_shoot_itself() {
    let garden = Plain::open().await;
    let mut shoot = garden.shoot().await;
    let path = format!("{GARDEN}/namespaces/garden-dev/shoots/one/binding");
    assert_eq!(garden.get(&path).await, (200, shoot.clone()));
    // the status that is sent along is another's, but is owned by who sent it
    shoot["spec"]["seedName"] = "s".into();
    shoot["status"]["technicalID"] = "mine".into();
    let (code, bound) = garden.ask("PUT", &path, &[], &shoot).await;
    assert_eq!(code, 200, "{bound}");
    assert_eq!(
        (
            &bound["spec"]["seedName"],
            &bound["status"]["technicalID"],
            &bound["metadata"]["generation"]
        ),
        (&json!("s"), &json!(""), &json!(2))
    );
    let owner = bound.at("/metadata/managedFields").unwrap().as_array().unwrap();
    let owner = owner.iter().find(|own| own["subresource"] == "binding").unwrap();
    assert_eq!(
        owner["fieldsV1"],
        json!({"f:spec": {"f:seedName": {}}, "f:status": {"f:technicalID": {}}})
    );
    let wrong = json!({"spec": {"seedName": 5}});
    let (code, answer) = garden.ask("PATCH", &path, &[("content-type", MERGE)], &wrong).await;
    assert_eq!((code, &answer["reason"]), (422, &json!("Invalid")), "{answer}");
    garden
        .refused(
            "PUT",
            &path,
            &json!({"metadata": {"name": "one"}}),
            422,
            "shoots.core.gardener.cloud \"one\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update",
        )
        .await;
    shoot["metadata"]["uid"] = "u".into();
    let (code, answer) = garden.ask("PUT", &path, &[], &shoot).await;
    let message = answer["message"].as_str().unwrap();
    assert!(
        code == 409 && message.contains("Key: /registry-gardener/core.gardener.cloud/shoots/garden-dev/one,"),
        "{message}"
    );
    let (code, answer) = garden.ask("GET", &path, &[("accept", TABLE)], &Value::Null).await;
    assert_eq!((code, &answer["reason"]), (406, &json!("NotAcceptable")));
}

/// Strategies of the garden's kinds drop what is another endpoint's only after it is known who owns what.
#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_sent_is_owned() {
    let garden = Plain::open().await;
    let shoot = garden.shoot().await;
    assert_eq!(shoot["status"]["technicalID"], "");
    let owned = shoot.at("/metadata/managedFields/0/fieldsV1/f:status");
    assert_eq!(owned, Some(&json!({"f:technicalID": {}})));
    // what is applied to a status makes the object
    let path = format!("{GARDEN}/projects/dev/status");
    let apply = |fields: Value| {
        let mut project = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project"});
        project
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        project
    };
    let patch = format!("{path}?fieldManager=applier");
    let headers = [("content-type", APPLY)];
    let (code, answer) = garden.ask("PATCH", &patch, &headers, &apply(json!({}))).await;
    assert_eq!(
        (code, answer["message"].as_str().unwrap()),
        (
            400,
            "the name of the object (dev based on URL) was undeterminable: name must be provided"
        )
    );
    let project = apply(
        json!({"metadata": {"name": "dev"}, "spec": {"description": "of developers"}, "status": {"phase": "Ready"}}),
    );
    let (code, made) = garden.ask("PATCH", &patch, &headers, &project).await;
    assert_eq!(code, 201, "{made}");
    assert_eq!(made["status"], json!({}));
    assert_eq!(
        made.at("/metadata/managedFields/0/fieldsV1"),
        Some(&json!({"f:spec": {"f:description": {}}, "f:status": {"f:phase": {}}}))
    );
    // a status is written by the stored specification, but who sends another one owns that
    let mut changed = made;
    changed["spec"]["description"] = "another".into();
    changed["status"]["phase"] = "Ready".into();
    let (code, written) = garden.ask("PUT", &path, &[], &changed).await;
    assert_eq!(code, 200, "{written}");
    assert_eq!(
        (&written["spec"]["description"], &written["status"]["phase"]),
        (&json!("of developers"), &json!("Ready"))
    );
    let owners = written.at("/metadata/managedFields").unwrap().as_array().unwrap();
    let updated = owners.iter().find(|own| own["operation"] == "Update").unwrap();
    assert_eq!(
        updated["fieldsV1"],
        json!({"f:spec": {"f:description": {}}, "f:status": {"f:phase": {}}})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_posted_is_read_before_its_parent_is_looked_for() {
    let garden = Plain::open().await;
    let path = format!("{GARDEN}/namespaces/garden-dev/shoots/none/adminkubeconfig");
    let request = |spec: Value| json!({"apiVersion": "authentication.gardener.cloud/v1alpha1", "kind": "AdminKubeconfigRequest", "spec": spec});
    let kind = "AdminKubeconfigRequest";
    for (body, code, message) in [
        (
            request(json!({"expirationSeconds": 599})),
            422,
            format!(
                "{kind}.authentication.gardener.cloud \"\" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"
            ),
        ),
        (
            request(json!({"expirationSeconds": "x"})),
            400,
            format!(
                "{kind} in version \"v1alpha1\" cannot be handled as a {kind}: json: cannot unmarshal string into Go struct field {kind}Spec.spec.expirationSeconds of type int64"
            ),
        ),
        (
            json!({"apiVersion": "authentication.gardener.cloud/v1", "kind": kind}),
            400,
            format!(
                "{kind} in version \"v1\" cannot be handled as a {kind}: no kind \"{kind}\" is registered for version \"authentication.gardener.cloud/v1\" in scheme \"pkg/runtime/scheme.go:111\""
            ),
        ),
        (
            Value::Null,
            400,
            format!(
                "the object provided is unrecognized (must be of type {kind}): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)"
            ),
        ),
        (
            request(json!({})),
            404,
            "shoots.core.gardener.cloud \"none\" not found".to_owned(),
        ),
    ] {
        garden.refused("POST", &path, &body, code, &message).await;
    }
    garden
        .refused(
            "POST",
            &format!("{path}?fieldValidation=Strict"),
            &request(json!({"a": 1})),
            400,
            &format!(
                "{kind} in version \"v1alpha1\" cannot be handled as a {kind}: strict decoding error: unknown field \"spec.a\""
            ),
        )
        .await;
    // there is no such status, and none that is shown as a table
    let path = format!("{GARDEN}/namespaces/garden-dev/quotas/q/status");
    garden
        .refused(
            "POST",
            &path,
            &json!({}),
            404,
            "the server could not find the requested resource",
        )
        .await;
    let path = format!("{GARDEN}/seeds/s/status");
    let (code, _) = garden.ask("GET", &path, &[("accept", TABLE)], &Value::Null).await;
    assert_eq!(code, 406);
}

#[tokio::test(flavor = "multi_thread")]
async fn selectors_and_empty_lists() {
    let garden = Plain::open().await;
    for (selector, message) in [
        (
            "controllerinstallations?fieldSelector=metadata.namespace%3Da",
            "field label not supported: metadata.namespace",
        ),
        (
            "projects?fieldSelector=metadata.namespace%3D",
            "field label not supported: metadata.namespace",
        ),
        (
            "seeds?labelSelector=x/y/z%3D1",
            "unable to parse requirement: <nil>: Invalid value: \"x/y/z\": a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
        ),
    ] {
        garden
            .refused("GET", &format!("{GARDEN}/{selector}"), &Value::Null, 400, message)
            .await;
    }
    let metadata = [(
        "accept",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    )];
    let (_, list) = garden
        .ask("GET", &format!("{GARDEN}/seeds"), &metadata, &Value::Null)
        .await;
    assert_eq!(list.get("items"), Some(&Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_tell_what_their_columns_are() {
    let garden = Plain::open().await;
    let path = format!("{GARDEN}/namespaces/garden-dev/shootstates");
    let state =
        json!({"metadata": {"name": "one"}, "spec": {"gardener": [{"name": "ca", "type": "secret", "data": {}}]}});
    let (code, made) = garden.ask("POST", &path, &[], &state).await;
    assert_eq!(code, 201, "{made}");
    let (_, table) = garden.ask("GET", &path, &[("accept", TABLE)], &Value::Null).await;
    let told = |column: usize, begin: &str| {
        let description = table["columnDefinitions"][column]["description"]
            .as_str()
            .unwrap_or_default();
        assert!(description.starts_with(begin), "{column}: {description}");
    };
    told(0, "Name must be unique within a namespace. Is required when creating");
    told(3, "CreationTimestamp is a timestamp representing the server time");
    assert_eq!(table["columnDefinitions"][1]["description"], "");
    // numbers, as upstream's type is
    assert_eq!(table["rows"][0]["cells"][1], 1);
    assert_eq!(table["rows"][0]["cells"][2], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_scale_is_missed_by_its_own_name() {
    let garden = Plain::open().await;
    let path = "/apis/seedmanagement.gardener.cloud/v1alpha1/namespaces/garden-dev/managedseedsets/gone/scale";
    let missed = "managedseedsets/scale.seedmanagement.gardener.cloud \"gone\" not found";
    garden.refused("GET", path, &Value::Null, 404, missed).await;
    let (code, told) = garden
        .ask(
            "PATCH",
            path,
            &[("content-type", MERGE)],
            &json!({"spec": {"replicas": 1}}),
        )
        .await;
    let missed = "managedseedsets.seedmanagement.gardener.cloud \"gone\" not found";
    assert_eq!((code, &told["message"]), (404, &json!(missed)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_metadata_is_told_twice() {
    let garden = Plain::open().await;
    let project = json!({"metadata": {"name": "one"}, "spec": {"namespace": "garden-one"}});
    garden.ask("POST", &format!("{GARDEN}/projects"), &[], &project).await;
    for (member, value) in [("uid", json!("x")), ("deletionGracePeriodSeconds", json!(4))] {
        let path = format!("{GARDEN}/projects/one");
        let change = json!({"metadata": {member: value}});
        let (code, told) = garden.ask("PATCH", &path, &[("content-type", MERGE)], &change).await;
        let once = json!({
            "field": format!("metadata.{member}"), "message": format!("Invalid value: {value}: field is immutable"),
            "reason": "FieldValueInvalid",
        });
        assert_eq!((code, &told["details"]["causes"]), (422, &json!([once, once])));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn admission_sees_changes_before_their_revision_is_looked_at() {
    let garden = Plain::open().await;
    let (path, mut made) = garden.bastion().await;
    made["metadata"]["resourceVersion"] = json!("999");
    let (code, told) = garden.ask("PUT", &path, &[], &made).await;
    assert_eq!(code, 409, "{told}");
    made["spec"]["shootRef"]["name"] = json!("gone");
    let (code, told) = garden.ask("PUT", &path, &[], &made).await;
    assert_eq!(
        (code, &told["details"]["causes"][0]["field"]),
        (422, &json!("spec.shootRef.name")),
        "{told}"
    );
    let change = json!({"metadata": {"resourceVersion": "999"}, "spec": {"shootRef": {"name": "gone"}}});
    let (code, told) = garden.ask("PATCH", &path, &[("content-type", MERGE)], &change).await;
    assert_eq!(code, 422, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_list_is_told_otherwise_than_none() {
    let garden = Plain::open().await;
    let (path, made) = garden.bastion().await;
    for (told, ingress) in [("[]", json!([])), ("null", Value::Null)] {
        let mut changed = made.clone();
        changed["spec"]["ingress"] = ingress;
        let why = format!(
            "Bastion.operations.gardener.cloud \"b\" is invalid: spec.ingress: Invalid value: {told}: ingress must not be empty"
        );
        garden.refused("PUT", &path, &changed, 422, &why).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn patches_that_are_refused_warn_of_what_is_unknown() {
    let garden = Plain::open().await;
    let project = json!({"metadata": {"name": "one"}, "spec": {"namespace": "garden-one"}});
    garden.ask("POST", &format!("{GARDEN}/projects"), &[], &project).await;
    for (metadata, code) in [(json!({"name": "two"}), 400), (json!({"resourceVersion": "999"}), 409)] {
        let caller = Caller {
            user: Some(UserInfo::new("admin", &[user::MASTERS])),
            ..Caller::default()
        };
        let change = json!({"metadata": metadata, "more": 1});
        let path = format!("{GARDEN}/projects/one");
        let (answer, warnings) = garden
            .0
            .warned(caller, "PATCH", &path, &[("content-type", MERGE)], &change)
            .await;
        assert_eq!(answer.0, code, "{}", answer.1);
        assert_eq!(warnings, ["299 - \"unknown field \\\"more\\\"\""]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_may_be_sent_as_numbers() {
    let garden = Plain::open().await;
    let path = format!("{GARDEN}/namespaces/garden-dev/internalsecrets");
    let secret = json!({"metadata": {"name": "one"}, "data": {"a": [1, 2], "b": []}});
    let (code, made) = garden.ask("POST", &path, &[], &secret).await;
    assert_eq!((code, &made["data"]), (201, &json!({"a": "AQI=", "b": ""})));
}

#[tokio::test(flavor = "multi_thread")]
async fn controller_deployments_count_what_is_deployed() {
    let garden = Plain::open().await;
    let path = "/apis/core.gardener.cloud/v1/controllerdeployments";
    let deployment = json!({"metadata": {"name": "d"}, "helm": {"rawChart": "AAAA"}});
    let (_, made) = garden.ask("POST", path, &[], &deployment).await;
    let path = format!("{path}/d");
    for (change, generation) in [
        (json!({"injectGardenKubeconfig": true}), 1),
        (json!({"helm": {"rawChart": "AAAB"}}), 2),
    ] {
        let (code, changed) = garden.ask("PATCH", &path, &[("content-type", MERGE)], &change).await;
        assert_eq!(
            (code, &changed["metadata"]["generation"]),
            (200, &json!(generation)),
            "{made} {changed}"
        );
    }
    // a strategic patch is read as the kind that was there
    let strategic = [("content-type", "application/strategic-merge-patch+json")];
    let (code, kept) = garden.ask("PATCH", &path, &strategic, &json!({"kind": "Other"})).await;
    assert_eq!((code, &kept["kind"]), (200, &json!("ControllerDeployment")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_as_it_came_has_no_strategy() {
    let garden = Plain::open().await;
    let path = "/apis/security.gardener.cloud/v1alpha1/namespaces/garden-dev/workloadidentities";
    let config = |zones: Value| json!({"spec": {"targetSystem": {"providerConfig": {"networks": {"zones": zones}}}}});
    let identity = json!({"metadata": {"name": "i"}, "spec": {"audiences": ["a"], "targetSystem": {"type": "t"}}});
    let (code, answer) = garden.ask("POST", path, &[], &identity).await;
    assert_eq!(code, 201, "{answer}");
    let path = format!("{path}/i");
    let strategic = [("content-type", "application/strategic-merge-patch+json")];
    let (code, answer) = garden.ask("PATCH", &path, &strategic, &config(json!(1))).await;
    assert_eq!(code, 200, "{answer}");
    let (code, answer) = garden.ask("PATCH", &path, &strategic, &config(json!(2))).await;
    assert_eq!(
        (code, &answer["message"]),
        (
            500,
            &json!("unable to find api field in struct RawExtension for the json field \"networks\"")
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn kinds_without_generations_keep_what_they_are_told() {
    let garden = Plain::open().await;
    let path = format!("{GARDEN}/exposureclasses");
    let class = json!({"metadata": {"name": "e", "generation": 9}, "handler": "h"});
    let (code, made) = garden.ask("POST", &path, &[], &class).await;
    assert_eq!((code, &made["metadata"]["generation"]), (201, &json!(9)), "{made}");
    let path = format!("{path}/e");
    for (options, message) in [
        (
            json!({"kind": "Other"}),
            "no kind \"Other\" is registered for version \"meta.k8s.io/v1\" in scheme \"pkg/runtime/scheme.go:111\"",
        ),
        (
            json!([]),
            "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }",
        ),
    ] {
        garden.refused("DELETE", &path, &options, 400, message).await;
    }
}
