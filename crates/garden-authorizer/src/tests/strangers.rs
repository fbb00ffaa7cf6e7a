//! Can seed A read or write what belongs to seed B? Over a million questions about random gardens; the answer must never be yes.
//!
//! What belongs to whom is written down while a garden is made up, flat and without any graph: whoever has a shoot has all that the shoot names.
//! A seed's objects also belong to the seeds that run it [W54].

use std::collections::{BTreeMap, BTreeSet};

use gardener_apimachinery::chance::Chance;
use gardener_apimachinery::selector::{FieldSelector, LabelSelector};
use serde_json::json;

use super::*;
use crate::identity::{Client, SeedIdentity};
use crate::seeds::authorize;

/// An object as a question names it: group, resource, namespace, name.
type Object = (&'static str, &'static str, String, String);

const CORE: &str = "core.gardener.cloud";
const SECURITY: &str = "security.gardener.cloud";
const OPERATIONS: &str = "operations.gardener.cloud";
const SEEDMANAGEMENT: &str = "seedmanagement.gardener.cloud";

/// What everybody may do with objects of a kind [AUTH-4].
fn always(object: &Object, verb: &str) -> bool {
    let read = matches!(verb, "get" | "list" | "watch");
    match (object.0, object.1) {
        (CORE, "backupbuckets" | "backupentries" | "controllerregistrations") => read || verb == "create",
        (SECURITY, "workloadidentities") => false,
        _ => verb == "create",
    }
}

/// A shoot as lists show it.
struct Listed {
    labels: BTreeMap<String, String>,
    seeds: BTreeSet<usize>,
}

/// A random garden: its objects, and to which seeds each belongs.
struct Garden {
    chance: Chance,
    seeds: usize,
    /// By seed: the seeds that run it.
    parents: Vec<BTreeSet<usize>>,
    objects: BTreeMap<(Source, String, String), Value>,
    owners: BTreeMap<Object, BTreeSet<usize>>,
    shoots: Vec<Listed>,
}

fn credentials(kind: &str, namespace: &str, name: &str) -> Value {
    let api_version = match kind {
        "WorkloadIdentity" => "security.gardener.cloud/v1alpha1",
        "InternalSecret" => "core.gardener.cloud/v1beta1",
        _ => "v1",
    };
    json!({"apiVersion": api_version, "kind": kind, "namespace": namespace, "name": name})
}

fn resource_of(kind: &str) -> (&'static str, &'static str) {
    match kind {
        "WorkloadIdentity" => (SECURITY, "workloadidentities"),
        "InternalSecret" => (CORE, "internalsecrets"),
        "ConfigMap" => ("", "configmaps"),
        _ => ("", "secrets"),
    }
}

impl Garden {
    fn random(seed: u64) -> Self {
        let chance = Chance::seeded(seed);
        let seeds = 2 + chance.below(5) as usize;
        let mut garden = Self {
            chance,
            seeds,
            parents: vec![BTreeSet::new(); seeds],
            objects: BTreeMap::new(),
            owners: BTreeMap::new(),
            shoots: Vec::new(),
        };
        garden.fill();
        garden
    }

    fn below(&self, bound: usize) -> usize {
        self.chance.below(bound as u64) as usize
    }

    fn one_in(&self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn own(
        &mut self,
        (group, resource): (&'static str, &'static str),
        namespace: &str,
        name: &str,
        seeds: &BTreeSet<usize>,
    ) {
        let object = (group, resource, namespace.to_owned(), name.to_owned());
        self.owners.entry(object).or_default().extend(seeds);
    }

    fn put(&mut self, source: Source, object: Value) {
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
        self.objects.insert((source, text("namespace"), text("name")), object);
    }

    fn any_credentials(&self) -> &'static str {
        ["Secret", "WorkloadIdentity"][self.below(2)]
    }

