//! Objects of another kind that come and go with one, such as the IPAddresses of a Service: what a write changes of them. They are written in
//! the same transaction, so that nobody sees one without the other, and two servers on one store cannot give the same twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_store::{Change, CommitError, Committed, Expect, Key};
use serde_json::{Value, json};

use super::Scope;
use super::ownership::owned_by_server;
use crate::definition::{Companion, Definition, Lister};
use crate::{meta, object};

impl Scope {
    /// Commits a change that makes `new` of `old`, and with it what that makes of their companions.
    pub(super) async fn commit_with_companions(
        &self,
        change: Change,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Result<Committed, CommitError> {
        let store = self.cluster.store();
        let companions = self.changed_companions(old, new);
        if companions.is_empty() {
            return store.commit(change).await;
        }
        let names: Vec<String> = companions.iter().filter_map(name_of).collect();
        let changes = std::iter::once(change).chain(companions).collect();
        let committed = store.commit_all(changes).await;
        // whether it is taken the store tells from here on
        names.iter().for_each(|name| self.cluster.release(name));
        let mut committed = committed?.into_iter();
        committed.next().ok_or_else(|| CommitError::Unknown {
            reason: "it told of no change".into(),
        })
    }

    /// The changes that make the companions of `old` those of `new`.
    fn changed_companions(&self, old: Option<&Value>, new: Option<&Value>) -> Vec<Change> {
        let (mut before, after) = (self.companions(old), self.companions(new));
        let made: Vec<_> = after
            .into_iter()
            .filter(|(key, _)| before.remove(key).is_none())
            .filter_map(|(key, (definition, companion))| {
                Some(Change::Put {
                    key,
                    expect: Expect::Absent,
                    value: self.made(&definition, companion)?,
                })
            })
            .collect();
        // somebody may have taken it away before
        let left = before.into_keys().filter_map(|key| {
            let expect = Expect::Revision(self.cluster.store().get(&key)?.mod_revision);
            Some(Change::Delete { key, expect })
        });
        made.into_iter().chain(left).collect()
    }

    /// The companions of an object that the cluster serves, by the places where they are stored.
    fn companions(&self, object: Option<&Value>) -> BTreeMap<Key, (Arc<Definition>, Companion)> {
        let companions = object.map(|object| self.definition.strategy.companions(object));
        let companions = companions.into_iter().flatten().filter_map(|companion| {
            let definition = self.cluster.find(companion.group, companion.resource)?;
            let key = self.cluster.key(&definition, "", meta::name(&companion.object));
            Some((key, (definition, companion)))
        });
        companions.collect()
    }

    /// A new companion as it is stored.
    fn made(&self, definition: &Definition, companion: Companion) -> Option<bytes::Bytes> {
        let version = definition.stored_version()?;
        let mut value = companion.object;
        let time = meta::rfc3339(self.cluster.clock().now());
        let managed = owned_by_server(definition, version, value.clone(), &time);
        let members = value.as_object_mut()?;
        members.insert("apiVersion".to_owned(), definition.api_version(&version.name).into());
        members.insert("kind".to_owned(), version.kind.as_str().into());
        let generation = definition.strategy.has_generation().then(|| json!(1));
        for (key, said) in [
            ("creationTimestamp", Some(json!(time))),
            ("generation", generation),
            ("managedFields", managed),
            ("uid", Some(self.cluster.chance().uid().into())),
        ] {
            meta::set(&mut value, key, said);
        }
        Some(object::encode(&value))
    }
}

/// The name of the object that a change is about, which is the value that it stands for.
fn name_of(companion: &Change) -> Option<String> {
    let (Change::Put { key, .. } | Change::Delete { key, .. }) = companion;
    key.path.rsplit('/').next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::LogicalCluster;

    fn services() -> Scope {
        Scope::of_kind(LogicalCluster::in_memory(), "", "services")
    }

    fn service(addresses: &[&str]) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "a", "namespace": "default"},
            "spec": {"clusterIP": addresses.first(), "clusterIPs": addresses},
        })
    }

    fn ip_addresses(scope: &Scope) -> Vec<String> {
        let definition = scope.cluster.find("networking.k8s.io", "ipaddresses").unwrap();
        let entries = scope.cluster.entries(&definition, "");
        let names = entries
            .iter()
            .map(|entry| meta::name(&object::value_of(entry)).to_owned());
        names.collect()
    }

    #[tokio::test]
    async fn companions_come_change_and_go_with_their_object() {
        let scope = services();
        let both = service(&["10.0.0.20", "fd00::20"]);
        let put = scope.commit_put("a", Expect::Absent, &both, None, None).await.unwrap();
        assert_eq!(ip_addresses(&scope), ["10.0.0.20", "fd00::20"]);

        let other = service(&["10.0.0.20", "fd00::21"]);
        let expect = Expect::Revision(put.entry.mod_revision);
        let put = scope.commit_put("a", expect, &other, None, Some(&both)).await.unwrap();
        assert_eq!(ip_addresses(&scope), ["10.0.0.20", "fd00::21"]);

        let expect = Expect::Revision(put.entry.mod_revision);
        scope.commit_delete("a", expect, &other).await.unwrap();
        assert!(ip_addresses(&scope).is_empty());
    }

    #[tokio::test]
    async fn an_address_is_free_again_as_soon_as_it_is_given_back() {
        let scope = services();
        let now = scope.cluster.clock().now();
        let reserve = || scope.cluster.reserve("10.0.0.20", now);
        assert!(reserve());
        assert!(!reserve());
        let service = service(&["10.0.0.20"]);
        let put = scope
            .commit_put("a", Expect::Absent, &service, None, None)
            .await
            .unwrap();
        let expect = Expect::Revision(put.entry.mod_revision);
        scope.commit_delete("a", expect, &service).await.unwrap();
        assert!(reserve());
        // somebody else may have been quicker
        let stolen = scope.commit_put("a", Expect::Revision(1), &service, None, None).await;
        assert!(stolen.is_err());
        assert!(reserve());
    }

    #[tokio::test]
    async fn nothing_is_stored_where_a_companion_is_anothers() {
        let scope = services();
        let service = service(&["10.0.0.20"]);
        scope
            .commit_put("a", Expect::Absent, &service, None, None)
            .await
            .unwrap();
        let refused = scope.commit_put("b", Expect::Absent, &service, None, None).await;
        let Err(CommitError::Conflict { key, .. }) = refused else {
            panic!("{refused:?}");
        };
        assert!(key.path.ends_with("/10.0.0.20"), "{key}");
        assert!(scope.cluster.store().get(&scope.key("b")).is_none());
    }

    #[tokio::test]
    async fn a_companion_that_somebody_took_away_is_not_missed() {
        let scope = services();
        let service = service(&["10.0.0.20"]);
        let put = scope
            .commit_put("a", Expect::Absent, &service, None, None)
            .await
            .unwrap();
        let companions = scope.companions(Some(&service));
        for key in companions.into_keys() {
            let expect = Expect::Any;
            scope
                .cluster
                .store()
                .commit(Change::Delete { key, expect })
                .await
                .unwrap();
        }
        let expect = Expect::Revision(put.entry.mod_revision);
        scope.commit_delete("a", expect, &service).await.unwrap();
        assert!(scope.cluster.store().get(&scope.key("a")).is_none());
    }
}
