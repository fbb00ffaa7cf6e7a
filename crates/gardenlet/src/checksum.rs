//! Checksums of rendered content, for names and annotations that change with it.

use sha2::{Digest, Sha256};

/// All hexadecimal digits of the SHA-256.
pub fn long(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The first eight digits.
pub fn short(text: &str) -> String {
    let mut digits = long(text);
    digits.truncate(8);
    digits
}
