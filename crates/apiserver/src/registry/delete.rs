//! `delete` and `deletecollection`.

use std::collections::BTreeSet;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::pointer::Pointed;
use gardener_store::Expect;
use k8s_openapi::jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::update::{Attempt, goes_away};
use super::{ListQuery, Page, RETRIES, Scope, Stored, TooLarge};
use crate::definition::Operation;
use crate::options::wrong_dry_run;
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
        errors.extend(self.dry_run.as_deref().and_then(wrong_dry_run));
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

/// The finalizers of a namespace whose end begins. Who says that dependents are not to be left alone waits for them here, and where nothing is said
/// nothing changes.
fn finalizers_of_namespace(before: &[String], options: &DeleteOptions) -> Vec<String> {
    let (orphan, foreground) = ("orphan", "foregroundDeletion");
    let wanted = match (options.orphan_dependents, options.propagation_policy.as_deref()) {
        (None, None) => return before.to_vec(),
        (Some(true), _) | (None, Some("Orphan")) => Some(orphan),
        (Some(false), _) | (None, Some("Foreground")) => Some(foreground),
        (None, Some(_)) => None,
    };
    let kept = before.iter().filter(|name| *name != orphan && *name != foreground);
    kept.map(String::as_str).chain(wanted).map(str::to_owned).collect()
}

impl Scope {
    /// Warns of what becomes of an object's dependents where nobody says it.
    fn warn_of_propagation(&self, options: &DeleteOptions, warnings: &mut Vec<String>) {
        if options.propagation_policy.is_none() && options.orphan_dependents.is_none() {
            let warning = self.definition.strategy.warning_of_default_propagation();
            warnings.extend(warning.map(str::to_owned));
        }
    }

    /// Deletes one object, or marks it for deletion. `warnings` takes sentences for `Warning` headers.
    ///
    /// # Errors
    /// 404, 409 when a precondition does not hold, whatever admission says.
    pub async fn delete(&self, options: &DeleteOptions, warnings: &mut Vec<String>) -> Result<Deleted, ApiError> {
        options.validate()?;
        let asked = options.object();
        let context = self.context(self.cluster.clock().now(), options.is_dry_run());
        if !self.with_collection {
            self.warn_of_propagation(options, warnings);
        }
        for _ in 0..RETRIES {
            let entry = self.entry()?;
            let found = self.found_in(&entry).await?;
            let old = &found.object;
            self.check_preconditions(options, old, entry.mod_revision)?;
            // a namespace that ends is left alone until its own finalizers are gone, and nobody is asked
            if self.is_namespace() && meta::is_deleting(old) && !meta::elements(old, "/spec/finalizers").is_empty() {
                let mut object = found.object.into_json();
                self.to_requested(&mut object).await?;
                return Ok(Deleted::Pending(object));
            }
            let Some(object) = self.marked(old, options, context.now) else {
                // nothing changes, so that nobody is asked
                let mut object = found.object.into_json();
                self.to_requested(&mut object).await?;
                return Ok(Deleted::Pending(object));
            };
            self.admit(&context, Operation::Delete, &asked, &mut None, Some(old), warnings)
                .await?;
            self.admit_final(&context, Operation::Delete, &asked, None, Some(old), warnings)
                .await?;
            // the first deletion of a namespace only begins its end
            let begins = self.is_namespace() && !meta::is_deleting(old);
            if goes_away(&object) && !begins {
                let is_graceful = self
                    .definition
                    .strategy
                    .grace_period(old, options.grace_period_seconds)
                    .is_some();
                let mut last = if is_graceful { object } else { found.object.into_json() };
                if !options.is_dry_run() {
                    let done = self
                        .commit_delete(&self.name, Expect::Revision(entry.mod_revision), &last)
                        .await;
                    match done.map_err(Attempt::from_commit) {
                        Ok(done) => {
                            self.cluster.written(&self.definition);
                            last = Stored::by(done, last.into()).object.into_json();
                        }
                        Err(Attempt::Raced) => continue,
                        Err(Attempt::Refused(error)) => return Err(error),
                    }
                }
                self.to_requested(&mut last).await?;
                return Ok(Deleted::Gone(last));
            }
            match self
                .store_change(found, object.into(), options.is_dry_run(), TooLarge::IsRefused)
                .await
            {
                Ok(stored) => {
                    if !options.is_dry_run() && self.cluster.defines_custom_resources(&self.definition) {
                        crate::crd::termination::begin(&self.cluster, &self.name);
                    }
                    return Ok(Deleted::Pending(stored.object.into_json()));
                }
                Err(Attempt::Raced) => {}
                Err(Attempt::Refused(error)) => return Err(error),
            }
        }
        Err(self.modified())
    }

