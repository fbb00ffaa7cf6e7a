//! Defaults and validation of the gardenlet configuration inside ManagedSeeds, ManagedSeedSets and Gardenlets,
//! [DEF-45], [VAL-MS1]. The configuration stays JSON; only its seed template is read as a type.

mod settings;

use gardener_apimachinery::type_meta::is_no_group_version;
use std::collections::BTreeMap;

use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use gardener_apimachinery::pointer::Pointed;
use gardener_apimachinery::quantity::Amount;
use gardener_apimachinery::{meta, names};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{GardenletDeployment, Image};
use crate::core::v1beta1::{SeedSpec, validate_seed_spec, validate_seed_spec_update};
use crate::validation::{invalid_each, non_negative, shown};

/// The version of the configuration that gardenlets read.
const API_VERSION: &str = "gardenlet.config.gardener.cloud/v1alpha1";
/// Its kind.
const KIND: &str = "GardenletConfiguration";

/// Whether an embedded configuration says that it is one of gardenlets; one that says nothing is taken for one.
///
/// # Errors
/// What Go's decoder says of it.
pub fn decode_gardenlet_config(config: Option<&Value>) -> Result<(), String> {
    let text = |name: &str| config.and_then(|config| config.get(name)).and_then(Value::as_str);
    let (version, kind) = (text("apiVersion").unwrap_or_default(), text("kind").unwrap_or_default());
    if is_no_group_version(version) {
        return Err(format!("unexpected GroupVersion string: {version}"));
    }
    let (version, kind) = (
        if version.is_empty() { API_VERSION } else { version },
        if kind.is_empty() { KIND } else { kind },
    );
    if (version, kind) == (API_VERSION, KIND) {
        return Ok(());
    }
    let version = match version.strip_suffix("/__internal") {
        Some(group) => format!("the internal version of group {}", go_quote(group)),
        None => format!("version {}", go_quote(version)),
    };
    Err(format!(
        "no kind {} is registered for {version} in scheme \"pkg/runtime/scheme.go:111\"",
        go_quote(kind)
    ))
}

/// Fills in what the wire always shows of a gardenlet configuration; `capacity`: the default number of shoots as well.
pub fn default_gardenlet_config(config: &mut Option<Value>, capacity: bool) {
    let config = config.get_or_insert_with(|| json!({"apiVersion": API_VERSION, "kind": KIND}));
    let Some(fields) = config.as_object_mut() else { return };
    for (name, known) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        let told = fields.get(name).and_then(Value::as_str).unwrap_or_default();
        if told.is_empty() {
            fields.insert(name.to_owned(), known.into());
        }
    }
    if capacity {
        let resources = fields.entry("resources").or_insert_with(|| json!({}));
        if let Some(resources) = resources.as_object_mut() {
            let amounts = resources.entry("capacity").or_insert_with(|| json!({}));
            if let Some(amounts) = amounts.as_object_mut() {
                amounts.entry("shoots").or_insert_with(|| json!("250"));
            }
        }
    }
    fields.entry("logLevel").or_insert_with(|| json!(""));
    fields.entry("logFormat").or_insert_with(|| json!(""));
    fields.entry("server").or_insert_with(|| json!({}));
    if let Some(seed) = fields.get_mut("seedConfig").and_then(Value::as_object_mut) {
        seed.entry("metadata").or_insert_with(|| json!({}));
        normalize_seed_spec(seed);
    }
}

/// The seed template as its type writes it: empty lists gone, required texts there.
fn normalize_seed_spec(seed: &mut Map<String, Value>) {
    let spec: Option<SeedSpec> = seed
        .get("spec")
        .cloned()
        .map_or(Some(SeedSpec::default()), |spec| serde_json::from_value(spec).ok());
    if let Some(spec) = spec {
        seed.insert("spec".into(), shown(&spec));
    }
}

/// The seed template's spec, when the configuration has one that can be read.
pub fn seed_spec_of(config: Option<&Value>) -> Option<SeedSpec> {
    serde_json::from_value(config?.get("seedConfig")?.get("spec")?.clone()).ok()
}

