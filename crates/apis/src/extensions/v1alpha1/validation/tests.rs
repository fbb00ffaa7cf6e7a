use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::druid::v1alpha1::Etcd;
use crate::extensions::v1alpha1::*;
use crate::validation::extension_object::{ExtensionObject, validate, validate_update};

fn object<K: DeserializeOwned>(spec: Value) -> K {
    let namespace = "shoot--foo--bar";
    serde_json::from_value(
        json!({"metadata": {"name": "one", "namespace": namespace, "resourceVersion": "1"}, "spec": spec}),
    )
    .expect("an object")
}

/// What is found in an object of a spec.
fn found<K: ExtensionObject + DeserializeOwned>(spec: Value) -> Vec<String> {
    validate(&object::<K>(spec)).iter().map(ToString::to_string).collect()
}

/// What is found in the change of an object from one spec to another.
fn changed<K: ExtensionObject + DeserializeOwned>(old: Value, new: Value) -> Vec<String> {
    let errors = validate_update(&object::<K>(new), &object::<K>(old));
    errors.iter().map(ToString::to_string).collect()
}

/// A spec with some fields in place of its own ones.
fn with(mut spec: Value, fields: Value) -> Value {
    let (Some(spec_fields), Value::Object(fields)) = (spec.as_object_mut(), fields) else {
        panic!("objects are expected");
    };
    spec_fields.extend(fields);
    spec
}

fn provider() -> Value {
    json!({"type": "local", "region": "local", "secretRef": {"name": "cloudprovider"}})
}

fn record(fields: Value) -> Value {
    let spec = json!({
        "type": "local", "secretRef": {"name": "dns"}, "name": "api.foo.example.com", "recordType": "A", "values": ["1.2.3.4"],
    });
    with(spec, fields)
}

#[test]
fn ext_131_required_fields_are_told() {
    let provider_fields = [
        "spec.type: Required value: field is required",
        "spec.region: Required value: field is required",
        "spec.secretRef.name: Required value: field is required",
    ];
    assert_eq!(found::<Infrastructure>(json!({})), provider_fields);
    assert_eq!(found::<ControlPlane>(json!({})), provider_fields);
    assert_eq!(found::<Worker>(json!({})), provider_fields);
    assert_eq!(
        found::<Extension>(json!({})),
        ["spec.type: Required value: field is required"]
    );
    assert_eq!(
        found::<ContainerRuntime>(json!({"type": "gvisor"})),
        [
            "spec.binaryPath: Required value: field is required",
            "spec.workerPool.name: Required value: field is required",
        ]
    );
    assert_eq!(
        found::<Bastion>(json!({"type": "local"})),
        [
            "spec.userData: Required value: field is required",
            "spec.ingress: Required value: field is required",
        ]
    );
    // of the cluster, not of a namespace
    assert_eq!(
        found::<BackupEntry>(provider()),
        [
            "metadata.namespace: Forbidden: not allowed on this type",
            "spec.bucketName: Required value: field is required",
        ]
    );
    assert!(found::<Infrastructure>(provider()).is_empty());
}

#[test]
fn ext_131_what_must_not_change_is_kept() {
    let other = with(
        provider(),
        json!({"type": "other", "region": "elsewhere", "secretRef": {"name": "new"}}),
    );
    assert_eq!(
        changed::<Infrastructure>(provider(), other.clone()),
        [
            "spec.type: Invalid value: \"other\": field is immutable",
            "spec.region: Invalid value: \"elsewhere\": field is immutable",
        ]
    );
    assert_eq!(changed::<Worker>(provider(), other).len(), 2);
    let moved = with(provider(), json!({"secretRef": {"name": "new"}}));
    assert!(changed::<Infrastructure>(provider(), moved).is_empty());
    assert_eq!(
        changed::<DNSRecord>(
            record(json!({})),
            record(json!({"name": "b.example.com", "values": ["1.2.3.5"]}))
        ),
        ["spec.name: Invalid value: \"b.example.com\": field is immutable"]
    );
}

#[test]
fn ext_131_the_spec_of_an_object_in_deletion_is_left_alone() {
    let old: ControlPlane = object(provider());
    let mut new = old.clone();
    new.spec.secret_ref.name = Some("new".to_owned());
    assert!(validate_update(&new, &old).is_empty());
    let now = "2024-01-01T00:00:00Z".parse().expect("a time");
    new.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now));
    let found: Vec<String> = validate_update(&new, &old).iter().map(ToString::to_string).collect();
    assert_eq!(
        found.last().map(String::as_str),
        Some(
            "spec: Forbidden: cannot update control plane spec if deletion timestamp is set. Requested changes: SecretRef.Name: new != cloudprovider"
        )
    );
}

