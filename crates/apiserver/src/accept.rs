//! What form of an answer a client accepts: content negotiation, as kube-apiserver does it.
//!
//! Answers themselves are made in [`crate::respond`].

use gardener_apimachinery::ApiError;
use gardener_apimachinery::meta::is_true;
use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderValue, USER_AGENT};

use crate::protobuf;
use crate::request::Query;

/// The media types in which answers are written, the preferred first.
pub const MEDIA_TYPES: [&str; 3] = ["application/json", "application/yaml", protobuf::CONTENT_TYPE];
/// In which encoding each of them is.
pub(crate) const ENCODINGS: [(&str, Encoding); 3] = {
    let [json, yaml, protobuf] = MEDIA_TYPES;
    [
        (json, Encoding::Json),
        (yaml, Encoding::Yaml),
        (protobuf, Encoding::Protobuf),
    ]
};
/// The media types of watches.
const STREAM_TYPES: [&str; 2] = [
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
];
/// How clients begin their names that people read the answers of.
const HUMAN_CLIENTS: [&str; 3] = ["curl", "Wget", "Mozilla/5.0"];

/// The form in which a client wants objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The objects themselves.
    Object,
    /// A table.
    Table,
    /// Only metadata, of one object.
    Metadata,
    /// Only metadata, of a list.
    MetadataList,
}

/// The encoding in which a client wants an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

/// What is sent to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accept {
    /// Form.
    pub shape: Shape,
    /// Encoding.
    pub encoding: Encoding,
    /// Whether JSON is to be indented.
    pub pretty: bool,
    /// Whether tables and metadata are those of `meta.k8s.io/v1beta1`.
    pub beta: bool,
}

/// What a client asked for, before it is known what can be offered.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    accept: Option<HeaderValue>,
    pretty: bool,
    /// Whether large answers may be compressed.
    pub gzip: bool,
}

/// What an endpoint can answer.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Whether what it answers has a protobuf form.
    pub protobuf: bool,
    /// Whether it answers metadata too.
    pub shapes: bool,
    /// Whether it answers tables too.
    pub tables: bool,
}

impl Offer {
    /// A `Status` and other objects that have one shape only.
    pub const ONE_SHAPE: Self = Self {
        protobuf: true,
        shapes: false,
        tables: false,
    };
}

/// One clause of an `Accept` header.
struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: f64,
    parameters: Vec<(&'a str, &'a str)>,
}

/// What a clause of an `Accept` header asks for within its media type.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked<'a> {
    /// The kind that the answer is to be of (`as`).
    pub kind: Option<&'a str>,
    /// That kind's group (`g`).
    pub group: &'a str,
    /// That kind's version (`v`).
    pub version: &'a str,
    /// What the answer is a stream of.
    pub stream: &'a str,
    /// The version of the server (`sv`).
    pub server_version: &'a str,
    /// Whether JSON is to be indented.
    pub pretty: bool,
}

impl Asked<'_> {
    /// Whether the answer is to be of a kind other than the object's.
    pub fn transforms(&self) -> bool {
        self.kind.is_some() || !self.group.is_empty() || !self.version.is_empty()
    }

    /// Whether the answer may be a stream of what is asked for in this encoding, if of anything.
    pub fn may_stream(&self, encoding: Encoding) -> bool {
        self.stream.is_empty() || (self.stream == "watch" && encoding != Encoding::Yaml)
    }

    /// The form of an answer of one shape.
    pub fn of_one_shape(&self, encoding: Encoding) -> Accept {
        Accept {
            encoding,
            pretty: self.pretty && encoding == Encoding::Json,
            ..Accept::JSON
        }
    }
}

