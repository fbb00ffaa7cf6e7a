use super::*;
use crate::versions::Strategy as Path;
use proptest::prelude::*;
use proptest::strategy::Strategy;

/// Members of a CloudProfile for versions as [`listed`] reads them; the expired ones ended long ago.
pub(crate) fn members(text: &str) -> Vec<serde_json::Value> {
    let member = |(version, stage): (String, Stage)| match stage {
        Stage::Expired => serde_json::json!({"version": version, "expirationDate": "2020-01-01T00:00:00Z"}),
        stage => serde_json::json!({"version": version, "classification": stage.as_str()}),
    };
    listed(text).into_iter().map(member).collect()
}

/// Versions as the worked cases write them: `1.2.3(S)`, `(D)`, `(P)`, `†` for expired ones.
pub(crate) fn listed(text: &str) -> Vec<(String, Stage)> {
    text.split_whitespace()
        .map(|word| {
            let stage = match word {
                word if word.contains('†') => Stage::Expired,
                word if word.contains("(P)") => Stage::Preview,
                word if word.contains("(D)") => Stage::Deprecated,
                _ => Stage::Supported,
            };
            let end = word.find(['(', '†']).unwrap_or(word.len());
            (word[..end].to_owned(), stage)
        })
        .collect()
}

fn view(listed: &[(String, Stage)]) -> Vec<Listed<'_>> {
    listed
        .iter()
        .map(|(text, stage)| Listed {
            text,
            version: parse(text).unwrap(),
            stage: *stage,
        })
        .collect()
}

#[test]
fn vc_kubernetes_targets() {
    const FAILS: &str = "failure";
    const STAYS: &str = "unchanged";
    let table = [
        (
            "VC-1",
            "1.1.2 1.1.1 1.1.0 1.0.2 1.0.1† 1.0.0 2.0.0",
            "1.0.1",
            true,
            "1.0.2",
        ),
        ("VC-2", "1.0.2(P) 1.0.1 1.0.0†", "1.0.0", true, "1.0.1"),
        ("VC-3", "1.1.2 1.1.1 1.1.0 1.0.2†", "1.0.2", true, "1.1.2"),
        ("VC-4", "1.1.2† 1.1.1† 1.1.0† 1.0.2† 2.0.0", "1.0.2", true, "1.1.2"),
        ("VC-5", "1.1.2(P) 1.1.1(P) 1.1.0(P) 1.0.2†", "1.0.2", true, FAILS),
        ("VC-6", "1.0.2 1.0.1", "1.0.1", false, "1.0.2"),
        ("VC-8", "1.1.2 1.1.1 1.1.0 1.0.2", "1.0.0", true, "1.0.2"),
        ("VC-9", "1.1.2 1.1.1", "1.0.2", true, "1.1.2"),
        ("VC-11", "1.26.10 1.26.9 1.24.12†", "1.24.12", true, FAILS),
        ("VC-12", "1.26.9 1.25.10 1.25.9 1.24.12†", "1.24.12", true, "1.25.10"),
        (
            "VC-13",
            "1.27.0(P) 1.26.3(P) 1.26.2(S) 1.25.5(P) 1.25.4(S) 1.24.6(S) 1.24.5(D†)",
            "1.24.5",
            true,
            "1.24.6",
        ),
        ("VC-14", "1.30.5(D) 1.30.4(S) 1.30.2", "1.30.2", false, "1.30.4"),
        ("VC-15", "1.30.5(D) 1.30.4(D) 1.30.2", "1.30.2", false, "1.30.5"),
        ("latest", "1.30.5 1.31.0", "1.30.5", false, STAYS),
    ];
    for (id, versions, current, forced, expected) in table {
        let versions = listed(versions);
        let target =
            kubernetes_target(&view(&versions), current, forced).map(|target| target.unwrap_or(STAYS).to_owned());
        assert_eq!(target.unwrap_or_else(|_| FAILS.to_owned()), expected, "{id}");
    }
}

