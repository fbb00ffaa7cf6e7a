//! Objects that are posted, answered and never stored: reviews, and bodies of subresources such as TokenRequests. How they are read, and who
//! is noted as their author.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use gardener_apimachinery::ApiError;
use gardener_merge::fieldset::Set;
use gardener_schema::{Definitions, Schema};
use gardener_store::Topic;
use serde_json::{Value, json};

use crate::accept::{Accept, Shape};
use crate::decode::Decoded;
use crate::definition::{Columns, Definition, PlainStrategy, Subresource, Version, go_package};
use crate::handle::{Call, no_list};
use crate::registry::{self, WriteOptions};
use crate::{kubernetes, meta, table};

/// What is known of Kubernetes' kinds that are only posted.
static DEFINITIONS: LazyLock<Option<Definitions>> = LazyLock::new(|| {
    let of_groups = [
        "apis/authentication.k8s.io/v1",
        "apis/authorization.k8s.io/v1",
        "apis/policy/v1",
        "api/v1",
    ];
    let documents = kubernetes::recorded_documents().filter(|(path, _)| of_groups.contains(&path.as_str()));
    let documents: Vec<Value> = documents
        .filter_map(|(_, text)| serde_json::from_str(text).ok())
        .collect();
    Definitions::from_openapi(&documents).ok()
});

/// A kind that is posted: its group, version and name.
pub(crate) struct Posted {
    /// Its group.
    pub(crate) group: &'static str,
    /// Its version.
    pub(crate) version: &'static str,
    /// Its name.
    pub(crate) kind: &'static str,
    /// What is known of it, if it is none of Kubernetes'.
    known: Option<Arc<Schema>>,
}

impl From<(&'static str, &'static str, &'static str)> for Posted {
    fn from((group, version, kind): (&'static str, &'static str, &'static str)) -> Self {
        Self {
            group,
            version,
            kind,
            known: None,
        }
    }
}

impl From<&dyn Subresource> for Posted {
    fn from(subresource: &dyn Subresource) -> Self {
        let known = subresource.schema();
        Self {
            known,
            ..subresource.kind().into()
        }
    }
}

impl Posted {
    /// What came of what was posted, in the shape that is accepted. A `Status` has one shape.
    ///
    /// # Errors
    /// 406 if a list is wanted.
    pub(crate) fn shown(&self, answer: Value, accept: Accept) -> Result<Value, ApiError> {
        if meta::text(&answer, "/kind") == "Status" {
            return Ok(answer);
        }
        match accept.shape {
            Shape::Object | Shape::Table => Ok(answer),
            Shape::Metadata => {
                let metadata = answer.get("metadata").cloned().unwrap_or_else(|| json!({}));
                Ok(table::partial(metadata, accept.meta_version()))
            }
            Shape::MetadataList => Err(no_list(&format!("{}.{}", go_package(self.group), self.kind))),
        }
    }

    /// The kind as a resource of which objects are only posted: as admission sees it.
    pub(crate) fn definition(&self, plural: &str, namespaced: bool) -> Definition {
        let version = Version {
            name: self.version.to_owned(),
            kind: self.kind.to_owned(),
            list_kind: format!("{}List", self.kind),
            schema: self.schema(),
            prunes: true,
            completes: true,
            served: true,
            stored: true,
            status: false,
            scale: None,
            columns: Columns::Row(Vec::new()),
        };
        Definition {
            group: self.group.to_owned(),
            plural: plural.to_owned(),
            singular: self.kind.to_lowercase(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced,
            topic: Topic::new(self.group, plural),
            versions: vec![version],
            verbs: vec!["create"],
            strategy: Arc::new(PlainStrategy),
            subresources: BTreeMap::new(),
        }
    }

    /// What is known of the kind.
    pub(crate) fn schema(&self) -> Option<Arc<Schema>> {
        let known = || DEFINITIONS.as_ref()?.for_kind(self.group, self.version, self.kind);
        self.known.clone().or_else(known)
    }

    /// An object of the kind from what was decoded: fields of the right types, and no others.
    ///
    /// # Errors
    /// 400 for fields of other types, and for unknown ones where the client wants to know.
    pub(crate) fn read(
        &self,
        decoded: Decoded,
        options: &WriteOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Value, ApiError> {
        let Decoded { mut value, source } = decoded;
        let Some(schema) = self.schema() else { return Ok(value) };
        let misfit = |why: String| {
            let Self { kind, version, .. } = self;
            ApiError::bad_request(format!("{}: {why}", registry::subject(kind, version, kind)))
        };
        schema.canonicalize(&mut value);
        let judged = source.judge_decoded(&schema, (&value, self.kind), options.field_validation, warnings);
        judged.map_err(misfit)?;
        schema.prune(&mut value);
        schema.drop_empty(&mut value);
        Ok(value)
    }

    /// Notes in managedFields who posted an object, and what of it was said.
    pub(crate) fn note_author(&self, call: &Call, options: &WriteOptions, subresource: &str, object: &mut Value) {
        let Some(schema) = self.schema() else { return };
        let manager = gardener_merge::Manager {
            name: &options.field_manager,
            operation: gardener_merge::Operation::Update,
            api_version: &match self.group {
                "" => self.version.to_owned(),
                group => format!("{group}/{}", self.version),
            },
            subresource,
        };
        let now = meta::rfc3339(call.cluster.clock().now());
        gardener_merge::update(None, object, &schema, &manager, &now, &Set::default());
    }
}
