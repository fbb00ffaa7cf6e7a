//! Which rules each of Kubernetes' kinds has: a table from resource to functions.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

use super::{
    admission_policies, autoscaling, certificates, claims, crds, defaults, devices, drivers, endpoints, events,
    flowcontrol, jobs, leases, namespaces, networking, nodes, pods, policies, printers, roles, serviceaccounts,
    services, storage, volumes, webhooks, workloads,
};
use crate::cluster::LogicalCluster;
use crate::definition::{Companion, Context, Draft, Nameless, Strategy, Subresource};
use crate::meta;
use crate::selectable::Selectable;

/// What upstream's validation of an update looks at in metadata.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MetadataAgain {
    /// Nothing, not even of new objects.
    Nothing,
    /// What may not change.
    Change,
    /// All that a new object must have.
    Whole,
    /// All that a new object must have, and with it the whole object, twice.
    WholeTwice,
    /// The change and the whole.
    Both,
}

/// Resources whose updates look at all that a new object's metadata must have.
fn metadata_again(group: &str, resource: &str) -> MetadataAgain {
    match (group, resource) {
        ("", "events") | ("policy", "poddisruptionbudgets") => MetadataAgain::Nothing,
        ("resource.k8s.io", "resourceslices") => MetadataAgain::Change,
        ("", "pods" | "configmaps" | "secrets" | "serviceaccounts" | "persistentvolumeclaims")
        | ("", "namespaces" | "nodes" | "endpoints")
        | ("rbac.authorization.k8s.io" | "certificates.k8s.io" | "resource.k8s.io", _)
        | ("networking.k8s.io", "ingressclasses" | "ingresses" | "ipaddresses")
        | ("storage.k8s.io", "storageclasses" | "csistoragecapacities" | "volumeattributesclasses")
        | ("batch", "jobs")
        | ("node.k8s.io" | "apiregistration.k8s.io", _) => MetadataAgain::Both,
        ("", "persistentvolumes") => MetadataAgain::WholeTwice,
        ("", "limitranges")
        | ("storage.k8s.io", "csinodes" | "volumeattachments")
        | ("admissionregistration.k8s.io" | "flowcontrol.apiserver.k8s.io" | "discovery.k8s.io", _) => {
            MetadataAgain::Whole
        }
        _ => MetadataAgain::Change,
    }
}

/// As [`metadata_again`], of changes of the status and of other parts.
fn metadata_again_of_part(group: &str, resource: &str) -> MetadataAgain {
    match (group, resource) {
        ("batch", "cronjobs")
        | ("policy", "poddisruptionbudgets")
        | ("admissionregistration.k8s.io" | "flowcontrol.apiserver.k8s.io", _)
        | ("storage.k8s.io", "volumeattachments") => MetadataAgain::Nothing,
        ("certificates.k8s.io", _) => MetadataAgain::Both,
        _ => MetadataAgain::Change,
    }
}

/// Where resources have the spec of a pod.
fn pod_spec(group: &str, resource: &str) -> Option<&'static str> {
    match (group, resource) {
        ("", "pods") => Some("/spec"),
        ("", "podtemplates") => Some("/template/spec"),
        ("", "replicationcontrollers")
        | ("apps", "daemonsets" | "deployments" | "replicasets" | "statefulsets")
        | ("batch", "jobs") => Some("/spec/template/spec"),
        ("batch", "cronjobs") => Some("/spec/jobTemplate/spec/template/spec"),
        _ => None,
    }
}

/// Resources whose updates must tell the revision that they change.
fn update_needs_revision(group: &str, resource: &str) -> bool {
    let some = matches!(
        (group, resource),
        ("policy", "poddisruptionbudgets")
            | (
                "storage.k8s.io",
                "csidrivers" | "csinodes" | "csistoragecapacities" | "volumeattachments"
            )
            | ("certificates.k8s.io", "clustertrustbundles" | "podcertificaterequests")
    );
    let groups = [
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "coordination.k8s.io",
        "node.k8s.io",
    ];
    some || groups.contains(&group)
}

