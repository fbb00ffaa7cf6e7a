//! Named formats that texts may be checked against.

use std::sync::Arc;

use gardener_apimachinery::link::Link;
use gardener_apimachinery::names;
use jiff::Timestamp;

use super::{Found, decode_base64};
use crate::eval::Evaluation;
use crate::value::Value;

const FORMATS: [&str; 13] = [
    "dns1123Label",
    "dns1123Subdomain",
    "dns1035Label",
    "qualifiedName",
    "dns1123LabelPrefix",
    "dns1123SubdomainPrefix",
    "dns1035LabelPrefix",
    "labelValue",
    "uri",
    "uuid",
    "byte",
    "date",
    "datetime",
];

pub(super) fn formats<'a>(evaluation: &mut Evaluation<'_>, name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
    let known = |name: &str| FORMATS.iter().find(|own| **own == name).copied();
    if let ([], Some(format)) = (args, name.strip_prefix("format.").and_then(known)) {
        return Some(Ok(Value::Format(format)));
    }
    Some(match (name, args) {
        ("format.named", [Value::Text(name)]) => {
            Ok(Value::Optional(known(name).map(|name| Box::new(Value::Format(name)))))
        }
        ("validate", [Value::Format(format), Value::Text(text)]) => {
            // as a pattern of some length would cost
            if let Err(error) = evaluation.pay((text.len() as u64 + 1).div_ceil(10) * 8) {
                return Some(Err(error));
            }
            let wrong = wrong(format, text);
            Ok(Value::Optional((!wrong.is_empty()).then(|| {
                Box::new(Value::List(Arc::new(wrong.into_iter().map(Value::text).collect())))
            })))
        }
        _ => return None,
    })
}

/// What keeps a text from having a format.
fn wrong(format: &str, text: &str) -> Vec<String> {
    let unless = |fits: bool, why: &str| if fits { Vec::new() } else { vec![why.to_owned()] };
    // the dash at the end, and what stands before it, are taken for the beginning of what follows
    let whole = |text: &str| match text.strip_suffix('-') {
        Some(stem) if !stem.is_empty() => {
            let kept = stem.char_indices().next_back().map_or(0, |(at, _)| at);
            format!("{}a", stem.get(..kept).unwrap_or_default())
        }
        _ => text.to_owned(),
    };
    match format {
        "dns1123Label" => names::dns_label(text),
        "dns1123Subdomain" => names::dns_subdomain(text),
        "dns1035Label" => names::dns1035_label(text),
        "qualifiedName" => names::qualified_name(text),
        // a name goes on behind a prefix
        "dns1123LabelPrefix" => names::dns_label(&whole(text)),
        "dns1123SubdomainPrefix" => names::dns_subdomain(&whole(text)),
        "dns1035LabelPrefix" => names::dns1035_label(&whole(text)),
        "labelValue" => names::label_value(text),
        "uri" => Link::wrong(text).into_iter().collect(),
        "uuid" => unless(is_uuid(text), "does not match the UUID format"),
        "byte" => unless(!text.is_empty() && decode_base64(text).is_some(), "invalid base64"),
        "date" => unless(text.parse::<jiff::civil::Date>().is_ok(), "invalid date"),
        _ => {
            let separated = matches!(text.as_bytes().get(10), Some(b'T' | b't'));
            unless(separated && text.parse::<Timestamp>().is_ok(), "invalid datetime")
        }
    }
}

/// Five groups of digits; each may have a dash before the next.
fn is_uuid(text: &str) -> bool {
    let mut rest = text;
    for (group, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        match rest.split_at_checked(length) {
            Some((digits, tail)) if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) => rest = tail,
            _ => return false,
        }
    }
    rest.is_empty()
}
