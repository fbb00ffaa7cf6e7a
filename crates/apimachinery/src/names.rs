//! Syntax of names, labels and keys, worded as `k8s.io/apimachinery/pkg/util/validation` words it.
//!
//! Every function returns what is wrong as texts; an empty list means that the value is fine.

use crate::field::{Error, Path};

/// What must hold of a DNS-1123 label: `[a-z0-9]([-a-z0-9]*[a-z0-9])?`, at most 63 bytes.
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// The longest DNS-1123 label and label value, in bytes.
pub const LABEL_MAX: usize = 63;
/// The longest DNS-1123 subdomain, in bytes.
pub const SUBDOMAIN_MAX: usize = 253;

/// Of names that upstream checks by themselves.
fn too_long(max: usize) -> String {
    format!("must be no more than {max} characters")
}

/// Of labels and their keys.
fn too_many_bytes(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

fn lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            lower_alphanumeric(*first)
                && lower_alphanumeric(*last)
                && bytes.iter().all(|b| lower_alphanumeric(*b) || *b == b'-')
        }
        _ => false,
    }
}

fn is_name_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    match (bytes.first(), bytes.last()) {
        (Some(first), Some(last)) => {
            first.is_ascii_alphanumeric()
                && last.is_ascii_alphanumeric()
                && bytes
                    .iter()
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        }
        _ => false,
    }
}

/// Checks a DNS-1123 label, such as the name of a namespace.
pub fn dns_label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > LABEL_MAX {
        errors.push(too_long(LABEL_MAX));
    }
    if !is_label(text) {
        // what would do as a subdomain fails for its dots
        let why = match text.split('.').all(is_label) {
            true => "must not contain dots",
            false => LABEL,
        };
        errors.push(why.to_owned());
    }
    errors
}

/// What is wrong with a DNS-1035 label, the form of service names: a DNS label that starts with a letter.
pub fn dns1035_label(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > LABEL_MAX {
        errors.push(too_long(LABEL_MAX));
    }
    let valid = text
        .bytes()
        .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && text.bytes().next().is_some_and(|b| b.is_ascii_lowercase())
        && !text.ends_with('-');
    if !valid {
        errors.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, \
             and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is \
             '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    errors
}

/// Checks a DNS-1123 subdomain, such as the name of most objects.
pub fn dns_subdomain(text: &str) -> Vec<String> {
    subdomain(text, too_long)
}

/// What is wrong with a domain name of at least two labels, which may end with a dot; the first finding alone, as upstream
/// tells it: an empty name is `Required`, and a finding of a label shows the label.
pub fn fully_qualified_domain_name(name: &str, path: &Path) -> Option<Error> {
    if name.is_empty() {
        return Some(Error::required(path, ""));
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let invalid =
        |part: &str, wrong: Vec<String>| (!wrong.is_empty()).then(|| Error::invalid(path, part, wrong.join(",")));
    if let Some(error) = invalid(name, dns_subdomain(name)) {
        return Some(error);
    }
    if !name.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        return Some(Error::invalid(path, name, why));
    }
    name.split('.').find_map(|label| invalid(label, dns_label(label)))
}

/// As [`dns_subdomain`], in the words of kinds whose names are checked by what their Go types declare.
pub fn long_name(text: &str) -> Vec<String> {
    subdomain(text, too_many_bytes)
}

fn subdomain(text: &str, too_long: fn(usize) -> String) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        errors.push(too_long(SUBDOMAIN_MAX));
    }
    if !text.split('.').all(is_label) {
        errors.push(SUBDOMAIN.to_owned());
    }
    errors
}

/// Checks a DNS-1123 subdomain whose labels may have underscores inside, such as a search path of DNS.
pub fn dns_subdomain_with_underscore(text: &str) -> Vec<String> {
    const WHY: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')";
    let mut errors = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        errors.push(too_long(SUBDOMAIN_MAX));
    }
    // inside a label an underscore is as good as a dash
    if !text
        .split('.')
        .all(|label| is_label(&label.strip_prefix('_').unwrap_or(label).replace('_', "-")))
    {
        errors.push(WHY.to_owned());
    }
    errors
}

