//! Tokens of service accounts that are kept in Secrets, from pkg/serviceaccount/legacy.go of Kubernetes: they do not end, but are good for as long as
//! the Secret and the account are there. A controller makes them: the one of embedded clusters, or kube-controller-manager beside a server of its own.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use gardener_apimachinery::pointer::Pointed;
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::jiff::civil::Date;
use k8s_openapi::jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::authn::{Rejected, Remarks};
use crate::cluster::LogicalCluster;
use crate::crd::server_scope;
use crate::definition::Lister;
use crate::meta;
use crate::registry::{PatchKind, WriteOptions};
use crate::user::{UserInfo, account_of};

/// Who such tokens say made them, whatever issuer the cluster has.
pub const ISSUER: &str = "kubernetes/serviceaccount";
/// The type of their Secrets.
pub const SECRET_TYPE: &str = "kubernetes.io/service-account-token";
/// The account that such a Secret is for, as an annotation.
pub const ACCOUNT: &str = "kubernetes.io/service-account.name";
/// That account's uid, as an annotation.
pub const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";
/// The day on which a token was last used, as a label of its Secret.
pub const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
/// Since when a token is not accepted any more, as a label of its Secret.
pub const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";
/// The ConfigMap of kube-system that tells since when uses are noted.
pub const TRACKING: &str = "kube-apiserver-legacy-service-account-token-tracking";
/// The date in that ConfigMap.
pub const SINCE: &str = "since";

const DAY: i64 = 24 * 3600;

/// The day at a time, which stands in these labels as it is shown.
pub fn day_at(at: Timestamp) -> Date {
    at.to_zoned(TimeZone::UTC).date()
}

/// A date as it stands in these labels and in that ConfigMap (`2006-01-02`); none if the text is something else.
pub fn day_of(text: &str) -> Option<Date> {
    // longer forms are dates, too, elsewhere
    (text.len() == "2006-01-02".len()).then(|| text.parse().ok())?
}

/// What such a token says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LegacyClaims {
    /// [`ISSUER`].
    pub iss: String,
    /// The account's namespace, and the Secret's.
    #[serde(rename = "kubernetes.io/serviceaccount/namespace")]
    pub namespace: String,
    /// The Secret.
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name")]
    pub secret: String,
    /// The account.
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name")]
    pub account: String,
    /// The account's uid.
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid")]
    pub uid: String,
    /// `system:serviceaccount:<namespace>:<name>`.
    pub sub: String,
}

impl LegacyClaims {
    /// Those of a token in a Secret.
    pub fn new(namespace: &str, account: &str, uid: &str, secret: &str) -> Self {
        Self {
            iss: ISSUER.to_owned(),
            namespace: namespace.to_owned(),
            secret: secret.to_owned(),
            account: account.to_owned(),
            uid: uid.to_owned(),
            sub: format!("system:serviceaccount:{namespace}:{account}"),
        }
    }

    /// What is missing, or does not fit together.
    fn wrong(&self) -> Option<&'static str> {
        [
            (&self.sub, "sub claim is missing"),
            (&self.namespace, "namespace claim is missing"),
            (&self.secret, "secretName claim is missing"),
            (&self.account, "serviceAccountName claim is missing"),
            (&self.uid, "serviceAccountUID claim is missing"),
        ]
        .into_iter()
        .find_map(|(claim, why)| claim.is_empty().then_some(why))
        .or_else(|| {
            let subject = account_of(&self.sub);
            (subject != Some((self.namespace.as_str(), self.account.as_str()))).then_some("sub claim is invalid")
        })
    }
}

/// The service account of a token whose signature was verified, while it and the Secret are there. Notes in the Secret that the token was used.
///
/// # Errors
/// Why the token is not good any more.
pub(crate) fn user(
    cluster: &LogicalCluster,
    token: &str,
    claims: &LegacyClaims,
    remarks: &mut Remarks,
) -> Result<UserInfo, Rejected> {
    let because = |why: String| Err(Rejected::because(why));
    if let Some(wrong) = claims.wrong() {
        return because(wrong.to_owned());
    }
    let LegacyClaims {
        namespace,
        account: name,
        ..
    } = claims;
    let secret = cluster.get("", "secrets", namespace, &claims.secret);
    let Some(secret) = secret.filter(|secret| !meta::is_deleting(secret)) else {
        return because("Token has been invalidated".to_owned());
    };
    let kept = STANDARD.decode(meta::text(&secret, "/data/token"));
    if kept.ok().as_deref() != Some(token.as_bytes()) {
        return because("Token does not match server's copy".to_owned());
    }
    let Some(account) = cluster.get("", "serviceaccounts", namespace, name) else {
        return because(format!("serviceaccounts \"{name}\" not found"));
    };
    if meta::is_deleting(&account) {
        return because(format!("ServiceAccount {namespace}/{name} has been deleted"));
    }
    let uid = meta::text(&account, "/metadata/uid");
    if uid != claims.uid {
        return because(format!(
            "ServiceAccount UID ({uid}) does not match claim ({})",
            claims.uid
        ));
    }
    note_use(cluster, &secret);
    if !label(&secret, INVALID_SINCE).is_empty() {
        let told = format!("{}/{namespace}", claims.secret);
        remarks.annotate("legacy-token-invalidated", told);
        return because(format!(
            "the token in secret {namespace}/{} for service account {namespace}/{name} has been marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to temporarily allow use of this token",
            claims.secret
        ));
    }
    remark(&account, &claims.secret, remarks);
    Ok(UserInfo::service_account(namespace, name, uid))
}

