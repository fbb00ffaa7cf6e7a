use k8s_openapi::api::apps::v1::{DeploymentSpec, ReplicaSetStatus};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};

use super::*;

fn deployment(total: i32, image: &str) -> Deployment {
    let mut deployment = Deployment::default();
    deployment.metadata.name = Some("web".into());
    deployment.metadata.uid = Some("u".into());
    deployment.spec = DeploymentSpec {
        replicas: Some(total),
        template: PodTemplateSpec {
            spec: Some(PodSpec {
                containers: vec![Container {
                    image: Some(image.into()),
                    ..Container::default()
                }],
                ..PodSpec::default()
            }),
            ..PodTemplateSpec::default()
        },
        ..DeploymentSpec::default()
    };
    deployment
}

/// Does what the steps say; replicas are there and available at once.
fn follow(deployment: &mut Deployment, sets: &mut Vec<ReplicaSet>, steps: &[Step]) {
    for step in steps {
        match step {
            Step::Create(set) => sets.push((**set).clone()),
            Step::Update {
                name,
                replicas,
                annotations,
            } => {
                let set = sets.iter_mut().find(|set| set.name_any() == *name).unwrap();
                set.spec.replicas = Some(*replicas);
                set.annotations_mut().extend(annotations.clone());
            }
            Step::SetRevision(revision) => {
                deployment
                    .annotations_mut()
                    .insert(sets_of::REVISION.into(), revision.to_string());
            }
            Step::Delete(name) => sets.retain(|set| set.name_any() != *name),
        }
    }
    for set in sets {
        let count = wanted(set);
        set.status = Some(ReplicaSetStatus {
            replicas: count,
            available_replicas: Some(count),
            ..ReplicaSetStatus::default()
        });
    }
}

/// Follows decisions until there are none; answers the least available and the most there at any time.
fn settle(deployment: &mut Deployment, sets: &mut Vec<ReplicaSet>) -> (i32, i32) {
    let (mut least, mut most) = (i32::MAX, 0);
    for _ in 0..100 {
        let steps = decide(deployment, sets, &|_| false);
        if steps.is_empty() {
            return (least, most);
        }
        follow(deployment, sets, &steps);
        let all: i32 = sets.iter().map(wanted).sum();
        least = least.min(all);
        most = most.max(all);
    }
    panic!("it never settles: {sets:?}");
}

#[test]
fn rolling_updates_stay_within_their_bounds_and_count_revisions() {
    let mut web = deployment(10, "a");
    let mut sets = Vec::new();
    settle(&mut web, &mut sets);
    assert_eq!((sets.len(), wanted(&sets[0]), revision(&sets[0])), (1, 10, 1));
    web.spec.template.spec.as_mut().unwrap().containers[0].image = Some("b".into());
    web.spec.strategy = serde_json::from_value(serde_json::json!(
        {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}
    ))
    .unwrap();
    let (least, most) = settle(&mut web, &mut sets);
    assert!(least >= 8 && most <= 13, "{least} {most}");
    assert_eq!(sets.iter().map(wanted).collect::<Vec<_>>(), [0, 10]);
    assert_eq!(web.annotations()[sets_of::REVISION], "2");
    // undo: the old template is the newest revision
    web.spec.template.spec.as_mut().unwrap().containers[0].image = Some("a".into());
    settle(&mut web, &mut sets);
    assert_eq!(sets.iter().map(wanted).collect::<Vec<_>>(), [10, 0]);
    assert_eq!(web.annotations()[sets_of::REVISION], "3");
    assert_eq!(sets[0].annotations()["deployment.kubernetes.io/revision-history"], "1");
}

#[test]
fn recreate_waits_for_the_old_pods_to_go() {
    let mut web = deployment(2, "a");
    web.spec.strategy = serde_json::from_value(serde_json::json!({"type": "Recreate"})).unwrap();
    let mut sets = Vec::new();
    settle(&mut web, &mut sets);
    web.spec.template.spec.as_mut().unwrap().containers[0].image = Some("b".into());
    let steps = decide(&web, &sets, &|_| true);
    follow(&mut web, &mut sets, &steps);
    assert_eq!(wanted(&sets[0]), 0);
    assert_eq!(decide(&web, &sets, &|_| true), []);
    settle(&mut web, &mut sets);
    assert_eq!(sets.iter().map(wanted).collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn scaling_paused_deployments_does_not_roll() {
    let mut web = deployment(4, "a");
    let mut sets = Vec::new();
    settle(&mut web, &mut sets);
    web.spec.paused = Some(true);
    web.spec.replicas = Some(6);
    web.spec.template.spec.as_mut().unwrap().containers[0].image = Some("b".into());
    settle(&mut web, &mut sets);
    assert_eq!(sets.iter().map(wanted).collect::<Vec<_>>(), [6]);
}

#[test]
fn old_sets_beyond_the_limit_go() {
    let mut web = deployment(1, "a");
    web.spec.revision_history_limit = Some(1);
    let mut sets = Vec::new();
    for image in ["a", "b", "c", "d"] {
        web.spec.template.spec.as_mut().unwrap().containers[0].image = Some(image.into());
        settle(&mut web, &mut sets);
    }
    assert_eq!(sets.iter().map(revision).collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn counts_and_percentages() {
    let percent = IntOrString::String("25%".into());
    assert_eq!(scaled(Some(&percent), 10, true, 0), 3);
    assert_eq!(scaled(Some(&percent), 10, false, 0), 2);
    assert_eq!(scaled(Some(&IntOrString::Int(4)), 10, false, 0), 4);
    assert_eq!(scaled(None, 10, false, 7), 7);
}
