use super::*;
use serde_json::{Value, json};

use crate::testing::merge;

fn shoot(patch: Value) -> Shoot {
    let mut whole = json!({
        "metadata": {"name": "one", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "kubernetes": {"version": "1.33.1"},
            "provider": {"type": "local", "workers": [{"name": "pool"}]},
        },
    });
    merge(&mut whole, &patch);
    serde_json::from_value(whole).unwrap()
}

fn time(text: &str) -> Time {
    Time(text.parse().unwrap())
}

fn rotation_of(shoot: &Shoot) -> Value {
    let rotation = shoot.status.credentials.as_ref().and_then(|own| own.rotation.as_ref());
    serde_json::to_value(rotation).unwrap()
}

#[test]
fn ver_84_periods_count_from_the_last_completion_or_the_creation() {
    use Credentials::{EtcdEncryptionKey, Observability, SshKeypair};
    let automatic = |name: &str, period: Value| json!({"spec": {"maintenance": {"autoRotation": {"credentials": {name: {"rotationPeriod": period}}}}}});
    let rotated = |name: &str, rotation: Value| json!({"status": {"credentials": {"rotation": {name: rotation}}}});
    let completed = json!({"lastInitiationTime": "2026-01-04T00:00:00Z", "lastCompletionTime": "2026-01-05T00:00:00Z"});
    let initiated = json!({"lastInitiationTime": "2026-01-04T00:00:00Z"});
    let table = [
        (
            SshKeypair,
            automatic("sshKeypair", json!("168h")),
            None,
            Some("2026-01-08T00:00:00Z"),
        ),
        (
            SshKeypair,
            automatic("sshKeypair", json!("168h")),
            Some(rotated("sshKeypair", completed.clone())),
            Some("2026-01-12T00:00:00Z"),
        ),
        // a rotation that has not been completed does not count
        (
            SshKeypair,
            automatic("sshKeypair", json!("168h")),
            Some(rotated("sshKeypair", initiated)),
            Some("2026-01-08T00:00:00Z"),
        ),
        // another one's does not either
        (
            Observability,
            automatic("observability", json!("30m")),
            Some(rotated("sshKeypair", completed.clone())),
            Some("2026-01-01T00:30:00Z"),
        ),
        (
            EtcdEncryptionKey,
            automatic("etcdEncryptionKey", json!("672h")),
            Some(rotated("etcdEncryptionKey", completed)),
            Some("2026-02-02T00:00:00Z"),
        ),
        (
            EtcdEncryptionKey,
            automatic("etcdEncryptionKey", json!("0s")),
            None,
            None,
        ),
        (
            EtcdEncryptionKey,
            automatic("etcdEncryptionKey", Value::Null),
            None,
            None,
        ),
        (EtcdEncryptionKey, json!({}), None, None),
    ];
    for (of, spec, status, expected) in table {
        let mut patch = spec;
        merge(&mut patch, &status.unwrap_or_else(|| json!({})));
        let shoot = shoot(patch.clone());
        let end = period_ends(&shoot, of);
        assert_eq!(end, expected.map(|time| time.parse().unwrap()), "{patch}");
        let Some(end) = end else { continue };
        assert!(!is_overdue(&shoot, of, end), "not at the end itself: {patch}");
        assert!(is_overdue(&shoot, of, end + SignedDuration::from_nanos(1)), "{patch}");
    }
}

#[test]
fn cp_80_81_one_step_rotations() {
    for (wanted, name) in [
        ("rotate-ssh-keypair", "sshKeypair"),
        ("rotate-observability-credentials", "observability"),
    ] {
        let mut shoot = shoot(json!({}));
        started(&mut shoot, &[wanted.to_owned()], &time("2026-01-02T00:00:00Z"));
        assert_eq!(
            rotation_of(&shoot),
            json!({name: {"lastInitiationTime": "2026-01-02T00:00:00Z"}})
        );
        succeeded(&mut shoot, &time("2026-01-02T00:05:00Z"));
        let whole =
            json!({name: {"lastInitiationTime": "2026-01-02T00:00:00Z", "lastCompletionTime": "2026-01-02T00:05:00Z"}});
        assert_eq!(rotation_of(&shoot), whole);
        started(&mut shoot, &[], &time("2026-01-03T00:00:00Z"));
        succeeded(&mut shoot, &time("2026-01-03T00:05:00Z"));
        assert_eq!(rotation_of(&shoot), whole, "later operations leave it alone");
    }
}

