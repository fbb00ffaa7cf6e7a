//! Kubernetes' protobuf form of built-in kinds and the garden's: bodies that clients send, and answers to those who ask for it.
//!
//! One codec serves all kinds, driven by the recorded tables of their fields' numbers ([`messages`]). Objects are JSON here: a body is read into
//! its JSON form ([`read`]), and stored bytes are written from theirs ([`write`]). Custom resources have no such form; everybody's partial
//! metadata does.

mod messages;
mod read;
mod write;

use bytes::Bytes;
use gardener_apimachinery::ApiError;
use gardener_apimachinery::type_meta::is_no_group_version;
use serde::de::DeserializeSeed;
use serde_json::Value;

pub(crate) use messages::GoOrder;
use messages::Message;
use read::{Reader, Wire};
use write::Fields;

use crate::registry::unrecognized;

/// The content type.
pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";
/// What every body begins with.
pub(crate) const MAGIC: &[u8] = b"k8s\0";

/// Group and version of an `apiVersion`.
fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

/// Whether objects of a kind have this form.
pub fn knows(group: &str, version: &str, kind: &str) -> bool {
    messages::of_kind(group, version, kind).is_some()
}

/// Why a body is no object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is no body of this form at all.
    #[error("{0}")]
    NoBody(String),
    /// It tells no kind, and nobody else does.
    #[error("Object 'Kind' is missing")]
    NoKind,
    /// There is no such kind in this form.
    #[error("no kind {kind:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\"")]
    NoSuchKind {
        /// Its group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// What is in it is no object of the kind.
    #[error("{why}")]
    NoObject {
        /// Its group and version.
        api_version: String,
        /// The kind.
        kind: String,
        /// What the kind's reader says, as the one that upstream generates.
        why: String,
    },
}

impl Unreadable {
    /// Refuses a body that should be an object of the kind `wanted`, as upstream does.
    pub(crate) fn refused(&self, wanted: &str, body: &[u8]) -> ApiError {
        match self {
            Self::NoSuchKind { api_version, kind } | Self::NoObject { api_version, kind, .. } => {
                let version = split(api_version).1;
                ApiError::bad_request(format!(
                    "{kind} in version {version:?} cannot be handled as a {wanted}: {self}"
                ))
            }
            Self::NoBody(_) | Self::NoKind => unrecognized(wanted, &self.to_string(), body),
        }
    }
}

/// Reads a body into the JSON form of its object.
///
/// # Errors
/// The bytes are no such body, or of a kind that has no protobuf form.
pub fn decode(bytes: &[u8]) -> Result<Value, Unreadable> {
    decode_as(bytes, ("", ""))
}

/// As [`decode`]; a body that does not tell its kind or version is of `wanted`, group with version and kind.
///
/// # Errors
/// As [`decode`].
pub(crate) fn decode_as(bytes: &[u8], wanted: (&str, &str)) -> Result<Value, Unreadable> {
    decode_in(bytes, wanted, |_, _, _| None)
}

/// As [`decode`] of what is stored: `form` tells, by group, version and kind, of which other version's form it is, if it is.
///
/// # Errors
/// As [`decode`].
pub(crate) fn decode_stored(
    bytes: &[u8],
    form: impl Fn(&str, &str, &str) -> Option<String>,
) -> Result<Value, Unreadable> {
    decode_in(bytes, ("", ""), form)
}

