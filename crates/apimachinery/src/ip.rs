//! IP addresses as Kubernetes reads them.

use std::net::IpAddr;

/// What is said of a text that is no address.
pub const NO_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/// A text as an address, where numbers may begin with zeros.
pub fn lenient(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse() {
        return Some(address);
    }
    // the last part of an IPv6 address may be one of IPv4
    let (head, tail) = match text.rfind(':') {
        Some(at) => text.split_at(at + 1),
        None => ("", text),
    };
    let parts: Vec<&str> = tail.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.len() != 4 || !parts.iter().all(is_number) {
        return None;
    }
    let numbers: Vec<&str> = parts
        .iter()
        .map(|part| match part.trim_start_matches('0') {
            "" => "0",
            number => number,
        })
        .collect();
    format!("{head}{}", numbers.join(".")).parse().ok()
}
