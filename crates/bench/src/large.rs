//! `bench large`: what the rules of a garden cost where its objects are large: Shoots of many pools, CloudProfiles of many versions, many projects of
//! many members. Each is measured at half its size, too: a figure that is more than about twice as large at twice the size tells of a rule that costs
//! more than it must.

use std::path::Path;
use std::time::Duration;

use clap::Args;
use gardener_apimachinery::pointer::Pointed;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::Figure;
use crate::landscape::{prepared, shoot, until};
use crate::running::Gardener;

/// How large objects are.
#[derive(Args)]
pub struct Arguments {
    /// Pools of a Shoot.
    #[arg(long, default_value_t = 50)]
    pools: usize,
    /// Kubernetes versions, and versions of a machine image, of a CloudProfile.
    #[arg(long, default_value_t = 2000)]
    versions: usize,
    /// Projects.
    #[arg(long, default_value_t = 500)]
    projects: usize,
    /// Members of each project.
    #[arg(long, default_value_t = 200)]
    members: usize,
    /// How often each request is made; the fastest counts.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    repeats: u32,
}

const CORE: (&str, &str) = ("core.gardener.cloud", "v1beta1");
const PROFILE: &str = "large";

fn api(client: &Client, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(CORE.0, CORE.1, kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Measures all of it in one landscape.
pub async fn measure(binary: &Path, arguments: &Arguments) -> anyhow::Result<Vec<Figure>> {
    let mut landscape = Gardener::up(binary, None)?;
    let client = landscape.client().await?;
    prepared(&client).await?;
    let mut figures = profiles_and_shoots(&client, arguments).await?;
    figures.extend(projects(&client, arguments).await?);
    Ok(figures)
}

/// The least time that a request takes.
async fn fastest(repeats: u32, mut request: impl AsyncFnMut(u32) -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let mut least = Duration::MAX;
    for number in 0..repeats {
        let begun = Instant::now();
        request(number).await?;
        least = least.min(begun.elapsed());
    }
    Ok(least)
}

/// The figures of something at half its size and at its size.
fn figures(what: &str, unit: &str, sizes: [usize; 2], times: &[Duration; 2]) -> Vec<Figure> {
    let millis = |time: &Duration| time.as_secs_f64() * 1000.0;
    let [half, whole] = times;
    let growth = millis(whole) / millis(half).max(f64::EPSILON);
    vec![
        Figure::new(
            format!("{what}, {} {unit}", sizes[0]),
            format!("{:.2} ms", millis(half)),
        ),
        Figure::new(
            format!("{what}, {} {unit}", sizes[1]),
            format!("{:.2} ms ({growth:.1} times)", millis(whole)),
        ),
    ]
}

/// A version that shoots may have; even numbers are versions of the profile.
fn version(number: usize) -> String {
    format!("1.33.{number}")
}

fn profile(versions: usize) -> Value {
    // one supported version of a minor, as there may be no more, and one that is not, in turns
    let numbers = || {
        (0..versions).map(|number| match number % 2 {
            0 => (version(number), "deprecated"),
            _ => (format!("1.{}.0", 100 + number), "supported"),
        })
    };
    let kubernetes: Vec<Value> = numbers()
        .map(|(version, class)| json!({"version": version, "classification": class}))
        .collect();
    let image = |(version, class): (String, &str)| json!({"version": version, "classification": class, "cri": [{"name": "containerd"}], "architectures": ["amd64"]});
    let images: Vec<Value> = numbers().map(image).collect();
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": PROFILE},
        "spec": {
            "type": "local", "regions": [{"name": "local"}],
            "kubernetes": {"versions": kubernetes},
            "machineImages": [{"name": "local", "versions": images}],
            "machineTypes": [{"name": "local", "cpu": "1", "gpu": "0", "memory": "8Gi"}],
        },
    })
}

/// A Shoot in the middle of its profile: nothing is found at the first look.
fn shoot_of(pools: usize, versions: usize) -> Value {
    let mut shoot = shoot("large", 1);
    let middle = version(versions / 4 * 2);
    let pool = |number: usize| {
        json!({
            "name": format!("p{number}"), "minimum": 1, "maximum": 2, "cri": {"name": "containerd"},
            "machine": {"type": "local", "image": {"name": "local", "version": middle}},
            "kubernetes": {"version": middle}, "labels": {"pool": format!("p{number}")},
            "taints": [{"key": "pool", "value": format!("p{number}"), "effect": "NoSchedule"}],
        })
    };
    shoot["spec"]["cloudProfile"] = json!({"name": PROFILE});
    shoot["spec"]["kubernetes"] = json!({"version": middle});
    shoot["spec"]["provider"]["workers"] = (0..pools).map(pool).collect();
    shoot
}