#[test]
fn vi_machine_image_targets() {
    const FAILS: &str = "failure";
    const STAYS: &str = "unchanged";
    let table = [
        ("VI-1", "1.0.0 1.5.3", "1.0.0", "major", "1.5.3"),
        ("VI-2", "1.0.0 1.0.2 1.5.3", "1.0.0", "major", "1.0.2"),
        ("VI-3", "1.0.0† 1.5.3", "1.0.0", "major", "1.5.3"),
        ("VI-4", "1.1.1 1.0.1", "1.0.0", "major", "1.0.1"),
        ("VI-5", "1.0.0 1.5.3 1.7.2†", "1.7.2", "major", FAILS),
        ("VI-6", "1 1.0.0 1.5.3 2 2.0.1", "1", "major", "2.0.1"),
        ("VI-7", "1.0.0 1.0.2", "1.0.0", "patch", "1.0.2"),
        ("VI-8", "2.1.0 1.2.1 1.2.0 1.0.0†", "1.0.0", "patch", "1.2.1"),
        ("VI-9", "1.3.1 1.2.5 1.2.4", "1.0.0", "patch", "1.2.5"),
        ("VI-10", "1.0.0† 1.2.4(P) 1.4.1", "1.0.0", "patch", "1.4.1"),
        ("VI-11", "1.0.0† 1.2.5(P) 1.2.4† 1.4.1", "1.0.0", "patch", "1.2.4"),
        ("VI-12", "1.1.1 1.2.0", "1.1.1", "patch", STAYS),
        ("VI-13", "1.7 1.8", "1.7", "patch", STAYS),
        ("VI-14", "1.0.0 1.0.6 1.5.1 3.2.5", "1.0.0", "minor", "1.0.6"),
        ("VI-15", "1.0.0 1.3.0 1.5.1 3.2.5", "1.0.0", "minor", "1.5.1"),
        ("VI-16", "1.0.0† 1.3.0 1.5.1 3.2.5", "1.0.0", "minor", "1.5.1"),
        ("VI-17", "1.5.9† 3.4.9 3.5.9", "1.5.9", "minor", "3.5.9"),
        ("VI-18", "1.0.0† 2.1.1(P) 3.4.1", "1.0.0", "minor", "3.4.1"),
        ("VI-19", "1.2.4 2.2.5", "1.2.4", "minor", STAYS),
    ];
    for (id, versions, current, strategy, expected) in table {
        let versions = listed(versions);
        let own = versions.iter().find(|(text, _)| text == current);
        let forced = own.is_none_or(|(_, stage)| *stage == Stage::Expired);
        let strategy = Path::of(Some(strategy));
        let target = machine_image_target(&view(&versions), "os", current, strategy, forced);
        let target = target.map(|target| target.unwrap_or(STAYS).to_owned());
        assert_eq!(target.unwrap_or_else(|_| FAILS.to_owned()), expected, "{id}");
    }
}

#[test]
fn ver_40_53_wishes() {
    let no_number = |part, why| Err(NoNumber { part, why });
    for (text, expected) in [
        ("1.31.4", Ok(Wish::Exact)),
        ("1.33.", Ok(Wish::Exact)),
        ("1.31", Ok(Wish::Prefix(vec![Some(1), Some(31)]))),
        ("1.", Ok(Wish::Prefix(vec![Some(1), None]))),
        ("1", Ok(Wish::Prefix(vec![Some(1), None]))),
        ("", Ok(Wish::Prefix(vec![None, None]))),
        (".31", Ok(Wish::Prefix(vec![None, Some(31)]))),
        ("1.2.3.4", Ok(Wish::Prefix(vec![Some(1), None]))),
        ("one", no_number("one", "invalid syntax")),
        ("https://foo.bar", no_number("bar", "invalid syntax")),
        ("1.+5", no_number("+5", "invalid syntax")),
        (
            "18446744073709551616",
            no_number("18446744073709551616", "value out of range"),
        ),
    ] {
        assert_eq!(Wish::of(text), expected, "{text:?}");
    }
}

