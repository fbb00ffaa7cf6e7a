//! What operators configure of plugins, [ADM-2]: each plugin's own document, as in `--admission-control-config-file`.

use gardener_apimachinery::field::{Error, Path};
use gardener_apimachinery::selector::LabelSelector;
use gardener_apis::core::v1beta1::Toleration;
use gardener_apis::validation;
use gardener_apiserver::kubernetes::resource_quota::LimitedResources;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector as Selector;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::webhooks::ResourceSize;
use super::webhooks::resource_size;

/// Plugins that run only where they are asked for.
pub const OFF_BY_DEFAULT: [&str; 2] = ["ShootNodeLocalDNSEnabledByDefault", "ShootDNSRewriting"];

/// The configuration of all plugins that have one.
#[derive(Clone, Debug, Default)]
pub struct Configuration {
    pub(super) tolerations: Tolerations,
    pub(super) dns_rewriting: DnsRewriting,
    pub(super) resource_reservation: ResourceReservation,
    resource_size: ResourceSize,
    limited_resources: LimitedResources,
}

/// Why a plugin's document is not understood.
#[derive(Debug, thiserror::Error)]
pub enum ConfigurationError {
    /// The plugin has none.
    #[error("plugin {0:?} takes no configuration")]
    None(String),
    /// It is of another kind.
    #[error("plugin {plugin:?}: expected kind {expected}, but it is kind {kind:?} of {api_version:?}")]
    Kind {
        /// The plugin.
        plugin: String,
        /// Its kind and API version.
        expected: String,
        /// What the document says.
        api_version: String,
        /// What the document says.
        kind: String,
    },
    /// It has another shape, or a member that is not known.
    #[error("plugin {plugin:?}: {why}")]
    Shape {
        /// The plugin.
        plugin: String,
        /// What is wrong.
        why: String,
    },
}

