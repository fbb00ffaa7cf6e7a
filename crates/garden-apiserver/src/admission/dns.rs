//! Domains of shoots, [ADM-40], [DEF-54].

use std::sync::Arc;

use async_trait::async_trait;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::field::{Error, Path};
use gardener_apimachinery::pointer::Pointed;
use gardener_apis::constants::{GARDEN_NAMESPACE, annotation, label, role};
use gardener_apis::core::v1beta1::{Seed, Shoot};
use gardener_apiserver::definition::{Admission, Attributes, Lister, Operation};
use gardener_apiserver::meta;

use serde_json::Value;

use super::{put, typed, typed_old};
use crate::lookup;

/// The plugin.
pub(super) struct ShootDns;

/// A default domain that the garden's operators offer to all seeds without their own.
pub(super) struct GlobalDomain {
    /// The domain.
    pub(super) domain: String,
    /// The type of its provider.
    pub(super) provider: String,
    /// The Secret in namespace `garden` with its credentials.
    pub(super) secret: String,
}

/// The Secrets that tell such domains.
fn domain_secrets(lister: &dyn Lister) -> impl Iterator<Item = Arc<Value>> {
    let secrets = lister.list("", "secrets", Some(GARDEN_NAMESPACE)).into_iter();
    secrets.filter(|secret| {
        let labels = meta::string_map(secret.at("/metadata/labels"));
        labels.get(label::ROLE).map(String::as_str) == Some(role::DEFAULT_DOMAIN)
    })
}

/// What such a Secret lacks, in upstream's words.
fn lacking(secret: &Value) -> Option<&'static str> {
    let Some(annotations) = secret.at("/metadata/annotations").and_then(Value::as_object) else {
        return Some("domain secret has no annotations");
    };
    let is_told = |key: &str| annotations.get(key).is_some_and(|value| *value != "");
    match (is_told(annotation::DNS_DOMAIN), is_told(annotation::DNS_PROVIDER)) {
        (false, _) => Some("missing dns domain annotation on domain secret"),
        (true, false) => Some("missing dns provider annotation on domain secret"),
        (true, true) => None,
    }
}

/// All of them, those of the highest priority first.
pub(super) fn global_domains(lister: &dyn Lister) -> Vec<GlobalDomain> {
    let read = |secret: &Value| {
        let annotations = meta::string_map(secret.at("/metadata/annotations"));
        let priority = annotations.get(annotation::DNS_DEFAULT_DOMAIN_PRIORITY);
        let priority: i64 = priority.and_then(|text| text.parse().ok()).unwrap_or(0);
        let own = GlobalDomain {
            domain: annotations.get(annotation::DNS_DOMAIN)?.clone(),
            provider: annotations.get(annotation::DNS_PROVIDER).cloned().unwrap_or_default(),
            secret: meta::name(secret).to_owned(),
        };
        Some((priority, own))
    };
    let mut found: Vec<(i64, GlobalDomain)> = domain_secrets(lister).filter_map(|secret| read(&secret)).collect();
    found.sort_by(|one, other| (other.0, &one.1.domain).cmp(&(one.0, &other.1.domain)));
    found.into_iter().map(|(_, domain)| domain).collect()
}

/// The default domains of a seed, or of shoots that have none yet; first the one that new shoots get.
///
/// # Errors
/// A Secret that should tell one does not.
fn default_domains(lister: &dyn Lister, seed: Option<&Seed>) -> Result<Vec<String>, ApiError> {
    if let Some(own) = seed.map(|seed| &seed.spec.dns.defaults).filter(|own| !own.is_empty()) {
        return Ok(own.iter().map(|config| config.domain.clone()).collect());
    }
    match domain_secrets(lister).find_map(|secret| lacking(&secret)) {
        Some(why) => Err(ApiError::unclassified(format!(
            "error retrieving default domains: {why}"
        ))),
        None => Ok(global_domains(lister).into_iter().map(|global| global.domain).collect()),
    }
}

fn seed_of(attributes: &Attributes<'_>, shoot: &Shoot) -> Result<Option<Seed>, ApiError> {
    let Some(name) = shoot.spec.seed_name.as_deref() else {
        return Ok(None);
    };
    match lookup::get::<Seed>(attributes.context.lister, "", name) {
        Some(seed) => Ok(Some(seed)),
        None => Err(ApiError::unclassified(format!(
            "error retrieving default domains: Internal error occurred: could not get seed {name}: seed.core.gardener.cloud {name:?} not found"
        ))),
    }
}

/// What is wrong with a domain below a default domain: each project and each shoot has its own place there.
fn misnamed(shoot: &Shoot, own: &str, project: &str, domain: &str) -> Option<Error> {
    let stem = shoot.metadata.generate_name.as_deref().unwrap_or_default();
    let is_generated = !stem.is_empty() && (shoot.own_name().is_empty() || shoot.own_name().starts_with(stem));
    let why = if is_generated {
        let expected = format!(".{project}.{domain}");
        (!own.ends_with(&expected)).then(|| {
            format!(
                "shoot with 'metadata.generateName' uses a default domain but does not match expected scheme: <random-subdomain>.<project-name>.<default-domain> (expected '{expected}' to be a suffix of '{own}')"
            )
        })
    } else {
        let expected = format!("{}.{project}.{domain}", shoot.own_name());
        (own != expected).then(|| {
            format!(
                "shoot uses a default domain but does not match expected scheme: <shoot-name>.<project-name>.<default-domain> (expected '{expected}', but got '{own}')"
            )
        })
    };
    why.map(|why| Error::invalid(&Path::new("spec.dns.domain"), own, why))
}

