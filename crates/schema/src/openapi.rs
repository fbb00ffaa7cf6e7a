//! Writes the OpenAPI v3 documents that an API server publishes at `/openapi/v3/<group>/<version>`; from them [`v2`] makes
//! the one of `/openapi/v2`, which [`protobuf`] writes for kubectl.
//!
//! Output is JSON on demand: nothing is kept. [`routes`] knows which requests there are, [`operations`] writes them down.

mod operations;
pub mod protobuf;
mod routes;
pub mod v2;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::{meta, structural};

/// What a path needs to know of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The API version, `v1beta1`.
    pub version: String,
    /// The kind of the resource's objects.
    pub kind: String,
    /// The name in paths, `deployments`.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verbs: Vec<String>,
    /// The kind of lists of them.
    pub list_kind: String,
    /// Whether the kind was made by a CustomResourceDefinition.
    pub custom: bool,
    /// Whether a deletion answers with the object, not with a `Status`.
    pub answers_deleted_object: bool,
    /// What hangs below objects: `status`, `scale`, `binding`.
    pub subresources: Vec<Subresource>,
}

/// A subresource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subresource {
    /// The last part of the path.
    pub name: String,
    /// The group of its kind.
    pub group: String,
    /// The version of its kind.
    pub version: String,
    /// Its kind, `Scale`.
    pub kind: String,
    /// Its verbs.
    pub verbs: Vec<String>,
    /// How it is reached.
    pub access: Access,
}

/// How a subresource is reached, and what for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Objects of its kind are read and written.
    #[default]
    Object,
    /// Text is read; the options (names and types) say which.
    Text(&'static [(&'static str, &'static str)]),
    /// What stands behind the object is connected to.
    Connection {
        /// The options (names and types).
        options: &'static [(&'static str, &'static str)],
        /// Whether paths beneath it lead there, too.
        beneath: bool,
    },
}

/// A request for something that is no resource: the lists of discovery, the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Information {
    /// The end of the operation's name, `APIVersions`.
    pub subject: &'static str,
    /// The name of the answer's component; none for answers of which only a media type is told.
    pub component: Option<&'static str>,
    /// The media types of answers.
    pub produces: &'static [&'static str],
}

impl Information {
    /// The lists of discovery, in all forms that objects have.
    pub const fn discovery(subject: &'static str, component: &'static str) -> Self {
        Self {
            subject,
            component: Some(component),
            produces: &routes::OBJECTS,
        }
    }
}

/// What a document says of its server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// What is served.
    pub title: String,
    /// Its version.
    pub version: String,
    /// Whether operations say that they may be refused for want of credentials.
    pub refuses: bool,
    /// Whether the document says how credentials are sent.
    pub credentials: bool,
}

/// A complete document from component schemas and resources of one group and version. Which component a kind has is told by the
/// components. `listed` says what discovery answers, and where.
pub fn document(
    about: &About,
    components: Map<String, Value>,
    resources: &[Resource],
    listed: Option<(&str, Information)>,
) -> Value {
    let by_kind = operations::by_kind(&components);
    let mut routes: Vec<_> = resources.iter().flat_map(routes::of).collect();
    routes.extend(listed.map(|(path, information)| routes::information(path, information)));
    let mut document = json!({
        "openapi": "3.0.0",
        "info": {"title": about.title, "version": about.version},
        "paths": operations::paths(routes, &by_kind, about.refuses),
        "components": {"schemas": components},
    });
    if about.credentials {
        document["components"]["securitySchemes"] =
            json!({"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}});
    }
    document
}

/// Where the resources of a version are: `/apis/apps/v1`.
pub fn base_path(group: &str, version: &str) -> String {
    if group.is_empty() {
        format!("/api/{version}")
    } else {
        format!("/apis/{group}/{version}")
    }
}

fn reference(component: &str) -> Value {
    if component.is_empty() {
        json!({"type": "object"})
    } else {
        json!({"$ref": format!("#/components/schemas/{component}")})
    }
}

/// The name of a custom kind's component: `cloud.gardener.extensions.v1alpha1.Worker`.
pub fn component_name(group: &str, version: &str, kind: &str) -> String {
    let mut reversed: Vec<&str> = group.split('.').collect();
    reversed.reverse();
    format!("{}.{version}.{kind}", reversed.join("."))
}

/// A version of a custom kind.
#[derive(Clone, Copy, Debug)]
pub struct Custom<'a> {
    /// The API group.
    pub group: &'a str,
    /// The version.
    pub version: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The kind of lists.
    pub list_kind: &'a str,
    /// The version's `openAPIV3Schema`; none stands for any object.
    pub schema: Option<&'a Value>,
    /// Whether objects have a scale.
    pub has_scale: bool,
    /// The paths of fields by which lists may be selected (`spec.color`).
    pub selectable_fields: &'a [&'a str],
}

