//! From typed rules to the machinery's JSON: [`GardenKind`] is what a kind knows about itself, [`TypedStrategy`] decodes, asks it, encodes.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use gardener_apimachinery::field::{ErrorList, go_quote};
use gardener_apimachinery::{ApiError, names, quantity};
use gardener_apiserver::definition::{Context, Draft, Nameless, Strategy};
use gardener_apiserver::meta;
use gardener_apiserver::selectable::Selectable;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use k8s_openapi::{Metadata, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::features::Features;

/// The rules of one kind of the garden. All methods have a default for kinds without such a rule.
#[allow(unused_variables)]
pub trait GardenKind:
    Resource + Metadata<Ty = ObjectMeta> + Serialize + DeserializeOwned + Clone + PartialEq + Send + Sync + 'static
{
    /// Whether the server counts generations, [GAPI-30].
    const GENERATION: bool;
    /// Whether a PUT may leave out the resourceVersion, [GAPI-4].
    const UNCONDITIONAL: bool;
    /// Whether a request's version is the one that this type describes, so that defaults apply as it is decoded.
    const ONE_VERSION: bool = true;
    /// Only what was sent gets defaults: what is taken from the request, such as a namespace, is no ground for any.
    const DEFAULTED_AS_SENT: bool = false;
    /// The members of the specification that a change of the status depends on: that [`Self::prepare_status`], [`Self::check_status`] and
    /// [`Self::canonicalize`] look at, and write to metadata or status. None: all. Kinds whose specification is large and whose status is written
    /// often say it.
    const SPEC_FOR_STATUS: Option<&'static [&'static str]> = None;
    /// Subresources besides the status that are the object itself.
    const VIEWS: &'static [&'static str] = &[];
    /// By what selectors select, [GAPI-20], [GAPI-21].
    const FIELDS: &'static [Selectable] = &[];
    /// Whether [`Self::warn`] has anything to say.
    const WARNS: bool = false;

    /// Whether a new object keeps the status that it comes with.
    const KEEPS_STATUS: bool = false;
    /// Whether a change of the object changes its status, too.
    const UPDATE_KEEPS_SENT_STATUS: bool = false;
    /// Pointers to lists that are something else when they are empty than when they are not there, until the object is stored; `*` stands for
    /// any element of a list.
    const LISTS_KEPT_EMPTY: &'static [&'static str] = &[];
    /// Whether an object that comes without a name, and without the beginning of one, is given a name.
    const NAMES_NAMELESS: bool = false;

    /// Whether what is embedded in an object of a version, and is of other kinds, can be read.
    ///
    /// # Errors
    /// What Go's decoder says of it.
    fn decode_embedded(version: &str, object: &Value) -> Result<(), String> {
        Ok(())
    }
    /// Fills in what the user left out.
    fn set_defaults(&mut self, chance: u64) {}
    /// Amounts that are written back in canonical form.
    fn quantities(&mut self) -> Vec<&mut Quantity> {
        Vec::new()
    }
    /// Changes a new object before validation.
    fn prepare_create(&mut self, context: &Context<'_>) {}
    /// Changes an updated object before validation.
    fn prepare_update(&mut self, old: &Self, context: &Context<'_>) {}
    /// Changes an object that is updated through one of [`Self::VIEWS`] before validation; true: the generation rises.
    fn prepare_view(&mut self, old: &Self, context: &Context<'_>) -> bool {
        false
    }
    /// Changes an updated status before validation; true: the generation rises, [GAPI-36].
    fn prepare_status(&mut self, old: &Self, context: &Context<'_>) -> bool {
        false
    }
    /// Whether an update raises the generation; may remove operation annotations, [GAPI-31] – [GAPI-34].
    fn bumps(&mut self, old: &Self) -> bool {
        crate::generation::content_changed(self, old) || crate::generation::deletion_begins(self, old)
    }
    /// What is wrong with a new object.
    fn check(&self, context: &Context<'_>) -> ErrorList {
        ErrorList::new()
    }
    /// What is wrong with a change.
    fn check_update(&self, old: &Self, context: &Context<'_>) -> ErrorList {
        ErrorList::new()
    }
    /// What is wrong with a new object, or with a change, given the features that are on. Kinds with rules that depend on
    /// features in the middle of others have this one instead of the two above.
    fn check_with(&self, old: Option<&Self>, context: &Context<'_>, features: &Features) -> ErrorList {
        let mut errors = match old {
            None => self.check(context),
            Some(old) => self.check_update(old, context),
        };
        errors.extend(self.gated(old, features));
        errors
    }
    /// What is wrong with a change of the status.
    fn check_status(&self, old: &Self, context: &Context<'_>) -> ErrorList {
        ErrorList::new()
    }
    /// Brings a valid object into its stored form.
    fn canonicalize(&mut self) {}
    /// Cells of the table row, [GAPI-10] – [GAPI-19].
    fn cells(&self, now: Timestamp) -> Vec<Value>;
    /// What it has that is not switched on.
    fn gated(&self, old: Option<&Self>, features: &Features) -> ErrorList {
        ErrorList::new()
    }
    /// Sentences for `Warning` headers. Credentials are due when nobody rotated them for `rotation`.
    fn warn(&self, old: Option<&Self>, now: Timestamp, rotation: Duration) -> Vec<String> {
        Vec::new()
    }
    /// What is wrong with a name.
    fn name_errors(name: &str) -> Vec<String> {
        names::dns_subdomain(name)
    }
    /// Rewrites between versions of the kind.
    ///
    /// # Errors
    /// Tells why it cannot be converted.
    fn convert(object: &mut Value, from: &str, to: &str) -> Result<(), ApiError> {
        Ok(())
    }
}

/// The machinery's strategy for a [`GardenKind`].
pub struct TypedStrategy<K> {
    kind: PhantomData<fn() -> K>,
    rotation: Duration,
    features: Features,
}

impl<K> TypedStrategy<K> {
    /// The strategy of a garden where credentials should be rotated every `rotation`, and some features are on.
    pub fn new(rotation: Duration, features: Features) -> Self {
        Self {
            kind: PhantomData,
            rotation,
            features,
        }
    }
}

fn unfit<K: GardenKind>(why: impl fmt::Display) -> ApiError {
    ApiError::bad_request(format!(
        "{kind} in version {version} cannot be handled as a {kind}: {why}",
        kind = K::KIND,
        version = go_quote(K::VERSION),
    ))
}

/// The object of a write to be changed; [`Draft::set`] brings it back.
fn take<K: GardenKind>(object: &mut Draft) -> Result<K, ApiError> {
    object.take().map_err(unfit::<K>)
}

/// Runs the defaults and writes amounts in canonical form.
fn complete<K: GardenKind>(kind: &mut K, chance: u64) {
    kind.set_defaults(chance);
    for amount in kind.quantities() {
        if amount.0.is_empty() {
            amount.0 = "0".into();
        } else if let Ok(text) = quantity::canonical(&amount.0) {
            amount.0 = text.into_owned();
        }
    }
}

impl<K: GardenKind> TypedStrategy<K> {
    /// Defaults of what plugins have added, and of kinds that have defaults in one of their versions only.
    fn complete_admitted(kind: &mut K, chance: u64) {
        if !K::DEFAULTED_AS_SENT {
            complete(kind, chance);
        }
    }

    /// Findings that the machinery does not make itself.
    fn beyond_metadata(errors: ErrorList, object: &Value) -> ErrorList {
        if errors.is_empty() {
            return errors;
        }
        let own = meta::validate(object, K::name_errors);
        errors.into_iter().filter(|error| !own.contains(error)).collect()
    }
}

impl<K: GardenKind> Strategy for TypedStrategy<K> {
    fn decode_embedded(&self, version: &str, object: &Value) -> Result<(), String> {
        K::decode_embedded(version, object)
    }

    fn default(&self, context: &Context<'_>, object: &mut Value) {
        if !K::ONE_VERSION {
            return;
        }
        // no rule looks at managedFields: they need not go through the type
        let managed = meta::take_managed_fields(object);
        if let Ok(mut kind) = K::deserialize(&*object) {
            complete(&mut kind, context.chance);
            if let Ok(value) = serde_json::to_value(kind) {
                *object = value;
            }
        }
        if managed.is_some() {
            meta::set(object, "managedFields", managed);
        }
    }

    fn keeps_status_on_create(&self) -> bool {
        K::KEEPS_STATUS
    }

    fn update_keeps_sent_status(&self) -> bool {
        K::UPDATE_KEEPS_SENT_STATUS
    }

    fn lists_kept_empty(&self) -> &'static [&'static str] {
        K::LISTS_KEPT_EMPTY
    }

    fn nameless(&self) -> Nameless {
        match K::NAMES_NAMELESS {
            true => Nameless::Suffix,
            false => Nameless::Refused,
        }
    }

    fn prepare_for_create(&self, context: &Context<'_>, object: &mut Draft) -> Result<(), ApiError> {
        let mut kind = take::<K>(object)?;
        Self::complete_admitted(&mut kind, context.chance);
        kind.prepare_create(context);
        if K::GENERATION {
            kind.metadata_mut().generation = Some(1);
        }
        object.set(Arc::new(kind));
        Ok(())
    }

    fn validate(&self, context: &Context<'_>, object: &Draft) -> ErrorList {
        object.typed::<K>().map_or_else(
            |_| ErrorList::new(),
            |kind| Self::beyond_metadata(kind.check_with(None, context, &self.features), object),
        )
    }

    fn prepare_for_update(&self, context: &Context<'_>, object: &mut Draft, old: &Draft) -> Result<(), ApiError> {
        let mut kind = take::<K>(object)?;
        let before = old.typed::<K>().map_err(unfit::<K>)?;
        Self::complete_admitted(&mut kind, context.chance);
        kind.prepare_update(&before, context);
        if K::GENERATION {
            let bump = kind.bumps(&before);
            let generation = before.metadata().generation.unwrap_or_default() + i64::from(bump);
            kind.metadata_mut().generation = Some(generation);
        }
        object.set(Arc::new(kind));
        Ok(())
    }

    fn views(&self) -> &'static [&'static str] {
        K::VIEWS
    }

    fn update_view(
        &self,
        _: &str,
        context: &Context<'_>,
        object: &mut Draft,
        old: &Draft,
    ) -> Result<ErrorList, ApiError> {
        let mut kind = take::<K>(object)?;
        let before = old.typed::<K>().map_err(unfit::<K>)?;
        complete(&mut kind, context.chance);
        let bump = kind.prepare_view(&before, context);
        let generation = before.metadata().generation.unwrap_or_default() + i64::from(bump);
        kind.metadata_mut().generation = Some(generation);
        object.set(Arc::new(kind));
        Ok(self.validate_update(context, object, old))
    }

    fn owns_all_sent(&self) -> bool {
        true
    }

    fn registry(&self) -> Option<&'static str> {
        Some("/registry-gardener")
    }

    fn has_tables_of(&self, _subresource: &str) -> bool {
        false
    }

    fn validate_update(&self, context: &Context<'_>, object: &Draft, old: &Draft) -> ErrorList {
        let (Ok(kind), Ok(before)) = (object.typed::<K>(), old.typed::<K>()) else {
            return ErrorList::new();
        };
        // upstream tells what is wrong with the metadata here, too, behind what the machinery tells
        kind.check_with(Some(&before), context, &self.features)
    }

    fn update_status(&self, context: &Context<'_>, object: &mut Draft, old: &Draft) -> Result<ErrorList, ApiError> {
        let mut kind: K = object.read_with(K::SPEC_FOR_STATUS).map_err(unfit::<K>)?;
        let before: K = old.read_with(K::SPEC_FOR_STATUS).map_err(unfit::<K>)?;
        if kind.prepare_status(&before, context) && K::GENERATION {
            kind.metadata_mut().generation = Some(before.metadata().generation.unwrap_or_default() + 1);
        }
        let errors = kind.check_status(&before, context);
        kind.canonicalize();
        let made = serde_json::to_value(kind).map_err(unfit::<K>)?;
        let object = object.read_part_mut();
        let managed = meta::take_managed_fields(object);
        if let (Value::Object(members), Value::Object(mut made)) = (&mut *object, made) {
            for key in ["metadata", "status"] {
                match made.remove(key) {
                    Some(value) => drop(members.insert(key.to_owned(), value)),
                    None => drop(members.remove(key)),
                }
            }
        }
        if managed.is_some() {
            meta::set(object, "managedFields", managed);
        }
        Ok(errors)
    }

    fn stores_made_labels(&self) -> bool {
        true
    }

    fn reads_status_alone(&self) -> bool {
        K::SPEC_FOR_STATUS.is_some()
    }

    fn canonicalize(&self, object: &mut Draft) {
        let Ok(typed) = object.typed::<K>() else { return };
        let mut kind = K::clone(&typed);
        kind.canonicalize();
        // JSON that the type made need not be made again
        if !object.is_made() || *typed != kind {
            object.set(Arc::new(kind));
        }
    }

    fn warnings(&self, context: &Context<'_>, object: &Draft, old: Option<&Draft>) -> Vec<String> {
        if !K::WARNS {
            return Vec::new();
        }
        let old = old.and_then(|old| old.typed::<K>().ok());
        object.typed::<K>().map_or_else(
            |_| Vec::new(),
            |kind| kind.warn(old.as_deref(), context.now, self.rotation),
        )
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn allow_unconditional_update(&self) -> bool {
        K::UNCONDITIONAL
    }

    fn selectable_fields(&self) -> &[Selectable] {
        K::FIELDS
    }

    fn validate_name(&self, _: &Value, name: &str) -> Vec<String> {
        K::name_errors(name)
    }

    fn row(&self, now: Timestamp, object: &Value) -> Vec<Value> {
        K::deserialize(object).map_or_else(
            |_| {
                vec![
                    meta::name(object).into(),
                    gardener_apiserver::table::age(now, object).into(),
                ]
            },
            |kind| {
                let mut cells = vec![meta::name(object).into()];
                cells.extend(kind.cells(now));
                cells
            },
        )
    }

    fn convert(&self, object: &mut Value, from: &str, to: &str) -> Result<(), ApiError> {
        K::convert(object, from, to)
    }
}
