//! Where kube-apiserver keeps its objects in etcd, and the forms in which it keeps them: so that an etcd can be handed from it to us and back.
//!
//! Built-in resources lie below `<prefix>/<resource>/`, some under names of old; custom ones, definitions and API services below
//! `<prefix>/<group>/<resource>/`. An etcd holds one cluster, so the logical cluster's name does not occur there. Built-in kinds are written there in
//! protobuf, custom ones in JSON; we read both and write JSON, which kube-apiserver reads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gardener_store::{Key, Layout, Topic};
use serde_json::Value;

use crate::cluster::ResourceSet;
use crate::definition::{Definition, Draft};
use crate::{meta, object, protobuf};

use super::older;

/// Built-in resources that are not kept under their own name.
const NAMES_OF_OLD: [(&str, &str, &str); 5] = [
    ("", "replicationcontrollers", "controllers"),
    ("", "endpoints", "services/endpoints"),
    ("", "nodes", "minions"),
    ("", "services", "services/specs"),
    ("networking.k8s.io", "ingresses", "ingress"),
];
/// Groups whose built-in resources are kept as custom ones are.
const WITH_GROUP: [&str; 2] = ["apiextensions.k8s.io", "apiregistration.k8s.io"];

/// Where servers of one cluster tell each other that they live: one Endpoints object each, under its address, that ends by itself. No API serves it.
pub fn server_leases() -> Topic {
    Topic::new("", "masterleases")
}

/// How long a server lives on for the others after it told so.
pub const SERVER_LEASE: Duration = Duration::from_secs(15);

/// What lies at one place.
struct Resource {
    topic: Topic,
    definition: Option<Arc<Definition>>,
}

/// How one logical cluster lies in an etcd.
pub struct EtcdLayout {
    prefix: String,
    cluster: String,
    places: BTreeMap<Topic, String>,
    resources: BTreeMap<String, Resource>,
    event_time_to_live: Duration,
}

/// Where objects of a built-in resource lie below the prefix.
pub(crate) fn place_of(group: &str, plural: &str) -> String {
    let place = NAMES_OF_OLD.iter().find(|own| (own.0, own.1) == (group, plural));
    match place {
        Some((_, _, place)) => (*place).to_owned(),
        None if WITH_GROUP.contains(&group) => format!("{group}/{plural}"),
        None => plural.to_owned(),
    }
}

impl EtcdLayout {
    /// The layout of a cluster with these built-in resources below a prefix (`/registry`). Events live as long as told.
    pub fn new(prefix: &str, cluster: &str, resources: &ResourceSet, event_time_to_live: Duration) -> Self {
        let mut places = BTreeMap::from([(server_leases(), "masterleases".to_owned())]);
        let leases = Resource {
            topic: server_leases(),
            definition: None,
        };
        let mut built_in = BTreeMap::from([("masterleases".to_owned(), leases)]);
        for definition in resources.iter() {
            let (group, plural) = (definition.group.as_str(), definition.plural.as_str());
            // two APIs of one set of objects: those objects are of the one whose topic it is
            if definition.topic != Topic::new(group, plural) {
                continue;
            }
            let place = place_of(group, plural);
            places.insert(definition.topic.clone(), place.clone());
            let resource = Resource {
                topic: definition.topic.clone(),
                definition: Some(Arc::clone(definition)),
            };
            built_in.insert(place, resource);
        }
        Self {
            prefix: format!("/{}/", prefix.trim_matches('/')),
            cluster: cluster.to_owned(),
            places,
            resources: built_in,
            event_time_to_live,
        }
    }

    /// The built-in resource at the beginning of a place, and the rest.
    fn built_in<'p>(&self, place: &'p str) -> Option<(&Resource, &'p str)> {
        let (first, rest) = place.split_once('/')?;
        if let Some(resource) = self.resources.get(first) {
            return Some((resource, rest));
        }
        let (second, rest) = rest.split_once('/')?;
        let resource = self.resources.get(&format!("{first}/{second}"))?;
        Some((resource, rest))
    }

    fn definition(&self, key: &Key) -> Option<&Arc<Definition>> {
        self.resources.get(self.places.get(&key.topic)?)?.definition.as_ref()
    }
}

impl Layout for EtcdLayout {
    fn prefix(&self) -> &str {
        &self.prefix
    }

    fn place(&self, key: &Key) -> Option<String> {
        let path = key.path.strip_prefix(self.cluster.as_str())?.strip_prefix('/')?;
        let topic = self.places.get(&key.topic).map_or(key.topic.as_str(), String::as_str);
        Some(format!("{}{topic}/{path}", self.prefix))
    }