fn decode_in(
    bytes: &[u8],
    wanted: (&str, &str),
    form: impl Fn(&str, &str, &str) -> Option<String>,
) -> Result<Value, Unreadable> {
    let no_body = |why: &str| Unreadable::NoBody(why.to_owned());
    if bytes.is_empty() {
        return Err(no_body("empty data"));
    }
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| {
        no_body("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    })?;
    if rest.is_empty() {
        return Err(no_body("empty body"));
    }
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    let mut reader = Reader(rest);
    while !reader.0.is_empty() {
        let (number, value) = reader.field_of("Unknown").map_err(Unreadable::NoBody)?;
        match (number, value) {
            (1, Wire::Bytes(meta)) => {
                let mut meta = Reader(meta);
                while let Some((number, value)) = meta.field() {
                    if let Wire::Bytes(text) = value {
                        let text = String::from_utf8_lossy(text).into_owned();
                        if number == 1 { api_version = text } else { kind = text }
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            (_, other) => other.skipped().map_err(Unreadable::NoBody)?,
        }
    }
    let is_told = !api_version.is_empty() || !kind.is_empty();
    // what is no group with a version is not looked at
    if api_version.is_empty() || is_no_group_version(&api_version) {
        wanted.0.clone_into(&mut api_version);
    }
    if kind.is_empty() {
        wanted.1.clone_into(&mut kind);
    }
    if kind.is_empty() {
        return Err(Unreadable::NoKind);
    }
    let (group, version) = split(&api_version);
    let written = form(group, version, &kind);
    let Some(message) = messages::of_kind(group, written.as_deref().unwrap_or(version), &kind) else {
        return Err(Unreadable::NoSuchKind { api_version, kind });
    };
    let mut object = match read::message(message, raw, 0) {
        Ok(object) => object,
        Err(why) => return Err(Unreadable::NoObject { api_version, kind, why }),
    };
    if let Value::Object(members) = &mut object
        && (kind != "DeleteOptions" || is_told)
    {
        members.insert("apiVersion".into(), api_version.into());
        members.insert("kind".into(), kind.into());
    }
    Ok(object)
}

/// What an object is called, and the message it is written as.
#[derive(Clone)]
pub struct Kind {
    api_version: String,
    kind: String,
    message: &'static Message,
}

impl Kind {
    /// The form of a kind, if it has one.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        Some(Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            message: {
                let (group, version) = split(api_version);
                messages::of_kind(group, version, kind)?
            },
        })
    }

    /// An object from its JSON bytes.
    ///
    /// # Errors
    /// 500 when the object is not of the kind.
    pub fn encode(&self, json: &[u8]) -> Result<Bytes, ApiError> {
        let mut raw = Vec::with_capacity(json.len());
        self.write(&mut serde_json::Deserializer::from_slice(json), &mut raw)?;
        Ok(self.envelope(&raw))
    }

    /// An object from its JSON value.
    ///
    /// # Errors
    /// 500 when the object is not of the kind.
    pub fn encode_value(&self, object: &Value) -> Result<Bytes, ApiError> {
        let mut raw = Vec::with_capacity(1024);
        self.write(object, &mut raw)?;
        Ok(self.envelope(&raw))
    }

    /// A list of objects of the kind `element`, each from its JSON bytes. `self` is the kind of the list.
    ///
    /// # Errors
    /// 500 when an object is not of its kind.
    pub fn encode_list(
        &self,
        list_meta: &Value,
        element: &Self,
        items: impl Iterator<Item = impl AsRef<[u8]>>,
    ) -> Result<Bytes, ApiError> {
        let mut raw = Vec::with_capacity(1024);
        let list = serde_json::json!({"metadata": list_meta});
        self.write(&list, &mut raw)?;
        for item in items {
            write::delimited(&mut raw, 2, |raw| {
                element.write(&mut serde_json::Deserializer::from_slice(item.as_ref()), raw)
            })?;
        }
        Ok(self.envelope(&raw))
    }

    fn write<'de>(
        &self,
        json: impl serde::Deserializer<'de, Error = serde_json::Error>,
        out: &mut Vec<u8>,
    ) -> Result<(), ApiError> {
        let message = self.message;
        Fields { message, out }.deserialize(json).map_err(|error| {
            ApiError::internal(format!("a {} cannot be written as {CONTENT_TYPE}: {error}", self.kind))
        })
    }

    /// The message in its envelope, which tells the kind.
    fn envelope(&self, raw: &[u8]) -> Bytes {
        let mut type_meta = Vec::with_capacity(self.api_version.len() + self.kind.len() + 4);
        write::bytes(&mut type_meta, 1, self.api_version.as_bytes());
        write::bytes(&mut type_meta, 2, self.kind.as_bytes());
        let mut out = Vec::with_capacity(raw.len() + type_meta.len() + 20);
        out.extend_from_slice(MAGIC);
        write::bytes(&mut out, 1, &type_meta);
        write::bytes(&mut out, 2, raw);
        // how the message is packed: it is not
        write::bytes(&mut out, 3, b"");
        write::bytes(&mut out, 4, b"");
        out.into()
    }
}

/// An event of a watch as a frame: its length in four bytes, and the event around an object in its envelope.
pub fn watch_frame(event: &str, object: &[u8]) -> Bytes {
    let mut body = Vec::with_capacity(object.len() + 32);
    write::bytes(&mut body, 1, event.as_bytes());
    let mut raw = Vec::with_capacity(object.len() + 8);
    write::bytes(&mut raw, 1, object);
    write::bytes(&mut body, 2, &raw);
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX).to_be_bytes();
    [length.as_slice(), &body].concat().into()
}

