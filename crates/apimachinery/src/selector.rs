//! Label and field selectors in their query-string form.

use std::collections::BTreeMap;

use crate::field::{aggregate, go_quote};
use crate::names;

/// One condition on labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// `key`.
    Exists(String),
    /// `!key`.
    NotExists(String),
    /// `key = value`, `key in (a, b)`.
    In(String, Vec<String>),
    /// `key != value`, `key notin (a, b)`: also true when the key is absent.
    NotIn(String, Vec<String>),
    /// `key > number`.
    GreaterThan(String, i64),
    /// `key < number`.
    LessThan(String, i64),
}

/// A label selector: all requirements must hold. The empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    requirements: Vec<Requirement>,
}

/// Why a selector cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ParseSelectorError(pub String);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    Symbol(&'static str),
}

fn tokens(text: &str) -> Result<Vec<Token>, ParseSelectorError> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if first.is_whitespace() {
            rest = &rest[first.len_utf8()..];
            continue;
        }
        const SYMBOLS: [&str; 10] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<", "~"];
        if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
            out.push(Token::Symbol(symbol));
            rest = &rest[symbol.len()..];
            continue;
        }
        let end = rest
            .find(|c: char| c.is_whitespace() || "=!(),><~".contains(c))
            .unwrap_or(rest.len());
        if end == 0 {
            return Err(ParseSelectorError(format!(
                "unable to parse requirement: unexpected character in {text:?}"
            )));
        }
        out.push(Token::Word(rest[..end].to_owned()));
        rest = &rest[end..];
    }
    Ok(out)
}

impl LabelSelector {
    /// Reads `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.
    ///
    /// # Errors
    /// Says which token was found and which were expected.
    pub fn parse(text: &str) -> Result<Self, ParseSelectorError> {
        let tokens = tokens(text)?;
        let mut at = 0;
        let mut requirements = Vec::new();
        let found = |token: Option<&Token>| match token {
            Some(Token::Word(word)) => word.clone(),
            Some(Token::Symbol(symbol)) => (*symbol).to_owned(),
            None => String::new(),
        };
        let unexpected = |token: Option<&Token>, expected: &str| {
            // what is between requirements is in none
            let place = match expected.ends_with("'end of string'") || expected.ends_with("after ','") {
                true => "",
                false => "unable to parse requirement: ",
            };
            ParseSelectorError(format!(
                "{place}found '{}'{} expected: {expected}",
                found(token),
                // upstream's words for a missing list have no comma
                if expected == "'('" { "" } else { "," }
            ))
        };
        while at < tokens.len() {
            let negated = tokens.get(at) == Some(&Token::Symbol("!"));
            if negated {
                at += 1;
            }
            let Some(Token::Word(key)) = tokens.get(at) else {
                let expected = match (negated, at) {
                    (true, _) => "identifier",
                    (false, 0) => "!, identifier, or 'end of string'",
                    (false, _) => "identifier after ','",
                };
                return Err(unexpected(tokens.get(at), expected));
            };
            check_key(key)?;
            at += 1;
            let requirement = if negated {
                Requirement::NotExists(key.clone())
            } else {
                match tokens.get(at) {
                    None | Some(Token::Symbol(",")) => Requirement::Exists(key.clone()),
                    Some(Token::Symbol(operator @ ("=" | "==" | "!="))) => {
                        at += 1;
                        let value = match tokens.get(at) {
                            Some(Token::Word(word)) => {
                                at += 1;
                                word.clone()
                            }
                            None | Some(Token::Symbol(",")) => String::new(),
                            other => return Err(unexpected(other, "identifier")),
                        };
                        check_values(key, std::slice::from_ref(&value), false)?;
                        if *operator == "!=" {
                            Requirement::NotIn(key.clone(), vec![value])
                        } else {
                            Requirement::In(key.clone(), vec![value])
                        }
                    }
                    Some(Token::Symbol(operator @ (">" | "<"))) => {
                        at += 1;
                        let text = match tokens.get(at) {
                            Some(Token::Word(word)) => {
                                at += 1;
                                word.clone()
                            }
                            None | Some(Token::Symbol(",")) => String::new(),
                            other => return Err(unexpected(other, "identifier")),
                        };
                        check_values(key, std::slice::from_ref(&text), true)?;
                        let number = text.parse().unwrap_or_default();
                        if *operator == ">" {
                            Requirement::GreaterThan(key.clone(), number)
                        } else {
                            Requirement::LessThan(key.clone(), number)
                        }
                    }
                    Some(Token::Word(word)) if word == "in" || word == "notin" => {
                        let inside = word == "in";
                        at += 1;
                        if tokens.get(at) != Some(&Token::Symbol("(")) {
                            return Err(unexpected(tokens.get(at), "'('"));
                        }
                        at += 1;
                        let mut values = Vec::new();
                        let mut expect_value = true;
                        loop {
                            match tokens.get(at) {
                                Some(Token::Word(value)) if expect_value => {
                                    values.push(value.clone());
                                    expect_value = false;
                                }
                                Some(Token::Symbol(",")) => {
                                    if expect_value {
                                        values.push(String::new());
                                    }
                                    expect_value = true;
                                }
                                Some(Token::Symbol(")")) => {
                                    if expect_value {
                                        values.push(String::new());
                                    }
                                    at += 1;
                                    break;
                                }
                                other if expect_value && values.is_empty() => {
                                    return Err(unexpected(other, "',', ')' or identifier"));
                                }
                                other if expect_value => return Err(unexpected(other, "',', or identifier")),
                                other => return Err(unexpected(other, "',' or ')'")),
                            }
                            at += 1;
                        }
                        values.sort();
                        values.dedup();
                        check_values(key, &values, false)?;
                        if inside {
                            Requirement::In(key.clone(), values)
                        } else {
                            Requirement::NotIn(key.clone(), values)
                        }
                    }
                    other => return Err(unexpected(other, "in, notin, =, ==, !=, gt, lt")),
                }
            };
            requirements.push(requirement);
            match tokens.get(at) {
                None => break,
                Some(Token::Symbol(",")) => {
                    at += 1;
                    if at == tokens.len() {
                        return Err(unexpected(None, "identifier after ','"));
                    }
                }
                other => return Err(unexpected(other, "',' or 'end of string'")),
            }
        }
        Ok(Self { requirements })
    }

