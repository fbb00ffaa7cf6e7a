//! What protobuf messages of Kubernetes' and Gardener's kinds are made of: the recorded tables, with their names resolved.
//!
//! Which of these kinds a server has is told by its definitions, not here. Numbers are those of upstream's Go types. There are thousands of fields, in
//! every server: names are those in the recorded text, and lists are sorted instead of hashed.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// Where a message is in the table.
pub(super) type MessageId = usize;

/// A message type.
pub(super) struct Message {
    /// Its full name, e.g. `k8s.io.api.core.v1.Pod`.
    pub(super) name: &'static str,
    /// How its JSON form relates to its fields.
    pub(super) form: Form,
    /// By their numbers.
    fields: Box<[Field]>,
    /// By their names.
    members: Box<[(&'static str, Member)]>,
}

/// How the JSON form of a message relates to its fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// An object with a member per field.
    Fields,
    /// A time of whole seconds.
    Time,
    /// A time of microseconds.
    MicroTime,
    /// A length of time, `1h0m0s`.
    Duration,
    /// A quantity, `100m`.
    Quantity,
    /// A number or a text.
    IntOrString,
    /// Any JSON, as bytes in the first field.
    Json,
    /// A list of texts.
    Texts,
    /// The map in the first field.
    Map,
    /// One schema or a list of them.
    SchemaOrArray,
    /// A schema, or whether anything is allowed.
    SchemaOrBool,
    /// A schema or a list of texts.
    SchemaOrTexts,
}

/// A field of a message.
#[derive(Clone, Copy)]
pub(super) struct Field {
    /// Name of its member in the JSON form.
    pub(super) name: &'static str,
    pub(super) number: u64,
    pub(super) kind: Kind,
    pub(super) repeated: bool,
    /// The fields of this field's message are members of the JSON object itself.
    pub(super) inline: bool,
    /// A zero means something: Go has a pointer here, or always writes the field.
    pub(super) keep_zero: bool,
}

/// The type of a field.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    String,
    Bytes,
    Bool,
    /// Of 32 bits in Go.
    Int32,
    /// Of 64 bits in Go.
    Int64,
    Double,
    TextMap,
    BytesMap,
    BoolMap,
    MessageMap(MessageId),
    Message(MessageId),
}

/// A member of the JSON form: its field, and the inline fields that lead to it.
pub(super) struct Member {
    pub(super) inlined_in: Box<[u64]>,
    /// How many members Go's encoder writes before it.
    place: usize,
    pub(super) field: Field,
}

impl Message {
    /// The name of its type in Go.
    pub(super) fn go_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// The field with this number.
    pub(super) fn field(&self, number: u64) -> Option<&Field> {
        let at = self.fields.binary_search_by_key(&number, |field| field.number).ok()?;
        self.fields.get(at)
    }

    /// The member of the JSON form with this name.
    pub(super) fn member(&self, name: &str) -> Option<&Member> {
        let at = self.members.binary_search_by_key(&name, |(own, _)| own).ok()?;
        self.members.get(at).map(|(_, member)| member)
    }
}

/// The order in which Go's encoder writes the members of what a message tells.
#[derive(Clone, Copy)]
pub(crate) struct GoOrder {
    message: &'static Message,
    /// Whether it is about the values of a map of such messages, whose keys are sorted.
    is_map: bool,
}

impl GoOrder {
    /// Of the objects of a kind.
    pub(crate) fn of_kind(group: &str, version: &str, kind: &str) -> Option<Self> {
        of_kind(group, version, kind).map(Self::of)
    }

    /// Of metadata.
    pub(crate) fn of_metadata() -> Option<Self> {
        let mut messages = TABLE.messages.iter();
        messages
            .find(|message| message.name == format!("{SHARED}ObjectMeta"))
            .map(Self::of)
    }

    fn of(message: &'static Message) -> Self {
        Self { message, is_map: false }
    }

    /// Where a member stands; behind all others if it is not known.
    pub(crate) fn place(self, name: &str) -> usize {
        match name {
            _ if self.is_map => 0,
            "kind" if self.message.member(name).is_none() => 0,
            "apiVersion" if self.message.member(name).is_none() => 1,
            _ => match self.schema().unwrap_or(self.message).member(name) {
                Some(member) => 2 + member.place,
                None => usize::MAX,
            },
        }
    }

    /// The order of what a member has.
    pub(crate) fn below(self, name: &str) -> Option<Self> {
        if self.is_map {
            return Some(Self::of(self.message));
        }
        match self.schema().unwrap_or(self.message).member(name)?.field.kind {
            Kind::Message(id) => message(id)
                .filter(|message| !matches!(message.form, Form::Json | Form::Map))
                .map(Self::of),
            Kind::MessageMap(id) => message(id).map(|message| Self { message, is_map: true }),
            _ => None,
        }
    }