/// Checks a qualified name: an optional DNS subdomain and `/` before a name, as label keys are.
pub fn qualified_name(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    let name = match text.split_once('/') {
        None => text,
        Some((prefix, name)) if !name.contains('/') => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            } else {
                errors.extend(
                    subdomain(prefix, too_many_bytes)
                        .into_iter()
                        .map(|error| format!("prefix part {error}")),
                );
            }
            name
        }
        Some(_) => {
            errors.push(format!(
                "a valid label key {QUALIFIED} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            ));
            return errors;
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_MAX {
        errors.push(format!("name part {}", too_many_bytes(LABEL_MAX)));
    }
    if !is_name_part(name) {
        errors.push(format!("name part {QUALIFIED}"));
    }
    errors
}

/// Checks the value of a label; empty is fine.
pub fn label_value(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > LABEL_MAX {
        errors.push(too_many_bytes(LABEL_MAX));
    }
    if !text.is_empty() && !is_name_part(text) {
        errors.push(LABEL_VALUE.to_owned());
    }
    errors
}

/// Checks the key of a ConfigMap's or Secret's data.
pub fn config_key(text: &str) -> Vec<String> {
    let mut errors = Vec::new();
    if text.len() > SUBDOMAIN_MAX {
        errors.push(too_long(SUBDOMAIN_MAX));
    }
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    if text.is_empty() || !text.bytes().all(fits) {
        errors.push(CONFIG_KEY.to_owned());
    }
    if text == "." || text == ".." {
        errors.push(format!("must not be '{text}'"));
    } else if text.starts_with("..") {
        errors.push("must not start with '..'".to_owned());
    }
    errors
}

/// Checks a name that becomes a segment of a URL path.
pub fn path_segment(text: &str) -> Vec<String> {
    if text == "." || text == ".." {
        return vec![format!("may not be '{text}'")];
    }
    ["/", "%"]
        .iter()
        .filter(|part| text.contains(**part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_subdomains() {
        for good in ["a", "a-b", "0", "x1y"] {
            assert!(dns_label(good).is_empty(), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a.b", "a_b"] {
            assert_eq!(dns_label(bad).len(), 1, "{bad}");
        }
        assert_eq!(dns_label(&"a".repeat(64)), ["must be no more than 63 characters"]);
        for good in ["a.b", "example.com", "a"] {
            assert!(dns_subdomain(good).is_empty(), "{good}");
        }
        for bad in ["a..b", ".a", "a.", "Under_Score", "a.-b"] {
            assert_eq!(dns_subdomain(bad).len(), 1, "{bad}");
        }
    }

    #[test]
    fn qualified_names() {
        for good in [
            "a",
            "A_b.c",
            "example.com/a",
            "provider.extensions.gardener.cloud/local",
        ] {
            assert!(qualified_name(good).is_empty(), "{good}");
        }
        let empty = qualified_name("example.com/");
        assert_eq!(empty.len(), 2);
        assert_eq!(empty[0], "name part must be non-empty");
        assert_eq!(qualified_name("/a"), ["prefix part must be non-empty"]);
        assert_eq!(qualified_name("bad key!").len(), 1);
        assert!(qualified_name("a/b/c")[0].starts_with("a valid label key must consist"));
    }

    #[test]
    fn values_and_keys() {
        assert!(label_value("").is_empty());
        assert_eq!(label_value("-x").len(), 1);
        assert_eq!(config_key("bad/key").len(), 1);
        assert_eq!(config_key("..a"), ["must not start with '..'"]);
        assert_eq!(path_segment("a/b%"), ["may not contain '/'", "may not contain '%'"]);
    }
}
