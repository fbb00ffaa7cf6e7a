//! `patch`: JSON, merge, strategic merge, and server-side apply.

use gardener_apimachinery::ApiError;
use gardener_apimachinery::meta::go_kind;
use gardener_merge::Manager;
use serde_json::Value;

use super::update::{Attempt, Found};
use super::{RETRIES, Scope, WriteOptions, Written};
use crate::decode::{self, Format};
use crate::definition::Context;
use crate::meta;

/// The kinds of patch, by content type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchKind {
    /// `application/json-patch+json`.
    Json,
    /// `application/merge-patch+json`.
    Merge,
    /// `application/strategic-merge-patch+json`.
    Strategic,
    /// `application/apply-patch+yaml`.
    Apply,
}

impl PatchKind {
    /// The content types of patches, as errors list them.
    pub const TYPES: [&'static str; 4] = [
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
    ];

    /// The kind of a content type.
    pub fn of(content_type: &str) -> Option<Self> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            "application/apply-patch+yaml" | "application/apply-patch+json" => Some(Self::Apply),
            _ => None,
        }
    }
}

impl Scope {
    /// Changes an object, or its status, by a patch. Apply creates what does not exist.
    ///
    /// # Errors
    /// 400 for a patch that cannot be read, 404, 409 for conflicts, 415 for kinds that have no such patch, 422 for invalid results.
    pub async fn patch(&self, kind: PatchKind, body: &[u8], options: &WriteOptions) -> Result<Written, ApiError> {
        if options.force && kind != PatchKind::Apply {
            return Err(force_without_apply());
        }
        let now = self.cluster.clock().now();
        let context = self.context(now, options.dry_run);
        let format = if kind == PatchKind::Apply {
            Format::Yaml
        } else {
            Format::Json
        };
        let decoded = decode::decode(body, format)?;
        let mut warnings = Vec::new();
        if kind == PatchKind::Apply {
            if options.field_manager.is_empty() {
                return Err(apply_needs_manager());
            }
            self.check_applied(&decoded.value)?;
        }
        for _ in 0..RETRIES {
            let mut attempt_warnings = Vec::new();
            let Some(entry) = self.cluster.store().get(&self.key(&self.name)) else {
                if kind != PatchKind::Apply || !self.subresource.is_empty() {
                    return Err(self.not_found());
                }
                return self
                    .apply_new(decoded.value, &decoded.duplicates, &context, options)
                    .await;
            };
            let found = Found::of(&entry, self);
            let current = self.requested(&found.object)?;
            let mut patched = match kind {
                PatchKind::Apply => self.applied(Some(&current), &decoded.value, options, &context)?,
                PatchKind::Strategic => {
                    let schema = self
                        .spec()?
                        .schema
                        .clone()
                        .filter(|_| {
                            self.spec().is_ok_and(|version| version.prunes)
                                && !self.definition.strategy.validates_schema()
                        })
                        .ok_or_else(|| {
                            ApiError::unsupported_media_type(&[
                                "application/json-patch+json",
                                "application/merge-patch+json",
                                "application/apply-patch+yaml",
                            ])
                        })?;
                    gardener_merge::strategic(&current, &decoded.value, &schema).map_err(ApiError::from)?
                }
                PatchKind::Merge => gardener_merge::merge_patch(&current, &decoded.value).map_err(ApiError::from)?,
                PatchKind::Json => gardener_merge::json_patch(&current, &decoded.value).map_err(ApiError::from)?,
            };
            let wanted = meta::resource_version(&patched).to_owned();
            let duplicates: &[String] = if matches!(kind, PatchKind::Json) {
                &[]
            } else {
                &decoded.duplicates
            };
            let managed = patched.pointer("/metadata/managedFields").cloned();
            self.accept(&context, &mut patched, options, duplicates, &mut attempt_warnings)?;
            if kind == PatchKind::Apply {
                meta::set(&mut patched, "managedFields", managed);
            } else if !wanted.is_empty() && wanted != entry.mod_revision.to_string() {
                return Err(self.modified());
            }
            if kind == PatchKind::Apply
                && !meta::resource_version(&decoded.value).is_empty()
                && meta::resource_version(&decoded.value) != entry.mod_revision.to_string()
            {
                return Err(self.modified());
            }
            if meta::name(&patched) != self.name {
                return Err(ApiError::bad_request(format!(
                    "the name of the object ({}) does not match the name on the URL ({})",
                    meta::name(&patched),
                    self.name
                )));
            }
            self.to_stored(&mut patched)?;
            match self
                .replace(
                    found,
                    patched,
                    &context,
                    options,
                    &mut attempt_warnings,
                    kind != PatchKind::Apply,
                )
                .await
            {
                Ok(object) => {
                    warnings.append(&mut attempt_warnings);
                    return Ok(Written {
                        object,
                        created: false,
                        warnings,
                    });
                }
                Err(Attempt::Raced) => {}
                Err(Attempt::Refused(error)) => return Err(error),
            }
        }
        Err(self.modified())
    }