impl Wanted {
    /// Reads a request's headers and query.
    pub fn of(headers: &HeaderMap, query: &str) -> Self {
        let asked = query.contains("pretty").then(|| Query::parse(query));
        let pretty = match asked.as_ref().and_then(|query| query.get("pretty")) {
            Some(text) if !text.is_empty() => is_true(text),
            _ => headers
                .get(USER_AGENT)
                .and_then(|agent| agent.to_str().ok())
                .is_some_and(|agent| HUMAN_CLIENTS.iter().any(|client| agent.starts_with(client))),
        };
        Self {
            accept: headers.get(ACCEPT).cloned(),
            pretty,
            gzip: headers
                .get(ACCEPT_ENCODING)
                .and_then(|encodings| encodings.to_str().ok())
                .is_some_and(|encodings| encodings.split(',').any(|encoding| encoding.trim() == "gzip")),
        }
    }

    fn accepted(&self) -> Option<&str> {
        let text = self.accept.as_ref().and_then(|accept| accept.to_str().ok());
        text.filter(|text| !text.is_empty())
    }

    /// What `take` makes of the best clause of the client and of what is offered under a media type that it takes. Whoever says nothing takes all.
    pub(crate) fn find<O: Copy, T>(
        &self,
        offered: &[(&str, O)],
        take: impl Fn(O, Asked<'_>) -> Option<T>,
    ) -> Option<T> {
        clauses(self.accepted().unwrap_or("*/*")).iter().find_map(|clause| {
            let mut asked = clause.asked();
            asked.pretty |= self.pretty;
            let mut taken = offered.iter().filter(|(media_type, _)| clause.takes(media_type));
            taken.find_map(|(_, own)| take(*own, asked))
        })
    }

    /// Refuses clients that accept no media type of a built-in resource's route, before it is looked at what they want in it.
    ///
    /// # Errors
    /// 406 in the words of kube-apiserver's router. `lists` tells whether the route has watches too.
    pub fn check_route(&self, lists: bool) -> Result<(), ApiError> {
        let streams = if lists { STREAM_TYPES.as_slice() } else { &[] };
        self.check_types(&MEDIA_TYPES, streams)
    }

    /// Refuses clients that accept none of the media types that a route serves.
    ///
    /// # Errors
    /// 406, which tells those that the route has besides, too.
    pub fn check_types(&self, served: &[&str], besides: &[&str]) -> Result<(), ApiError> {
        let Some(text) = self.accepted() else { return Ok(()) };
        let is_served = |clause: &str| {
            let media_type = clause.split(';').next().unwrap_or_default().trim();
            media_type == "*/*" || served.contains(&media_type)
        };
        if text.split(',').any(is_served) {
            return Ok(());
        }
        let available: Vec<&str> = served.iter().chain(besides).copied().collect();
        Err(ApiError::no_representation(&available))
    }
}

impl Accept {
    /// Plain JSON.
    pub const JSON: Self = Self {
        shape: Shape::Object,
        encoding: Encoding::Json,
        pretty: false,
        beta: false,
    };

    /// Whether objects are sent in the bytes in which they are stored.
    pub fn is_plain_json(self) -> bool {
        self == Self::JSON
    }

    /// Chooses what is sent: the best clause of the client that is offered.
    ///
    /// # Errors
    /// 406 when none is.
    pub fn choose(wanted: &Wanted, offer: Offer) -> Result<Self, ApiError> {
        let found = wanted.find(&ENCODINGS, |encoding, asked| Self::of(encoding, &asked, offer));
        found.ok_or_else(|| ApiError::not_acceptable(&MEDIA_TYPES))
    }

    /// What a clause asks of an encoding. `None`: something that is not offered.
    fn of(encoding: Encoding, asked: &Asked<'_>, offer: Offer) -> Option<Self> {
        if !asked.may_stream(encoding) || !matches!(asked.server_version, "" | "v1") {
            return None;
        }
        let shape = match asked.kind {
            _ if !asked.transforms() => Shape::Object,
            _ if !offer.shapes || asked.group != "meta.k8s.io" || !matches!(asked.version, "v1" | "v1beta1") => {
                return None;
            }
            Some("Table") if offer.tables && encoding != Encoding::Protobuf => Shape::Table,
            Some("PartialObjectMetadata") => Shape::Metadata,
            Some("PartialObjectMetadataList") => Shape::MetadataList,
            _ => return None,
        };
        if shape == Shape::Object && encoding == Encoding::Protobuf && !offer.protobuf {
            return None;
        }
        Some(Self {
            shape,
            beta: asked.version == "v1beta1",
            ..asked.of_one_shape(encoding)
        })
    }

