//! The pools of a shoot get what the cloud profile offers: machine types, volumes, zones, versions, and as much as a machine has, [ADM-32b] –
//! [ADM-32h].

use std::collections::BTreeSet;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::quantity::Amount;
use gardener_apis::core::v1beta1::*;
use gardener_apis::validation::go_json;
use gardener_apis::versions;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::{Check, images};

fn quantity(text: &Quantity) -> Option<Amount> {
    text.0.parse().ok()
}

/// A type of machines or volumes that a cloud profile lists.
struct Listed<'a> {
    name: &'a str,
    /// What stands against it, sentence after sentence.
    against: String,
}

/// Whether one of the types may be taken.
fn choose(what: &str, own: &str, types: Vec<Listed<'_>>, path: &Path) -> Option<Error> {
    let offered = types.iter().filter(|known| known.against.is_empty());
    let mut offered: Vec<&str> = offered.map(|known| known.name).collect();
    offered.sort_unstable();
    let Some(known) = types.iter().find(|known| known.name == own) else {
        return Some(Error::not_supported(path, own, &offered));
    };
    (!known.against.is_empty()).then(|| {
        let supported = offered.join(" ");
        let why = format!("{what} {own:?} {}supported types are [{supported}]", known.against);
        Error::invalid(path, own, why)
    })
}

