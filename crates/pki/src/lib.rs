//! Certificates: authorities, certificates signed by them, and signing requests. ECDSA P-256 keys from the system's generator; times from the
//! caller.
//!
//! Knows nothing of Secrets and rotation (that is `controller::secrets`) and of who may have which certificate.
#![forbid(unsafe_code)]

mod bundle;
mod client;

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;

pub use bundle::{begins_with_certificate, combined, hosts};
pub use client::{ClientCertificate, Untrusted, public_key_of_request, read_client, verify_client};

/// Clocks that are this much behind still accept a new certificate.
const BACKDATED: Duration = Duration::from_secs(60);
/// The last moment that a certificate can name is the end of the year 9999.
const LATEST: Duration = Duration::from_secs(253_402_300_799);
/// Object identifier of the attribute `organizationName`.
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];

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

/// A certificate and its private key.
#[derive(Clone, PartialEq, Eq)]
pub struct Issued {
    /// PEM.
    pub certificate: String,
    /// PEM, PKCS #8.
    pub key: String,
}

/// Without the key: it must not get into logs.
impl fmt::Debug for Issued {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = formatter.debug_struct("Issued");
        fields.field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// What a certificate says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Common name; a client's user.
    pub common_name: String,
    /// Organizations; a client's groups. At most two.
    pub organizations: Vec<String>,
    /// Names under which a server is reached.
    pub dns_names: Vec<String>,
    /// Addresses under which a server is reached.
    pub ip_addresses: Vec<IpAddr>,
    /// Whether it identifies a client.
    pub client: bool,
    /// Whether it identifies a server.
    pub server: bool,
}

impl Subject {
    /// A client: a user and its groups.
    pub fn client(user: &str, groups: &[&str]) -> Self {
        Self {
            common_name: user.to_owned(),
            organizations: groups.iter().map(|group| (*group).to_owned()).collect(),
            client: true,
            ..Self::default()
        }
    }

    /// A server and the names it is reached by.
    pub fn server(name: &str, dns_names: &[&str], ip_addresses: &[IpAddr]) -> Self {
        Self {
            common_name: name.to_owned(),
            dns_names: dns_names.iter().map(|name| (*name).to_owned()).collect(),
            ip_addresses: ip_addresses.to_vec(),
            server: true,
            ..Self::default()
        }
    }
}

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
    set_validity(&mut parameters, now, validity)?;
    Ok(parameters)
}

fn set_validity(parameters: &mut CertificateParams, now: i64, validity: Duration) -> Result<(), CertificateError> {
    let refused = || CertificateError::Time { from: now, validity };
    let since_epoch = Duration::from_secs(u64::try_from(now).map_err(|_| refused())?);
    let end = since_epoch
        .checked_add(validity)
        .filter(|end| *end <= LATEST)
        .ok_or_else(refused)?;
    let epoch = date_time_ymd(1970, 1, 1);
    parameters.not_before = epoch + since_epoch.saturating_sub(BACKDATED);
    parameters.not_after = epoch + end;
    Ok(())
}

/// Makes an authority valid from `now` (unix seconds).
///
/// # Errors
/// [`CertificateError`].
pub fn authority(common_name: &str, now: i64, validity: Duration) -> Result<Issued, CertificateError> {
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

fn usages(parameters: &mut CertificateParams, client: bool, server: bool) {
    parameters.use_authority_key_identifier_extension = true;
    parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    parameters.extended_key_usages = [
        (server, ExtendedKeyUsagePurpose::ServerAuth),
        (client, ExtendedKeyUsagePurpose::ClientAuth),
    ]
    .into_iter()
    .filter_map(|(wanted, usage)| wanted.then_some(usage))
    .collect();
}

fn issuer(authority: &Issued) -> Result<Issuer<'static, KeyPair>, CertificateError> {
    Ok(Issuer::from_ca_cert_pem(
        &authority.certificate,
        KeyPair::from_pem(&authority.key)?,
    )?)
}

/// Makes a certificate signed by `authority`, valid from `now` (unix seconds).
///
/// # Errors
/// [`CertificateError`].
pub fn issue(subject: &Subject, authority: &Issued, now: i64, validity: Duration) -> Result<Issued, CertificateError> {
    let mut parameters = parameters(&subject.common_name, &subject.organizations, now, validity)?;
    for name in &subject.dns_names {
        parameters
            .subject_alt_names
            .push(SanType::DnsName(name.as_str().try_into()?));
    }
    let addresses = subject.ip_addresses.iter().copied();
    parameters.subject_alt_names.extend(addresses.map(SanType::IpAddress));
    usages(&mut parameters, subject.client, subject.server);
    let key = KeyPair::generate()?;
    let certificate = parameters.signed_by(&key, &issuer(authority)?)?;
    Ok(Issued {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    })
}

/// Signs a certificate signing request (PEM) as it is, for a client, a server or both. Answers the certificate, PEM.
///
/// # Errors
/// [`CertificateError`]; also for requests that are malformed or whose signature is wrong.
pub fn sign(
    request: &str,
    authority: &Issued,
    now: i64,
    validity: Duration,
    client: bool,
    server: bool,
) -> Result<String, CertificateError> {
    let mut request = CertificateSigningRequestParams::from_pem(request)?;
    set_validity(&mut request.params, now, validity)?;
    request.params.is_ca = IsCa::NoCa;
    usages(&mut request.params, client, server);
    Ok(request.signed_by(&issuer(authority)?)?.pem())
}

