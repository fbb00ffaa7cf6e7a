//! Writes the OpenAPI v3 documents that an API server publishes at `/openapi/v3/<group>/<version>`; from them [`v2`] makes
//! the one of `/openapi/v2`, which [`protobuf`] writes for kubectl.
//!
//! Output is JSON on demand: nothing is kept. Paths carry what kubectl looks for: the query parameter `fieldValidation`
//! of writes, `x-kubernetes-action` and `x-kubernetes-group-version-kind`.

pub mod protobuf;
pub mod v2;

use std::collections::{BTreeMap, BTreeSet};

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
    /// Name of the component schema of the kind; empty when none is published.
    pub component: String,
    /// Name of the component schema of the list kind; empty when none is published.
    pub list_component: String,
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
    /// Name of its component schema; empty when none is published.
    pub component: String,
}

/// A complete document from component schemas and resources of one group and version.
pub fn document(components: Map<String, Value>, resources: &[Resource]) -> Value {
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": paths(resources),
        "components": {"schemas": components},
    })
}

/// The `paths` of resources.
pub fn paths(resources: &[Resource]) -> Value {
    let mut paths = Map::new();
    for resource in resources {
        let base = if resource.group.is_empty() {
            format!("/api/{}", resource.version)
        } else {
            format!("/apis/{}/{}", resource.group, resource.version)
        };
        let plural = &resource.plural;
        let collection = if resource.namespaced {
            let all = operations(resource, None, &[("get", "list")], false, false);
            insert(&mut paths, format!("{base}/{plural}"), all);
            format!("{base}/namespaces/{{namespace}}/{plural}")
        } else {
            format!("{base}/{plural}")
        };
        let of_collection = [("get", "list"), ("post", "create"), ("delete", "deletecollection")];
        let found = operations(resource, None, &of_collection, resource.namespaced, false);
        insert(&mut paths, collection.clone(), found);
        let of_object = [
            ("get", "get"),
            ("put", "update"),
            ("patch", "patch"),
            ("delete", "delete"),
        ];
        let found = operations(resource, None, &of_object, resource.namespaced, true);
        insert(&mut paths, format!("{collection}/{{name}}"), found);
        for subresource in &resource.subresources {
            let verbs = [
                ("get", "get"),
                ("post", "create"),
                ("put", "update"),
                ("patch", "patch"),
                ("delete", "delete"),
            ];
            let found = operations(resource, Some(subresource), &verbs, resource.namespaced, true);
            insert(&mut paths, format!("{collection}/{{name}}/{}", subresource.name), found);
        }
    }
    Value::Object(paths)
}

fn insert(paths: &mut Map<String, Value>, path: String, operations: Option<Map<String, Value>>) {
    if let Some(operations) = operations {
        paths.insert(path, Value::Object(operations));
    }
}

/// The operations of one path; none when the resource has none of the verbs.
fn operations(
    resource: &Resource,
    subresource: Option<&Subresource>,
    methods: &[(&str, &str)],
    namespaced: bool,
    named: bool,
) -> Option<Map<String, Value>> {
    let verbs = subresource.map_or(&resource.verbs, |subresource| &subresource.verbs);
    let mut found = Map::new();
    for (method, verb) in methods
        .iter()
        .filter(|(_, verb)| verbs.iter().any(|known| known == verb))
    {
        found.insert(
            (*method).to_owned(),
            operation(resource, subresource, verb, namespaced, named),
        );
    }
    if found.is_empty() {
        return None;
    }
    let mut parameters = Vec::new();
    if named {
        parameters.push(path_parameter("name"));
    }
    if namespaced {
        parameters.push(path_parameter("namespace"));
    }
    parameters.push(query("pretty", "string"));
    found.insert("parameters".to_owned(), Value::Array(parameters));
    Some(found)
}