    fn check_applied(&self, config: &Value) -> Result<(), ApiError> {
        let version = self.spec()?;
        let api_version = self.definition.api_version(&self.version);
        let own = (meta::text(config, "/apiVersion"), meta::text(config, "/kind"));
        if own.0.is_empty() || own.1.is_empty() {
            return Err(not_of_this_type(own.0, own.1));
        }
        if own.1 != version.kind {
            return Err(not_of_this_type(own.0, own.1));
        }
        if own.0 != api_version {
            return Err(ApiError::bad_request(format!(
                "Incorrect version specified in apply patch. Specified patch version: {}, expected: {api_version}",
                own.0
            )));
        }
        if config
            .pointer("/metadata/managedFields")
            .is_some_and(|managed| managed.as_array().is_none_or(|list| !list.is_empty()) && !managed.is_null())
        {
            return Err(ApiError::bad_request("metadata.managedFields must be nil"));
        }
        let name = meta::name(config);
        if !name.is_empty() && name != self.name {
            return Err(ApiError::bad_request(format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                self.name
            )));
        }
        Ok(())
    }

    fn applied(
        &self,
        live: Option<&Value>,
        config: &Value,
        options: &WriteOptions,
        context: &Context<'_>,
    ) -> Result<Value, ApiError> {
        let schema = self
            .spec()?
            .schema
            .clone()
            .ok_or_else(|| ApiError::unsupported_media_type(&PatchKind::TYPES[..2]))?;
        let manager = Manager {
            name: &options.field_manager,
            operation: gardener_merge::Operation::Apply,
            api_version: &self.definition.api_version(&self.version),
            subresource: &self.subresource,
        };
        let mut config = config.clone();
        schema.canonicalize(&mut config);
        gardener_merge::apply(
            live,
            &config,
            &schema,
            &manager,
            options.force,
            &meta::rfc3339(context.now),
            &self.reset_fields(),
        )
        .map_err(ApiError::from)
    }

    async fn apply_new(
        &self,
        config: Value,
        duplicates: &[String],
        context: &Context<'_>,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let uid = meta::text(&config, "/metadata/uid");
        if !uid.is_empty() {
            return Err(self.conflict(&format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            )));
        }
        let mut warnings = Vec::new();
        // unknown fields are judged before they reach the merge, which knows only the schema's
        self.accept(context, &mut config.clone(), options, duplicates, &mut warnings)?;
        let mut object = self.applied(None, &config, options, context)?;
        let managed = object.pointer("/metadata/managedFields").cloned();
        self.accept(
            context,
            &mut object,
            &WriteOptions {
                field_validation: super::FieldValidation::Ignore,
                ..options.clone()
            },
            &[],
            &mut warnings,
        )?;
        meta::set(&mut object, "name", Some(self.name.clone().into()));
        meta::set(&mut object, "resourceVersion", None);
        self.place(&mut object)?;
        meta::set(&mut object, "managedFields", managed);
        self.to_stored(&mut object)?;
        self.create_owned(object, context, options, warnings).await
    }
}

fn not_of_this_type(api_version: &str, kind: &str) -> ApiError {
    ApiError::bad_request(format!("invalid object type: {}", go_kind(api_version, kind)))
}

fn force_without_apply() -> ApiError {
    use gardener_apimachinery::field::{Error, Path};
    let error = Error::forbidden(&Path::new("force"), "may not be specified for non-apply patch");
    ApiError::invalid("meta.k8s.io", "PatchOptions", "", &[error])
}

fn apply_needs_manager() -> ApiError {
    use gardener_apimachinery::field::{Error, Path};
    ApiError::invalid(
        "meta.k8s.io",
        "PatchOptions",
        "",
        &[Error::required(
            &Path::new("fieldManager"),
            "is required for apply patch",
        )],
    )
}