#[test]
fn cp_80_81_without_ssh_access_there_is_nothing_to_rotate() {
    let off = json!({
        "spec": {"provider": {"workersSettings": {"sshAccess": {"enabled": false}}}},
        "status": {"credentials": {"rotation": {"sshKeypair": {"lastInitiationTime": "2026-01-01T00:00:00Z"}}}},
    });
    let mut shoot = shoot(off);
    started(
        &mut shoot,
        &["rotate-ssh-keypair".to_owned()],
        &time("2026-01-02T00:00:00Z"),
    );
    let before = json!({"sshKeypair": {"lastInitiationTime": "2026-01-01T00:00:00Z"}});
    assert_eq!(rotation_of(&shoot), before);
    succeeded(&mut shoot, &time("2026-01-02T00:05:00Z"));
    assert_eq!(rotation_of(&shoot), json!({}));
}

/// CP-C8 and what people do in two steps.
#[test]
fn cp_c8_82_the_etcd_encryption_key() {
    let phase = |shoot: &Shoot| etcd_encryption_key_phase(shoot).to_owned();
    // version, operation, whether the completion comes by itself
    for (version, wanted, by_itself) in [
        ("1.33.1", "rotate-etcd-encryption-key", true),
        ("1.33.1", "rotate-etcd-encryption-key-start", false),
        ("1.34.0", "rotate-etcd-encryption-key", true),
        ("1.34.0", "rotate-etcd-encryption-key-start", true),
    ] {
        let mut shoot = shoot(json!({"spec": {"kubernetes": {"version": version}}}));
        started(&mut shoot, &[wanted.to_owned()], &time("2026-01-02T00:00:00Z"));
        let starts_itself = wanted == "rotate-etcd-encryption-key";
        let started_as = json!({"etcdEncryptionKey": {"phase": "Preparing", "lastInitiationTime": "2026-01-02T00:00:00Z", "autoCompleteAfterPrepared": starts_itself}});
        assert_eq!(rotation_of(&shoot), started_as);
        // an operation that failed is begun anew: nothing moves
        started(&mut shoot, &[], &time("2026-01-02T00:01:00Z"));
        assert_eq!(rotation_of(&shoot), started_as);
        succeeded(&mut shoot, &time("2026-01-02T00:05:00Z"));
        assert_eq!(phase(&shoot), "Prepared");
        started(&mut shoot, &[], &time("2026-01-02T01:00:00Z"));
        assert_eq!(
            phase(&shoot),
            if by_itself { "Completing" } else { "Prepared" },
            "{version} {wanted}"
        );
        if !by_itself {
            succeeded(&mut shoot, &time("2026-01-02T01:05:00Z"));
            assert_eq!(phase(&shoot), "Prepared");
            let complete = "rotate-etcd-encryption-key-complete".to_owned();
            started(&mut shoot, &[complete], &time("2026-01-02T01:00:00Z"));
        }
        succeeded(&mut shoot, &time("2026-01-02T01:05:00Z"));
        let done = json!({"etcdEncryptionKey": {"phase": "Completed", "lastInitiationTime": "2026-01-02T00:00:00Z", "lastCompletionTime": "2026-01-02T01:05:00Z"}});
        assert_eq!(rotation_of(&shoot), done, "{version} {wanted}");
    }
}

#[test]
fn cp_82_another_provider_needs_another_key() {
    let provider = |wanted: &str, done: &str, phase: &str| {
        shoot(json!({
            "spec": {"kubernetes": {"kubeAPIServer": {"encryptionConfig": {"provider": {"type": wanted}}}}},
            "status": {"credentials": {
                "encryptionAtRest": {"provider": {"type": done}},
                "rotation": {"etcdEncryptionKey": {"phase": phase}},
            }},
        }))
    };
    for (wanted, done, phase, expected) in [
        ("secretbox", "aescbc", "", "Preparing"),
        ("secretbox", "aescbc", "Completed", "Preparing"),
        ("secretbox", "aescbc", "Completing", "Completing"),
        ("aescbc", "aescbc", "Completed", "Completed"),
        // of a new shoot nothing is encrypted yet
        ("aescbc", "", "", ""),
    ] {
        let mut shoot = provider(wanted, done, phase);
        started(&mut shoot, &[], &time("2026-01-02T00:00:00Z"));
        assert_eq!(etcd_encryption_key_phase(&shoot), expected, "{wanted} {done} {phase}");
    }
}

