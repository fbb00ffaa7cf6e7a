//! Addresses, ranges of them, and URLs.

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use super::conversions::quoted;
use super::{Found, failed};
use crate::eval::{EvalError, Evaluation};
use crate::value::Value;

pub(super) fn address(text: &str) -> Result<IpAddr, EvalError> {
    let parsed: IpAddr = text.parse().map_err(|_| {
        EvalError::new(format!(
            "IP Address {} parse error during conversion from string: unable to parse IP",
            quoted(text)
        ))
    })?;
    match parsed {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => Err(EvalError::new(format!(
            "IPv4-mapped IPv6 address {} is not allowed",
            quoted(text)
        ))),
        parsed => Ok(parsed),
    }
}

pub(super) fn range(text: &str) -> Result<IpNet, EvalError> {
    text.parse().map_err(|_| {
        EvalError::new(format!(
            "network address parse error during conversion from string: netip.ParsePrefix({})",
            quoted(text)
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
        ("cidr", [Value::Text(text)]) => range(text).map(Value::Cidr),
        ("isCIDR", [Value::Text(text)]) => Ok(Value::Bool(range(text).is_ok())),
        ("containsIP", [Value::Cidr(range), Value::Ip(address)]) => Ok(Value::Bool(range.contains(address))),
        ("containsIP", [Value::Cidr(range), Value::Text(text)]) => {
            address(text).map(|address| Value::Bool(range.contains(&address)))
        }
        ("containsCIDR", [Value::Cidr(own), Value::Cidr(other)]) => Ok(Value::Bool(own.contains(other))),
        ("containsCIDR", [Value::Cidr(own), Value::Text(text)]) => {
            range(text).map(|other| Value::Bool(own.contains(&other)))
        }
        ("masked", [Value::Cidr(range)]) => Ok(Value::Cidr(range.trunc())),
        ("prefixLength", [Value::Cidr(range)]) => Ok(Value::Int(i64::from(range.prefix_len()))),
        ("url", [Value::Text(text)]) => match link(text) {
            Some(url) => Ok(Value::Url(Arc::new(url))),
            None => failed(format!(
                "URL parse error during conversion from string: parse {}: invalid URI for request",
                quoted(text)
            )),
        },
        ("isURL", [Value::Text(text)]) => Ok(Value::Bool(link(text).is_some())),
        ("getScheme", [Value::Url(url)]) => Ok(Value::text(
            if url.host_str() == Some(NO_HOST) {
                ""
            } else {
                url.scheme()
            }
            .to_owned(),
        )),
        ("getHostname", [Value::Url(url)]) => Ok(Value::text(host(url).trim_matches(['[', ']']).to_owned())),
        ("getHost", [Value::Url(url)]) => Ok(Value::text(match url.port() {
            Some(port) => format!("{}:{port}", host(url)),
            None => host(url).to_owned(),
        })),
        ("getPort", [Value::Url(url)]) => Ok(Value::text(url.port().map(|port| port.to_string()).unwrap_or_default())),
        ("getEscapedPath", [Value::Url(url)]) => Ok(Value::text(url.path().to_owned())),
        ("getQuery", [Value::Url(url)]) => {
            let mut query: std::collections::BTreeMap<crate::value::Key, Vec<Value<'a>>> = Default::default();
            for (key, value) in url.query_pairs() {
                let values = query.entry(crate::value::Key::Text(key.into_owned())).or_default();
                values.push(Value::text(value.into_owned()));
            }
            let lists = query.into_iter().map(|(key, list)| (key, Value::List(Arc::new(list))));
            Ok(Value::Map(Arc::new(lists.collect())))
        }
        _ => return None,
    })
}

/// The host of URLs that have none.
const NO_HOST: &str = "no-host.invalid";

/// A URL with scheme, or an absolute path.
pub(super) fn link(text: &str) -> Option<url::Url> {
    if text.starts_with('/') && !text.starts_with("//") {
        return url::Url::parse(&format!("relative://{NO_HOST}{text}")).ok();
    }
    url::Url::parse(text).ok()
}

pub(super) fn host(url: &url::Url) -> &str {
    url.host_str().filter(|host| *host != NO_HOST).unwrap_or_default()
}

fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.segments().first().is_some_and(|first| first & 0xffc0 == 0xfe80),
    }
}
