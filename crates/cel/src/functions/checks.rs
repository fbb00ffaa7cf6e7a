//! Questions to the authorizer.

use std::sync::Arc;

use gardener_apimachinery::names;

use super::{Found, failed};
use crate::eval::{Check, Evaluation};
use crate::value::Value;

pub(super) fn checks<'a>(evaluation: &mut Evaluation<'_>, name: &str, args: &[Value<'a>]) -> Option<Found<'a>> {
    let [Value::Check(check), rest @ ..] = args else {
        return None;
    };
    let mut check = Check::clone(check);
    match (name, rest) {
        ("serviceAccount", [Value::Text(_), Value::Text(name)]) if !names::dns_subdomain(name).is_empty() => {
            return Some(failed("Invalid service account name"));
        }
        ("serviceAccount", [Value::Text(namespace), Value::Text(_)]) if !names::dns_label(namespace).is_empty() => {
            return Some(failed("Invalid service account namespace"));
        }
        ("path", [Value::Text(path)]) if path.trim().is_empty() => return Some(failed("path must not be empty")),
        ("resource", [Value::Text(resource)]) if resource.trim().is_empty() => {
            return Some(failed("resource must not be empty"));
        }
        ("serviceAccount", [Value::Text(namespace), Value::Text(name)]) => {
            check.service_account = Some((namespace.clone().into_owned(), name.clone().into_owned()));
        }
        ("path", [Value::Text(path)]) => check.path = Some(path.clone().into_owned()),
        ("group", [Value::Text(group)]) => check.group = group.clone().into_owned(),
        ("resource", [Value::Text(resource)]) => check.resource = resource.clone().into_owned(),
        ("subresource", [Value::Text(subresource)]) => check.subresource = subresource.clone().into_owned(),
        ("namespace", [Value::Text(namespace)]) => check.namespace = namespace.clone().into_owned(),
        ("name", [Value::Text(name)]) => check.name = name.clone().into_owned(),
        ("fieldSelector", [Value::Text(selector)]) => check.field_selector = selector.clone().into_owned(),
        ("labelSelector", [Value::Text(selector)]) => check.label_selector = selector.clone().into_owned(),
        ("check", [Value::Text(verb)]) => {
            if let Err(error) = evaluation.pay(350_000) {
                return Some(Err(error));
            }
            let decision = evaluation.authorizer.map(|authorizer| authorizer.decide(&check, verb));
            check.decision = Some(decision.unwrap_or_default());
        }
        ("allowed", []) => return Some(Ok(Value::Bool(check.decision.is_some_and(|(allowed, _)| allowed)))),
        ("reason", []) => return Some(Ok(Value::text(check.decision.unwrap_or_default().1))),
        ("error", []) => return Some(Ok(Value::text(""))),
        ("errored", []) => return Some(Ok(Value::Bool(false))),
        _ => return None,
    }
    Some(Ok(Value::Check(Arc::new(check))))
}
