//! Field paths and field errors, as `k8s.io/apimachinery/pkg/util/validation/field` words them.
//!
//! Validation functions collect [`Error`]s into an [`ErrorList`]; the API server turns a list into one 422 `Status`
//! ([`crate::ApiError::invalid`]) whose causes carry path, reason and message.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::pointer;

/// A path into an object: `spec.provider.workers[0].name`, `metadata.annotations[key]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(String);

impl Path {
    /// The empty path: the object itself.
    pub fn root() -> Self {
        Self::default()
    }

    /// A path of one or several dotted names, such as `metadata.name`.
    pub fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The path of a field below this one. Where a map's key stands for the name, it may be empty: Go writes brackets then.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        if name.is_empty() {
            self.key(name)
        } else if self.0.is_empty() {
            Self(name.to_owned())
        } else {
            Self([&self.0, ".", name].concat())
        }
    }

    /// The path of a list's element.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.key(&index.to_string())
    }

    /// The path of a map's value.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        Self([&self.0, "[", key, "]"].concat())
    }

    /// The JSON pointer to the field, where the path's names are those of the object's JSON.
    pub fn pointer(&self) -> String {
        let mut segments = String::new();
        let mut rest = self.0.as_str();
        while !rest.is_empty() {
            let (segment, behind) = match rest.strip_prefix('[') {
                // a key may have brackets itself
                Some(key) => match [key.find("]."), key.find("][")].into_iter().flatten().min() {
                    Some(end) => (key.get(..end), key.get(end + 1..)),
                    None => (key.strip_suffix(']').or(Some(key)), None),
                },
                None => {
                    let end = rest.find(['.', '[']).unwrap_or(rest.len());
                    (rest.get(..end), rest.get(end..))
                }
            };
            segments = pointer::member(&segments, segment.unwrap_or_default());
            rest = behind.unwrap_or_default();
            rest = rest.strip_prefix('.').unwrap_or(rest);
        }
        segments
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Path {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_empty() { "<nil>" } else { &self.0 })
    }
}

impl From<&str> for Path {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorType {
    /// A reference points to something that does not exist.
    NotFound,
    /// The field must be set and is not.
    Required,
    /// The same value stands in a list twice.
    Duplicate,
    /// The value is malformed or out of bounds.
    Invalid,
    /// A malformed object or list, whose value is not shown.
    InvalidPart,
    /// The value is not one of those allowed.
    NotSupported,
    /// The field must not be set, or not so, in this situation.
    Forbidden,
    /// The text has too many bytes.
    TooLong,
    /// The list has too many elements.
    TooMany,
    /// Checking failed for a reason that is not the user's.
    Internal,
    /// The JSON type does not fit.
    TypeInvalid,
}

impl ErrorType {
    /// The `reason` of a cause in a `Status`.
    pub fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid | Self::InvalidPart => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
            Self::Internal => "InternalError",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::InvalidPart | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
            Self::Internal => "Internal error",
        }
    }
}

/// One finding about one field.
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    /// What kind of finding.
    pub kind: ErrorType,
    /// Where.
    pub path: Path,
    /// The value found; not shown for `Required`, `Forbidden`, `TooLong`, `TooMany` and `Internal`.
    pub value: Value,
    /// What was expected, in words; may be empty.
    pub detail: String,
    /// What is shown of the value where that is not JSON as we write it, such as a Go struct with its fields in their order.
    shown: Option<String>,
}

/// Findings, in the order in which they were made.
pub type ErrorList = Vec<Error>;

