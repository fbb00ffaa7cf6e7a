//! `delete` and `deletecollection`.

use gardener_apimachinery::ApiError;
use gardener_store::Expect;
use serde::Deserialize;
use serde_json::{Value, json};

use super::update::{Attempt, Found, goes_away};
use super::{ListQuery, RETRIES, Scope};
use crate::definition::Operation;
use crate::{meta, object};

/// The body or query of a deletion.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeleteOptions {
    /// Seconds the object may take to end; 0: at once.
    pub grace_period_seconds: Option<i64>,
    /// What must hold.
    pub preconditions: Option<Preconditions>,
    /// `Orphan`, `Background` or `Foreground`.
    pub propagation_policy: Option<String>,
    /// The deprecated form of `Orphan`.
    pub orphan_dependents: Option<bool>,
    /// `["All"]`: decide, but do not delete.
    pub dry_run: Option<Vec<String>>,
}

/// What must hold for a deletion.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Preconditions {
    /// The object's uid.
    pub uid: Option<String>,
    /// The object's resourceVersion.
    pub resource_version: Option<String>,
}

impl DeleteOptions {
    /// Whether nothing is to be deleted.
    pub fn is_dry_run(&self) -> bool {
        self.dry_run.as_ref().is_some_and(|list| !list.is_empty())
    }

    /// The options as admission shows them.
    fn object(&self) -> Value {
        let preconditions = self.preconditions.as_ref().map(|preconditions| {
            let members = [
                ("uid", &preconditions.uid),
                ("resourceVersion", &preconditions.resource_version),
            ];
            let set = members
                .into_iter()
                .filter_map(|(key, value)| Some((key, value.clone()?)));
            set.map(|(key, value)| (key.to_owned(), value.into())).collect()
        });
        let members = [
            ("kind", Some(json!("DeleteOptions"))),
            ("apiVersion", Some(json!("meta.k8s.io/v1"))),
            ("gracePeriodSeconds", self.grace_period_seconds.map(Value::from)),
            ("preconditions", preconditions.map(Value::Object)),
            ("orphanDependents", self.orphan_dependents.map(Value::from)),
            ("propagationPolicy", self.propagation_policy.clone().map(Value::from)),
            ("dryRun", self.dry_run.clone().map(Value::from)),
        ];
        let set = members
            .into_iter()
            .filter_map(|(key, value)| Some((key.to_owned(), value?)));
        Value::Object(set.collect())
    }

    /// Checks the options.
    ///
    /// # Errors
    /// 422 for options that contradict each other or do not exist.
    pub fn validate(&self) -> Result<(), ApiError> {
        use gardener_apimachinery::field::{Error, Path};
        let mut errors = Vec::new();
        if self.propagation_policy.is_some() && self.orphan_dependents.is_some() {
            errors.push(Error::invalid(
                &Path::new("propagationPolicy"),
                self.propagation_policy.clone().unwrap_or_default(),
                "orphanDependents and deletionPropagation cannot be both set",
            ));
        }
        if let Some(policy) = &self.propagation_policy
            && !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan")
        {
            errors.push(Error::not_supported(
                &Path::new("propagationPolicy"),
                policy.as_str(),
                &["Foreground", "Background", "Orphan", "nil"],
            ));
        }
        if self.dry_run.iter().flatten().any(|value| value != "All") {
            errors.push(Error::not_supported(
                &Path::new("dryRun"),
                json!(self.dry_run),
                &["All"],
            ));
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(ApiError::invalid("meta.k8s.io", "DeleteOptions", "", &errors))
        }
    }
}

/// What a deletion did.
pub enum Deleted {
    /// The object is gone; this was its last state.
    Gone(Value),
    /// The object stays until its finalizers or its grace period end; this is its state now.
    Pending(Value),
}

impl Scope {
    /// Deletes one object, or marks it for deletion. Sentences for `Warning` headers are added to `warnings`.
    ///
    /// # Errors
    /// 404, 409 when a precondition does not hold, whatever admission says.
    pub async fn delete(&self, options: &DeleteOptions, warnings: &mut Vec<String>) -> Result<Deleted, ApiError> {
        options.validate()?;
        let asked = options.object();
        let context = self.context(self.cluster.clock().now(), options.is_dry_run());
        for _ in 0..RETRIES {
            let entry = self.entry()?;
            let found = Found::of(&entry, self);
            let old = &found.object;
            self.check_preconditions(options, old, entry.mod_revision)?;
            self.admit(&context, Operation::Delete, &asked, &mut None, Some(old), warnings)
                .await?;
            self.admit_final(&context, Operation::Delete, &asked, None, Some(old), warnings)
                .await?;
            let (object, changed) = self.marked(old, options, context.now);
            if goes_away(&object) {
                if options.is_dry_run() {
                    return Ok(Deleted::Gone(found.object));
                }
                match self
                    .commit_delete(&self.name, Expect::Revision(entry.mod_revision))
                    .await
                    .map_err(Attempt::from_commit)
                {
                    Ok(done) => {
                        self.cluster.written(&self.definition);
                        let mut last = object::value_of(&done.entry);
                        self.to_requested(&mut last)?;
                        return Ok(Deleted::Gone(last));
                    }
                    Err(Attempt::Raced) => continue,
                    Err(Attempt::Refused(error)) => return Err(error),
                }
            }
            if !changed {
                let mut object = found.object;
                self.to_requested(&mut object)?;
                return Ok(Deleted::Pending(object));
            }
            match self.store_change(found, object, options.is_dry_run()).await {
                Ok(object) => return Ok(Deleted::Pending(object)),
                Err(Attempt::Raced) => {}
                Err(Attempt::Refused(error)) => return Err(error),
            }
        }
        Err(self.modified())
    }

