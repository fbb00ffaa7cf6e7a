//! The first landscape: what `gardener up` applies before the user's own manifests.

use crate::apply::Manifest;

const FILES: [(&str, &str); 11] = [
    (
        "10-project-garden.yaml",
        include_str!("../manifests/10-project-garden.yaml"),
    ),
    (
        "11-project-local.yaml",
        include_str!("../manifests/11-project-local.yaml"),
    ),
    (
        "20-cloudprofile.yaml",
        include_str!("../manifests/20-cloudprofile.yaml"),
    ),
    (
        "30-domain-secrets.yaml",
        include_str!("../manifests/30-domain-secrets.yaml"),
    ),
    (
        "31-etcd-backup-secret.yaml",
        include_str!("../manifests/31-etcd-backup-secret.yaml"),
    ),
    (
        "32-service-account-issuer-secret.yaml",
        include_str!("../manifests/32-service-account-issuer-secret.yaml"),
    ),
    ("25-seed.yaml", include_str!("../manifests/25-seed.yaml")),
    (
        "39-secret-provider.yaml",
        include_str!("../manifests/39-secret-provider.yaml"),
    ),
    (
        "40-credentialsbinding.yaml",
        include_str!("../manifests/40-credentialsbinding.yaml"),
    ),
    (
        "41-secretbinding.yaml",
        include_str!("../manifests/41-secretbinding.yaml"),
    ),
    (
        "50-exposureclass.yaml",
        include_str!("../manifests/50-exposureclass.yaml"),
    ),
];

const SHOOT: &str = include_str!("../manifests/90-shoot.yaml");

/// Project, cloud profile, seeds, secrets and bindings of a landscape with this many seeds. The first seed is called `local`, the
/// others `local-2`, `local-3`, …
pub fn landscape(seeds: u32) -> Vec<Manifest> {
    let mut manifests = Vec::new();
    for (name, text) in FILES {
        manifests.push(Manifest {
            origin: name.to_owned(),
            text: text.to_owned(),
        });
        if name == "25-seed.yaml" {
            for number in 2..=seeds {
                manifests.push(Manifest {
                    origin: format!("25-seed-{number}.yaml"),
                    text: further_seed(text, number),
                });
            }
        }
    }
    manifests
}

/// Names of the seeds of such a landscape.
pub fn seed_names(seeds: u32) -> Vec<String> {
    (1..=seeds)
        .map(|number| {
            if number == 1 {
                "local".to_owned()
            } else {
                format!("local-{number}")
            }
        })
        .collect()
}

fn further_seed(first: &str, number: u32) -> String {
    first
        .replace(
            "metadata:\n  name: local\n",
            &format!("metadata:\n  name: local-{number}\n"),
        )
        .replace(
            "ingress.local.seed.local.gardener.cloud",
            &format!("ingress.local-{number}.seed.local.gardener.cloud"),
        )
}

/// The first shoot.
pub fn shoot() -> Manifest {
    Manifest {
        origin: "90-shoot.yaml".to_owned(),
        text: SHOOT.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::objects;
    use kube::ResourceExt;

    #[test]
    fn further_seeds_have_names_and_domains_of_their_own() {
        let seeds: Vec<_> = landscape(3)
            .iter()
            .flat_map(|manifest| objects(manifest).unwrap())
            .filter(|object| object.types.as_ref().is_some_and(|types| types.kind == "Seed"))
            .collect();
        let names: Vec<String> = seeds.iter().map(ResourceExt::name_any).collect();
        assert_eq!(names, seed_names(3));
        let domains: std::collections::BTreeSet<String> = seeds
            .iter()
            .map(|seed| seed.data["spec"]["ingress"]["domain"].to_string())
            .collect();
        assert_eq!(domains.len(), 3);
    }
}
