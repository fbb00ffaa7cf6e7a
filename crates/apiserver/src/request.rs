//! Reads a request's path and query into what is asked of which resource.

use std::borrow::Cow;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::go_quote;

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `/api/…` or `/apis/<group>/<version>/…`: a resource.
    Resource(ResourcePath),
    /// Anything else: discovery, OpenAPI, health, version.
    Other(String),
}

/// A resource path, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourcePath {
    /// API group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Namespace; empty for cluster-scoped resources and for requests across namespaces.
    pub namespace: String,
    /// Plural name of the resource.
    pub resource: String,
    /// Name of the object; empty for the collection.
    pub name: String,
    /// Subresource; empty for the object itself.
    pub subresource: String,
    /// What follows the subresource: a path on the server that a `proxy` connects to. Empty for all else that is there.
    pub beyond: String,
    /// Whether the legacy `/watch/` prefix was used.
    pub legacy_watch: bool,
}

/// Splits a percent-decoded path.
pub fn target(path: &str) -> Target {
    let other = || Target::Other(path.to_owned());
    if path.starts_with("//") {
        return other();
    }
    // what is empty between two slashes counts: it is a name that nothing has
    let mut parts = path.trim_matches('/').split('/');
    let mut found = ResourcePath::default();
    match parts.next() {
        Some("api") => {}
        Some("apis") => match parts.next() {
            Some(group) if !group.is_empty() => found.group = group.to_owned(),
            _ => return other(),
        },
        _ => return other(),
    }
    match parts.next() {
        Some(version) => found.version = version.to_owned(),
        None => return other(),
    }
    let mut rest: Vec<&str> = parts.collect();
    if rest.is_empty() {
        return other();
    }
    if rest.first() == Some(&"watch") && rest.len() > 1 {
        found.legacy_watch = true;
        rest.remove(0);
    }
    // `/namespaces/<name>` itself is the resource `namespaces`; anything longer is inside the namespace, but for its subresources.
    if rest.first() == Some(&"namespaces") && rest.len() > 2 && !matches!(rest.get(2), Some(&("status" | "finalize"))) {
        found.namespace = rest.get(1).copied().unwrap_or_default().to_owned();
        rest.drain(..2);
    }
    let mut rest = rest.into_iter();
    found.resource = rest.next().unwrap_or_default().to_owned();
    found.name = rest.next().unwrap_or_default().to_owned();
    found.subresource = rest.next().unwrap_or_default().to_owned();
    found.beyond = rest.collect::<Vec<_>>().join("/");
    if found.group.is_empty() && found.resource == "namespaces" && !found.name.is_empty() {
        // upstream's request info names the namespace itself here, and authorization rules rely on it
        found.namespace = found.name.clone();
    }
    Target::Resource(found)
}

/// Whether a path ends with the verb of a legacy path, so that it tells what to do and not with what.
pub(crate) fn is_verb_alone(path: &str) -> bool {
    // of every request it is asked
    let Some((version, "watch" | "proxy")) = path.trim_matches('/').rsplit_once('/') else {
        return false;
    };
    let parts: Vec<&str> = version.split('/').collect();
    matches!(parts.as_slice(), ["api", _] | ["apis", _, _])
}

/// A query string, decoded. Keys may repeat.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

/// Whether Go reads a parameter of a query. It leaves out those with a semicolon or an escape that is none, without a word.
fn is_readable(pair: &str) -> bool {
    let is_hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    let mut escapes = pair.split('%').skip(1);
    !pair.contains(';') && escapes.all(|rest| rest.as_bytes().get(..2).is_some_and(is_hex))
}

impl Query {
    /// Reads `a=b&c=d`.
    pub fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| is_readable(pair));
        let read = pairs.flat_map(|pair| url::form_urlencoded::parse(pair.as_bytes()));
        Self(read.map(|(k, v)| (k.into_owned(), v.into_owned())).collect())
    }

    /// The same query with one more parameter.
    #[must_use]
    pub fn with(&self, key: &str, value: &str) -> Self {
        let mut parameters = self.0.clone();
        parameters.push((key.to_owned(), value.to_owned()));
        Self(parameters)
    }

    /// The first value of a key; an empty value counts as none.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(k, _)| k == key)
            .map(|(_, v)| v.as_str())
            .filter(|v| !v.is_empty())
    }

    /// Whether a key is there, whatever its value.
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(k, _)| k == key)
    }

    /// What a boolean parameter says, if it is there; without a value it says yes.
    pub fn optional_flag(&self, key: &str) -> Option<bool> {
        self.all(key).next().map(is_true)
    }

    /// All values of a key.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// All parameters by name; of one given several times, the last.
    pub fn pairs(&self) -> std::collections::BTreeMap<&str, &str> {
        self.0
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()))
            .collect()
    }

    /// A boolean as Kubernetes reads one from a query: absent and `0`/`false` are false, anything else is true.
    pub fn flag(&self, key: &str) -> bool {
        self.0.iter().find(|(k, _)| k == key).is_some_and(|(_, v)| is_true(v))
    }

    /// A number.
    ///
    /// # Errors
    /// 400 when the value is no number.
    pub fn number<T: std::str::FromStr>(&self, key: &str) -> Result<Option<T>, ApiError> {
        match self.all(key).next() {
            None => Ok(None),
            Some(text) => integer(text).map(Some),
        }
    }
}

