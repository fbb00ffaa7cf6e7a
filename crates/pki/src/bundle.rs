//! Bundles of authorities.

use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

/// How long a certificate is kept after its end, in seconds: clocks differ.
const SLACK: i64 = 5 * 60;

/// The certificates of several bundles (PEM), each once, without those that had ended `now` (Unix seconds). What is no certificate is left out.
pub fn combined(bundles: &[&str], now: i64) -> String {
    let mut kept: Vec<pem::Pem> = Vec::new();
    for block in bundles
        .iter()
        .flat_map(|bundle| pem::parse_many(bundle).unwrap_or_default())
    {
        let lasts = || {
            let (_, certificate) = X509Certificate::from_der(block.contents()).ok()?;
            Some(certificate.validity().not_after.timestamp() > now - SLACK)
        };
        let known = kept.iter().any(|own| own.contents() == block.contents());
        if block.tag() == "CERTIFICATE" && !known && lasts() == Some(true) {
            kept.push(pem::Pem::new("CERTIFICATE", block.into_contents()));
        }
    }
    let config = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    pem::encode_many_config(&kept, config)
}

/// Whether the first block of a PEM text is a certificate that can be read.
pub fn begins_with_certificate(text: &str) -> bool {
    let Ok(block) = pem::parse(text) else { return false };
    block.tag() == "CERTIFICATE" && X509Certificate::from_der(block.contents()).is_ok()
}

/// The host names that a certificate (PEM, the first of a chain) is for: its common name counts where it has no others.
pub fn hosts(certificate: &str) -> Vec<String> {
    let Ok(block) = pem::parse(certificate) else {
        return Vec::new();
    };
    let Ok((_, parsed)) = X509Certificate::from_der(block.contents()) else {
        return Vec::new();
    };
    let named = parsed.subject_alternative_name().ok().flatten();
    let names: Vec<String> = named
        .iter()
        .flat_map(|extension| &extension.value.general_names)
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            _ => None,
        })
        .collect();
    if !names.is_empty() {
        return names;
    }
    let common = parsed.subject().iter_common_name();
    let common = common.filter_map(|name| name.as_str().ok());
    common.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::authority;

    #[test]
    fn each_living_certificate_stands_once() {
        let made = |name: &str, from: i64| authority(name, from, Duration::from_secs(1000)).unwrap();
        let (old, one, other) = (made("old", 0), made("one", 10_000), made("other", 10_000));
        let both = format!("{}{}", one.certificate, old.certificate);
        let bundle = combined(&[&both, &other.key, &other.certificate, &one.certificate], 10_500);
        assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), 2);
        assert_eq!(combined(&[&bundle], 10_500), bundle);
        assert!(!combined(&[&both], 1_200).is_empty());
        assert_eq!(combined(&["nonsense"], 0), "");
    }

    #[test]
    fn a_certificate_is_for_its_hosts() {
        let (authority, day) = (
            authority("ca", 0, Duration::from_secs(1000)).unwrap(),
            Duration::from_secs(1000),
        );
        let hosts_of =
            |subject: &crate::Subject| hosts(&crate::issue(subject, &authority, 0, day).unwrap().certificate);
        assert_eq!(
            hosts_of(&crate::Subject::server("x", &["a.b", "*.c"], &[])),
            ["a.b", "*.c"]
        );
        assert_eq!(hosts_of(&crate::Subject::client("a.b", &[])), ["a.b"]);
        assert!(hosts("nonsense").is_empty());
    }
}
