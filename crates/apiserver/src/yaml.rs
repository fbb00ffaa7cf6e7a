//! Reads YAML as kube-apiserver does: as go-yaml of the second major version, which speaks YAML 1.1 (`yes` is true, `0644` is octal), and
//! says what is wrong in its words. Only the first document counts.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gardener_apimachinery::field::go_quote;
use libyaml_safer::{ErrorKind, EventData, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

/// How deep objects and lists may nest, also through aliases.
const MAX_DEPTH: usize = 120;
/// What the names of YAML's own types begin with.
const TAG: &str = "tag:yaml.org,2002:";

/// What was read.
#[derive(Debug, PartialEq)]
pub(crate) struct Document {
    /// The value; of a key given twice, the last.
    pub value: Value,
    /// What a strict reader finds: keys that are given twice, with their lines.
    pub repeated: Vec<String>,
}

/// What go-yaml says of keys that are given twice, in one text.
pub(crate) fn refused(repeated: &[String]) -> String {
    format!("yaml: unmarshal errors:\n  {}", repeated.join("\n  "))
}

/// Reads the first document of a text.
///
/// # Errors
/// What is wrong with the text, in the words of go-yaml and of the conversion to JSON.
pub(crate) fn read(text: &str) -> Result<Document, String> {
    // the parser has a few places where it gives up by panicking; what leads there is no YAML that anybody means
    let nodes = catch_unwind(AssertUnwindSafe(|| Tree::of_any_end(text)))
        .unwrap_or_else(|_| Err("unknown problem parsing YAML content".to_owned()))
        .map_err(|why| format!("yaml: {why}"))?;
    let Some(root) = nodes.root else {
        return Ok(Document {
            value: Value::Null,
            repeated: Vec::new(),
        });
    };
    let mut decoder = Decoder {
        nodes: &nodes.nodes,
        open: BTreeSet::new(),
        decoded: 0,
        of_aliases: 0,
        alias_depth: 0,
        repeated: Vec::new(),
    };
    let value = decoder.value(root, 0)?;
    Ok(Document {
        value: value.into_json()?,
        repeated: decoder.repeated,
    })
}

/// A node of a document. Nodes are named by their place in the list of all.
enum Node {
    Scalar {
        value: String,
        tag: String,
        implicit: bool,
        /// The line after the last one of a block.
        block_end: Option<u64>,
    },
    List(Vec<usize>),
    /// Keys and values in turn.
    Map(Vec<usize>),
    Alias {
        name: String,
        of: usize,
    },
}

/// The nodes of the first document.
#[derive(Default)]
struct Tree {
    nodes: Vec<(Node, u64)>,
    root: Option<usize>,
}

impl Tree {
    /// Reads a text that may end within its last line. The parser cannot where that is a line of a block, so that it is given the missing line
    /// break, which the block does not get.
    fn of_any_end(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.ends_with(['\n', '\r']) {
            return Self::of(text);
        }
        // what is wrong is told of the text as it came
        let whole = format!("{text}\n");
        let Ok(mut tree) = Self::of(&whole) else {
            return Self::of(text);
        };
        let lines = whole.matches('\n').count() as u64;
        let ends_in_content = text.lines().last().is_some_and(|line| !line.trim().is_empty());
        if let Some((Node::Scalar { value, block_end, .. }, _)) = tree.nodes.last_mut()
            && *block_end == Some(lines)
            && value.ends_with('\n')
            && (ends_in_content || value.ends_with("\n\n"))
        {
            value.pop();
        }
        Ok(tree)
    }

    fn of(text: &str) -> Result<Self, String> {
        let mut input = text.as_bytes();
        let mut parser = Parser::new();
        parser.set_input_string(&mut input);
        let mut tree = Self::default();
        let mut anchors: BTreeMap<String, usize> = BTreeMap::new();
        let mut open: Vec<usize> = Vec::new();
        loop {
            let event = parser.parse().map_err(|error| told(&error))?;
            let (line, end) = (event.start_mark.line, event.end_mark.line);
            let (node, anchor) = match event.data {
                // go-yaml knows no version but this one
                EventData::DocumentStart {
                    version_directive: Some(version),
                    ..
                } if (version.major, version.minor) != (1, 1) => {
                    return Err("found incompatible YAML document".to_owned());
                }
                EventData::StreamStart { .. } | EventData::DocumentStart { .. } => continue,
                EventData::StreamEnd | EventData::DocumentEnd { .. } => return Ok(tree),
                EventData::SequenceEnd | EventData::MappingEnd => {
                    open.pop();
                    continue;
                }
                EventData::Alias { anchor } => {
                    let of = anchors.get(&anchor).copied();
                    let of = of.ok_or_else(|| format!("unknown anchor '{anchor}' referenced"))?;
                    (Node::Alias { name: anchor, of }, None)
                }
                EventData::Scalar {
                    anchor,
                    tag,
                    value,
                    plain_implicit,
                    style,
                    ..
                } => {
                    let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                    let scalar = Node::Scalar {
                        value,
                        tag: tag.unwrap_or_default(),
                        implicit: plain_implicit,
                        block_end: is_block.then_some(end),
                    };
                    (scalar, anchor)
                }
                EventData::SequenceStart { anchor, .. } => (Node::List(Vec::new()), anchor),
                EventData::MappingStart { anchor, .. } => (Node::Map(Vec::new()), anchor),
            };
            let at = tree.nodes.len();
            match open.last().and_then(|parent| tree.nodes.get_mut(*parent)) {
                Some((Node::List(children) | Node::Map(children), _)) => children.push(at),
                _ => tree.root = Some(at),
            }
            if matches!(node, Node::List(_) | Node::Map(_)) {
                open.push(at);
                if open.len() > MAX_DEPTH {
                    return Err("exceeded max depth".to_owned());
                }
            }
            if let Some(anchor) = anchor {
                anchors.insert(anchor, at);
            }
            tree.nodes.push((node, line));
        }
    }
}

/// What the parser found, with the line as go-yaml counts it.
fn told(error: &libyaml_safer::Error) -> String {
    let line = match (error.problem_mark(), error.context_mark()) {
        (Some(problem), _) if problem.line != 0 => problem.line + u64::from(error.kind() == ErrorKind::Scanner),
        (_, Some(context)) => context.line,
        _ => 0,
    };
    match line {
        0 => error.problem().to_owned(),
        line => format!("line {line}: {}", error.problem()),
    }
}

/// A value of YAML: JSON's with more kinds of keys and numbers.
#[derive(Clone, Debug, PartialEq)]
enum Yaml {
    Null,
    Bool(bool),
    Int(i64),
    Unsigned(u64),
    Float(f64),
    Text(String),
    List(Vec<Yaml>),
    Map(Vec<(Yaml, Yaml)>),
}

impl Yaml {
    /// As Go's `%#v` prints it.
    fn go_syntax(&self) -> String {
        match self {
            Self::Null => "interface {}(nil)".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Int(value) => value.to_string(),
            Self::Unsigned(value) => format!("{value:#x}"),
            Self::Float(value) if value.is_infinite() => if *value > 0.0 { "+Inf" } else { "-Inf" }.to_owned(),
            Self::Float(value) => value.to_string(),
            Self::Text(value) => go_quote(value),
            Self::List(elements) => {
                let elements: Vec<String> = elements.iter().map(Self::go_syntax).collect();
                format!("[]interface {{}}{{{}}}", elements.join(", "))
            }
            Self::Map(members) => {
                let members: Vec<String> = members
                    .iter()
                    .map(|(key, value)| format!("{}:{}", key.go_syntax(), value.go_syntax()))
                    .collect();
                format!("map[interface {{}}]interface {{}}{{{}}}", members.join(", "))
            }
        }
    }

    /// As Go's `%#v` prints it when it is given itself, not what holds it.
    fn go_member(&self) -> String {
        match self {
            Self::Null => "<nil>".to_owned(),
            other => other.go_syntax(),
        }
    }

    /// A key as text: what is no text becomes one.
    fn into_key(self, value: &Self) -> Result<String, String> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Bool(value) => Ok(value.to_string()),
            Self::Int(value) => Ok(value.to_string()),
            Self::Float(value) if value.is_nan() => Ok(".nan".to_owned()),
            Self::Float(value) if value.is_infinite() => Ok(if value > 0.0 { ".inf" } else { "-.inf" }.to_owned()),
            // upstream keeps the digits of a shorter number
            Self::Float(value) => Ok((value as f32).to_string()),
            key => {
                let kind = if matches!(key, Self::Unsigned(_)) {
                    "uint64"
                } else {
                    "%!s(<nil>)"
                };
                let shown = key.go_member();
                let value = value.go_member();
                Err(format!(
                    "unsupported map key of type: {kind}, key: {shown}, value: {value}"
                ))
            }
        }
    }

    fn into_json(self) -> Result<Value, String> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => value.into(),
            Self::Int(value) => value.into(),
            Self::Unsigned(value) => value.into(),
            // Go writes whole numbers without a fraction
            Self::Float(value) if value.fract() == 0.0 && value.abs() < 9.0e18 => (value as i64).into(),
            Self::Float(value) => Value::Number(Number::from_f64(value).ok_or_else(|| {
                let shown = match value {
                    value if value.is_nan() => "NaN",
                    value if value > 0.0 => "+Inf",
                    _ => "-Inf",
                };
                format!("json: unsupported value: {shown}")
            })?),
            Self::Text(text) => text.into(),
            Self::List(elements) => elements.into_iter().map(Self::into_json).collect::<Result<_, _>>()?,
            Self::Map(members) => {
                let mut object = Map::new();
                for (key, value) in members {
                    object.insert(key.into_key(&value)?, value.into_json()?);
                }
                Value::Object(object)
            }
        })
    }
}

