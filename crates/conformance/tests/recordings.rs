//! Our API server answers every sequence as kube-apiserver did when it was recorded, but for steps that say why not.

use futures::StreamExt;
use gardener_conformance::sequence::{Recording, Sequence, Step};
use gardener_conformance::{compare, player, sequence};
use gardener_testkit::cluster::MemoryClusters;

/// How many sequences run at a time.
const AT_ONCE: usize = 16;

#[tokio::test(start_paused = true)]
async fn our_answers_are_kube_apiservers() -> anyhow::Result<()> {
    let clusters = MemoryClusters::new();
    let client = clusters.open("conformance").await;
    let mut cases: Vec<(String, Sequence, Recording)> = Vec::new();
    for topic in sequence::topics()? {
        let recorded = topic.recorded()?;
        for sequence in topic.sequences {
            let name = format!("{}: {}", topic.name, sequence.name);
            let found = recorded.iter().find(|own| own.name == sequence.name).cloned();
            let found = found.ok_or_else(|| anyhow::anyhow!("{name} was never recorded"))?;
            cases.push((name, sequence, found));
        }
    }
    let mut wrong = futures::stream::iter(cases.iter().enumerate())
        .map(|(number, (name, sequence, recorded))| {
            let client = client.clone();
            async move {
                let ours = player::play(&client, sequence, &format!("sequence-{number}")).await;
                let wrong = match ours {
                    Ok(ours) => compare::differences(sequence, recorded, &ours),
                    Err(error) => vec![format!("{error:#}")],
                };
                (!wrong.is_empty()).then(|| format!("{name}\n  {}", wrong.join("\n  ")))
            }
        })
        .buffered(AT_ONCE);
    let mut report = Vec::new();
    while let Some(found) = wrong.next().await {
        report.extend(found);
    }
    let steps: Vec<&Step> = cases.iter().flat_map(|(_, sequence, _)| &sequence.steps).collect();
    let excused = steps.iter().filter(|step| step.differs.is_some()).count();
    println!("{} sequences, {} steps, {excused} differ", cases.len(), steps.len());
    anyhow::ensure!(
        report.is_empty(),
        "{} of {} sequences:\n{}",
        report.len(),
        cases.len(),
        report.join("\n")
    );
    Ok(())
}
