//! Tells whether an extension is still required: the condition `Required` of ControllerInstallations [EXT-107]. controller-manager keeps an installation
//! that nobody asks for any more while it holds, so that somebody is there to take down what is left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::join_all;
use gardener_apis::core::v1beta1::{ControllerInstallation, ControllerRegistration, EXTENSION_KINDS};
use gardener_controller::{Action, Change, Controller, Informer, ObjectRef, Queue, Read};
use gardener_rules::registrations::{self, KindType};
use kube::Api;
use kube::api::{ApiResource, Object, ObjectMeta};
use kube::core::{GroupVersionKind, NotUsed};
use kube::runtime::watcher;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::{tell, told};
use crate::Config;
use crate::failed::{self, Failed};
use crate::seed::system::until_served;

const GROUP: &str = "extensions.gardener.cloud";

/// What counts of an object: who looks after it. There are many, and most of each is of no interest here.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Spec {
    r#type: String,
    #[serde(default)]
    class: Option<String>,
}

type Found = Object<Spec, NotUsed>;

/// The type by which an object counts. Those of the garden's own class are not the seed's.
fn counted(object: &Found) -> Option<&str> {
    let class = object.spec.class.as_deref().unwrap_or("shoot");
    matches!(class, "shoot" | "seed").then_some(object.spec.r#type.as_str())
}

/// What is in the seed.
#[derive(Default)]
struct Seen {
    /// Kinds that were listed.
    listed: BTreeSet<&'static str>,
    /// How many objects there are; none is zero.
    counts: BTreeMap<KindType, usize>,
}

impl Seen {
    /// Counts a change; tells whether a type came or went by it.
    fn note(&mut self, kind: &str, change: &Change<Found>) -> bool {
        let (old, new) = match change {
            Change::Applied { old, new } => (old.as_deref().and_then(counted), counted(new)),
            Change::Deleted(last) => (counted(last), None),
        };
        if old == new {
            return false;
        }
        let of = |own: &str| (kind.to_owned(), own.to_owned());
        let mut is_news = false;
        if let Some(gone) = old.map(of)
            && let Some(count) = self.counts.get_mut(&gone)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&gone);
                is_news = true;
            }
        }
        if let Some(come) = new.map(of) {
            let count = self.counts.entry(come).or_default();
            *count += 1;
            is_news |= *count == 1;
        }
        is_news
    }

    /// Whether there is an object of a kind and type; none if that is not known yet.
    fn has(&self, kind: &str, own: &str) -> Option<bool> {
        let known = self.listed.contains(kind);
        known.then(|| self.counts.contains_key(&(kind.to_owned(), own.to_owned())))
    }
}

/// Runs the controller until `stop`.
pub(super) async fn run(config: Config, installations: Informer<ControllerInstallation>, stop: CancellationToken) {
    let queue: Queue<ObjectRef> = failed::queue();
    let seen = Arc::new(Mutex::new(Seen::default()));
    installations.feed_if(&queue, super::is_news, |one| [ObjectRef::of(one)]);
    let following = join_all(EXTENSION_KINDS.iter().map(|kind| {
        let (all, queue) = (installations.clone(), queue.clone());
        let look = move || all.list().iter().for_each(|one| queue.add(ObjectRef::of(&**one)));
        follow(&config, kind, Arc::clone(&seen), stop.clone(), look)
    }));
    let controller = Controller::new("controllerinstallation-required", 1, queue.clone()).run(stop.clone(), |key| {
        let (config, installations, seen) = (config.clone(), installations.clone(), Arc::clone(&seen));
        async move { reconcile(&config, installations.get(&key).as_deref(), &seen).await }
    });
    tokio::join!(following, controller);
}

