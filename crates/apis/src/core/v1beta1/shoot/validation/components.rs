//! Addons, monitoring and system components, [VAL-A1] – [VAL-A3], [VAL-M4], [VAL-C1], [VAL-C2].

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names;

use super::super::ShootSpec;
use super::workerless;
use crate::validation::{cidr, invalid_each};
use crate::versions;

/// The most bytes of a ConfigMap's data.
const CONFIG_MAP_MAX: usize = 1024 * 1024;

/// `spec.addons`. What shoots of a ManagedSeedSet are made of has no ingress addon, whatever features are on, [VAL-A2].
pub(super) fn addons(spec: &ShootSpec, in_template: bool, path: &Path) -> ErrorList {
    if spec.is_workerless() {
        return workerless::addons(spec, path);
    }
    let mut errors = ErrorList::new();
    let Some(addons) = &spec.addons else { return errors };
    let dashboard = addons
        .kubernetes_dashboard
        .as_ref()
        .filter(|dashboard| dashboard.enabled);
    let ingress = addons.nginx_ingress.as_ref().filter(|ingress| ingress.enabled);
    if versions::at_least(spec.kubernetes_version(), 35) {
        errors.push(Error::forbidden(
            path,
            "for Kubernetes versions >= 1.35, addons field is no longer supported",
        ));
        return errors;
    }
    let other_purpose = spec.purpose.as_deref().is_some_and(|purpose| purpose != "evaluation");
    if (dashboard.is_some() || ingress.is_some()) && other_purpose {
        errors.push(Error::forbidden(
            path,
            "addons can only be enabled on shoots with .spec.purpose=evaluation",
        ));
    }
    if let Some(ingress) = ingress {
        let path = path.child("nginxIngress");
        if in_template {
            errors.push(Error::forbidden(
                &path.child("enabled"),
                "nginx ingress addon disallowed by landscape operator",
            ));
        }
        for (i, range) in ingress.load_balancer_source_ranges.iter().enumerate() {
            let at = path.child("loadBalancerSourceRanges").index(i);
            if cidr(range, &at).is_err() {
                errors.push(Error::invalid(
                    &at,
                    range.as_str(),
                    "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
                ));
            }
        }
        let at = path.child("config");
        let mut size = 0;
        for (key, value) in &ingress.config {
            size += value.len();
            errors.extend(invalid_each(&at.key(key), key, names::config_key(key)));
        }
        if size > CONFIG_MAP_MAX {
            errors.push(Error::too_long(&at, CONFIG_MAP_MAX));
        }
        if let Some(policy) = &ingress.external_traffic_policy
            && !matches!(policy.as_str(), "Cluster" | "Local")
        {
            errors.push(Error::not_supported(
                &path.child("externalTrafficPolicy"),
                policy.as_str(),
                &["Cluster", "Local"],
            ));
        }
    }
    if let Some(mode) = dashboard.and_then(|dashboard| dashboard.authentication_mode.as_deref())
        && mode != "token"
    {
        errors.push(Error::not_supported(
            &path.child("kubernetesDashboard.authenticationMode"),
            mode,
            &["token"],
        ));
    }
    errors
}

/// `spec.monitoring`.
pub(super) fn monitoring(spec: &ShootSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(alerting) = spec
        .monitoring
        .as_ref()
        .and_then(|monitoring| monitoring.alerting.as_ref())
    else {
        return errors;
    };
    let path = path.child("alerting.emailReceivers");
    let mut seen = BTreeSet::new();
    for (i, email) in alerting.email_receivers.iter().enumerate() {
        if !is_email(email) {
            errors.push(Error::invalid(
                &path.index(i),
                email.as_str(),
                "must provide a valid email",
            ));
        }
        if !seen.insert(email) {
            errors.push(Error::duplicate(&path.index(i), email.as_str()));
        }
    }
    errors
}

/// Anything, an `@`, and a domain of two labels or more, the last of letters alone.
fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else {
        return false;
    };
    let Some((labels, last)) = domain.rsplit_once('.') else {
        return false;
    };
    let is_label = |label: &str| {
        let mut characters = label.chars();
        !label.is_empty() && characters.all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    !local.is_empty()
        && labels.split('.').all(is_label)
        && last.len() >= 2
        && last.chars().all(|c| c.is_ascii_alphabetic())
}

/// `spec.systemComponents`.
pub(super) fn system_components(spec: &ShootSpec, path: &Path) -> ErrorList {
    if spec.is_workerless() {
        return workerless::system_components(spec, path);
    }
    let mut errors = ErrorList::new();
    let Some(core_dns) = spec
        .system_components
        .as_ref()
        .and_then(|components| components.core_dns.as_ref())
    else {
        return errors;
    };
    let path = path.child("coreDNS");
    if let Some(autoscaling) = &core_dns.autoscaling
        && !matches!(autoscaling.mode.as_str(), "horizontal" | "cluster-proportional")
    {
        errors.push(Error::not_supported(
            &path.child("autoscaling.mode"),
            autoscaling.mode.as_str(),
            &["cluster-proportional", "horizontal"],
        ));
    }
    let suffixes = core_dns
        .rewriting
        .as_ref()
        .map_or(&[][..], |rewriting| rewriting.common_suffixes.as_slice());
    let path = path.child("rewriting.commonSuffixes");
    let mut seen: Vec<&str> = Vec::new();
    for (i, suffix) in suffixes.iter().enumerate() {
        let at = path.index(i);
        let bare = suffix.strip_prefix('.').unwrap_or(suffix);
        if !bare.contains('.') {
            errors.push(Error::invalid(
                &at,
                suffix.as_str(),
                "must contain at least one non-leading dot ('.')",
            ));
        }
        if seen.contains(&bare) {
            errors.push(Error::duplicate(&at, bare));
        }
        seen.push(bare);
        if !names::dns_subdomain(bare.strip_suffix('.').unwrap_or(bare)).is_empty() {
            errors.push(Error::invalid(&at, bare, "must be a valid DNS subdomain"));
        }
    }
    errors
}
