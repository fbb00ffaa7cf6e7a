//! What a real server answered, replayed through strategies and plugins: every recorded default, and the refusals that these rules make.

pub(crate) mod cases;
pub(crate) mod garden;
mod words;
mod worked;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::pointer::Pointed;
use gardener_apiserver::protobuf;
use serde_json::{Value, json};

use garden::{Garden, text};

fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple::<Value>(yaml)
        .unwrap()
        .into_iter()
        .filter(|value| !value.is_null())
        .collect()
}

/// Without what differs each time, and without members that say nothing.
fn comparable(mut value: Value) -> Value {
    if let Some(meta) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.remove("uid");
        if meta.get("labels").is_some_and(|labels| labels == &json!({})) {
            meta.remove("labels");
        }
    }
    scrub(&mut value);
    value
}

fn scrub(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // Go writes lists that are not set as null, we as empty lists; both mean the same.
            fields.retain(|_, value| !value.is_null() && *value != json!([]));
            for (key, value) in fields.iter_mut() {
                scrub(value);
                let random = matches!(
                    key.as_str(),
                    "uid" | "sub" | "lastHeartbeatTimestamp" | "expirationTimestamp"
                );
                if random || text_has_placeholder(value) {
                    *value = json!("<random>");
                }
            }
            if let Some(window) = fields.get_mut("timeWindow")
                && (text(window, "/begin") == "<random>" || text(window, "/begin") == "070000+0000")
            {
                *window = json!("<random>");
            }
        }
        Value::Array(items) => items.iter_mut().for_each(scrub),
        Value::Number(number) => {
            if let Some(float) = number.as_f64() {
                *value = json!(float);
            }
        }
        _ => {}
    }
}

fn text_has_placeholder(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.starts_with('<') && text.ends_with('>') || text.starts_with("<a random"))
        || value.as_str().is_some_and(|text| text.starts_with("<one hour later>"))
}

macro_rules! recorded {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../recorded/defaults/", $name, "-in.yaml")), include_str!(concat!("../recorded/defaults/", $name, "-out.yaml")))),*]
    };
}

const EXAMPLES: [&str; 14] = [
    include_str!("../recorded/examples/10-project-garden.yaml"),
    include_str!("../recorded/examples/11-project-local.yaml"),
    include_str!("../recorded/examples/20-cloudprofile.yaml"),
    include_str!("../recorded/examples/25-seed.yaml"),
    include_str!("../recorded/examples/30-domain-secrets.yaml"),
    include_str!("../recorded/examples/31-etcd-backup-secret.yaml"),
    include_str!("../recorded/examples/32-service-account-issuer-secret.yaml"),
    include_str!("../recorded/examples/39-secret-provider.yaml"),
    include_str!("../recorded/examples/40-credentialsbinding.yaml"),
    include_str!("../recorded/examples/41-secretbinding.yaml"),
    include_str!("../recorded/examples/50-exposureclass.yaml"),
    include_str!("../recorded/examples/90-shoot.yaml"),
    include_str!("../recorded/examples/91-shoot-workerless.yaml"),
    include_str!("../recorded/examples/92-shoot-ipv6.yaml"),
];

