//! Which seed a shoot may get, and what stays as it is while it has one or moves to another, [ADM-29a] – [ADM-29d], [ADM-29h],
//! [TOL-15] – [TOL-19], [MIG-10] – [MIG-20].

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apis::constants::annotation;
use gardener_apis::core::v1beta1::*;
use gardener_apis::validation::{go_json, shown};
use gardener_apiserver::definition::Attributes;
use gardener_rules::scheduling::{allocatable_shoots, has_labels, supports_restrictions, tolerated, usage};

use super::Check;
use crate::lookup;

/// The last operation of a shoot that moves to another seed.
fn moving(shoot: &Shoot) -> Option<&LastOperation> {
    let last = shoot.status.last_operation.as_ref()?;
    let moves = last.r#type == "Migrate" || (last.r#type == "Restore" && last.state != "Succeeded");
    moves.then_some(last)
}

/// [ADM-29c]: while it moves, nobody knows what would have to be deleted where.
pub(super) fn may_be_deleted(attributes: &Attributes<'_>, shoot: &Shoot) -> Result<(), ApiError> {
    match moving(shoot) {
        Some(last) => Err(attributes.forbidden(&format!(
            "cannot mark shoot for deletion during {} operation that is in state {}",
            last.r#type, last.state
        ))),
        None => Ok(()),
    }
}

fn name(seed: &Seed) -> &str {
    seed.metadata.name.as_deref().unwrap_or_default()
}

/// A selector as Go shows its internal form, of which only a part has the names of JSON.
fn shown_selector(selector: &SeedSelector) -> String {
    let mut members = Vec::new();
    if !selector.match_labels.is_empty() {
        members.push(("matchLabels", go_json(&selector.match_labels)));
    }
    if !selector.match_expressions.is_empty() {
        members.push(("matchExpressions", go_json(&selector.match_expressions)));
    }
    let types = (!selector.provider_types.is_empty()).then_some(&selector.provider_types);
    members.push(("ProviderTypes", go_json(&types)));
    let members: Vec<String> = members
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    format!("{{{}}}", members.join(","))
}

