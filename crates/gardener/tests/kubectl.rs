//! Black-box tests: the real binary on one side, the real `kubectl` on the other, nothing shared but a kubeconfig.
//! Where there is no `kubectl` on `PATH` the tests say that they were skipped.
#![forbid(unsafe_code)]
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests end a test so")]

#[path = "kubectl/alone.rs"]
mod alone;
#[path = "kubectl/controller_manager.rs"]
mod controller_manager;
#[path = "kubectl/garden.rs"]
mod garden;
#[path = "kubectl/harness.rs"]
mod harness;
#[path = "kubectl/maintenance.rs"]
mod maintenance;
#[path = "kubectl/refusals.rs"]
mod refusals;
#[path = "kubectl/seed.rs"]
mod seed;
#[path = "kubectl/shoot.rs"]
mod shoot;
#[path = "kubectl/standalone.rs"]
mod standalone;
#[path = "kubectl/upstream_examples.rs"]
mod upstream_examples;
#[path = "kubectl/workload.rs"]
mod workload;

use gardener_store::process;
use harness::Landscape;

/// Runs `test` on a landscape of its own, or says why not.
fn on_landscape(arguments: &[&str], test: impl FnOnce(&Landscape)) {
    if !harness::kubectl_exists() {
        println!("skipped: there is no kubectl on PATH");
        return;
    }
    test(&Landscape::up(arguments));
}

#[test]
fn garden_answers_kubectl() {
    on_landscape(&["--no-shoot"], |landscape| {
        let garden = landscape.garden();
        garden::discovery(&garden);
        garden::examples_unedited(&garden);
        garden::tables(&garden);
        garden::describe_and_explain(&garden);
        garden::patches(&garden);
        garden::edits(&garden, landscape);
        garden::server_side_apply_and_diff(&garden, landscape);
        garden::watch(&garden);
        garden::access(&garden);
        refusals::all(&garden);
    });
}

#[test]
fn controllers_run_by_themselves() {
    controller_manager::refusals();
    match harness::kubectl_exists() {
        true => controller_manager::two_replicas(),
        false => println!("skipped: there is no kubectl on PATH"),
    }
}

/// kube-apiserver's place; `GARDENER_TEST_ETCD` names the etcd.
#[test]
fn one_cluster_on_etcd_answers_kubectl() {
    standalone::refused_arguments();
    match process::program() {
        Some(etcd) if harness::kubectl_exists() => standalone::two_servers(&standalone::Place::new(&etcd)),
        Some(_) => println!("skipped: there is no kubectl on PATH"),
        None => {}
    }
}

/// A garden's API without controllers; `GARDENER_TEST_ETCD` names the etcd.
#[test]
fn a_garden_alone_answers_kubectl() {
    alone::refused_arguments();
    if !harness::kubectl_exists() {
        println!("skipped: there is no kubectl on PATH");
        return;
    }
    alone::in_a_folder();
    if let Some(etcd) = process::program() {
        alone::in_etcd(&etcd);
    }
}

/// A garden without anything of its own.
#[test]
fn upstreams_examples_get_their_answers() {
    if !harness::kubectl_exists() {
        println!("skipped: there is no kubectl on PATH");
        return;
    }
    let dir = tempfile::tempdir().expect("folder");
    let server = alone::Server::start(&dir, "garden", &["--memory".to_owned()]);
    upstream_examples::all(&server.kubectl);
}

/// What goes by the schemas of the API, which versions of `kubectl` read in different forms.
#[test]
fn garden_answers_every_version_of_kubectl() {
    let versions = harness::other_versions();
    if versions.is_empty() {
        println!("skipped: there is no kubectl.1.27 or other version beside kubectl");
        return;
    }
    on_landscape(&["--no-shoot"], |landscape| {
        for version in versions {
            let garden = landscape.garden().with_program(&version);
            garden::examples_unedited(&garden);
            garden::describe_and_explain(&garden);
            garden::server_side_apply_and_diff(&garden, landscape);
            garden::watch(&garden);
            garden::access(&garden);
            refusals::all(&garden);
        }
    });
}

#[test]
fn seed_runs_workload() {
    on_landscape(&["--no-shoot"], seed::all);
}

#[test]
fn shoot_lives_its_life() {
    on_landscape(&["--no-shoot"], shoot::life);
}

#[test]
fn maintenance_follows_versions() {
    on_landscape(&["--no-shoot"], maintenance::all);
}