struct Decoder<'a> {
    nodes: &'a [(Node, u64)],
    /// The aliases whose values are being decoded.
    open: BTreeSet<usize>,
    decoded: u64,
    of_aliases: u64,
    alias_depth: usize,
    repeated: Vec<String>,
}

impl Decoder<'_> {
    /// Counts a node that is decoded: a short text may stand for very many by its aliases.
    fn count(&mut self, depth: usize) -> Result<(), String> {
        self.decoded += 1;
        self.of_aliases += u64::from(self.alias_depth > 0);
        if self.of_aliases > 100
            && self.decoded > 1000
            && self.of_aliases as f64 / self.decoded as f64 > allowed_of_aliases(self.decoded)
        {
            return Err("yaml: document contains excessive aliasing".to_owned());
        }
        match depth > MAX_DEPTH {
            true => Err("yaml: exceeded max depth".to_owned()),
            false => Ok(()),
        }
    }

    /// Decodes what the alias at a place stands for.
    fn behind_alias<T>(
        &mut self,
        at: usize,
        name: &str,
        decode: impl FnOnce(&mut Self) -> Result<T, String>,
    ) -> Result<T, String> {
        if !self.open.insert(at) {
            return Err(format!("yaml: anchor '{name}' value contains itself"));
        }
        self.alias_depth += 1;
        let decoded = decode(self);
        self.alias_depth -= 1;
        self.open.remove(&at);
        decoded
    }

    fn value(&mut self, at: usize, depth: usize) -> Result<Yaml, String> {
        self.count(depth)?;
        let nodes = self.nodes;
        match nodes.get(at) {
            Some((
                Node::Scalar {
                    value, tag, implicit, ..
                },
                _,
            )) => match tag.is_empty() && !implicit {
                true => Ok(Yaml::Text(value.clone())),
                false => resolve(tag, value).map_err(|why| format!("yaml: {why}")),
            },
            Some((Node::List(children), _)) => {
                let elements = children.iter().map(|child| self.value(*child, depth + 1));
                Ok(Yaml::List(elements.collect::<Result<_, _>>()?))
            }
            Some((Node::Map(_), _)) => {
                let mut members = Members::default();
                self.members(at, depth, &mut members)?;
                Ok(Yaml::Map(members.list))
            }
            Some((Node::Alias { name, of }, _)) => self.behind_alias(at, name, |own| own.value(*of, depth + 1)),
            None => Ok(Yaml::Null),
        }
    }

    /// The members of a map, into those of another one where it is merged.
    fn members(&mut self, at: usize, depth: usize, members: &mut Members) -> Result<(), String> {
        let nodes = self.nodes;
        let Some((Node::Map(children), _)) = nodes.get(at) else {
            return Err("yaml: map merge requires map or sequence of maps as the value".to_owned());
        };
        for pair in children.chunks_exact(2) {
            let &[key, value] = pair else { continue };
            if self.is_merge(key) {
                self.merge(value, depth, members)?;
                continue;
            }
            let key = self.value(key, depth + 1)?;
            if matches!(key, Yaml::List(_) | Yaml::Map(_)) {
                return Err(format!("yaml: invalid map key: {}", key.go_syntax()));
            }
            let line = nodes.get(value).map_or(0, |(_, line)| line + 1);
            let value = self.value(value, depth + 1)?;
            let shown = key.go_syntax();
            match members.places.get(&shown).and_then(|at| members.list.get_mut(*at)) {
                Some(known) => {
                    self.repeated
                        .push(format!("line {line}: key {shown} already set in map"));
                    known.1 = value;
                }
                None => {
                    members.places.insert(shown, members.list.len());
                    members.list.push((key, value));
                }
            }
        }
        Ok(())
    }

    fn is_merge(&self, at: usize) -> bool {
        matches!(self.nodes.get(at), Some((Node::Scalar { value, tag, implicit, .. }, _))
            if value == "<<" && (*implicit || tag.strip_prefix(TAG) == Some("merge")))
    }

    /// Brings what `<<` names into a map; of several maps, the first wins.
    fn merge(&mut self, at: usize, depth: usize, members: &mut Members) -> Result<(), String> {
        match self.nodes.get(at) {
            Some((Node::List(children), _)) => {
                let mut children = children.iter().rev();
                children.try_for_each(|child| self.merge_one(*child, depth, members))
            }
            _ => self.merge_one(at, depth, members),
        }
    }

    fn merge_one(&mut self, at: usize, depth: usize, members: &mut Members) -> Result<(), String> {
        self.count(depth)?;
        match self.nodes.get(at) {
            Some((Node::Alias { name, of }, _)) => {
                self.behind_alias(at, name, |own| own.members(*of, depth + 1, members))
            }
            _ => self.members(at, depth + 1, members),
        }
    }
}