impl Check<'_> {
    fn forbid(&self, why: impl AsRef<str>) -> Result<(), ApiError> {
        Err(self.attributes.forbidden(why.as_ref()))
    }

    /// All that is refused because of the seed.
    pub(super) fn scheduling(&self) -> Result<(), ApiError> {
        let before = self.old.and_then(|old| old.spec.seed_name.as_deref());
        let now = self.shoot.spec.seed_name.as_deref();
        self.may_change_seed(before, now)?;
        if let Some(seed) = self.seed.filter(|_| before != now) {
            self.may_have(seed)?;
        }
        match (self.old, before) {
            (Some(old), Some(before)) if now.is_some() && now != Some(before) => self.may_move(old, before)?,
            (Some(_), _) if self.spec_changes() => self.may_change_meanwhile()?,
            _ => {}
        }
        match self.seed {
            Some(seed) => self.stays_with(seed),
            None => Ok(()),
        }
    }

    /// [ADM-29a], [TOL-16].
    fn may_change_seed(&self, before: Option<&str>, now: Option<&str>) -> Result<(), ApiError> {
        let (attributes, context) = (self.attributes, self.attributes.context);
        let Some(old) = self.old else {
            let may = || {
                context.lister.allowed(
                    context.user,
                    "update",
                    "core.gardener.cloud",
                    "shoots/binding",
                    attributes.namespace,
                    attributes.name,
                )
            };
            return match now.is_none() || may() {
                true => Ok(()),
                false => self.forbid(format!(
                    "user {:?} is not allowed to set .spec.seedName for \"shoots\"",
                    context.user.name
                )),
            };
        };
        match (before, now) {
            (Some(before), None) => self.forbid(format!(
                "spec.seedName is already set to '{before}' and cannot be changed to 'nil'"
            )),
            (Some(_), Some(_)) if attributes.subresource == "binding" => {
                let mut moved = self.shoot.spec.clone();
                moved.seed_name.clone_from(&old.spec.seed_name);
                match moved == old.spec {
                    true => Ok(()),
                    false => self.forbid(
                        "only spec.seedName can be changed using the binding subresource when the shoot is being rescheduled to a new seed",
                    ),
                }
            }
            (_, Some(now)) if before != Some(now) && attributes.subresource != "binding" => self.forbid(format!(
                "spec.seedName '{}' cannot be changed to '{now}' by patching the shoot, please use the shoots/binding subresource",
                before.unwrap_or("nil")
            )),
            _ => Ok(()),
        }
    }

    /// [ADM-29b], [TOL-17]: whether the seed takes the shoot.
    fn may_have(&self, seed: &Seed) -> Result<(), ApiError> {
        let refuse = |why: &str| {
            self.forbid(format!(
                "cannot schedule shoot '{}' on seed '{}' {why}",
                self.shoot.own_name(),
                name(seed)
            ))
        };
        if seed.metadata.deletion_timestamp.is_some() {
            return refuse("that is already marked for deletion");
        }
        if !tolerated(&seed.spec.taints, &self.shoot.spec.tolerations) {
            return self.forbid("forbidden to use a seed whose taints are not tolerated by the shoot");
        }
        if !supports_restrictions(self.shoot, seed) {
            return self.forbid("forbidden to use a seed which doesn't support the access restrictions of the shoot");
        }
        if let Some(most) = allocatable_shoots(seed) {
            let shoots = lookup::list::<Shoot>(self.attributes.context.lister, None);
            if usage(name(seed), &shoots) >= most {
                return refuse(&format!(
                    "that already has the maximum number of shoots scheduled on it ({most})"
                ));
            }
        }
        let Some(selector) = &self.profile.seed_selector else {
            return Ok(());
        };
        if !has_labels(seed, selector) {
            return refuse("because the cloud profile seed selector is not matching the labels of the seed");
        }
        let (types, own) = (&selector.provider_types, &seed.spec.provider.r#type);
        if !types.is_empty() && !types.iter().any(|kind| kind == "*" || kind == own) {
            return refuse(
                "because none of the provider types in the cloud profile seed selector is matching the provider type of the seed",
            );
        }
        Ok(())
    }

    /// [ADM-29c]: whether the shoot can move to its new seed with its data and its domains.
    fn may_move(&self, old: &Shoot, before: &str) -> Result<(), ApiError> {
        let Some(seed) = self.seed else { return Ok(()) };
        let Some(source) = lookup::get::<Seed>(self.attributes.context.lister, "", before) else {
            return Err(ApiError::internal(format!(
                "could not find referenced seed: seed.core.gardener.cloud {before:?} not found"
            )));
        };
        if source.spec.backup.is_none() {
            return self.forbid(format!(
                "cannot change seed name because backup is not configured for old seed {before:?}"
            ));
        }
        if seed.spec.backup.is_none() {
            return self.forbid(format!(
                "cannot change seed name because backup is not configured for seed {:?}",
                name(seed)
            ));
        }
        let internal = |seed: &Seed| {
            let config = seed.spec.dns.internal.as_ref();
            config.map(|config| config.domain.clone()).unwrap_or_default()
        };
        let (from, to) = (internal(&source), internal(seed));
        if from != to {
            return self.forbid(format!(
                "cannot change seed name because internal domain would change from {from:?} to {to:?}"
            ));
        }
        let defaults = |seed: &Seed| -> Vec<String> {
            let defaults = seed.spec.dns.defaults.iter();
            defaults.map(|config| config.domain.clone()).collect()
        };
        let own = old.spec.dns.as_ref().and_then(|dns| dns.domain.as_deref());
        let used = |domain: &String| own.is_some_and(|own| own.ends_with(&format!(".{domain}")));
        let offered = defaults(seed);
        match defaults(&source).into_iter().find(used) {
            Some(used) if !offered.contains(&used) => self.forbid(format!(
                "cannot reschedule shoot {:?} to seed {:?} because the shoot uses the default domain {used:?} which is not supported by the new seed (supported domains: [{}])",
                self.shoot.own_name(),
                name(seed),
                offered.join(" ")
            )),
            _ => Ok(()),
        }
    }

    /// [ADM-29c]: a shoot that moves keeps its spec.
    fn may_change_meanwhile(&self) -> Result<(), ApiError> {
        let (spec, status) = (&self.shoot.spec, &self.shoot.status);
        let begun = status.last_operation.as_ref().map(|last| last.r#type != "Migrate");
        let rescheduled = spec.seed_name.is_some() && status.seed_name.is_some() && spec.seed_name != status.seed_name;
        if begun == Some(true) && rescheduled {
            return self.forbid("shoot spec cannot be changed because shoot has been rescheduled to a new seed");
        }
        match moving(self.shoot) {
            Some(last) => self.forbid(format!(
                "cannot change shoot spec during {} operation that is in state {}",
                last.r#type, last.state
            )),
            None => Ok(()),
        }
    }

    /// [ADM-29d].
    fn stays_with(&self, seed: &Seed) -> Result<(), ApiError> {
        let (own, seed_name) = (self.shoot.own_name(), name(seed));
        let zones = seed.spec.provider.zones.len();
        if self.shoot.spec.failure_tolerance() == Some("zone") && zones < 3 {
            return self.forbid(format!(
                "cannot schedule shoot '{own}' with failure tolerance of zone on seed '{seed_name}' with only {zones} zones, at least 3 zones are required"
            ));
        }
        let (Some(old), true) = (self.old, seed.metadata.deletion_timestamp.is_some()) else {
            return Ok(());
        };
        let annotations = |shoot: &Shoot| {
            let mut annotations = shoot.metadata.annotations.clone().unwrap_or_default();
            annotations.remove(annotation::CONFIRMATION_DELETION);
            // follows from the other
            annotations.remove(annotation::DELETION_CONFIRMED_BY);
            annotations
        };
        if annotations(old) != annotations(self.shoot) {
            return self.forbid(format!(
                "cannot update annotations of shoot '{own}' on seed '{seed_name}' already marked for deletion: only the '{}' annotation can be changed",
                annotation::CONFIRMATION_DELETION
            ));
        }
        match old.spec == self.shoot.spec {
            true => Ok(()),
            false => self.forbid(format!(
                "cannot update spec of shoot '{own}' on seed '{seed_name}' already marked for deletion"
            )),
        }
    }

    /// [ADM-29h], [TOL-19]: who has a seed wants one like it.
    pub(super) fn seed_selector(&self) -> ErrorList {
        let own = &self.shoot.spec.seed_selector;
        let before = self.old.and_then(|old| old.spec.seed_selector.as_ref());
        let Some(seed) = self.seed.filter(|_| before != own.as_ref()) else {
            return ErrorList::new();
        };
        let path = Path::new("spec.seedSelector");
        let Some(selector) = own else {
            let why = "cannot unset seedSelector once it has been set";
            return vec![Error::invalid(&path, serde_json::Value::Null, why)];
        };
        let why = |what: &str| {
            format!(
                "cannot change seedSelector to not match the {what} of the already selected seed {:?}",
                name(seed)
            )
        };
        let mut errors = ErrorList::new();
        if !has_labels(seed, selector) {
            errors.push(Error::literal(&path, shown_selector(selector), why("labels")));
        }
        let types = &selector.provider_types;
        if !types.is_empty() && !types.contains(&seed.spec.provider.r#type) {
            let path = path.child("providerTypes");
            errors.push(Error::invalid(&path, shown(types), why("provider type")));
        }
        errors
    }
}
