//! Why a reconciliation did not finish.

use gardener_controller::apply::ApplyError;

/// Why a reconciliation did not finish. Its key comes again after a back-off.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The API refused a write.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// An object could not be written.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// An object is not of the form that its kind has.
    #[error("an object cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// A request could not be put together.
    #[error("a request cannot be made: {0}")]
    Request(#[from] http::Error),
    /// A token could not be signed.
    #[error(transparent)]
    Token(#[from] gardener_apiserver::tokens::KeyError),
    /// A certificate could not be signed.
    #[error(transparent)]
    Certificate(#[from] gardener_pki::CertificateError),
}

impl Error {
    fn code(&self) -> Option<u16> {
        match self {
            Self::Api(kube::Error::Api(status)) | Self::Apply(ApplyError::Api(kube::Error::Api(status))) => {
                Some(status.code)
            }
            _ => None,
        }
    }

    /// The reason alone, without where it comes from: what the API said, if it was the API that refused.
    pub fn told(&self) -> String {
        match self {
            Self::Api(kube::Error::Api(status)) | Self::Apply(ApplyError::Api(kube::Error::Api(status))) => {
                status.message.clone()
            }
            other => other.to_string(),
        }
    }

    /// Whether somebody else changed the object meanwhile, or it is gone: what was decided no longer fits.
    pub fn is_outdated(&self) -> bool {
        matches!(self.code(), Some(404 | 409))
    }

    /// Whether the cluster's API is closed.
    pub fn is_unavailable(&self) -> bool {
        self.code() == Some(503)
    }
}