/// The members of a map in their order, and where each key stands.
#[derive(Default)]
struct Members {
    list: Vec<(Yaml, Yaml)>,
    places: BTreeMap<String, usize>,
}

/// Which part of what is decoded may come from aliases: the less, the larger a document is.
fn allowed_of_aliases(decoded: u64) -> f64 {
    const LOW: f64 = 400_000.0;
    const HIGH: f64 = 4_000_000.0;
    let over = ((decoded as f64 - LOW) / (HIGH - LOW)).clamp(0.0, 1.0);
    0.99 - 0.89 * over
}

/// What a plain scalar, or one with a tag, means.
fn resolve(tag: &str, text: &str) -> Result<Yaml, String> {
    let wanted = tag.strip_prefix(TAG).unwrap_or(tag);
    if wanted == "binary" {
        let decoded = STANDARD
            .decode(text)
            .map_err(|_| "!!binary value contains invalid base64 data")?;
        return Ok(Yaml::Text(String::from_utf8_lossy(&decoded).into_owned()));
    }
    if !matches!(wanted, "" | "bool" | "int" | "float" | "null" | "timestamp") {
        return Ok(Yaml::Text(text.to_owned()));
    }
    let found = plain(text);
    let kind = match &found {
        Yaml::Null => "null",
        Yaml::Bool(_) => "bool",
        Yaml::Int(_) | Yaml::Unsigned(_) => "int",
        Yaml::Float(_) => "float",
        _ => "str",
    };
    match (wanted, found) {
        ("float", Yaml::Int(value)) => Ok(Yaml::Float(value as f64)),
        ("timestamp", Yaml::Text(text)) => Ok(Yaml::Text(text)),
        (wanted, found) if wanted.is_empty() || wanted == kind => Ok(found),
        (wanted, _) => Err(format!("cannot decode !!{kind} `{text}` as a !!{wanted}")),
    }
}

