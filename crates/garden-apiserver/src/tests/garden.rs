//! A garden of objects, to which requests are put as the machinery puts them: plugins, strategies, plugins.

use std::collections::BTreeMap;
use std::sync::Arc;

use gardener_apimachinery::ApiError;
use gardener_apimachinery::pointer::Pointed;
use gardener_apiserver::UserInfo;
use gardener_apiserver::authn::Settings;
use gardener_apiserver::definition::{Admission, Attributes, Context, Definition, Draft, Lister, Operation, Warnings};
use gardener_apiserver::webhooks::Reinvocation;
use serde_json::Value;

use crate::admission::webhooks::{self, ResourceSize};
use crate::admission::{Configuration, OFF_BY_DEFAULT, plugins};
use crate::{Features, Options, definitions};

type Name = (String, String, String, String);

/// Objects of a garden, with its kinds and plugins.
pub(crate) struct Garden {
    objects: BTreeMap<Name, Arc<Value>>,
    definitions: Vec<Arc<Definition>>,
    plugins: Vec<Arc<dyn Admission>>,
    /// Who asks.
    pub(crate) user: UserInfo,
    /// What that user may not do: verb, resource and name.
    pub(super) forbidden: Vec<(&'static str, &'static str, &'static str)>,
    /// What time it is.
    pub(super) now: &'static str,
}

impl Lister for Garden {
    fn release(&self, _: &str) {}

    fn reserve(&self, _: &str, _: jiff::Timestamp) -> bool {
        true
    }

    fn get(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.objects
            .get(&(group.into(), resource.into(), namespace.into(), name.into()))
            .cloned()
    }
    fn list(&self, group: &str, resource: &str, namespace: Option<&str>) -> Vec<Arc<Value>> {
        self.objects
            .iter()
            .filter(|((g, r, n, _), _)| g == group && r == resource && namespace.is_none_or(|namespace| n == namespace))
            .map(|(_, value)| value.clone())
            .collect()
    }
    fn field_values(&self, group: &str, resource: &str, field: &str) -> Vec<String> {
        let pointer = format!("/{}", field.replace('.', "/"));
        let objects = self.list(group, resource, None);
        objects.iter().map(|object| text(object, &pointer).to_owned()).collect()
    }
    fn with_field(&self, group: &str, resource: &str, field: &str, value: &str) -> Vec<Arc<Value>> {
        let pointer = format!("/{}", field.replace('.', "/"));
        let mut objects = self.list(group, resource, None);
        objects.retain(|object| text(object, &pointer) == value);
        objects
    }
    fn allowed(&self, _: &UserInfo, verb: &str, _: &str, resource: &str, _: &str, name: &str) -> bool {
        !self.forbidden.contains(&(verb, resource, name))
    }
    fn rules_for(
        &self,
        _: &UserInfo,
        _: &str,
    ) -> (
        Vec<k8s_openapi::api::rbac::v1::PolicyRule>,
        Vec<k8s_openapi::api::rbac::v1::RoleRef>,
    ) {
        Default::default()
    }
    fn token_settings(&self) -> Settings {
        Settings::default()
    }
}

/// A text in an object, or none.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.at(pointer).and_then(Value::as_str).unwrap_or_default()
}

impl Garden {
    pub(crate) fn new() -> Self {
        Self::with_features(Features::default())
    }

    /// With other features switched on than usual.
    pub(super) fn with_features(features: Features) -> Self {
        let mut garden = Self {
            objects: BTreeMap::new(),
            definitions: definitions(&Options::default()).unwrap(),
            plugins: plugins(&Configuration::default(), &features),
            user: UserInfo::new("admin", &[]),
            forbidden: Vec::new(),
            now: "2026-05-01T10:00:00Z",
        };
        let wanted = |plugin: &Arc<dyn Admission>| !OFF_BY_DEFAULT.contains(&plugin.name());
        garden.plugins.retain(wanted);
        garden
    }

    /// The kind of an object, and its version.
    pub(super) fn definition(&self, object: &Value) -> Option<(Arc<Definition>, String)> {
        let (group, version) = text(object, "/apiVersion").split_once('/')?;
        let kind = text(object, "/kind");
        let found = self
            .definitions
            .iter()
            .find(|own| own.group == group && own.versions.iter().any(|own| own.name == version && own.kind == kind))?;
        Some((found.clone(), version.to_owned()))
    }

    /// Stores an object as it is.
    pub(crate) fn put(&mut self, group: &str, resource: &str, object: Value) {
        let name = (
            group.to_owned(),
            resource.to_owned(),
            text(&object, "/metadata/namespace").to_owned(),
            text(&object, "/metadata/name").to_owned(),
        );
        self.objects.insert(name, Arc::new(object));
    }

    /// All objects that are there.
    pub(super) fn objects(&self) -> impl Iterator<Item = Value> {
        self.objects.values().map(|object| Value::clone(object))
    }

    /// An object that is there.
    pub(super) fn stored(&self, group: &str, resource: &str, namespace: &str, name: &str) -> Value {
        let found = self.get(group, resource, namespace, name);
        found
            .map(|found| Value::clone(&found))
            .unwrap_or_else(|| panic!("{resource} {name}"))
    }