    /// As [`Accept::choose`], for a watch.
    ///
    /// # Errors
    /// 406 when none is offered.
    pub fn choose_stream(wanted: &Wanted, offer: Offer) -> Result<Self, ApiError> {
        let chosen = Self::choose(wanted, offer)?;
        match chosen.encoding {
            Encoding::Yaml => Err(ApiError::not_acceptable(&STREAM_TYPES)),
            Encoding::Json | Encoding::Protobuf => Ok(chosen),
        }
    }

    /// The content type of an answer.
    pub fn content_type(self) -> &'static str {
        match self.encoding {
            Encoding::Json => "application/json",
            Encoding::Yaml => "application/yaml",
            Encoding::Protobuf => protobuf::CONTENT_TYPE,
        }
    }

    /// The content type of an answer of a kind that the client named by group, version and kind.
    ///
    /// # Errors
    /// 500 where these cannot stand in a header.
    pub(crate) fn content_type_of(self, (group, version, kind): (&str, &str, &str)) -> Result<HeaderValue, ApiError> {
        let told = format!("{};g={group};v={version};as={kind}", self.content_type());
        HeaderValue::try_from(told).map_err(ApiError::internal)
    }

    /// The content type of a watch.
    pub fn stream_type(self) -> &'static str {
        match self.encoding {
            Encoding::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
            Encoding::Json | Encoding::Yaml => "application/json",
        }
    }

    /// The version of tables and metadata.
    pub fn meta_version(self) -> &'static str {
        if self.beta {
            "meta.k8s.io/v1beta1"
        } else {
            "meta.k8s.io/v1"
        }
    }
}

impl<'a> Clause<'a> {
    /// Whether this clause is preferred to one that the client names earlier: what names types is, whatever its quality, to what leaves them open.
    fn is_before(&self, earlier: &Self) -> bool {
        let names = |own: &str, other: &str| own != "*" && other == "*";
        self.quality > earlier.quality || names(self.kind, earlier.kind) || names(self.subtype, earlier.subtype)
    }

    /// Whether this clause takes a media type.
    fn takes(&self, media_type: &str) -> bool {
        let (kind, subtype) = media_type.split_once('/').unwrap_or_default();
        match (self.kind, self.subtype) {
            ("*", "*") => true,
            (own, "*") => own == kind,
            own => own == (kind, subtype),
        }
    }

    fn asked(&self) -> Asked<'a> {
        let mut asked = Asked::default();
        for (key, value) in &self.parameters {
            match *key {
                "as" => asked.kind = Some(*value),
                "g" => asked.group = value,
                "v" => asked.version = value,
                "stream" => asked.stream = value,
                "pretty" => asked.pretty = *value == "1",
                "sv" => asked.server_version = value,
                _ => {}
            }
        }
        asked
    }
}

/// What an `Accept` header prefers of some media types (`application/json`); the first of them, if it names none or all.
pub(crate) fn preferred<T: Copy>(headers: &HeaderMap, offered: &[(&str, T)]) -> Option<T> {
    Wanted::of(headers, "").find(offered, |own, _| Some(own))
}

/// The clauses of an `Accept` header, the preferred first.
fn clauses(text: &str) -> Vec<Clause<'_>> {
    let mut found: Vec<Clause<'_>> = Vec::new();
    for clause in text.split(',').filter_map(clause) {
        // upstream's order is none that could be sorted by: what is preferred depends on which two are compared
        let behind = found.iter().rposition(|earlier| !clause.is_before(earlier));
        found.insert(behind.map_or(0, |behind| behind + 1), clause);
    }
    found
}

