//! Rules for where versions stand in their life, [VER-22], [VER-24], [VER-31].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::tz::TimeZone;

use super::*;

const CLASSIFICATIONS: [&str; 4] = ["deprecated", "expired", "preview", "supported"];

/// Checks a version of Kubernetes or of an image, [VAL-CP5], [VAL-CP6].
pub(super) fn expirable_version(version: &ExpirableVersion, rules: ProfileRules, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    if !version.lifecycle.is_empty() && !rules.lifecycles {
        errors.push(Error::forbidden(
            &path.child("lifecycle"),
            "lifecycles are not allowed with disabled VersionClassificationLifecycle feature gate",
        ));
        return errors;
    }
    let at = path.child("classification");
    match version.classification.as_deref() {
        Some("expired") if version.lifecycle.is_empty() => {
            errors.push(Error::forbidden(&at, "cannot specify `classification` expired"));
        }
        Some(value) if !CLASSIFICATIONS.contains(&value) => {
            errors.push(Error::not_supported(&at, value, &CLASSIFICATIONS));
        }
        _ => {}
    }
    if !version.lifecycle.is_empty() && (version.classification.is_some() || version.expiration_date.is_some()) {
        errors.push(Error::forbidden(
            path,
            "cannot specify `classification` or `expirationDate` in combination with `lifecycle`",
        ));
    }
    errors.extend(lifecycle(&version.lifecycle, &path.child("lifecycle")));
    errors
}

/// The place of a stage in a life; what is no stage stands with the first.
fn rank(classification: &str) -> usize {
    const ORDER: [&str; 5] = ["unavailable", "preview", "supported", "deprecated", "expired"];
    ORDER.iter().position(|known| *known == classification).unwrap_or(0)
}

fn lifecycle(stages: &[LifecycleStage], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let at = |i: usize| path.index(i).child("classification");
    for (i, stage) in stages.iter().enumerate() {
        if !CLASSIFICATIONS.contains(&stage.classification.as_str()) {
            errors.push(Error::not_supported(
                &at(i),
                stage.classification.as_str(),
                &CLASSIFICATIONS,
            ));
        }
    }
    let mut seen = BTreeSet::new();
    for (i, stage) in stages.iter().enumerate() {
        if !seen.insert(&stage.classification) {
            errors.push(Error::duplicate(&at(i), stage.classification.as_str()));
        }
    }
    let pairs = || stages.iter().zip(stages.iter().skip(1)).zip(1..);
    for ((previous, current), i) in pairs() {
        let (previous, current) = (&previous.classification, &current.classification);
        if rank(previous) > rank(current) {
            errors.push(Error::invalid(
                &at(i),
                current.as_str(),
                format!(
                    "lifecycle classifications not in expected order (preview, supported, deprecated, expired): {current} must be before {previous}"
                ),
            ));
        }
    }
    let mut previous = stages.first().and_then(|stage| stage.start_time.as_ref());
    for (i, stage) in stages.iter().enumerate().skip(1) {
        let Some(start) = &stage.start_time else {
            errors.push(Error::required(
                &path.index(i),
                "only the leading lifecycle elements can have the start time optional",
            ));
            continue;
        };
        if previous.is_some_and(|previous| start.0 < previous.0) {
            let shown = start.0.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d %H:%M:%S +0000 UTC");
            errors.push(Error::invalid(
                &path.index(i),
                shown.to_string(),
                "lifecycle start times must be monotonically increasing",
            ));
        }
        previous = Some(start);
    }
    errors
}

/// Whether a version says itself that it is supported, and is.
pub(super) fn is_classified_supported(version: &ExpirableVersion, now: Timestamp) -> bool {
    let says = match version.lifecycle.is_empty() {
        true => version.classification.as_deref() == Some("supported"),
        false => version.classification.is_some(),
    };
    says && version.stage(now) == Stage::Supported
}