impl Check<'_> {
    fn old_pool(&self, name: &str) -> Option<&Worker> {
        let mut workers = self.old?.spec.provider.workers.iter();
        workers.find(|worker| worker.name == name)
    }

    /// All pools, one after the other.
    pub(super) fn pools(&self) -> ErrorList {
        let version = self.shoot.spec.kubernetes_version();
        if let Err(why) = versions::read(version) {
            let why = format!("cannot parse the kubernetes version: {why}");
            return vec![Error::invalid(&Path::new("spec.kubernetes.version"), version, why)];
        }
        let mut errors = ErrorList::new();
        // as with upstream, pools without a `kubernetes` of their own are not looked at, and one without a kubelet's is taken for the one before it
        let mut kubelet = self.shoot.spec.kubernetes.kubelet.as_ref();
        for (i, worker) in self.shoot.spec.provider.workers.iter().enumerate() {
            let path = Path::new("spec.provider.workers").index(i);
            let old = self.old_pool(&worker.name);
            match self.machine(worker, old, &path) {
                Some(error) => errors.push(error),
                None => {
                    if old.is_none_or(|old| old.machine.image != worker.machine.image || old.cri != worker.cri) {
                        errors.extend(images::container_runtimes(worker, self.profile, &path.child("cri")));
                    }
                    let version = self.shoot.spec.worker_version(worker);
                    if versions::parse(version).is_none() {
                        // what else could be said of the pool would mislead
                        let why = "cannot determine effective Kubernetes version for worker pool";
                        errors.push(Error::literal(&path.child("kubernetes.version"), go_json(version), why));
                        return errors;
                    }
                    let path = path.child("machine.image");
                    errors.extend(images::kubelet(worker, version, self.profile, &path));
                }
            }
            errors.extend(self.volume(worker, old, &path.child("volume")));
            if let Some(kubernetes) = &worker.kubernetes {
                kubelet = kubernetes.kubelet.as_ref().or(kubelet);
                errors.extend(self.reserved(worker, kubelet, &path.child("kubernetes.kubelet")));
                errors.extend(self.pool_version(worker, old, &path.child("kubernetes.version")));
            }
            errors.extend(self.pool_zones(worker, old, &path.child("zones")));
        }
        errors
    }

    /// [ADM-32c], [ADM-32d]: the first of what stands against the machines.
    fn machine(&self, worker: &Worker, old: Option<&Worker>, path: &Path) -> Option<Error> {
        let image = path.child("machine.image");
        self.machine_type(worker, old, &path.child("machine.type"))
            .or_else(|| images::offered(worker, old, self.profile, self.attributes.context.now, &image))
            .or_else(|| images::capabilities(worker, self.profile, &image))
    }

    /// Whether something is missing in a zone of a pool.
    fn is_unavailable(&self, worker: &Worker, name: &str, missing: impl Fn(&AvailabilityZone) -> &[String]) -> bool {
        let regions = self.profile.regions.iter();
        let regions = regions.filter(|region| region.name == self.shoot.spec.region);
        let mut zones = regions.flat_map(|region| &region.zones);
        zones.any(|zone| worker.zones.contains(&zone.name) && missing(zone).iter().any(|own| own == name))
    }

    /// The architecture of a machine type: with capabilities it is one of them.
    fn architecture<'t>(&'t self, known: &'t MachineType) -> Option<&'t str> {
        if self.profile.machine_capabilities.is_empty() {
            return known.architecture.as_deref();
        }
        let own = known.capabilities.get("architecture");
        let mut definitions = self.profile.machine_capabilities.iter();
        let defined = || {
            definitions
                .find(|own| own.name == "architecture")
                .map(|own| &own.values)
        };
        own.or_else(defined)?.first().map(String::as_str)
    }

    /// [ADM-32c].
    fn machine_type(&self, worker: &Worker, old: Option<&Worker>, path: &Path) -> Option<Error> {
        let unchanged = old.is_some_and(|old| {
            old.machine.r#type == worker.machine.r#type && old.machine.architecture == worker.machine.architecture
        });
        if unchanged {
            return None;
        }
        let wanted = worker.machine.architecture.as_deref().unwrap_or_default();
        let lacks = format!("does not support CPU architecture {wanted:?}, ");
        let types = self.profile.machine_types.iter().map(|known| {
            let fits = self.architecture(known).unwrap_or_default() == wanted;
            let lacks = (!fits).then(|| lacks.clone());
            self.listed(worker, &known.name, known.usable, lacks, |zone| {
                &zone.unavailable_machine_types
            })
        });
        choose("machine type", &worker.machine.r#type, types.collect(), path)
    }

    /// A type with what stands against it in a pool: of itself, and of a zone of the pool.
    fn listed<'t>(
        &self,
        worker: &Worker,
        name: &'t str,
        usable: Option<bool>,
        lacks: Option<String>,
        missing: impl Fn(&AvailabilityZone) -> &[String],
    ) -> Listed<'t> {
        let unusable = (usable != Some(true)).then(|| "is unusable, ".to_owned());
        let missing = self.is_unavailable(worker, name, missing);
        let missing = missing.then(|| "is unavailable in at least one zone, ".to_owned());
        Listed {
            name,
            against: [unusable, missing, lacks].into_iter().flatten().collect(),
        }
    }

    /// [ADM-32e].
    fn volume(&self, worker: &Worker, old: Option<&Worker>, path: &Path) -> Option<Error> {
        let volume = worker.volume.as_ref()?;
        let own = volume.r#type.as_deref()?;
        let before = old.and_then(|old| old.volume.as_ref()?.r#type.as_deref());
        if before != Some(own)
            && let Some(error) = self.volume_type(worker, own, &path.child("type"))
        {
            return Some(error);
        }
        let size = volume.size.parse::<Amount>().ok()?;
        let machine = self
            .profile
            .machine_types
            .iter()
            .find(|known| known.name == worker.machine.r#type);
        let storage = machine.and_then(|known| known.storage.as_ref());
        let of_machine = storage
            .filter(|storage| storage.r#type == own)
            .and_then(|own| own.min_size.as_ref());
        let of_type = self.profile.volume_types.iter().find(|known| known.name == own);
        let least = of_machine
            .into_iter()
            .chain(of_type.and_then(|known| known.min_size.as_ref()));
        let mut least = least.filter_map(quantity);
        least.find(|least| size < *least).map(|least| {
            Error::invalid(
                &path.child("size"),
                volume.size.as_str(),
                format!("size must be >= {least}"),
            )
        })
    }

    fn volume_type(&self, worker: &Worker, own: &str, path: &Path) -> Option<Error> {
        let types = self.profile.volume_types.iter().map(|known| {
            self.listed(worker, &known.name, known.usable, None, |zone| {
                &zone.unavailable_volume_types
            })
        });
        choose("volume type", own, types.collect(), path)
    }

    /// [ADM-32h]: a machine has more than what is kept for its system.
    fn reserved(&self, worker: &Worker, kubelet: Option<&KubeletConfig>, path: &Path) -> ErrorList {
        let mut types = self.profile.machine_types.iter();
        let (Some(kubelet), Some(machine)) = (kubelet, types.find(|known| known.name == worker.machine.r#type)) else {
            return ErrorList::new();
        };
        let reserved = kubelet.kube_reserved.as_ref();
        let of = |own: Option<&Quantity>| own.and_then(quantity).unwrap_or_else(|| Amount::units(0));
        let all = [
            ("CPU", of(reserved.and_then(|own| own.cpu.as_ref())), &machine.cpu),
            (
                "memory",
                of(reserved.and_then(|own| own.memory.as_ref())),
                &machine.memory,
            ),
        ];
        let error = |(name, reserved, capacity): (&str, Amount, &Quantity)| {
            let capacity = quantity(capacity)?;
            (reserved >= capacity).then(|| {
                Error::invalid(
                    path,
                    format!("kubeReserved {name}: {reserved}"),
                    format!("total reserved {name} (kubeReserved) cannot be more than the Node's {name} capacity '{capacity}'"),
                )
            })
        };
        all.into_iter().filter_map(error).collect()
    }

    /// [ADM-32b] of a pool.
    fn pool_version(&self, worker: &Worker, old: Option<&Worker>, path: &Path) -> Option<Error> {
        let own = worker.kubernetes.as_ref()?.version.as_deref()?;
        // so does upstream: a pool that had no version of its own, or is new, is compared with the control plane
        let before = old.and_then(|old| old.kubernetes.as_ref()?.version.as_deref());
        let before = before.or_else(|| Some(self.old?.spec.kubernetes_version()));
        match before == Some(own) {
            true => None,
            false => self.version(own, old.is_none(), path),
        }
    }

    /// [ADM-32f].
    fn pool_zones(&self, worker: &Worker, old: Option<&Worker>, path: &Path) -> ErrorList {
        let region = self.shoot.spec.region.as_str();
        let same_region = self.old.is_some_and(|old| old.spec.region == region);
        if same_region && old.map(|old| old.zones.as_slice()).unwrap_or_default() == worker.zones {
            return ErrorList::new();
        }
        let known = self.profile.regions.iter().find(|known| known.name == region);
        let known: Vec<&str> = known
            .into_iter()
            .flat_map(|region| &region.zones)
            .map(|zone| zone.name.as_str())
            .collect();
        let mut errors = ErrorList::new();
        let mut seen = BTreeSet::new();
        for (i, zone) in worker.zones.iter().enumerate() {
            let path = path.index(i);
            if known.is_empty() {
                errors.push(Error::invalid(
                    &path,
                    region,
                    "this region does not support availability zones, please do not configure them",
                ));
            } else if !known.contains(&zone.as_str()) {
                errors.push(Error::not_supported(&path, zone.as_str(), &known));
            }
            if !seen.insert(zone) {
                errors.push(Error::duplicate(&path, zone.as_str()));
            }
        }
        errors
    }
}