fn clause(text: &str) -> Option<Clause<'_>> {
    let mut parts = text.split(';');
    let media_type = parts.next()?.trim_matches(' ');
    let (kind, subtype) = match media_type.split_once('/') {
        Some((kind, subtype)) if !subtype.is_empty() && !subtype.contains('/') => (kind, subtype),
        None if media_type == "*" => ("*", "*"),
        _ => return None,
    };
    let mut clause = Clause {
        kind: kind.trim_matches(' '),
        subtype: subtype.trim_matches(' '),
        quality: 1.0,
        parameters: Vec::new(),
    };
    for part in parts {
        let Some((key, value)) = part.split_once('=').filter(|(_, value)| !value.contains('=')) else {
            continue;
        };
        match key.trim_matches(' ') {
            "q" => clause.quality = value.parse().unwrap_or(0.0),
            key => clause.parameters.push((key, value.trim_matches(' '))),
        }
    }
    Some(clause)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILT_IN: Offer = Offer {
        protobuf: true,
        shapes: true,
        tables: true,
    };
    const CUSTOM: Offer = Offer {
        protobuf: false,
        ..BUILT_IN
    };
    const PART: Offer = Offer {
        tables: false,
        ..BUILT_IN
    };

    fn chosen(text: &'static str, offer: Offer) -> Result<(Shape, Encoding), u16> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(text));
        Accept::choose(&Wanted::of(&headers, ""), offer)
            .map(|accept| (accept.shape, accept.encoding))
            .map_err(|error| error.code())
    }

    #[test]
    fn the_best_clause_on_offer_counts() {
        use Encoding::{Json, Protobuf, Yaml};
        use Shape::{MetadataList, Object, Table};
        const KUBECTL: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        for (text, offer, expected) in [
            (KUBECTL, BUILT_IN, Ok((Table, Json))),
            (KUBECTL, Offer::ONE_SHAPE, Ok((Object, Json))),
            (KUBECTL, PART, Ok((Object, Json))),
            ("application/json;as=Table;v=v1;g=meta.k8s.io", PART, Err(406)),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                BUILT_IN,
                Ok((Object, Protobuf)),
            ),
            (
                "application/vnd.kubernetes.protobuf,application/json",
                CUSTOM,
                Ok((Object, Json)),
            ),
            ("application/vnd.kubernetes.protobuf", CUSTOM, Err(406)),
            ("application/vnd.kubernetes.protobuf, */*", CUSTOM, Ok((Object, Json))),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
                CUSTOM,
                Ok((MetadataList, Protobuf)),
            ),
            (
                "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1",
                BUILT_IN,
                Err(406),
            ),
            ("application/json;as=Table;g=meta.k8s.io;v=v2", BUILT_IN, Err(406)),
            ("application/json;as=Other;g=meta.k8s.io;v=v1", BUILT_IN, Err(406)),
            ("application/yaml", BUILT_IN, Ok((Object, Yaml))),
            ("application/json;q=0.5, application/yaml", BUILT_IN, Ok((Object, Yaml))),
            ("*/*, application/yaml", BUILT_IN, Ok((Object, Yaml))),
            ("application/*", BUILT_IN, Ok((Object, Json))),
            ("*/*", BUILT_IN, Ok((Object, Json))),
            ("application/cbor", BUILT_IN, Err(406)),
            ("nonsense", BUILT_IN, Err(406)),
            ("", BUILT_IN, Ok((Object, Json))),
        ] {
            assert_eq!(chosen(text, offer), expected, "{text}");
        }
    }

    #[test]
    fn people_get_indented_json() {
        let pretty = |agent: &'static str, query: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(USER_AGENT, HeaderValue::from_static(agent));
            Accept::choose(&Wanted::of(&headers, query), BUILT_IN).unwrap().pretty
        };
        assert!(pretty("curl/8.5", "") && pretty("kubectl/v1.33", "pretty=true"));
        assert!(!pretty("curl/8.5", "pretty=false") && !pretty("kubectl/v1.33", "pretty="));
    }
}