    /// A selector for exactly these labels.
    pub fn of<'a>(labels: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        Self {
            requirements: labels
                .into_iter()
                .map(|(key, value)| Requirement::In(key.clone(), vec![value.clone()]))
                .collect(),
        }
    }

    /// Whether the selector selects everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The requirements.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether an object with these labels is selected.
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches_by(|key| labels.get(key).map(String::as_str))
    }

    /// Whether an object is selected of which `label` tells the labels.
    pub fn matches_by<'l>(&self, label: impl Fn(&str) -> Option<&'l str>) -> bool {
        let number = |key: &str| label(key).and_then(|value| value.parse::<i64>().ok());
        let is_among = |values: &[String], value: &str| values.iter().any(|one| one == value);
        self.requirements.iter().all(|requirement| match requirement {
            Requirement::Exists(key) => label(key).is_some(),
            Requirement::NotExists(key) => label(key).is_none(),
            Requirement::In(key, values) => label(key).is_some_and(|value| is_among(values, value)),
            Requirement::NotIn(key, values) => label(key).is_none_or(|value| !is_among(values, value)),
            Requirement::GreaterThan(key, bound) => number(key).is_some_and(|value| value > *bound),
            Requirement::LessThan(key, bound) => number(key).is_some_and(|value| value < *bound),
        })
    }
}

impl From<&k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector> for LabelSelector {
    /// The object form of a selector (`matchLabels`, `matchExpressions`). An operator that does not exist selects nothing.
    fn from(selector: &k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector) -> Self {
        let mut requirements = Self::of(selector.match_labels.iter().flatten()).requirements;
        for expression in selector.match_expressions.iter().flatten() {
            let values = expression.values.clone().unwrap_or_default();
            let key = expression.key.clone();
            requirements.push(match expression.operator.as_str() {
                "In" => Requirement::In(key, values),
                "NotIn" => Requirement::NotIn(key, values),
                "Exists" => Requirement::Exists(key),
                "DoesNotExist" => Requirement::NotExists(key),
                _ => Requirement::In(key, Vec::new()),
            });
        }
        Self { requirements }
    }
}

