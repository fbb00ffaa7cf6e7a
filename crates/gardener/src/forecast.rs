//! `gardener forecast`: what maintenance, schedules and quotas will do to which shoot, and when.

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use gardener_apimachinery::clock::Clock;
use gardener_forecast::calendar::calendar;
use gardener_forecast::{Entry, Forecast, LeftOut, Options, Origin, Outcome, forecast};
use gardener_rules::maintenance::Settings;
use k8s_openapi::jiff::Timestamp;

use crate::garden::{Source, table};

/// Arguments of `gardener forecast`.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    source: Source,
    /// For how many days.
    #[arg(long, default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=3660))]
    days: u32,
    /// From when, as in 2026-01-31T12:00:00Z. Default: now.
    #[arg(long, value_name = "TIME")]
    from: Option<Timestamp>,
    /// Where in its window a shoot is maintained is chance; this number fixes it. A garden's own chance is not known outside.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed_number: u64,
    /// Of what to tell; of all by default.
    #[arg(long, value_enum, value_name = "TOPIC", value_delimiter = ',')]
    only: Vec<Topic>,
    /// How to print it; `ics` is a calendar file.
    #[arg(long, short, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Table,
    Json,
    Ics,
}

/// What a forecast tells of.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Topic {
    /// Updates, forced ones, rotations of credentials, and failures.
    Maintenance,
    /// Turns by schedules.
    Hibernation,
    /// Shoots whose lifetime ends by their quota.
    End,
}

impl Topic {
    fn of(entry: &Entry) -> Self {
        match entry.outcome {
            Outcome::Hibernated | Outcome::WokenUp => Self::Hibernation,
            Outcome::Deleted => Self::End,
            Outcome::Updated | Outcome::Failed | Outcome::Recovered => Self::Maintenance,
        }
    }
}

/// Runs the command.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let mut inventory = arguments.source.read().await?;
    let left_out = inventory.leave_out_without_profile();
    let told: Vec<String> = left_out
        .iter()
        .map(|LeftOut { shoot, missing }| format!("shoot {shoot} names {missing}"))
        .collect();
    if !told.is_empty() && inventory.origin == Origin::Manifests {
        bail!(
            "cloud profiles are missing: {}; give their manifests with -f, too",
            told.join(", ")
        );
    }
    for told in &told {
        eprintln!("warning: left out: {told}, which is not there");
    }
    let options = Options {
        from: arguments.from.unwrap_or_else(|| Clock::system().time().0),
        days: arguments.days,
        seed_number: arguments.seed_number,
        settings: Settings::default(),
    };
    let mut forecast = tokio::task::spawn_blocking(move || forecast(&inventory, &options))
        .await
        .context("the forecast ended early")??;
    let only = arguments.only;
    forecast
        .entries
        .retain(|entry| only.is_empty() || only.contains(&Topic::of(entry)));
    match arguments.output {
        Output::Table => print!("{}", text(&forecast)),
        Output::Json => {
            let mut document = serde_json::to_value(&forecast)?;
            if let Some(members) = document.as_object_mut() {
                members.insert("leftOut".to_owned(), serde_json::to_value(&left_out)?);
            }
            println!("{}", serde_json::to_string_pretty(&document)?);
        }
        Output::Ics => print!("{}", calendar(&forecast)),
    }
    Ok(())
}

fn text(forecast: &Forecast) -> String {
    let rows: Vec<Vec<String>> = forecast.entries.iter().flat_map(lines).collect();
    let updates = |entries: &dyn Fn(&Entry) -> bool| forecast.entries.iter().filter(|entry| entries(entry)).count();
    let summary = format!(
        "{} shoots from {} to {}: {} updates, {} of them forced; {} failures; {} hibernations; {} ends\n",
        forecast.shoots,
        seconds(forecast.from),
        seconds(forecast.until),
        updates(&|entry| !entry.changes.is_empty()),
        updates(&|entry| entry.changes.iter().any(|change| change.forced)),
        updates(&|entry| entry.outcome == Outcome::Failed),
        updates(&|entry| entry.outcome == Outcome::Hibernated),
        updates(&|entry| entry.outcome == Outcome::Deleted),
    );
    if rows.is_empty() {
        return summary;
    }
    format!("{}\n{summary}", table(&["WHEN", "SHOOT", "HOW", "WHAT", "WHY"], &rows))
}

fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The rows of an entry: one for each version that changes, and one for what fails or has no version.
fn lines(entry: &Entry) -> Vec<Vec<String>> {
    let row = |how: &str, what: String, why: String| {
        let shoot = format!("{}/{}", entry.namespace, entry.shoot);
        vec![seconds(entry.time), shoot, how.to_owned(), what, why]
    };
    let mut rows: Vec<Vec<String>> = entry
        .changes
        .iter()
        .map(|change| {
            let how = if change.forced { "forced" } else { "automatic" };
            row(how, change.to_string(), change.reason.clone())
        })
        .collect();
    match (entry.outcome, &entry.failure_reason) {
        (Outcome::Failed, why) => rows.push(row(
            "fails",
            "again in each window".to_owned(),
            why.clone().unwrap_or_default(),
        )),
        (Outcome::Hibernated, _) => rows.push(row("hibernates", String::new(), entry.description.clone())),
        (Outcome::WokenUp, _) => rows.push(row("wakes up", String::new(), entry.description.clone())),
        (Outcome::Deleted, _) => rows.push(row("is deleted", String::new(), entry.description.clone())),
        (Outcome::Recovered, _) => rows.push(row("recovers", String::new(), entry.description.clone())),
        (Outcome::Updated, _) if rows.is_empty() => {
            rows.push(row("changes", String::new(), entry.description.clone()));
        }
        (Outcome::Updated, _) => {}
    }
    rows
}
