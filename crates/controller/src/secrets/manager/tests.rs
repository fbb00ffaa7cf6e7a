use rand::SeedableRng;
use rand::rngs::StdRng;
use x509_parser::prelude::*;

use super::super::{SignedBy, Token, Usage};
use super::*;
use crate::fake::Fake;

const DAY: u64 = 24 * 3600;

/// A landscape whose time is set by hand.
struct Landscape {
    fake: Fake,
    day: u64,
    rotations: BTreeMap<String, Timestamp>,
}

impl Landscape {
    fn new() -> Self {
        Self {
            fake: Fake::new(),
            day: 1000,
            rotations: BTreeMap::new(),
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second((self.day * DAY) as i64).unwrap()
    }

    async fn manager(&self) -> Manager {
        let options = Options {
            namespace: "shoot--foo--bar".into(),
            identity: "gardenlet".into(),
            rotations: self.rotations.clone(),
        };
        let clock = Clock::starting_at(self.now());
        let chance = StdRng::seed_from_u64(self.day);
        Manager::new(self.fake.client(), clock, options, chance).await.unwrap()
    }

    fn rotate(&mut self, config: &str) {
        self.rotations.insert(config.into(), self.now());
    }
}

fn ca() -> SecretConfig {
    SecretConfig {
        name: "ca".into(),
        kind: Kind::CertificateAuthority {
            common_name: "kubernetes".into(),
        },
    }
}

fn leaf(name: &str, usage: Usage) -> SecretConfig {
    SecretConfig {
        name: name.into(),
        kind: Kind::Certificate(Certificate {
            usage,
            common_name: name.into(),
            organizations: vec![],
            dns_names: vec!["kube-apiserver".into()],
            ip_addresses: vec![],
            with_ca: false,
        }),
    }
}

fn keep_old(ignore_old: bool) -> Generate {
    Generate {
        persist: true,
        rotation: Rotation::KeepOld { ignore_old },
        ..Generate::default()
    }
}

fn signed() -> Generate {
    Generate {
        signed_by: Some(SignedBy::ca("ca")),
        ..Generate::default()
    }
}

/// Whether the certificate in `leaf` verifies with the one in `ca`.
fn verifies(leaf: &Secret, ca: &Secret) -> bool {
    let der = |secret: &Secret, key| ::pem::parse(text(secret, key).unwrap()).unwrap();
    let (leaf, ca) = (der(leaf, data::CERTIFICATE), der(ca, data::CA_CERTIFICATE));
    let (_, leaf) = X509Certificate::from_der(leaf.contents()).unwrap();
    let (_, ca) = X509Certificate::from_der(ca.contents()).unwrap();
    leaf.verify_signature(Some(ca.public_key())).is_ok()
}

#[tokio::test(start_paused = true)]
async fn what_is_there_is_kept_and_nothing_is_written_again() {
    let mut landscape = Landscape::new();
    let manager = landscape.manager().await;
    let first = manager.generate(&ca(), &keep_old(false)).await.unwrap();
    assert_eq!(first.name_any(), "ca");
    assert_eq!(first.immutable, Some(true));
    assert_eq!(first.type_.as_deref(), Some("Opaque"));
    let server = leaf("server", Usage::Server);
    let certificate = manager.generate(&server, &signed()).await.unwrap();
    assert_eq!(certificate.type_.as_deref(), Some("kubernetes.io/tls"));
    assert!(verifies(&certificate, &first));
    assert_eq!(landscape.fake.writes().len(), 3, "authority, bundle, certificate");

    landscape.day += 1;
    let manager = landscape.manager().await;
    let again = manager.generate(&ca(), &keep_old(false)).await.unwrap();
    assert_eq!(again.data, first.data);
    manager.generate(&server, &signed()).await.unwrap();
    assert!(manager.cleanup().await.unwrap().is_empty());
    assert_eq!(landscape.fake.writes(), [""; 0]);
    assert!(manager.get("ca", Class::Old).is_none());
    let bundle = manager.get("ca", Class::Bundle).unwrap();
    assert!(bundle.name_any().starts_with("ca-bundle-"));
    assert_eq!(
        text(&bundle, data::BUNDLE).unwrap(),
        text(&first, data::CA_CERTIFICATE).unwrap()
    );
}

#[tokio::test(start_paused = true)]
async fn cp_c10_a_rotation_of_the_authority() {
    let mut landscape = Landscape::new();
    let (server, client) = (leaf("server", Usage::Server), leaf("client", Usage::Client));
    let before = landscape.manager().await;
    let old_ca = before.generate(&ca(), &keep_old(false)).await.unwrap();
    let old_server = before.generate(&server, &signed()).await.unwrap();
    let old_client = before.generate(&client, &signed()).await.unwrap();

    // Preparing, Prepared: both authorities are there.
    landscape.day += 1;
    landscape.rotate("ca");
    for _ in 0..2 {
        let manager = landscape.manager().await;
        let new_ca = manager.generate(&ca(), &keep_old(false)).await.unwrap();
        assert_ne!(new_ca.name_any(), old_ca.name_any());
        let kept = manager.get("ca", Class::Old).unwrap();
        assert_eq!(kept.name_any(), old_ca.name_any());
        let bundle = text(&manager.get("ca", Class::Bundle).unwrap(), data::BUNDLE).unwrap();
        assert_eq!(bundle.matches("BEGIN CERTIFICATE").count(), 2);
        let same_server = manager.generate(&server, &signed()).await.unwrap();
        assert_eq!(same_server.name_any(), old_server.name_any());
        let new_client = manager.generate(&client, &signed()).await.unwrap();
        assert!(verifies(&new_client, &new_ca) && !verifies(&new_client, &old_ca));
        manager.cleanup().await.unwrap();
    }

    // Completing: the old one goes, and everything is signed by the new one.
    landscape.day += 1;
    let manager = landscape.manager().await;
    let new_ca = manager.generate(&ca(), &keep_old(true)).await.unwrap();
    assert!(manager.get("ca", Class::Old).is_none());
    let new_server = manager.generate(&server, &signed()).await.unwrap();
    let new_client = manager.generate(&client, &signed()).await.unwrap();
    assert!(verifies(&new_server, &new_ca) && verifies(&new_client, &new_ca));
    let gone = manager.cleanup().await.unwrap();
    assert!(gone.contains(&"ca".to_owned()) && gone.contains(&old_server.name_any()));
    assert!(!gone.contains(&old_client.name_any()), "it went when it was replaced");
    assert_eq!(manager.managed().await.unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn cp_c9_certificates_are_renewed_when_a_manager_starts_but_authorities_are_not() {
    let mut landscape = Landscape::new();
    let server = leaf("server", Usage::Server);
    let how = Generate {
        validity: Some(Duration::from_secs(365 * DAY)),
        ..signed()
    };
    let short = Generate {
        validity: Some(Duration::from_secs(365 * DAY)),
        ..keep_old(false)
    };
    let manager = landscape.manager().await;
    let authority = manager.generate(&ca(), &short).await.unwrap();
    let first = manager.generate(&server, &how).await.unwrap();
    let mut names = Vec::new();
    for days in [291, 2, 1] {
        landscape.day += days;
        let manager = landscape.manager().await;
        let same = manager.generate(&ca(), &short).await.unwrap();
        assert_eq!(same.name_any(), authority.name_any());
        names.push(manager.generate(&server, &how).await.unwrap().name_any());
        manager.cleanup().await.unwrap();
    }
    assert_eq!(names[0], first.name_any(), "day 291");
    assert_ne!(names[1], first.name_any(), "day 293");
    assert_eq!(names[2], names[1], "the renewed one stays");
}

#[tokio::test(start_paused = true)]
async fn an_expired_predecessor_is_not_kept() {
    let mut landscape = Landscape::new();
    let short = Generate {
        validity: Some(Duration::from_secs(DAY)),
        ..keep_old(false)
    };
    let manager = landscape.manager().await;
    manager.generate(&ca(), &short).await.unwrap();
    landscape.day += 2;
    landscape.rotate("ca");
    let manager = landscape.manager().await;
    manager.generate(&ca(), &short).await.unwrap();
    assert!(manager.get("ca", Class::Old).is_none());
}

#[tokio::test(start_paused = true)]
async fn cp_76_every_kind_rotates_with_its_time() {
    let kinds = [
        Kind::ServiceAccountKey,
        Kind::SshKeyPair,
        Kind::BasicAuth {
            username: "admin".into(),
            password_length: 32,
        },
        Kind::StaticTokens(vec![Token {
            username: "health-check".into(),
            id: "health-check".into(),
            groups: vec!["a".into(), "b".into()],
        }]),
        Kind::EncryptionKey {
            length: 32,
            provider: String::new(),
        },
    ];
    for kind in kinds {
        let mut landscape = Landscape::new();
        let config = SecretConfig {
            name: "config".into(),
            kind,
        };
        let manager = landscape.manager().await;
        let first = manager.generate(&config, &keep_old(false)).await.unwrap();
        landscape.day += 1;
        landscape.rotate("config");
        let manager = landscape.manager().await;
        let second = manager.generate(&config, &keep_old(false)).await.unwrap();
        assert_ne!(first.name_any(), second.name_any());
        assert_ne!(first.data, second.data);
        let old = manager.get("config", Class::Old).unwrap();
        assert_eq!(old.data, first.data);
        if config.kind == Kind::ServiceAccountKey {
            let bundle = manager.get("config", Class::Bundle).unwrap();
            let keys = text(&bundle, data::KEY_BUNDLE).unwrap();
            assert_eq!(keys.matches("BEGIN PUBLIC KEY").count(), 2);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn another_configuration_is_another_secret_and_authorities_come_first() {
    let landscape = Landscape::new();
    let manager = landscape.manager().await;
    let server = leaf("server", Usage::Server);
    let refused = manager.generate(&server, &signed()).await.unwrap_err();
    assert!(matches!(refused, ManagerError::NoAuthority { .. }));
    manager.generate(&ca(), &keep_old(false)).await.unwrap();
    let first = manager.generate(&server, &signed()).await.unwrap();
    let mut other = server;
    if let Kind::Certificate(certificate) = &mut other.kind {
        certificate.dns_names.push("other".into());
    }
    let second = manager.generate(&other, &signed()).await.unwrap();
    assert_ne!(first.name_any(), second.name_any());
}