/// The rules of one kind; what is not set does nothing.
pub(super) struct Kind {
    pub(super) default: fn(&mut Value),
    /// Fills what is as of now where nobody tells it.
    pub(super) default_now: fn(&mut Value, Timestamp),
    pub(super) prepare_create: fn(&Context<'_>, &mut Value) -> Result<(), ApiError>,
    /// See [`Strategy::reserve`].
    pub(super) reserve: fn(&Context<'_>, &mut Value) -> Result<(), ApiError>,
    /// See [`Strategy::companions`].
    pub(super) companions: Option<fn(&Value) -> Vec<Companion>>,
    pub(super) prepare_update: fn(&Context<'_>, &mut Value, &Value) -> Result<(), ApiError>,
    pub(super) validate: fn(&Value) -> ErrorList,
    /// Takes away fields of features that are off and were not there before, besides those of pods.
    pub(super) drop_disabled: fn(&mut Value, Option<&Value>),
    /// Where the spec of a pod stands that may have fields which are not kept.
    pod_spec: Option<&'static str>,
    /// What is looked at in new objects only.
    pub(super) validate_create: fn(&Value) -> ErrorList,
    pub(super) validate_update: fn(&Value, &Value) -> ErrorList,
    pub(super) validate_status: fn(&Value, &Value) -> ErrorList,
    /// What of a change of the status the caller may not make.
    pub(super) authorize_status: fn(&Context<'_>, &Value, &Value) -> ErrorList,
    /// What a change of the status is made besides what the client says, such as what it keeps of the old one.
    pub(super) prepare_status: fn(&Context<'_>, &mut Value, &Value),
    /// Whether the three above are content with an object's metadata and status ([`Strategy::reads_status_alone`]).
    pub(super) status_alone: bool,
    /// Subresources that are the object itself.
    pub(super) views: &'static [&'static str],
    /// What can be done with them.
    pub(super) view_verbs: &'static [&'static str],
    /// Prepares a change through one of them, and finds what is wrong with it.
    pub(super) update_view: fn(&str, &Context<'_>, &mut Value, &Value) -> ErrorList,
    /// What a caller may not write, of what is valid.
    pub(super) authorize: fn(&Context<'_>, &Value, Option<&Value>) -> ErrorList,
    /// What is wrong with the finalizers.
    finalizers: fn(&Value) -> ErrorList,
    /// Whether an update's whole object is judged before what it changes.
    pub(super) whole_first: bool,
    /// Whether it is judged between what changed in the metadata and what changed elsewhere.
    pub(super) whole_in_between: bool,
    /// What an update looks at in metadata once more, after what is looked at for every kind.
    metadata_again: MetadataAgain,
    /// What a change of the status, or of another part, looks at once more.
    metadata_again_of_part: MetadataAgain,
    /// What a change is judged by before its metadata is looked at once more.
    pub(super) before_change: fn(&Value) -> ErrorList,
    pub(super) row: fn(Timestamp, &Value) -> Vec<Value>,
    pub(super) fields: &'static [Selectable],
    /// Fields by which the same objects may be selected as another kind.
    pub(super) other_fields: &'static [Selectable],
    pub(super) name: fn(&str) -> Vec<String>,
    /// Whether the Go type declares what a name is: of the beginning of one nothing is said then.
    declared_name: bool,
    /// See [`Strategy::nameless`].
    pub(super) nameless: Nameless,
    /// See [`Strategy::completes_name_prefix`].
    pub(super) completes_name_prefix: bool,
    /// What is wrong with the name of an object that says itself what its name must be.
    pub(super) own_name: fn(&Value, &str) -> Vec<String>,
    /// See [`Strategy::judged_before_metadata`].
    pub(super) before_metadata: fn(&Context<'_>, &Value) -> ErrorList,
    /// See [`Strategy::judges_metadata_last`].
    pub(super) metadata_last: bool,
    pub(super) grace: fn(&Value, Option<i64>) -> Option<i64>,
    pub(super) convert: fn(&mut Value, &str, &str) -> Result<(), ApiError>,
    pub(super) generation: bool,
    pub(super) keeps_status: bool,
    pub(super) create_on_update: bool,
    /// Whether a deletion answers the deleted object.
    answers_deleted: bool,
    /// Whether an update must tell the revision that it changes.
    update_needs_revision: bool,
    /// See [`Strategy::status_update_keeps`].
    pub(super) status_keeps: Option<&'static str>,
    /// See [`Strategy::metadata_of_status`].
    metadata_of_status: Option<&'static [&'static str]>,
    /// See [`Strategy::defaults_by_spec`].
    defaults_by_spec: bool,
    /// The group that refusals name, where it is not the resource's.
    group_in_refusals: Option<&'static str>,
    /// What is told when dependents outlive a deletion because it does not say what becomes of them.
    orphans: Option<Option<&'static str>>,
    /// Whether deletions do nothing about dependents.
    ignores_dependents: bool,
    pub(super) marks_for_deletion: fn(&mut Value, Timestamp) -> bool,
    pub(super) time_to_live: Option<Duration>,
    /// Fills what upstream fills only when it reads an object, besides `default`.
    pub(super) default_stored: fn(&mut Value),
    /// Fills, in a valid object, what upstream fills when it reads it back.
    pub(super) canonicalize: fn(&mut Value),
    /// Annotations that upstream makes of fields that are not in the API.
    pub(super) made_annotations: &'static [&'static str],
    /// Why such annotations cannot be made fields.
    pub(super) read_annotations: fn(&Value) -> Result<(), String>,
    /// What a table is ordered by, if not by names.
    pub(super) row_order: Option<fn(&Value) -> i64>,
    /// Lists, by their JSON pointers, that are something else when they are empty than when they are absent.
    pub(super) lists_kept_empty: &'static [&'static str],
    /// Whether status and scale can be shown as tables, see [`Strategy::has_tables_of`].
    pub(super) has_tables_of_status: bool,
    /// See [`Strategy::counts_empty`].
    pub(super) counts_empty: bool,
    /// Fields that writes to the object (no name) or to a subresource leave alone, besides those that all kinds have.
    pub(super) left_alone: fn(&str) -> &'static [&'static str],
    /// What a client is warned of, in new objects and changes.
    pub(super) warnings: fn(&Value, Option<&Value>) -> Vec<String>,
}

impl Kind {
    fn new(row: fn(Timestamp, &Value) -> Vec<Value>) -> Self {
        Self {
            default: |_| {},
            prepare_create: |_, _| Ok(()),
            reserve: |_, _| Ok(()),
            companions: None,
            prepare_update: |_, _, _| Ok(()),
            validate: |_| Vec::new(),
            drop_disabled: |_, _| {},
            pod_spec: None,
            validate_create: |_| Vec::new(),
            validate_update: |_, _| Vec::new(),
            validate_status: |_, _| Vec::new(),
            authorize_status: |_, _, _| Vec::new(),
            prepare_status: |_, _, _| {},
            status_alone: false,
            views: &[],
            view_verbs: &["get", "patch", "update"],
            update_view: |_, _, _, _| Vec::new(),
            authorize: |_, _, _| Vec::new(),
            finalizers,
            whole_first: false,
            whole_in_between: false,
            metadata_again: MetadataAgain::Change,
            metadata_again_of_part: MetadataAgain::Change,
            before_change: |_| Vec::new(),
            row,
            fields: &[],
            other_fields: &[],
            name: meta::dns1123_subdomain,
            declared_name: false,
            nameless: Nameless::Refused,
            completes_name_prefix: true,
            own_name: |_, _| Vec::new(),
            before_metadata: |_, _| Vec::new(),
            metadata_last: false,
            grace: |_, _| None,
            convert: |_, _, _| Ok(()),
            generation: false,
            keeps_status: false,
            create_on_update: false,
            answers_deleted: false,
            update_needs_revision: false,
            status_keeps: None,
            metadata_of_status: None,
            defaults_by_spec: false,
            group_in_refusals: None,
            orphans: None,
            ignores_dependents: false,
            marks_for_deletion: |_, _| false,
            time_to_live: None,
            default_stored: |_| {},
            default_now: |_, _| {},
            canonicalize: |_| {},
            made_annotations: &[],
            read_annotations: |_| Ok(()),
            row_order: None,
            lists_kept_empty: &[],
            has_tables_of_status: true,
            counts_empty: false,
            left_alone: |_| &[],
            warnings: |_, _| Vec::new(),
        }
    }

    /// The Go type declares what a name is.
    pub(super) fn declares_name(mut self) -> Self {
        self.declared_name = true;
        self.name = gardener_apimachinery::names::long_name;
        self
    }

    pub(super) fn defaulted(mut self, default: fn(&mut Value)) -> Self {
        self.default = default;
        self
    }

    /// What is wrong with a change of metadata.
    fn metadata_changed(&self, object: &Value, old: &Value) -> ErrorList {
        let mut errors = meta::validate_update(object, old);
        errors.extend((self.finalizers)(object));
        errors
    }

    /// What of the pod in an object the cluster does not allow.
    fn not_allowed(&self, context: &Context<'_>, object: &Draft) -> ErrorList {
        let allows = |cluster: &LogicalCluster| cluster.config().allows_privileged;
        let Some(place) = self.pod_spec.filter(|_| !context.lister.cluster().is_none_or(allows)) else {
            return Vec::new();
        };
        let spec = object.at(place).unwrap_or(&Value::Null);
        let path = place.trim_start_matches('/').replace('/', ".");
        pods::not_allowed(spec, &Path::new(&path))
    }

    /// What is wrong with the metadata of an object of which a part changes.
    fn part_changed(&self, object: &Value, old: &Value) -> ErrorList {
        let mut errors = match self.metadata_again_of_part {
            MetadataAgain::Nothing | MetadataAgain::Change => Vec::new(),
            MetadataAgain::Whole | MetadataAgain::WholeTwice | MetadataAgain::Both => self.whole_metadata(object),
        };
        if matches!(self.metadata_again_of_part, MetadataAgain::Change | MetadataAgain::Both) {
            errors.extend(self.metadata_changed(object, old));
        }
        errors
    }

    fn whole_metadata(&self, object: &Value) -> ErrorList {
        let mut errors = meta::validate_of_kind(object, self);
        errors.extend((self.finalizers)(object));
        errors
    }

    /// What is wrong with a change.
    fn changed(&self, object: &Draft, old: &Draft) -> ErrorList {
        let mut change = match self.metadata_again {
            MetadataAgain::Nothing | MetadataAgain::Whole | MetadataAgain::WholeTwice => Vec::new(),
            MetadataAgain::Change | MetadataAgain::Both => self.metadata_changed(object, old),
        };
        if !self.whole_in_between {
            change.extend((self.validate_update)(object, old));
        }
        let times = match self.metadata_again {
            MetadataAgain::WholeTwice => 2,
            _ => 1,
        };
        let mut whole = (self.before_change)(object);
        for _ in 0..times {
            if !matches!(self.metadata_again, MetadataAgain::Nothing | MetadataAgain::Change) {
                whole.extend(self.whole_metadata(object));
            }
            whole.extend((self.validate)(object));
        }
        if self.whole_first {
            whole.extend(change);
            return whole;
        }
        change.extend(whole);
        if self.whole_in_between {
            change.extend((self.validate_update)(object, old));
        }
        change
    }

    pub(super) fn generation(mut self) -> Self {
        self.generation = true;
        self
    }
}

/// Finalizers of Kubernetes' own kinds have a domain, but for Kubernetes' own.
fn finalizers(object: &Value) -> ErrorList {
    let unknown = |name: &str| !name.contains('/') && !["orphan", "foregroundDeletion", "kubernetes"].contains(&name);
    let path = Path::new("metadata").child("finalizers");
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    let all = crate::meta::finalizers(object);
    let wrong = all.iter().enumerate().filter(|(_, name)| unknown(name));
    wrong
        .map(|(at, name)| Error::invalid(&path.index(at), name.as_str(), why))
        .collect()
}

impl Strategy for Kind {
    fn default(&self, context: &Context<'_>, object: &mut Value) {
        (self.default)(object);
        (self.default_now)(object, context.now);
    }

    fn default_stored(&self, object: &mut Value) {
        (self.default)(object);
        (self.default_stored)(object);
    }

    fn drop_disabled(&self, object: &mut Draft, old: Option<&Draft>) {
        (self.drop_disabled)(object, old.map(|old| &**old));
        if let Some(place) = self.pod_spec {
            let old = old.and_then(|old| old.at(place));
            pods::gates::strip(object.at_mut(place), old);
        }
    }

    fn prepare_for_create(&self, context: &Context<'_>, object: &mut Draft) -> Result<(), ApiError> {
        (self.prepare_create)(context, object)
    }

    fn has_tables_of(&self, subresource: &str) -> bool {
        self.has_tables_of_status && matches!(subresource, "status" | "scale")
    }

    fn reserve(&self, context: &Context<'_>, object: &mut Draft) -> Result<(), ApiError> {
        (self.reserve)(context, object)
    }

    fn companions(&self, object: &Value) -> Vec<Companion> {
        self.companions.map_or_else(Vec::new, |companions| companions(object))
    }

    fn has_companions(&self) -> bool {
        self.companions.is_some()
    }

    fn prepare_for_update(&self, context: &Context<'_>, object: &mut Draft, old: &Draft) -> Result<(), ApiError> {
        (self.prepare_update)(context, object, old)
    }

    fn validate(&self, context: &Context<'_>, object: &Draft) -> ErrorList {
        let mut errors = (self.finalizers)(object);
        errors.extend((self.validate)(object));
        errors.extend(self.not_allowed(context, object));
        errors.extend((self.validate_create)(object));
        if errors.is_empty() {
            errors = (self.authorize)(context, object, None);
        }
        errors
    }

    fn validate_update(&self, context: &Context<'_>, object: &Draft, old: &Draft) -> ErrorList {
        let mut errors = self.changed(object, old);
        if let Some(place) = self.pod_spec {
            pods::gates::forgive(&mut errors, old.at(place));
        }
        errors.extend(self.not_allowed(context, object));
        if errors.is_empty() {
            return (self.authorize)(context, object, Some(old));
        }
        errors
    }

    fn update_status(&self, context: &Context<'_>, object: &mut Draft, old: &Draft) -> Result<ErrorList, ApiError> {
        let (object, old): (&mut Value, &Value) = match self.status_alone {
            true => (object.read_part_mut(), old.read_part()),
            false => (object, old),
        };
        (self.prepare_status)(context, object, old);
        let mut errors = (self.authorize_status)(context, object, old);
        errors.extend(self.part_changed(object, old));
        errors.extend((self.validate_status)(object, old));
        Ok(errors)
    }

    fn views(&self) -> &'static [&'static str] {
        self.views
    }

    fn view_verbs(&self) -> &'static [&'static str] {
        self.view_verbs
    }

