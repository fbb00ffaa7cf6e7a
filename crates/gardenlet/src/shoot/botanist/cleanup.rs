//! Cleaning the shoot before its nodes go [CLN-1]: finds what is to go, asks it to, and says what is left. What goes when is decided in
//! `rules::shoot_cleanup`. Each step is one attempt: the flow tries it again.

use gardener_controller::Read;
use gardener_controller::apply::{is_not_found, patch};
use gardener_controller::error_codes;
use gardener_flow::TaskError;
use gardener_rules::shoot_cleanup::{self, Act, Kind, Left, Manner, Step};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::{GroupVersionKind, PartialObjectMeta};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use super::{Botanist, Done};

type Found = PartialObjectMeta<DynamicObject>;

/// The annotation by which the owner asks for no more cleaning than what costs money needs.
const SKIP: &str = "shoot.gardener.cloud/skip-cleanup";

fn resource(kind: &Kind) -> ApiResource {
    let named = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
    ApiResource::from_gvk_with_plural(&named, kind.plural)
}

/// Something that trying again does not mend.
fn broken(kind: &Kind, why: &kube::Error) -> TaskError {
    let why = gardener_controller::api_error(why);
    TaskError::new(format!("failed to clean up resources with kind {}: {why}", kind.kind)).severe()
}

/// What went meanwhile is as good as deleted.
fn unless_gone<T>(answer: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match answer {
        Err(error) if !is_not_found(&error) => Err(error),
        _ => Ok(()),
    }
}

