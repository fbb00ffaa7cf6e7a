//! What a chart is rendered with: the values of its ControllerDeployment, in which data of Secrets and ConfigMaps may be asked for [EXT-97], and
//! beside them what Gardener tells of garden and seed [EXT-105].

use std::collections::BTreeMap;

use gardener_apis::constants::{VERSION, seed_taint};
use gardener_apis::core::v1::fill_in;
use gardener_apis::core::v1beta1::Seed;
use gardener_apis::validation::shown;
use kube::ResourceExt;
use serde_json::{Map, Value, json};

/// The data of Secrets and ConfigMaps by the names under which a deployment lists them.
pub type Resources = BTreeMap<String, BTreeMap<String, String>>;

/// Values ask for data that is not there.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("the values ask for the key {key:?} of the resource {name:?}, which has no such key")]
pub struct NoSuchData {
    name: String,
    key: String,
}

/// The values of a deployment with the data that they ask for, in keys and texts.
///
/// # Errors
/// [`NoSuchData`].
pub fn filled_in(values: &Value, resources: &Resources) -> Result<Value, NoSuchData> {
    let fill = |text: &str| {
        fill_in(text, |name, key| {
            let found = resources.get(name).and_then(|data| data.get(key));
            found.cloned().ok_or_else(|| NoSuchData {
                name: name.to_owned(),
                key: key.to_owned(),
            })
        })
    };
    Ok(match values {
        Value::String(text) => fill(text)?.into(),
        Value::Array(list) => list
            .iter()
            .map(|one| filled_in(one, resources))
            .collect::<Result<_, _>>()?,
        Value::Object(members) => {
            let filled = members
                .iter()
                .map(|(key, value)| Ok((fill(key)?, filled_in(value, resources)?)));
            filled.collect::<Result<Map<_, _>, _>>()?.into()
        }
        other => other.clone(),
    })
}

/// What Gardener tells.
pub fn of_gardener(seed: &Seed, seed_identity: &str, garden_identity: &str) -> Value {
    let spec = &seed.spec;
    let volumes = spec.volume.as_ref().map(|volume| shown(&volume.providers));
    let volumes = volumes
        .filter(|providers| !providers.is_null())
        .unwrap_or_else(|| json!([]));
    let volume = volumes.get(0).and_then(|first| first.get("name")).cloned();
    let is_protected = spec.taints.iter().any(|taint| taint.key == seed_taint::PROTECTED);
    let settings = spec.settings.as_ref();
    let scheduling = settings.and_then(|settings| settings.scheduling.as_ref());
    let mut told = json!({
        "name": seed.name_any(),
        "clusterIdentity": seed_identity,
        "annotations": seed.metadata.annotations,
        "labels": seed.metadata.labels,
        "provider": spec.provider.r#type,
        "region": spec.provider.region,
        "volumeProvider": volume.unwrap_or_else(|| "".into()),
        "volumeProviders": volumes,
        "protected": is_protected,
        "visible": scheduling.is_none_or(|scheduling| scheduling.visible),
        "taints": shown(&spec.taints),
        "networks": shown(&spec.networks),
        "blockCIDRs": shown(&spec.networks.block_cidrs),
        "spec": shown(spec),
    });
    if let (Some(ingress), Some(fields)) = (&spec.ingress, told.as_object_mut()) {
        fields.insert("ingressDomain".to_owned(), ingress.domain.clone().into());
    }
    json!({"gardener": {
        "version": VERSION,
        "garden": {"clusterIdentity": garden_identity},
        "gardenlet": {"featureGates": {}},
        "seed": told,
    }})
}

/// Values with others over them, member by member.
pub fn overlaid(values: Value, others: Value) -> Value {
    match (values, others) {
        (Value::Object(mut members), Value::Object(others)) => {
            for (key, other) in others {
                let own = members.remove(&key).unwrap_or_default();
                members.insert(key, overlaid(own, other));
            }
            Value::Object(members)
        }
        (_, other) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ext_97_data_is_filled_in() {
        let data = BTreeMap::from([("user".to_owned(), "admin".to_owned())]);
        let resources = Resources::from([("one".to_owned(), data)]);
        let values =
            json!({"a": ["x {{ .resources.one.data.user }} y"], "{{.resources.one.data.user}}": 1, "b": "{{ other }}"});
        let filled = filled_in(&values, &resources).expect("values");
        assert_eq!(filled, json!({"a": ["x admin y"], "admin": 1, "b": "{{ other }}"}));
        let missing = filled_in(&json!("{{ .resources.one.data.nobody }}"), &resources).expect_err("no data");
        assert_eq!(
            missing.to_string(),
            "the values ask for the key \"nobody\" of the resource \"one\", which has no such key"
        );
    }

    #[test]
    fn ext_105_what_gardener_tells_stands_over_what_the_deployment_says() {
        let seed: Seed = serde_json::from_value(json!({
            "metadata": {"name": "local", "labels": {"a": "b"}},
            "spec": {
                "provider": {"type": "local", "region": "here"}, "taints": [{"key": "seed.gardener.cloud/protected"}],
                "ingress": {"domain": "ingress.example.com", "controller": {"kind": "nginx"}},
                "volume": {"providers": [{"name": "disk", "purpose": "etcd-main"}]},
                "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16", "blockCIDRs": ["169.254.169.254/32"]},
            },
        }))
        .expect("a seed");
        let own = json!({"replicas": 2, "gardener": {"seed": {"name": "forged"}, "own": true}});
        let values = overlaid(own, of_gardener(&seed, "seed-id", "garden-id"));
        assert_eq!(
            (&values["replicas"], &values["gardener"]["own"]),
            (&json!(2), &json!(true))
        );
        let seed = &values["gardener"]["seed"];
        for (field, wanted) in [
            ("name", json!("local")),
            ("clusterIdentity", json!("seed-id")),
            ("labels", json!({"a": "b"})),
            ("provider", json!("local")),
            ("region", json!("here")),
            ("volumeProvider", json!("disk")),
            ("protected", json!(true)),
            ("visible", json!(true)),
            ("ingressDomain", json!("ingress.example.com")),
            ("blockCIDRs", json!(["169.254.169.254/32"])),
        ] {
            assert_eq!(seed[field], wanted, "{field}");
        }
        assert_eq!(seed["networks"]["pods"], "10.1.0.0/16");
        assert_eq!(values["gardener"]["garden"]["clusterIdentity"], "garden-id");
    }
}
