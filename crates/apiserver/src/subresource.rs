//! Subresources of their own kind: finds what a definition offers, runs it, and does what it asks for.

use gardener_apimachinery::ApiError;
use http::{Response, StatusCode};
use serde_json::Value;

use crate::decode::{self, Decoded, Format};
use crate::definition::Effect;
use crate::handle::Call;
use crate::posted::Posted;
use crate::registry::{DeleteOptions, Deleted, PatchKind, Scope, by_operations};
use crate::respond::{self, Body};
use crate::{connect, meta, object};

/// Serves a call to a subresource.
pub(crate) async fn call(call: &Call, scope: &Scope, verb: &str) -> Result<Response<Body>, ApiError> {
    let name = scope.subresource.as_str();
    let mut connects = connect::of(&scope.definition.group, &scope.definition.plural).iter();
    if let Some(connect) = connects.find(|own| own.name == name) {
        return Err(connect.refuse(call, scope, verb));
    }
    let subresource = scope.definition.subresources.get(name).cloned();
    let subresource = subresource.ok_or_else(ApiError::no_such_path)?;
    if !subresource.verbs().contains(&verb) {
        return Err(ApiError::method_not_allowed());
    }
    let options = call.write_options()?;
    // what is read may be text; a write must not happen when its answer cannot be given
    let accept = match call.accept_one_shape() {
        Err(error) if verb != "get" => return Err(error),
        accept => accept,
    };
    let Decoded {
        value: mut sent,
        source,
    } = match verb {
        "get" => Decoded::from(serde_json::to_value(call.query.pairs()).unwrap_or(Value::Null)),
        // a patch is read when there is something to patch
        "patch" => Decoded::from(Value::Null),
        _ if call.body.is_empty() => Decoded::from(Value::Null),
        _ => call.decoded()?,
    };
    if verb == "update" {
        match meta::name(&sent) {
            "" => return Err(scope.no_name()),
            own if own != scope.name => return Err(scope.other_name(own)),
            _ => {}
        }
    }
    let posted = verb == "create";
    let mut unread = (posted && !call.body.is_empty()).then_some(source);
    let mut noted = Vec::new();
    for _ in 0..20 {
        let entry = scope.entry()?;
        let parent = object::value_of(&entry);
        if let Some(source) = unread.take() {
            scope.check_posted(subresource.kind(), &sent)?;
            let decoded = Decoded { value: sent, source };
            sent = Posted::from(subresource.kind()).read(decoded, &options, &mut noted)?;
        }
        let mut warnings = noted.clone();
        let body = match verb {
            "patch" => {
                let patch = decode::decode(&call.body, Format::Yaml)?.value;
                let mut current = parent.clone();
                scope.to_requested(&mut current).await?;
                match call.patch_kind()? {
                    PatchKind::Json => by_operations(&current, &patch, &options)?,
                    PatchKind::Strategic => match &scope.spec()?.schema {
                        Some(schema) => gardener_merge::strategic(&current, &patch, schema).map_err(ApiError::from)?,
                        None => return Err(ApiError::unsupported_media_type(&PatchKind::TYPES[..2])),
                    },
                    PatchKind::Merge | PatchKind::Apply => {
                        gardener_merge::merge_patch(&current, &patch).map_err(ApiError::from)?
                    }
                }
            }
            _ => sent.clone(),
        };
        let context = scope.context(call.cluster.clock().now(), options.dry_run);
        // what is posted goes through admission itself, not as a change of its parent
        let body = match posted {
            true => {
                let mut body = body;
                subresource.receive(&scope.namespace, &mut body);
                if subresource.notes_author() {
                    Posted::from(subresource.kind()).note_author(call, &options, &scope.subresource, &mut body);
                }
                let prepare = |body: &mut Value| subresource.prepare(&context, &parent, body);
                let admitted = scope.admit_body(&context, &options, body, None, prepare, &mut warnings);
                admitted.await?
            }
            false => body,
        };
        let effect = subresource.call(&context, verb, &parent, body).await?;
        let created = if verb == "create" {
            StatusCode::CREATED
        } else {
            StatusCode::OK
        };
        let (object, asked, answer) = match effect {
            Effect::Answer(value) => {
                return Ok(warned(respond::value(created, &value, accept?), &warnings));
            }
            Effect::Text(text) => return Ok(respond::text(StatusCode::OK, text)),
            Effect::Nothing => return Ok(respond::empty(StatusCode::NO_CONTENT)),
            Effect::Delete(grace_period_seconds, answer) => {
                let main = Scope {
                    subresource: String::new(),
                    admitted: true,
                    ..scope.clone()
                };
                let dry_run = options.dry_run.then(|| vec!["All".to_owned()]);
                match main
                    .delete(
                        &DeleteOptions {
                            grace_period_seconds,
                            dry_run,
                            ..DeleteOptions::default()
                        },
                        &mut warnings,
                    )
                    .await?
                {
                    Deleted::Gone(_) | Deleted::Pending(_) => {
                        return Ok(warned(respond::value(created, &answer, accept?), &warnings));
                    }
                }
            }
            Effect::Store(object) => (object, None, None),
            Effect::StoreOfAsked(object, asked) => (object, Some(asked), None),
            Effect::StoreAndAnswer(object, answer) => (object, None, Some(answer)),
        };
        if let Some(stored) = scope
            .store_by_subresource(
                &entry,
                (object, asked),
                &context,
                &options,
                subresource.validates_as_update(),
                posted,
            )
            .await?
        {
            return match answer {
                Some(answer) => Ok(warned(respond::value(created, &answer, accept?), &warnings)),
                None => Ok(warned(call.object(created, stored, scope)?, &warnings)),
            };
        }
    }
    Err(ApiError::conflict(
        &scope.definition.group,
        &scope.definition.plural,
        &scope.name,
        "the object changes too often; try again",
    ))
}

fn warned(mut response: Response<Body>, warnings: &[String]) -> Response<Body> {
    respond::warn(&mut response, warnings);
    response
}
