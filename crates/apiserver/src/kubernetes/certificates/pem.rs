//! Blocks of PEM, as Go's `encoding/pem` finds them: what is none is passed over.

use std::iter;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A block of PEM.
pub(super) struct Block {
    /// What it says it is, such as `CERTIFICATE`.
    pub(super) label: String,
    /// Whether lines with names and values stand in front of its content.
    pub(super) has_headers: bool,
    /// Its content.
    pub(super) content: Vec<u8>,
}

/// The blocks of a text, in order.
pub(super) fn blocks(text: &[u8]) -> impl Iterator<Item = Block> {
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    iter::from_fn(move || {
        let mut begun: Option<(&[u8], Vec<&[u8]>)> = None;
        for line in lines.by_ref() {
            if let Some(label) = line.strip_prefix(b"-----BEGIN ") {
                // the last begin before an end counts
                begun = label.strip_suffix(b"-----").map(|label| (label, Vec::new()));
            } else if let Some(end) = line.strip_prefix(b"-----END ") {
                let read = begun.take().and_then(|(label, inner)| {
                    let is_same = end.strip_suffix(b"-----") == Some(label);
                    is_same.then(|| read(label, &inner)).flatten()
                });
                if read.is_some() {
                    return read;
                }
            } else if let Some((_, inner)) = &mut begun {
                inner.push(line);
            }
        }
        None
    })
}

/// A block of the lines that stand in it.
fn read(label: &[u8], lines: &[&[u8]]) -> Option<Block> {
    let headers = lines.iter().take_while(|line| line.contains(&b':')).count();
    let body = lines.get(headers..).unwrap_or_default();
    let has_headers = headers > 0;
    if has_headers && body.is_empty() {
        return None;
    }
    let text: Vec<u8> = body
        .concat()
        .into_iter()
        .filter(|byte| !b" \t\r".contains(byte))
        .collect();
    Some(Block {
        label: String::from_utf8_lossy(label).into_owned(),
        has_headers,
        content: STANDARD.decode(text).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_block_is_passed_over() {
        for (text, expected) in [
            ("", vec![]),
            ("-----BEGIN A-----\nAA==\n-----END A-----", vec![("A", false, 1)]),
            (
                "x\n-----BEGIN A-----\r\nAA\r\n==\r\n-----END A-----\r\ny\n-----BEGIN B C-----\n-----END B C-----\n",
                vec![("A", false, 1), ("B C", false, 0)],
            ),
            (
                "-----BEGIN A-----\nk: v\n\nAAA=\n-----END A-----\n",
                vec![("A", true, 2)],
            ),
            ("-----BEGIN A-----\nk: v\n-----END A-----\n", vec![]),
            ("-----BEGIN A-----\nAA==\n-----END B-----\n", vec![]),
            ("-----BEGIN A-----\n!\n-----END A-----\n", vec![]),
            (
                "-----BEGIN A-----\n-----BEGIN B-----\n-----END B-----\n",
                vec![("B", false, 0)],
            ),
        ] {
            let found: Vec<Block> = blocks(text.as_bytes()).collect();
            let found: Vec<(&str, bool, usize)> = found
                .iter()
                .map(|block| (block.label.as_str(), block.has_headers, block.content.len()))
                .collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
