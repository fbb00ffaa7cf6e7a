//! Custom resources: from a CustomResourceDefinition to the [`Definition`] that serves its objects.

pub(crate) mod approval;
pub(crate) mod embedded;
pub(crate) mod names;
pub(crate) mod scale;
pub(crate) mod shapes;
pub(crate) mod termination;

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_apimachinery::field::go_quote;
use gardener_apimachinery::pointer::Pointed;
use gardener_schema::Schema;
use gardener_store::Topic;
use serde_json::{Value, json};

use crate::cluster::LogicalCluster;
use crate::definition::{Column, Columns, Context, Definition, Draft, PathColumn, Scale, Strategy, Version};
use crate::registry::Scope;
use crate::selectable::Selectable;
use crate::user::UserInfo;
use crate::webhooks::ConversionWebhook;
use crate::{discovery, meta};

pub(crate) const GROUP: &str = "apiextensions.k8s.io";
pub(crate) const PLURAL: &str = "customresourcedefinitions";

/// Verbs of custom resources, as discovery tells them.
pub(crate) const VERBS: [&str; 8] = [
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];

/// What custom resources add to the verbs: validation by schema.
struct CustomStrategy {
    written: Option<u64>,
    shape: u64,
    /// What is told of versions that are to go.
    deprecations: BTreeMap<String, String>,
    selectable: Vec<Selectable>,
    conversion: Option<ConversionWebhook>,
    /// Whether nothing that is said of the status depends on anything else.
    status_alone: bool,
    is_terminating: bool,
}

impl Strategy for CustomStrategy {
    fn validates_schema(&self) -> bool {
        true
    }

    fn metadata_of_status(&self) -> Option<&'static [&'static str]> {
        Some(&[])
    }

    fn decodes_status_alone(&self) -> bool {
        true
    }

    fn reads_status_alone(&self) -> bool {
        self.status_alone
    }

    fn allow_unconditional_update(&self) -> bool {
        false
    }

    fn warnings(&self, _: &Context<'_>, object: &Draft, old: Option<&Draft>) -> Vec<String> {
        let before = old.map(|old| meta::finalizers(old)).unwrap_or_default();
        let mut added = meta::finalizers(object);
        added.retain(|name| !before.contains(name));
        added.sort();
        added.dedup();
        added.iter().flat_map(|name| warn_of_finalizer(name)).collect()
    }

    fn refuses_creation(&self) -> Option<&'static str> {
        self.is_terminating
            .then_some("create not allowed while custom resource definition is terminating")
    }

    fn deprecation(&self, version: &str) -> Option<&str> {
        self.deprecations.get(version).map(String::as_str)
    }

    fn schema_written(&self) -> Option<u64> {
        self.written
    }

    fn shape(&self) -> Option<u64> {
        Some(self.shape)
    }

    fn conversion_webhook(&self) -> Option<&ConversionWebhook> {
        self.conversion.as_ref()
    }

    fn selectable_fields(&self) -> &[Selectable] {
        &self.selectable
    }
}

/// What is told of a finalizer that may be mistaken for another one, or is no name at all.
fn warn_of_finalizer(name: &str) -> Vec<String> {
    let mut warnings = gardener_apimachinery::names::qualified_name(name);
    if !name.contains('/') && !["orphan", "foregroundDeletion", "kubernetes"].contains(&name) {
        let path = if name.contains('.') {
            " including a path (/)"
        } else {
            ""
        };
        warnings.push(format!(
            "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other finalizer writers"
        ));
    }
    warnings
        .into_iter()
        .map(|why| format!("metadata.finalizers: {}: {why}", go_quote(name)))
        .collect()
}

/// Where the server itself acts on objects of this definition; upstream asks no plugins there either.
pub(crate) fn server_scope(
    cluster: &Arc<LogicalCluster>,
    definition: Arc<Definition>,
    subresource: &str,
) -> Option<Scope> {
    let version = definition.stored_version()?.name.clone();
    Some(Scope {
        subresource: subresource.to_owned(),
        user: Arc::new(UserInfo::apiserver()),
        admitted: true,
        ..Scope::of_all(cluster, definition, &version)
    })
}