/// The component schemas of a custom kind and its list, with those that they and requests for them refer to.
pub fn crd_components(custom: Custom<'_>) -> Map<String, Value> {
    let (group, version) = (custom.group, custom.version);
    let gvk = |kind: &str| json!([{"group": group, "version": version, "kind": kind}]);
    let mut object = custom
        .schema
        .cloned()
        .unwrap_or_else(|| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    publish(&mut object);
    as_resource(&mut object, meta::OBJECT_META);
    if let Some(object) = object.as_object_mut() {
        object.entry("type").or_insert_with(|| "object".into());
        object.insert("x-kubernetes-group-version-kind".to_owned(), gvk(custom.kind));
    }
    let name = component_name(group, version, custom.kind);
    let mut list = json!({
        "type": "object",
        "required": ["items"],
        "properties": {"items": {"type": "array", "items": reference(&name)}},
        "x-kubernetes-group-version-kind": gvk(custom.list_kind),
    });
    as_resource(&mut list, meta::LIST_META);
    if !custom.selectable_fields.is_empty() {
        let paths = custom.selectable_fields.iter();
        let fields: Value = paths.map(|path| json!({"fieldPath": path})).collect();
        for schema in [&mut object, &mut list].into_iter().filter_map(Value::as_object_mut) {
            schema.insert("x-kubernetes-selectable-fields".to_owned(), fields.clone());
        }
    }
    let mut components = meta::components().cloned().unwrap_or_default();
    let mut roots = vec![
        routes::STATUS_COMPONENT,
        routes::DELETE_OPTIONS_COMPONENT,
        routes::PATCH_COMPONENT,
    ];
    if custom.has_scale {
        roots.push("io.k8s.api.autoscaling.v1.Scale");
    }
    let of_requests = meta::of_requests().into_iter();
    components.extend(of_requests.flat_map(|known| reachable(known, &roots)));
    components.insert(component_name(group, version, custom.list_kind), list);
    components.insert(name, object);
    components
}

/// Gives an object schema `apiVersion`, `kind` and a reference to its metadata.
fn as_resource(schema: &mut Value, metadata: &str) {
    let Some(schema) = schema.as_object_mut() else { return };
    let properties = schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    let Some(properties) = properties.as_object_mut() else {
        return;
    };
    for name in ["apiVersion", "kind"] {
        properties.entry(name).or_insert_with(|| json!({"type": "string"}));
    }
    let reference = reference(metadata);
    properties.insert("metadata".to_owned(), json!({"allOf": [reference]}));
}

/// What a CRD says to the server only is not published in this form: an int-or-string is one of two types, embedded
/// resources have a kind and metadata.
fn publish(schema: &mut Value) {
    let is_either = schema.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true));
    let says_so = is_either && (structural::is_int_or_string(schema) || structural::first_is_int_or_string(schema));
    let Some(node) = schema.as_object_mut() else { return };
    for name in ["properties"] {
        if let Some(children) = node.get_mut(name).and_then(Value::as_object_mut) {
            children.values_mut().for_each(publish);
        }
    }
    for name in ["items", "additionalProperties"] {
        if let Some(child) = node.get_mut(name) {
            publish(child);
        }
    }
    if is_either {
        node.remove("type");
        if !says_so {
            either(node);
        }
    }
    if node.get("x-kubernetes-embedded-resource") == Some(&Value::Bool(true)) {
        let required = node.entry("required").or_insert_with(|| json!([]));
        for name in ["kind", "apiVersion"] {
            if let Some(required) = required.as_array_mut()
                && !required.iter().any(|own| own == name)
            {
                required.push(name.into());
            }
        }
        as_resource(schema, meta::OBJECT_META);
    }
}

/// Says of an int-or-string in the language of schemas what its extension says.
fn either(node: &mut Map<String, Value>) {
    let types = structural::int_or_string();
    if !node.contains_key("anyOf") {
        node.insert("anyOf".to_owned(), types);
        return;
    }
    let all = node.entry("allOf").or_insert_with(|| json!([]));
    if let Some(all) = all.as_array_mut() {
        all.insert(0, json!({"anyOf": types}));
    }
}