/// W-EXT-21.
#[test]
fn ext_51_dns_records() {
    let cases = [
        (json!({}), vec![]),
        (
            json!({"recordType": "CNAME", "values": ["a.example.com", "b.example.com"]}),
            vec![
                "spec.values: Invalid value: [\"a.example.com\",\"b.example.com\"]: CNAME records must have a single value",
            ],
        ),
        (json!({"name": "*.foo.example.com"}), vec![]),
        (
            json!({"name": "_acme-challenge.example.com", "recordType": "TXT", "values": ["x"]}),
            vec![],
        ),
        (
            json!({"name": "example.", "recordType": "TXT", "values": ["x"]}),
            vec![
                "spec.name: Invalid value: \"example\": should be a domain with at least two segments separated by dots",
            ],
        ),
        (json!({"name": ""}), vec!["spec.name: Required value"]),
        (
            json!({"values": ["bar"]}),
            vec![
                "spec.values[0]: Invalid value: \"bar\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            ],
        ),
        (
            json!({"recordType": "AAAA", "values": ["2001:db8::1"], "ttl": 2147483647_i64}),
            vec![],
        ),
        (
            json!({"values": [], "ttl": 2147483648_i64, "region": "", "zone": ""}),
            vec![
                "spec.region: Invalid value: \"\": field cannot be empty if specified",
                "spec.zone: Invalid value: \"\": field cannot be empty if specified",
                "spec.values: Required value: field is required",
                "spec.ttl: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive",
            ],
        ),
        (
            json!({"recordType": "MX"}),
            vec!["spec.recordType: Unsupported value: \"MX\": supported values: \"A\", \"AAAA\", \"CNAME\", \"TXT\""],
        ),
    ];
    for (fields, wanted) in cases {
        assert_eq!(found::<DNSRecord>(record(fields.clone())), wanted, "{fields}");
    }
    let challenge = found::<DNSRecord>(record(json!({"name": "_acme-challenge.example.com"})));
    assert!(
        matches!(&challenge[..], [one] if one.starts_with("spec.name: Invalid value: \"_acme-challenge.example.com\"")),
        "{challenge:?}"
    );
}

#[test]
fn ext_131_networks() {
    let network = |fields: Value| {
        with(
            json!({"type": "calico", "podCIDR": "10.1.0.0/16", "serviceCIDR": "10.2.0.0/16"}),
            fields,
        )
    };
    let cases = [
        (json!({}), vec![]),
        (
            json!({"podCIDR": "", "serviceCIDR": "x"}),
            vec![
                "spec.podCIDR: Required value: field is required",
                "spec.serviceCIDR: Invalid value: \"x\": invalid CIDR address: x",
            ],
        ),
        (
            json!({"serviceCIDR": "10.1.3.0/24"}),
            vec![
                "spec.serviceCIDR: Invalid value: \"10.1.3.0/24\": must not overlap with \"spec.podCIDR\" (\"10.1.0.0/16\")",
            ],
        ),
        (
            json!({"ipFamilies": ["IPv6"]}),
            vec![
                "spec.podCIDR: Invalid value: \"10.1.0.0\": must be a valid IPv6 address",
                "spec.serviceCIDR: Invalid value: \"10.2.0.0\": must be a valid IPv6 address",
            ],
        ),
        (json!({"ipFamilies": ["IPv6", "IPv4"]}), vec![]),
        (
            json!({"ipFamilies": ["IPv4", "IPv4"], "podCIDR": "x"}),
            vec!["spec.ipFamilies[1]: Duplicate value: \"IPv4\""],
        ),
    ];
    for (fields, wanted) in cases {
        assert_eq!(found::<Network>(network(fields.clone())), wanted, "{fields}");
    }
    let families = |list: &[&str]| network(json!({"ipFamilies": list}));
    let (four, both) = (["IPv4"].as_slice(), ["IPv4", "IPv6"].as_slice());
    assert!(changed::<Network>(families(four), families(both)).is_empty());
    assert!(changed::<Network>(families(both), families(four)).is_empty());
    assert_eq!(
        changed::<Network>(families(four), families(&["IPv6", "IPv4"])),
        ["spec.ipFamilies: Forbidden: unsupported IP family update: oldIPFamilies=[IPv4], newIPFamilies=[IPv6 IPv4]"]
    );
}

#[test]
fn ext_131_pools_of_workers() {
    let worker = |pool: Value| with(provider(), json!({"pools": [pool]}));
    let pool = json!({"name": "a", "machineType": "local", "machineImage": {"name": "local", "version": "1.0.0"},
        "nodeTemplate": {"capacity": {"cpu": "2", "pods": "1"}}, "architecture": "arm64"});
    assert!(found::<Worker>(worker(pool.clone())).is_empty());
    assert_eq!(
        found::<Worker>(worker(json!({"architecture": "risc"}))),
        [
            "spec.pools[0].machineType: Required value: field is required",
            "spec.pools[0].machineImage.name: Required value: field is required",
            "spec.pools[0].machineImage.version: Required value: field is required",
            "spec.pools[0].architecture: Unsupported value: \"risc\": supported values: \"amd64\", \"arm64\"",
            "spec.pools[0].name: Required value: field is required",
        ]
    );
    let halves = with(
        pool,
        json!({"nodeTemplate": {"capacity": {"cpu": "-1", "pods": "500m"}}}),
    );
    assert_eq!(
        found::<Worker>(worker(halves)),
        [
            "spec.pools[0].nodeTemplate.capacity.cpu: Invalid value: \"-1\": must be greater than or equal to 0",
            "spec.pools[0].nodeTemplate.capacity.pods: Invalid value: \"500m\": must be an integer",
        ]
    );
}

#[test]
fn ext_131_operating_system_configs() {
    let config = |fields: Value| with(json!({"type": "local", "purpose": "reconcile"}), fields);
    let file =
        |path: &str, host: Option<&str>| json!({"path": path, "content": {"inline": {"data": "x"}}, "hostName": host});
    let containerd = |fields: Value| json!({"criConfig": {"name": "containerd", "containerd": with(json!({"sandboxImage": "pause"}), fields)}});
    let cases = [
        (json!({}), vec![]),
        (
            json!({"purpose": "x"}),
            vec!["spec.purpose: Unsupported value: \"x\": supported values: \"provision\", \"reconcile\""],
        ),
        (
            with(containerd(json!({})), json!({"purpose": "provision"})),
            vec![
                "spec.criConfig.containerd: Forbidden: containerd config is not allowed for OperatingSystemConfig with purpose 'provision'",
            ],
        ),
        (
            containerd(json!({"sandboxImage": "", "registries": [
                {"upstream": "docker.io:0", "server": "ftp://docker.io", "hosts": [{"url": "mirror", "capabilities": ["pull", "fly"]}]},
                {"upstream": "_default"},
                {"upstream": "_default", "server": "https:///x"},
            ]})),
            vec![
                "spec.criConfig.containerd.sandboxImage: Required value: field is required",
                "spec.criConfig.containerd.registries[0].upstream: Invalid value: \"docker.io:0\": port '0' is not valid, valid port must be in the range [1, 65535]",
                "spec.criConfig.containerd.registries[0].server: Unsupported value: \"ftp\": supported values: \"http\", \"https\"",
                "spec.criConfig.containerd.registries[0].hosts[0].url: Invalid value: \"\": host must be provided; desired format: https://host[:port]",
                "spec.criConfig.containerd.registries[0].hosts[0].capabilities[1]: Unsupported value: \"fly\": supported values: \"push\", \"pull\", \"resolve\"",
                "spec.criConfig.containerd.registries[2].upstream: Duplicate value: \"_default\"",
                "spec.criConfig.containerd.registries[2].server: Invalid value: \"\": host must be provided; desired format: https://host[:port]",
            ],
        ),
        (
            containerd(
                json!({"plugins": [{"path": []}, {"path": ["a"], "op": "remove", "values": {}}, {"path": ["a"], "values": 1}]}),
            ),
            vec![
                "spec.criConfig.containerd.plugins[0].path: Required value: must provide a path",
                "spec.criConfig.containerd.plugins[1].values: Forbidden: values must not be specified when 'remove' operation is used",
                "spec.criConfig.containerd.plugins[2].values: Invalid value: \"1\": provided values must be given in json format",
            ],
        ),
        (
            json!({"units": [{"name": "", "dropIns": [{"name": "a"}], "filePaths": ["/a", "/b"]}], "files": [file("/a", None)]}),
            vec![
                "spec.units[0].name: Required value: field is required",
                "spec.units[0].dropIns[0].content: Required value: field is required",
                "spec.units[0].filePaths[1]: Invalid value: \"/b\": 'filePath' requires a matching 'path' in 'spec.files'",
            ],
        ),
        (
            json!({"files": [{"path": ""}, {"path": "/a", "content": {"secretRef": {"name": "s"}}}, {"path": "/b", "content": {"inline": {"encoding": "x"}}},
                {"path": "/c", "content": {"imageRef": {"image": "i"}}}]}),
            vec![
                "spec.files[0].path: Required value: field is required",
                "spec.files[0].content: Required value: either 'secretRef', 'inline' or 'imageRef' must be provided",
                "spec.files[1].content.secretRef.dataKey: Required value: field is required",
                "spec.files[2].content.inline.encoding: Unsupported value: \"x\": supported values: \"\", \"b64\"",
                "spec.files[2].content.inline.data: Required value: field is required",
                "spec.files[3].content.imageRef.filePathInImage: Required value: field is required",
            ],
        ),
        (
            json!({"files": [file("/a", Some("h1")), file("/a", Some("h2")), file("/a", Some("h1")), file("/a", None), file("/b", None), file("/b", Some("h1"))]}),
            vec![
                "spec.files[2].path: Duplicate value: \"/a\"",
                "spec.files[3].path: Duplicate value: \"/a\"",
                "spec.files[5].path: Duplicate value: \"/b\"",
            ],
        ),
    ];
    for (fields, wanted) in cases {
        assert_eq!(
            found::<OperatingSystemConfig>(config(fields.clone())),
            wanted,
            "{fields}"
        );
    }
}

#[test]
fn ext_131_exposures_of_self_hosted_shoots() {
    let spec = |fields: Value| {
        with(
            json!({"type": "local", "port": 443, "endpoints": [{"nodeName": "n", "addresses": []}]}),
            fields,
        )
    };
    let cases = [
        (json!({}), vec![]),
        (
            json!({"port": 0, "endpoints": []}),
            vec![
                "spec.port: Invalid value: 0: must be between 1 and 65535, inclusive",
                "spec.endpoints: Required value: field is required",
            ],
        ),
        (
            json!({"credentialsRef": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "other", "name": "c"}}),
            vec![
                "spec.credentialsRef.namespace: Invalid value: \"other\": must equal metadata.namespace",
                "spec.credentialsRef: Unsupported value: /v1, Kind=ConfigMap: supported values: \"/v1, Kind=Secret\"",
            ],
        ),
        (
            json!({"endpoints": [{"nodeName": "", "addresses": [{"type": "InternalIP", "address": "x"}, {"type": "Foo", "address": "x"}, {}]}]}),
            vec![
                "spec.endpoints[0].nodeName: Required value: field is required",
                "spec.endpoints[0].addresses[0].address: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                "spec.endpoints[0].addresses[1].type: Unsupported value: \"Foo\": supported values: \"ExternalDNS\", \"ExternalIP\", \"Hostname\", \"InternalDNS\", \"InternalIP\"",
                "spec.endpoints[0].addresses[1].address: Invalid value: \"x\": invalid address for unsupported address type \"Foo\"",
                "spec.endpoints[0].addresses[2].type: Required value: field is required",
                "spec.endpoints[0].addresses[2].address: Required value: field is required",
            ],
        ),
    ];
    for (fields, wanted) in cases {
        assert_eq!(
            found::<SelfHostedShootExposure>(spec(fields.clone())),
            wanted,
            "{fields}"
        );
    }
}

#[test]
fn ext_131_stores_of_etcds() {
    let etcd = |prefix: &str, provider: &str| json!({"replicas": 1, "backup": {"store": {"prefix": prefix, "provider": provider}}});
    assert!(found::<Etcd>(json!({"replicas": 1})).is_empty());
    assert!(found::<Etcd>(etcd("shoot--foo--bar--uid/one", "local")).is_empty());
    assert_eq!(
        found::<Etcd>(etcd("elsewhere", "tape")),
        [
            "spec.backup.store.prefix: Invalid value: \"elsewhere\": must contain object name and namespace",
            "spec.backup.store.provider: Invalid value: \"tape\": unsupported storage provider: 'tape'",
        ]
    );
    assert_eq!(
        changed::<Etcd>(
            etcd("shoot--foo--bar--a/one", "S3"),
            etcd("shoot--foo--bar--b/one", "S3")
        ),
        ["spec.backup.store.prefix: Invalid value: \"shoot--foo--bar--b/one\": field is immutable"]
    );
}
