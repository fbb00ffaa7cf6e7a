//! Subresources of their own kind: finds what a definition offers, runs it, and does what it asks for.

use std::sync::Arc;

use gardener_apimachinery::ApiError;
use gardener_store::Entry;
use http::{Response, StatusCode};
use serde_json::Value;

use crate::decode::{Decoded, Source};
use crate::definition::{Effect, Lister as _, Removal};
use crate::handle::Call;
use crate::posted::Posted;
use crate::registry::{DeleteOptions, Deleted, Scope, WriteOptions};
use crate::respond::{self, Body};
use crate::user::{KUBE_APISERVER, UserInfo};
use crate::{connect, meta, object};

/// How often it is tried to write what others write, too.
const RETRIES: usize = 20;

/// Serves a call to a subresource; `beyond` is what follows it in the path.
pub(crate) async fn call(call: &Call, scope: &Scope, verb: &str, beyond: &str) -> Result<Response<Body>, ApiError> {
    if let Some(connect) = connect::find(&scope.definition, &scope.subresource) {
        // clients that upgrade a GET do what others do by POST
        if verb == "get"
            && connect.does_one_thing()
            && let Some(reason) = scope.creation_refused(&call.user).await?
        {
            return Err(scope.forbidden(&reason));
        }
        return Err(connect.refuse(call, scope, verb, beyond).await);
    }
    let mut noted = Vec::new();
    let answered = serve(call, scope, verb, &mut noted).await;
    // what is to say of the body is said in any case
    answered.inspect_err(|_| scope.refused_with.extend_if_none(noted))
}