/// Makes a key and a signing request for it. Answers the request and the key, both PEM.
///
/// # Errors
/// [`CertificateError`].
pub fn request(subject: &Subject) -> Result<Issued, CertificateError> {
    let mut parameters = parameters(&subject.common_name, &subject.organizations, 0, Duration::ZERO)?;
    for name in &subject.dns_names {
        parameters
            .subject_alt_names
            .push(SanType::DnsName(name.as_str().try_into()?));
    }
    let addresses = subject.ip_addresses.iter().copied().map(SanType::IpAddress);
    parameters.subject_alt_names.extend(addresses);
    let key = KeyPair::generate()?;
    let request = parameters.serialize_request(&key)?;
    Ok(Issued {
        certificate: request.pem()?,
        key: key.serialize_pem(),
    })
}

/// What a signing request asks to be certified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requested {
    /// Common name; empty when there is none.
    pub common_name: String,
    /// Organizations.
    pub organizations: Vec<String>,
    /// DNS names.
    pub dns_names: Vec<String>,
    /// IP addresses.
    pub ip_addresses: Vec<IpAddr>,
    /// Mail addresses.
    pub email_addresses: Vec<String>,
}

/// Reads a signing request (PEM). None when it is none.
pub fn read_request(pem: &[u8]) -> Option<Requested> {
    let (_, block) = x509_parser::pem::parse_x509_pem(pem).ok()?;
    if block.label != "CERTIFICATE REQUEST" {
        return None;
    }
    let (_, parsed) = X509CertificationRequest::from_der(&block.contents).ok()?;
    let subject = &parsed.certification_request_info.subject;
    let common_name = subject.iter_common_name().next();
    let mut requested = Requested {
        common_name: match common_name {
            Some(name) => name.as_str().ok()?.to_owned(),
            None => String::new(),
        },
        ..Requested::default()
    };
    for organization in subject.iter_organization() {
        requested.organizations.push(organization.as_str().ok()?.to_owned());
    }
    for extension in parsed.requested_extensions().into_iter().flatten() {
        let ParsedExtension::SubjectAlternativeName(names) = extension else {
            continue;
        };
        for name in &names.general_names {
            match name {
                GeneralName::DNSName(name) => requested.dns_names.push((*name).to_owned()),
                GeneralName::IPAddress(bytes) => requested.ip_addresses.push(address(bytes)?),
                GeneralName::RFC822Name(name) => requested.email_addresses.push((*name).to_owned()),
                _ => {}
            }
        }
    }
    Some(requested)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::*;

    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn der(pem: &str) -> Vec<u8> {
        ::pem::parse(pem).unwrap().into_contents()
    }

    #[test]
    fn requests_are_read_as_they_are_made() {
        let addresses = ["10.0.0.1".parse().unwrap(), "2001:db8::1".parse().unwrap()];
        let mut subject = Subject::server("system:node:a", &["a", "a.internal"], &addresses);
        subject.organizations = vec!["system:nodes".into(), "others".into()];
        let request = request(&subject).unwrap();
        let wanted = Requested {
            common_name: subject.common_name,
            organizations: subject.organizations,
            dns_names: subject.dns_names,
            ip_addresses: subject.ip_addresses,
            ..Requested::default()
        };
        assert_eq!(read_request(request.certificate.as_bytes()), Some(wanted));
        assert_eq!(read_request(request.key.as_bytes()), None);
        assert_eq!(read_request(b"no request"), None);
    }

    #[test]
    fn certificates_are_signed_by_their_authority_and_say_who_they_are_for() {
        let ca = authority("kubernetes", 1_000_000, DAY).unwrap();
        let mut subject = Subject::server("etcd", &["etcd.shoot.svc"], &["10.0.0.1".parse().unwrap()]);
        subject.organizations = vec!["one".into(), "two".into()];
        subject.client = true;
        let issued = issue(&subject, &ca, 1_000_000, DAY).unwrap();
        let (ca_der, leaf_der) = (der(&ca.certificate), der(&issued.certificate));
        let (_, ca) = X509Certificate::from_der(&ca_der).unwrap();
        let (_, leaf) = X509Certificate::from_der(&leaf_der).unwrap();
        assert!(ca.is_ca() && !leaf.is_ca());
        leaf.verify_signature(Some(ca.public_key())).unwrap();
        assert_eq!(leaf.issuer(), ca.subject());
        let organizations: Vec<_> = leaf
            .subject()
            .iter_organization()
            .map(|one| one.as_str().unwrap())
            .collect();
        assert_eq!(organizations, ["one", "two"]);
        let usage = leaf.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.client_auth && usage.server_auth);
        assert_eq!(leaf.validity().not_before.timestamp(), 1_000_000 - 60);
        assert_eq!(leaf.validity().not_after.timestamp(), 1_000_000 + 24 * 3600);
    }

    #[test]
    fn requests_are_signed_as_they_are() {
        let ca = authority("ca", 0, DAY).unwrap();
        let asked = request(&Subject::client("system:node:a", &["system:nodes"])).unwrap();
        let signed = der(&sign(&asked.certificate, &ca, 5, DAY, true, false).unwrap());
        let (_, leaf) = X509Certificate::from_der(&signed).unwrap();
        assert_eq!(
            leaf.subject().iter_common_name().next().unwrap().as_str().unwrap(),
            "system:node:a"
        );
        assert!(sign("nonsense", &ca, 5, DAY, true, false).is_err());
    }

    #[test]
    fn what_cannot_be_written_is_refused() {
        let ca = authority("ca", 0, DAY).unwrap();
        let refused = issue(&Subject::client("user", &["a", "b", "c"]), &ca, 0, DAY).unwrap_err();
        assert!(matches!(refused, CertificateError::Organizations(3)));
        assert!(matches!(
            authority("ca", -1, DAY).unwrap_err(),
            CertificateError::Time { .. }
        ));
        authority("ca", 0, Duration::MAX).unwrap_err();
    }
}
