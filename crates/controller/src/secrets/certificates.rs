//! Makes certificates: ECDSA P-256, keys from the system's generator, times from the caller.

use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, date_time_ymd,
};

use super::{Certificate, Usage};

/// Clocks that are this much behind still accept a new certificate.
const BACKDATED: Duration = Duration::from_secs(60);

/// Why a certificate could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The library refused.
    #[error("cannot make the certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// More organizations than can be written.
    #[error("a certificate takes at most two organizations, got {0}: use fewer groups")]
    Organizations(usize),
    /// A time no certificate can carry.
    #[error("a certificate cannot be valid from {from} (unix seconds) for {validity:?}")]
    Time {
        /// Unix seconds.
        from: i64,
        /// How long.
        validity: Duration,
    },
}

/// A certificate and its private key. Not `Debug`: keys must not get into logs.
pub(super) struct Issued {
    /// PEM.
    pub(super) certificate: String,
    /// PEM, PKCS #8.
    pub(super) key: String,
}

/// Object identifier of the attribute `organizationName`.
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];

fn parameters(
    common_name: &str,
    organizations: &[String],
    now: i64,
    validity: Duration,
) -> Result<CertificateParams, CertificateError> {
    let mut name = DistinguishedName::new();
    // A name holds each attribute type once; written by its identifier it is a second one.
    let types = [DnType::OrganizationName, DnType::CustomDnType(ORGANIZATION.to_vec())];
    if organizations.len() > types.len() {
        return Err(CertificateError::Organizations(organizations.len()));
    }
    for (r#type, organization) in types.into_iter().zip(organizations) {
        name.push(r#type, organization);
    }
    name.push(DnType::CommonName, common_name);
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = name;
    let refused = || CertificateError::Time { from: now, validity };
    let since_epoch = Duration::from_secs(u64::try_from(now).map_err(|_| refused())?);
    // The last moment that a certificate can name is the end of the year 9999.
    let most = Duration::from_secs(253_402_300_799);
    let end = since_epoch
        .checked_add(validity)
        .filter(|end| *end <= most)
        .ok_or_else(refused)?;
    let epoch = date_time_ymd(1970, 1, 1);
    parameters.not_before = epoch + since_epoch.saturating_sub(BACKDATED);
    parameters.not_after = epoch + end;
    Ok(parameters)
}

/// Makes an authority valid from `now` (unix seconds).
///
/// # Errors
/// [`CertificateError`].
pub(super) fn authority(common_name: &str, now: i64, validity: Duration) -> Result<Issued, CertificateError> {
    let mut parameters = parameters(common_name, &[], now, validity)?;
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
    ];
    let key = KeyPair::generate()?;
    let certificate = parameters.self_signed(&key)?;
    Ok(Issued {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// Makes a certificate signed by `authority`, valid from `now` (unix seconds).
///
/// # Errors
/// [`CertificateError`].
pub(super) fn certificate(
    config: &Certificate,
    authority: &Issued,
    now: i64,
    validity: Duration,
) -> Result<Issued, CertificateError> {
    let mut parameters = parameters(&config.common_name, &config.organizations, now, validity)?;
    for name in &config.dns_names {
        let name = SanType::DnsName(name.as_str().try_into()?);
        parameters.subject_alt_names.push(name);
    }
    let addresses = config.ip_addresses.iter().copied();
    parameters.subject_alt_names.extend(addresses.map(SanType::IpAddress));
    parameters.use_authority_key_identifier_extension = true;
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    use ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
    parameters.extended_key_usages = match config.usage {
        Usage::Client => vec![ClientAuth],
        Usage::Server => vec![ServerAuth],
        Usage::ServerAndClient => vec![ServerAuth, ClientAuth],
    };
    let issuer_key = KeyPair::from_pem(&authority.key)?;
    let issuer = Issuer::from_ca_cert_pem(&authority.certificate, issuer_key)?;
    let key = KeyPair::generate()?;
    let certificate = parameters.signed_by(&key, &issuer)?;
    Ok(Issued {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::*;

    use super::*;

    fn der(pem: &str) -> Vec<u8> {
        ::pem::parse(pem).unwrap().into_contents()
    }

    #[test]
    fn certificates_are_signed_by_their_authority_and_say_who_they_are_for() {
        let day = Duration::from_secs(24 * 3600);
        let ca = authority("kubernetes", 1_000_000, day).unwrap();
        let config = Certificate {
            usage: Usage::ServerAndClient,
            common_name: "etcd".into(),
            organizations: vec!["one".into(), "two".into()],
            dns_names: vec!["etcd.shoot.svc".into()],
            ip_addresses: vec!["10.0.0.1".parse().unwrap()],
            with_ca: true,
        };
        let issued = certificate(&config, &ca, 1_000_000, day).unwrap();
        let (ca_der, leaf_der) = (der(&ca.certificate), der(&issued.certificate));
        let (_, ca) = X509Certificate::from_der(&ca_der).unwrap();
        let (_, leaf) = X509Certificate::from_der(&leaf_der).unwrap();
        assert!(ca.is_ca() && !leaf.is_ca());
        leaf.verify_signature(Some(ca.public_key())).unwrap();
        ca.verify_signature(None).unwrap();
        assert_eq!(leaf.issuer(), ca.subject());
        let organizations: Vec<_> = leaf
            .subject()
            .iter_organization()
            .map(|one| one.as_str().unwrap())
            .collect();
        assert_eq!(organizations, ["one", "two"]);
        let usage = leaf.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.client_auth && usage.server_auth);
        let names = leaf.subject_alternative_name().unwrap().unwrap().value;
        assert_eq!(names.general_names.len(), 2);
        let validity = leaf.validity();
        assert_eq!(validity.not_before.timestamp(), 1_000_000 - 60);
        assert_eq!(validity.not_after.timestamp(), 1_000_000 + 24 * 3600);
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let ca = authority("ca", 0, Duration::from_secs(60)).unwrap();
        let config = Certificate {
            usage: Usage::Client,
            common_name: "user".into(),
            organizations: vec!["a".into(), "b".into(), "c".into()],
            dns_names: vec![],
            ip_addresses: vec![],
            with_ca: false,
        };
        let refused = certificate(&config, &ca, 0, Duration::from_secs(60));
        assert!(matches!(refused, Err(CertificateError::Organizations(3))));
        let refused = authority("ca", -1, Duration::from_secs(60));
        assert!(matches!(refused, Err(CertificateError::Time { .. })));
        assert!(authority("ca", 0, Duration::MAX).is_err());
    }
}