/// Resources and provider.
type Encrypted = (&'static [&'static str], &'static str);

/// Phase; resources and provider that are wanted and that are there; whether objects are labelled and unlabelled; which ones.
#[test]
fn cp_95_what_is_written_anew() {
    let of = |phase: &str, wanted: Encrypted, done: Encrypted| {
        Encryption::of(&shoot(json!({
            "spec": {"kubernetes": {"kubeAPIServer": {"encryptionConfig": {"resources": wanted.0, "provider": {"type": wanted.1}}}}},
            "status": {"credentials": {
                "encryptionAtRest": {"resources": done.0, "provider": {"type": done.1}},
                "rotation": {"etcdEncryptionKey": {"phase": phase}},
            }},
        })))
    };
    let none: &'static [&'static str] = &[];
    let maps: &'static [&'static str] = &["configmaps"];
    let both: &'static [&'static str] = &["configmaps.", "deployments.apps"];
    let table: [(&str, Encrypted, Encrypted, bool, bool, &str); 10] = [
        ("", (none, "aescbc"), (none, "aescbc"), false, false, "secrets"),
        ("", (none, "aescbc"), (none, ""), true, true, "secrets"),
        (
            "Preparing",
            (maps, "aescbc"),
            (maps, "aescbc"),
            true,
            false,
            "configmaps,secrets",
        ),
        (
            "Prepared",
            (maps, "aescbc"),
            (maps, "aescbc"),
            false,
            false,
            "configmaps,secrets",
        ),
        (
            "Completing",
            (maps, "aescbc"),
            (maps, "aescbc"),
            false,
            true,
            "configmaps,secrets",
        ),
        (
            "Completed",
            (both, "aescbc"),
            (maps, "aescbc"),
            true,
            true,
            "deployments.apps",
        ),
        (
            "Completed",
            (none, "aescbc"),
            (both, "aescbc"),
            true,
            true,
            "configmaps,deployments.apps",
        ),
        (
            "Preparing",
            (none, "secretbox"),
            (none, "aescbc"),
            true,
            false,
            "secrets",
        ),
        (
            "Prepared",
            (none, "secretbox"),
            (none, "aescbc"),
            true,
            false,
            "secrets",
        ),
        (
            "Completing",
            (none, "secretbox"),
            (none, "aescbc"),
            false,
            true,
            "secrets",
        ),
    ];
    for (phase, wanted, done, labels, unlabels, rewritten) in table {
        let own = of(phase, wanted, done);
        let which: Vec<String> = own.rewritten().into_iter().collect();
        assert_eq!(
            (own.labels(), own.unlabels(), which.join(",").as_str()),
            (labels, unlabels, rewritten),
            "{phase} {wanted:?} {done:?}"
        );
    }
    assert_eq!(of("", (maps, "aescbc"), (&["configmaps."], "aescbc")).settled(), None);
    let settled = of("", (both, "secretbox"), (maps, "aescbc")).settled();
    assert_eq!(
        serde_json::to_value(settled).unwrap(),
        json!({"resources": ["configmaps", "deployments.apps"], "provider": {"type": "secretbox"}})
    );
    assert_eq!(
        of("", (none, "aescbc"), (maps, "aescbc"))
            .leaving()
            .into_iter()
            .collect::<Vec<_>>(),
        ["configmaps"]
    );
}

#[test]
fn cp_92_the_new_key_writes_when_all_can_read_it() {
    for (phase, all_know, expected) in [
        ("", false, Keys::NewWrites),
        ("Preparing", false, Keys::OldWrites),
        ("Preparing", true, Keys::NewWrites),
        ("Prepared", false, Keys::NewWrites),
        ("Completing", true, Keys::NewWrites),
    ] {
        assert_eq!(Keys::of(phase, all_know), expected, "{phase} {all_know}");
    }
}