/// What stands for a shoot in its domain: its name, or something by chance where that is yet to be made.
fn domain_label(shoot: &Shoot, chance: u64) -> String {
    let stem = shoot.metadata.generate_name.as_deref().unwrap_or_default();
    match shoot.own_name() {
        "" if !stem.is_empty() => Chance::seeded(chance).name_suffix(stem.len() + 5),
        name => name.to_owned(),
    }
}

/// The shoot, if this plugin is asked about it.
fn concerned(attributes: &Attributes<'_>) -> Option<Arc<Shoot>> {
    let asked = matches!(attributes.operation, Operation::Create | Operation::Update)
        && matches!(attributes.subresource, "" | "binding");
    asked.then(|| typed::<Shoot>(attributes)).flatten()
}

#[async_trait]
impl Admission for ShootDns {
    fn name(&self) -> &'static str {
        "ShootDNS"
    }

    async fn admit(&self, attributes: &mut Attributes<'_>) -> Result<(), ApiError> {
        let Some(shoot) = concerned(attributes) else {
            return Ok(());
        };
        let seed = seed_of(attributes, &shoot)?;
        if seed.is_none() && attributes.old.is_none() {
            return Ok(());
        }
        let mut shoot = Shoot::clone(&shoot);
        if let Some(old) = typed_old::<Shoot>(attributes)
            && let Some(primary) = old.spec.primary_dns_provider()
            && shoot.spec.primary_dns_provider().is_none()
            && let Some(dns) = &mut shoot.spec.dns
            && let Some(provider) = dns.providers.iter_mut().find(|provider| {
                provider.r#type == primary.r#type && provider.credentials_ref == primary.credentials_ref
            })
        {
            provider.primary = Some(true);
        }
        let Some(seed) = seed else {
            put(attributes, shoot);
            return Ok(());
        };
        let domains = default_domains(attributes.context.lister, Some(&seed))?;
        let decides = shoot.spec.primary_dns_provider().or_else(|| {
            let dns = shoot.spec.dns.as_ref()?;
            dns.providers.first()
        });
        let is_unmanaged = decides.is_some_and(|provider| provider.r#type.as_deref() == Some("unmanaged"));
        let has_domain = shoot.spec.dns.as_ref().is_some_and(|dns| dns.domain.is_some());
        if !is_unmanaged {
            shoot.spec.dns.get_or_insert_default();
        }
        if !is_unmanaged
            && !has_domain
            && let Some(domain) = domains.first()
            && let Some(project) = lookup::project_of(attributes.context.lister, attributes.namespace)
        {
            let project = project.metadata.name.as_deref().unwrap_or_default();
            let own = domain_label(&shoot, attributes.context.chance);
            shoot.spec.dns.get_or_insert_default().domain = Some(format!("{own}.{project}.{domain}"));
        }
        if let Some(dns) = &mut shoot.spec.dns {
            let own = dns.domain.as_deref().unwrap_or_default();
            let default = domains.iter().any(|domain| own.ends_with(&format!(".{domain}")));
            if !default
                && !dns.providers.iter().any(|provider| provider.primary == Some(true))
                && let Some(first) = dns.providers.first_mut()
            {
                first.primary = Some(true);
            }
        }
        put(attributes, shoot);
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>) -> Result<(), ApiError> {
        let Some(shoot) = concerned(attributes) else {
            return Ok(());
        };
        let seed = seed_of(attributes, &shoot)?;
        let domains = default_domains(attributes.context.lister, seed.as_ref())?;
        let Some(dns) = &shoot.spec.dns else { return Ok(()) };
        let Some(own) = dns.domain.as_deref() else {
            return Ok(());
        };
        let Some(domain) = domains.iter().find(|domain| own.ends_with(&format!(".{domain}"))) else {
            return Ok(());
        };
        let mut errors = Vec::new();
        for (i, provider) in dns.providers.iter().enumerate() {
            if provider.primary == Some(true) {
                errors.push(Error::invalid(
                    &Path::new("spec.dns.providers").index(i).child("primary"),
                    true,
                    "primary dns provider must not be set when default domain is used",
                ));
            }
        }
        let primary = shoot.spec.primary_dns_provider();
        let is_unmanaged = primary.is_some_and(|primary| primary.r#type.as_deref() == Some("unmanaged"));
        // shoots that got their domain long ago keep it
        let is_new = typed_old::<Shoot>(attributes).is_none_or(|old| {
            let had_domain = old.spec.dns.as_ref().is_some_and(|dns| dns.domain.is_some());
            old.spec.seed_name.is_none() || !had_domain
        });
        if is_new && !is_unmanaged {
            let project = lookup::project_of(attributes.context.lister, attributes.namespace)
                .and_then(|project| project.metadata.name.clone())
                .unwrap_or_default();
            errors.extend(misnamed(&shoot, own, &project, domain));
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(attributes.invalid(&errors))
        }
    }
}