fn operation(
    resource: &Resource,
    subresource: Option<&Subresource>,
    verb: &str,
    namespaced: bool,
    named: bool,
) -> Value {
    let (group, version, kind, component) = match subresource {
        Some(sub) => (&sub.group, &sub.version, &sub.kind, &sub.component),
        None => (&resource.group, &resource.version, &resource.kind, &resource.component),
    };
    let (action, prefix) = match verb {
        "create" => ("post", "create"),
        "update" => ("put", "replace"),
        "get" => ("get", "read"),
        other => (other, other),
    };
    let mut id = format!(
        "{prefix}{}{}",
        words(if resource.group.is_empty() {
            "core"
        } else {
            &resource.group
        }),
        words(&resource.version)
    );
    if verb == "deletecollection" {
        id = id.replacen("deletecollection", "delete", 1) + "Collection";
    }
    if namespaced {
        id.push_str("Namespaced");
    }
    id.push_str(&resource.kind);
    if let Some(sub) = subresource {
        id.push_str(&words(&sub.name));
    } else if !named && !namespaced && resource.namespaced {
        id.push_str("ForAllNamespaces");
    }
    let mut parameters: Vec<Value> = Vec::new();
    let mut names: Vec<(&str, &str)> = Vec::new();
    match verb {
        "create" | "update" | "patch" => {
            names.extend([
                ("dryRun", "string"),
                ("fieldManager", "string"),
                ("fieldValidation", "string"),
            ]);
            if verb == "patch" {
                names.push(("force", "boolean"));
            }
        }
        "delete" => names.extend([
            ("dryRun", "string"),
            ("gracePeriodSeconds", "integer"),
            ("propagationPolicy", "string"),
        ]),
        "list" | "deletecollection" => names.extend([
            ("allowWatchBookmarks", "boolean"),
            ("continue", "string"),
            ("fieldSelector", "string"),
            ("labelSelector", "string"),
            ("limit", "integer"),
            ("resourceVersion", "string"),
            ("resourceVersionMatch", "string"),
            ("sendInitialEvents", "boolean"),
            ("timeoutSeconds", "integer"),
            ("watch", "boolean"),
        ]),
        _ => {}
    }
    parameters.extend(names.into_iter().map(|(name, kind)| query(name, kind)));
    let answer = if verb == "list" {
        &resource.list_component
    } else {
        component
    };
    let mut operation = json!({
        "tags": [tag(&resource.group, &resource.version)],
        "operationId": id,
        "responses": {"200": response(answer)},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
    });
    if let Some(operation) = operation.as_object_mut() {
        if !parameters.is_empty() {
            operation.insert("parameters".to_owned(), Value::Array(parameters));
        }
        match verb {
            "create" | "update" => {
                let body = json!({"content": {"*/*": {"schema": reference(component)}}, "required": true});
                operation.insert("requestBody".to_owned(), body);
            }
            "patch" => {
                let body: BTreeMap<&str, Value> = [
                    "application/apply-patch+yaml",
                    "application/json-patch+json",
                    "application/merge-patch+json",
                ]
                .into_iter()
                .map(|media| (media, json!({"schema": {"type": "object"}})))
                .collect();
                operation.insert("requestBody".to_owned(), json!({"content": body, "required": true}));
            }
            _ => {}
        }
    }
    operation
}

fn path_parameter(name: &str) -> Value {
    json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "uniqueItems": true}})
}

fn query(name: &str, kind: &str) -> Value {
    json!({"name": name, "in": "query", "schema": {"type": kind, "uniqueItems": true}})
}

fn response(component: &str) -> Value {
    if component.is_empty() {
        return json!({"description": "OK"});
    }
    json!({"description": "OK", "content": {"application/json": {"schema": reference(component)}}})
}

fn reference(component: &str) -> Value {
    if component.is_empty() {
        json!({"type": "object"})
    } else {
        json!({"$ref": format!("#/components/schemas/{component}")})
    }
}

/// `AppsGardenerCloud` of `apps.gardener.cloud`.
fn words(text: &str) -> String {
    text.split(|c: char| !c.is_ascii_alphanumeric())
        .flat_map(|word| {
            let mut letters = word.chars();
            letters
                .next()
                .map(|c| c.to_ascii_uppercase())
                .into_iter()
                .chain(letters)
        })
        .collect()
}

fn tag(group: &str, version: &str) -> String {
    let first: String = words(if group.is_empty() { "core" } else { group });
    let mut letters = first.chars();
    let first: String = letters
        .next()
        .map(|c| c.to_ascii_lowercase())
        .into_iter()
        .chain(letters)
        .collect();
    format!("{first}_{version}")
}