/// Keeps those of the recorded component schemas that the given ones refer to, directly or not.
pub fn reachable(components: &Map<String, Value>, roots: &[&str]) -> Map<String, Value> {
    let mut wanted: Vec<String> = roots.iter().map(|name| (*name).to_owned()).collect();
    let mut seen = BTreeSet::new();
    let mut kept = Map::new();
    while let Some(name) = wanted.pop() {
        if !seen.insert(name.clone()) {
            continue;
        }
        if let Some(schema) = components.get(&name) {
            collect_references(schema, &mut wanted);
            kept.insert(name, schema.clone());
        }
    }
    kept
}

fn collect_references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::String(target) if name == "$ref" => {
                        found.push(target.rsplit('/').next().unwrap_or(target).to_owned());
                    }
                    other => collect_references(other, found),
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|value| collect_references(value, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Definitions, Kind};

    const GROUP: &str = "extensions.gardener.cloud";

    fn worker(custom: bool) -> Resource {
        let verbs = [
            "get",
            "list",
            "watch",
            "create",
            "update",
            "patch",
            "delete",
            "deletecollection",
        ];
        Resource {
            group: GROUP.into(),
            version: "v1alpha1".into(),
            kind: "Worker".into(),
            list_kind: "WorkerList".into(),
            plural: "workers".into(),
            namespaced: true,
            custom,
            verbs: verbs.map(Into::into).to_vec(),
            subresources: vec![Subresource {
                name: "status".into(),
                group: GROUP.into(),
                version: "v1alpha1".into(),
                kind: "Worker".into(),
                verbs: ["get", "update", "patch"].map(Into::into).to_vec(),
                access: Access::Object,
            }],
            ..Resource::default()
        }
    }

    #[test]
    fn paths_carry_what_kubectl_looks_for() {
        let worker = document(&About::default(), Map::new(), &[worker(true)], None);
        let paths = &worker["paths"];
        let base = "/apis/extensions.gardener.cloud/v1alpha1";
        let object = &paths[format!("{base}/namespaces/{{namespace}}/workers/{{name}}")];
        let patch = &object["patch"];
        assert_eq!(patch["x-kubernetes-action"], "patch");
        assert_eq!(
            patch["x-kubernetes-group-version-kind"],
            json!({"group": GROUP, "version": "v1alpha1", "kind": "Worker"})
        );
        let names = |of: &Value| -> Vec<String> {
            let parameters = of["parameters"].as_array().unwrap();
            parameters
                .iter()
                .map(|own| own["name"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(names(patch), ["dryRun", "fieldManager", "fieldValidation", "force"]);
        assert_eq!(names(object), ["name", "namespace", "pretty"]);
        assert_eq!(
            object["get"]["operationId"],
            "readExtensionsGardenerCloudV1alpha1NamespacedWorker"
        );
        assert!(paths[format!("{base}/workers")].get("post").is_none());
        let status = &paths[format!("{base}/namespaces/{{namespace}}/workers/{{name}}/status")];
        assert!(status.get("delete").is_none());
        assert_eq!(
            paths[format!("{base}/namespaces/{{namespace}}/workers")]["post"]["x-kubernetes-action"],
            "post"
        );
    }

    #[test]
    fn what_is_read_as_text_says_so() {
        let pods = Resource {
            version: "v1".into(),
            kind: "Pod".into(),
            plural: "pods".into(),
            namespaced: true,
            subresources: vec![Subresource {
                name: "log".into(),
                version: "v1".into(),
                kind: "Pod".into(),
                verbs: vec!["get".into()],
                access: Access::Text(&[("follow", "boolean")]),
                ..Subresource::default()
            }],
            ..Resource::default()
        };
        let about = About {
            refuses: true,
            ..About::default()
        };
        let text = json!({"schema": {"type": "string"}});
        let parameter = |name: &str, kind: &str| json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}});
        let of_path = |name: &str| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}});
        assert_eq!(
            document(&about, Map::new(), &[pods], None)["paths"],
            // as kube-apiserver says it, but for the options that are left out here
            json!({"/api/v1/namespaces/{namespace}/pods/{name}/log": {
                "get": {
                    "tags": ["core_v1"],
                    "operationId": "readCoreV1NamespacedPodLog",
                    "responses": {
                        "200": {"description": "OK", "content": {
                            "application/json": text,
                            "application/vnd.kubernetes.protobuf": text,
                            "application/yaml": text,
                            "text/plain": text,
                        }},
                        "401": {"description": "Unauthorized"},
                    },
                    "x-kubernetes-action": "get",
                    "x-kubernetes-group-version-kind": {"group": "", "version": "v1", "kind": "Pod"},
                },
                "parameters": [parameter("follow", "boolean"), of_path("name"), of_path("namespace"), parameter("pretty", "string")],
            }})
        );
    }

    #[test]
    fn built_in_kinds_have_more_routes_than_custom_ones() {
        let of = |custom| {
            document(&About::default(), Map::new(), &[worker(custom)], None)["paths"]
                .as_object()
                .unwrap()
                .clone()
        };
        let (built_in, custom) = (of(false), of(true));
        let more: Vec<&String> = built_in.keys().filter(|path| !custom.contains_key(*path)).collect();
        let watch = "/apis/extensions.gardener.cloud/v1alpha1/watch";
        assert_eq!(
            more,
            [
                &format!("{watch}/namespaces/{{namespace}}/workers"),
                &format!("{watch}/namespaces/{{namespace}}/workers/{{name}}"),
                &format!("{watch}/workers"),
            ]
        );
        // the one operation of a path says nothing for itself
        assert!(built_in[&format!("{watch}/workers")]["get"].get("parameters").is_none());
    }

    #[test]
    fn what_extensions_say_is_said_in_schemas_too() {
        let types = json!([{"type": "integer"}, {"type": "string"}]);
        let other = json!([{"pattern": "x"}]);
        let cases = [
            (json!({"type": "string"}), json!({"anyOf": types})),
            (json!({"anyOf": types}), json!({"anyOf": types})),
            (
                json!({"anyOf": other}),
                json!({"anyOf": other, "allOf": [{"anyOf": types}]}),
            ),
            (
                json!({"anyOf": other, "allOf": [{"anyOf": types}]}),
                json!({"anyOf": other, "allOf": [{"anyOf": types}]}),
            ),
        ];
        for (mut schema, mut expected) in cases {
            for schema in [&mut schema, &mut expected] {
                schema["x-kubernetes-int-or-string"] = true.into();
            }
            publish(&mut schema);
            assert_eq!(schema, expected);
        }
        let mut embedded =
            json!({"type": "object", "required": ["spec", "kind"], "x-kubernetes-embedded-resource": true});
        publish(&mut embedded);
        assert_eq!(embedded["required"], json!(["spec", "kind", "apiVersion"]));
    }

    #[test]
    fn custom_kinds_are_published_with_their_metadata() {
        let schema = json!({"type": "object", "properties": {
            "metadata": {"type": "object"},
            "spec": {"type": "object", "properties": {"port": {"type": "string", "x-kubernetes-int-or-string": true}}}}});
        let components = crd_components(Custom {
            group: GROUP,
            version: "v1alpha1",
            kind: "Worker",
            list_kind: "WorkerList",
            schema: Some(&schema),
            has_scale: false,
            selectable_fields: &["spec.port"],
        });
        let selectable = json!([{"fieldPath": "spec.port"}]);
        for kind in ["Worker", "WorkerList"] {
            let component = &components[&component_name(GROUP, "v1alpha1", kind)];
            assert_eq!(component["x-kubernetes-selectable-fields"], selectable);
        }
        assert!(components.contains_key(routes::DELETE_OPTIONS_COMPONENT));
        assert!(!components.contains_key("io.k8s.api.autoscaling.v1.Scale"));
        let document = document(&About::default(), components, &[worker(true)], None);
        // What is published is read back as it was meant.
        let definitions = Definitions::from_openapi([&document]).unwrap();
        let worker = definitions
            .for_kind("extensions.gardener.cloud", "v1alpha1", "Worker")
            .unwrap();
        assert_eq!(
            worker.definition_name(),
            Some("cloud.gardener.extensions.v1alpha1.Worker")
        );
        assert!(worker.field("metadata").unwrap().field("labels").is_some());
        assert_eq!(
            worker.field("spec").unwrap().field("port").unwrap().kind(),
            Kind::IntOrString
        );
        let list = definitions
            .for_kind("extensions.gardener.cloud", "v1alpha1", "WorkerList")
            .unwrap();
        assert!(list.field("metadata").unwrap().field("continue").is_some());
        assert!(list.field("items").unwrap().items().unwrap().field("spec").is_some());
    }

    #[test]
    fn only_reachable_components_are_kept() {
        let components =
            json!({"a": {"properties": {"b": {"allOf": [{"$ref": "#/components/schemas/b"}]}}}, "b": {}, "c": {}});
        let kept = reachable(components.as_object().unwrap(), &["a"]);
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["a", "b"]);
    }
}