/// Tells whether somebody made the Secret of a token that is good, or it was made for the account by itself, as was done once: nobody should use those.
fn remark(account: &Value, secret: &str, remarks: &mut Remarks) {
    let mut own = meta::elements(account, "/secrets").iter();
    let name = match own.any(|own| meta::text(own, "/name") == secret) {
        true => {
            remarks.warnings.push(AUTOGENERATED.to_owned());
            "legacy-token-autogenerated-secret"
        }
        false => "legacy-token-manual-secret",
    };
    remarks.annotate(name, secret.to_owned());
}

/// What is said to who uses a token that was made by itself.
const AUTOGENERATED: &str = "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens.";

fn label<'s>(secret: &'s Value, key: &str) -> &'s str {
    let labels = secret.at("/metadata/labels");
    labels.and_then(|labels| labels.get(key)?.as_str()).unwrap_or_default()
}

/// Notes the day, apart from whoever waits for an answer. The clocks of several servers may differ by a day.
fn note_use(cluster: &LogicalCluster, secret: &Value) {
    let now = cluster.clock().now();
    let day = |seconds| day_at(meta::later(now, seconds)).to_string();
    let (noted, today) = (label(secret, LAST_USED), day(0));
    if noted == today || noted == day(DAY) {
        return;
    }
    let (Some(cluster), Some(definition)) = (cluster.itself(), cluster.find("", "secrets")) else {
        return;
    };
    let Some(scope) = server_scope(&cluster, definition, "") else {
        return;
    };
    let scope = scope.at(meta::namespace(secret), meta::name(secret));
    let patch = json!({"metadata": {"uid": meta::text(secret, "/metadata/uid"), "labels": {LAST_USED: today}}});
    let body = Bytes::from(patch.to_string());
    cluster.aside(|_| async move {
        let written = scope.patch(PatchKind::Merge, &body, &WriteOptions::default()).await;
        if let Err(error) = written {
            tracing::warn!(key = %scope.key(&scope.name), %error, "it cannot be noted that the token in a Secret was used");
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_uses_a_token_that_was_made_by_itself_is_warned() {
        let account = json!({"secrets": [{"name": "a-token-1"}]});
        for (secret, warns) in [("a-token-1", true), ("own", false)] {
            let mut remarks = Remarks::default();
            remark(&account, secret, &mut remarks);
            assert_eq!(!remarks.warnings.is_empty(), warns, "{secret}");
        }
    }

    #[test]
    fn claims_fit_together() {
        let good = LegacyClaims::new("n", "a", "u", "s");
        assert_eq!(good.wrong(), None);
        let told = serde_json::to_value(&good).unwrap();
        assert_eq!(
            told.get("kubernetes.io/serviceaccount/service-account.uid"),
            Some(&json!("u"))
        );
        assert_eq!(told.get("sub"), Some(&json!("system:serviceaccount:n:a")));
        for (change, expected) in [
            (json!({"sub": ""}), "sub claim is missing"),
            (
                json!({"kubernetes.io/serviceaccount/namespace": ""}),
                "namespace claim is missing",
            ),
            (
                json!({"kubernetes.io/serviceaccount/secret.name": ""}),
                "secretName claim is missing",
            ),
            (
                json!({"kubernetes.io/serviceaccount/service-account.uid": ""}),
                "serviceAccountUID claim is missing",
            ),
            (json!({"sub": "system:serviceaccount:n:b"}), "sub claim is invalid"),
            (json!({"sub": "jane"}), "sub claim is invalid"),
        ] {
            let mut claims = told.clone();
            claims
                .as_object_mut()
                .unwrap()
                .extend(change.as_object().unwrap().clone());
            let claims: LegacyClaims = serde_json::from_value(claims).unwrap();
            assert_eq!(claims.wrong(), Some(expected), "{change}");
        }
    }
}
