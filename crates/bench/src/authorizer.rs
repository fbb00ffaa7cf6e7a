//! `bench authorizer`: how long the question takes whether a gardenlet may do something, in a garden of many seeds and shoots [AUTH-4], and how long it
//! takes until the graph knows of a change. Asks the decision itself, not a server.

use std::time::Duration;

use clap::Args;
use gardener_garden_authorizer::identity::{Client, SeedIdentity};
use gardener_garden_authorizer::{Answer, Belongings, Request, Source, seeds};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::Figure;

/// How large the garden is.
#[derive(Args)]
pub struct Arguments {
    /// Seeds.
    #[arg(long, default_value_t = 20)]
    seeds: usize,
    /// Shoots, spread over the seeds.
    #[arg(long, default_value_t = 1000)]
    shoots: usize,
    /// Questions of each sort.
    #[arg(long, default_value_t = 200_000)]
    questions: usize,
}

/// Shoots of one project.
const OF_A_PROJECT: usize = 20;
const PROFILES: usize = 5;

fn put(belongings: &mut Belongings, source: Source, object: &Value) -> anyhow::Result<()> {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    let bytes = serde_json::to_vec(object)?;
    belongings.set(source, text("namespace"), text("name"), Some(&bytes));
    Ok(())
}

fn project(shoot: usize) -> String {
    format!("garden-p{}", shoot / OF_A_PROJECT)
}

fn shoot(number: usize, seed: usize, message: &str) -> Value {
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "name": format!("used{}", number % 7)});
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"namespace": project(number), "name": format!("s{number}"), "uid": format!("uid-{number}")},
        "spec": {
            "seedName": format!("seed{seed}"), "region": "somewhere",
            "cloudProfile": {"kind": "CloudProfile", "name": format!("profile{}", number % PROFILES)},
            "credentialsBindingName": "account", "exposureClassName": "internet",
            "kubernetes": {"version": "1.36.0", "kubeAPIServer": {"auditConfig": {"auditPolicy": {"configMapRef": {"name": "audit"}}}}},
            "dns": {"providers": [{"type": "x", "credentialsRef": secret}]},
            "resources": [{"name": "r", "resourceRef": secret}],
            // what makes a Shoot large
            "provider": {"type": "x", "workers": vec![json!({"name": "w", "machine": {"type": "large", "image": {"name": "i", "version": "1.2.3"}},
                "minimum": 1, "maximum": 5, "zones": ["a", "b", "c"], "labels": {"a": "b", "c": "d"}}); 10]},
        },
        "status": {"seedName": format!("seed{seed}"), "lastOperation": {"description": message, "progress": 50, "state": "Processing", "type": "Reconcile"},
            "conditions": vec![json!({"type": "APIServerAvailable", "status": "True", "reason": "HealthzRequestSucceeded",
                "message": "API server /healthz endpoint responded with success status code."}); 8]},
    })
}

