//! Addresses, ranges of them, and URLs.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use super::conversions::quoted;
use super::{Found, failed, malformed};
use crate::eval::{EvalError, Evaluation};
use crate::value::{Key, Value};
use gardener_apimachinery::link::Link;

pub(super) fn address(text: &str) -> Result<IpAddr, EvalError> {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(v6)) if v6.to_ipv4_mapped().is_some() => Err(EvalError::new(format!(
            "IPv4-mapped IPv6 address {} is not allowed",
            quoted(text)
        ))),
        Ok(parsed) => Ok(parsed),
        Err(_) => Err(EvalError::new(match zoned(text) {
            true => format!("IP address {} with zone value is not allowed", quoted(text)),
            false => format!(
                "IP Address {} parse error during conversion from string: {}",
                quoted(text),
                malformed::address(text)
            ),
        })),
    }
}

/// Whether a text is an address with a zone.
fn zoned(text: &str) -> bool {
    text.split_once('%')
        .is_some_and(|(address, zone)| !zone.is_empty() && address.parse::<std::net::Ipv6Addr>().is_ok())
}

/// A range of addresses, and why a text is none.
pub(super) fn range(text: &str) -> Result<IpNet, EvalError> {
    let wrong = |why: String| {
        let why = format!("netip.ParsePrefix({}): {why}", quoted(text));
        EvalError::new(format!(
            "network address parse error during conversion from string: {why}"
        ))
    };
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| wrong("no '/'".to_owned()))?;
    let parsed: IpAddr = address.parse().map_err(|_| {
        wrong(match zoned(address) {
            true => "IPv6 zones cannot be present in a prefix".to_owned(),
            false => malformed::address(address),
        })
    })?;
    let digits = bits.bytes().all(|byte| byte.is_ascii_digit()) && !(bits.len() > 1 && bits.starts_with('0'));
    let length: u32 = match bits.parse() {
        Ok(length) if digits => length,
        _ => return Err(wrong(format!("bad bits after slash: {}", quoted(bits)))),
    };
    match u8::try_from(length)
        .ok()
        .and_then(|length| IpNet::new(parsed, length).ok())
    {
        None => Err(wrong("prefix length out of range".to_owned())),
        Some(IpNet::V6(own)) if own.addr().to_ipv4_mapped().is_some() => Err(EvalError::new(format!(
            "IPv4-mapped IPv6 address {} is not allowed",
            quoted(text)
        ))),
        Some(range) => Ok(range),
    }
}

/// A range that an expression gives as a text.
fn read_range(text: &str) -> Result<IpNet, EvalError> {
    range(text).map_err(|why| {
        EvalError::new(format!(
            "network address parse error during conversion from string: {why}"
        ))
    })
}

pub(super) fn addresses<'a>(evaluation: &mut Evaluation<'_>, name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
    if let [.., Value::Text(text)] = args
        && let Err(error) = evaluation.traverse(text.len() as u64)
    {
        return Some(Err(error));
    }
    Some(match (name, args) {
        ("ip", [Value::Text(text)]) => address(text).map(Value::Ip),
        ("ip", [Value::Cidr(range)]) => Ok(Value::Ip(range.addr())),
        ("isIP", [Value::Text(text)]) => Ok(Value::Bool(address(text).is_ok())),
        ("ip.isCanonical", [Value::Text(text)]) => {
            address(text).map(|address| Value::Bool(address.to_string() == *text))
        }
        ("family", [Value::Ip(address)]) => Ok(Value::Int(if address.is_ipv4() { 4 } else { 6 })),
        ("isUnspecified", [Value::Ip(address)]) => Ok(Value::Bool(address.is_unspecified())),
        ("isLoopback", [Value::Ip(address)]) => Ok(Value::Bool(address.is_loopback())),
        ("isLinkLocalMulticast", [Value::Ip(address)]) => Ok(Value::Bool(match address {
            IpAddr::V4(v4) => v4.octets().starts_with(&[224, 0, 0]),
            IpAddr::V6(v6) => v6.segments().first().is_some_and(|first| first & 0xff0f == 0xff02),
        })),
        ("isLinkLocalUnicast", [Value::Ip(address)]) => Ok(Value::Bool(is_link_local(address))),
        ("isGlobalUnicast", [Value::Ip(address)]) => {
            let broadcast = matches!(address, IpAddr::V4(v4) if v4.is_broadcast());
            let other = address.is_unspecified() || address.is_loopback() || address.is_multicast();
            Ok(Value::Bool(!broadcast && !other && !is_link_local(address)))
        }
        ("cidr", [Value::Text(text)]) => read_range(text).map(Value::Cidr),
        ("isCIDR", [Value::Text(text)]) => Ok(Value::Bool(range(text).is_ok())),
        ("containsIP", [Value::Cidr(range), Value::Ip(address)]) => Ok(Value::Bool(range.contains(address))),
        ("containsIP", [Value::Cidr(range), Value::Text(text)]) => match address(text) {
            Ok(address) => Ok(Value::Bool(range.contains(&address))),
            Err(_) => Err(EvalError::overload()),
        },
        ("containsCIDR", [Value::Cidr(own), Value::Cidr(other)]) => Ok(Value::Bool(own.contains(other))),
        ("containsCIDR", [Value::Cidr(own), Value::Text(text)]) => {
            read_range(text).map(|other| Value::Bool(own.contains(&other)))
        }
        ("masked", [Value::Cidr(range)]) => Ok(Value::Cidr(range.trunc())),
        ("prefixLength", [Value::Cidr(range)]) => Ok(Value::Int(i64::from(range.prefix_len()))),
        ("url", [Value::Text(text)]) => match Link::parse_absolute(text) {
            Ok(url) => Ok(Value::Url(Arc::new(url))),
            Err(why) => failed(format!("URL parse error during conversion from string: {why}")),
        },
        ("isURL", [Value::Text(text)]) => Ok(Value::Bool(Link::wrong(text).is_none())),
        ("getScheme", [Value::Url(url)]) => Ok(Value::text(url.scheme().to_owned())),
        ("getHostname", [Value::Url(url)]) => Ok(Value::text(url.hostname().to_owned())),
        ("getHost", [Value::Url(url)]) => Ok(Value::text(url.host().to_owned())),
        ("getPort", [Value::Url(url)]) => Ok(Value::text(url.port().to_owned())),
        ("getEscapedPath", [Value::Url(url)]) => Ok(Value::text(url.escaped_path())),
        ("getQuery", [Value::Url(url)]) => {
            let mut query: BTreeMap<Key, Vec<Value<'a>>> = BTreeMap::new();
            for (key, value) in url.query_pairs() {
                query.entry(Key::Text(key)).or_default().push(Value::text(value));
            }
            let lists = query.into_iter().map(|(key, list)| (key, Value::List(Arc::new(list))));
            Ok(Value::Map(Arc::new(lists.collect())))
        }
        _ => return None,
    })
}

fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments().first().is_some_and(|first| first & 0xffc0 == 0xfe80),
    }
}