    fn update_view(
        &self,
        view: &str,
        context: &Context<'_>,
        object: &mut Draft,
        old: &Draft,
    ) -> Result<ErrorList, ApiError> {
        let wrong = (self.update_view)(view, context, object, old);
        let mut errors = self.part_changed(object, old);
        errors.extend(wrong);
        errors.extend(self.not_allowed(context, object));
        Ok(errors)
    }

    fn warnings(&self, _: &Context<'_>, object: &Draft, old: Option<&Draft>) -> Vec<String> {
        (self.warnings)(object, old.map(|old| &**old))
    }

    fn has_generation(&self) -> bool {
        self.generation
    }

    fn keeps_status_on_create(&self) -> bool {
        self.keeps_status
    }

    fn allow_create_on_update(&self) -> bool {
        self.create_on_update
    }

    fn allow_unconditional_update(&self) -> bool {
        !self.update_needs_revision
    }

    fn status_update_keeps(&self) -> Option<&'static str> {
        self.status_keeps
    }

    fn defaults_by_spec(&self) -> bool {
        self.defaults_by_spec
    }

    fn decode_embedded(&self, _: &str, object: &Value) -> Result<(), String> {
        (self.read_annotations)(object)
    }

    fn decodes_status_alone(&self) -> bool {
        true
    }

    fn reads_status_alone(&self) -> bool {
        self.status_alone
    }

    fn metadata_of_status(&self) -> Option<&'static [&'static str]> {
        self.metadata_of_status
    }

    fn group_in_refusals<'g>(&self, group: &'g str) -> &'g str {
        self.group_in_refusals.unwrap_or(group)
    }

    fn answers_deleted_object(&self) -> bool {
        self.answers_deleted
    }

    fn marks_for_deletion(&self, object: &mut Value, now: Timestamp) -> bool {
        (self.marks_for_deletion)(object, now)
    }

    fn ignores_dependents(&self) -> bool {
        self.ignores_dependents
    }

    fn orphans_by_default(&self) -> bool {
        self.orphans.is_some()
    }

    fn warning_of_default_propagation(&self) -> Option<&'static str> {
        self.orphans.flatten()
    }

    fn grace_period(&self, object: &Value, asked: Option<i64>) -> Option<i64> {
        (self.grace)(object, asked)
    }

    fn selectable_fields(&self) -> &[Selectable] {
        self.fields
    }

    fn other_fields(&self) -> &[Selectable] {
        self.other_fields
    }

    fn validate_name(&self, object: &Value, name: &str) -> Vec<String> {
        let mut wrong = (self.name)(name);
        wrong.extend((self.own_name)(object, name));
        wrong
    }

    fn validates_name_prefix(&self) -> bool {
        !self.declared_name
    }

    fn nameless(&self) -> Nameless {
        self.nameless
    }

    fn completes_name_prefix(&self) -> bool {
        self.completes_name_prefix
    }

    fn judged_before_metadata(&self, context: &Context<'_>, object: &Draft) -> ErrorList {
        (self.before_metadata)(context, object)
    }

    fn judges_metadata_last(&self) -> bool {
        self.metadata_last
    }

    fn row(&self, now: Timestamp, object: &Value) -> Vec<Value> {
        (self.row)(now, object)
    }

    fn row_order(&self) -> Option<fn(&Value) -> i64> {
        self.row_order
    }

    fn convert(&self, object: &mut Value, from: &str, to: &str) -> Result<(), ApiError> {
        (self.convert)(object, from, to)
    }

    fn canonicalize(&self, object: &mut Draft) {
        (self.canonicalize)(object);
    }

    fn made_annotations(&self) -> &'static [&'static str] {
        self.made_annotations
    }

    fn counts_empty(&self) -> bool {
        self.counts_empty
    }

    fn lists_kept_empty(&self) -> &'static [&'static str] {
        self.lists_kept_empty
    }

    fn left_alone(&self, subresource: &str) -> &'static [&'static str] {
        (self.left_alone)(subresource)
    }

    fn time_to_live(&self) -> Option<Duration> {
        self.time_to_live
    }
}

