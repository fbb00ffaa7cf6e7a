//! What every namespace has: the service account `default` and the config map `kube-root-ca.crt`.

use std::sync::Arc;

use gardener_controller::apply;
use gardener_controller::{Action, ObjectRef, Queue};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::Api;
use kube::api::PostParams;
use kube::core::ObjectMeta;

use crate::Role;
use crate::environment::{Environment, key_of};
use crate::error::Error;

const ACCOUNT: &str = "default";
const ROOT_CA: &str = "kube-root-ca.crt";
const ROOT_CA_KEY: &str = "ca.crt";
const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.",
);

pub(super) fn start(environment: &Arc<Environment>) {
    let queue: Queue<ObjectRef> = Queue::new();
    let informers = &environment.informers;
    let role = Role::ControllerManager;
    environment.feed(&informers.namespaces, &queue, role, |namespace| vec![key_of(namespace)]);
    let namespace_of = |cluster: &str, namespace: Option<&String>| {
        namespace
            .map(|name| ObjectRef::cluster_scoped(name.as_str()).in_cluster(cluster))
            .into_iter()
            .collect()
    };
    environment.feed(&informers.service_accounts, &queue, role, move |account| {
        let meta = &account.object.metadata;
        if meta.name.as_deref() == Some(ACCOUNT) {
            namespace_of(&account.cluster, meta.namespace.as_ref())
        } else {
            Vec::new()
        }
    });
    environment.feed(&informers.root_ca_maps, &queue, role, move |map| {
        namespace_of(&map.cluster, map.object.metadata.namespace.as_ref())
    });
    environment.reconcile("serviceaccount", role, 8, queue, reconcile);
}

fn is_active(namespace: &Namespace) -> bool {
    let phase = namespace.status.as_ref().and_then(|status| status.phase.as_deref());
    namespace.metadata.deletion_timestamp.is_none() && phase != Some("Terminating")
}

async fn reconcile(environment: Arc<Environment>, key: ObjectRef) -> Result<Action, Error> {
    let informers = &environment.informers;
    if !informers
        .namespaces
        .get(&key)
        .is_some_and(|namespace| is_active(&namespace.object))
    {
        return Ok(Action::Done);
    }
    let inside = ObjectRef::new(key.name.clone(), ACCOUNT).in_cluster(&key.cluster);
    if informers.service_accounts.get(&inside).is_none() {
        let account = ServiceAccount {
            metadata: meta(&inside),
            ..ServiceAccount::default()
        };
        let api: Api<ServiceAccount> = environment.api(&inside);
        created(api.create(&PostParams::default(), &account).await)?;
    }
    let inside = ObjectRef {
        name: ROOT_CA.into(),
        ..inside
    };
    let Some(ca) = (environment.config.root_ca)(&key.cluster) else {
        return Ok(Action::Done);
    };
    let api: Api<ConfigMap> = environment.api(&inside);
    let wanted = |map: &mut ConfigMap| {
        map.data = Some([(ROOT_CA_KEY.to_owned(), ca.clone())].into());
        let annotations = map.metadata.annotations.get_or_insert_default();
        annotations.insert(DESCRIPTION.0.to_owned(), DESCRIPTION.1.to_owned());
    };
    match informers.root_ca_maps.get(&inside) {
        Some(map) => {
            apply::patch(&api, &map.object, wanted).await?;
        }
        None => {
            let mut map = ConfigMap {
                metadata: meta(&inside),
                ..ConfigMap::default()
            };
            wanted(&mut map);
            created(api.create(&PostParams::default(), &map).await)?;
        }
    }
    Ok(Action::Done)
}

fn meta(place: &ObjectRef) -> ObjectMeta {
    ObjectMeta {
        name: Some(place.name.clone()),
        namespace: Some(place.namespace.clone()),
        ..ObjectMeta::default()
    }
}

/// What exists already is as good; a namespace that ends gets nothing.
fn created<K>(result: Result<K, kube::Error>) -> Result<(), Error> {
    match result {
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404 | 409) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(()),
    }
}
