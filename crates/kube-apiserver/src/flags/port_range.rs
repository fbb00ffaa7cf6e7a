//! Ranges of ports on command lines, as PortRange of k8s.io/apimachinery.

use std::ops::RangeInclusive;
use std::str::FromStr;

use gardener_apiserver::cluster::NODE_PORTS;

/// Some ports, the last included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRange(pub RangeInclusive<u16>);

impl FromStr for PortRange {
    type Err = String;

    /// Reads `MIN-MAX`, `MIN+OFFSET` or one port; as with upstream no text asks for the usual ports of nodes.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self(NODE_PORTS));
        }
        let number = |text: &str| {
            let number = text.parse::<i64>();
            number.map_err(|_| format!("{text:?} is no port: expected MIN-MAX, MIN+OFFSET or one port"))
        };
        let (first, last) = match (text.split_once('-'), text.split_once('+')) {
            (Some((first, last)), None) => (number(first)?, number(last)?),
            (None, Some((first, offset))) => {
                let first = number(first)?;
                (first, first.saturating_add(number(offset)?))
            }
            (None, None) => (number(text)?, number(text)?),
            (Some(_), Some(_)) => return Err(format!("unable to parse port range: {text}")),
        };
        if first > 65535 || last > 65535 {
            return Err(format!("the port range cannot be greater than 65535: {text}"));
        }
        if last < first {
            return Err(format!("end port cannot be less than start port: {text}"));
        }
        match (u16::try_from(first), u16::try_from(last)) {
            (Ok(first), Ok(last)) => Ok(Self(first..=last)),
            _ => Err(format!("ports are not negative: {text}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_upstream_writes_them() {
        for (text, expected) in [
            ("30000-32767", Some((30_000, 32_767))),
            (" 100+5 ", Some((100, 105))),
            ("80", Some((80, 80))),
            ("", Some((30_000, 32_767))),
            ("80-79", None),
            ("1-70000", None),
            ("1+2-3", None),
            ("-1", None),
            ("a-b", None),
        ] {
            let read = text.parse::<PortRange>().ok();
            assert_eq!(
                read.map(|range| (*range.0.start(), *range.0.end())),
                expected,
                "{text:?}"
            );
        }
    }
}
