//! What upstream takes for an IP address or a range, in fields of old and in stricter ones of late.

use std::net::IpAddr;

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::ip::NO_ADDRESS;
pub(super) use gardener_apimachinery::ip::lenient;

/// Why an address is no host.
pub(super) const NO_NAME: &str = "must be a DNS name, not an IP address";
const NO_RANGE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// What to warn of in an address that was taken: a form that will not be taken for ever, or not the shortest one.
pub(super) fn unusual(text: &str, at: &Path) -> Option<String> {
    let address = lenient(text)?;
    let shown = match address {
        IpAddr::V6(own) => own.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    };
    if text.parse::<IpAddr>().is_err() || shown != address {
        return Some(format!(
            "{at}: non-standard IP address \"{text}\" is invalid: use \"{shown}\""
        ));
    }
    (address.is_ipv6() && address.to_string() != text)
        .then(|| format!("{at}: IPv6 address \"{text}\" should be in RFC 5952 canonical format (\"{address}\")"))
}

/// A range of addresses: the address as written, the first one of the range, and the length of its prefix.
#[derive(Clone, Copy)]
pub(super) struct Range {
    address: IpAddr,
    first: IpAddr,
    bits: u32,
}

/// The first address of a range.
fn masked(address: IpAddr, bits: u32) -> IpAddr {
    match address {
        IpAddr::V4(own) => IpAddr::V4((own.to_bits() & u32::MAX.checked_shl(32 - bits).unwrap_or(0)).into()),
        IpAddr::V6(own) => IpAddr::V6((own.to_bits() & u128::MAX.checked_shl(128 - bits).unwrap_or(0)).into()),
    }
}

impl Range {
    /// How many bits an address of IPv6 has in front of one of IPv4.
    const CLOTHES: u32 = 96;

    /// Reads a range, where numbers may begin with zeros.
    pub(super) fn lenient(text: &str) -> Option<Self> {
        let (address, bits) = text.split_once('/')?;
        if bits.is_empty() || !bits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let address = lenient(address)?;
        let bits: u32 = bits.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        (bits <= most).then(|| Self {
            address,
            first: masked(address, bits),
            bits,
        })
    }

    /// Whether `other` is a smaller range in this one.
    pub(super) fn strictly_contains(&self, other: &Self) -> bool {
        self.address.is_ipv4() == other.address.is_ipv4()
            && self.bits < other.bits
            && masked(other.first, self.bits) == self.first
    }

    /// The range as Go writes it: one of IPv4 in the clothes of IPv6 without them.
    fn shown(&self) -> String {
        match (self.first.to_canonical(), self.bits.checked_sub(Self::CLOTHES)) {
            (first @ IpAddr::V4(_), Some(bits)) if !self.is_ipv4() => format!("{first}/{bits}"),
            _ => format!("{}/{}", self.first, self.bits),
        }
    }

    /// Whether it is of IPv4.
    pub(super) fn is_ipv4(&self) -> bool {
        self.address.is_ipv4()
    }
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(own) if own.to_ipv4_mapped().is_some())
}

/// An address, as older fields allow it: not necessarily in its shortest form.
pub(super) fn address(text: &str, at: &Path, errors: &mut ErrorList) {
    let why = match (text.parse::<IpAddr>(), lenient(text)) {
        (_, None) => NO_ADDRESS,
        (Err(_), Some(_)) => "must not have leading 0s",
        (Ok(address), _) if is_mapped(address) => "must not be an IPv4-mapped IPv6 address",
        _ => return,
    };
    errors.push(Error::invalid(at, text, why));
}

/// An address in its one form. Tells what is wrong with it.
pub(super) fn canonical_address(text: &str) -> Vec<String> {
    let mut errors = ErrorList::new();
    address(text, &Path::root(), &mut errors);
    if let Some(error) = errors.pop() {
        return vec![error.detail];
    }
    match text.parse::<IpAddr>() {
        Ok(address) if address.to_string() != text => vec![format!("must be in canonical form (\"{address}\")")],
        _ => Vec::new(),
    }
}

/// Whether a number in a range begins with zeros.
fn has_zeros(range: &str) -> bool {
    let (address, bits) = range.split_once('/').unwrap_or_default();
    address.parse::<IpAddr>().is_err() || bits.len() > 1 && bits.starts_with('0')
}

/// A range, as older fields allow it.
pub(super) fn range(text: &str, at: &Path, errors: &mut ErrorList) {
    let Some(range) = Range::lenient(text) else {
        errors.push(Error::invalid(at, text, NO_RANGE));
        return;
    };
    let why = if has_zeros(text) {
        "must not have leading 0s in IP or prefix length"
    } else if is_mapped(range.address) {
        "must not have an IPv4-mapped IPv6 address"
    } else if range.address != range.first {
        "must not have bits set beyond the prefix length"
    } else {
        return;
    };
    errors.push(Error::invalid(at, text, why));
}

/// What to warn of in a range that was taken: an address inside of it, a form that will not be taken for ever, or not the shortest one.
pub(super) fn unusual_range(text: &str, at: &Path) -> Vec<String> {
    let Some(range) = Range::lenient(text) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if range.address != range.first {
        let (address, longest) = (range.address.to_canonical(), if range.is_ipv4() { 32 } else { 128 });
        found.push(format!(
            "{at}: CIDR value \"{text}\" is ambiguous in this context (should be \"{}\" or \"{address}/{longest}\"?)",
            range.shown()
        ));
    }
    if has_zeros(text) || is_mapped(range.address) {
        found.push(format!(
            "{at}: non-standard CIDR value \"{text}\" is invalid: use \"{}\"",
            range.shown()
        ));
    }
    if found.is_empty() && !range.is_ipv4() && range.shown() != text {
        found.push(format!(
            "{at}: IPv6 CIDR value \"{text}\" should be in RFC 5952 canonical format (\"{}\")",
            range.shown()
        ));
    }
    found
}

