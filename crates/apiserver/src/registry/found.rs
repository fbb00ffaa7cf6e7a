//! What a write finds in the store, read once, and of a write to the status no more than it needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use gardener_apimachinery::ApiError;
use gardener_store::{Entry, Revision};
use serde_json::{Map, Value};

use super::Scope;
use crate::definition::Draft;
use crate::unread::Unread;
use crate::{meta, object};

/// What a write found in the store, parsed once.
pub(crate) struct Found {
    /// Its revision: the write succeeds only if it is still the newest.
    pub(super) revision: Revision,
    /// The object in the stored version.
    pub(super) object: Draft,
    /// Whether it is to be written anew even if nothing of it changes: it is encrypted in another way than it would be today, or in another
    /// version.
    pub(super) is_stale: bool,
    /// Whether it is what the request's version shows of it, with nothing to be done.
    pub(super) is_plain: bool,
}

impl Found {
    pub(super) fn of(entry: &Entry, scope: &Scope) -> Self {
        let mut object = object::value_of(entry);
        if let Err(error) = scope.turn(&mut object) {
            tracing::warn!(key = %entry.key, %error, "a stored object cannot be converted");
        }
        Self {
            revision: entry.mod_revision,
            object: object.into(),
            is_stale: entry.is_stale(),
            is_plain: false,
        }
    }

    /// What an entry has, without reading more of it than a write to the status needs. None, if that cannot be read.
    fn apart(entry: &Entry) -> Option<Self> {
        let (read, unread) = Unread::take_apart(&entry.bytes())?;
        Self::of_parts(entry, &read, unread)
    }

    fn of_parts(entry: &Entry, read: &BTreeMap<String, Bytes>, unread: Unread) -> Option<Self> {
        let mut members = Map::new();
        for (name, bytes) in read {
            members.insert(name.clone(), serde_json::from_slice(bytes).ok()?);
        }
        Some(Self {
            revision: entry.mod_revision,
            object: Draft::apart(Value::Object(members), Arc::new(unread)),
            is_stale: entry.is_stale(),
            is_plain: false,
        })
    }

    /// What is not read of the object, if something is not.
    pub(crate) fn unread(&self) -> Option<&Arc<Unread>> {
        self.object.unread()
    }
}

/// What is stored, and what of a body is the same: it need not be looked at, for it fits, and it stays.
pub(crate) struct Beside {
    pub(super) found: Found,
    /// Members that the body had and that it gets back when the rest of it is accepted.
    pub(super) sent_back: Map<String, Value>,
}

impl Beside {
    /// Takes out of the body of a write to the status what is as it is stored.
    pub(super) fn set_apart(found: Found, body: &mut Value) -> Self {
        let mut sent_back = Map::new();
        if let Value::Object(members) = body {
            members.retain(|key, value| {
                let stays = matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "status");
                let is_apart = !stays && found.object.get(key) == Some(value);
                if is_apart {
                    sent_back.insert(key.clone(), value.take());
                }
                !is_apart
            });
        }
        Self { found, sent_back }
    }
}

impl Scope {
    /// Whether a write changes only the status, nobody is shown the rest of what was sent, and the status can do without it.
    pub(super) fn keeps_all_but_status(&self) -> bool {
        self.subresource == "status"
            && self.is_stored_version()
            && !self.definition.strategy.defaults_by_spec()
            && !self.is_judged()
    }

    /// What is stored now without reading more of it than [`Self::reads_status_alone`] needs, if all members that are not read of a body are among
    /// the others. What is read of the body goes without its metadata where that is the stored one.
    pub(crate) fn found_beside(&self, sent: &Unread, read: &mut BTreeMap<String, Bytes>) -> Option<Beside> {
        let entry = self.cluster.store().get(&self.key(&self.name))?;
        if !self.is_current(&entry) {
            return None;
        }
        let (stored, unread) = sent.take_apart_with(&entry.bytes())?;
        let found = Found::of_parts(&entry, &stored, unread)?;
        let mut sent_back = Map::new();
        let is_stored = |name: &str| read.get(name).is_some_and(|own| stored.get(name) == Some(own));
        if let Some(metadata) = found
            .object
            .read_part()
            .get("metadata")
            .filter(|_| is_stored("metadata"))
        {
            sent_back.insert("metadata".to_owned(), metadata.clone());
            read.remove("metadata");
        }
        Some(Beside { found, sent_back })
    }