    fn fill(&mut self) {
        for seed in 0..self.seeds {
            self.seed(seed);
        }
        for project in 0..3 {
            let (name, namespace) = (format!("p{project}"), format!("garden-p{project}"));
            self.put(
                Source::Project,
                json!({"metadata": named("", &name), "spec": {"namespace": namespace}}),
            );
            for binding in 0..3 {
                let name = format!("b{binding}");
                let at = &["garden-p0", "garden-p1", "garden-shared"][self.below(3)];
                let kind = ["Secret", "WorkloadIdentity", "InternalSecret"][self.below(3)];
                let secret = format!("cloud{}", self.below(6));
                self.put(
                    Source::CredentialsBinding,
                    json!({"metadata": named(&namespace, &name), "credentialsRef": credentials(kind, at, &secret)}),
                );
                self.put(
                    Source::SecretBinding,
                    json!({"metadata": named(&namespace, &name), "secretRef": {"namespace": at, "name": format!("old{}", self.below(6))}}),
                );
            }
        }
        for shoot in 0..4 + self.below(12) {
            let project = self.below(3);
            let mut seeds = BTreeSet::from([self.below(self.seeds)]);
            if self.one_in(5) {
                seeds.insert(self.below(self.seeds));
            }
            self.shoot(project, &format!("s{shoot}"), &seeds);
        }
        // some seeds are shoots of seeds before them
        for seed in 1..self.seeds {
            if self.one_in(3) {
                let parents = BTreeSet::from([self.below(seed)]);
                self.managed_seed(seed, &parents);
            }
        }
        for deployment in 0..3 {
            let name = format!("d{deployment}");
            self.put(
                Source::ControllerDeployment,
                json!({"metadata": named("", &name), "helm": {"ociRepository": {"pullSecretRef": {"name": format!("pull-{name}")}}},
                    "resources": [{"name": "x", "resourceRef": credentials("ConfigMap", "", &format!("values-{name}"))}]}),
            );
            for seed in 0..self.seeds {
                if self.one_in(2) {
                    let only = BTreeSet::from([seed]);
                    let installation = format!("{name}-{seed}");
                    self.put(
                        Source::ControllerInstallation,
                        json!({"metadata": named("", &installation), "spec": {"seedRef": {"name": format!("seed{seed}")},
                            "registrationRef": {"name": name}, "deploymentRef": {"name": name}}}),
                    );
                    self.own((CORE, "controllerinstallations"), "", &installation, &only);
                    self.own((CORE, "controllerdeployments"), "", &name, &only);
                    self.own(("", "secrets"), "garden", &format!("pull-{name}"), &only);
                    self.own(("", "configmaps"), "garden", &format!("values-{name}"), &only);
                }
            }
        }
    }

    fn seed(&mut self, seed: usize) {
        let name = format!("seed{seed}");
        let only = BTreeSet::from([seed]);
        let holder = |garden: &mut Self, what: &str| {
            let kind = garden.any_credentials();
            // some share credentials
            let credential = if garden.one_in(4) {
                "shared".to_owned()
            } else {
                format!("{what}-{name}")
            };
            garden.own(resource_of(kind), "garden", &credential, &only);
            json!({"credentialsRef": credentials(kind, "garden", &credential)})
        };
        let (backup, provider, internal, default) = (
            holder(self, "backup"),
            holder(self, "provider"),
            holder(self, "internal"),
            holder(self, "default"),
        );
        self.put(
            Source::Seed,
            json!({"metadata": named("", &name), "spec": {"backup": backup, "dns": {"provider": provider, "internal": internal, "defaults": [default]}}}),
        );
        let namespace = format!("seed-{name}");
        for (kind, namespace, name) in [
            ((CORE, "seeds"), "", name.as_str()),
            (("", "namespaces"), namespace.as_str(), namespace.as_str()),
            (("", "configmaps"), "kube-system", "cluster-identity"),
            (("coordination.k8s.io", "leases"), "gardener-system-seed-lease", &name),
            // in no graph, but in the seed's own namespace
            (("", "secrets"), &namespace, "token"),
            (("", "serviceaccounts"), &namespace, "extension-x"),
            ((SEEDMANAGEMENT, "gardenlets"), "garden", &name),
            ((CORE, "backupbuckets"), "", &format!("bucket-{name}")),
            (("", "secrets"), "garden", &format!("bucket-{name}")),
            (("", "secrets"), "garden", &format!("generated-bucket-bucket-{name}")),
        ] {
            self.own(kind, namespace, name, &only);
        }
        self.put(
            Source::Gardenlet,
            json!({"metadata": named("garden", &name), "spec": {"config": {}}}),
        );
        self.put(
            Source::BackupBucket,
            json!({"metadata": named("", &format!("bucket-{name}")),
                "spec": {"seedName": name, "credentialsRef": credentials("Secret", "garden", &format!("bucket-{name}"))},
                "status": {"generatedSecretRef": {"namespace": "garden", "name": format!("generated-bucket-bucket-{name}")}}}),
        );
    }

