//! The versions chapter of the seeds as a year: an operator releases, deprecates and ends versions, fifty shoots with different policies follow in
//! their windows, and every day all of them are where the chapter says. Told by the API only, in virtual time.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // helpers of tests

use std::collections::BTreeMap;

use gardener_apis::core::v1beta1::Shoot;
use gardener_controller::{Informer, ObjectRef};
use gardener_testkit::garden::{Garden, NAMESPACE, cloud_profile, pool, shoot};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::runtime::watcher;
use serde_json::{Value, json};

/// Whether each shoot is maintained in each of its windows. Otherwise windows are left out in which maintenance would repeat itself, as in forecasts (their
/// tests show that nothing is different then): a tenth of the time.
fn in_each_window() -> bool {
    std::env::var_os("GARDENER_TEST_EACH_WINDOW").is_some()
}

const DAYS: i64 = 365;
const SHOOTS: usize = 50;

type Numbers = (u64, u64, u64);

fn numbers(version: &str) -> Numbers {
    let parts: Vec<u64> = version.split('.').map(|part| part.parse().unwrap()).collect();
    (parts[0], parts[1], parts[2])
}

/// What the operator says of a version: its class, and from which day on it is expired.
#[derive(Clone, Debug)]
struct Offer {
    class: &'static str,
    ends: Option<i64>,
}

/// Versions by number.
type Offers = BTreeMap<Numbers, Offer>;

fn offer(offers: &mut Offers, version: &str, class: &'static str, ends: Option<i64>) {
    offers.insert(numbers(version), Offer { class, ends });
}

fn text(version: Numbers) -> String {
    format!("{}.{}.{}", version.0, version.1, version.2)
}

/// Noon, when no window is open.
fn noon(day: i64) -> Timestamp {
    let start: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
    start + SignedDuration::from_hours(24 * day)
}

fn listed(offers: &Offers) -> Value {
    let versions = offers.iter().rev().map(|(version, offer)| {
        let mut listed = json!({"version": text(*version), "classification": offer.class});
        if let Some(ends) = offer.ends {
            listed["expirationDate"] = noon(ends).to_string().into();
        }
        listed
    });
    versions.collect()
}

/// The chapter's words on whom a maintenance brings where, said once more: `same_line` is where an update comes first, `wider` where an automatic one may
/// also look, `further` where only force looks.
struct Path {
    same_line: fn(Numbers, Numbers) -> bool,
    wider: fn(Numbers, Numbers) -> bool,
    /// The lines that force may choose of, in the order in which it tries them, each with its versions.
    further: fn(Numbers, &Offers) -> Vec<Vec<Numbers>>,
}

fn same_minor(own: Numbers, other: Numbers) -> bool {
    (own.0, own.1) == (other.0, other.1)
}

fn same_major(own: Numbers, other: Numbers) -> bool {
    own.0 == other.0
}

fn lines(offers: &Offers, of: impl Fn(Numbers) -> Option<u64>) -> Vec<Vec<Numbers>> {
    let mut found: BTreeMap<u64, Vec<Numbers>> = BTreeMap::new();
    for version in offers.keys() {
        if let Some(line) = of(*version) {
            found.entry(line).or_default().push(*version);
        }
    }
    found.into_values().collect()
}

const KUBERNETES: Path = Path {
    same_line: same_minor,
    wider: |_, _| false,
    further: |own, offers| {
        lines(offers, |other| {
            (other.0 == own.0 && other.1 == own.1 + 1).then_some(other.1)
        })
    },
};
const PATCH: Path = Path {
    same_line: same_minor,
    wider: |_, _| false,
    further: |own, offers| lines(offers, |other| (other.0 == own.0 && other.1 > own.1).then_some(other.1)),
};
const MINOR: Path = Path {
    same_line: same_minor,
    wider: same_major,
    further: |own, offers| lines(offers, |other| (other.0 > own.0).then_some(other.0)),
};
const MAJOR: Path = Path {
    same_line: same_minor,
    wider: |_, _| true,
    further: |_, _| Vec::new(),
};