/// A range in its one form.
pub(super) fn canonical_range(text: &str, at: &Path, errors: &mut ErrorList) {
    let before = errors.len();
    range(text, at, errors);
    if errors.len() > before {
        return;
    }
    if let Some(range) = Range::lenient(text) {
        let canonical = format!("{}/{}", range.first, range.bits);
        if canonical != text {
            errors.push(Error::invalid(
                at,
                text,
                format!("must be in canonical form (\"{canonical}\")"),
            ));
        }
    }
}

/// An address with the length of its network's prefix, in its one form.
pub(super) fn of_interface(text: &str, at: &Path, errors: &mut ErrorList) {
    let Some(range) = Range::lenient(text) else {
        let why = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
        errors.push(Error::invalid(at, text, why));
        return;
    };
    let address = range.address.to_canonical();
    // one of IPv4 in the clothes of IPv6 goes without them
    let bits = match address.is_ipv4() && range.bits > 32 {
        true => range.bits.saturating_sub(Range::CLOTHES),
        false => range.bits,
    };
    let canonical = format!("{address}/{bits}");
    if canonical != text {
        let why = format!("must be in canonical form (\"{canonical}\")");
        errors.push(Error::invalid(at, text, why));
    }
}

/// Addresses that make no sense as those of endpoints.
pub(super) fn of_endpoint(text: &str, at: &Path, errors: &mut ErrorList) {
    let Some(address) = lenient(text) else {
        errors.push(Error::invalid(at, text, "must be a valid IP address"));
        return;
    };
    let address = address.to_canonical();
    let (link_local, multicast) = match address {
        IpAddr::V4(own) => (own.is_link_local(), own.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(own) => (
            own.is_unicast_link_local(),
            own.segments().first().is_some_and(|first| first & 0xff0f == 0xff02),
        ),
    };
    if address.is_unspecified() {
        errors.push(Error::invalid(at, text, format!("may not be unspecified ({text})")));
    }
    if address.is_loopback() {
        errors.push(Error::invalid(
            at,
            text,
            "may not be in the loopback range (127.0.0.0/8, ::1/128)",
        ));
    }
    if link_local {
        errors.push(Error::invalid(
            at,
            text,
            "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
        ));
    }
    if multicast {
        errors.push(Error::invalid(
            at,
            text,
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(check: fn(&str, &Path, &mut ErrorList), text: &str) -> String {
        let mut errors = ErrorList::new();
        check(text, &Path::root(), &mut errors);
        errors
            .iter()
            .map(|error| error.detail.as_str())
            .collect::<Vec<_>>()
            .join("; ")
    }

    #[test]
    fn addresses_and_ranges_are_judged() {
        for (text, expected) in [
            ("10.0.0.1", ""),
            ("fd00::1", ""),
            ("010.0.0.1", "must not have leading 0s"),
            ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
            ("10.0.0", NO_ADDRESS),
            ("", NO_ADDRESS),
        ] {
            assert_eq!(wrong(address, text), expected, "{text}");
        }
        for (text, expected) in [
            ("10.0.0.0/8", ""),
            ("0.0.0.0/0", ""),
            ("::/0", ""),
            ("fd00::/128", ""),
            ("10.0.0.1/8", "must not have bits set beyond the prefix length"),
            ("10.0.0.0/08", "must not have leading 0s in IP or prefix length"),
            ("10.0.0.0/33", NO_RANGE),
            ("10.0.0.0", NO_RANGE),
            ("/8", NO_RANGE),
        ] {
            assert_eq!(wrong(range, text), expected, "{text}");
        }
        for (text, expected) in [
            ("10.0.0.0/8", vec![]),
            ("fd00::/64", vec![]),
            (
                "10.0.0.1/8",
                vec![
                    "a: CIDR value \"10.0.0.1/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.0.0.1/32\"?)",
                ],
            ),
            (
                "010.0.0.0/8",
                vec!["a: non-standard CIDR value \"010.0.0.0/8\" is invalid: use \"10.0.0.0/8\""],
            ),
            (
                "::ffff:1.2.0.0/112",
                vec!["a: non-standard CIDR value \"::ffff:1.2.0.0/112\" is invalid: use \"1.2.0.0/16\""],
            ),
            (
                "fd00:0::/64",
                vec!["a: IPv6 CIDR value \"fd00:0::/64\" should be in RFC 5952 canonical format (\"fd00::/64\")"],
            ),
        ] {
            assert_eq!(unusual_range(text, &Path::new("a")), expected, "{text}");
        }
        let contains = |outer: &str, inner: &str| {
            Range::lenient(outer)
                .unwrap()
                .strictly_contains(&Range::lenient(inner).unwrap())
        };
        assert!(contains("10.0.0.0/8", "10.1.0.0/16"));
        assert!(!contains("10.0.0.0/8", "10.0.0.0/8"));
        assert!(!contains("10.0.0.0/8", "fd00::/64"));
        assert!(contains("0.0.0.0/0", "10.0.0.0/8"));
    }
}
