//! Several stores as one: some topics are kept apart, each in a store with revisions of its own, as kube-apiserver keeps events in an etcd of their own
//! (`--etcd-servers-overrides`).

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;

use crate::{
    Behind, Change, CommitError, Committed, Entry, Key, ListOptions, Listing, ReadError, Revision, Store, Topic, Watch,
};

/// A store with some topics apart. What is changed at once in several of them is all or nothing in each of them only.
pub struct DividedStore {
    main: Arc<dyn Store>,
    apart: Vec<(Vec<Topic>, Arc<dyn Store>)>,
}

impl DividedStore {
    /// Keeps topics in the stores that they are named with, and all others in `main`. A topic that is named twice is kept in the last of its stores.
    pub fn new(main: Arc<dyn Store>, apart: Vec<(Vec<Topic>, Arc<dyn Store>)>) -> Self {
        Self { main, apart }
    }

    /// Which of the stores keeps a topic: one more than its place among those apart.
    fn place(&self, topic: &Topic) -> usize {
        let apart = self.apart.iter().rposition(|(topics, _)| topics.contains(topic));
        apart.map_or(0, |at| at + 1)
    }

    fn at(&self, place: usize) -> &Arc<dyn Store> {
        let apart = place.checked_sub(1).and_then(|at| self.apart.get(at));
        apart.map_or(&self.main, |(_, store)| store)
    }

    fn of(&self, topic: &Topic) -> &Arc<dyn Store> {
        self.at(self.place(topic))
    }

    fn all(&self) -> impl Iterator<Item = &Arc<dyn Store>> {
        std::iter::once(&self.main).chain(self.apart.iter().map(|(_, store)| store))
    }
}

#[async_trait]
impl Store for DividedStore {
    async fn commit(&self, change: Change) -> Result<Committed, CommitError> {
        self.of(&change.parts().0.topic).commit(change).await
    }

    async fn commit_all(&self, changes: Vec<Change>) -> Result<Vec<Committed>, CommitError> {
        let places: Vec<usize> = changes
            .iter()
            .map(|change| self.place(&change.parts().0.topic))
            .collect();
        let mut left: Vec<(usize, Change)> = places.iter().copied().zip(changes).collect();
        let mut committed: Vec<Vec<Committed>> = (0..=self.apart.len()).map(|_| Vec::new()).collect();
        while let Some((place, _)) = left.first() {
            let place = *place;
            let (own, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|(other, _)| *other == place);
            let own = own.into_iter().map(|(_, change)| change).collect();
            let done = self.at(place).commit_all(own).await?;
            if let Some(of_place) = committed.get_mut(place) {
                *of_place = done;
            }
            left = others;
        }
        let mut committed: Vec<_> = committed.into_iter().map(Vec::into_iter).collect();
        let in_order = places.iter().filter_map(|place| committed.get_mut(*place)?.next());
        Ok(in_order.collect())
    }

    async fn catch_up(&self) -> Result<(), Behind> {
        let all = join_all(self.all().map(|store| store.catch_up())).await;
        all.into_iter().collect()
    }

    fn get(&self, key: &Key) -> Option<Arc<Entry>> {
        self.of(&key.topic).get(key)
    }

    fn list(&self, topic: &Topic, prefix: &str, options: &ListOptions) -> Result<Listing, ReadError> {
        self.of(topic).list(topic, prefix, options)
    }

    fn count(&self, topic: &Topic, prefix: &str) -> usize {
        self.of(topic).count(topic, prefix)
    }

    fn topics(&self) -> Vec<Topic> {
        let mut topics: Vec<Topic> = (0..=self.apart.len())
            .flat_map(|place| {
                let topics = self.at(place).topics().into_iter();
                // what a store holds of others' topics is not seen
                topics.filter(move |topic| self.place(topic) == place)
            })
            .collect();
        topics.sort();
        topics
    }

    fn revision(&self) -> Revision {
        self.main.revision()
    }

    fn revision_of(&self, topic: &Topic) -> Revision {
        self.of(topic).revision_of(topic)
    }

    fn watch(&self, topic: &Topic, prefix: &str, after: Revision) -> Result<Watch, ReadError> {
        self.of(topic).watch(topic, prefix, after)
    }

    async fn purge(&self, cluster: &str) -> Result<usize, CommitError> {
        let all = join_all(self.all().map(|store| store.purge(cluster))).await;
        all.into_iter().sum()
    }

    async fn close(&self) {
        join_all(self.all().map(|store| store.close())).await;
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{Expect, MemoryStore, contract};

    fn put(topic: &Topic, name: &str) -> Change {
        Change::Put {
            key: Key::new(topic.clone(), format!("c/{name}")),
            expect: Expect::Absent,
            value: Bytes::from_static(b"v"),
        }
    }

    #[tokio::test]
    async fn topics_apart_have_revisions_of_their_own() {
        let memory = || Arc::new(MemoryStore::new(contract::FORM, contract::small()));
        let (main, own) = (memory(), memory());
        let (pods, events) = (Topic::new("", "pods"), Topic::new("", "events"));
        // from when events were not kept apart
        main.commit(put(&events, "old")).await.unwrap();
        let store = DividedStore::new(main.clone(), vec![(vec![events.clone()], own.clone())]);
        let (first, before) = (store.revision_of(&events), store.revision_of(&pods));
        let mut watch = store.watch(&events, "c/", first).unwrap();
        let changes = vec![put(&events, "a"), put(&pods, "b"), put(&events, "c")];
        let committed = store.commit_all(changes).await.unwrap();
        let paths: Vec<&str> = committed.iter().map(|done| &*done.entry.key.path).collect();
        assert_eq!(paths, ["c/a", "c/b", "c/c"]);
        assert_eq!((store.count(&events, "c/"), own.count(&events, "c/")), (2, 2));
        assert_eq!((main.count(&events, "c/"), main.count(&pods, "c/")), (1, 1));
        assert_eq!(store.revision_of(&events), committed[2].revision);
        assert_eq!(store.revision_of(&pods), committed[1].revision);
        assert!(committed[1].revision > before);
        for done in [&committed[0], &committed[2]] {
            assert_eq!(watch.next().await.unwrap().revision, done.revision);
        }
        let listing = store.list(&events, "c/", &ListOptions::default()).unwrap();
        assert_eq!((listing.entries.len(), listing.revision), (2, committed[2].revision));
        assert_eq!(store.topics(), [events.clone(), pods.clone()]);
        // one store's refusal is the whole's
        let refused = store.commit_all(vec![put(&events, "a"), put(&pods, "d")]).await;
        assert!(matches!(refused, Err(CommitError::Conflict { .. })));
        assert!(store.get(&Key::new(pods.clone(), "c/d")).is_none());
        assert_eq!(store.purge("c").await.unwrap(), 4);
        store.close().await;
        assert_eq!(store.commit(put(&events, "e")).await, Err(CommitError::Closed));
    }

    // of what is not kept apart it is as its main store
    macro_rules! suite {
        ($($name:ident),* $(,)?) => {
            $(
                #[tokio::test]
                async fn $name() {
                    let store = || Arc::new(MemoryStore::new(contract::FORM, contract::options(stringify!($name))));
                    let apart = vec![(vec![Topic::new("", "events")], store() as Arc<dyn Store>)];
                    contract::$name(Arc::new(DividedStore::new(store(), apart))).await;
                }
            )*
        };
    }
    crate::for_each_contract!(suite);
}
