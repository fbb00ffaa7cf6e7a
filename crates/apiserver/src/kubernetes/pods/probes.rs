//! What must hold of probes and of what runs when a container begins and ends.

use gardener_apimachinery::field::{Error, ErrorList, Path};
use serde_json::Value;

use crate::kubernetes::checks::{list, nonnegative, number, port, port_number, syntax, text};

const HANDLERS: [&str; 5] = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];

pub(super) fn validate(container: &Value, grace: i64, path: &Path, errors: &mut ErrorList) {
    if let Some(lifecycle) = container.get("lifecycle") {
        for key in ["postStart", "preStop"] {
            if let Some(handler) = lifecycle.get(key) {
                validate_handler(handler, grace, &path.child("lifecycle").child(key), errors);
            }
        }
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get(key) else { continue };
        let at = path.child(key);
        validate_handler(probe, grace, &at, errors);
        for key in [
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        ] {
            nonnegative(probe, key, &at, errors);
        }
        let own_grace = number(probe, "terminationGracePeriodSeconds");
        let place = at.child("terminationGracePeriodSeconds");
        if let Some(seconds) = own_grace.filter(|seconds| *seconds <= 0) {
            errors.push(Error::invalid(&place, seconds, "must be greater than 0"));
        }
        match (key, own_grace, number(probe, "successThreshold")) {
            ("readinessProbe", Some(seconds), _) => {
                errors.push(Error::invalid(&place, seconds, "must not be set for readinessProbes"));
            }
            ("livenessProbe" | "startupProbe", _, Some(threshold)) if threshold != 1 => {
                errors.push(Error::invalid(&at.child("successThreshold"), threshold, "must be 1"));
            }
            _ => {}
        }
    }
}

fn validate_handler(handler: &Value, grace: i64, path: &Path, errors: &mut ErrorList) {
    let mut found = HANDLERS.iter().filter_map(|key| Some((*key, handler.get(*key)?)));
    let Some((key, action)) = found.next() else {
        errors.push(Error::required(path, "must specify a handler type"));
        return;
    };
    let at = path.child(key);
    match key {
        "exec" => {
            if list(action, "command").is_empty() {
                errors.push(Error::required(&at.child("command"), ""));
            }
        }
        "httpGet" => validate_http(action, &at, errors),
        "tcpSocket" => port(action, "port", &at, errors),
        "grpc" => errors.extend(port_number(number(action, "port").unwrap_or(0), &at.child("port"))),
        _ => {
            let seconds = number(action, "seconds").unwrap_or(0);
            if seconds < 0 || seconds > grace {
                let why = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                errors.push(Error::invalid(&at, seconds, why));
            }
        }
    }
    for (key, _) in found {
        let why = "may not specify more than 1 handler type";
        errors.push(Error::forbidden(&path.child(key), why));
    }
}

fn validate_http(action: &Value, at: &Path, errors: &mut ErrorList) {
    if text(action, "path").is_empty() {
        errors.push(Error::required(&at.child("path"), ""));
    }
    port(action, "port", at, errors);
    let scheme = text(action, "scheme");
    if !matches!(scheme, "HTTP" | "HTTPS") {
        errors.push(Error::not_supported(&at.child("scheme"), scheme, &["HTTP", "HTTPS"]));
    }
    for header in list(action, "httpHeaders") {
        let name = text(header, "name");
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let wrong = match is_name {
            true => Vec::new(),
            false => vec![
                "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
                    .to_owned(),
            ],
        };
        syntax(wrong, name, &at.child("httpHeaders"), errors);
    }
}