/// Findings, or what else went wrong, as one text, each once: `a`, or `[a, b]`.
pub fn aggregate<E: std::fmt::Display>(errors: &[E]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in errors.iter().map(ToString::to_string) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match texts.as_slice() {
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

/// Findings as Go prints a list of them: `[a b]`.
pub fn listed(errors: &[Error]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    format!("[{}]", texts.join(" "))
}

impl Error {
    fn new(kind: ErrorType, path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self {
            kind,
            path: path.clone(),
            value: value.into(),
            detail: detail.into(),
            shown: None,
        }
    }

    /// A malformed value that is shown as this text, without quotes.
    pub fn literal(path: &Path, shown: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            shown: Some(shown.into()),
            ..Self::new(ErrorType::Invalid, path, Value::Null, detail)
        }
    }

    /// Shows the value as this text, without quotes.
    pub fn show_as(&mut self, shown: impl Into<String>) {
        self.shown = Some(shown.into());
    }

    /// A reference to something that does not exist.
    pub fn not_found(path: &Path, value: impl Into<Value>) -> Self {
        Self::new(ErrorType::NotFound, path, value, "")
    }

    /// A field that must be set.
    pub fn required(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Required, path, Value::Null, detail)
    }

    /// A value that stands in a list twice.
    pub fn duplicate(path: &Path, value: impl Into<Value>) -> Self {
        Self::new(ErrorType::Duplicate, path, value, "")
    }

    /// A malformed value.
    pub fn invalid(path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Invalid, path, value, detail)
    }

    /// A malformed object or list, which is not shown.
    pub fn invalid_part(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::InvalidPart, path, Value::Null, detail)
    }

    /// A value of a JSON type that does not fit.
    pub fn type_invalid(path: &Path, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::TypeInvalid, path, value, detail)
    }

    /// A value that is not among `supported`; they are told in the given order.
    pub fn not_supported<S: AsRef<str>>(path: &Path, value: impl Into<Value>, supported: &[S]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|text| go_quote(text.as_ref())).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(ErrorType::NotSupported, path, value, detail)
    }

    /// A field that must not be set, or not so.
    pub fn forbidden(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Forbidden, path, Value::Null, detail)
    }

    /// A text of more than `max` bytes.
    pub fn too_long(path: &Path, max: usize) -> Self {
        Self::new(
            ErrorType::TooLong,
            path,
            Value::Null,
            format!("may not be more than {max} {}", if max == 1 { "byte" } else { "bytes" }),
        )
    }

    /// A list of more than `max` elements.
    pub fn too_many(path: &Path, actual: usize, max: usize) -> Self {
        Self::new(
            ErrorType::TooMany,
            path,
            actual,
            format!("must have at most {max} {}", if max == 1 { "item" } else { "items" }),
        )
    }

    /// A failure that is not the user's.
    pub fn internal(path: &Path, detail: impl Into<String>) -> Self {
        Self::new(ErrorType::Internal, path, Value::Null, detail)
    }

    /// The value as the message shows it. None, if it does not.
    pub fn shown(&self) -> Option<Cow<'_, str>> {
        match self.kind {
            ErrorType::Required
            | ErrorType::Forbidden
            | ErrorType::TooLong
            | ErrorType::TooMany
            | ErrorType::Internal
            | ErrorType::InvalidPart => None,
            ErrorType::NotFound
            | ErrorType::Duplicate
            | ErrorType::Invalid
            | ErrorType::NotSupported
            | ErrorType::TypeInvalid => Some(match &self.shown {
                Some(text) => text.into(),
                None => shown(&self.value).into(),
            }),
        }
    }

    /// The message of the cause: the finding without its path.
    pub fn body(&self) -> String {
        let title = self.kind.title();
        let head = match self.kind {
            ErrorType::TooMany => format!("{title}: {}", self.value),
            _ => match self.shown() {
                Some(text) if !text.is_empty() => format!("{title}: {text}"),
                _ => title.to_owned(),
            },
        };
        if self.detail.is_empty() {
            head
        } else {
            format!("{head}: {}", self.detail)
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path, self.body())
    }
}

