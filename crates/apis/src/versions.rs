//! Versions of Kubernetes and machine images as shoots and cloud profiles name them.

mod constraint;

use std::cmp::Ordering;

use semver::Version;

pub use constraint::{Constraint, ParseConstraintError};

/// Parses a version that may leave out minor and patch and may start with `v`: `1.36`, `v1.36.0`, `1.8-foo`, [VER-26].
pub fn parse(text: &str) -> Option<Version> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let end = text.find(['-', '+']).unwrap_or(text.len());
    let (numbers, suffix) = text.split_at_checked(end)?;
    let mut parts = [0; 3];
    let given = numbers.split('.').count();
    if given > parts.len() {
        return None;
    }
    for (part, text) in parts.iter_mut().zip(numbers.split('.')) {
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *part = text.parse().ok()?;
    }
    let [major, minor, patch] = parts;
    // the rest is as in a version that leaves out nothing
    Version::parse(&format!("{major}.{minor}.{patch}{suffix}")).ok()
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
    fn ver_70_71_comparison() {
        assert_eq!(parse("1.8"), parse("1.8.0"));
        assert_eq!(compare("1.8.0-inplace", "1.8.0"), Ordering::Less);
        for text in ["1.8.0-inplace", "v1.8.0+meta", "1.8~1", "1.8"] {
            assert_eq!(normalised(text), Some(Version::new(1, 8, 0)), "{text}");
        }
        assert_eq!(normalised("-1"), None);
    }
}
