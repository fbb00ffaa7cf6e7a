//! Bearer tokens that another server reads.

use std::time::Duration;

use gardener_apimachinery::ApiError;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::Client;

use super::cache::{Cache, digest};
use super::review;
use crate::user::UserInfo;

/// Asks another server whose a bearer token is.
pub struct TokenReviewer {
    client: Client,
    keep: Duration,
    /// By the token's digest: tokens do not stay in memory. None for those that nobody has.
    answers: Cache<[u8; 32], Option<UserInfo>>,
}

impl TokenReviewer {
    /// Asks by this client, and keeps answers for so long.
    pub fn new(client: Client, keep: Duration) -> Self {
        Self {
            client,
            keep,
            answers: Cache::default(),
        }
    }

    /// Whose a token is.
    ///
    /// # Errors
    /// 401 if it is nobody's, or if the other server does not tell.
    pub async fn user(&self, token: &str) -> Result<UserInfo, ApiError> {
        let hash = digest([token]);
        if let Some(known) = self.answers.get(&hash) {
            return known.ok_or_else(ApiError::unauthorized);
        }
        let question = TokenReview {
            spec: TokenReviewSpec {
                token: token.to_owned(),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let answered = review(&self.client, &question).await.map_err(|error| {
            tracing::warn!(%error, "a bearer token cannot be reviewed");
            ApiError::unauthorized()
        })?;
        let status = answered.status.unwrap_or_default();
        if let Some(error) = status.error.filter(|error| !error.is_empty()) {
            tracing::debug!(error, "a bearer token was refused");
        }
        let user = status.user.filter(|_| status.authenticated == Some(true));
        let user = user.map(|user| UserInfo {
            name: user.username.unwrap_or_default(),
            uid: user.uid.unwrap_or_default(),
            groups: user.groups.unwrap_or_default(),
            extra: user.extra.unwrap_or_default(),
        });
        self.answers.put(hash, user.clone(), self.keep);
        user.ok_or_else(ApiError::unauthorized)
    }
}
