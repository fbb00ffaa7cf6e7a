//! What pods ask for and nodes have: cpu in thousandths, everything else in units.

use std::collections::BTreeMap;

use gardener_apimachinery::quantity::Amount;
use k8s_openapi::api::core::v1::{Container, Pod};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Amounts by resource name.
pub(super) type Requests = BTreeMap<String, i64>;

/// Amounts of a list of quantities; what cannot be read counts as nothing.
pub(super) fn amounts(list: Option<&BTreeMap<String, Quantity>>) -> Requests {
    list.into_iter()
        .flatten()
        .filter_map(|(name, quantity)| {
            let amount: Amount = quantity.0.parse().ok()?;
            Some((
                name.clone(),
                if name == "cpu" {
                    amount.milli_value()
                } else {
                    amount.value()
                },
            ))
        })
        .collect()
}

/// Adds amounts.
pub(super) fn add(sum: &mut Requests, more: &Requests) {
    for (name, amount) in more {
        let own = sum.entry(name.clone()).or_default();
        *own = own.saturating_add(*amount);
    }
}

fn of_container(container: &Container) -> Requests {
    let resources = container.resources.as_ref();
    let mut requests = amounts(resources.and_then(|own| own.requests.as_ref()));
    for (name, limit) in amounts(resources.and_then(|own| own.limits.as_ref())) {
        requests.entry(name).or_insert(limit);
    }
    requests
}

/// What a pod asks for: its containers together, or its largest init container, and its overhead.
pub(super) fn of_pod(pod: &Pod) -> Requests {
    let mut sum = Requests::new();
    let Some(spec) = &pod.spec else { return sum };
    for container in &spec.containers {
        add(&mut sum, &of_container(container));
    }
    let mut sidecars = Requests::new();
    let mut largest = Requests::new();
    for container in spec.init_containers.iter().flatten() {
        let mut own = of_container(container);
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut sidecars, &own);
            own = sidecars.clone();
        } else {
            add(&mut own, &sidecars);
        }
        for (name, amount) in own {
            let most = largest.entry(name).or_default();
            *most = (*most).max(amount);
        }
    }
    add(&mut sum, &sidecars);
    for (name, amount) in largest {
        let own = sum.entry(name).or_default();
        *own = (*own).max(amount);
    }
    add(&mut sum, &amounts(spec.overhead.as_ref()));
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn pods_ask_for_the_sum_of_containers_or_the_largest_init_container() {
        let pod: Pod = serde_json::from_value(json!({"metadata": {}, "spec": {
            "containers": [
                {"name": "a", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}},
                {"name": "b", "resources": {"limits": {"cpu": "1"}}},
            ],
            "initContainers": [
                {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "50m"}}},
                {"name": "i", "resources": {"requests": {"cpu": "2"}}},
            ],
        }}))
        .unwrap();
        let requests = of_pod(&pod);
        assert_eq!((requests["cpu"], requests["memory"]), (2050, 1 << 30));
    }
}