    pub(crate) fn context<'c>(&'c self) -> Context<'c> {
        Context {
            user: &self.user,
            cluster: "garden",
            now: self.now.parse().unwrap(),
            chance: 7,
            dry_run: false,
            verb: "",
            lister: self,
        }
    }

    /// Adds what gardener-admission-controller refuses.
    pub(super) fn with_webhooks(mut self, sizes: ResourceSize) -> Self {
        self.plugins.extend(webhooks::plugins(sizes));
        self
    }

    /// Creates an object as the machinery does, and answers it in the version in which it came.
    pub(super) async fn create(&mut self, mut object: Value) -> Result<Value, ApiError> {
        let Some((definition, version)) = self.definition(&object) else {
            let plural = format!("{}s", text(&object, "/kind").to_lowercase());
            self.put("", &plural, object.clone());
            return Ok(object);
        };
        let stored = definition.stored_version().unwrap().name.clone();
        let result = {
            let context = self.context();
            let strategy = &definition.strategy;
            object["metadata"]["uid"] = "u".into();
            strategy.decode_embedded(&version, &object).map_err(|why| {
                let kind = text(&object, "/kind");
                ApiError::bad_request(format!(
                    "{kind} in version {version:?} cannot be handled as a {kind}: {why}"
                ))
            })?;
            strategy.default(&context, &mut object);
            if definition.stored_version().unwrap().status {
                object.as_object_mut().unwrap().remove("status");
            }
            strategy.convert(&mut object, &version, &stored)?;
            self.write(&context, &definition, &version, "", object, None).await?
        };
        self.put(&definition.group, &definition.plural, result.clone());
        let mut answer = result;
        definition.strategy.convert(&mut answer, &stored, &version)?;
        Ok(answer)
    }

    /// Changes an object that is there as the machinery does; nothing is stored.
    pub(super) async fn update(
        &self,
        (kind, namespace, name): (&str, &str, &str),
        subresource: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<Value, ApiError> {
        let (definition, old) = self.there(kind, namespace, name);
        let version = definition.stored_version().unwrap().name.clone();
        let mut object = Value::clone(&old);
        change(&mut object);
        let context = self.context();
        definition.strategy.default(&context, &mut object);
        if subresource == "status" {
            object["spec"] = old["spec"].clone();
        }
        self.write(&context, &definition, &version, subresource, object, Some(&old))
            .await
    }

    /// Deletes an object as the machinery does; nothing is stored.
    pub(super) async fn delete(&self, kind: &str, namespace: &str, name: &str) -> Result<(), ApiError> {
        let (definition, old) = self.there(kind, namespace, name);
        let version = definition.stored_version().unwrap().name.clone();
        let old = Draft::from(Value::clone(&old));
        let context = self.context();
        let attributes = attributes(
            &context,
            &definition,
            (&version, ""),
            (namespace, name),
            None,
            Some(&old),
        );
        for plugin in &self.plugins {
            plugin.validate(&attributes).await?;
        }
        Ok(())
    }

    fn there(&self, kind: &str, namespace: &str, name: &str) -> (Arc<Definition>, Arc<Value>) {
        let is = |own: &&Arc<Definition>| own.stored_version().is_some_and(|version| version.kind == kind);
        let definition = self.definitions.iter().find(is).unwrap().clone();
        let old = self.get(&definition.group, &definition.plural, namespace, name);
        (definition, old.unwrap_or_else(|| panic!("{kind} {name}")))
    }

    /// Mutation, strategy, validation.
    async fn write(
        &self,
        context: &Context<'_>,
        definition: &Definition,
        version: &str,
        subresource: &str,
        object: Value,
        old: Option<&Value>,
    ) -> Result<Value, ApiError> {
        let strategy = &definition.strategy;
        let old = old.cloned().map(Draft::from);
        let old = old.as_ref();
        let name = text(&object, "/metadata/name").to_owned();
        let namespace = text(&object, "/metadata/namespace").to_owned();
        let place = (namespace.as_str(), name.as_str());
        let mut attributes = attributes(context, definition, (version, subresource), place, Some(object), old);
        for plugin in &self.plugins {
            plugin.admit(&mut attributes).await?;
        }
        let mut object = attributes.object.take().unwrap();
        let errors = match old {
            None => {
                strategy.prepare_for_create(context, &mut object)?;
                let mut errors = gardener_apiserver::meta::validate_of_kind(&object, &**strategy);
                errors.extend(strategy.validate(context, &object));
                errors
            }
            Some(old) if subresource == "status" => strategy.update_status(context, &mut object, old)?,
            Some(old) => {
                strategy.prepare_for_update(context, &mut object, old)?;
                strategy.validate_update(context, &object, old)
            }
        };
        if !errors.is_empty() {
            return Err(attributes.invalid(&errors));
        }
        if subresource != "status" {
            strategy.canonicalize(&mut object);
        }
        attributes.object = Some(object);
        for plugin in &self.plugins {
            plugin.validate(&attributes).await?;
        }
        Ok(attributes.object.take().unwrap().into_json())
    }
}

fn attributes<'a>(
    context: &'a Context<'a>,
    definition: &'a Definition,
    (version, subresource): (&'a str, &'a str),
    (namespace, name): (&'a str, &'a str),
    object: Option<Value>,
    old: Option<&'a Draft>,
) -> Attributes<'a> {
    Attributes {
        operation: match (&object, old) {
            (None, _) => Operation::Delete,
            (Some(_), None) => Operation::Create,
            (Some(_), Some(_)) => Operation::Update,
        },
        definition,
        version,
        subresource,
        namespace,
        name,
        object: object.map(Draft::from),
        old,
        context,
        options: &Value::Null,
        empties: Arc::default(),
        audited: gardener_apiserver::audit::Audited::default(),
        until: None,
        with_collection: false,
        warnings: Warnings::default(),
        reinvocation: Reinvocation::default(),
    }
}
