//! The formats that schemas of custom resources may name, and which texts fit them.

use std::sync::LazyLock;

use regex::Regex;

/// The formats of texts that apiextensions knows, without the dashes of their names.
const OF_TEXTS: [&str; 26] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

fn pattern(text: &str) -> Regex {
    #[allow(clippy::expect_used)] // constants of this file
    Regex::new(text).expect("a valid pattern")
}

static HOST: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
    )
});
static UUID: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?([0-9a-f])[0-9a-f]{3}-?([0-9a-f])[0-9a-f]{3}-?[0-9a-f]{12}$")
});
static TIME_OF_DAY: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$"));
static COUNTED: LazyLock<Regex> = LazyLock::new(|| pattern(r"[0-9]+\s*([A-Za-zµ]+)"));
static CARD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
    )
});
static COLOUR: LazyLock<Regex> = LazyLock::new(|| pattern(r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static RGB: LazyLock<Regex> = LazyLock::new(|| {
    let part = r"\s*(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])\s*";
    pattern(&format!(r"^rgb\({part},{part},{part}\)$"))
});
static BYTES: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"));
static SECURITY_NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static LABEL: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"));
static ATOM: LazyLock<Regex> = LazyLock::new(|| pattern(r"^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.\x{80}-\x{10FFFF}-]+$"));

/// Whether apiextensions knows a format for values of this JSON type; empty stands for no type.
pub fn is_known(json_type: &str, format: &str) -> bool {
    match json_type {
        "" | "string" => OF_TEXTS.contains(&format.replace('-', "").as_str()),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

/// Whether a text fits a format. Formats that apiextensions does not know fit always.
pub fn fits(format: &str, text: &str) -> bool {
    match format.replace('-', "").as_str() {
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "uri" => is_uri(text),
        "email" => is_address(text),
        "hostname" => text.len() <= 255 && HOST.is_match(text) && text.split('.').all(|part| part.len() <= 63),
        "ipv4" => is_ipv4(text),
        "ipv6" => text.contains(':') && text.parse::<std::net::Ipv6Addr>().is_ok(),
        "cidr" => text.split_once('/').is_some_and(|(address, length)| {
            let most = match (is_ipv4(address), address.parse::<std::net::Ipv6Addr>()) {
                (true, _) => 32,
                (_, Ok(_)) => 128,
                _ => return false,
            };
            let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
            is_number && length.parse::<u32>().is_ok_and(|length| length <= most)
        }),
        "mac" => is_mac(text),
        "uuid" => UUID.is_match(text),
        "uuid3" => is_uuid_of(text, "3"),
        "uuid4" => is_uuid_of(text, "4"),
        "uuid5" => is_uuid_of(text, "5"),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "creditcard" => is_card(text),
        "ssn" => text.len() == 11 && SECURITY_NUMBER.is_match(text),
        "hexcolor" => COLOUR.is_match(text),
        "rgbcolor" => RGB.is_match(text),
        "byte" => BYTES.is_match(text),
        "date" => is_date(text),
        "duration" => super::duration(text).is_ok() || is_counted(text),
        "datetime" => is_moment(text),
        "k8sshortname" => text.len() <= 63 && LABEL.is_match(text),
        "k8slongname" => text.len() <= 253 && text.split('.').all(|label| LABEL.is_match(label)),
        _ => true,
    }
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_moment(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    let Some(found) = TIME_OF_DAY.captures(time).filter(|_| is_date(date)) else {
        return false;
    };
    let part = |at: usize| found.get(at).map_or("", |found| found.as_str());
    part(1) <= "23" && part(2) <= "59" && part(3) <= "59"
}

/// A duration in words: a number and a unit somewhere in the text.
fn is_counted(text: &str) -> bool {
    // of a unit's names the last may be followed by anything
    let units: [(&[&str], &str); 8] = [
        (&["ns"], "nano"),
        (&["us", "µs"], "micro"),
        (&["ms"], "milli"),
        (&["s"], "sec"),
        (&["m"], "min"),
        (&["h", "hr"], "hour"),
        (&["d"], "day"),
        (&["w", "wk"], "week"),
    ];
    COUNTED.captures_iter(text).any(|found| {
        let unit = found.get(1).map_or("", |unit| unit.as_str()).to_lowercase();
        let mut units = units.iter();
        units.any(|(names, stem)| names.contains(&unit.as_str()) || unit.starts_with(stem))
    })
}

/// An IPv4 address; leading zeros do not matter.
fn is_ipv4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let fits = |part: &&str| {
        let digits = part.trim_start_matches('0');
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_digit())
            && digits.len() <= 3
            && (digits.is_empty() || digits.parse::<u16>().is_ok_and(|number| number <= 255))
    };
    parts.len() == 4 && parts.iter().all(fits)
}

/// A hardware address of 6, 8 or 20 bytes, in pairs by colons or dashes or in fours by dots.
fn is_mac(text: &str) -> bool {
    let in_parts = |separator: char, digits: usize, counts: [usize; 3]| {
        let parts: Vec<&str> = text.split(separator).collect();
        let is_hex = |part: &&str| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        counts.contains(&parts.len()) && parts.iter().all(is_hex)
    };
    in_parts(':', 2, [6, 8, 20]) || in_parts('-', 2, [6, 8, 20]) || in_parts('.', 4, [3, 4, 10])
}

fn is_uuid_of(text: &str, version: &str) -> bool {
    let Some(found) = UUID.captures(text) else { return false };
    let digit = |at: usize| found.get(at).map_or("", |digit| digit.as_str());
    // the variant is looked at in random and named ones only
    let variant = version == "3" || matches!(digit(2), "8" | "9" | "a" | "b" | "A" | "B");
    digit(1) == version && variant
}

fn digits_of(text: &str, is_separator: impl Fn(char) -> bool) -> String {
    text.chars().filter(|character| !is_separator(*character)).collect()
}

fn is_blank_or_dash(character: char) -> bool {
    character == '-' || character.is_ascii_whitespace()
}

fn value(byte: u8) -> u32 {
    u32::from(byte.saturating_sub(b'0'))
}

fn is_isbn10(text: &str) -> bool {
    let text = digits_of(text, is_blank_or_dash);
    let (stem, check) = (text.get(..9).unwrap_or_default(), text.get(9..).unwrap_or_default());
    if stem.is_empty() || !stem.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let check = match check.as_bytes() {
        [b'X'] => 10,
        [digit] if digit.is_ascii_digit() => value(*digit),
        _ => return false,
    };
    let sum: u32 = (1..).zip(stem.bytes()).map(|(at, byte)| at * value(byte)).sum();
    (sum + 10 * check).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let text = digits_of(text, is_blank_or_dash);
    if text.len() != 13 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 = weights
        .zip(text.bytes())
        .map(|(weight, byte)| weight * value(byte))
        .sum();
    sum.is_multiple_of(10)
}

fn is_card(text: &str) -> bool {
    let text = digits_of(text, |character| !character.is_ascii_digit());
    let doubled = [false, true].into_iter().cycle();
    let sum: u32 = doubled
        .zip(text.bytes().rev())
        .map(|(is_doubled, byte)| match (is_doubled, value(byte)) {
            (true, digit) if digit > 4 => 2 * digit - 9,
            (true, digit) => 2 * digit,
            (false, digit) => digit,
        })
        .sum();
    CARD.is_match(&text) && sum.is_multiple_of(10)
}

/// An absolute URI, or a path from the root.
fn is_uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(|character| character.is_ascii_control()) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let is_scheme = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    let (scheme, rest) = match text.split_once(':') {
        Some(("", _)) => return false,
        Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
        _ => ("", text),
    };
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    let (authority, path) = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(rest) => rest.split_at(rest.find('/').unwrap_or(rest.len())),
        None => ("", rest),
    };
    let path = path.split('?').next().unwrap_or_default();
    let is_escaped = |text: &str| {
        text.split('%').skip(1).all(|rest| {
            let mut digits = rest.bytes();
            (0..2).all(|_| digits.next().is_some_and(|byte| byte.is_ascii_hexdigit()))
        })
    };
    let host = authority.rsplit('@').next().unwrap_or_default();
    let port = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((_, rest)) => rest.strip_prefix(':').unwrap_or(if rest.is_empty() { "" } else { "x" }),
            None => return false,
        },
        None => host.split_once(':').map_or("", |(_, port)| port),
    };
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    let is_host = !host.chars().any(|character| " \"<>\\^`{|}".contains(character));
    is_escaped(path) && is_escaped(host) && is_port && is_host
}

