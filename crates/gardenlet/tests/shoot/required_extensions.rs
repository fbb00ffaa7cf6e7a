//! What a shoot needs must be installed before anything is done for it [CP-24].

use super::*;

#[tokio::test(start_paused = true)]
async fn cp_24_a_shoot_waits_for_its_extensions() {
    let landscape = Landscape::start().await;
    let world = &landscape.world;
    let mut mine = shoot(true);
    mine["spec"]["networking"]["type"] = json!("cilium");
    world
        .create("garden", CORE, "v1beta1", "Shoot", Some("garden-dev"), mine)
        .await;
    let begun = world.clock.now();
    let told = |shoot: &Value| shoot["status"]["lastErrors"].is_array();
    let shoot = landscape.until(told).await;
    let waited = world.clock.now().duration_since(begun).as_secs();
    assert!((60..75).contains(&waited), "{waited}");
    let why = "Check required extensions failed (retry failed with context deadline exceeded, last error: extension controllers missing or unready: map[Network/cilium:{}])";
    let status = &shoot["status"];
    assert_eq!(
        status["lastOperation"]["description"],
        format!("{why} Operation will be retried.")
    );
    let errors = status["lastErrors"].as_array().unwrap();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0]["description"], why);
    assert_eq!(errors[0]["taskID"], "Check required extensions");
    assert_eq!(errors[0].get("codes"), None);
    let namespaces = dynamic(&world.client("seed"), "", "v1", "Namespace", None);
    assert!(namespaces.get_opt("shoot--dev--my").await.unwrap().is_none());

    world
        .install_extension("networking-cilium", &[("Network", "cilium")])
        .await;
    let shoot = landscape.wait("Create", "Succeeded").await;
    assert_eq!(shoot["status"].get("lastErrors"), None);
    landscape.stop.cancel();
}
