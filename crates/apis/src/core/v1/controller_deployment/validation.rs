//! Validation of controller deployments, [VAL-CD1].

use gardener_apimachinery::field::{Error, ErrorList, Path};
use gardener_apimachinery::names;
use serde_json::Value;

use super::*;
use crate::constants::annotation::{CONTROLLER_DEPLOYMENT_PROVIDER_CONFIG, CONTROLLER_DEPLOYMENT_TYPE};
use crate::core::v1beta1::named_resources;
use crate::validation::object_meta;

/// Checks a controller deployment that is to be created or stored again.
pub fn validate_controller_deployment(deployment: &ControllerDeployment) -> ErrorList {
    let mut errors = object_meta(&deployment.metadata, false, names::dns_label);
    let annotation = |name: &str| {
        deployment
            .metadata
            .annotations
            .as_ref()?
            .get(name)
            .filter(|own| !own.is_empty())
    };
    if let Some(helm) = &deployment.helm {
        let path = Path::new("helm");
        let has_chart = helm.raw_chart.as_ref().is_some_and(|chart| !chart.0.is_empty());
        if has_chart == helm.oci_repository.is_some() {
            errors.push(Error::required(&path, "must provide either rawChart or ociRepository"));
        }
        if let Some(repository) = &helm.oci_repository {
            errors.extend(validate_oci_repository(repository, &path.child("ociRepository")));
        }
        if let Some(values) = &helm.values {
            errors.extend(templates(values, &deployment.resources, &path.child("values")));
        }
    }
    let path = Path::new("resources");
    errors.extend(named_resources(&deployment.resources, &path, false));
    for (i, resource) in deployment.resources.iter().enumerate() {
        if !is_alphanumeric(&resource.name) {
            let at = path.index(i).child("name");
            errors.push(Error::invalid(&at, resource.name.as_str(), "name must be alphanumeric"));
        }
    }
    let custom = annotation(CONTROLLER_DEPLOYMENT_TYPE).is_some();
    match (deployment.helm.is_some(), custom) {
        (true, _) => {
            let parts = [
                ("type", custom),
                (
                    "providerConfig",
                    annotation(CONTROLLER_DEPLOYMENT_PROVIDER_CONFIG).is_some(),
                ),
            ];
            for (name, _) in parts.into_iter().filter(|(_, set)| *set) {
                let why = format!("must not provide {name} if a built-in deployment type (helm) is used");
                errors.push(Error::forbidden(&Path::new(name), why));
            }
        }
        (false, false) => errors.push(Error::forbidden(
            &Path::root().key(""),
            "must use either helm or a custom deployment configuration",
        )),
        (false, true) => {}
    }
    errors
}

fn is_alphanumeric(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The values of a chart may refer to the data of resources that are declared, by `{{ .resources.<name>.data.<key> }}` and no other template.
fn templates(values: &Value, resources: &[NamedResourceReference], path: &Path) -> ErrorList {
    match values {
        Value::String(text) => templates_in(text, resources, path),
        Value::Array(list) => list
            .iter()
            .flat_map(|value| templates(value, resources, path))
            .collect(),
        Value::Object(members) => members
            .values()
            .flat_map(|value| templates(value, resources, path))
            .collect(),
        _ => ErrorList::new(),
    }
}

fn templates_in(text: &str, resources: &[NamedResourceReference], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut stripped = String::new();
    let mut rest = text;
    while let Some((begin, end)) = next_template(rest) {
        let (before, template) = (
            rest.get(..begin).unwrap_or_default(),
            rest.get(begin..end).unwrap_or_default(),
        );
        stripped.push_str(before);
        rest = rest.get(end..).unwrap_or_default();
        match referenced(template) {
            None => errors.push(Error::invalid(
                path,
                template,
                "template must match pattern \"{{ .resources.<name>.data.<key> }}\" with alphanumeric <name> and <key>",
            )),
            Some((name, _)) if resources.iter().all(|own| own.name != name) => {
                let why = format!("template references resource {name:?} which is not declared in the resources list");
                errors.push(Error::invalid(path, template, why));
            }
            Some(_) => {}
        }
    }
    stripped.push_str(rest);
    for (stray, what) in [("{{", "start"), ("}}", "end")] {
        if stripped.contains(stray) {
            let why = format!("stray {stray:?} that does not {what} a valid template expression");
            errors.push(Error::invalid(path, stray, why));
        }
    }
    errors
}

/// Where the next `{{…}}` without braces inside begins and ends.
fn next_template(text: &str) -> Option<(usize, usize)> {
    text.match_indices("{{").find_map(|(begin, _)| {
        let inside = text.get(begin + 2..)?;
        let end = inside.find(['{', '}'])?;
        inside
            .get(end..)?
            .starts_with("}}")
            .then_some((begin, begin + 2 + end + 2))
    })
}

/// The resource that a template refers to, and the key of its data. None: it is no such template.
fn referenced(template: &str) -> Option<(&str, &str)> {
    let inside = template.strip_prefix("{{")?.strip_suffix("}}")?.trim();
    let (name, key) = inside.strip_prefix(".resources.")?.split_once(".data.")?;
    (is_alphanumeric(name) && is_alphanumeric(key)).then_some((name, key))
}

/// Puts data in the place of the templates of a text [EXT-97]; `data` tells that of a resource and key.
///
/// # Errors
/// What `data` says; other templates stay as they are, for nothing like that can be stored.
pub fn fill_in<E>(text: &str, mut data: impl FnMut(&str, &str) -> Result<String, E>) -> Result<String, E> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((begin, end)) = next_template(rest) {
        let template = rest.get(begin..end).unwrap_or_default();
        filled.push_str(rest.get(..begin).unwrap_or_default());
        match referenced(template) {
            Some((name, key)) => filled.push_str(&data(name, key)?),
            None => filled.push_str(template),
        }
        rest = rest.get(end..).unwrap_or_default();
    }
    filled.push_str(rest);
    Ok(filled)
}

