//! API errors: what a Kubernetes API answers when it refuses, as `metav1.Status`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ListMeta, Status, StatusCause, StatusDetails};

use crate::field;

/// A refusal: an HTTP status code with the complete `Status` object to send. Boxed: it is larger than most successes.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiError(Box<Status>);

impl std::error::Error for ApiError {}

impl std::fmt::Display for ApiError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.message())
    }
}

impl From<Status> for ApiError {
    fn from(status: Status) -> Self {
        Self(Box::new(status))
    }
}

fn qualified(group: &str, resource: &str) -> String {
    if group.is_empty() {
        resource.to_owned()
    } else {
        format!("{resource}.{group}")
    }
}

impl ApiError {
    /// An error of the given code, reason (may be empty: then none is sent) and message.
    pub fn new(code: i32, reason: &str, message: impl Into<String>) -> Self {
        Self(Box::new(Status {
            code: Some(code),
            reason: (!reason.is_empty()).then(|| reason.to_owned()),
            message: Some(message.into()),
            status: Some("Failure".into()),
            metadata: ListMeta::default(),
            details: None,
        }))
    }

    fn about(mut self, group: &str, kind: &str, name: &str) -> Self {
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let details = self.0.details.get_or_insert_with(StatusDetails::default);
        details.group = some(group);
        details.kind = some(kind);
        details.name = some(name);
        self
    }

    /// 404: no such object.
    pub fn not_found(group: &str, resource: &str, name: &str) -> Self {
        Self::new(
            404,
            "NotFound",
            format!("{} {} not found", qualified(group, resource), field::go_quote(name)),
        )
        .about(group, resource, name)
    }

    /// 404: no such path.
    pub fn no_such_path() -> Self {
        let mut error = Self::new(404, "NotFound", "the server could not find the requested resource");
        error.0.details = Some(StatusDetails::default());
        error
    }

    /// 409: an object of this name exists.
    pub fn already_exists(group: &str, resource: &str, name: &str) -> Self {
        Self::new(
            409,
            "AlreadyExists",
            format!(
                "{} {} already exists",
                qualified(group, resource),
                field::go_quote(name)
            ),
        )
        .about(group, resource, name)
    }

    /// 409: the object has changed, or a precondition does not hold.
    pub fn conflict(group: &str, resource: &str, name: &str, why: &str) -> Self {
        Self::new(
            409,
            "Conflict",
            format!(
                "Operation cannot be fulfilled on {} {}: {why}",
                qualified(group, resource),
                field::go_quote(name)
            ),
        )
        .about(group, resource, name)
    }

    /// 403: refused by authorization or admission.
    pub fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> Self {
        let subject = qualified(group, resource);
        let message = match (subject.is_empty(), name.is_empty()) {
            (true, _) => format!("forbidden: {why}"),
            (false, true) => format!("{subject} is forbidden: {why}"),
            (false, false) => format!("{subject} {} is forbidden: {why}", field::go_quote(name)),
        };
        Self::new(403, "Forbidden", message).about(group, resource, name)
    }

    /// The same with another code and reason.
    #[must_use]
    pub fn with_reason(mut self, code: i32, reason: &str) -> Self {
        self.0.code = Some(code);
        self.0.reason = Some(reason.to_owned());
        self
    }