fn check_key(key: &str) -> Result<(), ParseSelectorError> {
    match names::qualified_name(key) {
        errors if errors.is_empty() => Ok(()),
        errors => Err(ParseSelectorError(format!(
            "unable to parse requirement: <nil>: Invalid value: {}: {}",
            go_quote(key),
            errors.join("; ")
        ))),
    }
}

/// Checks what is compared with a key, in its order. `numbers`: only whole numbers can be.
fn check_values(key: &str, values: &[String], numbers: bool) -> Result<(), ParseSelectorError> {
    let mut errors = Vec::new();
    for (at, value) in values.iter().enumerate() {
        if numbers && value.parse::<i64>().is_err() {
            errors.push(format!(
                "values[{at}]: Invalid value: {}: for 'Gt', 'Lt' operators, the value must be an integer",
                go_quote(value)
            ));
        }
    }
    errors.extend(wrong_values(key, values));
    match errors.is_empty() {
        true => Ok(()),
        false => Err(ParseSelectorError(format!(
            "unable to parse requirement: {}",
            aggregate(&errors)
        ))),
    }
}

/// What is wrong with the values that a label is compared with.
fn wrong_values(key: &str, values: &[String]) -> Vec<String> {
    let wrong = |(at, value): (usize, &String)| {
        let why = names::label_value(value);
        (!why.is_empty()).then(|| {
            format!(
                "values[{at}][{key}]: Invalid value: {}: {}",
                go_quote(value),
                why.join("; ")
            )
        })
    };
    values.iter().enumerate().filter_map(wrong).collect()
}

/// What Go says of the object form of a selector that it cannot make a selector of.
pub fn unusable(selector: &k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector) -> Option<String> {
    let problem = |key: &str, of_operator: Option<String>, values: &[String]| {
        let mut errors = Vec::new();
        let why = names::qualified_name(key);
        if !why.is_empty() {
            errors.push(format!("key: Invalid value: {}: {}", go_quote(key), why.join("; ")));
        }
        errors.extend(of_operator);
        errors.extend(wrong_values(key, values));
        (!errors.is_empty()).then(|| aggregate(&errors))
    };
    let mut of_labels = selector.match_labels.iter().flatten();
    if let Some(why) = of_labels.find_map(|(key, value)| problem(key, None, std::slice::from_ref(value))) {
        return Some(why);
    }
    selector.match_expressions.iter().flatten().find_map(|expression| {
        let values = expression.values.as_deref().unwrap_or_default();
        let of_operator = match expression.operator.as_str() {
            "In" | "NotIn" if values.is_empty() => {
                Some("values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty".to_owned())
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let shown: Vec<String> = values.iter().map(|value| go_quote(value)).collect();
                let shown = shown.join(",");
                Some(format!(
                    "values: Invalid value: [{shown}]: values set must be empty for exists and does not exist"
                ))
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => None,
            other => return Some(format!("{} is not a valid label selector operator", go_quote(other))),
        };
        problem(&expression.key, of_operator, values)
    })
}

/// A value without its escapes; what else has a meaning must be escaped.
fn unescaped(value: &str) -> Result<String, ParseSelectorError> {
    let mut out = String::new();
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => out.push(escaped),
                other => {
                    let sequence: String = std::iter::once('\\').chain(other).collect();
                    return Err(ParseSelectorError(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    )));
                }
            },
            ',' | '=' => {
                // upstream tells the character's number
                let code = u32::from(character);
                return Err(ParseSelectorError(format!(
                    "invalid field selector: unescaped character in value: {code}"
                )));
            }
            other => out.push(other),
        }
    }
    Ok(out)
}

/// A field selector: terms `(path, equal, value)`, all of which must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<(String, bool, String)>,
}