/// Checks where a chart is: a whole reference, or a repository with tag or digest.
pub fn validate_oci_repository(repository: &OCIRepository, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let set = |value: &Option<String>| value.as_deref().is_some_and(|own| !own.is_empty());
    if !set(&repository.ref_) && !set(&repository.repository) {
        errors.push(Error::required(path, "must provide either ref or repository"));
        return errors;
    }
    let parts = [
        ("repository", &repository.repository),
        ("tag", &repository.tag),
        ("digest", &repository.digest),
    ];
    if repository.ref_.is_some() {
        for (name, _) in parts.into_iter().filter(|(_, value)| set(value)) {
            let why = format!("cannot provide {name} when ref is set");
            errors.push(Error::forbidden(&path.child(name), why));
        }
        return errors;
    }
    if !set(&repository.tag) && !set(&repository.digest) {
        errors.push(Error::required(path, "must provide either tag or digest"));
    }
    if let Some(digest) = repository.digest.as_deref().filter(|own| !own.starts_with("sha256:")) {
        errors.push(Error::invalid(
            &path.child("digest"),
            digest,
            "must start with 'sha256:'",
        ));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn val_cd1_values_refer_to_declared_resources() {
        let check = |values: serde_json::Value| {
            let resources = serde_json::json!([{"name": "creds", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "s"}}]);
            let deployment: ControllerDeployment = serde_json::from_value(serde_json::json!({
                "metadata": {"name": "d1"}, "helm": {"rawChart": "AAAA", "values": values}, "resources": resources,
            }))
            .unwrap();
            validate_controller_deployment(&deployment)
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        let good = serde_json::json!({"a": ["{{ .resources.creds.data.token }}{{.resources.creds.data.k}}"], "b": 1, "c": "{ }"});
        assert_eq!(check(good), Vec::<String>::new());
        let pattern =
            "template must match pattern \"{{ .resources.<name>.data.<key> }}\" with alphanumeric <name> and <key>";
        let table = [
            ("{{ .Values.x }}", format!("\"{{{{ .Values.x }}}}\": {pattern}")),
            ("{{- .resources.creds.data.k -}}", format!("\"{{{{- .resources.creds.data.k -}}}}\": {pattern}")),
            (
                "x {{ .resources.other.data.k }}",
                "\"{{ .resources.other.data.k }}\": template references resource \"other\" which is not declared in the resources list".into(),
            ),
            ("a {{ b", "\"{{\": stray \"{{\" that does not start a valid template expression".into()),
            ("a }} b", "\"}}\": stray \"}}\" that does not end a valid template expression".into()),
        ];
        for (value, expected) in table {
            let expected = format!("helm.values: Invalid value: {expected}");
            assert_eq!(check(serde_json::json!({"v": value})), [expected], "{value}");
        }
    }

    #[test]
    fn val_cd1_one_source() {
        let check = |helm: serde_json::Value| {
            let deployment: ControllerDeployment =
                serde_json::from_value(serde_json::json!({"metadata": {"name": "d1"}, "helm": helm})).unwrap();
            validate_controller_deployment(&deployment)
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            check(
                serde_json::json!({"rawChart": "AAAA", "ociRepository": {"repository": "r.example.org/x", "tag": "v1"}})
            ),
            ["helm: Required value: must provide either rawChart or ociRepository"]
        );
        assert!(check(serde_json::json!({"rawChart": "AAAA"})).is_empty());
        assert_eq!(
            check(serde_json::json!({"ociRepository": {"repository": "x", "digest": "md5:1"}})),
            ["helm.ociRepository.digest: Invalid value: \"md5:1\": must start with 'sha256:'"]
        );
        assert_eq!(
            check(serde_json::Value::Null),
            ["[]: Forbidden: must use either helm or a custom deployment configuration"]
        );
    }
}