/// Reads the frames of a watch, as a client does: each event as `{"type": …, "object": …}`.
///
/// # Errors
/// The bytes are no such frames.
pub fn decode_watch(mut frames: &[u8]) -> Result<Vec<Value>, Unreadable> {
    let mut events = Vec::new();
    while let Some((length, rest)) = frames.split_first_chunk::<4>() {
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let (frame, rest) = rest
            .split_at_checked(length)
            .ok_or_else(|| Unreadable::NoBody("a frame of a watch is shorter than it says".to_owned()))?;
        frames = rest;
        let mut event = serde_json::Map::new();
        let mut reader = Reader(frame);
        while let Some((number, value)) = reader.field() {
            match (number, value) {
                (1, Wire::Bytes(kind)) => {
                    event.insert("type".into(), String::from_utf8_lossy(kind).into_owned().into());
                }
                (2, Wire::Bytes(object)) => {
                    if let Some((_, Wire::Bytes(raw))) = Reader(object).field() {
                        event.insert("object".into(), decode(raw)?);
                    }
                }
                _ => {}
            }
        }
        events.push(Value::Object(event));
    }
    Ok(events)
}

#[cfg(test)]
mod tests {
    use gardener_apimachinery::pointer::Pointed;
    use serde_json::json;

    use super::*;
    use crate::meta;

    fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
        let mut out = vec![
            u8::try_from(number << 3 | 2).unwrap(),
            u8::try_from(bytes.len()).unwrap(),
        ];
        out.extend_from_slice(bytes);
        out
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), field(1, &meta), field(2, raw)].concat()
    }

    #[test]
    fn objects_are_read_as_their_json_form() {
        let metadata = [
            field(1, b"web"),
            field(5, b""),
            field(8, b""),
            field(11, &[field(1, b"app"), field(2, b"web")].concat()),
        ]
        .concat();
        let spec = [vec![8, 0], vec![40, 0], field(4, &field(1, b"Recreate"))].concat();
        let raw = [field(1, &metadata), field(2, &spec)].concat();
        assert_eq!(
            decode(&body("apps/v1", "Deployment", &raw)).unwrap(),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"replicas": 0, "strategy": {"type": "Recreate"}}})
        );
    }

    #[test]
    fn numbers_lose_the_bits_that_their_type_has_not() {
        // 2^32 + 7, in a field of 32 bits and in one of 64
        let number = [0x87, 0x80, 0x80, 0x80, 0x10];
        let spec = [&[8][..], &number].concat();
        let metadata = [field(1, b"web"), [&[56][..], &number].concat()].concat();
        let raw = [field(1, &metadata), field(2, &spec)].concat();
        assert_eq!(
            decode(&body("apps/v1", "Deployment", &raw)).unwrap(),
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "generation": 4_294_967_303_i64}, "spec": {"replicas": 7}})
        );
    }

    /// What objects are when nothing but emptiness is taken from them: protobuf does not tell empty from absent.
    fn without_empty(value: &Value) -> Value {
        match value {
            Value::Object(members) => members
                .iter()
                .map(|(key, member)| (key.clone(), without_empty(member)))
                .filter(|(_, member)| !matches!(member, Value::Null) && member != &json!({}) && member != &json!([]))
                .filter(|(_, member)| {
                    !matches!(member, Value::Bool(false)) && member != &json!(0) && member != &json!("")
                })
                .collect::<serde_json::Map<_, _>>()
                .into(),
            Value::Array(elements) => elements.iter().map(without_empty).collect(),
            other => other.clone(),
        }
    }

    #[test]
    fn recorded_objects_come_back_as_they_were() {
        let recorded: Value = serde_json::from_str(include_str!("../recorded/defaults.json")).unwrap();
        let mut seen = 0;
        for object in recorded.as_array().unwrap().iter().filter_map(|pair| pair.get("out")) {
            let (api_version, kind) = (meta::text(object, "/apiVersion"), meta::text(object, "/kind"));
            let kind = Kind::of(api_version, kind).unwrap();
            let bytes = kind.encode_value(object).unwrap();
            assert_eq!(bytes, kind.encode(&serde_json::to_vec(object).unwrap()).unwrap());
            let mut expected = without_empty(object);
            let templates = expected
                .at_mut("/spec/volumeClaimTemplates")
                .and_then(Value::as_array_mut);
            // only the envelope tells a kind
            templates.into_iter().flatten().for_each(crate::object::drop_type);
            assert_eq!(without_empty(&decode(&bytes).unwrap()), expected);
            seen += 1;
        }
        assert!(seen > 10, "{seen} objects");
    }

    #[test]
    fn forms_of_their_own_come_back() {
        let object = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "a.b", "creationTimestamp": "1969-12-31T23:59:59Z", "managedFields": [{"fieldsV1": {"f:a": {}}}]},
            "spec": {"versions": [{"schema": {"openAPIV3Schema": {
                "default": {"a": [1, null]}, "enum": ["x", 1, null], "maximum": 1.5, "minLength": 0,
                "items": {"type": "string"}, "additionalProperties": false, "x-kubernetes-preserve-unknown-fields": false,
                "properties": {"p": {"items": [{"type": "a"}, {"type": "b"}], "additionalProperties": {"type": "c"}, "not": {}}, "q": {"default": ""}},
                "dependencies": {"d": ["e", "f"], "g": {"type": "h"}},
            }}}]},
        });
        let kind = Kind::of("apiextensions.k8s.io/v1", "CustomResourceDefinition").unwrap();
        assert_eq!(decode(&kind.encode_value(&object).unwrap()).unwrap(), object);
        let event = json!({
            "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "eventTime": "2026-01-02T03:04:05.000006Z",
        });
        let kind = Kind::of("events.k8s.io/v1", "Event").unwrap();
        assert_eq!(decode(&kind.encode_value(&event).unwrap()).unwrap(), event);
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [
            {"port": 80, "targetPort": 8080}, {"port": 81, "targetPort": "http"},
        ]}});
        let kind = Kind::of("v1", "Service").unwrap();
        assert_eq!(decode(&kind.encode_value(&service).unwrap()).unwrap(), service);
    }

    #[test]
    fn maps_in_a_message_of_their_own_come_back() {
        let profile = json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "CloudProfile", "metadata": {"name": "c"}, "spec": {
                "machineCapabilities": [{"name": "architecture", "values": ["amd64", "arm64"]}],
                "machineImages": [{"name": "i", "versions": [{"capabilityFlavors": [{"architecture": ["amd64"]}, {}]}]}],
                "machineTypes": [{"name": "m", "capabilities": {"architecture": ["arm64"], "none": []}}],
            },
        });
        let kind = Kind::of("core.gardener.cloud/v1beta1", "CloudProfile").unwrap();
        assert_eq!(decode(&kind.encode_value(&profile).unwrap()).unwrap(), profile);
        let gates = json!({"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "s"}, "spec": {
            "kubernetes": {"kubelet": {"featureGates": {"A": true, "B": false}}},
        }});
        let kind = Kind::of("core.gardener.cloud/v1beta1", "Shoot").unwrap();
        assert_eq!(decode(&kind.encode_value(&gates).unwrap()).unwrap(), gates);
    }

    #[test]
    fn wrong_values_are_told() {
        let kind = Kind::of("v1", "Secret").unwrap();
        for object in [
            json!({"data": {"k": "not base64!"}}),
            json!({"data": 1}),
            json!({"metadata": {"creationTimestamp": "soon"}}),
            json!({"type": {"a": "b"}}),
            json!([]),
        ] {
            assert_eq!(kind.encode_value(&object).unwrap_err().code(), 500, "{object}");
        }
    }

    #[test]
    fn kinds_of_others_have_no_such_form() {
        assert!(knows("apps", "v1", "Deployment") && knows("meta.k8s.io", "v1beta1", "PartialObjectMetadata"));
        assert!(knows("core.gardener.cloud", "v1beta1", "Shoot") && knows("rbac.authorization.k8s.io", "v1", "Role"));
        assert!(
            !knows("apps.example.com", "v1", "Deployment") && !knows("extensions.gardener.cloud", "v1alpha1", "Worker")
        );
        assert!(!knows("authentication.k8s.io", "v1alpha1", "AdminKubeconfigRequest"));
        assert!(knows("core.gardener.cloud", "v1beta1", "DeleteOptions"));
    }

    #[test]
    fn damaged_bodies_are_refused() {
        let refused = |bytes: &[u8]| decode(bytes).unwrap_err().to_string();
        assert!(refused(b"{}").contains("expected prefix [107 56 115 0]"));
        for (raw, why) in [
            (&[10, 200][..], "unexpected EOF"),
            (&[15], "proto: wrong wireType = 7 for field ObjectMeta"),
            (&[8, 1], "proto: wrong wireType = 0 for field ObjectMeta"),
            (&[12], "proto: Deployment: wiretype end group for non-group"),
            (&[0], "proto: Deployment: illegal tag 0 (wire type 0)"),
        ] {
            assert_eq!(refused(&body("apps/v1", "Deployment", raw)), why);
        }
        let unknown = "no kind \"Thing\" is registered for version \"example.com/v1\"";
        assert!(refused(&body("example.com/v1", "Thing", &[])).starts_with(unknown));
        let nameless = decode_as(&body("", "", &[]), ("apps/v1", "Deployment")).unwrap();
        assert_eq!(nameless, json!({"apiVersion": "apps/v1", "kind": "Deployment"}));
    }
}