    fn key_at(&self, place: &str) -> Option<Key> {
        let place = place.strip_prefix(self.prefix.as_str())?;
        if let Some((resource, path)) = self.built_in(place) {
            return Some(Key::new(resource.topic.clone(), format!("{}/{path}", self.cluster)));
        }
        let mut parts = place.splitn(3, '/');
        let (group, resource, path) = (parts.next()?, parts.next()?, parts.next()?);
        // groups of custom resources are domains; all else is kube-apiserver's own, such as address ranges
        let key = || Key::new(Topic::new(group, resource), format!("{}/{path}", self.cluster));
        group.contains('.').then(key)
    }

    fn read(&self, key: &Key, value: &Bytes) -> Result<Bytes, String> {
        let definition = self.definition(key);
        let mut object = if value.starts_with(protobuf::MAGIC) {
            let form = |group: &str, version: &str, kind: &str| {
                let stored = definition
                    .filter(|_| older::is_same_form(group, version, kind))?
                    .stored_version();
                stored.map(|stored| stored.name.clone())
            };
            protobuf::decode_stored(value, form).map_err(|error| error.to_string())?
        } else {
            let value = value.slice(..value.trim_ascii_end().len());
            if object::is_encoded(&value)
                && definition.is_none_or(|definition| is_of_stored_version(definition, &value))
            {
                return Ok(value);
            }
            serde_json::from_slice(&value).map_err(|error| error.to_string())?
        };
        if !object.is_object() {
            return Err("it is no object".to_owned());
        }
        if let Some(definition) = definition {
            as_stored(definition, &mut object)?;
        }
        Ok(object::encode(&object))
    }

    fn time_to_live(&self, key: &Key) -> Option<Duration> {
        if key.topic == server_leases() {
            return Some(SERVER_LEASE);
        }
        let definition = self.definition(key)?;
        definition.strategy.time_to_live().map(|_| self.event_time_to_live)
    }
}

/// Whether JSON that begins as we write it is of the version that is stored today.
fn is_of_stored_version(definition: &Definition, value: &[u8]) -> bool {
    let stored = definition.stored_version();
    stored.is_some_and(|stored| definition.is_written_in(&stored.name, value))
}

/// Brings a built-in object that another server wrote into the form in which we store it.
fn as_stored(definition: &Definition, value: &mut Value) -> Result<(), String> {
    let Some(stored) = definition.stored_version() else {
        return Ok(());
    };
    let wanted = definition.api_version(&stored.name);
    let own = meta::text(value, "/apiVersion").to_owned();
    if own != wanted {
        let version = own.rsplit('/').next().unwrap_or_default();
        let is_of_group = definition.api_version(version) == own;
        let is_served = definition.versions.iter().any(|one| one.name == version);
        match (definition.group.as_str(), version) {
            _ if !is_of_group => return Err(unknown(&own)),
            ("apiextensions.k8s.io", "v1beta1") => older::definition_of_v1beta1(value),
            (group, version) if older::is_same_form(group, version, meta::text(value, "/kind")) => {}
            _ if is_served => {
                let converted = definition.strategy.convert(value, version, &stored.name);
                converted.map_err(|error| error.message().to_owned())?;
            }
            _ => return Err(unknown(&own)),
        }
        if let Some(members) = value.as_object_mut() {
            members.insert("apiVersion".into(), wanted.into());
        }
    }
    definition.strategy.default_stored(value);
    let mut draft = Draft::from(value.take());
    definition.strategy.canonicalize(&mut draft);
    *value = draft.into_json();
    if let Some(schema) = stored.schema.as_ref().filter(|_| stored.completes) {
        schema.drop_empty(value);
        schema.complete(value);
    }
    Ok(())
}