/// A garden with everything recorded in it, sent in some form, and what differs from the recording.
async fn recorded_garden_sent(form: fn(Value) -> Value) -> (Garden, Vec<String>) {
    let mut garden = Garden::new();
    let mut differences = Vec::new();
    let mut check =
        |name: &str, sent: Value, answer: Result<Value, ApiError>, expected: Option<&Value>| match (answer, expected) {
            (Err(error), _) => differences.push(format!("{name}: refused: {error}\n{sent}")),
            (Ok(answer), Some(expected)) => {
                let (answer, expected) = (comparable(answer), comparable(expected.clone()));
                if answer != expected {
                    differences.push(format!("{name}: {}", difference(&expected, &answer, "").join("\n  ")));
                }
            }
            _ => {}
        };
    for document in documents(include_str!("../recorded/defaults/00-setup.yaml")) {
        let answer = garden.create(form(document.clone())).await;
        check("setup", document, answer, None);
    }
    let outs = documents(include_str!("../recorded/defaults/01-examples-local-out.yaml"));
    for example in EXAMPLES {
        for document in documents(example) {
            let same = |out: &&Value| {
                out["kind"] == document["kind"]
                    && out["metadata"]["name"] == document["metadata"]["name"]
                    && out["metadata"]["namespace"] == document["metadata"]["namespace"]
            };
            let expected = outs.iter().find(same).filter(|out| out["kind"] != "Secret").cloned();
            let answer = garden.create(form(document.clone())).await;
            check(
                text(&document, "/metadata/name"),
                document.clone(),
                answer,
                expected.as_ref(),
            );
        }
    }
    for (name, sent, expected) in recorded![
        "project",
        "project-rich",
        "cloudprofile",
        "cloudprofile-rich",
        "namespacedcloudprofile",
        "namespacedcloudprofile-rich",
        "controllerdeployment",
        "controllerdeployment-v1",
        "controllerregistration",
        "controllerregistration-rich",
        "controllerinstallation",
        "exposureclass",
        "exposureclass-rich",
        "internalsecret",
        "quota",
        "secretbinding",
        "workloadidentity",
        "credentialsbinding",
        "seed",
        "seed-rich",
        "shoot",
        "shoot-workerless",
        "shoot-old-version",
        "shoot-rich",
        "shootstate",
        "backupbucket",
        "backupentry",
        "bastion",
        "gardenlet",
        "managedseedset",
    ] {
        let mut sent = documents(sent);
        let last = sent.pop().unwrap();
        for document in sent {
            let answer = garden.create(form(document.clone())).await;
            check(name, document, answer, None);
        }
        let expected = documents(expected).pop().unwrap();
        let answer = garden.create(form(last.clone())).await;
        check(name, last, answer, Some(&expected));
    }
    (garden, differences)
}

/// A garden with everything recorded in it, and what differs from the recording.
async fn recorded_garden() -> (Garden, Vec<String>) {
    recorded_garden_sent(|object| object).await
}

/// An object as it is after its way through protobuf.
fn through_protobuf(object: Value) -> Value {
    let kind = protobuf::Kind::of(text(&object, "/apiVersion"), text(&object, "/kind")).unwrap();
    protobuf::decode(&kind.encode_value(&object).unwrap()).unwrap()
}

