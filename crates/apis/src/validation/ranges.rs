//! Ranges of addresses that a spec tells: of which family they are, and whether they overlap.

use gardener_apimachinery::field::{Error, ErrorList, Path, go_quote};
use ipnet::IpNet;

use super::{cidr, family, overlap};

/// A range of addresses, as it is written and as it is meant.
pub struct Range<'a> {
    /// Where it stands.
    pub path: Path,
    /// How it is written.
    pub text: &'a str,
    /// The range, without bits beyond its prefix.
    pub net: IpNet,
}

impl<'a> Range<'a> {
    /// Reads a range, or finds that it is none.
    ///
    /// # Errors
    /// The finding.
    pub fn parse(text: &'a str, path: Path) -> Result<Self, Error> {
        let net = cidr(text, &path)?.trunc();
        Ok(Self { path, text, net })
    }

    /// A finding when the range is not of a family, `IPv4` or `IPv6`.
    pub fn of_other_family(&self, wanted: &str) -> Option<Error> {
        let why = format!("must be a valid {wanted} address");
        (family(&self.net) != wanted).then(|| Error::invalid(&self.path, self.net.addr().to_string(), why))
    }

    /// Findings for ranges that overlap this one.
    pub fn overlapped_by<'r>(&self, others: impl Iterator<Item = &'r Range<'r>>) -> ErrorList {
        let (path, text) = (go_quote(self.path.as_str()), go_quote(self.text));
        let others = others.filter(|other| overlap(&self.net, &other.net));
        others
            .map(|other| {
                Error::invalid(
                    &other.path,
                    other.text,
                    format!("must not overlap with {path} ({text})"),
                )
            })
            .collect()
    }
}

/// Findings for ranges of a list that overlap.
pub fn overlapping(ranges: &[&Range<'_>]) -> ErrorList {
    let ranges = ranges.iter().enumerate();
    let ranges = ranges.clone().map(|(i, range)| {
        let later = ranges.clone().skip(i + 1).map(|(_, later)| *later);
        range.overlapped_by(later)
    });
    ranges.flatten().collect()
}