impl FieldSelector {
    /// Reads `metadata.name=a,status.phase!=Running`. `\,`, `\=` and `\\` are escapes in values.
    ///
    /// # Errors
    /// Names the term that has no operator.
    pub fn parse(text: &str) -> Result<Self, ParseSelectorError> {
        let mut terms = Vec::new();
        for term in split_unescaped(text, ',') {
            if term.is_empty() {
                continue;
            }
            let (path, value) = term
                .split_once('=')
                .ok_or_else(|| ParseSelectorError(format!("invalid selector: '{text}'; can't understand '{term}'")))?;
            // the first operator counts
            let (path, equal, value) = match path.strip_suffix('!') {
                Some(path) => (path, false, value),
                None => (path, true, value.strip_prefix('=').unwrap_or(value)),
            };
            let value = unescaped(value)?;
            // of a field without a name no value is asked for: as upstream, that selects everything
            if !(path.is_empty() && value.is_empty()) {
                terms.push((path.to_owned(), equal, value));
            }
        }
        Ok(Self { terms })
    }

    /// Whether the selector selects everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The terms: path, whether it must be equal (else unequal), value.
    pub fn terms(&self) -> &[(String, bool, String)] {
        &self.terms
    }

    /// The value a path must be equal to, when the selector says so.
    pub fn exact(&self, path: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|(p, equal, _)| *equal && p == path)
            .map(|(_, _, value)| value.as_str())
    }

    /// Whether an object whose fields are told by `field` is selected. An absent field is the empty text.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.terms
            .iter()
            .all(|(path, equal, value)| (field(path).unwrap_or_default() == value) == *equal)
    }
}

fn split_unescaped(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == separator {
            parts.push(&text[start..at]);
            start = at + c.len_utf8();
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn objects_that_make_no_selector() {
        let unusable = |selector: serde_json::Value| {
            unusable(&serde_json::from_value(selector).unwrap_or_default()).unwrap_or_default()
        };
        let expression = |key: &str, operator: &str, values: &[&str]| {
            unusable(serde_json::json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}))
        };
        assert_eq!(unusable(serde_json::json!({"matchLabels": {"a": "b"}})), "");
        assert_eq!(
            unusable(
                serde_json::json!({"matchLabels": {"a/b/c": "x"}, "matchExpressions": [{"key": "a", "operator": "?"}]})
            )
            .split(';')
            .next()
            .unwrap_or_default()
            .split(": a")
            .next(),
            Some("key: Invalid value: \"a/b/c\"")
        );
        assert_eq!(expression("a", "In", &["b"]), "");
        assert_eq!(expression("a", "", &[]), "\"\" is not a valid label selector operator");
        assert_eq!(
            expression("a", "NotIn", &[]),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
        );
        assert_eq!(
            expression("a", "Exists", &["b", "c"]),
            "values: Invalid value: [\"b\",\"c\"]: values set must be empty for exists and does not exist"
        );
        assert!(
            expression("a", "In", &["x", "b c"]).starts_with("values[1][a]: Invalid value: \"b c\": a valid label")
        );
    }

    #[test]
    fn labels_are_selected() {
        let cases = [
            ("", true),
            ("a=b", true),
            ("a==b", true),
            ("a!=b", false),
            ("x!=b", true),
            ("a", true),
            ("!a", false),
            ("!x", true),
            ("a in (b, c)", true),
            ("a notin (b,c)", false),
            ("x notin (b)", true),
            ("n>4", true),
            ("n<4", false),
            ("a=b,n=5", true),
            ("example.com/k=v", true),
            ("e=", true),
        ];
        let own = labels(&[("a", "b"), ("n", "5"), ("example.com/k", "v"), ("e", "")]);
        for (text, selected) in cases {
            assert_eq!(LabelSelector::parse(text).unwrap().matches(&own), selected, "{text}");
        }
        for text in ["a=b,", "a in b", "=b", "a in (b", "a b", "n>x", "a=b=c", "-a"] {
            assert!(LabelSelector::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn fields_are_selected() {
        let selector = FieldSelector::parse("metadata.name=a,status.phase!=Running,spec.x==").unwrap();
        assert!(selector.matches(|path| (path == "metadata.name").then_some("a")));
        assert!(!selector.matches(|path| match path {
            "metadata.name" => Some("a"),
            "status.phase" => Some("Running"),
            _ => None,
        }));
        assert_eq!(selector.exact("metadata.name"), Some("a"));
        assert!(FieldSelector::parse("nonsense").is_err());
    }
}