    /// As [`Self::found_in`], without reading more than [`Self::reads_status_alone`] needs. None, if that cannot be read, or is not as it would be
    /// stored today.
    pub(super) fn found_apart(&self, entry: &Entry) -> Option<Found> {
        self.is_current(entry).then(|| Found::apart(entry)).flatten()
    }

    /// Whether this writes the status, and has to read no more than that.
    pub(crate) fn reads_status_alone(&self) -> bool {
        self.subresource == "status"
            && self.definition.strategy.reads_status_alone()
            && self.definition.versions.len() == 1
            && self.stored_as.is_none()
            && self.keeps_all_but_status()
    }

    /// What is stored now, if it can be read.
    pub(super) async fn found(&self) -> Option<Found> {
        let entry = self.cluster.store().get(&self.key(&self.name))?;
        self.found_in(&entry).await.ok()
    }

    /// The object of an entry as it is stored today.
    pub(super) async fn found_in(&self, entry: &Entry) -> Result<Found, ApiError> {
        let mut found = Found::of(entry, self);
        let as_requested = meta::text(&found.object, "/apiVersion") == self.definition.api_version(&self.version);
        found.is_plain = as_requested && self.stored()?.name == self.version && self.is_of_today(entry);
        if found.is_plain {
            found.is_stale |= self.stored_as.as_ref().is_some_and(|stored| *stored != self.version);
            return Ok(found);
        }
        let own = match self.definition.is_go_type() {
            true => String::new(),
            false => meta::text(&found.object, "/apiVersion").to_owned(),
        };
        self.to_stored_today(&mut found.object).await?;
        let stored = self
            .stored_as
            .as_ref()
            .or(self.stored().ok().map(|stored| &stored.name));
        // what was stored in an earlier stored version is brought into today's by any write
        found.is_stale |= !own.is_empty() && stored.is_some_and(|stored| own != self.definition.api_version(stored));
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Api;
    use crate::unread::tests::ADDED;

    #[tokio::test(start_paused = true)]
    async fn a_write_to_a_status_does_not_read_the_specification() {
        let api = Api::open().await;
        // a webhook for something else changes nothing of that
        let hook = json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "h"},
            "webhooks": [{"name": "h.example.com", "clientConfig": {"url": "https://h"}, "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["configmaps", "deployments"]}]}],
        });
        let hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
        let template =
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
        let workload = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template});
        let stateful = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template, "serviceName": "s"});
        let budget = json!({"selector": {"matchLabels": {"a": "b"}}, "minAvailable": 1});
        let counts = json!({"replicas": 1});
        let scheduled = json!({"currentNumberScheduled": 1, "numberMisscheduled": 0, "desiredNumberScheduled": 1, "numberReady": 0});
        let healthy = json!({"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 0, "expectedPods": 1});
        let cases = [
            ("apps/v1", "Deployment", "deployments", &workload, &counts),
            ("apps/v1", "ReplicaSet", "replicasets", &workload, &counts),
            ("apps/v1", "StatefulSet", "statefulsets", &stateful, &counts),
            ("apps/v1", "DaemonSet", "daemonsets", &workload, &scheduled),
            (
                "policy/v1",
                "PodDisruptionBudget",
                "poddisruptionbudgets",
                &budget,
                &healthy,
            ),
        ];
        for (api_version, kind, plural, spec, status) in cases {
            let path = format!("/apis/{api_version}/namespaces/default/{plural}");
            let object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "o"}, "spec": spec});
            let created = api.create(&path, &object).await.unwrap();
            if kind == "Deployment" {
                api.create(hooks, &hook).await.unwrap();
            }
            let before = ADDED.get();
            let at = format!("{path}/o/status");
            let mut patched = api.ask("PATCH", &at, &json!({"status": status})).await.unwrap();
            for (key, own) in status.as_object().unwrap() {
                // zeros of numbers that may be left out are left out
                let told = patched["status"].get(key).cloned().unwrap_or(json!(0));
                assert_eq!(told, *own, "{kind} {key}");
            }
            assert_eq!(patched["spec"], created["spec"], "{kind}");
            assert_eq!(
                patched["metadata"]["generation"], created["metadata"]["generation"],
                "{kind}"
            );
            patched["status"]["observedGeneration"] = json!(1);
            let updated = api.ask("PUT", &at, &patched).await.unwrap();
            assert_eq!(updated["status"]["observedGeneration"], 1, "{kind}");
            assert_eq!(updated["spec"], created["spec"], "{kind}");
            assert_eq!(ADDED.get(), before, "{kind}");
        }
    }

    /// A definition of `Thing`s, whose status has `properties` of this schema beside.
    fn things(status: &serde_json::Value, spec: &serde_json::Value, scale: Option<&str>) -> serde_json::Value {
        let mut subresources = json!({"status": {}});
        if let Some(selector) = scale {
            subresources["scale"] = json!({
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": selector,
            });
        }
        let count = json!({"type": "integer"});
        let mut schema = json!({"type": "object", "properties": {
            "spec": {"type": "object", "default": {"replicas": 3}, "properties": {"replicas": count, "more": spec}},
            "status": {"type": "object", "properties": {"replicas": count, "more": status}},
        }});
        schema["properties"]["status"]["properties"]["selector"] = json!({"type": "string"});
        schema["properties"]["spec"]["properties"]["selector"] = json!({"type": "string"});
        let version = json!({
            "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}, "subresources": subresources,
        });
        json!({
            "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "versions": [version], "names": {"kind": "Thing", "plural": "things"}},
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_custom_resource_s_status_is_read_alone_where_nothing_else_decides_about_it() {
        let text = json!({"type": "string"});
        let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": text});
        let ruled = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self != 'x'"}]});
        for (what, status, spec, scale, alone) in [
            ("plain", &text, &text, None, true),
            ("a set in the status", &set, &text, None, true),
            ("a set elsewhere", &text, &set, None, false),
            ("a rule", &ruled, &text, None, false),
            ("a rule elsewhere", &text, &ruled, None, false),
            ("a scale", &text, &text, Some(".status.selector"), true),
            (
                "a scale that looks elsewhere",
                &text,
                &text,
                Some(".spec.selector"),
                false,
            ),
        ] {
            let api = Api::open().await;
            let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            api.create(definitions, &things(status, spec, scale)).await.unwrap();
            let path = "/apis/example.com/v1/namespaces/default/things";
            let object = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "o"}});
            let created = api.create(path, &object).await.unwrap();
            assert_eq!(created["spec"], json!({"replicas": 3}), "{what}");
            let (at, before) = (format!("{path}/o/status"), ADDED.get());
            let patched = api
                .ask("PATCH", &at, &json!({"status": {"replicas": 2}}))
                .await
                .unwrap();
            assert_eq!(patched["status"], json!({"replicas": 2}), "{what}");
            assert_eq!(patched["spec"], created["spec"], "{what}");
            assert_eq!(patched["metadata"]["generation"], 1, "{what}");
            let wrong = api
                .ask("PATCH", &at, &json!({"status": {"replicas": "many"}}))
                .await
                .unwrap_err();
            assert_eq!(wrong["code"], 422, "{what}: {wrong}");
            let mut sent = patched.clone();
            sent["status"]["replicas"] = json!(1);
            let updated = api.ask("PUT", &at, &sent).await.unwrap();
            assert_eq!(
                (&updated["spec"], &updated["status"]),
                (&created["spec"], &sent["status"]),
                "{what}"
            );
            assert_eq!(ADDED.get(), before, "{what}");
            let definition = api.cluster.find("example.com", "things").unwrap();
            let scope = crate::crd::server_scope(&api.cluster, definition, "status").unwrap();
            assert_eq!(scope.reads_status_alone(), alone, "{what}");
        }
    }
}