fn garden(arguments: &Arguments) -> anyhow::Result<Belongings> {
    let mut belongings = Belongings::of_seeds();
    for seed in 0..arguments.seeds {
        let object = json!({"metadata": {"name": format!("seed{seed}")}, "spec": {"backup": {"credentialsRef":
            {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "backup"}}}});
        put(&mut belongings, Source::Seed, &object)?;
        // every fourth runs as a shoot of the one before
        if seed % 4 == 3 {
            let runs = json!({"metadata": {"namespace": "garden", "name": format!("runs{seed}")}, "spec": {"seedName": format!("seed{}", seed - 1)}});
            put(&mut belongings, Source::Shoot, &runs)?;
            let managed = json!({"metadata": {"namespace": "garden", "name": format!("seed{seed}")}, "spec": {"shoot": {"name": format!("runs{seed}")}}});
            put(&mut belongings, Source::ManagedSeed, &managed)?;
        }
    }
    for number in 0..arguments.shoots {
        let namespace = project(number);
        if number % OF_A_PROJECT == 0 {
            let object =
                json!({"metadata": {"name": format!("p{}", number / OF_A_PROJECT)}, "spec": {"namespace": namespace}});
            put(&mut belongings, Source::Project, &object)?;
            let binding = json!({"metadata": {"namespace": namespace, "name": "account"},
                "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "account"}});
            put(&mut belongings, Source::CredentialsBinding, &binding)?;
        }
        let entry = json!({"metadata": {"namespace": namespace, "name": format!("s{number}"), "ownerReferences": [{"kind": "Shoot", "name": format!("s{number}")}]},
            "spec": {"bucketName": format!("bucket{}", number % arguments.seeds), "seedName": format!("seed{}", number % arguments.seeds)}});
        put(&mut belongings, Source::BackupEntry, &entry)?;
        put(
            &mut belongings,
            Source::Shoot,
            &shoot(number, number % arguments.seeds, "made"),
        )?;
    }
    Ok(belongings)
}

fn told(name: &str, mut times: Vec<Duration>) -> Figure {
    times.sort_unstable();
    let at = |share: usize| times.get(times.len() * share / 1000).copied().unwrap_or_default();
    let value = format!(
        "p50 {:.2} µs, p99 {:.2} µs, p99.9 {:.2} µs",
        at(500).as_secs_f64() * 1e6,
        at(990).as_secs_f64() * 1e6,
        at(999).as_secs_f64() * 1e6
    );
    Figure::new(name, value)
}

/// The memory that this process holds, in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or_default()
}

/// Measures questions and changes.
pub fn measure(arguments: &Arguments) -> anyhow::Result<Vec<Figure>> {
    anyhow::ensure!(
        arguments.seeds > 0 && arguments.shoots > 0,
        "a garden has seeds and shoots"
    );
    let (start, before) = (Instant::now(), resident());
    let mut belongings = garden(arguments)?;
    let built = start.elapsed();
    let grown = resident().saturating_sub(before);
    let (vertices, edges) = belongings.seeds().size();
    let mut figures = vec![
        Figure::new("seeds, shoots", format!("{}, {}", arguments.seeds, arguments.shoots)),
        Figure::new("vertices, edges", format!("{vertices}, {edges}")),
        Figure::new("all objects read", format!("{:.1} ms", built.as_secs_f64() * 1e3)),
        Figure::new("memory for that", format!("{:.1} MiB", grown as f64 / 1024.0)),
    ];
    let mut chance = StdRng::seed_from_u64(1);
    const CORE: &str = "core.gardener.cloud";
    for (name, group, resource) in [
        ("get of a shoot", CORE, "shoots"),
        ("get of a shoot's secret", "", "secrets"),
        ("get of a namespace", "", "namespaces"),
        ("get of a cloud profile that many shoots use", CORE, "cloudprofiles"),
        ("get of credentials that all shoots use", "", "credentials"),
        ("get of a seed", CORE, "seeds"),
        ("list of shoots by label", CORE, "list"),
    ] {
        let mut times = Vec::with_capacity(arguments.questions);
        let mut allowed = 0_usize;
        for _ in 0..arguments.questions {
            let number = chance.random_range(0..arguments.shoots);
            // one in two asks for what is its own
            let seed = match chance.random_range(0..2) {
                0 => number % arguments.seeds,
                // and one that has nothing at all
                _ => chance.random_range(0..=arguments.seeds),
            };
            let (namespace, object, verb, resource) = match resource {
                "shoots" => (project(number), format!("s{number}"), "get", "shoots"),
                "secrets" => (project(number), format!("s{number}.ssh-keypair"), "get", "secrets"),
                "namespaces" => (project(number), project(number), "get", "namespaces"),
                "cloudprofiles" => (
                    String::new(),
                    format!("profile{}", number % PROFILES),
                    "get",
                    "cloudprofiles",
                ),
                "credentials" => ("garden".to_owned(), "account".to_owned(), "get", "secrets"),
                "seeds" => (
                    String::new(),
                    format!("seed{}", number % arguments.seeds),
                    "get",
                    "seeds",
                ),
                _ => (String::new(), String::new(), "list", "shoots"),
            };
            let (seed, label) = (
                format!("seed{seed}"),
                format!("name.seed.gardener.cloud/seed{seed}=true"),
            );
            let request = Request {
                verb,
                group,
                resource,
                namespace: &namespace,
                name: &object,
                label_selector: if verb == "list" { &label } else { "" },
                ..Request::default()
            };
            let who = SeedIdentity {
                seed: &seed,
                client: Client::Gardenlet,
            };
            let start = Instant::now();
            let answer = seeds::authorize(&belongings, who, &request);
            times.push(start.elapsed());
            allowed += usize::from(answer == Answer::Allow);
        }
        let share = allowed * 100 / arguments.questions.max(1);
        figures.push(told(&format!("{name} ({share}% allowed)"), times));
    }
    let (mut same, mut moved) = (Vec::new(), Vec::new());
    for number in 0..arguments.shoots {
        let seed = number % arguments.seeds;
        for (times, object) in [
            (&mut same, shoot(number, seed, "changed")),
            (&mut moved, shoot(number, (seed + 1) % arguments.seeds, "moved")),
        ] {
            let bytes = serde_json::to_vec(&object)?;
            let (namespace, name) = (project(number), format!("s{number}"));
            let start = Instant::now();
            belongings.set(Source::Shoot, &namespace, &name, Some(&bytes));
            times.push(start.elapsed());
        }
    }
    figures.push(told("a change of a shoot's status", same));
    figures.push(told("a shoot moves to another seed", moved));
    Ok(figures)
}
