//! `bench kill`: kills the process at random moments while a shoot lives its life, starts it again on the same data, and looks
//! whether everything that was acknowledged is there. In the end the work completes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{bail, ensure};
use clap::Args;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use crate::Figure;
use crate::landscape::{apply, is_settled, prepared, shoot, shoots, until};
use crate::running::Gardener;

const LABEL: &str = "bench=acknowledged";
const CONFIRMATION: &str = "confirmation.gardener.cloud/deletion";

/// Arguments of `bench kill`.
#[derive(Args)]
pub struct Arguments {
    /// Decides when to kill.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How often to kill.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    times: u32,
    /// The longest time between two kills, in milliseconds.
    #[arg(long, default_value_t = 3000, value_parser = clap::value_parser!(u64).range(50..))]
    longest: u64,
}

/// What is wanted of the shoot; one follows the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Create,
    Hibernate,
    WakeUp,
    Scale,
    Delete,
}

impl Step {
    const ALL: [Self; 5] = [Self::Create, Self::Hibernate, Self::WakeUp, Self::Scale, Self::Delete];

    /// Says what is wanted. Saying it twice is as saying it once.
    async fn ask(self, client: &Client) -> anyhow::Result<()> {
        let api = shoots(client);
        let merge = async |patch: serde_json::Value| {
            api.patch("local", &PatchParams::default(), &Patch::Merge(patch))
                .await
                .map(|_| ())
        };
        match self {
            Self::Create => apply(client, &shoot("local", 1)).await?,
            Self::Hibernate => merge(json!({"spec": {"hibernation": {"enabled": true}}})).await?,
            Self::WakeUp => merge(json!({"spec": {"hibernation": {"enabled": false}}})).await?,
            Self::Scale => apply(client, &shoot("local", 2)).await?,
            Self::Delete => {
                if api.get_opt("local").await?.is_some() {
                    merge(json!({"metadata": {"annotations": {CONFIRMATION: "true"}}})).await?;
                    api.delete("local", &DeleteParams::default()).await?;
                }
            }
        }
        Ok(())
    }

    async fn is_done(self, client: &Client) -> anyhow::Result<bool> {
        let shoot = shoots(client).get_opt("local").await?;
        Ok(match (self, shoot) {
            (Self::Delete, shoot) => shoot.is_none(),
            (_, None) => false,
            (Self::Hibernate, Some(shoot)) => is_settled(&shoot) && shoot.status.hibernated,
            (_, Some(shoot)) => is_settled(&shoot) && !shoot.status.hibernated,
        })
    }
}

/// Numbered ConfigMaps: which were acknowledged, and what they say.
#[derive(Default)]
struct Ledger {
    acknowledged: BTreeMap<u64, String>,
    next: u64,
}

impl Ledger {
    /// Writes one after the other until told to stop or the server is gone.
    async fn write(mut self, client: Client, stop: Arc<AtomicBool>) -> Self {
        let api: Api<ConfigMap> = Api::namespaced(client, "default");
        while !stop.load(Ordering::Relaxed) {
            let (number, text) = (self.next, format!("text {}", self.next));
            // a number whose answer was lost is not used again
            self.next += 1;
            let object = ConfigMap {
                metadata: kube::api::ObjectMeta {
                    name: Some(format!("bench-{number}")),
                    labels: Some(BTreeMap::from([("bench".to_owned(), "acknowledged".to_owned())])),
                    ..Default::default()
                },
                data: Some(BTreeMap::from([("text".to_owned(), text.clone())])),
                ..Default::default()
            };
            if api.create(&PostParams::default(), &object).await.is_err() {
                // the server is going away; what was asked is not acknowledged
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            }
            self.acknowledged.insert(number, text);
        }
        self
    }

    /// Everything acknowledged is there, as it was written.
    async fn check(&self, client: &Client) -> anyhow::Result<()> {
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
        let list = api.list(&ListParams::default().labels(LABEL)).await?;
        let found: BTreeMap<String, String> = list
            .into_iter()
            .map(|object| {
                (
                    object.name_any(),
                    object.data.unwrap_or_default().remove("text").unwrap_or_default(),
                )
            })
            .collect();
        let lost: Vec<u64> = self
            .acknowledged
            .iter()
            .filter(|(number, text)| found.get(&format!("bench-{number}")) != Some(text))
            .map(|(number, _)| *number)
            .collect();
        ensure!(lost.is_empty(), "acknowledged, but lost: {lost:?}");
        Ok(())
    }
}

/// Kills, starts, checks; and in the end lets the shoot's life come to its end. What was stored is kept if something is wrong with it.
pub async fn measure(binary: &Path, arguments: &Arguments) -> anyhow::Result<Vec<Figure>> {
    let folder = tempfile::tempdir()?;
    let lived = live(binary, arguments, folder.path()).await;
    lived.map_err(|error| {
        let kept = folder.keep();
        error.context(format!(
            "`gardener up --data-dir {}` shows what is left",
            kept.display()
        ))
    })
}

async fn live(binary: &Path, arguments: &Arguments, folder: &Path) -> anyhow::Result<Vec<Figure>> {
    let mut chance = StdRng::seed_from_u64(arguments.seed);
    let mut ledger = Ledger::default();
    let mut kills: BTreeMap<Step, u32> = BTreeMap::new();
    // an equal share of the kills for each step
    let share = arguments.times.div_ceil(5);
    let mut killed = 0;
    for step in Step::ALL {
        let until_here = (killed + share).min(arguments.times);
        while killed < until_here {
            let mut landscape = Gardener::up(binary, Some(folder))?;
            let client = landscape.client().await?;
            ledger.check(&client).await?;
            let stop = Arc::new(AtomicBool::new(false));
            let writer = tokio::spawn(std::mem::take(&mut ledger).write(client.clone(), stop.clone()));
            let moment = Duration::from_millis(chance.random_range(0..arguments.longest));
            let asked = tokio::time::timeout(moment, async {
                prepared(&client).await?;
                finish(step, &client).await
            });
            let began = tokio::time::Instant::now();
            if let Ok(Err(error)) = asked.await {
                bail!("{step:?} with seed {}: {error:#}", arguments.seed);
            }
            tokio::time::sleep_until(began + moment).await;
            landscape.kill().await?;
            stop.store(true, Ordering::Relaxed);
            ledger = writer.await?;
            killed += 1;
            *kills.entry(step).or_default() += 1;
        }
        // the step comes to its end before the next begins
        let mut landscape = Gardener::up(binary, Some(folder))?;
        let client = landscape.client().await?;
        ledger.check(&client).await?;
        prepared(&client).await?;
        finish(step, &client).await?;
        landscape.kill().await?;
    }
    let mut landscape = Gardener::up(binary, Some(folder))?;
    let client = landscape.client().await?;
    ledger.check(&client).await?;
    let mut figures = vec![
        Figure::new("seed", arguments.seed),
        Figure::new("kills", killed),
        Figure::new("writes acknowledged", ledger.acknowledged.len()),
        Figure::new("writes lost", 0),
    ];
    figures.extend(
        kills
            .iter()
            .map(|(step, count)| Figure::new(format!("  killed during {step:?}"), count)),
    );
    Ok(figures)
}

async fn finish(step: Step, client: &Client) -> anyhow::Result<()> {
    until(&format!("{step:?} is taken"), Duration::from_secs(60), async || {
        step.ask(client).await.map(|()| true)
    })
    .await?;
    until(&format!("{step:?} is done"), Duration::from_secs(300), async || {
        step.is_done(client).await
    })
    .await
}
