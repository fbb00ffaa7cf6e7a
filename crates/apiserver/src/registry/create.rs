//! `create`.

use gardener_apimachinery::ApiError;
use gardener_apimachinery::field::ErrorList;
use gardener_store::{CommitError, Expect, Revision};
use serde_json::{Value, json};

use super::{Scope, Stored, TooLarge, WriteOptions, Written, commit_failed};
use crate::authz::{self, Attributes, Decision};
use crate::decode::Source;
use crate::definition::{Context, Draft, Nameless, Operation};
use crate::meta;
use crate::user::UserInfo;

/// How a new object is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AskedBy {
    /// To be made: that this is allowed was looked at before.
    Create,
    /// To be as it is told, by an update: whoever may do that need not be allowed to make one.
    Update,
    /// To be as it is told, by an apply; as an update.
    Apply,
}

/// How often what the server chooses is chosen anew if it is taken.
const ATTEMPTS: usize = 20;
/// Longest stem that `generateName` keeps; with five characters appended a name has 63 at most.
const MAX_STEM: usize = 58;

impl Scope {
    /// Stores a new object; `source` is the body it comes from.
    ///
    /// # Errors
    /// 400 for a body that does not fit, 409 when the name is taken, 422 for invalid fields, whatever admission says.
    pub async fn create(
        &self,
        mut object: Value,
        source: &Source,
        options: &WriteOptions,
    ) -> Result<Written, ApiError> {
        let now = self.cluster.clock().now();
        let context = self.context(now, options.dry_run);
        let mut warnings = Vec::new();
        let accepted = self.accept(&context, &mut object, options, source, &mut warnings);
        // what is to say of the body is said in any case
        accepted.inspect_err(|_| self.refused_with.extend_if_none(warnings.clone()))?;
        // what is put or applied keeps them, as with upstream, and goes with its first change if nothing holds it
        for key in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
            meta::set(&mut object, key, None);
        }
        let of_body = warnings.clone();
        let created = async {
            self.place(&mut object)?;
            self.to_stored(&mut object).await?;
            self.create_accepted(object, &context, options, warnings, AskedBy::Create)
                .await
        };
        created.await.inspect_err(|_| self.refused_with.extend_if_none(of_body))
    }

    /// The rest of creation by create and update: notes who owns the fields, then as [`Scope::create_owned`].
    pub(super) async fn create_accepted(
        &self,
        mut object: Value,
        context: &crate::definition::Context<'_>,
        options: &WriteOptions,
        warnings: Vec<String>,
        asked_by: AskedBy,
    ) -> Result<Written, ApiError> {
        let revision = meta::resource_version(&object).to_owned();
        drop_server_metadata(&mut object);
        if !revision.is_empty() {
            meta::set(&mut object, "resourceVersion", Some(revision.into()));
        }
        // admission sees the status that the client sent, but nobody owns it where that is the status' matter
        let is_untold = self.is_unreadable_where_dropped(&object, None);
        let owns_status = self.definition.strategy.owns_all_sent() || !self.subresource.is_empty();
        let status = match owns_status {
            true => None,
            false => self.drop_status(&mut object),
        };
        self.definition.complete_written(&mut object, "");
        match is_untold {
            true => meta::set(&mut object, "managedFields", None),
            false => self.own_fields(None, &mut object, None, options, context.now).await,
        }
        if let (Value::Object(members), Some(status)) = (&mut object, status) {
            members.insert("status".into(), status);
        }
        self.create_owned(object, context, options, warnings, asked_by).await
    }

    /// Refuses a new object of who may not make one. As upstream, looked at where the object is found right.
    async fn check_may_create(&self, user: &UserInfo) -> Result<(), ApiError> {
        match self.creation_refused(user).await? {
            None => Ok(()),
            Some(reason) => {
                let message = authz::forbidden_message(&self.creation(user), &reason);
                Err(self.forbidden(&message))
            }
        }
    }

    /// Why a user may not create what the request is about, if they may not.
    ///
    /// # Errors
    /// It cannot be found out.
    pub(crate) async fn creation_refused(&self, user: &UserInfo) -> Result<Option<String>, ApiError> {
        if self.admitted {
            return Ok(None);
        }
        let authorizer = &self.cluster.config().authorizer;
        Ok(match authorizer.ask(&self.cluster, &self.creation(user)).await? {
            Decision::Allow => None,
            Decision::Deny(reason) | Decision::NoOpinion(reason) => Some(reason),
        })
    }

    fn creation<'s>(&'s self, user: &'s UserInfo) -> Attributes<'s> {
        let (group, resource) = (&self.definition.group, &self.definition.plural);
        Attributes {
            version: &self.version,
            subresource: &self.subresource,
            ..Attributes::of_resource(user, "create", group, resource, &self.namespace, &self.name)
        }
    }

    /// That what the request is about is not to be touched.
    pub(crate) fn forbidden(&self, why: &str) -> ApiError {
        ApiError::forbidden(&self.definition.group, &self.definition.plural, &self.name, why)
    }

    /// What is wrong with a new object.
    fn errors_of_new(&self, context: &Context<'_>, object: &Draft, warnings: &mut Vec<String>) -> ErrorList {
        let strategy = &self.definition.strategy;
        let mut errors = strategy.judged_before_metadata(context, object);
        if !strategy.judges_metadata_last() {
            errors.extend(meta::validate_of_kind(object, &**strategy));
        }
        let mut errors = self.validate_schema(errors, (object, None), warnings);
        errors.extend(strategy.validate(context, object));
        // whatever a kind says of metadata and names, a name must fit into a path
        let is_unsure = strategy.judges_metadata_last() || !meta::path_segment(meta::name(object)).is_empty();
        if errors.is_empty() && is_unsure {
            return meta::validate(object, meta::path_segment);
        }
        errors
    }

    fn drop_status(&self, object: &mut Value) -> Option<Value> {
        let members = object.as_object_mut()?;
        let has_status = self.definition.stored_version().is_some_and(|version| version.status);
        let dropped = has_status && !self.definition.strategy.keeps_status_on_create();
        dropped.then(|| members.remove("status")).flatten()
    }

    /// The rest of creation, shared with apply. The object is in the stored version and its managedFields are written. Plugins see it as
    /// it came: without the uid, the time and the generated name that it gets after them.
    pub(super) async fn create_owned(
        &self,
        object: Value,
        context: &crate::definition::Context<'_>,
        options: &WriteOptions,
        mut warnings: Vec<String>,
        asked_by: AskedBy,
    ) -> Result<Written, ApiError> {
        let created = self
            .create_noting(object, context, options, &mut warnings, asked_by)
            .await;
        // what was said before a refusal is said with it
        created.inspect_err(|_| self.refused_with.extend(warnings))
    }

    async fn create_noting(
        &self,
        object: Value,
        context: &crate::definition::Context<'_>,
        options: &WriteOptions,
        warnings: &mut Vec<String>,
        asked_by: AskedBy,
    ) -> Result<Written, ApiError> {
        let options_object = options.object("CreateOptions");
        let mut holder = Some(Draft::from(object));
        let own = self.named(holder.as_deref());
        if let Some(why) = self.definition.strategy.refuses_creation() {
            return Err(ApiError::forbidden(
                &self.definition.group,
                &self.definition.plural,
                &own.name,
                why,
            ));
        }
        own.admit(context, Operation::Create, &options_object, &mut holder, None, warnings)
            .await?;
        let mut object = holder.unwrap_or_default();
        self.place(&mut object)?;
        let revision = meta::resource_version(&object).to_owned();
        self.prepare_metadata(&mut object, context.now);
        self.drop_status(&mut object);
        let nameless = match meta::text(&object, "/metadata/generateName") {
            "" => self.definition.strategy.nameless(),
            _ => Nameless::Suffix,
        };
        let generated = meta::name(&object).is_empty() && nameless != Nameless::Refused;
        for attempt in 0..ATTEMPTS {
            // only what the server chooses may be taken, and makes another attempt
            let mut candidate = match generated || self.definition.strategy.has_companions() {
                true => object.clone(),
                false => std::mem::take(&mut object),
            };
            if generated {
                let stem: String = meta::text(&object, "/metadata/generateName")
                    .chars()
                    .take(MAX_STEM)
                    .collect();
                let rest = match nameless {
                    Nameless::Uid => self.cluster.chance().uid(),
                    _ if self.definition.strategy.completes_name_prefix() => self.cluster.chance().name_suffix(5),
                    _ => String::new(),
                };
                meta::set(&mut candidate, "name", Some(format!("{stem}{rest}").into()));
            }
            let scope = self.named(Some(&candidate));
            let name = scope.name.clone();
            if self.definition.strategy.has_generation() {
                meta::set(&mut candidate, "generation", Some(json!(1)));
            }
            self.definition.strategy.drop_disabled(&mut candidate, None);
            self.definition.strategy.prepare_for_create(context, &mut candidate)?;
            if self.subresource.is_empty() {
                self.definition.strategy.reserve(context, &mut candidate)?;
            }
            let errors = self.errors_of_new(context, &candidate, warnings);
            if !errors.is_empty() {
                return Err(self.invalid(&name, errors));
            }
            warnings.extend(self.definition.strategy.warnings(context, &candidate, None));
            self.definition.canonicalize(&mut candidate);
            if asked_by != AskedBy::Create {
                self.check_may_create(context.user).await?;
            }
            let candidate = scope
                .admit_final(
                    context,
                    Operation::Create,
                    &options_object,
                    Some(candidate),
                    None,
                    warnings,
                )
                .await?
                .map(Draft::into_json)
                .unwrap_or_default();
            if options.dry_run {
                if scope.cluster.store().get(&scope.key(&name)).is_some() {
                    return Err(scope.already_exists(&candidate));
                }
                let mut object = scope.as_stored(&candidate).await?.unwrap_or(candidate);
                // nothing looks at it before it is stored
                if !revision.is_empty() {
                    meta::set(&mut object, "resourceVersion", Some(revision.into()));
                }
                self.to_requested(&mut object).await?;
                return Ok(Stored::from(Draft::from(object)).answered(true, std::mem::take(warnings)));
            }
            // what is no number is not looked at
            if revision.parse::<Revision>().is_ok_and(|revision| revision > 0) {
                return Err(ApiError::unclassified(
                    "resourceVersion should not be set on objects to be created",
                ));
            }
            // the status was dropped, and comes back as the schema defaults it when the object is read from the store
            let mut candidate = candidate;
            self.definition.restore(&mut candidate);
            if let Some(as_stored) = scope.as_stored(&candidate).await? {
                candidate = as_stored;
            }
            let too_large = match asked_by {
                AskedBy::Create | AskedBy::Update => TooLarge::LosesManagedFields,
                AskedBy::Apply => TooLarge::IsRefused,
            };
            let committed = self.commit_fitting((&name, Expect::Absent), &mut candidate, None, None, too_large);
            match committed.await {
                Ok(done) => {
                    let mut stored = Stored::by(done, candidate.into());
                    if !self.is_shown_as_stored() {
                        self.all_to_requested(&mut [&mut stored.object]).await?;
                    }
                    self.cluster.written(&self.definition);
                    return Ok(stored.answered(true, std::mem::take(warnings)));
                }
                Err(CommitError::Conflict { key, .. })
                    if attempt + 1 < ATTEMPTS && (generated || key != scope.key(&name)) => {}
                Err(CommitError::Conflict { .. }) => return Err(scope.already_exists(&candidate)),
                Err(error) => return Err(commit_failed(&error)),
            }
        }
        Err(ApiError::internal("no free name was found"))
    }

    /// This scope at the object's own name.
    fn named(&self, object: Option<&Value>) -> Self {
        let name = object.map(meta::name).unwrap_or_default();
        self.at(&self.namespace, if name.is_empty() { &self.name } else { name })
    }

    /// That there is an object of this name. Whoever asked for a generated name, too, may try again.
    fn already_exists(&self, object: &Value) -> ApiError {
        let error = ApiError::already_exists(&self.definition.group, &self.definition.plural, &self.name);
        let error = match meta::text(object, "/metadata/generateName") {
            "" => error,
            _ => error
                .suffixed(", the server was not able to generate a unique name for the object")
                .with_retry(1),
        };
        let there = self.entry().ok();
        match there.is_some_and(|there| meta::is_deleting(&crate::object::value_of(&there))) {
            true => error.prefixed("object is being deleted: "),
            false => error,
        }
    }

    /// Puts the object into the request's namespace, or out of any if its kind has none; refuses it if it is in another.
    pub(super) fn place(&self, object: &mut Value) -> Result<(), ApiError> {
        let own = meta::namespace(object);
        if !self.definition.namespaced {
            // upstream takes it away without a word
            if !own.is_empty() {
                meta::set(object, "namespace", None);
            }
            return Ok(());
        }
        if !own.is_empty() && own != self.namespace {
            return Err(ApiError::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        meta::set(object, "namespace", Some(self.namespace.clone().into()));
        Ok(())
    }

    pub(super) fn prepare_metadata(&self, object: &mut Value, now: k8s_openapi::jiff::Timestamp) {
        drop_server_metadata(object);
        meta::set(object, "creationTimestamp", Some(meta::rfc3339(now).into()));
        meta::set(object, "uid", Some(self.cluster.chance().uid().into()));
    }
}

/// Drops what only the server says of an object.
fn drop_server_metadata(object: &mut Value) {
    for key in ["selfLink", "resourceVersion"] {
        meta::set(object, key, None);
    }
}

#[cfg(test)]
mod tests {
    use gardener_apimachinery::pointer::Pointed;
    use serde_json::Map;

    use super::*;
    use crate::cluster::LogicalCluster;
    use crate::registry::PatchKind;

    /// What is stored of a config map with so many keys, created and then written again, where objects may have 4,096 bytes.
    async fn written(keys: usize) -> [Result<Value, String>; 2] {
        let cluster = LogicalCluster::in_memory_with(gardener_store::Options {
            max_value: 4096,
            ..Default::default()
        });
        let all = Scope::of_kind(cluster, "", "configmaps");
        let options = WriteOptions {
            field_manager: "m".into(),
            ..WriteOptions::default()
        };
        let with = |keys: usize| {
            let data: Map<String, Value> = (0..keys).map(|at| (format!("a-longer-key-{at}"), json!("v"))).collect();
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
        };
        let told = |written: Result<Written, ApiError>| match written {
            Ok(written) => Ok(written.object.into_json()),
            Err(error) => Err(error.message().to_owned()),
        };
        let created = all.create(with(keys), &Source::default(), &options).await;
        let own = all.at("default", "a");
        let updated = own.update(with(keys + 1), &Source::default(), &options, None).await;
        [told(created), told(updated)]
    }

    /// Nobody applies a configuration without owning its fields.
    #[tokio::test]
    async fn what_is_applied_keeps_its_managed_fields() {
        let cluster = LogicalCluster::in_memory_with(gardener_store::Options {
            max_value: 4096,
            ..Default::default()
        });
        let own = Scope::of_kind(cluster, "", "configmaps").at("default", "a");
        let options = WriteOptions {
            field_manager: "m".into(),
            ..WriteOptions::default()
        };
        let applied = async |keys: usize| {
            let data: Map<String, Value> = (0..keys).map(|at| (format!("a-longer-key-{at}"), json!("v"))).collect();
            let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data});
            let body = config.to_string().into();
            let written = own.patch(PatchKind::Apply, &body, &options).await;
            written.map(drop).map_err(|error| error.message().to_owned())
        };
        let too_large = Err("etcdserver: request is too large".to_owned());
        assert_eq!(applied(100).await, too_large);
        assert_eq!(applied(20).await, Ok(()));
        assert_eq!(applied(100).await, too_large);
    }

    #[tokio::test]
    async fn what_is_too_large_goes_without_managed_fields() {
        for (keys, expected) in [(20, true), (100, false)] {
            for found in written(keys).await {
                let has_managed = found.unwrap().at("/metadata/managedFields").is_some();
                assert_eq!(has_managed, expected, "{keys}");
            }
        }
        let [created, _] = written(300).await;
        assert_eq!(created, Err("etcdserver: request is too large".to_owned()));
    }
}
