//! Why a text is no IP address, in Go's words.

use super::conversions::quoted;

const GROUPS: usize = 8;

/// What is wrong, and the rest of the text from where it is.
type Wrong<'t> = (&'static str, &'t str);

/// Why a text is no address. It is one neither with nor without a zone.
pub(super) fn address(text: &str) -> String {
    let first = text.find(['.', ':', '%']).and_then(|at| text.get(at..)?.chars().next());
    let (why, rest) = match first {
        Some('.') => v4(text).err().unwrap_or(("unable to parse IP", "")),
        Some(':') => v6(text).err().unwrap_or(("unable to parse IP", "")),
        Some(_) => ("missing IPv6 address", ""),
        None => ("unable to parse IP", ""),
    };
    match rest {
        "" => format!("ParseAddr({}): {why}", quoted(text)),
        rest => format!("ParseAddr({}): {why} (at {})", quoted(text), quoted(rest)),
    }
}

fn v4(text: &str) -> Result<(), Wrong<'_>> {
    let (mut fields, mut digits, mut value) = (0, 0_usize, 0_u32);
    for (at, c) in text.char_indices() {
        let rest = text.get(at..).unwrap_or_default();
        match (c, c.to_digit(10)) {
            (_, Some(digit)) => {
                if digits == 1 && value == 0 {
                    return Err(("IPv4 field has octet with leading zero", ""));
                }
                value = value * 10 + digit;
                digits += 1;
                if value > 255 {
                    return Err(("IPv4 field has value >255", ""));
                }
            }
            ('.', _) if at == 0 || digits == 0 || rest.len() == 1 => {
                return Err(("IPv4 field must have at least one digit", rest));
            }
            ('.', _) if fields == 3 => return Err(("IPv4 address too long", "")),
            ('.', _) => (fields, digits, value) = (fields + 1, 0, 0),
            _ => return Err(("unexpected character", rest)),
        }
    }
    match fields {
        3 => Ok(()),
        _ => Err(("IPv4 address too short", "")),
    }
}

fn v6(text: &str) -> Result<(), Wrong<'_>> {
    let mut rest = match text.split_once('%') {
        Some((_, "")) => return Err(("zone must be a non-empty string", "")),
        Some((address, _)) => address,
        None => text,
    };
    let (mut groups, mut gap) = (0, false);
    if let Some(tail) = rest.strip_prefix("::") {
        (rest, gap) = (tail, true);
    }
    while groups < GROUPS && !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
        let tail = rest.get(end..).unwrap_or_default();
        match end {
            0 => return Err(("each colon-separated field must have at least one digit", rest)),
            1..=4 => {}
            _ => return Err(("each group must have 4 or less digits", rest)),
        }
        if tail.starts_with('.') {
            if !gap && groups != GROUPS - 2 {
                return Err((
                    "embedded IPv4 address must replace the final 2 fields of the address",
                    rest,
                ));
            }
            if groups > GROUPS - 2 {
                return Err((
                    "too many hex fields to fit an embedded IPv4 at the end of the address",
                    rest,
                ));
            }
            v4(rest)?;
            (groups, rest) = (groups + 2, "");
            break;
        }
        groups += 1;
        rest = match tail.strip_prefix(':') {
            None if tail.is_empty() => "",
            None => return Err(("unexpected character, want colon", tail)),
            Some("") => return Err(("colon must be followed by more characters", tail)),
            Some(next) => match next.strip_prefix(':') {
                Some(_) if gap => return Err(("multiple :: in address", next)),
                Some(behind) => {
                    gap = true;
                    behind
                }
                None => next,
            },
        };
    }
    match (rest, groups < GROUPS, gap) {
        ("", true, false) => Err(("address string too short", "")),
        ("", false, true) => Err(("the :: must expand to at least one field of zeros", "")),
        ("", ..) => Ok(()),
        (rest, ..) => Err(("trailing garbage after address", rest)),
    }
}
