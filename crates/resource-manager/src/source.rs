//! Reads the objects that a ManagedResource's secrets carry `[EXT-140]` `[GRM-10]`, and their checksum.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Read;

use gardener_apimachinery::pointer::Pointed;
use k8s_openapi::ByteString;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The suffix of keys whose values are Brotli-compressed.
const BROTLI_SUFFIX: &str = ".br";
/// Most bytes that one value may unpack to.
const UNPACKED_LIMIT: u64 = 64 * 1024 * 1024;

/// The documents of secrets: those that could be read, and what was wrong with the others.
#[derive(Debug, Default, PartialEq)]
pub struct Documents {
    /// Objects in the order of secrets, keys and documents.
    pub objects: Vec<Value>,
    /// What could not be read, one sentence each.
    pub errors: Vec<String>,
}

/// Reads the data of secrets, given with their names in the order in which they are referred to.
pub fn read<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a BTreeMap<String, ByteString>)>) -> Documents {
    let mut documents = Documents::default();
    for (secret, data) in secrets {
        for (key, value) in data {
            let place = format!("secret {secret:?}, key {key:?}");
            match unpack(key, &value.0) {
                Ok(text) => read_value(&text, &place, &mut documents),
                Err(why) => documents.errors.push(format!("{place}: {why}")),
            }
        }
    }
    documents
}

fn unpack(key: &str, bytes: &[u8]) -> Result<String, String> {
    let bytes = if key.ends_with(BROTLI_SUFFIX) {
        let mut unpacked = Vec::new();
        brotli_decompressor::Decompressor::new(bytes, 4096)
            .take(UNPACKED_LIMIT)
            .read_to_end(&mut unpacked)
            .map_err(|error| format!("the value is no Brotli data: {error}"))?;
        unpacked
    } else {
        bytes.to_vec()
    };
    String::from_utf8(bytes).map_err(|error| format!("the value is no text: {error}"))
}

fn read_value(text: &str, place: &str, documents: &mut Documents) {
    // one document at a time: a broken one must not hide the others
    for (index, document) in split(text).into_iter().enumerate() {
        // JSON is YAML, and read much faster for what it is
        let json = serde_json::from_str::<Value>(&document).ok().filter(Value::is_object);
        match json.map_or_else(|| serde_saphyr::from_str::<Value>(&document), Ok) {
            Ok(Value::Null) => {}
            Ok(object) => {
                let named = |pointer: &str| {
                    object
                        .at(pointer)
                        .and_then(Value::as_str)
                        .is_some_and(|text| !text.is_empty())
                };
                if named("/apiVersion") && named("/kind") && named("/metadata/name") {
                    documents.objects.push(object);
                } else {
                    documents.errors.push(format!(
                        "{place}, document {}: apiVersion, kind and metadata.name are needed",
                        index + 1
                    ));
                }
            }
            Err(error) => documents
                .errors
                .push(format!("{place}, document {}: {error}", index + 1)),
        }
    }
}

/// Splits YAML text at its `---` lines; documents without content are left out.
fn split(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        if line == "---" || line.starts_with("--- ") {
            documents.push(String::new());
        } else if let Some(last) = documents.last_mut() {
            last.push_str(line);
            last.push('\n');
        }
    }
    let has_content = |document: &String| {
        document
            .lines()
            .any(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
    };
    documents.retain(has_content);
    documents
}

/// SHA-256 over the data of secrets, in hexadecimal.
pub fn checksum<'a>(secrets: impl IntoIterator<Item = &'a BTreeMap<String, ByteString>>) -> String {
    let mut digest = Sha256::new();
    for data in secrets {
        for (key, value) in data {
            digest.update(key.as_bytes());
            digest.update([0]);
            digest.update(&value.0);
            digest.update([0]);
        }
    }
    digest.finalize().iter().fold(String::new(), |mut text, byte| {
        // writing into a String cannot fail
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(pairs: &[(&str, &str)]) -> BTreeMap<String, ByteString> {
        pairs
            .iter()
            .map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())))
            .collect()
    }

    #[test]
    fn ext_140_broken_documents_do_not_hide_others() {
        let good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
        let own = data(&[
            (
                "a.yaml",
                &format!("# comment\n---\n{good}---\nnot: [valid\n---\nkind: X\n"),
            ),
            (
                "b.json",
                "{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"b\"}}",
            ),
        ]);
        let documents = read([("s", &own)]);
        let names: Vec<&str> = documents
            .objects
            .iter()
            .map(|object| object["metadata"]["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(documents.errors.len(), 2, "{:?}", documents.errors);
        assert_eq!(read([("s", &data(&[("x.br", "nonsense")]))]).errors.len(), 1);
    }

    #[test]
    fn the_checksum_follows_the_data() {
        let one = checksum([&data(&[("a", "b")])]);
        assert_eq!(one, checksum([&data(&[("a", "b")])]));
        assert_ne!(one, checksum([&data(&[("ab", "")])]));
        assert_eq!(one.len(), 64);
    }
}