/// The objects of a kind that are to go; none where the kind is not served.
async fn chosen(client: &Client, kind: &Kind) -> Result<Vec<Found>, kube::Error> {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource(kind));
    match api.list_metadata(&ListParams::default().labels(kind.selector())).await {
        Ok(list) => Ok(list.items),
        Err(error) if is_not_found(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Asks an object to go, or makes it go.
async fn treat(
    client: &Client,
    kind: &Kind,
    object: &Found,
    manner: Manner,
    now: Timestamp,
) -> Result<(), kube::Error> {
    let api: Api<DynamicObject> = match object.namespace() {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource(kind)),
        None => Api::all_with(client.clone(), &resource(kind)),
    };
    let name = object.name_any();
    let deleted_at = object.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    match shoot_cleanup::act(deleted_at, !object.finalizers().is_empty(), manner, now) {
        Act::Wait => Ok(()),
        Act::Delete => {
            let params = DeleteParams {
                grace_period_seconds: Some(manner.grace_period_seconds),
                ..DeleteParams::default()
            };
            unless_gone(api.delete(&name, &params).await)
        }
        Act::Finalize => {
            let none: Patch<Value> = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            unless_gone(api.patch(&name, &PatchParams::default(), &none).await)
        }
    }
}

/// One attempt to clean a kind; what does not count though it is left is told by `is_ignored`.
async fn clean(
    client: &Client,
    kind: &Kind,
    manner: Manner,
    now: Timestamp,
    is_ignored: impl Fn(&Left) -> bool,
) -> Done {
    let failed = |why: kube::Error| broken(kind, &why);
    let found = chosen(client, kind).await.map_err(failed)?;
    if found.is_empty() {
        return Ok(());
    }
    for object in &found {
        treat(client, kind, object, manner, now).await.map_err(failed)?;
    }
    let left: Vec<Left> = chosen(client, kind)
        .await
        .map_err(failed)?
        .iter()
        .map(|object| Left {
            namespace: object.namespace(),
            name: object.name_any(),
            created_at: object.metadata.creation_timestamp.as_ref().map(|time| time.0),
        })
        .collect();
    match left.iter().all(is_ignored) {
        true => Ok(()),
        false => {
            let why = shoot_cleanup::remaining(kind, &left);
            Err(TaskError::new(why).with_codes([error_codes::CLEANUP_CLUSTER_RESOURCES]))
        }
    }
}

/// One attempt to remove what tells that volumes are attached; only once there are no nodes [CP-120].
pub(super) async fn clean_volume_attachments(client: &Client, now: Timestamp) -> Done {
    let kind = &shoot_cleanup::VOLUME_ATTACHMENTS;
    clean(client, kind, Manner::AT_ONCE, now, |_| false).await
}

impl Botanist {
    /// Whether the owner asked for no more cleaning than is needed [CLN-23].
    pub(crate) fn skips_cleanup(&self) -> bool {
        let shoot = self.shoot();
        shoot.annotations().get(SKIP).is_some_and(|text| text != "false")
    }

    fn manner_of(&self, step: Step) -> Result<Manner, TaskError> {
        let shoot = self.shoot();
        shoot_cleanup::manner(step, shoot.annotations()).map_err(|why| TaskError::new(why).severe())
    }

    /// One attempt at all kinds of a step, each of them; the first that is not clean is told.
    async fn clean_step(&self, step: Step, manner: Manner, is_ignored: impl Fn(&Left) -> bool) -> Done {
        let client = self.shoot_client().await?;
        let mut outcome = Ok(());
        for kind in step.kinds(self.skips_cleanup()) {
            let cleaned = clean(&client, kind, manner, self.now(), &is_ignored).await;
            outcome = outcome.and(cleaned);
        }
        outcome
    }

    /// The users' webhooks, which could keep other things from going.
    pub(crate) async fn clean_webhooks(&self) -> Done {
        let step = Step::Webhooks;
        self.clean_step(step, self.manner_of(step)?, |_| false).await
    }

    /// The users' APIs with their objects.
    pub(crate) async fn clean_extended_apis(&self) -> Done {
        let step = Step::ExtendedApis;
        self.clean_step(step, self.manner_of(step)?, |_| false).await
    }

    /// The users' workload, and what costs money outside of the cluster.
    pub(crate) async fn clean_kubernetes_resources(&self) -> Done {
        let start = self.cleaning_since().await?;
        let shoot = self.shoot();
        let too_new = shoot_cleanup::too_new(start, shoot.annotations()).map_err(|why| TaskError::new(why).severe())?;
        let namespaces: Api<Namespace> = Api::all(self.shoot_client().await?);
        let namespaces = namespaces.list_metadata(&ListParams::default()).await?;
        let namespaces: Vec<String> = namespaces.iter().map(ResourceExt::name_any).collect();
        let is_ignored = |left: &Left| shoot_cleanup::is_ignored(left, &namespaces, too_new);
        let manner = self.manner_of(Step::Resources)?;
        let resources = self.clean_step(Step::Resources, manner, is_ignored).await;
        let snapshots = match self.skips_cleanup() {
            true => self.clean_step(Step::Snapshots, manner, is_ignored).await,
            false => {
                let manner = self.manner_of(Step::Snapshots)?;
                let cleaned = self.clean_step(Step::Snapshots, manner, |_| false).await;
                self.release_snapshots(manner).await?;
                cleaned
            }
        };
        resources.and(snapshots)
    }

    /// Tells the driver to remove snapshots that had their time: it waits for whoever asked for them otherwise [CLN-13].
    async fn release_snapshots(&self, manner: Manner) -> Done {
        let client = self.shoot_client().await?;
        let kinds = Step::Snapshots.kinds(false).iter();
        for kind in kinds.filter(|kind| kind.kind == "VolumeSnapshotContent") {
            let failed = |why: kube::Error| broken(kind, &why);
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource(kind));
            for object in chosen(&client, kind).await.map_err(failed)? {
                let deleted_at = object.metadata.deletion_timestamp.as_ref().map(|time| time.0);
                let grace = i64::from(manner.grace_period_seconds);
                let had_time = |time: Timestamp| self.now().duration_since(time).as_secs() > grace;
                let (being_deleted, being_created) = (
                    "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted",
                    "snapshot.storage.kubernetes.io/volumesnapshot-being-created",
                );
                let own = object.annotations();
                let is_told = own.contains_key(being_deleted) && !own.contains_key(being_created);
                if deleted_at.is_some_and(had_time) && !is_told {
                    let told = json!({"metadata": {"annotations": {being_deleted: "yes", being_created: null}}});
                    let written = api
                        .patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(told))
                        .await;
                    unless_gone(written).map_err(failed)?;
                }
            }
        }
        Ok(())
    }

    /// Since when resources are cleaned; noted in the control plane's namespace, so that it is known to who continues [CLN-18].
    async fn cleaning_since(&self) -> Result<Timestamp, TaskError> {
        let api: Api<Namespace> = Api::all(self.seed_client().clone());
        let namespace = api.read(&self.namespace).await?;
        if let Some(told) = namespace.annotations().get(shoot_cleanup::START_ANNOTATION) {
            return told.parse().map_err(|why| {
                let what = "failed to handle cleanup start time: failed to parse cleanup start time";
                TaskError::new(format!("{what} {told} from shoot namespace: {why}")).severe()
            });
        }
        let now = self.now();
        patch(&api, &namespace, |namespace| {
            let told = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            namespace
                .annotations_mut()
                .insert(shoot_cleanup::START_ANNOTATION.to_owned(), told);
        })
        .await?;
        Ok(now)
    }
}
