//! Which version follows another one: by an automatic update, or by force where the present one is at its end [VER-75], [VER-76].

use gardener_apis::core::v1beta1::Stage;
use gardener_apis::versions::normalised;
use semver::Version;

use super::{Listed, highest};

/// How far an image's versions lead [VER-76].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// To the latest patch; by force to the next minor.
    Patch,
    /// To the latest minor; by force to the next major.
    Minor,
    /// To the latest version of all.
    Major,
}

impl Strategy {
    /// The strategy of a name; `major` unless it says otherwise.
    pub fn of(name: Option<&str>) -> Self {
        match name {
            Some("patch") => Self::Patch,
            Some("minor") => Self::Minor,
            _ => Self::Major,
        }
    }

    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Patch => "patch",
            Self::Minor => "minor",
            Self::Major => "major",
        }
    }
}

/// The versions above one.
struct Above<'l, 'a> {
    listed: &'l [Listed<'a>],
    current: &'l Version,
}

impl<'l, 'a> Above<'l, 'a> {
    /// The latest that lives and passes; deprecated ones only where no other does.
    fn latest(&self, passes: impl Fn(&Version) -> bool) -> Option<&'l Listed<'a>> {
        let candidates = || {
            let alive = self.listed.iter().filter(|own| own.may_be_given() && own.is_alive());
            alive.filter(|own| own.version.cmp_precedence(self.current).is_gt() && passes(&own.version))
        };
        let lasting = candidates().filter(|own| own.stage != Stage::Deprecated);
        highest(lasting).or_else(|| highest(candidates()))
    }

    /// The latest patch of the same minor [VER-72].
    fn latest_patch(&self) -> Option<&'l Listed<'a>> {
        let own = normalised(&self.current.to_string())?;
        self.latest(|version| {
            let version = normalised(&version.to_string());
            version.is_some_and(|new| (new.major, new.minor) == (own.major, own.minor) && new.patch >= own.patch)
        })
    }

    /// The latest version in the next step, where a step is told by a version's number `of`, among those that `pass`.
    fn next(&self, of: impl Fn(&Version) -> u64, passes: impl Fn(&Version) -> bool) -> Option<&'l Listed<'a>> {
        let own = of(self.current);
        let next = self
            .listed
            .iter()
            .map(|listed| of(&listed.version))
            .filter(|step| *step > own)
            .min()?;
        let within = |expired_too: bool| {
            let candidates = || {
                let given = self
                    .listed
                    .iter()
                    .filter(|own| own.may_be_given() && (expired_too || own.is_alive()));
                given.filter(|listed| of(&listed.version) > own && passes(&listed.version))
            };
            let step = candidates().map(|listed| of(&listed.version)).min()?;
            Some((
                step,
                highest(candidates().filter(|listed| of(&listed.version) == step))?,
            ))
        };
        match within(false) {
            Some((step, found)) if step == next => Some(found),
            // what is expired may not be jumped over
            _ => within(true).map(|(_, found)| found),
        }
    }
}

/// Why a version that must be left cannot be left.
fn stuck(current: &str) -> String {
    format!(
        "cannot perform forceful update of expired version {current:?}. No suitable version found in CloudProfile - this is most likely a misconfiguration of the CloudProfile"
    )
}

/// The Kubernetes version after the current one; `forced`, if it must be left.
///
/// # Errors
/// The current version must be left and there is none to go to.
pub fn kubernetes_target<'a>(listed: &[Listed<'a>], current: &str, forced: bool) -> Result<Option<&'a str>, String> {
    let parsed = gardener_apis::versions::parse(current).ok_or_else(|| stuck(current))?;
    let above = Above {
        listed,
        current: &parsed,
    };
    if let Some(found) = above.latest_patch() {
        return Ok(Some(found.text));
    }
    if !forced {
        return Ok(None);
    }
    let next = |expired_too: bool| {
        let given = listed
            .iter()
            .filter(|own| own.may_be_given() && (expired_too || own.is_alive()));
        highest(given.filter(|own| (own.version.major, own.version.minor) == (parsed.major, parsed.minor + 1)))
    };
    let found = next(false).or_else(|| next(true)).ok_or_else(|| stuck(current))?;
    Ok(Some(found.text))
}

/// The version of a machine image after the current one; `forced`, if it must be left.
///
/// # Errors
/// The current version must be left and there is none to go to, behind `failed to update machine image …: `.
pub fn machine_image_target<'a>(
    listed: &[Listed<'a>],
    image: &str,
    current: &str,
    strategy: Strategy,
    forced: bool,
) -> Result<Option<&'a str>, String> {
    let parsed = gardener_apis::versions::parse(current).ok_or_else(|| stuck(current))?;
    let above = Above {
        listed,
        current: &parsed,
    };
    let automatic = above.latest_patch().or_else(|| match strategy {
        Strategy::Patch => None,
        Strategy::Minor => above.latest(|version| version.major == parsed.major),
        Strategy::Major => above.latest(|_| true),
    });
    if let Some(found) = automatic {
        return Ok(Some(found.text));
    }
    if !forced {
        return Ok(None);
    }
    let found = match strategy {
        Strategy::Patch => above.next(|version| version.minor, |version| version.major == parsed.major),
        Strategy::Minor => above.next(|version| version.major, |_| true),
        Strategy::Major => {
            return Err(format!(
                "failed to determine version for forceful update: either the machine image {image:?} is reaching end of life and migration to another machine image is required or there is a misconfiguration in the CloudProfile. If it is the latter, make sure the machine image in the CloudProfile has at least one version that is not expired, not in preview and greater or equal to the current Shoot image version {current:?}"
            ));
        }
    };
    found.map(|found| Some(found.text)).ok_or_else(|| stuck(current))
}