/// Whether a scalar without a tag is a text.
pub(crate) fn is_text(text: &str) -> bool {
    matches!(plain(text), Yaml::Text(_))
}

/// What a scalar without a tag means.
fn plain(text: &str) -> Yaml {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Yaml::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Yaml::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Yaml::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Yaml::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Yaml::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Yaml::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let other = || Yaml::Text(text.to_owned());
    match text.bytes().next() {
        Some(b'.') => float(text).map_or_else(other, Yaml::Float),
        Some(b'+' | b'-' | b'0'..=b'9') => {
            let digits = text.replace('_', "");
            integer(&digits)
                .or_else(|| float(&digits).map(Yaml::Float))
                .unwrap_or_else(other)
        }
        _ => other(),
    }
}

/// A whole number, whose first characters tell the base.
fn integer(text: &str) -> Option<Yaml> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match lower.split_at_checked(2) {
        Some(("0x", digits)) => (16, digits),
        Some(("0o", digits)) => (8, digits),
        Some(("0b", digits)) => (2, digits),
        _ => match lower.strip_prefix('0') {
            Some(digits) if !digits.is_empty() => (8, digits),
            _ => (10, lower.as_str()),
        },
    };
    if !digits.bytes().all(|digit| digit.is_ascii_alphanumeric()) {
        return None;
    }
    if negative {
        return i64::from_str_radix(&format!("-{digits}"), base).ok().map(Yaml::Int);
    }
    let number = u64::from_str_radix(digits, base).ok()?;
    Some(i64::try_from(number).map_or(Yaml::Unsigned(number), Yaml::Int))
}

