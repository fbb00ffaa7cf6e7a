//! JSON in texts, such as annotations, with the words of Go's decoder for what is none.

use gardener_apimachinery::go_json;
use gardener_apimachinery::go_json::type_of;
use serde_json::Value;

/// The value of a text.
pub(super) fn value(text: &str) -> Result<Value, String> {
    serde_json::from_str(text)
        .map_err(|error| go_json::syntax_error(text.as_bytes()).unwrap_or_else(|| error.to_string()))
}

/// The elements of a list; `go` is its type in Go.
pub(super) fn elements(text: &str, go: &str) -> Result<Vec<Value>, String> {
    match value(text)? {
        Value::Null => Ok(Vec::new()),
        Value::Array(elements) => Ok(elements),
        other => Err(cannot(&other, go)),
    }
}

/// That a value does not become one of a Go type.
pub(super) fn cannot(found: &Value, go: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {go}", type_of(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_in_texts() {
        assert_eq!(elements("[1]", "[]T"), Ok(vec![Value::from(1)]));
        assert_eq!(elements("null", "[]T"), Ok(Vec::new()));
        assert_eq!(
            elements("{}", "[]T"),
            Err("json: cannot unmarshal object into Go value of type []T".to_owned())
        );
        assert_eq!(
            elements("x", "[]T"),
            Err("invalid character 'x' looking for beginning of value".to_owned())
        );
    }
}