impl Path {
    /// Where a maintenance on a day brings who runs `own`; an error: it is due, but cannot.
    fn follow(&self, own: Numbers, automatic: bool, offers: &Offers, day: i64) -> Result<Numbers, ()> {
        let expired = |version: Numbers| offers[&version].ends.is_some_and(|ends| ends <= day);
        let forced = !offers.contains_key(&own) || expired(own);
        if !forced && !automatic {
            return Ok(own);
        }
        let given = |version: &Numbers| offers[version].class != "preview";
        for reach in [self.same_line, self.wider] {
            let reached: Vec<Numbers> = offers
                .keys()
                .copied()
                .filter(|other| *other > own && reach(own, *other) && given(other) && !expired(*other))
                .collect();
            let fresh = reached.iter().filter(|other| offers[other].class != "deprecated").max();
            if let Some(best) = fresh.or(reached.iter().max()) {
                return Ok(*best);
            }
        }
        if !forced {
            return Ok(own);
        }
        let further = (self.further)(own, offers);
        for line in further {
            let line: Vec<Numbers> = line.into_iter().filter(given).collect();
            let alive = line.iter().copied().filter(|version| !expired(*version)).max();
            if let Some(best) = alive.or(line.into_iter().max()) {
                return Ok(best);
            }
        }
        Err(())
    }
}

/// What the operator offers.
#[derive(Clone, Default)]
struct Catalogue {
    kubernetes: Offers,
    images: BTreeMap<&'static str, Offers>,
}

const STRATEGIES: [&str; 3] = ["patch", "minor", "major"];

impl Catalogue {
    fn first() -> Self {
        let mut own = Self::default();
        offer(&mut own.kubernetes, "1.31.3", "deprecated", Some(40));
        offer(&mut own.kubernetes, "1.31.4", "deprecated", Some(70));
        offer(&mut own.kubernetes, "1.32.1", "deprecated", Some(160));
        offer(&mut own.kubernetes, "1.32.2", "supported", None);
        offer(&mut own.kubernetes, "1.33.0", "supported", None);
        offer(&mut own.kubernetes, "1.34.0", "preview", None);
        for strategy in STRATEGIES {
            let image = own.images.entry(strategy).or_default();
            offer(image, "1.0.0", "deprecated", Some(60));
            offer(image, "1.0.1", "supported", None);
            offer(image, "1.2.0", "supported", None);
            offer(image, "2.0.0", "preview", None);
        }
        own
    }

    /// What the operator does on a day, at noon; whether anything.
    fn change(&mut self, day: i64) -> bool {
        let kubernetes = &mut self.kubernetes;
        match day {
            // a patch release, first as a preview, then recommended
            10 => offer(kubernetes, "1.33.1", "preview", None),
            20 => {
                offer(kubernetes, "1.33.0", "deprecated", Some(200));
                offer(kubernetes, "1.33.1", "supported", None);
            }
            // a minor release becomes supported
            90 => offer(kubernetes, "1.34.0", "supported", None),
            // the patch of the last minor version ends before the first does
            120 => offer(kubernetes, "1.32.2", "deprecated", Some(150)),
            // an operator who is late: no 1.34 beside a preview is left for who must leave 1.33
            190 => {
                offer(kubernetes, "1.33.1", "deprecated", Some(210));
                offer(kubernetes, "1.34.0", "preview", None);
            }
            // and who makes up for it
            230 => {
                offer(kubernetes, "1.34.0", "deprecated", Some(260));
                offer(kubernetes, "1.34.2", "deprecated", None);
                offer(kubernetes, "1.35.0", "supported", None);
            }
            // everything that is left of a minor version is deprecated: the automatic update takes it all the same
            300 => {
                offer(kubernetes, "1.34.1", "supported", None);
                offer(kubernetes, "1.34.2", "deprecated", Some(330));
            }
            _ => return self.change_images(day),
        }
        self.change_images(day);
        true
    }

    fn change_images(&mut self, day: i64) -> bool {
        for image in self.images.values_mut() {
            match day {
                30 => {
                    offer(image, "1.2.0", "deprecated", Some(140));
                    offer(image, "1.2.1", "supported", None);
                }
                80 => offer(image, "1.0.1", "deprecated", Some(100)),
                130 => offer(image, "2.0.0", "supported", None),
                180 => offer(image, "1.2.1", "deprecated", Some(220)),
                250 => {
                    offer(image, "2.0.0", "deprecated", Some(320));
                    offer(image, "3.1.0", "preview", None);
                }
                // the end of the image's life for who may only update as force does not
                310 => offer(image, "3.1.0", "deprecated", Some(340)),
                _ => return false,
            }
        }
        true
    }

