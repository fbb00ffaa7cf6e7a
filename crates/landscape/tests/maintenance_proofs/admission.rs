//! The chapter's worked cases of what a garden lets people choose, VA-1 to VA-19, through its API. VA-16 is told beside the rule.

use super::*;

const WINDOW: (&str, &str) = ("220000+0000", "230000+0000");

fn listed(versions: &[(&str, &str)]) -> Value {
    let versions = versions.iter().map(|(version, class)| match *class {
        "" => json!({"version": version}),
        "expired" => json!({"version": version, "expirationDate": "2025-12-31T00:00:00Z"}),
        class => json!({"version": version, "classification": class}),
    });
    versions.collect()
}

/// A cloud profile of this name; what has expired is offered first, as otherwise it would not be stored.
async fn offer(garden: &Garden, name: &str, kubernetes: &[(&str, &str)], images: Value) {
    let profile = |kubernetes: Value, images: Value| {
        let mut profile = cloud_profile(kubernetes, images);
        profile["metadata"]["name"] = name.into();
        profile
    };
    let alive = |list: &Value| -> Value {
        let mut list = list.clone();
        for version in list.as_array_mut().unwrap() {
            version.as_object_mut().unwrap().remove("expirationDate");
        }
        list
    };
    let mut all_alive = images.clone();
    for image in all_alive.as_array_mut().unwrap() {
        image["versions"] = alive(&image["versions"]);
    }
    let kubernetes = listed(kubernetes);
    garden.apply(profile(alive(&kubernetes), all_alive)).await.unwrap();
    garden.apply(profile(kubernetes, images)).await.unwrap();
}

fn os(versions: &[(&str, &str)]) -> Value {
    json!([{"name": "os", "versions": listed(versions)}])
}

fn manifest(name: &str, profile: &str, version: &str, pools: Value) -> Value {
    let mut shoot = shoot(name, version, WINDOW, (false, false), pools);
    shoot["spec"]["cloudProfile"]["name"] = profile.into();
    shoot
}

fn one_pool() -> Value {
    json!([pool("one", ("os", "1.0.0"), None)])
}

