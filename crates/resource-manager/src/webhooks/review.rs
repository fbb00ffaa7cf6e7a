//! AdmissionReviews of `admission.k8s.io/v1` and `v1beta1`, which have the same form: the answer is of the version that asked.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A review that is answered.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Review {
    api_version: String,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    response: Option<Response>,
}

/// What is read of a review.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    request: Option<Request>,
}

/// A group, version and kind or resource.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Place {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) kind: String,
    pub(super) resource: String,
}

/// What somebody asks the API for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Request {
    uid: String,
    #[serde(default)]
    pub(super) kind: Place,
    #[serde(default)]
    pub(super) resource: Place,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) namespace: String,
    #[serde(default)]
    pub(super) operation: String,
    #[serde(default)]
    pub(super) object: Option<Value>,
    #[serde(default)]
    pub(super) old_object: Option<Value>,
}

/// What is said to it.
#[derive(Serialize)]
pub(super) struct Response {
    uid: String,
    allowed: bool,
    status: Status,
}

impl Review {
    /// Reads a review that asks for something.
    ///
    /// # Errors
    /// Why it is none.
    pub(super) fn read(body: &[u8]) -> Result<(Self, Request), String> {
        let asked: Asked =
            serde_json::from_slice(body).map_err(|error| format!("the body is no AdmissionReview: {error}"))?;
        let request = asked.request.ok_or("the AdmissionReview has no request")?;
        let review = Self {
            api_version: asked.api_version,
            kind: asked.kind,
            response: None,
        };
        Ok((review, request))
    }

    /// The review with its answer.
    pub(super) fn with(mut self, response: Response) -> Self {
        if self.api_version.is_empty() {
            "admission.k8s.io/v1".clone_into(&mut self.api_version);
            "AdmissionReview".clone_into(&mut self.kind);
        }
        self.response = Some(response);
        self
    }
}

impl Response {
    fn new(allowed: bool, code: i32, reason: Option<&str>, message: impl Into<String>) -> Self {
        let message = Some(message.into()).filter(|message| !message.is_empty());
        Self {
            uid: String::new(),
            allowed,
            status: Status {
                code: Some(code),
                reason: reason.map(str::to_owned),
                message,
                ..Status::default()
            },
        }
    }

    /// It may be; the message is for whoever reads reviews.
    pub(super) fn allowed(message: &str) -> Self {
        Self::new(true, 200, None, message)
    }

    /// It may not be.
    pub(super) fn denied(message: impl Into<String>) -> Self {
        Self::new(false, 403, Some("Forbidden"), message)
    }

    /// It could not be judged.
    pub(super) fn errored(code: i32, message: impl Into<String>) -> Self {
        Self::new(false, code, None, message)
    }

    /// It may not be, as an API error says.
    pub(super) fn refused(status: Status) -> Self {
        Self {
            uid: String::new(),
            allowed: false,
            status,
        }
    }

    /// The answer to a request.
    pub(super) fn to(self, request: &Request) -> Self {
        Self {
            uid: request.uid.clone(),
            ..self
        }
    }
}