    fn profile(&self) -> Value {
        let images = STRATEGIES.iter().map(|strategy| {
            json!({"name": format!("os-{strategy}"), "updateStrategy": strategy, "versions": listed(&self.images[strategy])})
        });
        cloud_profile(listed(&self.kubernetes), images.collect())
    }
}

/// How one shoot lives.
struct Owner {
    name: String,
    automatic: (bool, bool),
    strategy: &'static str,
    kubernetes: Numbers,
    pinned: Option<Numbers>,
    image: Numbers,
    generation: i64,
    /// When the etcd encryption key was last rotated, or made.
    key: Timestamp,
}

impl Owner {
    fn number(i: usize) -> Self {
        let starts = ["1.31.3", "1.31.4", "1.32.1", "1.32.2", "1.33.0"];
        let kubernetes = numbers(starts[i % starts.len()]);
        Self {
            name: format!("s{i:02}"),
            automatic: (i.is_multiple_of(2), !i.is_multiple_of(3)),
            strategy: STRATEGIES[i % STRATEGIES.len()],
            kubernetes,
            pinned: (i % 4 == 1).then_some(kubernetes),
            image: numbers(["1.0.0", "1.0.1", "1.2.0"][(i / 3) % 3]),
            generation: 0,
            key: noon(0),
        }
    }