/// An address of mail, with or without the name of whom it belongs to.
fn is_address(text: &str) -> bool {
    let text = text.trim();
    let address = match text.strip_suffix('>').and_then(|text| text.split_once('<')) {
        Some((name, address)) => {
            let name = name.trim();
            let is_quoted = name.len() > 1 && name.starts_with('"') && name.ends_with('"');
            if !is_quoted && !name.split_whitespace().all(|word| ATOM.is_match(word)) {
                return false;
            }
            address
        }
        None => text,
    };
    let Some((local, domain)) = address.rsplit_once('@') else {
        return false;
    };
    let is_dotted = |text: &str| ATOM.is_match(text) && !text.split('.').any(str::is_empty);
    let is_quoted = local.len() > 1 && local.starts_with('"') && local.ends_with('"');
    let is_literal = domain.starts_with('[') && domain.ends_with(']');
    (is_quoted || is_dotted(local)) && (is_literal || is_dotted(domain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit_their_formats() {
        for (format, good, bad) in [
            ("bsonobjectid", "507f1f77bcf86cd799439011", "507f"),
            ("uri", "http://a/b?c=d", "a b"),
            ("uri", "/a", "a"),
            ("uri", "mailto:a@b", "http://[::1"),
            ("email", "A B <a@b.c>", "a"),
            ("email", "a@b", "a@b@"),
            ("hostname", "example.com", "-a"),
            ("hostname", "a", "a.b"),
            ("ipv4", "01.2.3.4", "1.2.3"),
            ("ipv6", "::1", "1.2.3.4"),
            ("cidr", "::/0", "1.2.3.4/33"),
            ("mac", "0011.2233.4455", "00:11"),
            ("uuid", "0a1b2c3d000040008000000000000001", "0a1b"),
            (
                "uuid3",
                "0a1b2c3d-0000-3000-0000-000000000001",
                "0a1b2c3d-0000-4000-8000-000000000001",
            ),
            (
                "uuid4",
                "0a1b2c3d-0000-4000-8000-000000000001",
                "0a1b2c3d-0000-4000-0000-000000000001",
            ),
            ("isbn", "0-306-40615-2", "0-306-40615-3"),
            ("isbn10", "080442957X", "0804429570"),
            ("isbn13", "978-0321751041", "978-0321751042"),
            ("creditcard", "4111 1111 1111 1111", "4111111111111112"),
            ("ssn", "111-11-1111", "111111111"),
            ("hexcolor", "fff", "red"),
            ("rgbcolor", "rgb( 1,2 , 255)", "rgb(1,2,256)"),
            ("byte", "YQ==", "YQ"),
            ("date", "2020-12-01", "2020-2-1"),
            ("duration", "3 days", "5x"),
            ("date-time", "2020-01-01t00:00:00.5+02:00", "2020-01-01 00:00:00"),
            ("k8s-short-name", "a-b", "a.b"),
            ("k8s-long-name", "a.b", "a..b"),
        ] {
            assert!(fits(format, good), "{format} {good}");
            assert!(!fits(format, bad), "{format} {bad}");
        }
        assert!(fits("unheard-of", "anything"));
        assert!(is_known("string", "date-time") && is_known("", "k8s-long-name") && is_known("integer", "int32"));
        assert!(!is_known("string", "int32") && !is_known("object", "uri"));
    }
}