    /// The schema in a choice of schema and something else.
    fn schema(self) -> Option<&'static Message> {
        let number = match self.message.form {
            Form::SchemaOrBool => 2,
            Form::SchemaOrArray | Form::SchemaOrTexts => 1,
            _ => return None,
        };
        match self.message.field(number)?.kind {
            Kind::Message(id) => message(id),
            _ => None,
        }
    }
}

/// A message of the table.
pub(super) fn message(id: MessageId) -> Option<&'static Message> {
    TABLE.messages.get(id)
}

/// The message of a group, version and kind: of `apps`, `v1` and `Deployment`, `k8s.io.api.apps.v1.Deployment`.
pub(super) fn of_kind(group: &str, version: &str, kind: &str) -> Option<&'static Message> {
    // the core group is in the package `core`, all others in one that is called as the group begins
    let (package, domain) = match group.split_once('.') {
        Some((package, domain)) => (package, domain),
        None if group.is_empty() => ("core", KUBERNETES),
        None => (group, KUBERNETES),
    };
    // groups of Kubernetes are below k8s.io at several depths, such as `rbac.authorization.k8s.io`
    let domain = match domain == KUBERNETES || domain.ends_with(&format!(".{KUBERNETES}")) {
        true => KUBERNETES,
        false => domain,
    };
    let known = TABLE.kinds.get(kind)?;
    let found = known.iter().find(|known| match &known.of {
        Some(of) => of.domain == domain && of.package == package && of.version == version,
        None => true,
    })?;
    message(found.id)
}

/// A message that a kind is written as.
struct Known {
    /// Where the name was found; what comes first in [`PACKAGES`] counts first.
    rank: usize,
    /// None: of all groups and versions, as each has its own `DeleteOptions` by Go's scheme, and the beta version of partial metadata is the same
    /// message.
    of: Option<Package>,
    id: MessageId,
}

/// Where a message is declared.
struct Package {
    /// How the names of its groups end.
    domain: &'static str,
    package: &'static str,
    version: &'static str,
}

/// How names of Kubernetes' groups end, if not in nothing.
const KUBERNETES: &str = "k8s.io";
/// How the names of messages begin that kinds are written as, and how their groups end.
const PACKAGES: [(&str, &str); 4] = [
    ("k8s.io.api.", KUBERNETES),
    ("k8s.io.apiextensions_apiserver.pkg.apis.", KUBERNETES),
    ("k8s.io.kube_aggregator.pkg.apis.", KUBERNETES),
    ("github.com.gardener.gardener.pkg.apis.", "gardener.cloud"),
];
/// How the names of messages begin that many groups share.
const SHARED: &str = "k8s.io.apimachinery.pkg.apis.meta.v1.";

/// The kind that a message's name tells, and what is known of it.
fn known(name: &'static str, id: MessageId) -> Option<(&'static str, Known)> {
    if let Some(kind) = name.strip_prefix(SHARED) {
        let (rank, of) = (PACKAGES.len(), None);
        return Some((kind, Known { rank, of, id }));
    }
    PACKAGES.iter().enumerate().find_map(|(rank, (prefix, domain))| {
        let mut parts = name.strip_prefix(prefix)?.split('.');
        let (package, version, kind) = (parts.next()?, parts.next()?, parts.next()?);
        let of = parts.next().is_none().then_some(Package {
            domain,
            package,
            version,
        })?;
        Some((kind, Known { rank, of: Some(of), id }))
    })
}

/// The recorded tables: name of a message to its fields, which are number, name in JSON, type, and a mark if there is something to say:
/// `repeated`, `inline`, `ptr` (a pointer to a scalar) or `req` (a scalar whose zero value JSON shows too).
const RECORDED: [&str; 2] = [
    include_str!("../../recorded/protobuf.json"),
    include_str!("../../recorded/protobuf-gardener.json"),
];