fn unknown(api_version: &str) -> String {
    format!("it is of version {api_version}, which is not known any more")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> EtcdLayout {
        let (resources, _) = crate::kubernetes::resources().unwrap();
        EtcdLayout::new("/registry", "main", &resources, Duration::from_secs(60))
    }

    #[test]
    fn keys_lie_where_kube_apiserver_has_them() {
        let layout = layout();
        let table = [
            ("", "pods", "n/p", "/registry/pods/n/p"),
            ("", "services", "n/s", "/registry/services/specs/n/s"),
            ("", "endpoints", "n/s", "/registry/services/endpoints/n/s"),
            ("", "nodes", "a", "/registry/minions/a"),
            ("", "replicationcontrollers", "n/r", "/registry/controllers/n/r"),
            ("", "namespaces", "n", "/registry/namespaces/n"),
            ("", "events", "n/e.1", "/registry/events/n/e.1"),
            ("apps", "deployments", "n/d", "/registry/deployments/n/d"),
            ("networking.k8s.io", "ingresses", "n/i", "/registry/ingress/n/i"),
            (
                "rbac.authorization.k8s.io",
                "clusterroles",
                "system:x",
                "/registry/clusterroles/system:x",
            ),
            ("coordination.k8s.io", "leases", "n/l", "/registry/leases/n/l"),
            (
                "apiextensions.k8s.io",
                "customresourcedefinitions",
                "as.b.c",
                "/registry/apiextensions.k8s.io/customresourcedefinitions/as.b.c",
            ),
            (
                "apiregistration.k8s.io",
                "apiservices",
                "v1.apps",
                "/registry/apiregistration.k8s.io/apiservices/v1.apps",
            ),
            ("", "masterleases", "10.0.0.1", "/registry/masterleases/10.0.0.1"),
            ("example.com", "pods", "n/p", "/registry/example.com/pods/n/p"),
            ("example.com", "things", "t", "/registry/example.com/things/t"),
        ];
        for (group, resource, path, place) in table {
            let key = Key::new(Topic::new(group, resource), format!("main/{path}"));
            assert_eq!(layout.place(&key).as_deref(), Some(place));
            assert_eq!(layout.key_at(place), Some(key));
        }
        for place in [
            "/registry/ranges/serviceips",
            "/registry/services/others/x",
            "/other/pods/n/p",
            "/registry/pods",
            "compact_rev_key",
        ] {
            assert_eq!(layout.key_at(place), None, "{place}");
        }
        let elsewhere = Key::new(Topic::new("", "pods"), "other/n/p");
        assert_eq!(layout.place(&elsewhere), None);
    }

    #[test]
    fn events_and_leases_of_servers_end_by_themselves() {
        let key = |resource: &str| Key::new(Topic::new("", resource), "main/n/x");
        assert_eq!(layout().time_to_live(&key("events")), Some(Duration::from_secs(60)));
        assert_eq!(layout().time_to_live(&key("masterleases")), Some(SERVER_LEASE));
        assert_eq!(layout().time_to_live(&key("pods")), None);
    }

    #[test]
    fn json_of_any_order_becomes_ours() {
        let key = Key::new(Topic::new("example.com", "things"), "main/n/t");
        let read = |text: &'static str| layout().read(&key, &Bytes::from_static(text.as_bytes()));
        let canonical = r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"},"spec":{}}"#;
        assert_eq!(read(canonical).unwrap(), canonical);
        assert_eq!(
            read("{\"apiVersion\":\"example.com/v1\",\"kind\":\"Thing\",\"metadata\":{\"name\":\"t\"},\"spec\":{}}\n")
                .unwrap(),
            canonical
        );
        assert_eq!(
            read(r#"{"apiVersion":"example.com/v1","data":{"metadata":{}},"kind":"Thing","metadata":{"name":"t"}}"#)
                .unwrap(),
            r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"},"data":{"metadata":{}}}"#
        );
        assert!(read("nonsense").is_err());
        assert!(read("[]").is_err());
    }

    #[test]
    fn objects_of_older_versions_become_those_of_today() {
        let read = |group: &str, plural: &str, value: Vec<u8>| {
            let key = Key::new(Topic::new(group, plural), "main/n/x");
            let read = layout().read(&key, &Bytes::from(value));
            read.map(|value| serde_json::from_slice::<Value>(&value).unwrap())
        };
        let written = |api_version: &str, kind: &str, spec: Value| {
            let metadata = serde_json::json!({"name": "x", "namespace": "n"});
            serde_json::json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec})
        };
        let budget = |api_version| {
            written(
                api_version,
                "PodDisruptionBudget",
                serde_json::json!({"minAvailable": 1}),
            )
        };
        // as we write JSON, and as others do
        let ours = object::encode(&budget("policy/v1beta1")).to_vec();
        let theirs = format!(" {}", budget("policy/v1beta1")).into_bytes();
        // the name of the version is by five letters longer, and so are the two messages around it
        let kind = protobuf::Kind::of("policy/v1", "PodDisruptionBudget").unwrap();
        let mut binary = kind
            .encode(budget("policy/v1").to_string().as_bytes())
            .unwrap()
            .to_vec();
        let today = read("policy", "poddisruptionbudgets", binary.clone()).unwrap();
        let name = binary.windows(9).position(|own| own == b"policy/v1").unwrap();
        binary.splice(name + 9..name + 9, *b"beta1");
        binary[name - 1] += 5;
        binary[name - 3] += 5;
        for value in [ours, theirs, binary] {
            let told = String::from_utf8_lossy(&value).into_owned();
            assert_eq!(
                read("policy", "poddisruptionbudgets", value).as_ref(),
                Ok(&today),
                "{told}"
            );
        }
        let scaler = written(
            "autoscaling/v1",
            "HorizontalPodAutoscaler",
            serde_json::json!({"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50}),
        );
        let read_scaler = read("autoscaling", "horizontalpodautoscalers", scaler.to_string().into()).unwrap();
        assert_eq!(read_scaler["apiVersion"], "autoscaling/v2");
        assert_eq!(
            read_scaler["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"],
            50
        );
        let ingress = written("networking.k8s.io/v1beta1", "Ingress", serde_json::json!({}));
        assert!(read("networking.k8s.io", "ingresses", ingress.to_string().into()).is_err());
    }
}
