//! `gardener versions`: which versions cloud profiles list, and how many shoots use each.

use clap::{Args, ValueEnum};
use gardener_apimachinery::clock::Clock;
use gardener_forecast::LeftOut;
use gardener_forecast::versions::{Profile, Version, list};
use k8s_openapi::jiff::Timestamp;

use crate::garden::{Source, table};

/// Arguments of `gardener versions`.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    source: Source,
    /// How to print them.
    #[arg(long, short, value_enum, default_value = "table")]
    output: Output,
}

#[derive(Clone, Copy, ValueEnum)]
enum Output {
    Table,
    Json,
    Yaml,
}

/// Runs the command.
pub async fn run(arguments: Arguments) -> anyhow::Result<()> {
    let inventory = arguments.source.read().await?;
    for LeftOut { shoot, missing } in inventory.without_profile() {
        eprintln!("warning: the cloud profile of shoot {shoot} is not there: {missing}");
    }
    let now = Clock::system().now();
    let profiles = list(&inventory, now);
    match arguments.output {
        Output::Table => print!("{}", rows(&profiles)),
        Output::Json => println!("{}", serde_json::to_string_pretty(&profiles)?),
        Output::Yaml => print!("{}", serde_saphyr::to_string(&profiles)?),
    }
    Ok(())
}

fn rows(profiles: &[Profile]) -> String {
    let mut rows = Vec::new();
    for profile in profiles {
        let name = match &profile.namespace {
            Some(namespace) => format!("{namespace}/{}", profile.name),
            None => profile.name.clone(),
        };
        for version in &profile.versions {
            rows.push(vec![
                name.clone(),
                version.of.clone(),
                version.version.clone(),
                version.classification.clone(),
                version.expires.map_or_else(|| "-".to_owned(), |time| time.to_string()),
                version.shoots.to_string(),
                next(version),
            ]);
        }
    }
    let headings = ["PROFILE", "OF", "VERSION", "CLASS", "EXPIRES", "SHOOTS", "NEXT"];
    table(&headings, &rows)
}

/// The stage that comes next, where it is not the end that stands in its own column.
fn next(version: &Version) -> String {
    let told = |from: Timestamp| version.expires == Some(from);
    let next = version.next.first().filter(|next| !told(next.from));
    next.map_or_else(String::new, |next| {
        format!("{} from {}", next.classification, next.from)
    })
}