/// What the garden says of a change: nothing, or why not.
fn told<T>(answer: Result<T, kube::Error>) -> String {
    answer.err().map(|error| error.to_string()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn va_1_to_11_kubernetes_versions() {
    let garden = Garden::open(1, "2026-01-01T12:00:00Z").await;
    garden.project().await;
    let few = [("1.32.1", "preview"), ("1.31.4", "supported"), ("1.31.2", "deprecated")];
    offer(&garden, "few", &few, os(&[("1.0.0", "")])).await;
    let many = [
        ("1.34.0", ""),
        ("1.33.0", ""),
        ("1.32.5", ""),
        ("1.32.0", "expired"),
        ("1.31.4", ""),
        ("1.30.3", ""),
        ("1.29.3", ""),
    ];
    offer(&garden, "many", &many, os(&[("1.0.0", "")])).await;
    // what is created: id, profile, version, the pool's version, and what is refused
    let suitable = "couldn't find a suitable version";
    let table = [
        ("va-1", "few", "1.32", None, suitable),
        ("va-2", "few", "1.32.1", None, ""),
        ("va-3a", "few", "1.31", None, ""),
        ("va-3b", "few", "1", None, ""),
        ("va-3c", "few", "", None, ""),
        ("va-4", "many", "1.32.0", None, "Unsupported value: \"1.32.0\""),
        ("va-6", "many", "1.31.4", None, ""),
        ("va-7", "many", "1.31.4", None, ""),
        ("va-8", "many", "1.33.0", None, ""),
        (
            "va-9",
            "many",
            "1.32.5",
            Some("1.33.0"),
            "must not be higher than control plane version",
        ),
        (
            "va-10",
            "many",
            "1.33.0",
            Some("1.29.3"),
            "must be at most three minor versions behind",
        ),
        ("va-11", "many", "1.33.0", Some("1.30.3"), ""),
    ];
    for (name, profile, version, pinned, why) in table {
        let pools = json!([pool("one", ("os", "1.0.0"), pinned)]);
        let mut shoot = manifest(name, profile, version, pools);
        if version.is_empty() {
            shoot["spec"]["kubernetes"].as_object_mut().unwrap().remove("version");
        }
        let answer = told(garden.create(shoot).await);
        assert!(
            answer.contains(why) && answer.is_empty() == why.is_empty(),
            "{name}: {answer}"
        );
    }
    for name in ["va-3a", "va-3b", "va-3c"] {
        let found = garden.shoots().get(name).await.unwrap();
        assert_eq!(found.spec.kubernetes_version(), "1.31.4", "{name}");
    }
    let to = |version: &str| json!({"spec": {"kubernetes": {"version": version}}});
    let pinned = json!([
        pool("one", ("os", "1.0.0"), None),
        pool("two", ("os", "1.0.0"), Some("1.32.0"))
    ]);
    for (name, patch, why) in [
        ("va-3a", to("1.31.2"), "kubernetes version downgrade is not supported"), // VA-5
        (
            "va-6",
            to("1.33.0"),
            "kubernetes version upgrade cannot skip a minor version",
        ),
        ("va-7", to("1.32.0"), ""),
        (
            "va-8",
            json!({"spec": {"provider": {"workers": pinned}}}),
            "Unsupported value: \"1.32.0\"",
        ),
    ] {
        let answer = told(garden.patch(name, patch).await);
        assert!(
            answer.contains(why) && answer.is_empty() == why.is_empty(),
            "{name}: {answer}"
        );
    }
    // VA-18
    let mut fewer = cloud_profile(
        listed(&[("1.32.1", "preview"), ("1.31.2", "deprecated")]),
        os(&[("1.0.0", "")]),
    );
    fewer["metadata"]["name"] = "few".into();
    let answer = told(garden.apply(fewer).await);
    let why = "unable to delete Kubernetes version \"1.31.4\" from CloudProfile \"few\" - version is still in use by shoot 'garden-local/va-3a'";
    assert!(answer.contains(why), "{answer}");
    garden.close().await;
}

#[tokio::test(start_paused = true)]
async fn va_12_to_14_machine_images() {
    let garden = Garden::open(1, "2026-01-01T12:00:00Z").await;
    garden.project().await;
    let kubernetes = [("1.33.0", "")];
    let linux = os(&[("1592.3.0", ""), ("1592.4.0", "deprecated"), ("1877.0.0", "")]);
    offer(&garden, "linux", &kubernetes, linux).await;
    let intel = json!([{"version": "1.0.0", "architectures": ["amd64"]}]);
    let arm = json!([{"version": "1.0.0", "architectures": ["amd64", "arm64"]}]);
    let mixed = json!([{"name": "os", "versions": intel}, {"name": "os-patch", "versions": arm}]);
    offer(&garden, "mixed", &kubernetes, mixed).await;
    let ages = os(&[("1.0.0", "expired"), ("1.1.0", ""), ("1.2.0", "expired"), ("1.3.0", "")]);
    offer(&garden, "ages", &kubernetes, ages).await;
    let pools = json!([pool("one", ("os", "1592"), None)]);
    garden
        .create(manifest("va-12", "linux", "1.33.0", pools))
        .await
        .unwrap();
    let found = garden.shoots().get("va-12").await.unwrap();
    let image = found.spec.provider.workers[0].machine.image.clone().unwrap();
    assert_eq!(image.version.as_deref(), Some("1592.3.0"));

    let mut bare = pool("one", ("os", "1.0.0"), None);
    bare["machine"] = json!({"type": "large", "architecture": "arm64"});
    let answer = told(garden.create(manifest("va-13", "mixed", "1.33.0", json!([bare]))).await);
    assert!(
        answer.contains("spec.provider.workers[0]") && answer.contains("failed to determine latest machine image"),
        "{answer}"
    );

    let of = |version: &str| json!([pool("one", ("os", version), None)]);
    let to = |version: &str| json!({"spec": {"provider": {"workers": of(version)}}});
    for (name, target, why) in [("va-14a", "1.2.0", ""), ("va-14b", "1.0.0", "is expired")] {
        garden
            .create(manifest(name, "ages", "1.33.0", of("1.1.0")))
            .await
            .unwrap();
        let answer = told(garden.patch(name, to(target)).await);
        assert!(
            answer.contains(why) && answer.is_empty() == why.is_empty(),
            "{name}: {answer}"
        );
    }
    garden.close().await;
}

/// [VER-51]: who changes something else of a pool keeps its image; what an image is configured with may be changed and taken away.
#[tokio::test(start_paused = true)]
async fn ver_51_pools_keep_their_images() {
    let garden = Garden::open(1, "2026-01-01T12:00:00Z").await;
    garden.project().await;
    let images = json!([
        {"name": "os", "versions": [{"version": "1.0.0"}]},
        {"name": "os-patch", "versions": [{"version": "1.0.0"}]},
    ]);
    offer(&garden, "images", &[("1.33.0", "")], images).await;
    let first = json!([pool("one", ("os-patch", "1.0.0"), None)]);
    garden
        .create(manifest("keeps", "images", "1.33.0", first))
        .await
        .unwrap();
    let newer = json!([
        {"name": "os", "versions": [{"version": "1.0.0"}, {"version": "1.2.0"}]},
        {"name": "os-patch", "versions": [{"version": "1.0.0"}, {"version": "1.1.0"}]},
    ]);
    offer(&garden, "images", &[("1.33.0", "")], newer).await;
    let config = json!({"apiVersion": "os.example.com/v1", "kind": "Config"});
    for (wish, name, version, configured) in [
        (Value::Null, "os-patch", "1.0.0", false),
        (
            json!({"name": "os-patch", "providerConfig": config}),
            "os-patch",
            "1.0.0",
            true,
        ),
        (Value::Null, "os-patch", "1.0.0", true),
        (
            json!({"name": "os-patch", "version": "1.0.0"}),
            "os-patch",
            "1.0.0",
            false,
        ),
        (json!({"name": "os-patch", "version": ""}), "os-patch", "1.0.0", false),
        (
            json!({"name": "os-patch", "version": "1.1"}),
            "os-patch",
            "1.1.0",
            false,
        ),
        (json!({"name": "os"}), "os", "1.2.0", false),
    ] {
        let mut own = pool("one", ("os-patch", "1.0.0"), None);
        own["machine"]["image"] = wish.clone();
        let patch = json!({"spec": {"provider": {"workers": [own]}}});
        garden.patch("keeps", patch).await.unwrap();
        let found = garden.shoots().get("keeps").await.unwrap();
        let image = found.spec.provider.workers[0].machine.image.clone().unwrap();
        assert_eq!(
            (&*image.name, image.version.as_deref(), image.provider_config.is_some()),
            (name, Some(version), configured),
            "{wish}"
        );
    }
    garden.close().await;
}

#[tokio::test(start_paused = true)]
async fn va_15_17_19_profiles_and_defaults() {
    let garden = Garden::open(1, "2026-01-01T12:00:00Z").await;
    garden.project().await;
    let kubernetes = listed(&[("1.30.1", "expired"), ("1.31.1", "")]);
    let stored = garden
        .create(cloud_profile(kubernetes, os(&[("1.0.0", "")])))
        .await
        .unwrap();
    let versions = stored["spec"]["kubernetes"]["versions"].as_array().unwrap();
    assert_eq!(
        (versions.len(), &versions[0]["version"]),
        (1, &json!("1.31.1")),
        "VA-15"
    );
    let ending = json!([{"version": "1.31.1", "expirationDate": "2026-06-01T00:00:00Z"}]);
    let mut profile = cloud_profile(ending, os(&[("1.0.0", "")]));
    profile["metadata"]["name"] = "ending".into();
    let answer = told(garden.create(profile).await);
    let why = "expiration date of latest kubernetes version ('1.31.1') must not be set";
    assert!(answer.contains(why), "VA-17: {answer}");
    let mut shoot = manifest("va-19", "local", "1.31.1", one_pool());
    shoot["spec"]["maintenance"]["autoUpdate"] = json!({});
    garden.create(shoot).await.unwrap();
    let found = garden.shoots().get("va-19").await.unwrap();
    let update = found.spec.maintenance.and_then(|own| own.auto_update).unwrap();
    assert_eq!(
        (update.kubernetes_version, update.machine_image_version),
        (false, Some(true))
    );
    garden.close().await;
}
