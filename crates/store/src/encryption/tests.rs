use proptest::prelude::*;

use super::*;

fn key(name: &str, size: usize, byte: u8) -> SecretKey {
    SecretKey {
        name: name.to_owned(),
        secret: vec![byte; size].into(),
    }
}

fn secrets() -> Topic {
    Topic::new("", "secrets")
}

fn secret() -> Key {
    Key::new(secrets(), "main/n/s")
}

const PLACE: &str = "/registry/secrets/n/s";

fn only(providers: Vec<Provider>) -> Encryption {
    Encryption::default().with(Scope::Topic(secrets()), providers)
}

fn all_providers() -> Vec<(&'static str, Provider)> {
    let mut all = vec![(
        "k8s:enc:secretbox:v1:k:",
        Provider::secretbox(&[key("k", 32, 1)]).unwrap(),
    )];
    for size in [16, 24, 32] {
        all.push(("k8s:enc:aesgcm:v1:k:", Provider::aes_gcm(&[key("k", size, 2)]).unwrap()));
        all.push(("k8s:enc:aescbc:v1:k:", Provider::aes_cbc(&[key("k", size, 3)]).unwrap()));
    }
    all
}

proptest! {
    #[test]
    fn what_is_sealed_opens(value in proptest::collection::vec(any::<u8>(), 0..100)) {
        let value = Bytes::from(value);
        for (prefix, provider) in all_providers() {
            let encryption = only(vec![provider]);
            let stored = encryption.seal(&secret(), PLACE, &value).unwrap();
            prop_assert!(stored.starts_with(prefix.as_bytes()));
            prop_assert!(value.len() < 8 || !stored.windows(value.len()).any(|part| part == value));
            let opened = encryption.open(&secret(), PLACE, &stored).unwrap();
            prop_assert_eq!(opened, Opened { value: value.clone(), stale: false });
        }
    }

    #[test]
    fn nothing_that_was_changed_or_cut_panics(stored in proptest::collection::vec(any::<u8>(), 0..80), cut in 0usize..80) {
        for (prefix, provider) in all_providers() {
            let encryption = only(vec![provider]);
            let sealed = encryption.seal(&secret(), PLACE, &Bytes::from(stored.clone())).unwrap();
            let _ = encryption.open(&secret(), PLACE, &sealed.slice(..cut.min(sealed.len())));
            let _ = encryption.open(&secret(), PLACE, &Bytes::from([prefix.as_bytes(), &stored].concat()));
            let _ = encryption.open(&secret(), PLACE, &Bytes::from(stored.clone()));
        }
    }
}

const GO_GCM: &str = "6b38733a656e633a61657367636d3a76313a6b6579313a05050505050505050505050599d3ec41bff95d09c2243813f708fd962a2e04fc1a9ba64e27f3cb9c914b7ba1dd";
const GO_CBC: &str = "6b38733a656e633a6165736362633a76313a6b6579313a05050505050505050505050505050505e63156d52c6ad2fa8d3c29a87eb41d87156bee8d8e214b7817f5ccfb480cd439";
const GO_SECRETBOX: &str = "6b38733a656e633a736563726574626f783a76313a6b6579313a0505050505050505050505050505050505050505050505051d5b6d550b21f7e12b556cc0d32651399ae228429cf6751d4473aa4106e4138e66";

#[test]
fn what_others_wrote_opens() {
    // made with Go's crypto/aes, crypto/cipher and nacl/secretbox as kube-apiserver uses them: keys of 32 times 7, nonces of 5s
    type Make = fn(&[SecretKey]) -> Result<Provider, KeyError>;
    let table: [(&str, Make); 3] = [
        (GO_GCM, Provider::aes_gcm),
        (GO_CBC, Provider::aes_cbc),
        (GO_SECRETBOX, Provider::secretbox),
    ];
    for (stored, provider) in table {
        let bytes: Vec<u8> = (0..stored.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&stored[at..at + 2], 16).unwrap())
            .collect();
        let encryption = only(vec![provider(&[key("key1", 32, 7)]).unwrap()]);
        let opened = encryption.open(&secret(), PLACE, &bytes.into()).unwrap();
        assert_eq!(&opened.value[..], b"{\"kind\":\"Secret\"}");
    }
}

