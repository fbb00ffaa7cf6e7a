//! `--egress-selector-config-file`: which ways lead out of the server.

use std::path::PathBuf;
use std::sync::Arc;

use gardener_apiserver::egress::Egress;
use gardener_apiserver::egress::configuration::{Configuration, EgressError};

use crate::access::{FileError, read_optional};

const FLAG: &str = "egress-selector-config-file";

/// Why it is not known which ways lead out.
#[derive(Debug, thiserror::Error)]
pub enum EgressFileError {
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// It cannot be used.
    #[error("--{FLAG}: {}: {source}", path.display())]
    Configuration {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: EgressError,
    },
}

/// The ways out that a file tells; none without a file.
///
/// # Errors
/// [`EgressFileError`].
pub async fn open(path: Option<&PathBuf>) -> Result<Option<Arc<Egress>>, EgressFileError> {
    let Some((path, text)) = path.zip(read_optional(FLAG, path)?) else {
        return Ok(None);
    };
    let wrong = |source| EgressFileError::Configuration {
        path: path.clone(),
        source,
    };
    let configuration = Configuration::read(&text, |file| std::path::Path::new(file).exists()).map_err(wrong)?;
    let egress = configuration.egress().await.map_err(wrong)?;
    Ok(Some(Arc::new(egress)))
}