    fn shoot(&mut self, project: usize, name: &str, seeds: &BTreeSet<usize>) {
        let namespace = format!("garden-p{project}");
        let binding = format!("b{}", self.below(3));
        let profile = format!("profile{}", self.below(4));
        let namespaced = self.one_in(3);
        let class = format!("class{}", self.below(3));
        let (dns, resource) = (
            self.any_credentials(),
            ["Secret", "WorkloadIdentity", "ConfigMap"][self.below(3)],
        );
        // names may be shared between shoots of a project
        let used = format!("used{}", self.below(8));
        let all: Vec<usize> = seeds.iter().copied().collect();
        let label = |seed: &usize| (format!("name.seed.gardener.cloud/seed{seed}"), "true".to_owned());
        let mut labels: BTreeMap<String, String> = seeds.iter().map(label).collect();
        if self.one_in(2) {
            labels.insert("team".into(), format!("t{}", self.below(2)));
        }
        self.put(
            Source::Shoot,
            json!({
                "metadata": {"namespace": namespace, "name": name, "uid": format!("uid-{name}"), "annotations": {"authentication.gardener.cloud/issuer": "managed"}},
                "spec": {
                    "seedName": format!("seed{}", all[0]),
                    "cloudProfile": {"kind": if namespaced { "NamespacedCloudProfile" } else { "CloudProfile" }, "name": profile},
                    "credentialsBindingName": binding, "secretBindingName": binding, "exposureClassName": class,
                    "kubernetes": {"kubeAPIServer": {"auditConfig": {"auditPolicy": {"configMapRef": {"name": used}}}}},
                    "dns": {"providers": [{"credentialsRef": credentials(dns, "", &used)}]},
                    "resources": [{"name": "r", "resourceRef": credentials(resource, "", &used)}],
                },
                "status": {"seedName": format!("seed{}", all[all.len() - 1])},
            }),
        );
        self.shoots.push(Listed {
            labels,
            seeds: seeds.clone(),
        });
        let credentials_binding =
            &self.objects[&(Source::CredentialsBinding, namespace.clone(), binding.clone())]["credentialsRef"];
        let secret_binding = &self.objects[&(Source::SecretBinding, namespace.clone(), binding.clone())]["secretRef"];
        let text = |value: &Value, key: &str| value[key].as_str().unwrap().to_owned();
        let cloud = (
            resource_of(credentials_binding["kind"].as_str().unwrap()),
            text(credentials_binding, "namespace"),
            text(credentials_binding, "name"),
        );
        let old = (
            ("", "secrets"),
            text(secret_binding, "namespace"),
            text(secret_binding, "name"),
        );
        let at = |kind: (&'static str, &'static str), name: &str| (kind, namespace.clone(), name.to_owned());
        let profile = if namespaced {
            at((CORE, "namespacedcloudprofiles"), &profile)
        } else {
            ((CORE, "cloudprofiles"), String::new(), profile)
        };
        let mut named_by_it = vec![
            cloud,
            old,
            profile,
            at((CORE, "shoots"), name),
            at((CORE, "shootstates"), name),
            at((SECURITY, "credentialsbindings"), &binding),
            at((CORE, "secretbindings"), &binding),
            ((CORE, "exposureclasses"), String::new(), class),
            at(("", "configmaps"), &used),
            at(resource_of(dns), &used),
            at(resource_of(resource), &used),
            at(("", "namespaces"), &namespace),
            ((CORE, "projects"), String::new(), format!("p{project}")),
            (
                ("", "secrets"),
                "gardener-system-shoot-issuer".to_owned(),
                format!("p{project}--uid-{name}"),
            ),
            at((CORE, "internalsecrets"), &format!("{name}.ca-client")),
        ];
        for suffix in ["ca-cluster", "ssh-keypair", "ssh-keypair.old", "monitoring"] {
            named_by_it.push(at(("", "secrets"), &format!("{name}.{suffix}")));
        }
        for suffix in ["ca-cluster", "ca-kubelet"] {
            named_by_it.push(at(("", "configmaps"), &format!("{name}.{suffix}")));
        }
        // its backup's entry is of the first seed, and of the shoot
        let bucket = format!("bucket-seed{}", all[0]);
        self.put(
            Source::BackupEntry,
            json!({"metadata": {"namespace": namespace, "name": name, "ownerReferences": [{"kind": "Shoot", "name": name}]},
                "spec": {"seedName": format!("seed{}", all[0]), "bucketName": bucket}}),
        );
        named_by_it.push(at((CORE, "backupentries"), name));
        named_by_it.push(((CORE, "backupbuckets"), String::new(), bucket.clone()));
        named_by_it.push((("", "secrets"), "garden".to_owned(), bucket.clone()));
        named_by_it.push((
            ("", "secrets"),
            "garden".to_owned(),
            format!("generated-bucket-{bucket}"),
        ));
        if self.one_in(3) {
            let bastion = BTreeSet::from([all[0]]);
            self.put(Source::Bastion, json!({"metadata": named(&namespace, name), "spec": {"seedName": format!("seed{}", all[0]), "shootRef": {"name": name}}}));
            self.own((OPERATIONS, "bastions"), &namespace, name, &bastion);
        }
        for (kind, namespace, name) in named_by_it {
            self.own(kind, &namespace, &name, seeds);
        }
    }