/// A field as it is recorded.
#[derive(Deserialize)]
#[serde(untagged)]
enum RecordedField {
    Plain(u64, &'static str, String),
    Marked(u64, &'static str, String, String),
}

struct Table {
    messages: Vec<Message>,
    /// By kind, those that count first first.
    kinds: BTreeMap<&'static str, Vec<Known>>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let recorded: BTreeMap<&'static str, Vec<RecordedField>> = RECORDED
        .iter()
        .flat_map(|table| serde_json::from_str::<BTreeMap<_, _>>(table).unwrap_or_default())
        .collect();
    let names: BTreeMap<&str, MessageId> = recorded.keys().enumerate().map(|(id, name)| (*name, id)).collect();
    // in the order in which Go's structs have them
    let declared: Vec<Vec<Field>> = recorded
        .values()
        .map(|fields| fields.iter().filter_map(|recorded| field(recorded, &names)).collect())
        .collect();
    let message = |(id, name): (MessageId, &&'static str)| {
        let mut fields = declared.get(id).cloned().unwrap_or_default();
        fields.sort_by_key(|field| field.number);
        Message {
            name,
            form: form(name),
            fields: fields.into(),
            members: members(&declared, id).into_iter().collect(),
        }
    };
    let messages: Vec<Message> = recorded.keys().enumerate().map(message).collect();
    let mut kinds: BTreeMap<&'static str, Vec<Known>> = BTreeMap::new();
    for (id, message) in messages.iter().enumerate() {
        if let Some((kind, known)) = known(message.name, id) {
            kinds.entry(kind).or_default().push(known);
        }
    }
    for known in kinds.values_mut() {
        known.sort_by_key(|known| known.rank);
    }
    Table { messages, kinds }
});

fn field(recorded: &RecordedField, names: &BTreeMap<&str, MessageId>) -> Option<Field> {
    let (number, name, kind, mark) = match recorded {
        RecordedField::Plain(number, name, kind) => (*number, *name, kind, ""),
        RecordedField::Marked(number, name, kind, mark) => (*number, *name, kind, mark.as_str()),
    };
    let kind = match kind.as_str() {
        "string" => Kind::String,
        "bytes" => Kind::Bytes,
        "bool" => Kind::Bool,
        "int32" => Kind::Int32,
        "int64" => Kind::Int64,
        "double" => Kind::Double,
        "map<string,string>" => Kind::TextMap,
        "map<string,bytes>" => Kind::BytesMap,
        "map<string,bool>" => Kind::BoolMap,
        other => match other
            .strip_prefix("map<string,")
            .and_then(|rest| rest.strip_suffix('>'))
        {
            Some(message) => Kind::MessageMap(*names.get(message)?),
            None => Kind::Message(*names.get(other)?),
        },
    };
    Some(Field {
        name,
        number,
        kind,
        repeated: mark == "repeated",
        inline: mark == "inline",
        keep_zero: matches!(mark, "ptr" | "req"),
    })
}

/// The members of a message, of which the fields are declared in this order.
fn members(declared: &[Vec<Field>], id: MessageId) -> BTreeMap<&'static str, Member> {
    let mut found = BTreeMap::new();
    for field in declared.get(id).into_iter().flatten() {
        let before = found.len();
        match field.kind {
            Kind::Message(inner) if field.inline => {
                for (name, mut member) in members(declared, inner) {
                    member.inlined_in = [&[field.number], &*member.inlined_in].concat().into();
                    member.place += before;
                    found.insert(name, member);
                }
            }
            _ => {
                let member = Member {
                    inlined_in: Box::default(),
                    place: before,
                    field: *field,
                };
                found.insert(field.name, member);
            }
        }
    }
    found
}

fn form(name: &str) -> Form {
    let (package, short) = name.rsplit_once('.').unwrap_or(("", name));
    match (package, short) {
        ("k8s.io.apimachinery.pkg.apis.meta.v1", "Time") => Form::Time,
        ("k8s.io.apimachinery.pkg.apis.meta.v1", "MicroTime") => Form::MicroTime,
        ("k8s.io.apimachinery.pkg.apis.meta.v1", "Duration") => Form::Duration,
        ("k8s.io.apimachinery.pkg.apis.meta.v1", "FieldsV1") => Form::Json,
        ("k8s.io.apimachinery.pkg.apis.meta.v1", "Verbs") => Form::Texts,
        ("k8s.io.apimachinery.pkg.api.resource", "Quantity" | "QuantityValue") => Form::Quantity,
        ("k8s.io.apimachinery.pkg.util.intstr", "IntOrString") => Form::IntOrString,
        ("k8s.io.apimachinery.pkg.runtime", "RawExtension") => Form::Json,
        (_, "ExtraValue" | "CapabilityValues") => Form::Texts,
        (_, "MachineImageFlavor") => Form::Map,
        (package, short) if package.contains("apiextensions") => match short {
            "JSON" => Form::Json,
            "JSONSchemaPropsOrArray" => Form::SchemaOrArray,
            "JSONSchemaPropsOrBool" => Form::SchemaOrBool,
            "JSONSchemaPropsOrStringArray" => Form::SchemaOrTexts,
            _ => Form::Fields,
        },
        _ => Form::Fields,
    }
}
