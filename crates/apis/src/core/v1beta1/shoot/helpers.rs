//! Questions that a shoot answers about itself.

use gardener_apimachinery::meta::is_true;

use super::*;
use crate::constants::annotation;

impl Shoot {
    /// The namespace; empty when not set.
    pub fn project_namespace(&self) -> &str {
        self.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// The name; empty when not set.
    pub fn own_name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// An annotation's value.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    /// Puts tasks that gardenlet is to do once behind those that wait already, each once, [UPD-47].
    pub fn add_tasks(&mut self, tasks: impl IntoIterator<Item = &'static str>) {
        let mut all = self.tasks();
        for task in tasks {
            if !all.contains(&task) {
                all.push(task);
            }
        }
        let all = all.join(",");
        self.set_tasks(all);
    }

    /// The tasks that gardenlet is to do once, [UPD-47].
    pub fn tasks(&self) -> Vec<&str> {
        let tasks = self.annotation(annotation::SHOOT_TASKS).unwrap_or_default().split(',');
        tasks.map(str::trim).filter(|task| !task.is_empty()).collect()
    }

    /// Takes away a task that is done.
    pub fn remove_task(&mut self, task: &str) {
        let mut left = self.tasks();
        left.retain(|own| *own != task);
        let left = left.join(",");
        self.set_tasks(left);
    }

    fn set_tasks(&mut self, tasks: String) {
        if !tasks.is_empty() {
            let annotations = self.metadata.annotations.get_or_insert_default();
            annotations.insert(annotation::SHOOT_TASKS.to_owned(), tasks);
        } else if let Some(annotations) = &mut self.metadata.annotations {
            annotations.remove(annotation::SHOOT_TASKS);
        }
    }

    /// Whether the shoot has no worker pools and so no nodes, [VAL-W1].
    pub fn is_workerless(&self) -> bool {
        self.spec.is_workerless()
    }

    /// Whether the spec asks for hibernation.
    pub fn hibernation_enabled(&self) -> bool {
        self.spec.hibernation_enabled()
    }

    /// Whether the NGINX ingress addon is asked for.
    pub fn nginx_ingress_enabled(&self) -> bool {
        let addons = self.spec.addons.as_ref();
        let nginx = addons.and_then(|addons| addons.nginx_ingress.as_ref());
        nginx.is_some_and(|nginx| nginx.enabled)
    }

    /// Whether the control plane runs on a pool of the shoot itself.
    pub fn is_self_hosted(&self) -> bool {
        self.spec.is_self_hosted()
    }

    /// Whether the garden is the issuer of its service accounts' tokens [ADM-29f].
    pub fn has_managed_issuer(&self) -> bool {
        self.annotation(annotation::AUTHENTICATION_ISSUER) == Some("managed")
    }

    /// Whether deletion is asked for and has started.
    pub fn in_deletion(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Whether DELETE would be accepted, [ADM-58].
    pub fn deletion_confirmed(&self) -> bool {
        self.annotation(annotation::CONFIRMATION_DELETION).is_some_and(is_true)
    }

    /// Whether what cannot be deleted is to be given up, [VAL-U19].
    pub fn needs_force_deletion(&self) -> bool {
        self.annotation(annotation::CONFIRMATION_FORCE_DELETION)
            .is_some_and(is_true)
    }

    /// The operations of an annotation, `;` separated, trimmed.
    pub fn operations(&self, key: &str) -> Vec<&str> {
        split_operations(self.annotation(key).unwrap_or_default())
    }
}

/// The `;` separated operations of an annotation's value, trimmed; an empty value has none. Separators and blanks alone are operations without a
/// name, which nobody knows: an update takes them away before anybody looks [GAPI-35].
pub fn split_operations(value: &str) -> Vec<&str> {
    match value {
        "" => Vec::new(),
        _ => value.split(';').map(str::trim).collect(),
    }
}

impl ShootSpec {
    /// Whether there are no worker pools.
    pub fn is_workerless(&self) -> bool {
        self.provider.workers.is_empty()
    }

    /// Whether hibernation is asked for.
    pub fn hibernation_enabled(&self) -> bool {
        self.hibernation
            .as_ref()
            .and_then(|hibernation| hibernation.enabled)
            .unwrap_or_default()
    }

    /// Whether some pool carries the control plane.
    pub fn is_self_hosted(&self) -> bool {
        self.provider
            .workers
            .iter()
            .any(|worker| worker.control_plane.is_some())
    }

    /// The Kubernetes version; empty when not set.
    pub fn kubernetes_version(&self) -> &str {
        self.kubernetes.version.as_deref().unwrap_or_default()
    }

    /// The purpose; `evaluation` when not set.
    pub fn purpose(&self) -> &str {
        self.purpose.as_deref().unwrap_or("evaluation")
    }

    /// The IP families; `IPv4` when not set.
    pub fn ip_families(&self) -> Vec<&str> {
        match &self.networking {
            Some(networking) if !networking.ip_families.is_empty() => {
                networking.ip_families.iter().map(String::as_str).collect()
            }
            _ => vec!["IPv4"],
        }
    }

    /// The failure tolerance of the control plane: `node`, `zone` or none.
    pub fn failure_tolerance(&self) -> Option<&str> {
        let availability = self.control_plane.as_ref()?.high_availability.as_ref()?;
        Some(availability.failure_tolerance.r#type.as_str())
    }

    /// Whether people may log in to nodes by SSH; true unless switched off, never without nodes.
    pub fn ssh_access_enabled(&self) -> bool {
        !self.is_workerless()
            && self
                .provider
                .workers_settings
                .as_ref()
                .and_then(|settings| settings.ssh_access.as_ref())
                .is_none_or(|access| access.enabled)
    }

    /// The DNS provider that serves the shoot's own domain.
    pub fn primary_dns_provider(&self) -> Option<&DNSProvider> {
        self.dns
            .as_ref()?
            .providers
            .iter()
            .find(|provider| provider.primary == Some(true))
    }

    /// The kind and name of the cloud profile, [GAPI-40].
    pub fn cloud_profile_reference(&self) -> Option<CloudProfileReference> {
        match (&self.cloud_profile, &self.cloud_profile_name) {
            (Some(reference), _) => Some(CloudProfileReference {
                kind: if reference.kind.is_empty() {
                    "CloudProfile".into()
                } else {
                    reference.kind.clone()
                },
                name: reference.name.clone(),
            }),
            (None, Some(name)) if !name.is_empty() => Some(CloudProfileReference {
                kind: "CloudProfile".into(),
                name: name.clone(),
            }),
            _ => None,
        }
    }

    /// The version that a pool's nodes run: its own or the control plane's.
    pub fn worker_version<'a>(&'a self, worker: &'a Worker) -> &'a str {
        worker
            .kubernetes
            .as_ref()
            .and_then(|kubernetes| kubernetes.version.as_deref())
            .unwrap_or_else(|| self.kubernetes_version())
    }
}

impl Worker {
    /// The update strategy; rolling when not set.
    pub fn strategy(&self) -> &str {
        self.update_strategy.as_deref().unwrap_or("AutoRollingUpdate")
    }

    /// Whether nodes are updated without being replaced.
    pub fn is_in_place(&self) -> bool {
        matches!(self.strategy(), "AutoInPlaceUpdate" | "ManualInPlaceUpdate")
    }

    /// Whether system components may run on the pool; true when not set.
    pub fn allows_system_components(&self) -> bool {
        self.system_components
            .as_ref()
            .is_none_or(|components| components.allow)
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn operations_are_split() {
        assert_eq!(split_operations("a; b"), ["a", "b"]);
        assert_eq!(split_operations("a;"), ["a", ""]);
        assert_eq!(split_operations(" ;"), ["", ""]);
        assert!(split_operations("").is_empty());
    }
}