    fn managed_seed(&mut self, seed: usize, parents: &BTreeSet<usize>) {
        let (name, shoot) = (format!("seed{seed}"), format!("runs{seed}"));
        self.parents[seed].extend(parents);
        let parent = parents.iter().next().unwrap();
        self.put(
            Source::Shoot,
            json!({"metadata": named("garden", &shoot), "spec": {"seedName": format!("seed{parent}")}}),
        );
        self.own((CORE, "shoots"), "garden", &shoot, parents);
        self.own((CORE, "shootstates"), "garden", &shoot, parents);
        self.put(
            Source::ManagedSeed,
            json!({"metadata": named("garden", &name), "spec": {"shoot": {"name": shoot}, "gardenlet": {"bootstrap": "BootstrapToken", "config": {}}}}),
        );
        let mut both = parents.clone();
        both.insert(seed);
        self.own((SEEDMANAGEMENT, "managedseeds"), "garden", &name, &both);
        // its gardenlet is in, and may only throw its token away
        let token = crate::bootstrap::token_secret("garden", &name);
        self.own(("", "secrets"), "kube-system", &token, &BTreeSet::from([seed]));
        self.own(("", "namespaces"), "garden", "garden", parents);
    }

    /// The seeds that may touch what belongs to these: they, and whoever runs them.
    fn access(&self, owners: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut all = owners.clone();
        let mut next: Vec<usize> = owners.iter().copied().collect();
        while let Some(seed) = next.pop() {
            next.extend(self.parents[seed].iter().filter(|parent| all.insert(**parent)));
        }
        all
    }
}

const VERBS: [(&str, &str); 10] = [
    ("get", ""),
    ("list", ""),
    ("watch", ""),
    ("update", ""),
    ("patch", ""),
    ("delete", ""),
    ("patch", "status"),
    ("update", "finalizers"),
    ("create", "token"),
    ("deletecollection", ""),
];

fn names() -> Vec<String> {
    (0..7).map(|seed| format!("seed{seed}")).collect()
}

