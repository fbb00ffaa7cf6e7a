//! Versions of Kubernetes and machine images as shoots and cloud profiles name them.

mod constraint;

use std::cmp::Ordering;

use gardener_apimachinery::field::go_quote;
use semver::Version;

pub use constraint::{Constraint, ParseConstraintError};

/// Longest version that is read, in bytes, [VER-26].
const LONGEST: usize = 256;

/// Why a text is no version, as Gardener's reader of versions tells it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseVersionError {
    /// Nobody writes such a long one.
    #[error("version string is too long (max {LONGEST} bytes)")]
    TooLong,
    /// It is made of other parts than a version is.
    #[error("invalid semantic version")]
    Malformed,
    /// A number of it is too large.
    #[error("error parsing version segment: strconv.ParseUint: parsing {}: value out of range", go_quote(.0))]
    OutOfRange(String),
    /// A number behind the `-` is padded.
    #[error("version segment starts with 0")]
    Padded,
}

/// Reads a version that may leave out minor and patch and may start with `v`: `1.36`, `v1.36.0`, `1.8-foo`, [VER-26].
///
/// # Errors
/// It is none.
pub fn read(text: &str) -> Result<Version, ParseVersionError> {
    if text.len() > LONGEST {
        return Err(ParseVersionError::TooLong);
    }
    let malformed = ParseVersionError::Malformed;
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let Some((numbers, suffix)) = text.split_at_checked(end) else {
        return Err(malformed);
    };
    let mut parts = [0; 3];
    if numbers.split('.').count() > parts.len() || !numbers.split('.').all(is_number) {
        return Err(malformed);
    }
    // the rest is as in a version that leaves out nothing
    let with_suffix = Version::parse(&format!("0.0.0{suffix}"));
    if with_suffix.is_err() && Version::parse(&format!("0.0.0{}", unpadded(suffix))).is_err() {
        return Err(malformed);
    }
    for (part, text) in parts.iter_mut().zip(numbers.split('.')) {
        let read = text.parse();
        *part = read.map_err(|_| ParseVersionError::OutOfRange(text.to_owned()))?;
    }
    let with_suffix = with_suffix.map_err(|_| ParseVersionError::Padded)?;
    let [major, minor, patch] = parts;
    Ok(Version {
        major,
        minor,
        patch,
        ..with_suffix
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// What stands behind a version's numbers, with 0 in the place of padded numbers before the `+`.
fn unpadded(suffix: &str) -> String {
    let (pre, build) = suffix.split_at(suffix.find('+').unwrap_or(suffix.len()));
    let is_padded = |part: &str| part.len() > 1 && part.starts_with('0') && is_number(part);
    let parts = pre.strip_prefix('-').into_iter().flat_map(|pre| pre.split('.'));
    let parts = parts.map(|part| if is_padded(part) { "0" } else { part });
    let pre = parts.collect::<Vec<_>>().join(".");
    match pre.is_empty() {
        true => build.to_owned(),
        false => format!("-{pre}{build}"),
    }
}

/// As [`read`], where it does not matter what is wrong.
pub fn parse(text: &str) -> Option<Version> {
    read(text).ok()
}

/// A version without what stands behind its numbers: every `v` is taken out, and what follows the first `-`, `+` or `~` is cut off, [VER-71].
pub fn normalised(text: &str) -> Option<Version> {
    let text = text.replace('v', "");
    parse(text.split(['-', '+', '~']).next()?)
}

/// Whether a version is at least `1.<minor>`; one that does not parse is not.
pub fn at_least(version: &str, minor: u64) -> bool {
    parse(version).is_some_and(|version| (version.major, version.minor) >= (1, minor))
}

/// Whether a version is before `1.<minor>`; one that does not parse is not.
pub fn before(version: &str, minor: u64) -> bool {
    parse(version).is_some_and(|version| (version.major, version.minor) < (1, minor))
}

/// Compares two versions; a text that is no version sorts first.
pub fn compare(one: &str, other: &str) -> Ordering {
    parse(one).cmp(&parse(other))
}

/// Where a version stands among the minor versions of Kubernetes 1: what is older stands before all, what is newer after all. None: it is no version.
/// Only its numbers matter, as in Gardener's ranges of versions, [VER-71].
pub fn minor(version: &str) -> Option<u64> {
    normalised(version).map(|version| match version.major {
        0 => 0,
        1 => version.minor,
        _ => u64::MAX,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms() {
        assert_eq!(parse("1.36"), Some(Version::new(1, 36, 0)));
        assert_eq!(parse("v1.36.2"), Some(Version::new(1, 36, 2)));
        assert_eq!(parse("15.06.1"), Some(Version::new(15, 6, 1)));
        assert_eq!(parse("1.8-foo"), parse("v1.8.0-foo"));
        for bad in ["", "one", "1.", "1.2.3.4", "1.x", "1.8-", "1.8+", "+1.8.0"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert!(
            before("1.33.9", 34)
                && !before("1.34.0-", 34)
                && at_least("1.34.0", 34)
                && at_least("2.0.0", 34)
                && !at_least("1.33.9", 34)
        );
        assert_eq!(compare("1.9.0", "1.10.0"), Ordering::Less);
        assert_eq!(
            (minor("1.34.2-"), minor("v1.34+x"), minor("2.0")),
            (Some(34), Some(34), Some(u64::MAX))
        );
        assert_eq!((minor(""), minor("-1.34"), minor("one")), (None, None, None));
    }

    #[test]
    fn what_is_no_version_says_why() {
        let long = "1".repeat(257);
        for (text, expected) in [
            ("", "invalid semantic version"),
            ("1.2.3.4", "invalid semantic version"),
            ("1.2.3-a..b", "invalid semantic version"),
            ("1.2.3-01.ä", "invalid semantic version"),
            (long.as_str(), "version string is too long (max 256 bytes)"),
            ("1.2.3-a.01+b", "version segment starts with 0"),
            (
                "1.99999999999999999999-01",
                "error parsing version segment: strconv.ParseUint: parsing \"99999999999999999999\": value out of range",
            ),
        ] {
            assert_eq!(read(text).unwrap_err().to_string(), expected, "{text}");
        }
        assert!(read("1.2.3-0a.0-1+01").is_ok());
    }

    #[test]
    fn ver_70_71_comparison() {
        assert_eq!(parse("1.8"), parse("1.8.0"));
        assert_eq!(compare("1.8.0-inplace", "1.8.0"), Ordering::Less);
        for text in ["1.8.0-inplace", "v1.8.0+meta", "1.8~1", "1.8"] {
            assert_eq!(normalised(text), Some(Version::new(1, 8, 0)), "{text}");
        }
        assert_eq!(normalised("-1"), None);
    }
}