#[test]
fn the_first_provider_and_its_first_key_write_and_all_read() {
    let old = Provider::aes_cbc(&[key("1", 32, 1)]).unwrap();
    let value = Bytes::from_static(b"{}");
    let by_old = only(vec![old.clone()]).seal(&secret(), PLACE, &value).unwrap();
    let both_keys = Provider::aes_cbc(&[key("2", 32, 2), key("1", 32, 1)]).unwrap();
    let table = [
        (vec![old.clone()], false),
        (vec![both_keys.clone()], true),
        (
            vec![Provider::secretbox(&[key("1", 32, 9)]).unwrap(), old.clone()],
            true,
        ),
        (vec![Provider::identity(), old.clone()], true),
        // a provider of the same kind and a key of the same name does not keep others from it
        (vec![Provider::aes_gcm(&[key("1", 32, 9)]).unwrap(), old.clone()], true),
        (vec![old.clone(), Provider::identity()], false),
    ];
    for (providers, stale) in table {
        let opened = only(providers.clone()).open(&secret(), PLACE, &by_old).unwrap();
        assert_eq!((opened.value, opened.stale), (value.clone(), stale), "{providers:?}");
    }
    let by_new = only(vec![both_keys]).seal(&secret(), PLACE, &value).unwrap();
    assert!(by_new.starts_with(b"k8s:enc:aescbc:v1:2:"));
    // values of before there were keys
    let later = only(vec![old.clone(), Provider::identity()]);
    assert!(later.open(&secret(), PLACE, &value).unwrap().stale);
    assert!(
        !only(vec![Provider::identity()])
            .open(&secret(), PLACE, &value)
            .unwrap()
            .stale
    );
    let none = only(vec![old]).open(&secret(), PLACE, &value);
    assert!(none.unwrap_err().to_string().contains("not encrypted"));
}

#[test]
fn values_are_bound_to_their_place_and_key() {
    let value = Bytes::from_static(b"{}");
    let gcm = |byte| only(vec![Provider::aes_gcm(&[key("k", 32, byte)]).unwrap()]);
    let stored = gcm(1).seal(&secret(), PLACE, &value).unwrap();
    let form = "k8s:enc:aesgcm:v1:k".to_owned();
    let refused = Err(CipherError::Refused { form: form.clone() });
    assert_eq!(gcm(1).open(&secret(), "/registry/secrets/n/other", &stored), refused);
    assert_eq!(gcm(2).open(&secret(), PLACE, &stored), refused);
    let mut changed = stored.to_vec();
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(gcm(1).open(&secret(), PLACE, &changed.into()), refused);
    let no_key = Err(CipherError::NoKey { form });
    assert_eq!(Encryption::default().open(&secret(), PLACE, &stored), no_key);
    let other = only(vec![
        Provider::aes_gcm(&[key("other", 32, 1)]).unwrap(),
        Provider::identity(),
    ]);
    assert_eq!(other.open(&secret(), PLACE, &stored), no_key);
    let kms = Bytes::from_static(b"k8s:enc:kms:v2:x:\xff\x00");
    assert!(Encryption::default().open(&secret(), PLACE, &kms).is_err());
    let like_encrypted = Encryption::default().seal(&secret(), PLACE, &stored);
    assert_eq!(like_encrypted, Err(CipherError::LooksEncrypted));
}

#[test]
fn the_narrowest_scope_counts() {
    let named = |name| vec![Provider::secretbox(&[key(name, 32, 1)]).unwrap()];
    let encryption = Encryption::default()
        .with(Scope::Everything, named("all"))
        .with(Scope::Group("apps".to_owned()), named("group"))
        .with(Scope::Group(String::new()), named("core"))
        .with(Scope::Topic(Topic::new("apps", "deployments")), named("topic"))
        .with(Scope::Topic(Topic::new("", "events")), vec![Provider::identity()]);
    let table = [
        ("apps", "deployments", "k8s:enc:secretbox:v1:topic:"),
        ("apps", "statefulsets", "k8s:enc:secretbox:v1:group:"),
        ("", "secrets", "k8s:enc:secretbox:v1:core:"),
        ("", "events", "{}"),
        ("a.example", "things", "k8s:enc:secretbox:v1:all:"),
    ];
    for (group, resource, prefix) in table {
        let key = Key::new(Topic::new(group, resource), "c/n/x");
        let stored = encryption.seal(&key, PLACE, &Bytes::from_static(b"{}")).unwrap();
        assert!(stored.starts_with(prefix.as_bytes()), "{group}/{resource}");
    }
    assert!(!Encryption::default().knows(&secrets()));
    assert!(!format!("{encryption:?}").contains("[1, 1"));
}

#[test]
fn keys_of_other_sizes_are_refused() {
    assert!(Provider::aes_gcm(&[key("k", 31, 1)]).is_err());
    assert!(Provider::aes_cbc(&[key("k", 0, 1)]).is_err());
    let refused = Provider::secretbox(&[key("k", 16, 1)]).unwrap_err();
    assert_eq!(refused.to_string(), "key \"k\" has 16 bytes, the provider takes 32");
}