/// Whether the text of a boolean parameter means yes.
pub(crate) fn is_true(text: &str) -> bool {
    !matches!(text.to_ascii_lowercase().as_str(), "false" | "0")
}

/// Reads an integer.
///
/// # Errors
/// 400 when the text is none.
pub(crate) fn integer<T: std::str::FromStr>(text: &str) -> Result<T, ApiError> {
    text.parse().map_err(|_| {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        let why = match !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()) {
            true => "value out of range",
            false => "invalid syntax",
        };
        ApiError::bad_request(format!("strconv.ParseInt: parsing {}: {why}", go_quote(text)))
    })
}

/// Percent-decodes a path segment-wise; `%2F` stays an escaped slash inside a name.
pub fn decode_path(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let mut out = Vec::with_capacity(path.len());
    let bytes = path.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escaped = (*byte == b'%')
            .then(|| bytes.get(at + 1..at + 3))
            .flatten()
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match escaped {
            Some(decoded) => {
                out.push(decoded);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> (String, String, String, String, String, String) {
        match target(path) {
            Target::Resource(p) => (p.group, p.version, p.namespace, p.resource, p.name, p.subresource),
            Target::Other(path) => panic!("{path} is no resource path"),
        }
    }

    #[test]
    fn what_go_cannot_read_of_a_query_is_left_out() {
        let query = Query::parse("a=1&b=2;c=3&d=%zz&%=4&e=%41&f=%4&g=;&h");
        let told: Vec<_> = ["a", "b", "c", "d", "e", "f", "g"].map(|key| query.get(key)).into();
        assert_eq!(told, [Some("1"), None, None, None, Some("A"), None, None]);
        assert!(query.has("h"));
    }

    #[test]
    fn paths_are_read() {
        let case = |path: &str, expected: [&str; 6]| {
            let (a, b, c, d, e, f) = resource(path);
            assert_eq!([a, b, c, d, e, f], expected.map(str::to_owned), "{path}");
        };
        case("/api/v1/pods", ["", "v1", "", "pods", "", ""]);
        case("/api/v1/namespaces", ["", "v1", "", "namespaces", "", ""]);
        case("/api/v1/namespaces/a", ["", "v1", "a", "namespaces", "a", ""]);
        case(
            "/api/v1/namespaces/a/finalize",
            ["", "v1", "a", "namespaces", "a", "finalize"],
        );
        case("/api/v1/namespaces/a/pods/b/log", ["", "v1", "a", "pods", "b", "log"]);
        case("/api/v1/nodes/a/proxy/b/c", ["", "v1", "", "nodes", "a", "proxy"]);
        case(
            "/apis/apps/v1/namespaces/a/deployments/b",
            ["apps", "v1", "a", "deployments", "b", ""],
        );
        case(
            "/apis/apps/v1/watch/deployments",
            ["apps", "v1", "", "deployments", "", ""],
        );
        for path in [
            "/api",
            "/api/v1",
            "/apis",
            "/apis/apps",
            "/apis/apps/v1",
            "/healthz",
            "/",
            "//api/v1/pods",
        ] {
            assert!(matches!(target(path), Target::Other(_)), "{path}");
        }
    }

    #[test]
    fn escapes_are_decoded() {
        assert_eq!(decode_path("/api/v1/a%3Ab%zz"), "/api/v1/a:b%zz");
    }

    #[test]
    fn flags_as_kubernetes_reads_them() {
        let query = Query::parse("watch=1&a=false&b&c=true&d=0");
        assert!(query.flag("watch") && query.flag("b") && query.flag("c"));
        assert!(!query.flag("a") && !query.flag("d") && !query.flag("e"));
    }
}