#[test]
fn va_3_12_defaults() {
    let kubernetes = listed("1.32.1(P) 1.31.4(S) 1.31.2(D)");
    let wish = |prefix: &[u64]| -> Vec<Option<u64>> { prefix.iter().copied().map(Some).collect() };
    let default = |prefix: &[u64]| default_kubernetes(&view(&kubernetes), &wish(prefix)).map(|own| own.text.to_owned());
    assert_eq!(default(&[1, 32]), None, "VA-1");
    for prefix in [vec![1, 31], vec![1], vec![]] {
        assert_eq!(default(&prefix).as_deref(), Some("1.31.4"), "VA-3");
    }
    let images = listed("1592.3.0 1592.4.0(D) 1877.0.0");
    let default = |prefix: &[u64]| default_machine_image(&view(&images), &wish(prefix)).map(|own| own.text.to_owned());
    assert_eq!(default(&[1592]).as_deref(), Some("1592.3.0"), "VA-12");
    assert_eq!(default(&[]).as_deref(), Some("1877.0.0"));
    let expired = listed("1.0.0(D) 1.1.0†");
    assert_eq!(
        default_machine_image(&view(&expired), &[]).unwrap().text,
        "1.0.0",
        "VER-54"
    );
}

fn some_versions() -> impl Strategy<Value = Vec<(String, Stage)>> {
    let stage = prop_oneof![
        Just(Stage::Unavailable),
        Just(Stage::Preview),
        Just(Stage::Supported),
        Just(Stage::Deprecated),
        Just(Stage::Expired)
    ];
    proptest::collection::vec(((1..3_u64, 0..5_u64, 0..4_u64), stage), 1..20).prop_map(|all| {
        all.into_iter()
            .map(|((a, b, c), stage)| (format!("{a}.{b}.{c}"), stage))
            .collect()
    })
}

proptest! {
    /// Never back, never over a minor, never to what nobody chose.
    #[test]
    fn kubernetes_goes_up_step_by_step(versions in some_versions(), minor in 0..5_u64, patch in 0..4_u64, forced: bool) {
        let current = format!("1.{minor}.{patch}");
        let listed = view(&versions);
        if let Ok(Some(target)) = kubernetes_target(&listed, &current, forced) {
            let (from, to) = (parse(&current).unwrap(), parse(target).unwrap());
            prop_assert!(to > from);
            prop_assert!(to.major == from.major && to.minor <= from.minor + 1);
            let chosen: Vec<_> = listed.iter().filter(|own| own.text == target).collect();
            prop_assert!(chosen.iter().any(|own| own.may_be_given()));
            prop_assert!(forced || chosen.iter().any(|own| own.is_alive()));
            // a minor is left only when nothing lives in it above
            if to.minor > from.minor {
                let stays = listed.iter().any(|own| own.may_be_given() && own.is_alive()
                    && own.version > from && (own.version.major, own.version.minor) == (from.major, from.minor));
                prop_assert!(forced && !stays);
            }
        }
    }

    /// Never back, never to a preview, and no further than the strategy says.
    #[test]
    fn images_go_up_within_their_strategy(versions in some_versions(), minor in 0..5_u64, patch in 0..4_u64, forced: bool, kind in 0..3_usize) {
        let current = format!("1.{minor}.{patch}");
        let strategy = [Path::Patch, Path::Minor, Path::Major][kind];
        let listed = view(&versions);
        if let Ok(Some(target)) = machine_image_target(&listed, "os", &current, strategy, forced) {
            let (from, to) = (parse(&current).unwrap(), parse(target).unwrap());
            prop_assert!(to > from);
            prop_assert!(listed.iter().any(|own| own.text == target && own.may_be_given()));
            match strategy {
                Path::Patch => prop_assert!(to.major == from.major && (forced || to.minor == from.minor)),
                Path::Minor => prop_assert!(forced || to.major == from.major),
                Path::Major => prop_assert!(listed.iter().any(|own| own.text == target && own.is_alive())),
            }
        }
    }
}
