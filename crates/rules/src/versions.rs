//! Versions of Kubernetes and machine images that a cloud profile lists: which of them are chosen by default, and to which of them maintenance
//! brings those who run another [VER-10..79].
//!
//! What may be written into a CloudProfile is in `apis` (its validation), what a shoot may name in the garden's admission.

mod images;
mod path;

use gardener_apis::core::v1beta1::{CloudProfileSpec, MachineImageVersion, Stage};
use gardener_apis::versions::{normalised, parse};
use k8s_openapi::jiff::Timestamp;
use semver::Version;

pub use images::{Needs, default_architecture, fits_architecture, fits_capabilities, fitting, image};
pub use path::{Strategy, kubernetes_target, machine_image_target};

/// A version that a cloud profile lists, at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed<'a> {
    /// The version as it is written.
    pub text: &'a str,
    /// What the text means; versions that mean nothing are not listed.
    pub version: Version,
    /// Its stage.
    pub stage: Stage,
}

impl<'a> Listed<'a> {
    fn of(text: &'a str, stage: Stage) -> Option<Self> {
        Some(Self {
            text,
            version: parse(text)?,
            stage,
        })
    }

    fn is_alive(&self) -> bool {
        self.stage != Stage::Expired
    }

    /// Whether anybody who did not ask for it may get it.
    fn may_be_given(&self) -> bool {
        !matches!(self.stage, Stage::Preview | Stage::Unavailable)
    }
}

/// The Kubernetes versions of a cloud profile.
pub fn kubernetes(profile: &CloudProfileSpec, now: Timestamp) -> Vec<Listed<'_>> {
    let versions = profile.kubernetes.versions.iter();
    versions
        .filter_map(|own| Listed::of(&own.version, own.stage(now)))
        .collect()
}

/// Some versions of a machine image.
pub fn machine_image<'a>(
    versions: impl IntoIterator<Item = &'a MachineImageVersion>,
    now: Timestamp,
) -> Vec<Listed<'a>> {
    let versions = versions.into_iter();
    versions
        .filter_map(|own| Listed::of(&own.version, own.stage(now)))
        .collect()
}

/// A version of which the last parts may be left open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Taken as it is.
    Exact,
    /// The version must have these numbers; none in the place of one that may be any.
    Prefix(Vec<Option<u64>>),
}

impl Wish {
    /// What a shoot's text asks for [VER-40], [VER-53].
    ///
    /// # Errors
    /// The part that is no number. The second is looked at before the first.
    pub fn of(text: &str) -> Result<Self, NoNumber<'_>> {
        let parts: Vec<&str> = text.split('.').collect();
        let (major, minor) = match parts.as_slice() {
            [_, _, _] => return Ok(Self::Exact),
            [major, minor] => (*major, *minor),
            // so does upstream: of four and more parts only the first counts
            [major, ..] => (*major, ""),
            [] => ("", ""),
        };
        let minor = number(minor)?;
        let major = number(major)?;
        Ok(Self::Prefix(vec![major, minor]))
    }
}

/// A part of a version that is no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoNumber<'a> {
    /// The part.
    pub part: &'a str,
    /// What Go's parser of numbers says of it.
    pub why: &'static str,
}

/// A part of a version as Go's `strconv.ParseUint` reads it; an empty one stands for any number.
fn number(part: &str) -> Result<Option<u64>, NoNumber<'_>> {
    if part.is_empty() {
        return Ok(None);
    }
    let digits = part.bytes().all(|byte| byte.is_ascii_digit());
    let why = match digits {
        true => "value out of range",
        false => "invalid syntax",
    };
    let found = digits.then(|| part.parse().ok()).flatten();
    found.map(Some).ok_or(NoNumber { part, why })
}

fn begins_with(version: &Version, prefix: &[Option<u64>]) -> bool {
    let numbers = [version.major, version.minor, version.patch];
    let mut pairs = numbers.iter().zip(prefix);
    pairs.all(|(own, wanted)| wanted.is_none_or(|wanted| *own == wanted))
}

fn highest<'l, 'a>(versions: impl Iterator<Item = &'l Listed<'a>>) -> Option<&'l Listed<'a>>
where
    'a: 'l,
{
    versions.max_by(|one, other| one.version.cmp_precedence(&other.version))
}

/// The Kubernetes version that a shoot gets which leaves parts of it open: the highest supported one [VER-40].
pub fn default_kubernetes<'l, 'a>(listed: &'l [Listed<'a>], prefix: &[Option<u64>]) -> Option<&'l Listed<'a>> {
    let supported = listed.iter().filter(|own| own.stage == Stage::Supported);
    highest(supported.filter(|own| begins_with(&own.version, prefix)))
}

/// The version of a machine image that a pool gets which leaves parts of it open: the highest one that is not deprecated, else the highest
/// deprecated one [VER-53]. Expired ones are not given: the check behind would refuse them [VER-54].
pub fn default_machine_image<'l, 'a>(listed: &'l [Listed<'a>], prefix: &[Option<u64>]) -> Option<&'l Listed<'a>> {
    let candidates = || {
        let given = listed.iter().filter(|own| own.may_be_given() && own.is_alive());
        given.filter(|own| begins_with(&own.version, prefix))
    };
    highest(candidates().filter(|own| own.stage == Stage::Supported)).or_else(|| highest(candidates()))
}

/// Compares what two versions say without their suffixes; none if one says nothing [VER-71].
pub fn compare_normalised(one: &str, other: &str) -> Option<std::cmp::Ordering> {
    Some(normalised(one)?.cmp(&normalised(other)?))
}

#[cfg(test)]
pub(crate) mod tests;