/// Counts the objects of a kind until `stop`; `look` is called when a type came or went, and when all are known.
async fn follow(
    config: &Config,
    kind: &'static str,
    seen: Arc<Mutex<Seen>>,
    stop: CancellationToken,
    look: impl Fn() + Clone + Send + Sync + 'static,
) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(GROUP, "v1alpha1", kind));
    let definition = format!("{}.{GROUP}", resource.plural);
    let served = until_served(&config.seed, &definition);
    if stop.run_until_cancelled(served).await.is_none() {
        return;
    }
    let api: Api<Found> = Api::all_with(config.seed.clone(), &resource);
    let objects = Informer::start_tidied(api, watcher::Config::default(), &stop, |object| {
        let own = std::mem::take(&mut object.metadata);
        object.metadata = ObjectMeta {
            name: own.name,
            namespace: own.namespace,
            uid: own.uid,
            resource_version: own.resource_version,
            ..ObjectMeta::default()
        };
    });
    let (noting, looking) = (Arc::clone(&seen), look.clone());
    objects.on_change(move |change| {
        if noting.lock().note(kind, change) {
            looking();
        }
    });
    if stop.run_until_cancelled(objects.synced()).await.is_some() {
        seen.lock().listed.insert(kind);
        look();
        stop.cancelled().await;
    }
}

async fn reconcile(
    config: &Config,
    installation: Option<&ControllerInstallation>,
    seen: &Mutex<Seen>,
) -> Result<Action, Failed> {
    let Some(installation) = installation.filter(|one| super::is_of(one, &config.seed_name)) else {
        return Ok(Action::Done);
    };
    let registrations: Api<ControllerRegistration> = Api::all(config.garden.clone());
    let name = installation.spec.registration_ref.name.as_deref().unwrap_or_default();
    let Some(registration) = registrations.read_opt(name).await? else {
        let why = format!("Referenced ControllerRegistration {name:?} does not exist");
        return Err(Failed::Because(why));
    };
    let still = {
        let seen = seen.lock();
        registrations::still_required(&registration, |kind, own| seen.has(kind, own))
    };
    let Some(still) = still else {
        return Ok(Action::Done);
    };
    let now = config.clock.time();
    let list = &installation.status.conditions;
    let condition = match still.is_empty() {
        true => {
            let message = "no extension objects exist in the seed having the kind/type combinations the controller is responsible for";
            told(list, "Required", false, "NoExtensionObjects", message, &now)
        }
        false => {
            let message = format!("extension objects still exist in the seed: [{}]", still.join(" "));
            told(list, "Required", true, "ExtensionObjectsExist", &message, &now)
        }
    };
    tell(config, installation, vec![condition]).await?;
    Ok(Action::Done)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(own: &str, class: Option<&str>) -> Arc<Found> {
        let object = json!({
            "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Extension", "metadata": {"name": "a"},
            "spec": {"type": own, "class": class, "providerConfig": {"a": "b"}}, "status": {},
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn ext_107_types_come_and_go_by_their_first_and_last_object() {
        let mut seen = Seen::default();
        assert_eq!(seen.has("Extension", "a"), None);
        seen.listed.insert("Extension");
        let applied = |old: Option<&Arc<Found>>, new: &Arc<Found>| Change::Applied {
            old: old.cloned(),
            new: Arc::clone(new),
        };
        let (a, b, garden) = (
            object("a", None),
            object("b", Some("seed")),
            object("a", Some("garden")),
        );
        for (change, is_news, has) in [
            (applied(None, &garden), false, [false, false]),
            (applied(None, &a), true, [true, false]),
            (applied(None, &a), false, [true, false]),
            (applied(Some(&a), &a), false, [true, false]),
            (applied(Some(&a), &b), true, [true, true]),
            (Change::Deleted(b.clone()), true, [true, false]),
            (Change::Deleted(garden.clone()), false, [true, false]),
            (applied(Some(&a), &garden), true, [false, false]),
        ] {
            assert_eq!(seen.note("Extension", &change), is_news, "{change:?}");
            let found = ["a", "b"].map(|own| seen.has("Extension", own).unwrap());
            assert_eq!(found, has, "{change:?}");
        }
    }
}
