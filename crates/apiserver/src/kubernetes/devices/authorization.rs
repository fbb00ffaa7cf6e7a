//! Who may change which part of a claim's status. That somebody may write the status does not yet mean that he may bind the claim, or speak for
//! a driver: these are rights of their own, to `resourceclaims/binding` and `resourceclaims/driver`.

use std::collections::BTreeSet;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::pointer::Pointed;
use serde_json::Value;

use super::validation::{self, Device};
use crate::authz::{self, Attributes, Decision};
use crate::definition::Context;
use crate::impersonation::NODE_NAME;
use crate::meta;
use crate::user::{UserInfo, account_of};

const GROUP: &str = "resource.k8s.io";

/// What the caller may not change of a claim's status.
pub(super) fn of_status(context: &Context<'_>, claim: &Value, old: &Value) -> ErrorList {
    let mut errors = validation::result_as_administrator(context, claim, old);
    errors.extend(binding(context, claim, old));
    // what drivers say of devices that are given back goes with them
    if claim.at("/status/allocation").is_some_and(Value::is_object) {
        errors.extend(drivers(context, claim, old));
    }
    errors
}

fn binding(context: &Context<'_>, claim: &Value, old: &Value) -> Option<Error> {
    let is_same = |pointer: &str| claim.at(pointer) == old.at(pointer);
    if is_same("/status/allocation") && is_same("/status/reservedFor") {
        return None;
    }
    let verb = context.verb;
    let why = refused(context, verb, "resourceclaims/binding", "", "")?;
    let why = format!(
        "changing status.allocation or status.reservedFor requires resource=\"resourceclaims/binding\", verb=\"{verb}\" permission: {why}"
    );
    Some(Error::forbidden(&Path::new("status").child("allocation"), why))
}

/// One error for each driver for which the caller may not speak.
fn drivers(context: &Context<'_>, claim: &Value, old: &Value) -> ErrorList {
    let of_node = node_of(claim).is_some_and(|node| runs_on(context.user, node));
    let prefixes: &[&str] = match of_node {
        true => &["associated-node:", "arbitrary-node:"],
        false => &["arbitrary-node:"],
    };
    let verbs: Vec<String> = prefixes
        .iter()
        .map(|prefix| format!("{prefix}{}", context.verb))
        .collect();
    let namespace = meta::namespace(claim);
    let mut errors = ErrorList::new();
    for driver in changed_drivers(claim, old) {
        let mut refusals = Vec::new();
        let is_allowed = verbs.iter().any(|verb| {
            let refused = refused(context, verb, "resourceclaims/driver", namespace, driver);
            let is_allowed = refused.is_none();
            refusals.extend(refused);
            is_allowed
        });
        if let Some(why) = refusals.first().filter(|_| !is_allowed) {
            let why = format!(
                "changing status.devices requires resource=\"resourceclaims/driver\", verb=\"[{}]\" permission: {why}",
                verbs.join(" ")
            );
            errors.push(Error::forbidden(&Path::new("status").child("devices"), why));
        }
    }
    errors
}

/// Why the caller may not do something, if he may not. Where there is only a set of objects, nobody judges.
fn refused(context: &Context<'_>, verb: &str, resource: &str, namespace: &str, name: &str) -> Option<String> {
    let cluster = context.lister.cluster()?;
    let attributes = Attributes::of_resource(context.user, verb, GROUP, resource, namespace, name);
    match cluster.config().authorizer.authorize(cluster, &attributes) {
        Decision::Allow => None,
        Decision::Deny(reason) | Decision::NoOpinion(reason) => {
            let message = authz::forbidden_message(&attributes, &reason);
            let refusal = ApiError::forbidden(GROUP, attributes.resource, name, &message);
            Some(refusal.message().to_owned())
        }
    }
}

/// The drivers of which something is said anew, otherwise, or no more.
fn changed_drivers<'c>(claim: &'c Value, old: &'c Value) -> BTreeSet<&'c str> {
    let told = |claim: &'c Value| meta::elements(claim, "/status/devices");
    let (now, before) = (told(claim), told(old));
    let of_same = |all: &'c [Value], one: &Value| all.iter().find(|other| Device::of(other) == Device::of(one));
    let changed = now.iter().filter(|one| of_same(before, one) != Some(*one));
    let gone = before.iter().filter(|one| of_same(now, one).is_none());
    changed.chain(gone).map(|one| meta::text(one, "/driver")).collect()
}

/// The node on which all devices of a claim are, if they are on one that is told by its name.
fn node_of(claim: &Value) -> Option<&str> {
    let [term] = meta::elements(claim, "/status/allocation/nodeSelector/nodeSelectorTerms") else {
        return None;
    };
    let ([], [field]) = (
        meta::elements(term, "/matchExpressions"),
        meta::elements(term, "/matchFields"),
    ) else {
        return None;
    };
    let is_name = meta::text(field, "/key") == "metadata.name" && meta::text(field, "/operator") == "In";
    match meta::elements(field, "/values") {
        [node] if is_name => node.as_str(),
        _ => None,
    }
}

/// Whether a user is a service account whose token is bound to a node.
fn runs_on(user: &UserInfo, node: &str) -> bool {
    let bound = user.extra.get(NODE_NAME).map(Vec::as_slice);
    account_of(&user.name).is_some()
        && matches!(bound, Some([own]) if own == node)
        && meta::dns1123_subdomain(node).is_empty()
}