async fn profiles_and_shoots(client: &Client, arguments: &Arguments) -> anyhow::Result<Vec<Figure>> {
    let profiles = api(client, "CloudProfile", None);
    let apply = PatchParams::apply("bench").force();
    let sizes = [arguments.versions / 2, arguments.versions];
    let (mut made, mut changed) = (Vec::new(), Vec::new());
    for versions in sizes {
        let dry = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        let object: DynamicObject = serde_json::from_value(profile(versions))?;
        // the name is taken later
        let create = async |number: u32| {
            let mut object = object.clone();
            object.metadata.name = Some(format!("{PROFILE}-{number}"));
            profiles.create(&dry, &object).await?;
            Ok(())
        };
        made.push(fastest(arguments.repeats, create).await?);
        profiles
            .patch(PROFILE, &apply, &Patch::Apply(profile(versions)))
            .await?;
        let change = async |number: u32| {
            let patch = json!({"spec": {"caBundle": null}, "metadata": {"annotations": {"n": number.to_string()}}});
            profiles
                .patch(PROFILE, &PatchParams::default(), &Patch::Merge(patch))
                .await?;
            Ok(())
        };
        changed.push(fastest(arguments.repeats, change).await?);
    }
    let pair = |times: Vec<Duration>| <[Duration; 2]>::try_from(times).unwrap_or_default();
    let mut all = figures("CloudProfile created", "versions", sizes, &pair(made));
    all.extend(figures("CloudProfile changed", "versions", sizes, &pair(changed)));
    let shoots = api(client, "Shoot", Some("garden-local"));
    let dry = PatchParams { dry_run: true, ..apply };
    let pools = [arguments.pools / 2, arguments.pools];
    let mut times = Vec::new();
    for number in pools {
        let object = shoot_of(number, arguments.versions);
        let create = async |_| {
            shoots.patch("large", &dry, &Patch::Apply(&object)).await?;
            Ok(())
        };
        times.push(fastest(arguments.repeats, create).await?);
    }
    all.extend(figures(
        "Shoot created in the large profile",
        "pools",
        pools,
        &pair(times),
    ));
    Ok(all)
}

fn project(number: usize, members: usize) -> Value {
    let member = |member: usize| {
        let roles = ["admin", "viewer", "uam", "serviceaccountmanager"];
        let role = roles.get(member % roles.len()).copied().unwrap_or("viewer");
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": format!("user-{member}@example.com"), "role": role})
    };
    let members: Vec<Value> = (0..members).map(member).collect();
    json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project", "metadata": {"name": format!("p{number}")},
        "spec": {"namespace": format!("garden-p{number}"), "members": members},
    })
}

async fn projects(client: &Client, arguments: &Arguments) -> anyhow::Result<Vec<Figure>> {
    let all = api(client, "Project", None);
    let begun = Instant::now();
    let mut halves = Vec::new();
    let half = arguments.projects / 2;
    for range in [0..half, half..arguments.projects] {
        let since = Instant::now();
        for number in range {
            let object: DynamicObject = serde_json::from_value(project(number, arguments.members))?;
            all.create(&PostParams::default(), &object).await?;
        }
        halves.push(since.elapsed());
    }
    let created = begun.elapsed();
    until("all projects are ready", Duration::from_secs(1800), async || {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let listed = all.list(&ListParams::default()).await?.items;
        let is_ready = |own: &&DynamicObject| own.data.at("/status/phase") == Some(&json!("Ready"));
        let own = listed
            .iter()
            .filter(|own| own.metadata.name.as_deref() != Some("garden"));
        Ok(own.clone().count() >= arguments.projects && own.filter(is_ready).count() >= arguments.projects)
    })
    .await?;
    let ready = begun.elapsed();
    let sizes = [arguments.members / 2, arguments.members];
    let mut times = Vec::new();
    for members in sizes {
        let apply = PatchParams::apply("bench").force();
        all.patch("p0", &apply, &Patch::Apply(project(0, members))).await?;
        let change = async |number: u32| {
            let patch = json!({"spec": {"description": number.to_string()}});
            all.patch("p0", &PatchParams::default(), &Patch::Merge(patch)).await?;
            Ok(())
        };
        times.push(fastest(arguments.repeats, change).await?);
    }
    let shown = format!("{} projects × {} members", arguments.projects, arguments.members);
    let seconds = |time: Duration| time.as_secs_f64();
    let growth = match halves.as_slice() {
        [first, second] => seconds(*second) / seconds(*first).max(f64::EPSILON),
        _ => 0.0,
    };
    let mut found = vec![
        Figure::new(
            format!("{shown} created"),
            format!(
                "{:.1} s (the second half {growth:.1} times the first)",
                seconds(created)
            ),
        ),
        Figure::new(format!("{shown} ready"), format!("{:.1} s", seconds(ready))),
    ];
    let times = <[Duration; 2]>::try_from(times).unwrap_or_default();
    found.extend(figures("Project changed", "members", sizes, &times));
    Ok(found)
}
