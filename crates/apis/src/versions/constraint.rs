//! Version constraints as Gardener's cloud profiles write them: `>= 1.31, < 1.36`, `~1.30`, `^1.2 || 2.x`, `1.30 - 1.32`.
//!
//! Terms that are joined by commas or blanks must all hold, of alternatives joined by `||` one must. Parts of a version may be left out or be
//! `x`, `X` or `*`. A release is never compared with a pre-release unless the constraint names one itself.

use semver::Version;

/// A parsed constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    alternatives: Vec<Vec<Term>>,
}

/// Why a text is no constraint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("improper constraint: {0:?}")]
pub struct ParseConstraintError(String);

/// One condition: the version is in a range, or, where `not` is set, outside of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    /// The lowest version that fits.
    least: Option<Version>,
    /// The lowest version that is too high.
    below: Option<Version>,
    not: bool,
    /// Whether the constraint names a pre-release.
    pre_release: bool,
}

/// A version of which parts may be missing.
#[derive(Clone, Debug)]
struct Partial {
    major: Option<u64>,
    minor: Option<u64>,
    patch: Option<u64>,
    pre: semver::Prerelease,
}

impl Partial {
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let text = text.split_once('+').map_or(text, |(version, _)| version);
        let (core, pre) = match text.split_once('-') {
            Some((core, pre)) => (core, semver::Prerelease::new(pre).ok()?),
            None => (text, semver::Prerelease::EMPTY),
        };
        let mut parts = Vec::new();
        for part in core.split('.') {
            parts.push(match part {
                "x" | "X" | "*" => None,
                number if number.bytes().all(|byte| byte.is_ascii_digit()) => Some(number.parse::<u64>().ok()?),
                _ => return None,
            });
        }
        if parts.len() > 3 {
            return None;
        }
        let part = |i: usize| parts.get(i).copied().flatten();
        let major = part(0);
        let minor = major.and(part(1));
        Some(Self {
            major,
            minor,
            patch: minor.and(part(2)),
            pre,
        })
    }

    fn least(&self) -> Version {
        let number = |part: Option<u64>| part.unwrap_or(0);
        Version {
            pre: self.pre.clone(),
            ..Version::new(number(self.major), number(self.minor), number(self.patch))
        }
    }

    /// The first version behind all those that this one stands for; none when it stands for all.
    fn behind(&self) -> Option<Version> {
        let major = self.major?;
        Some(match (self.minor, self.patch) {
            (None, _) => Version::new(major.saturating_add(1), 0, 0),
            (Some(minor), None) => Version::new(major, minor.saturating_add(1), 0),
            (Some(minor), Some(patch)) if self.pre.is_empty() => Version::new(major, minor, patch.saturating_add(1)),
            (Some(_), Some(_)) => Version {
                // the version that follows a pre-release at once
                pre: semver::Prerelease::new(&format!("{}.0", self.pre)).unwrap_or_default(),
                ..self.least()
            },
        })
    }

    fn term(&self, least: Option<Version>, below: Option<Version>) -> Term {
        Term {
            least,
            below,
            not: false,
            pre_release: !self.pre.is_empty(),
        }
    }
}

impl Term {
    fn parse(operator: &str, version: &str) -> Option<Self> {
        let version = Partial::parse(version)?;
        let least = Some(version.least());
        Some(match operator {
            "" | "=" => version.term(least, version.behind()),
            "!=" => Self {
                not: true,
                ..version.term(least, version.behind())
            },
            ">" => match version.behind() {
                Some(behind) => version.term(Some(behind), None),
                // nothing is higher than every version
                None => version.term(None, Some(Version::new(0, 0, 0))),
            },
            ">=" | "=>" => version.term(least, None),
            "<" => version.term(None, least),
            "<=" | "=<" => version.term(None, version.behind()),
            "~" | "~>" => {
                let minor = Partial {
                    patch: None,
                    ..version.clone()
                };
                version.term(least, minor.behind())
            }
            "^" => {
                let below = match (version.major, version.minor, version.patch) {
                    (Some(0), Some(0), Some(patch)) => Some(Version::new(0, 0, patch.saturating_add(1))),
                    (Some(0), Some(minor), _) => Some(Version::new(0, minor.saturating_add(1), 0)),
                    (major, ..) => major.map(|major| Version::new(major.saturating_add(1), 0, 0)),
                };
                version.term(least, below)
            }
            _ => return None,
        })
    }