/// A text in double quotes as Go's `%q` prints it.
pub fn go_quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0b' => quoted.push_str("\\v"),
            '\x0c' => quoted.push_str("\\f"),
            c if c.is_control() && (c as u32) < 0x80 => quoted.push_str(&format!("\\x{:02x}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// JSON as Go writes it: `<`, `>` and `&` stand as escapes, as do the two separators that JavaScript takes for ends of lines.
pub fn go_escaped<'a>(json: impl Into<Cow<'a, str>>) -> Cow<'a, str> {
    let json = json.into();
    // the separators begin with the last of these bytes
    if !json.bytes().any(|byte| matches!(byte, b'<' | b'>' | b'&' | 0xe2)) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' => escaped.push_str("\\u003c"),
            '>' => escaped.push_str("\\u003e"),
            '&' => escaped.push_str("\\u0026"),
            '\u{2028}' => escaped.push_str("\\u2028"),
            '\u{2029}' => escaped.push_str("\\u2029"),
            c => escaped.push(c),
        }
    }
    escaped.into()
}

/// A text in double quotes as Go's `time` writes it: byte by byte what is no printable ASCII.
pub fn go_time_quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=0x7f => quoted.push(char::from(byte)),
            _ => quoted.push_str(&format!("\\x{byte:02x}")),
        }
    }
    quoted.push('"');
    quoted
}

/// From which power of ten on Go writes a number with an exponent.
const LARGE: i32 = 6;
/// Below which power of ten a number has one.
const SMALL: i32 = -4;

/// A number with a point as Go prints it: the fewest digits that tell it from all others, with an exponent where it is very small or large.
pub fn go_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    match exponent.parse::<i32>() {
        Ok(power) if !(SMALL..LARGE).contains(&power) => {
            let sign = if power < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", power.abs())
        }
        _ => value.to_string(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => go_quote(text),
        Value::Null => "null".to_owned(),
        Value::Number(number) if number.is_f64() => go_float(number.as_f64().unwrap_or_default()),
        other => go_escaped(other.to_string()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_pointers() {
        for (path, pointer) in [
            (Path::root(), ""),
            (Path::new("metadata.name"), "/metadata/name"),
            (
                Path::new("spec").child("workers").index(1).child("name"),
                "/spec/workers/1/name",
            ),
            (
                Path::new("metadata").child("labels").key("a.b/c[0]"),
                "/metadata/labels/a.b~1c[0]",
            ),
            (Path::new("a").key("b.c").key("d").child("e"), "/a/b.c/d/e"),
            (Path::new("a").child("").child("b"), "/a//b"),
        ] {
            assert_eq!(path.pointer(), pointer, "{path}");
        }
    }

    #[test]
    fn words_are_kubernetes_words() {
        let path = Path::new("spec").child("workers").index(1).child("name");
        assert_eq!(
            Error::required(&path, "must set a name").to_string(),
            "spec.workers[1].name: Required value: must set a name"
        );
        assert_eq!(
            Error::invalid(&path, "a b", "bad").to_string(),
            "spec.workers[1].name: Invalid value: \"a b\": bad"
        );
        assert_eq!(
            Error::invalid(&path, serde_json::json!({"a": "<b> & c"}), "bad").to_string(),
            "spec.workers[1].name: Invalid value: {\"a\":\"\\u003cb\\u003e \\u0026 c\"}: bad"
        );
        assert_eq!(
            Error::not_supported(&path, "x", &["a", "b"]).to_string(),
            "spec.workers[1].name: Unsupported value: \"x\": supported values: \"a\", \"b\""
        );
        assert_eq!(
            Error::duplicate(&path, "x").to_string(),
            "spec.workers[1].name: Duplicate value: \"x\""
        );
        assert_eq!(
            Error::forbidden(&path, "no").to_string(),
            "spec.workers[1].name: Forbidden: no"
        );
        assert_eq!(
            Error::too_many(&path, 3, 1).to_string(),
            "spec.workers[1].name: Too many: 3: must have at most 1 item"
        );
    }
}
