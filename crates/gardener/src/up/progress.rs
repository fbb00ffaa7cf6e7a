//! Shows what happens: a live tree on a terminal, a line per change otherwise, or a JSON object per line.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use futures::TryStreamExt;
use gardener_apis::core::v1beta1::{Seed, Shoot};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use super::Output;

/// How long a landscape may take until nothing more is waited for.
const PATIENCE: Duration = Duration::from_secs(600);

/// Where progress goes.
pub struct Progress {
    form: Form,
    shoots: BTreeMap<String, Seen>,
    seeds: BTreeMap<String, bool>,
}

enum Form {
    Live(MultiProgress),
    Plain,
    Json,
}

#[derive(Default)]
struct Seen {
    state: String,
    percent: i32,
    tasks: String,
    done: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Chooses the form.
    pub fn new(output: Output) -> Self {
        let form = match output {
            Output::Json => Form::Json,
            Output::Auto if std::io::stdout().is_terminal() => Form::Live(MultiProgress::new()),
            Output::Auto | Output::Plain => Form::Plain,
        };
        Self {
            form,
            shoots: BTreeMap::new(),
            seeds: BTreeMap::new(),
        }
    }

    /// Tells something in words.
    pub fn note(&self, text: &str) {
        match &self.form {
            Form::Live(all) => {
                // a terminal that went away does not matter
                let _ = all.println(text);
            }
            Form::Plain => say!("{text}"),
            Form::Json => say!("{}", json!({"event": "note", "message": text})),
        }
    }

    /// Tells that an object was applied.
    pub fn applied(&self, object: &str) {
        match &self.form {
            Form::Live(_) => {}
            Form::Plain => say!("applied {object}"),
            Form::Json => say!("{}", json!({"event": "applied", "object": object})),
        }
    }

    /// Tells, for programs, that the landscape is up.
    pub fn ready(&self, url: &str, kubeconfig: &Path) {
        say!("{}", json!({"event": "ready", "url": url, "kubeconfig": kubeconfig}));
    }

    /// Follows the seeds until all are ready: a shoot that is created before would find none to be scheduled to.
    pub async fn watch_seeds(&mut self, client: &Client) -> anyhow::Result<()> {
        self.watch_until(client, Self::seeds_are_ready).await
    }

    /// Follows seeds and shoots until all seeds are ready and every shoot's operation has ended.
    pub async fn watch(&mut self, client: &Client) -> anyhow::Result<()> {
        self.watch_until(client, |seen| seen.seeds_are_ready() && seen.shoots_are_done())
            .await?;
        self.finish();
        Ok(())
    }

    async fn watch_until(&mut self, client: &Client, is_complete: fn(&Self) -> bool) -> anyhow::Result<()> {
        let seeds = Api::<Seed>::all(client.clone());
        let shoots = Api::<Shoot>::all(client.clone());
        for seed in seeds.list(&kube::api::ListParams::default()).await? {
            self.see_seed(&seed);
        }
        for shoot in shoots.list(&kube::api::ListParams::default()).await? {
            self.see_shoot(&shoot);
        }
        let mut seed_changes = std::pin::pin!(watcher(seeds, watcher::Config::default()).applied_objects());
        let mut shoot_changes = std::pin::pin!(watcher(shoots, watcher::Config::default()).applied_objects());
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while !is_complete(self) {
            tokio::select! {
                seed = seed_changes.try_next() => if let Some(seed) = seed? { self.see_seed(&seed) },
                shoot = shoot_changes.try_next() => if let Some(shoot) = shoot? { self.see_shoot(&shoot) },
                () = tokio::time::sleep_until(deadline) => {
                    self.note("not everything is ready yet; `kubectl get seeds,shoots -A` tells how far it is");
                    break;
                }
            }
        }
        Ok(())
    }

    fn seeds_are_ready(&self) -> bool {
        self.seeds.values().all(|ready| *ready)
    }

    fn shoots_are_done(&self) -> bool {
        self.shoots.values().all(|seen| seen.done)
    }

    fn see_seed(&mut self, seed: &Seed) {
        let conditions = &seed.status.conditions;
        let ready = ["GardenletReady", "SeedSystemComponentsHealthy", "ExtensionsReady"]
            .iter()
            .all(|wanted| {
                conditions
                    .iter()
                    .any(|own| own.r#type == *wanted && own.status == "True")
            });
        let name = seed.name_any();
        if self.seeds.insert(name.clone(), ready) == Some(ready) {
            return;
        }
        let state = if ready { "ready" } else { "not ready yet" };
        match &self.form {
            Form::Json => say!("{}", json!({"event": "seed", "seed": name, "ready": ready})),
            _ => self.note(&format!("seed {name}: {state}")),
        }
    }

    fn see_shoot(&mut self, shoot: &Shoot) {
        let name = format!("{}/{}", shoot.project_namespace(), shoot.name_any());
        let seen = self.shoots.entry(name.clone()).or_default();
        let Some(operation) = &shoot.status.last_operation else {
            seen.done = false;
            return;
        };
        let state = format!("{} {}", operation.r#type, operation.state);
        let settled = operation.state == "Succeeded" || operation.state == "Failed";
        let healthy = shoot.status.conditions.len() >= 4
            && shoot
                .status
                .conditions
                .iter()
                .all(|condition| condition.status == "True");
        seen.done = operation.state == "Failed" || (settled && healthy);
        if seen.state == state && seen.percent == operation.progress && seen.tasks == operation.description {
            return;
        }
        seen.state.clone_from(&state);
        seen.percent = operation.progress;
        seen.tasks.clone_from(&operation.description);
        match &self.form {
            Form::Json => say!(
                "{}",
                json!({"event": "shoot", "shoot": name, "operation": operation.r#type, "state": operation.state, "progress": operation.progress, "description": operation.description})
            ),
            Form::Plain => say!(
                "shoot {name}: {state} ({}%) {}",
                operation.progress,
                operation.description
            ),
            Form::Live(all) => {
                let bar = seen.bar.get_or_insert_with(|| {
                    let style = ProgressStyle::with_template("{prefix} [{bar:30}] {pos:>3}%{msg}")
                        .unwrap_or_else(|_| ProgressStyle::default_bar());
                    all.add(
                        ProgressBar::new(100)
                            .with_style(style.progress_chars("=> "))
                            .with_prefix(format!("shoot {name}")),
                    )
                });
                bar.set_position(u64::try_from(operation.progress).unwrap_or(0));
                let tasks: Vec<&str> = operation.description.split(", ").collect();
                let last = tasks.len().saturating_sub(1);
                let tree: String = tasks
                    .iter()
                    .enumerate()
                    .map(|(at, task)| format!("\n  {} {task}", if at == last { "└─" } else { "├─" }))
                    .collect();
                bar.set_message(format!(" {state}{tree}"));
            }
        }
    }

    fn finish(&mut self) {
        for seen in self.shoots.values_mut() {
            if let Some(bar) = seen.bar.take() {
                bar.finish();
            }
        }
    }
}