    fn matches(&self, version: &Version) -> bool {
        if !version.pre.is_empty() && !self.pre_release {
            return false;
        }
        let inside = self
            .least
            .as_ref()
            .is_none_or(|least| version.cmp_precedence(least).is_ge())
            && self
                .below
                .as_ref()
                .is_none_or(|below| version.cmp_precedence(below).is_lt());
        inside != self.not
    }
}

/// Operator and version of the terms of one alternative.
fn terms(text: &str) -> Option<Vec<Term>> {
    let words: Vec<&str> = text.split([',', ' ', '\t']).filter(|word| !word.is_empty()).collect();
    let mut terms = Vec::new();
    let mut rest = words.as_slice();
    while let [word, tail @ ..] = rest {
        rest = tail;
        let split = word.find(|c: char| !"<>=!~^".contains(c)).unwrap_or(word.len());
        let (operator, version) = word.split_at_checked(split)?;
        if let ("", ["-", to, tail @ ..]) = (operator, rest) {
            rest = tail;
            terms.push(Term::parse(">=", version)?);
            terms.push(Term::parse("<=", to)?);
            continue;
        }
        match (version, rest) {
            // an operator may stand apart from its version
            ("", [version, tail @ ..]) => {
                rest = tail;
                terms.push(Term::parse(operator, version)?);
            }
            ("", []) => return None,
            (version, _) => terms.push(Term::parse(operator, version)?),
        }
    }
    (!terms.is_empty()).then_some(terms)
}

impl Constraint {
    /// Parses a constraint.
    ///
    /// # Errors
    /// What is no constraint.
    pub fn parse(text: &str) -> Result<Self, ParseConstraintError> {
        let alternatives: Option<Vec<_>> = text.split("||").map(terms).collect();
        alternatives
            .map(|alternatives| Self { alternatives })
            .ok_or_else(|| ParseConstraintError(text.to_owned()))
    }

    /// Whether a version fits.
    pub fn matches(&self, version: &Version) -> bool {
        let mut alternatives = self.alternatives.iter();
        alternatives.any(|terms| terms.iter().all(|term| term.matches(version)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits() {
        let table = [
            (">= 1.26", "1.26.0", true),
            (">= 1.26", "1.25.9", false),
            ("< 1.26", "1.26.0", false),
            ("< 1.26", "1.25.9", true),
            ("> 1.26", "1.26.9", false),
            ("> 1.26", "1.27.0", true),
            ("> 1.26.3", "1.26.4", true),
            ("<= 1.26", "1.26.9", true),
            ("<= 1.26", "1.27.0", false),
            ("= 1.26", "1.26.4", true),
            ("1.26", "1.26.4", true),
            ("1.26.3", "1.26.4", false),
            ("1.x", "1.99.0", true),
            ("1.x", "2.0.0", false),
            ("*", "3.2.1", true),
            ("!=1.26", "1.26.4", false),
            ("!=1.26.4", "1.26.5", true),
            ("~1.26.2", "1.26.9", true),
            ("~1.26.2", "1.27.0", false),
            ("~1", "1.9.0", true),
            ("^1.26", "1.99.0", true),
            ("^1.26", "2.0.0", false),
            ("^0.2.3", "0.2.9", true),
            ("^0.2.3", "0.3.0", false),
            (">= 1.26, < 1.28", "1.27.9", true),
            (">=1.26 <1.28", "1.28.0", false),
            ("1.26 - 1.28", "1.28.7", true),
            ("1.26 - 1.28", "1.29.0", false),
            ("< 1.20 || >= 1.30", "1.25.0", false),
            ("< 1.20 || >= 1.30", "1.30.0", true),
            (">= 1.26", "1.27.0-alpha.1", false),
            (">= 1.26.0-0", "1.27.0-alpha.1", true),
        ];
        for (constraint, version, expected) in table {
            let version = Version::parse(version).unwrap();
            assert_eq!(
                Constraint::parse(constraint).unwrap().matches(&version),
                expected,
                "{constraint} {version}"
            );
        }
    }

    #[test]
    fn what_is_none() {
        for bad in ["", "||", ">= ", "one", "1.2.3.4", "=! 1.2", ">= 1.2 || ", "1.b"] {
            assert!(Constraint::parse(bad).is_err(), "{bad}");
        }
    }
}
