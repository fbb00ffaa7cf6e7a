//! Which machines of a set go first [MCH-70], [MCH-71].

use gardener_apis::machine::v1alpha1::Machine;
use k8s_openapi::jiff::Timestamp;

use super::{key, phase};

fn annotation<'a>(machine: &'a Machine, key: &str) -> Option<&'a str> {
    machine.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The phase of a machine; empty when it has none.
pub fn phase_of(machine: &Machine) -> &str {
    let status = machine.status.current_status.as_ref();
    status.and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// Whether a machine goes.
pub fn is_terminating(machine: &Machine) -> bool {
    machine.metadata.deletion_timestamp.is_some() || phase_of(machine) == phase::TERMINATING
}

/// Until when a machine is preserved, if it is.
pub fn preserved_until(machine: &Machine, now: Timestamp) -> Option<Timestamp> {
    let expiry = machine.status.current_status.as_ref()?.preserve_expiry_time.as_ref()?.0;
    (expiry > now).then_some(expiry)
}

fn priority(machine: &Machine) -> i64 {
    annotation(machine, key::PRIORITY)
        .and_then(|text| text.parse().ok())
        .unwrap_or(3)
}

fn marked(machine: &Machine) -> Option<Timestamp> {
    annotation(machine, key::MARKED_FOR_DELETION)?.parse().ok()
}

fn rank(phase: &str) -> u8 {
    match phase {
        phase::FAILED => 1,
        phase::CRASH_LOOP_BACK_OFF => 2,
        phase::UNKNOWN => 3,
        phase::PENDING => 4,
        phase::AVAILABLE => 5,
        phase::RUNNING => 6,
        _ => 0,
    }
}

/// The order in which machines go; the first goes first [MCH-71].
pub fn order(machine: &Machine, now: Timestamp) -> impl Ord + use<> {
    let preserved = preserved_until(machine, now);
    let explicitly = preserved.is_some() && annotation(machine, key::PRESERVE) != Some("auto-preserved");
    let mark = marked(machine);
    (
        (preserved.is_some(), explicitly, preserved),
        priority(machine),
        (mark.is_none(), mark),
        rank(phase_of(machine)),
        machine.metadata.creation_timestamp.as_ref().map(|time| time.0),
        machine.metadata.name.clone(),
    )
}

/// Names of the machines of a set that are to be deleted [MCH-70]. `replaces_failed`: failed machines go although there are not too many.
pub fn to_delete(machines: &[Machine], replicas: i32, scaled_at: Option<Timestamp>, now: Timestamp) -> Vec<String> {
    let mut alive: Vec<&Machine> = machines.iter().filter(|machine| !is_terminating(machine)).collect();
    alive.sort_by_key(|machine| order(machine, now));
    let is_updated = |machine: &Machine| {
        let labels = machine.metadata.labels.as_ref();
        labels
            .and_then(|labels| labels.get(key::UPDATE_RESULT))
            .map(String::as_str)
            == Some("successful")
    };
    let wanted = usize::try_from(replicas).unwrap_or_default();
    let candidates: Vec<&Machine> = alive.iter().copied().filter(|machine| !is_updated(machine)).collect();
    let surplus = candidates.len().saturating_sub(wanted);
    let mut chosen: Vec<String> = Vec::new();
    let mut choose = |machine: &Machine| {
        if let Some(name) = &machine.metadata.name
            && !chosen.contains(name)
        {
            chosen.push(name.clone());
        }
    };
    candidates.iter().take(surplus).for_each(|machine| choose(machine));
    for machine in &alive {
        let wanted_gone = priority(machine) == 1
            && marked(machine).is_some_and(|mark| scaled_at.is_some_and(|scaled| mark <= scaled));
        let failed = phase_of(machine) == phase::FAILED && preserved_until(machine, now).is_none();
        if wanted_gone || failed {
            choose(machine);
        }
    }
    chosen.truncate(100);
    chosen
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn machine(name: &str, phase: &str, priority: Option<&str>, created: &str) -> Machine {
        let mut value = json!({
            "metadata": {"name": name, "creationTimestamp": created, "annotations": {}},
            "spec": {},
            "status": {"currentStatus": {"phase": phase}},
        });
        if let Some(priority) = priority {
            value["metadata"]["annotations"][key::PRIORITY] = priority.into();
        }
        serde_json::from_value(value).unwrap()
    }

    fn now() -> Timestamp {
        "2026-01-01T14:00:00Z".parse().unwrap()
    }

    #[test]
    fn mch_c14_priority_before_phase() {
        let a = machine("a", "Running", None, "2026-01-01T10:00:00Z");
        let b = machine("b", "Unknown", Some("x"), "2026-01-01T12:00:00Z");
        let c = machine("c", "Running", Some("1"), "2026-01-01T13:00:00Z");
        assert_eq!(to_delete(&[a.clone(), b.clone(), c], 2, None, now()), ["c"]);
        assert_eq!(to_delete(&[a, b], 1, None, now()), ["b"]);
    }

    #[test]
    fn mch_c15_the_preserved_stay_longest() {
        let mut a = machine("a", "Running", None, "2026-01-01T10:00:00Z");
        let b = machine("b", "Running", None, "2026-01-01T12:00:00Z");
        assert_eq!(to_delete(&[b.clone(), a.clone()], 1, None, now()), ["a"]);
        a.status.current_status.as_mut().unwrap().preserve_expiry_time = Some(
            k8s_openapi::apimachinery::pkg::apis::meta::v1::Time("2026-01-02T00:00:00Z".parse().unwrap()),
        );
        assert_eq!(to_delete(&[a, b], 1, None, now()), ["b"]);
    }

    #[test]
    fn mch_70_failed_and_marked_machines_go_without_surplus() {
        let failed = machine("a", "Failed", None, "2026-01-01T10:00:00Z");
        let going = machine("b", "Terminating", None, "2026-01-01T10:00:00Z");
        let mut marked = machine("c", "Running", Some("1"), "2026-01-01T10:00:00Z");
        let annotations = marked.metadata.annotations.as_mut().unwrap();
        annotations.insert(key::MARKED_FOR_DELETION.into(), "2026-01-01T11:00:00Z".into());
        let machines = [failed, going, marked];
        let scaled = |text: &str| Some(text.parse::<Timestamp>().unwrap());
        assert_eq!(to_delete(&machines, 2, None, now()), ["a"]);
        assert_eq!(to_delete(&machines, 2, scaled("2026-01-01T10:30:00Z"), now()), ["a"]);
        assert_eq!(
            to_delete(&machines, 2, scaled("2026-01-01T11:00:00Z"), now()),
            ["c", "a"]
        );
    }
}