/// The name of a custom kind's component: `cloud.gardener.extensions.v1alpha1.Worker`.
pub fn component_name(group: &str, version: &str, kind: &str) -> String {
    let mut reversed: Vec<&str> = group.split('.').collect();
    reversed.reverse();
    format!("{}.{version}.{kind}", reversed.join("."))
}

/// The component schemas of a custom kind and its list, with the metadata schemas that they refer to. `schema` is the
/// version's `openAPIV3Schema`; none stands for any object.
pub fn crd_components(
    group: &str,
    version: &str,
    kind: &str,
    list_kind: &str,
    schema: Option<&Value>,
) -> Map<String, Value> {
    let gvk = |kind: &str| json!([{"group": group, "version": version, "kind": kind}]);
    let mut object = schema
        .cloned()
        .unwrap_or_else(|| json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    publish(&mut object);
    as_resource(&mut object, meta::OBJECT_META);
    if let Some(object) = object.as_object_mut() {
        object.entry("type").or_insert_with(|| "object".into());
        object.insert("x-kubernetes-group-version-kind".to_owned(), gvk(kind));
    }
    let name = component_name(group, version, kind);
    let mut list = json!({
        "type": "object",
        "required": ["items"],
        "properties": {"items": {"type": "array", "items": reference(&name)}},
        "x-kubernetes-group-version-kind": gvk(list_kind),
    });
    as_resource(&mut list, meta::LIST_META);
    let mut components: Map<String, Value> = meta::components()
        .map(|(name, schema)| (name.clone(), schema.clone()))
        .collect();
    components.insert(component_name(group, version, list_kind), list);
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

    fn worker() -> Resource {
        Resource {
            group: "extensions.gardener.cloud".into(),
            version: "v1alpha1".into(),
            kind: "Worker".into(),
            plural: "workers".into(),
            namespaced: true,
            verbs: ["get", "list", "create", "update", "patch", "delete", "deletecollection"]
                .map(Into::into)
                .to_vec(),
            component: component_name("extensions.gardener.cloud", "v1alpha1", "Worker"),
            list_component: component_name("extensions.gardener.cloud", "v1alpha1", "WorkerList"),
            subresources: vec![Subresource {
                name: "status".into(),
                group: "extensions.gardener.cloud".into(),
                version: "v1alpha1".into(),
                kind: "Worker".into(),
                verbs: ["get", "update", "patch"].map(Into::into).to_vec(),
                component: component_name("extensions.gardener.cloud", "v1alpha1", "Worker"),
            }],
        }
    }

    #[test]
    fn paths_carry_what_kubectl_looks_for() {
        let paths = paths(&[worker()]);
        let base = "/apis/extensions.gardener.cloud/v1alpha1";
        let object = &paths[format!("{base}/namespaces/{{namespace}}/workers/{{name}}")];
        let patch = &object["patch"];
        assert_eq!(patch["x-kubernetes-action"], "patch");
        assert_eq!(
            patch["x-kubernetes-group-version-kind"],
            json!({"group": "extensions.gardener.cloud", "version": "v1alpha1", "kind": "Worker"})
        );
        let names: Vec<&str> = patch["parameters"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|p| p["name"].as_str())
            .collect();
        assert!(names.contains(&"fieldValidation") && names.contains(&"force"));
        assert_eq!(
            object["get"]["operationId"],
            "readExtensionsGardenerCloudV1alpha1NamespacedWorker"
        );
        assert!(paths[format!("{base}/workers")].get("post").is_none());
        assert!(
            paths[format!("{base}/namespaces/{{namespace}}/workers/{{name}}/status")]
                .get("delete")
                .is_none()
        );
        assert_eq!(
            paths[format!("{base}/namespaces/{{namespace}}/workers")]["post"]["x-kubernetes-action"],
            "post"
        );
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
        let components = crd_components(
            "extensions.gardener.cloud",
            "v1alpha1",
            "Worker",
            "WorkerList",
            Some(&schema),
        );
        let document = document(components, &[worker()]);
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