/// Checks a change of a gardenlet's configuration: its seed's template changes as a seed may.
pub fn validate_gardenlet_config_update(new: Option<&Value>, old: Option<&Value>, path: &Path) -> ErrorList {
    match (seed_spec_of(new), seed_spec_of(old)) {
        (Some(spec), Some(before)) => validate_seed_spec_update(&spec, &before, &path.child("seedConfig.spec")),
        _ => ErrorList::new(),
    }
}

/// Fills in an image's pull policy: `latest` is pulled always.
pub fn default_image(image: &mut Image) {
    let latest = image.tag.as_deref() == Some("latest");
    image
        .pull_policy
        .get_or_insert_with(|| if latest { "Always".into() } else { "IfNotPresent".into() });
}

/// Fills in a gardenlet's deployment.
pub fn default_gardenlet_deployment(deployment: &mut GardenletDeployment) {
    deployment.replica_count.get_or_insert(2);
    deployment.revision_history_limit.get_or_insert(2);
    default_image(deployment.image.get_or_insert_default());
    deployment.enable_health_probes.get_or_insert(true);
}

/// Checks the numbers and the image of a gardenlet's deployment.
pub fn validate_gardenlet_deployment(
    replicas: Option<i32>,
    history: Option<i32>,
    account: Option<&str>,
    image: Option<&Image>,
    (labels, annotations): (&BTreeMap<String, String>, &BTreeMap<String, String>),
    path: &Path,
) -> ErrorList {
    let mut errors = ErrorList::new();
    for (name, value) in [("replicaCount", replicas), ("revisionHistoryLimit", history)] {
        if let Some(value) = value {
            errors.extend(non_negative(value, &path.child(name)));
        }
    }
    if let Some(account) = account {
        let wrong = names::dns_subdomain(account);
        errors.extend(invalid_each(&path.child("serviceAccountName"), account, wrong));
    }
    if let Some(image) = image {
        let at = path.child("image");
        const POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];
        let parts = [
            ("ref", &image.ref_),
            ("repository", &image.repository),
            ("tag", &image.tag),
        ];
        for (name, _) in parts.iter().filter(|(_, part)| part.as_deref() == Some("")) {
            let why = format!("{name} must not be empty if specified");
            errors.push(Error::invalid(&at.child(name), "", why));
        }
        if image.ref_.is_some() && (image.repository.is_some() || image.tag.is_some()) {
            errors.push(Error::forbidden(&at, "ref and repository/tag are mutually exclusive"));
        }
        if let Some(policy) = &image.pull_policy
            && !POLICIES.contains(&policy.as_str())
        {
            errors.push(Error::not_supported(
                &at.child("pullPolicy"),
                policy.as_str(),
                &POLICIES,
            ));
        }
    }
    errors.extend(meta::validate_labels(labels, &path.child("podLabels")));
    errors.extend(meta::validate_annotations(annotations, &path.child("podAnnotations")));
    errors
}

/// Checks a gardenlet configuration, whose seed may leave out what the gardenlet finds out. `bootstrap` says how it gets its identity, `merges` whether it may take over its parent's configuration.
pub fn validate_gardenlet_config(config: &Value, bootstrap: &str, merges: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let seed = config.get("seedConfig").unwrap_or(&Value::Null);
    let at = path.child("seedConfig");
    if seed
        .at("/metadata/name")
        .and_then(Value::as_str)
        .is_some_and(|name| !name.is_empty())
    {
        errors.push(Error::forbidden(&at.child("metadata.name"), "seed name is forbidden"));
    }
    errors.extend(settings::connections(config, path));
    errors.extend(settings::leader_election(config));
    errors.extend(settings::controllers(config, path));
    for (name, known) in [
        ("logLevel", &["debug", "info", "error"][..]),
        ("logFormat", &["json", "text"]),
    ] {
        let value = config.get(name).and_then(Value::as_str).unwrap_or_default();
        if !value.is_empty() && !known.contains(&value) {
            errors.push(Error::not_supported(&Path::new(name), value, known));
        }
    }
    if seed.is_object() {
        errors.extend(template_metadata(
            map_in(seed, "/metadata/labels").as_ref(),
            map_in(seed, "/metadata/annotations").as_ref(),
            &at.child("metadata"),
        ));
        match serde_json::from_value::<SeedSpec>(seed.get("spec").cloned().unwrap_or_else(|| json!({}))) {
            Ok(spec) => errors.extend(validate_seed_spec(&spec, true, &at.child("spec"))),
            Err(why) => errors.push(Error::invalid(&at.child("spec"), Value::Null, why.to_string())),
        }
    }
    errors.extend(reserved(config, &path.child("resources.reserved")));
    errors.extend(settings::sni(config.get("sni"), &path.child("sni")));
    errors.extend(settings::exposure_class_handlers(config, path));
    errors.extend(settings::node_toleration(config, path));
    if let Some(connection) = config.get("gardenClientConnection").filter(|own| own.is_object()) {
        let at = path.child("gardenClientConnection");
        errors.extend(client_connection(connection, bootstrap, merges, &at));
    }
    errors
}