    fn path(&self) -> &'static Path {
        match self.strategy {
            "patch" => &PATCH,
            "minor" => &MINOR,
            _ => &MAJOR,
        }
    }

    fn manifest(&self, i: usize) -> Value {
        // all in the night, some over midnight, some told in other zones
        let windows = [
            ("220000+0000", "230000+0000"),
            ("233000+0000", "003000+0000"),
            ("030000+0100", "050000+0100"),
            ("000000+0000", "060000+0000"),
            ("190000-0500", "200000-0500"),
        ];
        let image = format!("os-{}", self.strategy);
        let (kubernetes, version) = (text(self.kubernetes), text(self.image));
        let pinned = self.pinned.map(text);
        let pools = json!([pool("pool", (&image, &version), pinned.as_deref())]);
        shoot(
            &self.name,
            &kubernetes,
            windows[i % windows.len()],
            self.automatic,
            pools,
        )
    }

    /// One night; says what failed.
    fn sleep(&mut self, catalogue: &Catalogue, day: i64) -> bool {
        let (kubernetes, images) = (&catalogue.kubernetes, &catalogue.images[self.strategy]);
        let mut failed = false;
        match self.path().follow(self.image, self.automatic.1, images, day) {
            Ok(image) => self.image = image,
            Err(()) => failed = true,
        }
        match KUBERNETES.follow(self.kubernetes, self.automatic.0, kubernetes, day) {
            Ok(version) => self.kubernetes = version,
            Err(()) => failed = true,
        }
        if let Some(pinned) = &mut self.pinned {
            match KUBERNETES.follow(*pinned, self.automatic.0, kubernetes, day) {
                // never ahead of the control plane
                Ok(version) => *pinned = version.min(self.kubernetes),
                Err(()) => failed = true,
            }
        }
        failed
    }

    /// Whether the etcd encryption key was rotated in a night: once in 28 days, in the first window after them, and not again before they are over anew.
    fn rotated(&mut self, found: &Shoot, day: i64) -> bool {
        let name = &self.name;
        let rotation = found.status.credentials.as_ref().and_then(|own| own.rotation.as_ref());
        let rotation = rotation.and_then(|own| own.etcd_encryption_key.as_ref());
        let done = rotation
            .and_then(|own| own.last_completion_time.as_ref())
            .map(|time| time.0);
        let (period, day_of_windows) = (SignedDuration::from_hours(28 * 24), SignedDuration::from_hours(30));
        let Some(done) = done.filter(|done| *done != self.key) else {
            assert!(
                noon(day) < self.key + period + day_of_windows,
                "{name} is overdue on day {day}"
            );
            return false;
        };
        // the API tells whole seconds
        let passed = done.duration_since(self.key);
        assert!(
            passed >= period && passed < period + day_of_windows,
            "{name} on day {day}: {passed:#}"
        );
        assert!(done > noon(day - 1), "{name} on day {day}");
        self.key = done;
        true
    }

    /// Compares the shoot with what it is to be after a night.
    fn look(&mut self, found: &Shoot, failed: bool, before: (Numbers, Option<Numbers>, Numbers), day: i64) {
        let name = &self.name;
        let worker = &found.spec.provider.workers[0];
        let image = worker.machine.image.clone().unwrap().version.unwrap();
        let pinned = worker.kubernetes.as_ref().and_then(|own| own.version.clone());
        assert_eq!(
            (found.spec.kubernetes_version(), pinned, image),
            (&*text(self.kubernetes), self.pinned.map(text), text(self.image)),
            "{name} on day {day}; before: {before:?}"
        );
        let changed = before != (self.kubernetes, self.pinned, self.image);
        let rotated = self.rotated(found, day);
        let name = &self.name;
        let generation = found.metadata.generation.unwrap();
        if in_each_window() {
            // Each maintenance asks for one reconciliation: more in a night would raise the generation more. What asks beside a change of the spec is counted
            // when gardenlet takes the rotation out of it [UPD-11].
            let raised = 1 + i64::from(changed && rotated);
            assert_eq!(
                generation,
                self.generation + raised,
                "{name} is maintained once on day {day}"
            );
        }
        self.generation = generation;
        let last = found.status.last_maintenance.as_ref();
        let triggered = last.and_then(|last| last.triggered_time.as_ref()).map(|time| time.0);
        let tonight = triggered.is_some_and(|time| time > noon(day - 1) && time < noon(day));
        // what is left out has failed before, and stands there
        let stands = failed && !in_each_window() && last.is_some_and(|last| last.state == "Failed");
        assert!(
            tonight == (changed || failed || rotated) || stands,
            "{name} on day {day}: {last:?}"
        );
        if let Some(last) = last.filter(|_| tonight) {
            assert_eq!(
                last.state,
                if failed { "Failed" } else { "Succeeded" },
                "{name} on day {day}: {last:?}"
            );
            assert_eq!(last.failure_reason.is_some(), failed, "{name} on day {day}");
            let told = last.description.contains("ETCD Encryption key rotation started");
            assert_eq!(told, rotated, "{name} on day {day}: {last:?}");
            for (from, to) in [(before.0, self.kubernetes), (before.2, self.image)] {
                let told = format!("from \"{}\" to \"{}\"", text(from), text(to));
                assert_eq!(
                    last.description.contains(&told),
                    from != to,
                    "{name} on day {day}: {last:?}"
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_year_of_maintenance() {
    let garden = Garden::open(1, "2026-01-01T12:00:00Z").await;
    garden.project().await;
    let mut catalogue = Catalogue::first();
    garden.apply(catalogue.profile()).await.unwrap();
    let mut owners: Vec<Owner> = (0..SHOOTS).map(Owner::number).collect();
    for (i, owner) in owners.iter_mut().enumerate() {
        garden.create(owner.manifest(i)).await.unwrap();
        // gardenlet has been there once: from then on maintenance asks it to reconcile
        let status = json!({"lastOperation": {"type": "Create", "state": "Succeeded", "progress": 100,
            "description": "done", "lastUpdateTime": "2026-01-01T12:00:00Z"}});
        garden.patch_status(&owner.name, status).await;
        owner.generation = garden
            .shoots()
            .get(&owner.name)
            .await
            .unwrap()
            .metadata
            .generation
            .unwrap();
    }
    let stop = garden.start_maintenance(!in_each_window());
    garden.stand_in_for_gardenlets(&stop);
    let watching = watcher::Config::default().timeout(u32::MAX).disable_bookmarks();
    let shoots: Informer<Shoot> = Informer::start(kube::Api::all(garden.client.clone()), watching, &stop);
    shoots.synced().await;
    let (mut failures, mut updates) = (0, 0);
    for day in 1..=DAYS {
        garden.until(noon(day)).await;
        for owner in &mut owners {
            let before = (owner.kubernetes, owner.pinned, owner.image);
            let failed = owner.sleep(&catalogue, day - 1);
            failures += usize::from(failed);
            updates += usize::from(before != (owner.kubernetes, owner.pinned, owner.image));
            let found = shoots.get(&ObjectRef::new(NAMESPACE, &owner.name)).unwrap();
            owner.look(&found, failed, before, day);
        }
        if catalogue.change(day) {
            garden.apply(catalogue.profile()).await.unwrap();
        }
    }
    // the year had something of everything
    assert!(
        failures > 100 && updates > 300,
        "{failures} failures, {updates} updates"
    );
    stop.cancel();
    garden.close().await;
}
