//! The admission webhooks: which path leads to what is judged, and the AdmissionReviews around it. Here are not the rules for objects (those of
//! `apis` are asked), nor how requests come: who serves hands their path and body to [`Webhooks::answer`].

mod deletion_protection;
mod extension_validation;
mod review;

use gardener_apis::validation::extension_object::DELETION_PROTECTION_PATH;
use kube::Client;

use review::{Response, Review};

/// What a webhook answers by HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status code.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

/// The webhooks of one manager. Clones are handles on the same.
#[derive(Clone)]
pub struct Webhooks {
    source: Client,
}

impl Webhooks {
    /// Webhooks that look up what a request does not tell in the manager's source cluster.
    pub fn new(source: Client) -> Self {
        Self { source }
    }

    /// Judges the AdmissionReview of a request.
    pub async fn answer(&self, path: &str, body: &[u8]) -> Answer {
        let plain = |status: u16, told: &str| Answer {
            status,
            content_type: "text/plain; charset=utf-8",
            body: told.as_bytes().to_vec(),
        };
        let by_kind = extension_validation::judge(path);
        if by_kind.is_none() && path != DELETION_PROTECTION_PATH {
            return plain(404, "404 page not found\n");
        }
        let (review, response) = match Review::read(body) {
            Ok((review, request)) => {
                let response = match by_kind {
                    Some(judge) => judge(&request),
                    None => deletion_protection::judge(&self.source, &request).await,
                };
                (review, response.to(&request))
            }
            Err(unreadable) => (Review::default(), Response::errored(400, unreadable)),
        };
        match serde_json::to_vec(&review.with(response)) {
            Ok(body) => Answer {
                status: 200,
                content_type: "application/json",
                body,
            },
            Err(error) => plain(500, &format!("the review cannot be written: {error}\n")),
        }
    }
}

#[cfg(test)]
mod tests;