/// The stage `supported` of a lifecycle, and the one after it.
fn supported_stage(version: &ExpirableVersion) -> (Option<&LifecycleStage>, Option<&LifecycleStage>) {
    let supported = version
        .lifecycle
        .iter()
        .find(|stage| stage.classification == "supported");
    let above = supported.map_or(0, |_| rank("supported"));
    let next = version
        .lifecycle
        .iter()
        .find(|stage| rank(&stage.classification) > above);
    (supported, next)
}

/// How many of the versions that are supported beside one are told: each with each would be more than anybody reads.
const RIVALS_TOLD: usize = 16;

/// Whether two versions are supported at the same time once.
fn overlap(one: &ExpirableVersion, other: &ExpirableVersion) -> bool {
    if one.lifecycle.is_empty() || other.lifecycle.is_empty() {
        return true;
    }
    let ((Some(supported), next), (Some(supported_other), next_other)) = (supported_stage(one), supported_stage(other))
    else {
        return false;
    };
    let before = |stage: &LifecycleStage, next: Option<&LifecycleStage>| match (&stage.start_time, next) {
        (None, _) => true,
        (Some(start), Some(next)) => next.start_time.as_ref().is_some_and(|next| start.0 < next.0),
        (Some(_), None) => false,
    };
    (next.is_none() && next_other.is_none())
        || (next.is_none() && before(supported, next_other))
        || (next_other.is_none() && before(supported_other, next))
}

/// The versions of a list that are supported once, by their minor versions.
pub(super) struct Supported<'a> {
    minors: BTreeMap<(u64, u64), Vec<(semver::Version, &'a ExpirableVersion)>>,
    /// One of them is no version; then none is compared.
    unreadable: bool,
}

impl<'a> Supported<'a> {
    /// Those of a list.
    pub(super) fn of(list: &'a [ExpirableVersion]) -> Self {
        let mut own = Self {
            minors: BTreeMap::new(),
            unreadable: false,
        };
        for version in list {
            let mut stages = version.lifecycle.iter();
            let supported = version.classification.as_deref() == Some("supported")
                || stages.any(|stage| stage.classification == "supported");
            match versions::parse(&version.version) {
                Some(parsed) if supported => {
                    let minor = own.minors.entry((parsed.major, parsed.minor)).or_default();
                    minor.push((parsed, version));
                }
                None if supported => own.unreadable = true,
                _ => {}
            }
        }
        own
    }

    /// Of every minor version only one is supported, [VAL-CP4], [VER-24]; a finding for each other one, up to [`RIVALS_TOLD`].
    pub(super) fn once(&self, version: &ExpirableVersion, now: Timestamp, path: &Path) -> ErrorList {
        let own =
            versions::parse(&version.version).filter(|_| !self.unreadable && is_classified_supported(version, now));
        let Some(own) = own else { return ErrorList::new() };
        let rivals = self.minors.get(&(own.major, own.minor)).into_iter().flatten();
        let rivals = rivals.filter(|(other, rival)| other.cmp_precedence(&own).is_ne() && overlap(version, rival));
        let finding = || {
            let why = format!(
                "unable to add version {:?} with classification \"supported\". \"supported\" lifecycle stages must not overlap per minor version",
                version.version
            );
            Error::forbidden(path, why)
        };
        rivals.take(RIVALS_TOLD).map(|_| finding()).collect()
    }
}

/// A version that came into a stage does not become unavailable again, [VER-31].
pub(super) fn none_turned_unavailable(
    new: &[ExpirableVersion],
    old: &[ExpirableVersion],
    now: Timestamp,
    path: &Path,
) -> ErrorList {
    let gone = |version: &ExpirableVersion| version.stage(now) == Stage::Unavailable;
    let old: BTreeMap<&str, &ExpirableVersion> = old.iter().map(|own| (own.version.as_str(), own)).collect();
    let turned = new.iter().enumerate().filter(|(_, version)| {
        let before = old.get(version.version.as_str());
        before.is_some_and(|before| !gone(before)) && gone(version)
    });
    let why = "a version cannot be turned unavailable if it was already moved into a later lifecycle stage";
    turned.map(|(i, _)| Error::forbidden(&path.index(i), why)).collect()
}