/// Serves a call; `noted` takes what is to say of the body.
async fn serve(call: &Call, scope: &Scope, verb: &str, noted: &mut Vec<String>) -> Result<Response<Body>, ApiError> {
    let name = scope.subresource.as_str();
    let subresource = scope.definition.subresources.get(name).cloned();
    let subresource = subresource.ok_or_else(ApiError::no_such_path)?;
    if !subresource.verbs().contains(&verb) {
        return Err(ApiError::method_not_allowed());
    }
    let options = call.write_options()?;
    // what is read may be text; a write must not happen when its answer cannot be given
    let accept = match call.accept_posted() {
        Err(error) if verb != "get" => return Err(error),
        accept => accept,
    };
    let Decoded {
        value: mut sent,
        source,
    } = match verb {
        "get" => Decoded::from(serde_json::to_value(call.query.pairs()).unwrap_or(Value::Null)),
        _ => {
            let (group, version, kind) = subresource.kind();
            let api_version = match group {
                "" => version.to_owned(),
                group => format!("{group}/{version}"),
            };
            call.decoded_kind(&api_version, kind)?
        }
    };
    let shown = |code: StatusCode, answer: Value, warnings: &[String]| {
        let accept = accept.clone()?;
        let answer = Posted::from(&*subresource).shown(answer, accept)?;
        Ok(warned(respond::value(code, &answer, accept), warnings))
    };
    let posted = verb == "create";
    if posted {
        scope.check_posted_kind(subresource.kind(), &sent)?;
        let decoded = Decoded { value: sent, source };
        sent = Posted::from(&*subresource).read(decoded, &options, noted)?;
        scope.check_posted_namespace(&sent)?;
    }
    if posted && scope.definition.namespaced && call.cluster.namespace(&scope.namespace).is_none() {
        return Err(ApiError::not_found("", "namespaces", &scope.namespace));
    }
    let entry = || match scope.name.as_str() {
        "" => Err(ApiError::bad_request("Name parameter required.")),
        _ => scope.entry(),
    };
    if !posted {
        let context = scope.context(call.cluster.clock().now(), options.dry_run);
        subresource.examine(&context, &scope.name, &mut sent)?;
    }
    for _ in 0..RETRIES {
        let mut warnings = noted.clone();
        let context = scope.context(call.cluster.clock().now(), options.dry_run);
        let received = |mut body: Value| {
            subresource.receive(&scope.namespace, &mut body);
            if subresource.notes_author() {
                Posted::from(&*subresource).note_author(call, &options, scope.posted_subresource(), &mut body);
            }
            body
        };
        let entry = match entry() {
            Ok(entry) => entry,
            // plugins see it all the same
            Err(missing) if posted => {
                let prepare = |body: &mut Value| {
                    subresource.examine(&context, &scope.name, body)?;
                    match subresource.is_judged_first() {
                        true => Ok(()),
                        false => Err(missing.clone()),
                    }
                };
                let body = received(sent.clone());
                let admitted = scope.admit_body(&context, &options, body, None, prepare, &mut warnings);
                admitted.await?;
                return Err(missing);
            }
            Err(missing) => return Err(missing),
        };
        let parent = object::value_of(&entry);
        // what is posted goes through admission itself, not as a change of its parent
        let body = match posted {
            true => {
                let prepare = |body: &mut Value| {
                    subresource.examine(&context, &scope.name, body)?;
                    subresource.prepare(&context, &parent, body)
                };
                let body = received(sent.clone());
                let admitted = scope.admit_body(&context, &options, body, None, prepare, &mut warnings);
                admitted.await?
            }
            false => sent.clone(),
        };
        let effect = subresource.call(&context, verb, &parent, body).await?;
        let created = if verb == "create" {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        let (object, answer) = match effect {
            Effect::Answer(value, warning) => {
                warnings.extend(warning);
                return shown(created, value, &warnings);
            }
            Effect::Issue(value, warning, credential) => {
                scope
                    .audited
                    .annotate("authentication.kubernetes.io/issued-credential-id", credential);
                warnings.extend(warning);
                return shown(created, value, &warnings);
            }
            Effect::Text(text) => {
                let content_type = http::HeaderValue::from_static("text/plain; charset=utf-8");
                return Ok(respond::with_type(StatusCode::OK, respond::full(text), content_type));
            }
            Effect::Nothing => return Ok(respond::empty(StatusCode::NO_CONTENT)),
            Effect::Delete(removal) => match remove(scope, &entry, *removal, &options, &mut warnings).await? {
                Some(answer) => return shown(created, answer, &warnings),
                None => continue,
            },
            Effect::StoreAndAnswer(object, answer) => (object, answer),
        };
        let stored = scope.store_by_subresource(&entry, object, &context, &options, subresource.validates_as_update());
        if stored.await?.is_some() {
            return shown(created, answer, &warnings);
        }
    }
    Err(ApiError::conflict(
        &scope.definition.group,
        &scope.definition.plural,
        &scope.name,
        "the object changes too often; try again",
    ))
}

/// Deletes the parent, and writes first what is to be written first. None: somebody was faster, and it must be decided anew.
async fn remove(
    scope: &Scope,
    entry: &Entry,
    removal: Removal,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Option<Value>, ApiError> {
    let mut how: DeleteOptions = serde_json::from_value(removal.options)
        .map_err(|error| ApiError::bad_request(format!("deleteOptions cannot be read: {error}")))?;
    if options.dry_run {
        how.dry_run = Some(vec!["All".to_owned()]);
    }
    let (wanted, found) = (
        how.preconditions.as_ref().and_then(|own| own.resource_version.clone()),
        entry.mod_revision.to_string(),
    );
    let meant = how.preconditions.as_ref().and_then(|own| own.uid.clone());
    let meant = meant.filter(|uid| !uid.is_empty());
    // what is written here is not what the caller may write, and plugins have looked at what the caller asked for
    let of_server = |scope: &Scope| Scope {
        subresource: "status".to_owned(),
        admitted: true,
        user: Arc::new(UserInfo::apiserver()),
        ..scope.clone()
    };
    if !how.is_dry_run() {
        if let Some((group, resource, object)) = removal.noted {
            let Some(definition) = scope.cluster.find(group, resource) else {
                return Err(ApiError::no_such_path());
            };
            let version = definition.stored_version().map(|version| version.name.clone());
            let noting = Scope {
                definition,
                version: version.unwrap_or_default(),
                name: meta::name(&object).to_owned(),
                ..of_server(scope)
            };
            let by = WriteOptions {
                field_manager: KUBE_APISERVER.to_owned(),
                ..WriteOptions::default()
            };
            match noting.update(object, &Source::default(), &by, None).await {
                Err(error) if error.code() == StatusCode::CONFLICT.as_u16() => return Ok(None),
                written => written.map(drop)?,
            }
        }
        if let Some(condition) = removal.condition {
            let mut revision = None;
            for _ in 0..RETRIES {
                let entry = scope.entry()?;
                if removal.guarded && entry.mod_revision.to_string() != found {
                    return Ok(None);
                }
                if wanted
                    .as_ref()
                    .is_some_and(|wanted| *wanted != entry.mod_revision.to_string())
                {
                    // the deletion tells what does not hold
                    break;
                }
                let mut parent = object::value_of(&entry);
                if meant
                    .as_ref()
                    .is_some_and(|uid| uid != meta::text(&parent, "/metadata/uid"))
                {
                    break;
                }
                meta::set(
                    &mut parent,
                    "resourceVersion",
                    Some(entry.mod_revision.to_string().into()),
                );
                meta::set_condition(&mut parent, &condition);
                let by = WriteOptions {
                    owned: true,
                    ..WriteOptions::default()
                };
                match of_server(scope).update(parent, &Source::default(), &by, None).await {
                    Err(error) if error.code() == StatusCode::CONFLICT.as_u16() => {}
                    Err(error) => return Err(error),
                    Ok(written) => {
                        revision = Some(meta::resource_version(&written.object).to_owned());
                        break;
                    }
                }
            }
            if let (Some(_), Some(preconditions)) = (wanted, how.preconditions.as_mut())
                && revision.is_some()
            {
                preconditions.resource_version = revision;
            }
        }
    }
    let parent = Scope {
        subresource: String::new(),
        admitted: true,
        ..scope.clone()
    };
    match parent.delete(&how, warnings).await? {
        Deleted::Gone(_) | Deleted::Pending(_) => Ok(Some(removal.answer)),
    }
}

fn warned(mut response: Response<Body>, warnings: &[String]) -> Response<Body> {
    respond::warn(&mut response, warnings);
    response
}