fn difference(expected: &Value, found: &Value, at: &str) -> Vec<String> {
    match (expected, found) {
        (Value::Object(one), Value::Object(other)) => {
            let mut keys: Vec<&String> = one.keys().chain(other.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            let none = Value::Null;
            keys.into_iter()
                .flat_map(|key| {
                    difference(
                        one.get(key).unwrap_or(&none),
                        other.get(key).unwrap_or(&none),
                        &format!("{at}.{key}"),
                    )
                })
                .collect()
        }
        _ if expected == found => Vec::new(),
        // Go writes whole numbers without a fraction
        (Value::Number(one), Value::Number(other)) if one.as_f64() == other.as_f64() => Vec::new(),
        _ => vec![format!("{at}: recorded {expected}, found {found}")],
    }
}

#[tokio::test]
async fn every_recorded_default_is_ours() {
    let (_, differences) = recorded_garden().await;
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[tokio::test]
async fn objects_sent_as_protobuf_get_the_recorded_defaults() {
    let (_, differences) = recorded_garden_sent(through_protobuf).await;
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[tokio::test]
async fn nothing_but_emptiness_is_lost_in_protobuf() {
    let (garden, _) = recorded_garden().await;
    let mut seen = 0;
    for object in garden.objects() {
        let back = through_protobuf(object.clone());
        let lost: Vec<String> = difference(&object, &back, "")
            .into_iter()
            .filter(|lost| {
                ["\"\"", "0", "false", "[]", "{}", "null"]
                    .iter()
                    .all(|empty| !lost.contains(&format!(": recorded {empty}, found null")))
            })
            .collect();
        assert!(lost.is_empty(), "{}", lost.join("\n"));
        seen += 1;
    }
    assert!(seen > 40, "{seen} objects");
}

#[tokio::test]
async fn recorded_refusals_of_creations_are_ours() {
    let (mut garden, _) = recorded_garden().await;
    let recorded: Vec<Value> = serde_json::from_str(include_str!("../recorded/errors.json")).unwrap();
    // Left out: what the machinery itself answers, and texts of Go's own types.
    let skipped = [
        "body of another kind",
        "body of another group version",
        "namespace of body and path differ",
        "list where an object is expected",
        "number that is no quantity",
        "secret binding to a missing quota",
        "cloud profile with bad values",
        "object without a name",
    ];
    let mut checked = 0;
    let mut differences = Vec::new();
    for case in recorded {
        let name = text(&case, "/name").to_owned();
        let path = text(&case, "/request/path");
        let simple = text(&case, "/request/method") == "POST"
            && case.at("/request/user").is_none()
            && !path.contains('?')
            && case.at("/request/body").is_some_and(Value::is_object)
            && !path.ends_with("kubeconfig")
            && !path.ends_with("token");
        if !simple || skipped.contains(&name.as_str()) || matches!(case["code"].as_i64(), Some(404 | 409)) {
            continue;
        }
        let mut body = case.at("/request/body").unwrap().clone();
        if let Some((_, rest)) = path.split_once("/namespaces/") {
            body["metadata"]["namespace"] = rest.split('/').next().unwrap_or_default().into();
        }
        if garden.definition(&body).is_none() {
            continue;
        }
        let expected = text(&case, "/response/message");
        match garden.create(body).await {
            Ok(_) => differences.push(format!("{name}: accepted; recorded {expected}")),
            Err(error) if error.message() == expected => checked += 1,
            Err(error) => differences.push(format!("{name}:\n  recorded {expected}\n  found    {error}")),
        }
    }
    assert!(differences.is_empty(), "{checked} fit\n{}", differences.join("\n"));
    assert!(checked >= 20, "{checked}");
}

/// As a real gardener-apiserver answered: maps of quantities and of capabilities have types of their own.
#[test]
fn bodies_that_do_not_fit_are_told_by_named_types() {
    let texts: Vec<Value> = crate::openapi_documents()
        .map(|(_, text)| serde_json::from_str(text).unwrap())
        .collect();
    let definitions = gardener_schema::Definitions::from_openapi(&texts).unwrap();
    for (kind, body, expected) in [
        (
            "Quota",
            json!({"spec": {"metrics": "x"}}),
            "string into Go struct field QuotaSpec.spec.metrics of type v1.ResourceList",
        ),
        (
            "Shoot",
            json!({"spec": {"kubernetes": {"kubeAPIServer": {"autoscaling": {"minAllowed": [1]}}}}}),
            "array into Go struct field ControlPlaneAutoscaling.spec.kubernetes.kubeAPIServer.autoscaling.minAllowed of type v1.ResourceList",
        ),
        (
            "Seed",
            json!({"spec": {"settings": {"verticalPodAutoscaler": {"maxAllowed": "x"}}}}),
            "string into Go struct field SeedSettingVerticalPodAutoscaler.spec.settings.verticalPodAutoscaler.maxAllowed of type v1.ResourceList",
        ),
        (
            "NamespacedCloudProfile",
            json!({"spec": {"machineTypes": [{"capabilities": "x"}]}}),
            "string into Go struct field MachineType.spec.machineTypes.capabilities of type v1beta1.Capabilities",
        ),
        (
            "NamespacedCloudProfile",
            json!({"spec": {"machineTypes": [{"capabilities": {"a": {}}}]}}),
            "object into Go struct field MachineType.spec.machineTypes.capabilities of type v1beta1.CapabilityValues",
        ),
        (
            "CloudProfile",
            json!({"spec": {"machineImages": [{"versions": [{"capabilityFlavors": 5}]}]}}),
            "number into Go struct field MachineImageVersion.spec.machineImages.versions.capabilityFlavors of type []v1beta1.MachineImageFlavor",
        ),
        (
            "CloudProfile",
            json!({"spec": {"machineImages": [{"versions": [{"capabilityFlavors": [5]}]}]}}),
            "number into Go struct field MachineImageVersion.spec.machineImages.versions.capabilityFlavors of type v1beta1.Capabilities",
        ),
        (
            "CloudProfile",
            json!({"spec": {"machineImages": [{"versions": [{"capabilityFlavors": [{"a": {}}]}]}]}}),
            "object into Go struct field MachineImageVersion.spec.machineImages.versions.capabilityFlavors of type v1beta1.CapabilityValues",
        ),
        (
            "CloudProfile",
            json!({"spec": {"machineImages": [{"versions": [{"capabilityFlavors": [{"a": [true]}]}]}]}}),
            "bool into Go struct field MachineImageVersion.spec.machineImages.versions.capabilityFlavors of type string",
        ),
    ] {
        let schema = definitions.for_kind("core.gardener.cloud", "v1beta1", kind).unwrap();
        let told = schema.decode(&body, kind).unwrap_err().to_string();
        assert_eq!(told, format!("json: cannot unmarshal {expected}"), "{kind}");
    }
}