/// [TOL-10].
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct Tolerations {
    pub(super) defaults: Vec<Toleration>,
    pub(super) whitelist: Vec<Toleration>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct DnsRewriting {
    pub(super) common_suffixes: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(super) struct ResourceReservation {
    #[serde(rename = "useGKEFormula")]
    use_gke_formula: bool,
    selector: Option<Selector>,
}

impl ResourceReservation {
    /// The shoots whose pools get what suits their machines, if there are any.
    pub(super) fn by_machine(&self) -> Option<LabelSelector> {
        let all = Selector::default();
        self.use_gke_formula
            .then(|| LabelSelector::from(self.selector.as_ref().unwrap_or(&all)))
    }
}

impl Configuration {
    /// Takes the document of one plugin.
    ///
    /// # Errors
    /// [`ConfigurationError`].
    pub fn take(&mut self, plugin: &str, document: &Value) -> Result<(), ConfigurationError> {
        match plugin {
            "ShootTolerationRestriction" => {
                let own: Tolerations = read(plugin, "shoottolerationrestriction", document)?;
                let mut errors = validation::tolerations(&own.defaults, &Path::new("defaults"));
                errors.extend(validation::tolerations(&own.whitelist, &Path::new("whitelist")));
                findings(plugin, &errors)?;
                self.tolerations = own;
            }
            "ShootDNSRewriting" => self.dns_rewriting = read(plugin, "shootdnsrewriting", document)?,
            "ShootResourceReservation" => {
                self.resource_reservation = read(plugin, "shootresourcereservation", document)?;
            }
            "ResourceQuota" => {
                let own: LimitedResources = read_kind(plugin, &RESOURCE_QUOTA, document)?;
                findings(plugin, &own.validate())?;
                self.limited_resources = own;
            }
            // what gardener-admission-controller reads, of which this member counts
            resource_size::NAME => {
                let own: AdmissionController = read_kind(plugin, &ADMISSION_CONTROLLER, document)?;
                let own = own.server.resource_admission_configuration;
                let path = Path::new("server").child("resourceAdmissionConfiguration");
                findings(plugin, &own.validate_configuration(&path))?;
                self.resource_size = own;
            }
            other => return Err(ConfigurationError::None(other.to_owned())),
        }
        Ok(())
    }

    /// How large objects may become [ADM-76].
    pub fn resource_size(&self) -> ResourceSize {
        self.resource_size.clone()
    }

    /// What has to be limited by a ResourceQuota.
    pub fn limited_resources(&self) -> LimitedResources {
        self.limited_resources.clone()
    }
}

/// A kind and its API version.
type Kind<'a> = (&'a str, &'a str);

const ADMISSION_CONTROLLER: [Kind<'_>; 1] = [(
    "AdmissionControllerConfiguration",
    "admissioncontroller.config.gardener.cloud/v1alpha1",
)];
/// The same document under each of its names.
const RESOURCE_QUOTA: [Kind<'_>; 3] = [
    ("ResourceQuotaConfiguration", "apiserver.config.k8s.io/v1"),
    ("Configuration", "resourcequota.admission.k8s.io/v1beta1"),
    ("Configuration", "resourcequota.admission.k8s.io/v1alpha1"),
];

/// gardener-admission-controller's configuration, as far as it counts here.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AdmissionController {
    server: AdmissionControllerServer,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct AdmissionControllerServer {
    resource_admission_configuration: ResourceSize,
}

fn findings(plugin: &str, errors: &[Error]) -> Result<(), ConfigurationError> {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    match texts.is_empty() {
        true => Ok(()),
        false => Err(ConfigurationError::Shape {
            plugin: plugin.to_owned(),
            why: texts.join("; "),
        }),
    }
}

fn read<T: DeserializeOwned>(plugin: &str, group: &str, document: &Value) -> Result<T, ConfigurationError> {
    let version = format!("{group}.admission.gardener.cloud/v1alpha1");
    read_kind(plugin, &[("Configuration", &version)], document)
}

/// Reads a document that may have one of some kinds; the first is told to those who have another.
fn read_kind<T: DeserializeOwned>(plugin: &str, kinds: &[Kind<'_>], document: &Value) -> Result<T, ConfigurationError> {
    let member = |name: &str| document.get(name).and_then(Value::as_str).unwrap_or_default();
    let (kind, api_version) = (member("kind"), member("apiVersion"));
    if !kinds.contains(&(kind, api_version)) {
        let (own, expected) = kinds.first().copied().unwrap_or_default();
        return Err(ConfigurationError::Kind {
            plugin: plugin.to_owned(),
            expected: format!("{own:?} of {expected:?}"),
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        });
    }
    let mut members = document.clone();
    if let Some(members) = members.as_object_mut() {
        members.remove("apiVersion");
        members.remove("kind");
    }
    T::deserialize(members).map_err(|error| ConfigurationError::Shape {
        plugin: plugin.to_owned(),
        why: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn adm_2_plugins_take_their_own_documents() {
        let mut configuration = Configuration::default();
        let document = |group: &str, more: Value| {
            let mut document =
                json!({"apiVersion": format!("{group}.admission.gardener.cloud/v1alpha1"), "kind": "Configuration"});
            let members = document.as_object_mut().unwrap();
            members.extend(more.as_object().unwrap().clone());
            document
        };
        let tolerations = document(
            "shoottolerationrestriction",
            json!({"defaults": [{"key": "a"}], "whitelist": [{"key": "a"}]}),
        );
        configuration.take("ShootTolerationRestriction", &tolerations).unwrap();
        assert_eq!(configuration.tolerations.defaults.len(), 1);
        let reservation = document(
            "shootresourcereservation",
            json!({"useGKEFormula": true, "selector": {"matchLabels": {"a": "b"}}}),
        );
        configuration.take("ShootResourceReservation", &reservation).unwrap();
        let selector = configuration.resource_reservation.by_machine().unwrap();
        assert!(selector.matches(&[("a".to_owned(), "b".to_owned())].into()) && !selector.matches(&[].into()));
        let sizes = |own: Value| {
            json!({
                "apiVersion": "admissioncontroller.config.gardener.cloud/v1alpha1", "kind": "AdmissionControllerConfiguration",
                "logLevel": "info", "server": {"webhooks": {"port": 2721}, "resourceAdmissionConfiguration": own},
            })
        };
        let limit = json!({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["shoots"], "size": "10k"});
        let own = sizes(json!({"limits": [limit], "operationMode": "log"}));
        configuration.take(resource_size::NAME, &own).unwrap();
        assert_eq!(configuration.resource_size().limits.len(), 1);
        let limited = |kind: &str, version: &str, limited: Value| json!({"kind": kind, "apiVersion": version, "limitedResources": limited});
        let secrets = json!([{"resource": "secrets", "matchContains": ["secrets"]}]);
        for (kind, version) in RESOURCE_QUOTA {
            let mut configuration = Configuration::default();
            let document = limited(kind, version, secrets.clone());
            configuration.take("ResourceQuota", &document).unwrap();
            assert_ne!(configuration.limited_resources(), LimitedResources::default());
        }
        for (plugin, document, why) in [
            ("ShootDNS", json!({}), "takes no configuration"),
            (
                "ResourceQuota",
                limited("Configuration", "apiserver.config.k8s.io/v1", secrets),
                "expected kind \"ResourceQuotaConfiguration\" of \"apiserver.config.k8s.io/v1\"",
            ),
            (
                "ResourceQuota",
                limited(
                    "Configuration",
                    "resourcequota.admission.k8s.io/v1beta1",
                    json!([{"apiGroup": "a"}]),
                ),
                "limitedResources[0].resource: Required value",
            ),
            (
                "ResourceQuota",
                limited(
                    "Configuration",
                    "resourcequota.admission.k8s.io/v1beta1",
                    json!([{"more": "a"}]),
                ),
                "unknown field `more`",
            ),
            (
                resource_size::NAME,
                json!({}),
                "expected kind \"AdmissionControllerConfiguration\" of \"admissioncontroller.config.",
            ),
            (
                resource_size::NAME,
                sizes(json!({"operationMode": "shout"})),
                "unknown variant `shout`, expected `block` or `log`",
            ),
            (
                resource_size::NAME,
                sizes(json!({"limits": [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}]})),
                "server.resourceAdmissionConfiguration.limits[0]: Invalid value: [\"*\"]: at least one of size or count must be specified",
            ),
            (
                "ShootDNSRewriting",
                json!({"kind": "Other"}),
                "expected kind \"Configuration\" of \"shootdnsrewriting.",
            ),
            (
                "ShootDNSRewriting",
                document("shootdnsrewriting", json!({"suffixes": []})),
                "unknown field `suffixes`",
            ),
            (
                "ShootTolerationRestriction",
                document(
                    "shoottolerationrestriction",
                    json!({"defaults": [{"key": "a"}, {"key": "a"}]}),
                ),
                "defaults[1]: Duplicate value",
            ),
        ] {
            let error = configuration.take(plugin, &document).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