    /// A conflict that names the kind where others name the resource, as upstream's deletion does.
    fn precondition_failed(&self, why: &str) -> ApiError {
        let kind = self.spec().map_or("", |version| version.kind.as_str());
        ApiError::conflict(&self.definition.group, kind, &self.name, why)
    }

    fn check_preconditions(&self, options: &DeleteOptions, old: &Value, revision: u64) -> Result<(), ApiError> {
        let Some(preconditions) = &options.preconditions else {
            return Ok(());
        };
        let uid = meta::text(old, "/metadata/uid");
        if let Some(wanted) = &preconditions.uid
            && wanted != uid
        {
            return Err(self.precondition_failed(&format!(
                "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
            )));
        }
        if let Some(wanted) = &preconditions.resource_version
            && *wanted != revision.to_string()
        {
            return Err(self.precondition_failed(&format!(
                "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({revision}). The object might have been modified"
            )));
        }
        Ok(())
    }

    /// The object as deletion leaves it: with deletion time, grace period and the finalizers that the propagation policy adds or takes.
    fn marked(&self, old: &Value, options: &DeleteOptions, now: k8s_openapi::jiff::Timestamp) -> (Value, bool) {
        let mut object = old.clone();
        let policy = match (options.propagation_policy.as_deref(), options.orphan_dependents) {
            (Some(policy), _) => Some(policy),
            (None, Some(true)) => Some("Orphan"),
            (None, Some(false)) => Some("Background"),
            (None, None) => None,
        };
        let mut finalizers = meta::finalizers(old);
        if let Some(policy) = policy {
            finalizers.retain(|finalizer| finalizer != "orphan" && finalizer != "foregroundDeletion");
            match policy {
                "Orphan" => finalizers.push("orphan".into()),
                "Foreground" => finalizers.push("foregroundDeletion".into()),
                _ => {}
            }
        }
        if finalizers != meta::finalizers(old) {
            meta::set(
                &mut object,
                "finalizers",
                (!finalizers.is_empty()).then(|| json!(finalizers)),
            );
        }
        let grace = self.definition.strategy.grace_period(old, options.grace_period_seconds);
        let seconds = grace.unwrap_or(0).max(0);
        if meta::is_deleting(old) {
            // a deletion under way can only be hastened
            let current = old
                .pointer("/metadata/deletionGracePeriodSeconds")
                .and_then(Value::as_i64)
                .unwrap_or(0);
            if options.grace_period_seconds.is_some() && seconds < current {
                meta::set(&mut object, "deletionGracePeriodSeconds", Some(json!(seconds)));
                let asked = meta::parse_time(meta::text(old, "/metadata/deletionTimestamp"))
                    .map_or(now, |time| meta::later(time, seconds - current));
                meta::set(&mut object, "deletionTimestamp", Some(meta::rfc3339(asked).into()));
            }
        } else {
            meta::set(
                &mut object,
                "deletionTimestamp",
                Some(meta::rfc3339(meta::later(now, seconds)).into()),
            );
            meta::set(&mut object, "deletionGracePeriodSeconds", Some(json!(seconds)));
            if let Some(generation) = old.pointer("/metadata/generation").and_then(Value::as_i64) {
                meta::set(&mut object, "generation", Some(json!(generation + 1)));
            }
            if self.definition.group.is_empty() && self.definition.plural == "namespaces" {
                if let Some(status) = object.as_object_mut() {
                    status.insert("status".into(), json!({"phase": "Terminating"}));
                }
                meta::set(&mut object, "deletionGracePeriodSeconds", None);
            }
        }
        let changed = object != *old;
        (object, changed)
    }

    /// Deletes every object of the collection that the query selects. Answers their states before.
    ///
    /// # Errors
    /// The first refusal.
    pub async fn delete_collection(
        &self,
        query: &ListQuery,
        options: &DeleteOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<Value>, ApiError> {
        let page = self.list(&ListQuery {
            limit: None,
            continue_token: None,
            ..query.clone()
        })?;
        let mut deleted = Vec::new();
        for entry in page.entries {
            let mut object = object::value_of(&entry);
            let scope = Self {
                with_collection: true,
                ..self.at(meta::namespace(&object), meta::name(&object))
            };
            match scope.delete(options, warnings).await {
                Ok(_) => {}
                Err(error) if error.code() == 404 => continue,
                Err(error) => return Err(error),
            }
            self.to_requested(&mut object)?;
            deleted.push(object);
        }
        Ok(deleted)
    }
}