/// How the gardenlet reaches the garden fits to how it gets its identity.
fn client_connection(connection: &Value, bootstrap: &str, merges: bool, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let text = |name: &str| connection.get(name).and_then(Value::as_str).unwrap_or_default();
    let has_kubeconfig = !text("kubeconfig").is_empty();
    match bootstrap {
        "ServiceAccount" | "BootstrapToken" if has_kubeconfig => errors.push(Error::forbidden(
            &path.child("kubeconfig"),
            "kubeconfig is forbidden if bootstrap is specified",
        )),
        "None" => {
            if !has_kubeconfig && !merges {
                errors.push(Error::required(
                    &path.child("kubeconfig"),
                    "kubeconfig is required if bootstrap is not specified and merging with parent is disabled",
                ));
            }
            for (name, what) in [
                ("bootstrapKubeconfig", "bootstrap kubeconfig"),
                ("kubeconfigSecret", "kubeconfig secret"),
            ] {
                if connection.get(name).is_some_and(|own| !own.is_null()) {
                    let why = format!("{what} is forbidden if bootstrap is not specified");
                    errors.push(Error::forbidden(&path.child(name), why));
                }
            }
        }
        _ => {}
    }
    errors
}

/// The generation that a status is about.
pub(in crate::seedmanagement::v1alpha1) fn observed_generation(generation: Option<i64>) -> ErrorList {
    non_negative(generation.unwrap_or_default(), &Path::new("status.observedGeneration"))
}

/// Labels and annotations of a template.
pub(in crate::seedmanagement::v1alpha1) fn template_metadata(
    labels: Option<&BTreeMap<String, String>>,
    annotations: Option<&BTreeMap<String, String>>,
    path: &Path,
) -> ErrorList {
    let mut errors = meta::validate_labels(labels.into_iter().flatten(), &path.child("labels"));
    let annotations = annotations.into_iter().flatten();
    errors.extend(meta::validate_annotations(annotations, &path.child("annotations")));
    errors
}

/// A map in a part of a configuration that has no type here.
pub(in crate::seedmanagement::v1alpha1) fn map_in<T: DeserializeOwned>(
    part: &Value,
    pointer: &str,
) -> Option<BTreeMap<String, T>> {
    BTreeMap::deserialize(part.at(pointer)?).ok()
}

/// What a seed keeps back of its capacity cannot be more than that, each in whole units.
fn reserved(config: &Value, path: &Path) -> ErrorList {
    let amounts = |pointer: &str| map_in::<Quantity>(config, pointer).unwrap_or_default();
    let (capacity, reserved) = (amounts("/resources/capacity"), amounts("/resources/reserved"));
    let amount = |quantity: &Quantity| quantity.0.parse::<Amount>().ok().map(Amount::value);
    let wrong = |name: &str, kept: &Quantity, why: &str| Error::invalid(&path.child(name), kept.0.as_str(), why);
    let both = capacity
        .iter()
        .filter_map(|(name, whole)| Some((name, whole, reserved.get(name)?)));
    let too_much = both.filter(|(_, whole, kept)| amount(kept) > amount(whole));
    let too_much = too_much.map(|(name, _, kept)| wrong(name, kept, "reserved must be lower or equal to capacity"));
    let of_nothing = reserved.iter().filter(|(name, _)| !capacity.contains_key(*name));
    too_much
        .chain(of_nothing.map(|(name, kept)| wrong(name, kept, "reserved without capacity")))
        .collect()
}