    /// 422: fields are wrong; one cause a finding.
    pub fn invalid(group: &str, kind: &str, name: &str, errors: &[field::Error]) -> Self {
        let mut texts: Vec<String> = Vec::new();
        for error in errors {
            let text = error.to_string();
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let list = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let mut error = Self::new(
            422,
            "Invalid",
            format!(
                "{} {} is invalid: {list}",
                qualified(group, kind),
                field::go_quote(name)
            ),
        )
        .about(group, kind, name);
        let causes = errors
            .iter()
            .map(|e| StatusCause {
                field: Some(e.path.to_string()),
                message: Some(e.body()),
                reason: Some(e.kind.reason().into()),
            })
            .collect();
        if let Some(details) = error.0.details.as_mut() {
            details.causes = Some(causes);
        }
        error
    }

    /// 400: the request cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401: no valid credentials.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 405: the resource has no such verb.
    pub fn method_not_supported(group: &str, resource: &str, action: &str) -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            format!(
                "{action} is not supported on resources of kind {}",
                field::go_quote(&qualified(group, resource))
            ),
        )
        .about(group, resource, "")
    }

    /// 405: the path has no such method.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        let mut error = Self::new(405, "MethodNotAllowed", message);
        error.0.details = Some(StatusDetails::default());
        error
    }

    /// 500 without a reason: what upstream answers where it does not classify an error.
    pub fn unclassified(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 410: the requested revision is compacted; clients list anew.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 413: the body is larger than `limit` bytes.
    pub fn too_large(limit: usize) -> Self {
        Self::new(
            413,
            "RequestEntityTooLarge",
            format!("Request entity too large: limit is {limit}"),
        )
    }

    /// 415: the body's content type is not read.
    pub fn unsupported_media_type(supported: &[&str]) -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {}",
                supported.join(", ")
            ),
        )
    }

    /// 415: the content type is that of no patch.
    pub fn unsupported_patch() -> Self {
        let mut error = Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
        error.0.details = Some(StatusDetails::default());
        error
    }

    /// 406: none of the accepted types is written.
    pub fn not_acceptable(supported: &[&str]) -> Self {
        Self::new(
            406,
            "NotAcceptable",
            format!("only the following media types are accepted: {}", supported.join(", ")),
        )
    }

    /// 406: none of the accepted types is one that the route of a resource writes.
    pub fn no_representation(available: &[&str]) -> Self {
        let text = format!(
            "406: Not Acceptable\n\nAvailable representations: {}",
            available.join(", ")
        );
        let mut error = Self::new(406, "NotAcceptable", text);
        error.0.details = Some(StatusDetails::default());
        error
    }

    /// 500: a failure that is not the client's.
    pub fn internal(message: impl std::fmt::Display) -> Self {
        let text = message.to_string();
        let mut error = Self::new(500, "InternalError", format!("Internal error occurred: {text}"));
        error.0.details = Some(StatusDetails {
            causes: Some(vec![StatusCause {
                message: Some(text),
                ..StatusCause::default()
            }]),
            ..StatusDetails::default()
        });
        error
    }

    /// 503: not now; try again.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(503, "ServiceUnavailable", message)
    }

    /// The same error with causes in its details; details are sent even without causes.
    #[must_use]
    pub fn with_causes(mut self, causes: Vec<StatusCause>) -> Self {
        self.0.details.get_or_insert_with(StatusDetails::default).causes = (!causes.is_empty()).then_some(causes);
        self
    }

    /// The same error, which asks to try again after some seconds.
    #[must_use]
    pub fn with_retry(mut self, seconds: i32) -> Self {
        let details = self.0.details.get_or_insert_with(StatusDetails::default);
        details.retry_after_seconds = Some(seconds);
        self
    }

    /// The same error with another message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = Some(message.into());
        self
    }

    /// The same error with a text before its message.
    #[must_use]
    pub fn prefixed(mut self, text: &str) -> Self {
        self.0.message = Some(format!("{text}{}", self.message()));
        self
    }

    /// The same error with a longer message.
    #[must_use]
    pub fn suffixed(mut self, text: &str) -> Self {
        self.0.message = Some(format!("{}{text}", self.message()));
        self
    }

    /// The same error with a token by which a list can be continued all the same.
    #[must_use]
    pub fn with_continue(mut self, token: String) -> Self {
        self.0.metadata.continue_ = Some(token);
        self
    }

    /// The same error with the subject's uid in its details.
    #[must_use]
    pub fn with_uid(mut self, uid: &str) -> Self {
        self.0.details.get_or_insert_with(StatusDetails::default).uid = Some(uid.to_owned());
        self
    }

    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        self.0.code.and_then(|code| u16::try_from(code).ok()).unwrap_or(500)
    }

    /// The machine-readable reason; empty when there is none.
    pub fn reason(&self) -> &str {
        self.0.reason.as_deref().unwrap_or_default()
    }

    /// The message for people.
    pub fn message(&self) -> &str {
        self.0.message.as_deref().unwrap_or_default()
    }

    /// The object to send.
    pub fn status(&self) -> &Status {
        &self.0
    }
}