    fn is_namespace(&self) -> bool {
        self.definition.group.is_empty() && self.definition.plural == "namespaces"
    }

    fn check_preconditions(&self, options: &DeleteOptions, old: &Value, revision: u64) -> Result<(), ApiError> {
        let Some(preconditions) = &options.preconditions else {
            return Ok(());
        };
        let revision = revision.to_string();
        let pairs = [
            (
                "UID",
                &preconditions.uid,
                meta::text(old, "/metadata/uid"),
                "deleted and then recreated",
            ),
            (
                "ResourceVersion",
                &preconditions.resource_version,
                &revision,
                "modified",
            ),
        ];
        for (what, wanted, found, happened) in pairs {
            let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != found) else {
                continue;
            };
            if self.is_namespace() {
                return Err(self.conflict(&format!(
                    "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
                )));
            }
            // upstream names the kind here where others name the resource
            let kind = self.spec().map_or("", |version| version.kind.as_str());
            let why = format!(
                "the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). The object might have been {happened}"
            );
            return Err(ApiError::conflict(&self.definition.group, kind, &self.name, &why));
        }
        Ok(())
    }

    /// The object as deletion leaves it: with deletion time, grace period and the finalizers that the propagation policy adds or takes. None
    /// when a graceful deletion is under way that is not to be shortened.
    fn marked(&self, old: &Value, options: &DeleteOptions, now: Timestamp) -> Option<Value> {
        let mut object = old.clone();
        let asked = options.grace_period_seconds;
        let grace = self
            .definition
            .strategy
            .grace_period(old, asked)
            .map(|seconds| match seconds {
                ..0 => 1,
                seconds => seconds,
            });
        if meta::is_deleting(old) {
            let current = old.at("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
            if grace.is_none() && current.is_none() && !self.is_namespace() {
                // the first deletion did not say it
                meta::set(&mut object, "deletionGracePeriodSeconds", Some(json!(0)));
            }
            if let (Some(current), Some(seconds)) = (current.filter(|seconds| *seconds > 0), grace) {
                // only a shorter time may be asked for
                let seconds = asked.map(|_| seconds).filter(|seconds| *seconds < current)?;
                let until = meta::parse_time(meta::text(old, "/metadata/deletionTimestamp"))
                    .map_or(now, |time| meta::later(time, seconds - current));
                let seconds = if until < now && seconds > 0 { 1 } else { seconds };
                meta::set(&mut object, "deletionGracePeriodSeconds", Some(json!(seconds)));
                meta::set(
                    &mut object,
                    "deletionTimestamp",
                    Some(meta::rfc3339(until.max(now)).into()),
                );
            }
        } else if self.definition.strategy.marks_for_deletion(&mut object, now) {
            return Some(object);
        } else {
            let seconds = grace.unwrap_or(0);
            let until = meta::rfc3339(meta::later(now, seconds));
            meta::set(&mut object, "deletionTimestamp", Some(until.into()));
            if let Some(generation) = old.at("/metadata/generation").and_then(Value::as_i64) {
                meta::set(&mut object, "generation", Some(json!(generation + 1)));
            }
            if self.is_namespace() {
                if let Some(members) = object.as_object_mut() {
                    let status = members.entry("status").or_insert_with(|| json!({}));
                    match status.as_object_mut() {
                        Some(status) => drop(status.insert("phase".into(), json!("Terminating"))),
                        None => *status = json!({"phase": "Terminating"}),
                    }
                }
            } else {
                meta::set(&mut object, "deletionGracePeriodSeconds", Some(json!(seconds)));
            }
        }
        let before = meta::finalizers(old);
        let after = match self.is_namespace() && !meta::is_deleting(old) {
            true => finalizers_of_namespace(&before, options),
            false => self.finalizers(&before, options),
        };
        if before.iter().collect::<BTreeSet<_>>() != after.iter().collect() {
            let list = (!after.is_empty()).then(|| json!(after));
            meta::set(&mut object, "finalizers", list);
        }
        Some(object)
    }

    /// The finalizers under the options' propagation policy, else that of the finalizers themselves, else the kind's.
    fn finalizers(&self, before: &[String], options: &DeleteOptions) -> Vec<String> {
        let (orphan, foreground) = ("orphan", "foregroundDeletion");
        let mut after: Vec<String> = before
            .iter()
            .filter(|name| *name != orphan && *name != foreground)
            .cloned()
            .collect();
        if self.definition.strategy.ignores_dependents() {
            return after;
        }
        let wanted = match (options.orphan_dependents, options.propagation_policy.as_deref()) {
            (Some(true), _) | (None, Some("Orphan")) => Some(orphan),
            (None, Some("Foreground")) => Some(foreground),
            (Some(false), _) | (None, Some(_)) => None,
            (None, None) => {
                let own = before.iter().map(String::as_str);
                let mut own = own.filter(|name| *name == orphan || *name == foreground);
                let default = self.definition.strategy.orphans_by_default().then_some(orphan);
                own.next().or(default)
            }
        };
        after.extend(wanted.map(str::to_owned));
        after
    }

    /// Deletes every object of the collection that the query selects; answers them as they were before.
    ///
    /// # Errors
    /// The first refusal.
    pub async fn delete_collection(
        &self,
        query: &ListQuery,
        options: &DeleteOptions,
        warnings: &mut Vec<String>,
    ) -> Result<Page, ApiError> {
        self.warn_of_propagation(options, warnings);
        self.wait_for(query).await;
        let page = self.list(&query.in_pages())?;
        for entry in &page.entries {
            let object = object::value_of(entry);
            let scope = Self {
                with_collection: true,
                ..self.at(meta::namespace(&object), meta::name(&object))
            };
            match scope.delete(options, warnings).await {
                Err(error) if error.code() != 404 => return Err(error),
                _ => {}
            }
        }
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Answering, Api};

    #[test]
    fn the_end_of_a_namespace_waits_for_what_is_said() {
        let before = ["a".to_owned(), "orphan".to_owned()];
        for (orphan, policy, expected) in [
            (None, None, &["a", "orphan"][..]),
            (Some(true), None, &["a", "orphan"]),
            (Some(false), None, &["a", "foregroundDeletion"]),
            (None, Some("Orphan"), &["a", "orphan"]),
            (None, Some("Foreground"), &["a", "foregroundDeletion"]),
            (None, Some("Background"), &["a"]),
        ] {
            let options = DeleteOptions {
                orphan_dependents: orphan,
                propagation_policy: policy.map(str::to_owned),
                ..DeleteOptions::default()
            };
            assert_eq!(finalizers_of_namespace(&before, &options), expected, "{options:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn namespaces_end_in_two_steps() {
        let api = Api::open().await;
        let ask = async |method: &str, path: &str, body: Value| {
            let answer = api.ask(method, &format!("/api/v1/namespaces{path}"), &body).await;
            answer.map_err(|status| status["code"].clone())
        };
        for name in ["a", "b"] {
            ask("POST", "", json!({"metadata": {"name": name}})).await.unwrap();
        }
        // what is there stays as it is until its own finalizers are gone
        let ending = ask("DELETE", "/a", Value::Null).await.unwrap();
        assert_eq!(ending.at("/status/phase"), Some(&json!("Terminating")));
        let again = ask("DELETE", "/a?propagationPolicy=Orphan", Value::Null).await.unwrap();
        assert_eq!(again, ending);
        // one without any only begins to end at first
        let open = json!({"metadata": {"name": "b"}, "spec": {"finalizers": []}});
        ask("PUT", "/b/finalize", open).await.unwrap();
        ask("DELETE", "/b", Value::Null).await.unwrap();
        let ending = ask("GET", "/b", Value::Null).await.unwrap();
        assert_eq!(ending.at("/status/phase"), Some(&json!("Terminating")));
        ask("DELETE", "/b", Value::Null).await.unwrap();
        assert_eq!(ask("GET", "/b", Value::Null).await, Err(json!(404)));
    }

    #[tokio::test]
    async fn who_deletes_what_is_ending_asks_nobody() {
        let api = Api::open().await;
        let pod = json!({
            "metadata": {"name": "p"},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
        });
        let account = json!({"metadata": {"name": "default"}});
        api.create("/api/v1/namespaces/default/serviceaccounts", &account)
            .await
            .unwrap();
        api.create("/api/v1/namespaces/default/pods", &pod).await.unwrap();
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"});
        let (asked, _file) = Answering::of(&api.cluster, vec![Ok((200, review))]);
        let hooks = json!({"metadata": {"name": "x"}, "webhooks": [{
            "name": "h.example.com",
            "clientConfig": {"url": "https://h/asked"},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["DELETE"]}],
            "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }]});
        let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        api.create(path, &hooks).await.unwrap();
        let path = "/api/v1/namespaces/default/pods/p";
        // the second and third change nothing, the last one makes it end sooner
        for (grace, asks) in [(None, 1), (None, 1), (Some(30), 1), (Some(5), 2)] {
            let options = grace.map_or(Value::Null, |seconds| json!({"gracePeriodSeconds": seconds}));
            let ending = api.ask("DELETE", path, &options).await.unwrap();
            let seconds = grace.unwrap_or(30);
            assert_eq!(ending["metadata"]["deletionGracePeriodSeconds"], seconds);
            assert_eq!(asked.asked().len(), asks, "{grace:?}");
        }
    }
}
