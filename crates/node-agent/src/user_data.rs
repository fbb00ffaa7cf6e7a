//! What cloud-init does on the first boot: writes the files of the user data.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;

use crate::disk::Files;

const HEADER: &str = "#cloud-config";

/// The user data cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserDataError {
    /// Another format.
    #[error("the user data is no cloud-config: its first line must be {HEADER}")]
    Format,
    /// No YAML of the expected shape.
    #[error("the user data cannot be read: {0}")]
    Yaml(String),
    /// A file whose content is not in the encoding it says.
    #[error("file {path} of the user data is not {encoding}: {why}")]
    Content {
        /// Which file.
        path: String,
        /// What it says.
        encoding: String,
        /// What is wrong.
        why: String,
    },
}

#[derive(Deserialize)]
struct CloudConfig {
    #[serde(default)]
    write_files: Vec<WriteFile>,
}

#[derive(Deserialize)]
struct WriteFile {
    path: String,
    #[serde(default)]
    content: String,
    #[serde(default)]
    encoding: Option<String>,
}

/// The files that the user data brings.
///
/// # Errors
/// [`UserDataError`].
pub(crate) fn files(text: &str) -> Result<Files, UserDataError> {
    let body = text.strip_prefix(HEADER).ok_or(UserDataError::Format)?;
    let config: CloudConfig = serde_saphyr::from_str(body).map_err(|error| UserDataError::Yaml(error.to_string()))?;
    config
        .write_files
        .into_iter()
        .map(|file| {
            let refused = |encoding: &str, why: String| UserDataError::Content {
                path: file.path.clone(),
                encoding: encoding.to_owned(),
                why,
            };
            let content = match file.encoding.as_deref() {
                None | Some("" | "text/plain") => file.content.clone(),
                Some(encoding @ ("b64" | "base64")) => BASE64_STANDARD
                    .decode(file.content.trim())
                    .map_err(|error| refused(encoding, error.to_string()))
                    .and_then(|bytes| String::from_utf8(bytes).map_err(|error| refused("text", error.to_string())))?,
                Some(other) => return Err(refused(other, "this encoding is not known, expected b64".to_owned())),
            };
            Ok((file.path.clone(), content))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gna_1_files_of_the_first_boot() {
        let text = "#cloud-config\n{\"write_files\": [{\"path\": \"/a\", \"encoding\": \"b64\", \"content\": \"aGk=\"}, {\"path\": \"/b\", \"content\": \"x\"}], \"runcmd\": []}\n";
        let read = files(text).unwrap();
        assert_eq!((read["/a"].as_str(), read["/b"].as_str()), ("hi", "x"));
        assert_eq!(files("#!/bin/sh"), Err(UserDataError::Format));
        let gzip = "#cloud-config\nwrite_files: [{path: /a, encoding: gzip, content: ''}]";
        assert!(matches!(files(gzip), Err(UserDataError::Content { .. })));
        assert!(matches!(files("#cloud-config\n- ["), Err(UserDataError::Yaml(_))));
    }
}