/// The rules of a resource.
pub(super) fn of(group: &str, resource: &str) -> Arc<dyn Strategy> {
    Arc::new(kind_of(group, resource))
}

/// Groups whose finalizers upstream leaves to their authors: that of CustomResourceDefinitions has no domain itself.
const ANY_FINALIZER: [&str; 6] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "policy",
];

/// See [`Strategy::metadata_of_status`]. What upstream resets is not what may not change, and differs.
fn metadata_of_status(group: &str, resource: &str) -> Option<&'static [&'static str]> {
    match (group, resource) {
        ("flowcontrol.apiserver.k8s.io", _) => Some(&[]),
        ("admissionregistration.k8s.io", "validatingadmissionpolicies")
        | ("networking.k8s.io", "servicecidrs")
        | ("resource.k8s.io", "resourceclaims")
        | ("storage.k8s.io", "volumeattachments") => Some(&["uid", "deletionGracePeriodSeconds"]),
        ("apiregistration.k8s.io", "apiservices") => Some(&["uid", "deletionTimestamp", "deletionGracePeriodSeconds"]),
        _ => None,
    }
}

/// See [`Strategy::defaults_by_spec`].
const DEFAULTS_BY_SPEC: [(&str, &str); 3] = [
    ("", "replicationcontrollers"),
    ("batch", "jobs"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
];

/// Resources whose deletion answers the deleted object, besides those of `resource.k8s.io`.
const ANSWERS_DELETED: [(&str, &str); 13] = [
    ("", "namespaces"),
    ("", "persistentvolumeclaims"),
    ("", "persistentvolumes"),
    ("", "pods"),
    ("", "podtemplates"),
    ("", "resourcequotas"),
    ("", "serviceaccounts"),
    ("", "services"),
    ("storage.k8s.io", "csidrivers"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "volumeattachments"),
    ("storage.k8s.io", "volumeattributesclasses"),
];

pub(super) fn kind_of(group: &str, resource: &str) -> Kind {
    let mut kind = match (group, resource) {
        ("", "pods") => pods::kind(Kind::new(printers::core::pod).generation()),
        ("", "services") => services::kind(Kind::new(printers::core::service).defaulted(defaults::service)),
        ("", "namespaces") => namespaces::kind(Kind::new(printers::core::namespace)),
        ("", "nodes") => nodes::kind(Kind::new(printers::core::node)),
        ("", "secrets") => storage::secrets(Kind::new(printers::core::secret)),
        ("", "configmaps") => storage::config_maps(Kind::new(printers::core::config_map)),
        ("", "serviceaccounts") => serviceaccounts::kind(Kind::new(printers::core::service_account)),
        ("", "events") => events::core_kind(Kind::new(printers::core::event)),
        ("events.k8s.io", "events") => events::kind(Kind::new(printers::core::event)),
        ("", "endpoints") => endpoints::endpoints(Kind::new(printers::core::endpoints)),
        ("", "persistentvolumeclaims") => claims::claims(Kind::new(printers::core::persistent_volume_claim)),
        ("", "persistentvolumes") => {
            volumes::volumes(Kind::new(printers::core::persistent_volume).defaulted(defaults::persistent_volume))
        }
        ("", "replicationcontrollers") => workloads::replication_controllers(
            Kind::new(printers::apps::replication_controller)
                .defaulted(defaults::replication_controller)
                .generation()
                .declares_name(),
        ),
        ("", "resourcequotas") => {
            policies::quotas(Kind::new(printers::core::resource_quota).defaulted(defaults::resource_quota))
        }
        ("", "limitranges") => {
            policies::limit_ranges(Kind::new(printers::core::limit_range).defaulted(defaults::limit_range))
        }
        ("", "componentstatuses") => Kind::new(printers::core::component_status),
        ("", "podtemplates") => workloads::pod_templates(
            Kind::new(printers::core::pod_template)
                .defaulted(defaults::pod_template)
                .generation(),
        ),
        ("apps", "deployments") => workloads::deployments(
            Kind::new(printers::apps::deployment)
                .defaulted(defaults::deployment)
                .generation(),
        ),
        ("apps", "replicasets") => workloads::replica_sets(
            Kind::new(printers::apps::replica_set)
                .defaulted(defaults::replica_set)
                .generation(),
        ),
        ("apps", "statefulsets") => workloads::stateful_sets(
            Kind::new(printers::apps::stateful_set)
                .defaulted(defaults::stateful_set)
                .generation(),
        ),
        ("apps", "daemonsets") => workloads::daemon_sets(Kind::new(printers::apps::daemon_set).generation()),
        ("apps", "controllerrevisions") => workloads::revisions(Kind::new(printers::apps::controller_revision)),
        ("batch", "jobs") => jobs::jobs(Kind::new(printers::apps::job).defaulted(defaults::job).generation()),
        ("batch", "cronjobs") => jobs::cron_jobs(
            Kind::new(printers::apps::cron_job)
                .defaulted(defaults::cron_job)
                .generation(),
        ),
        ("autoscaling", "horizontalpodautoscalers") => autoscaling::autoscalers(
            Kind::new(printers::autoscaling::horizontal_pod_autoscaler).defaulted(defaults::horizontal_pod_autoscaler),
        ),
        ("policy", "poddisruptionbudgets") => {
            jobs::budgets(Kind::new(printers::apps::pod_disruption_budget).generation())
        }
        ("networking.k8s.io", "ingresses") => networking::ingresses(
            Kind::new(printers::networking::ingress)
                .defaulted(defaults::load_balancer_status)
                .generation(),
        ),
        ("networking.k8s.io", "ingressclasses") => {
            networking::ingress_classes(Kind::new(printers::networking::ingress_class).generation())
        }
        ("networking.k8s.io", "networkpolicies") => networking::policies(
            Kind::new(printers::networking::network_policy)
                .defaulted(defaults::network_policy)
                .generation(),
        ),
        ("networking.k8s.io", "ipaddresses") => networking::ip_addresses(Kind::new(printers::networking::ip_address)),
        ("networking.k8s.io", "servicecidrs") => {
            networking::service_cidrs(Kind::new(printers::networking::service_cidr))
        }
        ("discovery.k8s.io", "endpointslices") => endpoints::slices(
            Kind::new(printers::networking::endpoint_slice)
                .defaulted(defaults::endpoint_slice)
                .generation(),
        ),
        ("storage.k8s.io", "storageclasses") => {
            storage::classes(Kind::new(printers::storage::storage_class).defaulted(defaults::storage_class))
        }
        ("storage.k8s.io", "csidrivers") => drivers::csi_drivers(Kind::new(printers::storage::csi_driver)),
        ("storage.k8s.io", "csinodes") => drivers::csi_nodes(Kind::new(printers::storage::csi_node)),
        ("storage.k8s.io", "csistoragecapacities") => {
            drivers::capacities(Kind::new(printers::storage::csi_storage_capacity))
        }
        ("storage.k8s.io", "volumeattachments") => {
            drivers::attachments(Kind::new(printers::storage::volume_attachment).defaulted(defaults::volume_attachment))
        }
        ("storage.k8s.io", "volumeattributesclasses") => {
            drivers::attributes(Kind::new(printers::storage::volume_attributes_class))
        }
        ("rbac.authorization.k8s.io", "roles") => roles::roles(Kind::new(printers::rbac::role)),
        ("rbac.authorization.k8s.io", "clusterroles") => roles::cluster_roles(Kind::new(printers::rbac::role)),
        ("rbac.authorization.k8s.io", "rolebindings") => roles::bindings(Kind::new(printers::rbac::binding)),
        ("rbac.authorization.k8s.io", "clusterrolebindings") => {
            roles::cluster_bindings(Kind::new(printers::rbac::binding))
        }
        ("certificates.k8s.io", "certificatesigningrequests") => {
            certificates::kind(Kind::new(printers::rbac::certificate_signing_request))
        }
        ("coordination.k8s.io", "leases") => leases::kind(Kind::new(printers::core::lease)),
        ("scheduling.k8s.io", "priorityclasses") => {
            policies::priority_classes(Kind::new(printers::core::priority_class).defaulted(defaults::priority_class))
        }
        ("node.k8s.io", "runtimeclasses") => policies::runtime_classes(Kind::new(printers::core::runtime_class)),
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            crds::kind(Kind::new(printers::extensions::custom_resource_definition).generation())
        }
        ("apiregistration.k8s.io", "apiservices") => {
            flowcontrol::api_services(Kind::new(printers::extensions::api_service).defaulted(defaults::api_service))
        }
        ("admissionregistration.k8s.io", "validatingwebhookconfigurations" | "mutatingwebhookconfigurations") => {
            let mut kind = Kind::new(printers::extensions::webhook_configuration)
                .defaulted(defaults::webhook_configuration)
                .generation();
            kind.validate_update = webhooks::validate_update;
            kind.validate_create = webhooks::validate;
            kind.warnings = |configuration, _| webhooks::warn_of_name(configuration);
            kind.counts_empty = true;
            kind
        }
        ("admissionregistration.k8s.io", "validatingadmissionpolicies" | "mutatingadmissionpolicies") => {
            let kind = Kind::new(printers::extensions::admission_policy).generation();
            admission_policies::policies(kind, resource == "validatingadmissionpolicies")
        }
        ("admissionregistration.k8s.io", _) => {
            let kind = Kind::new(printers::extensions::admission_policy_binding).generation();
            admission_policies::bindings(kind, resource == "validatingadmissionpolicybindings")
        }
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => {
            flowcontrol::flow_schemas(Kind::new(printers::extensions::flow_schema).generation())
        }
        ("flowcontrol.apiserver.k8s.io", _) => {
            flowcontrol::priority_levels(Kind::new(printers::extensions::priority_level_configuration).generation())
        }
        ("resource.k8s.io", "deviceclasses") => devices::classes(Kind::new(crate::table::default_row)),
        ("resource.k8s.io", "resourceclaims") => devices::claims(Kind::new(printers::extensions::resource_claim)),
        ("resource.k8s.io", "resourceclaimtemplates") => devices::templates(Kind::new(crate::table::default_row)),
        ("resource.k8s.io", "resourceslices") => devices::slices(Kind::new(printers::extensions::resource_slice)),
        _ => Kind::new(crate::table::default_row),
    };
    kind.update_needs_revision = update_needs_revision(group, resource);
    kind.metadata_of_status = metadata_of_status(group, resource);
    if kind.metadata_of_status.is_some() {
        kind.left_alone = |subresource| match subresource {
            "status" => &["metadata"],
            _ => &[],
        };
    }
    // events of both groups are one kind upstream
    kind.group_in_refusals = (group == "events.k8s.io").then_some("");
    kind.pod_spec = pod_spec(group, resource);
    kind.metadata_again = metadata_again(group, resource);
    kind.metadata_again_of_part = metadata_again_of_part(group, resource);
    kind.defaults_by_spec = DEFAULTS_BY_SPEC.contains(&(group, resource));
    kind.answers_deleted = ANSWERS_DELETED.contains(&(group, resource)) || group == "resource.k8s.io";
    kind.orphans = match (group, resource) {
        ("batch", "jobs") => Some(Some(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning",
        )),
        ("", "replicationcontrollers") => Some(None),
        _ => None,
    };
    kind.ignores_dependents = resource == "events";
    if ANY_FINALIZER.contains(&group) || kind.metadata_again == MetadataAgain::Nothing {
        kind.finalizers = |_| Vec::new();
    }
    kind
}