/// How many questions were asked, and how many of them were allowed.
fn ask_everything(number: u64) -> (u64, u64) {
    let garden = Garden::random(number);
    let mut belongings = Belongings::new();
    // the order in which objects come does not matter
    let mut objects: Vec<_> = garden.objects.iter().collect();
    for place in (1..objects.len()).rev() {
        objects.swap(place, garden.below(place + 1));
    }
    for ((source, namespace, name), object) in objects {
        belongings.set(*source, namespace, name, Some(&serde_json::to_vec(object).unwrap()));
    }
    let (mut asked, mut allowed) = (0, 0);
    let names = names();
    for (object, owners) in &garden.owners {
        let access = garden.access(owners);
        for (seed, name) in names.iter().enumerate().take(garden.seeds) {
            for client in [Client::Gardenlet, Client::Extension] {
                for (verb, subresource) in VERBS {
                    let request = Request {
                        verb,
                        group: object.0,
                        resource: object.1,
                        subresource,
                        namespace: &object.2,
                        name: &object.3,
                        ..Request::default()
                    };
                    let answer = authorize(&belongings, SeedIdentity { seed: name, client }, &request);
                    asked += 1;
                    if answer == Answer::Allow {
                        allowed += 1;
                        let own = access.contains(&seed) || always(object, verb);
                        assert!(
                            own,
                            "garden {number}: {name} may {verb} {object:?}/{subresource}, which belongs to {owners:?}"
                        );
                    } else if owners.contains(&seed) && verb == "get" && client == Client::Gardenlet {
                        let refused = object.2 == "kube-system" && object.1 == "secrets"
                            || object.1 == "serviceaccounts" && client == Client::Extension;
                        assert!(refused, "garden {number}: {name} may not {verb} {object:?}: {answer:?}");
                    }
                }
            }
        }
    }
    let (more, narrow) = ask_lists(number, &garden, &belongings, &names);
    (asked + more, allowed + narrow)
}

/// Lists of shoots with random selectors: whatever is allowed shows nobody else's.
fn ask_lists(number: u64, garden: &Garden, belongings: &Belongings, names: &[String]) -> (u64, u64) {
    let (mut asked, mut allowed) = (0, 0);
    for _ in 0..100 {
        let part = || {
            let key = match garden.below(3) {
                0 => "team".to_owned(),
                _ => format!("name.seed.gardener.cloud/seed{}", garden.below(garden.seeds)),
            };
            match garden.below(7) {
                0 => key,
                1 => format!("!{key}"),
                2 => format!("{key}!=true"),
                3 => format!("{key} notin (t0, x)"),
                4 => format!("{key} in (true, t1)"),
                5 => format!("{key} in (t0)"),
                _ => format!("{key}=true"),
            }
        };
        let selector = match garden.below(4) {
            0 => format!("{},{}", part(), part()),
            _ => part(),
        };
        let field = match garden.below(3) {
            0 => format!("spec.seedName=seed{}", garden.below(garden.seeds)),
            _ => String::new(),
        };
        let parsed = LabelSelector::parse(&selector).unwrap();
        assert!(FieldSelector::parse(&field).is_ok());
        for (seed, name) in names.iter().enumerate().take(garden.seeds) {
            for verb in ["list", "watch"] {
                let request = Request {
                    verb,
                    group: CORE,
                    resource: "shoots",
                    field_selector: &field,
                    label_selector: &selector,
                    ..Request::default()
                };
                let who = SeedIdentity {
                    seed: name,
                    client: Client::Gardenlet,
                };
                asked += 1;
                if authorize(belongings, who, &request) == Answer::Allow {
                    allowed += 1;
                    let shown = garden.shoots.iter().filter(|shoot| parsed.matches(&shoot.labels));
                    for shoot in shown {
                        assert!(
                            garden.access(&shoot.seeds).contains(&seed),
                            "garden {number}: {name} may {verb} shoots by {selector:?}, of which some are on {:?}",
                            shoot.seeds
                        );
                    }
                }
            }
        }
    }
    (asked, allowed)
}

#[test]
fn nobody_touches_what_belongs_to_another_seed() {
    let (mut asked, mut allowed) = (0, 0);
    for number in 0.. {
        let (more, yes) = ask_everything(number);
        asked += more;
        allowed += yes;
        if asked >= 1_000_000 {
            break;
        }
    }
    // most questions are about somebody else's objects, but not all
    assert!(
        allowed > asked / 20 && allowed < asked / 2,
        "{allowed} of {asked} were allowed"
    );
}