/// A number with a fraction or an exponent.
fn float(text: &str) -> Option<f64> {
    let of_digits = text
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    text.parse::<f64>()
        .ok()
        .filter(|number| of_digits && number.is_finite())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_are_those_of_yaml_1_1() {
        for (text, expected) in [
            ("a: yes\nb: 'yes'\nc: off", json!({"a": true, "b": "yes", "c": false})),
            ("[0644, 0x1f, 0b11, 1_000, 08, -0o7]", json!([420, 31, 3, 1000, 8, -7])),
            (
                "[1.5, 2.0, .5, 1e3, 1e400, 18446744073709551615]",
                json!([1.5, 2, 0.5, 1000, "1e400", 18446744073709551615_u64]),
            ),
            (
                "[~, null, '', \"\", 2001-01-01, 12:30:00]",
                json!([null, null, "", "", "2001-01-01", "12:30:00"]),
            ),
            ("{1: a, true: b, 1.5: c}", json!({"1": "a", "true": "b", "1.5": "c"})),
            ("[!!str 1, !!float 1, !!binary YQ==, !own x]", json!(["1", 1, "a", "x"])),
            ("a: |\n  x\n  y\nb: >-\n  x\n  y\n", json!({"a": "x\ny\n", "b": "x y"})),
            (
                "a: &a {x: 1}\nb: {<<: *a, z: 2}\nc: [*a]",
                json!({"a": {"x": 1}, "b": {"x": 1, "z": 2}, "c": [{"x": 1}]}),
            ),
            ("a: b\n---\n}", json!({"a": "b"})),
            // what ends within a block has no line break that is not there
            ("a: |\n  x", json!({"a": "x"})),
            ("a: |-\n  x", json!({"a": "x"})),
            ("a: |+\n  x", json!({"a": "x"})),
            ("a: |\r\n  x", json!({"a": "x"})),
            ("a: >\n  x\n  y", json!({"a": "x y"})),
            ("a: |\n  x\n  ", json!({"a": "x\n"})),
            ("a: |+\n  x\n  ", json!({"a": "x\n"})),
            ("a: |\n  x\n# c", json!({"a": "x\n"})),
            ("a: |\n  x\n...", json!({"a": "x\n"})),
            ("a: |", json!({"a": ""})),
            ("", Value::Null),
            ("# nothing", Value::Null),
        ] {
            let read = read(text).map(|document| document.value);
            assert_eq!(read, Ok(expected), "{text}");
        }
    }

    #[test]
    fn keys_given_twice_are_told_with_their_line() {
        let document = read("a: 1\nb: {c: 1,\n  c: 2}\na: 3\n").unwrap();
        assert_eq!(document.value, json!({"a": 3, "b": {"c": 2}}));
        assert_eq!(
            refused(&document.repeated),
            "yaml: unmarshal errors:\n  line 3: key \"c\" already set in map\n  line 4: key \"a\" already set in map"
        );
    }

    #[test]
    fn what_is_wrong_is_told_as_go_yaml_does() {
        for (text, expected) in [
            ("a: [b", "yaml: line 1: did not find expected ',' or ']'"),
            (
                "a: b\n c: d",
                "yaml: line 2: mapping values are not allowed in this context",
            ),
            ("a: *b", "yaml: unknown anchor 'b' referenced"),
            ("? [a]\n: b", "yaml: invalid map key: []interface {}{\"a\"}"),
            ("!!int a", "yaml: cannot decode !!str `a` as a !!int"),
            (".inf", "json: unsupported value: +Inf"),
            ("&a [*a]", "yaml: anchor 'a' value contains itself"),
            ("<<: 1", "yaml: map merge requires map or sequence of maps as the value"),
            (
                "~: x",
                "unsupported map key of type: %!s(<nil>), key: <nil>, value: \"x\"",
            ),
            (
                "~: ~",
                "unsupported map key of type: %!s(<nil>), key: <nil>, value: <nil>",
            ),
            (
                "~: -.inf",
                "unsupported map key of type: %!s(<nil>), key: <nil>, value: -Inf",
            ),
            ("%YAML 1.2\n---\na: b", "yaml: found incompatible YAML document"),
            ("[!!x,]", "yaml: unknown problem parsing YAML content"),
        ] {
            assert_eq!(read(text), Err(expected.to_owned()), "{text}");
        }
        assert_eq!(read(&"[".repeat(100_000)), Err("yaml: exceeded max depth".to_owned()));
    }

    #[test]
    fn aliases_do_not_grow_without_bound() {
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let alias = format!("*a{}", level - 1);
            text.push_str(&format!("a{level}: &a{level} [{}]\n", vec![alias; 10].join(", ")));
        }
        assert_eq!(
            read(&text),
            Err("yaml: document contains excessive aliasing".to_owned())
        );
    }

    #[test]
    fn merged_maps_do_not_grow_without_bound_either() {
        let mut text = "a0: &a0 {x: 1}\n".to_owned();
        for level in 1..12 {
            let alias = format!("*a{}", level - 1);
            text.push_str(&format!(
                "a{level}: &a{level} {{<<: [{}]}}\n",
                vec![alias; 10].join(", ")
            ));
        }
        assert_eq!(
            read(&text),
            Err("yaml: document contains excessive aliasing".to_owned())
        );
        assert_eq!(
            read("a: &a {<<: *a}"),
            Err("yaml: anchor 'a' value contains itself".to_owned())
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// Whatever comes is read or refused.
        #[test]
        fn no_text_is_too_odd(text in "[-\\[\\]{}:,?&*!|>'\"%@#~<a0 .\\\\\n\t]{0,40}") {
            let _ = read(&text);
        }

        /// JSON is YAML.
        #[test]
        fn json_is_read_as_it_is(texts in proptest::collection::vec("[ -~]{0,8}", 0..4), number in any::<i64>()) {
            let value = json!({"texts": texts, "number": number, "deep": [{"null": null, "bool": true}]});
            prop_assert_eq!(read(&value.to_string()).map(|document| document.value), Ok(value));
        }
    }
}