/// Subresources of a resource, besides `status` and `scale`.
pub(super) fn subresources(group: &str, resource: &str) -> BTreeMap<&'static str, Arc<dyn Subresource>> {
    let mut map: BTreeMap<&'static str, Arc<dyn Subresource>> = BTreeMap::new();
    match (group, resource) {
        ("", "pods") => {
            map.insert("binding", Arc::new(pods::Binding));
            map.insert("eviction", Arc::new(pods::Eviction));
            map.insert("log", Arc::new(pods::Log));
        }
        ("", "serviceaccounts") => {
            map.insert("token", Arc::new(serviceaccounts::Token));
        }
        _ => {}
    }
    map
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn finalizers_need_a_domain_where_upstream_wants_one() {
        for (group, resource, finalizer, is_refused) in [
            ("", "configmaps", "none", true),
            ("", "configmaps", "kubernetes", false),
            ("apps", "deployments", "none", true),
            ("coordination.k8s.io", "leases", "none", false),
            (
                "apiextensions.k8s.io",
                "customresourcedefinitions",
                "customresourcecleanup.apiextensions.k8s.io",
                false,
            ),
        ] {
            let object = json!({"metadata": {"name": "a", "finalizers": [finalizer]}});
            let errors = (kind_of(group, resource).finalizers)(&object);
            assert_eq!(
                !errors.is_empty(),
                is_refused,
                "{group}/{resource} {finalizer}: {errors:?}"
            );
        }
    }
}
