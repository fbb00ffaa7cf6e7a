//! Impersonation: requests that are made as somebody else.

use std::collections::BTreeMap;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::go_quote;
use http::header::HeaderMap;

use crate::authz::{self, Attributes, Decision};
use crate::cluster::LogicalCluster;
use crate::request;
use crate::user::{AUTHENTICATED, UserInfo};

/// Groups or a uid were to be impersonated, but no user; in upstream's words, which show Go's form of the request.
fn nobody_impersonated(headers: &HeaderMap) -> ApiError {
    let all = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter();
        values.filter_map(|value| value.to_str().ok()).map(go_quote).collect()
    };
    let groups = match all("impersonate-group") {
        groups if groups.is_empty() => "(nil)".to_owned(),
        groups => format!("{{{}}}", groups.join(", ")),
    };
    let uid = all("impersonate-uid")
        .into_iter()
        .next()
        .unwrap_or_else(|| "\"\"".to_owned());
    let extra = match impersonated_extra(headers) {
        extra if extra.is_empty() => "(nil)".to_owned(),
        extra => {
            let parts: Vec<String> = extra
                .iter()
                .map(|(key, values)| {
                    let values: Vec<String> = values.iter().map(|value| go_quote(value)).collect();
                    format!("{}:[]string{{{}}}", go_quote(key), values.join(", "))
                })
                .collect();
            format!("{{{}}}", parts.join(", "))
        }
    };
    ApiError::bad_request(format!(
        "requested &user.DefaultInfo{{Name:\"\", UID:{uid}, Groups:[]string{groups}, Extra:map[string][]string{extra}}} without impersonating a user name"
    ))
}

/// What `impersonate-extra-…` headers say, by key.
fn impersonated_extra(headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (header, value) in headers {
        if let Some(key) = header.as_str().strip_prefix("impersonate-extra-") {
            let value = value.to_str().unwrap_or_default().to_owned();
            extra
                .entry(request::decode_path(key).into_owned())
                .or_default()
                .push(value);
        }
    }
    extra
}

/// Asks whether a user may impersonate `name` of a kind (`users`, `groups`, …).
async fn may_impersonate(
    cluster: &LogicalCluster,
    user: &UserInfo,
    (resource, name): (&str, &str),
    namespace: &str,
) -> Result<(), ApiError> {
    let group = match resource.starts_with("userextras/") || resource == "uids" {
        true => "authentication.k8s.io",
        false => "",
    };
    let attributes = Attributes::of_resource(user, "impersonate", group, resource, namespace, name);
    // as upstream nobody is told here that somebody could not be asked
    let decided = cluster.config().authorizer.ask(cluster, &attributes).await;
    match decided.unwrap_or_else(|_| Decision::NoOpinion(String::new())) {
        Decision::Allow => Ok(()),
        Decision::Deny(reason) | Decision::NoOpinion(reason) => Err(ApiError::forbidden(
            group,
            attributes.resource,
            name,
            &authz::forbidden_message(&attributes, &reason),
        )),
    }
}

/// Applies impersonation headers, if the user may impersonate.
pub(crate) async fn impersonated(
    cluster: &LogicalCluster,
    user: UserInfo,
    headers: &HeaderMap,
) -> Result<UserInfo, ApiError> {
    let text = |name: &str| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    let Some(name) = text("impersonate-user") else {
        return match ["impersonate-group", "impersonate-uid"]
            .iter()
            .any(|header| headers.contains_key(*header))
            || !impersonated_extra(headers).is_empty()
        {
            true => Err(nobody_impersonated(headers)),
            false => Ok(user),
        };
    };
    let ask = async |resource: &str, name: &str, namespace: &str| {
        may_impersonate(cluster, &user, (resource, name), namespace).await
    };
    match name
        .strip_prefix("system:serviceaccount:")
        .and_then(|rest| rest.split_once(':'))
    {
        Some((namespace, account)) => ask("serviceaccounts", account, namespace).await?,
        None => ask("users", &name, "").await?,
    }
    let mut groups: Vec<String> = headers
        .get_all("impersonate-group")
        .iter()
        .filter_map(|value| value.to_str().ok())
        .map(str::to_owned)
        .collect();
    for group in &groups {
        ask("groups", group, "").await?;
    }
    if let Some((namespace, _)) = name
        .strip_prefix("system:serviceaccount:")
        .and_then(|rest| rest.split_once(':'))
    {
        groups.push("system:serviceaccounts".into());
        groups.push(format!("system:serviceaccounts:{namespace}"));
    }
    groups.push(AUTHENTICATED.into());
    groups.dedup();
    let extra = impersonated_extra(headers);
    for (key, values) in &extra {
        for value in values {
            ask(&format!("userextras/{key}"), value, "").await?;
        }
    }
    let uid = text("impersonate-uid").unwrap_or_default();
    if !uid.is_empty() {
        ask("uids", &uid, "").await?;
    }
    Ok(UserInfo {
        name,
        uid,
        groups,
        extra,
    })
}