/// The definition of a CRD's resource under its accepted names; `None` while they are not accepted or it cannot be read.
pub fn definition(crd: &Value) -> Option<Definition> {
    if !names::is_true(crd, "NamesAccepted") && !names::is_true(crd, "Established") {
        return None;
    }
    let spec = crd.get("spec")?;
    let group = meta::text(spec, "/group").to_owned();
    let names = crd.at("/status/acceptedNames")?;
    let list = |key: &str| -> Vec<String> {
        names
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let plural = meta::text(names, "/plural").to_owned();
    let kind = meta::text(names, "/kind").to_owned();
    let list_kind = match meta::text(names, "/listKind") {
        "" => format!("{kind}List"),
        own => own.to_owned(),
    };
    let preserve = spec
        .get("preserveUnknownFields")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let mut selectable = Vec::new();
    let versions: Vec<Version> = spec
        .get("versions")?
        .as_array()?
        .iter()
        .map(|version| {
            let flag = |key: &str| version.get(key).and_then(Value::as_bool).unwrap_or(false);
            let schema = version
                .at("/schema/openAPIV3Schema")
                .and_then(|schema| Schema::from_crd(schema).ok());
            let columns = version
                .get("additionalPrinterColumns")
                .and_then(Value::as_array)
                .map(|columns| columns.iter().map(path_column).collect());
            for field in version
                .get("selectableFields")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                let path = meta::text(field, "/jsonPath");
                let field = Selectable::path(path);
                if !path.is_empty() && !selectable.contains(&field) {
                    selectable.push(field);
                }
            }
            let scale = version.at("/subresources/scale").map(|scale| Scale {
                spec_replicas: meta::text(scale, "/specReplicasPath")
                    .trim_start_matches('.')
                    .to_owned(),
                status_replicas: meta::text(scale, "/statusReplicasPath")
                    .trim_start_matches('.')
                    .to_owned(),
                selector: scale
                    .get("labelSelectorPath")
                    .and_then(Value::as_str)
                    .map(|path| path.trim_start_matches('.').to_owned()),
                is_missed: false,
                is_judged: false,
            });
            Version {
                name: meta::text(version, "/name").to_owned(),
                kind: kind.clone(),
                list_kind: list_kind.clone(),
                prunes: !preserve,
                completes: false,
                schema,
                served: flag("served"),
                stored: flag("storage"),
                status: version.at("/subresources/status").is_some(),
                scale,
                columns: Columns::Paths(columns.unwrap_or_else(|| vec![age_column()])),
            }
        })
        .collect();
    let status_alone = matches!(versions.as_slice(), [only] if judges_status_alone(only));
    let deprecations = deprecations(&group, &kind, meta::elements(spec, "/versions"));
    Some(Definition {
        topic: Topic::new(&group, &plural),
        singular: match meta::text(names, "/singular") {
            "" => kind.to_lowercase(),
            own => own.to_owned(),
        },
        short_names: list("shortNames"),
        categories: list("categories"),
        namespaced: meta::text(spec, "/scope") == "Namespaced",
        group,
        plural,
        versions,
        verbs: VERBS.to_vec(),
        strategy: Arc::new(CustomStrategy {
            written: meta::resource_version(crd).parse().ok(),
            shape: shapes::shape(crd),
            deprecations,
            selectable,
            conversion: spec.get("conversion").and_then(ConversionWebhook::of),
            status_alone,
            is_terminating: termination::is_terminating(crd),
        }),
        subresources: BTreeMap::new(),
    })
}

/// Whether a version judges a status by nothing else: what a scale shows may stand anywhere.
fn judges_status_alone(version: &Version) -> bool {
    let of_status = |path: &String| path.starts_with("status.");
    let in_status = |scale: &Scale| of_status(&scale.status_replicas) && scale.selector.as_ref().is_none_or(of_status);
    version
        .schema
        .as_ref()
        .is_some_and(|schema| schema.judges_status_alone())
        && version.scale.as_ref().is_none_or(in_status)
}

/// What is told of the versions that are to go: the author's words, or which version to use.
fn deprecations(group: &str, kind: &str, versions: &[Value]) -> BTreeMap<String, String> {
    let flag = |version: &Value, key: &str| version.get(key).and_then(Value::as_bool).unwrap_or(false);
    let name = |version: &Value| meta::text(version, "/name").to_owned();
    let lasting = versions
        .iter()
        .filter(|version| flag(version, "served") && !flag(version, "deprecated"));
    let best = lasting.map(name).max_by_key(|own| discovery::version_rank(own));
    let deprecated = versions.iter().filter(|version| flag(version, "deprecated"));
    let told = deprecated.map(|version| {
        let own = name(version);
        let told = match version.get("deprecationWarning").and_then(Value::as_str) {
            Some(told) => told.to_owned(),
            None => {
                let better = best
                    .as_ref()
                    .filter(|best| discovery::version_rank(best) > discovery::version_rank(&own));
                let instead = better.map_or(String::new(), |best| format!("; use {group}/{best} {kind}"));
                format!("{group}/{own} {kind} is deprecated{instead}")
            }
        };
        (own, told)
    });
    told.collect()
}

fn age_column() -> PathColumn {
    path_column(&json!({
        "name": "Age",
        "type": "date",
        "jsonPath": ".metadata.creationTimestamp",
        "description": "How long ago the object was created.",
    }))
}

fn path_column(column: &Value) -> PathColumn {
    PathColumn {
        column: Column {
            name: meta::text(column, "/name").to_owned(),
            type_: meta::text(column, "/type").to_owned(),
            format: meta::text(column, "/format").to_owned(),
            description: match meta::text(column, "/description") {
                "" => {
                    let path = meta::text(column, "/jsonPath");
                    format!("Custom resource definition column (in JSONPath format): {path}")
                }
                own => own.to_owned(),
            },
            priority: column
                .get("priority")
                .and_then(Value::as_i64)
                .and_then(|priority| i32::try_from(priority).ok())
                .unwrap_or(0),
        },
        path: meta::text(column, "/jsonPath").to_owned(),
    }
}
