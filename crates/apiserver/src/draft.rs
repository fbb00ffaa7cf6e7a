//! An object on its way through a write: [`Draft`]. What a written object is made of stands in [`crate::registry`].

use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::unread::Unread;
use crate::untracked::Spec;
use crate::{meta, untracked};

/// An object as JSON, and as the type that rules read it as. Each is made of the other when somebody asks for it, and kept: strategies and plugins,
/// one after the other, ask for the same. Whoever takes the JSON to change it makes the type forgotten, and the other way round.
///
/// The type has no managedFields. No rule looks at them, and they are a good part of most objects.
///
/// Of an object whose status is written, most may be [`Unread`]: it is read when somebody asks for more than [`Self::read_part`].
#[derive(Default)]
pub struct Draft {
    json: OnceLock<Value>,
    /// The object's members that are read and those that are not, if some are not.
    apart: Option<(Value, Arc<Unread>)>,
    typed: Mutex<Option<Typed>>,
    /// The managedFields of an object that is a type only.
    managed_fields: Mutex<Option<Value>>,
    /// Whether the JSON is what the type makes.
    made: bool,
}

/// An object as a type, and how it becomes JSON.
struct Typed {
    object: Arc<dyn Any + Send + Sync>,
    to_json: fn(&(dyn Any + Send + Sync)) -> Value,
}

impl Typed {
    fn of<K: Serialize + Any + Send + Sync>(object: Arc<K>) -> Self {
        Self {
            object,
            to_json: |object| {
                let object = object.downcast_ref::<K>();
                // objects have text for keys, so that this does not fail
                object
                    .and_then(|object| serde_json::to_value(object).ok())
                    .unwrap_or_default()
            },
        }
    }
}

impl From<Value> for Draft {
    fn from(json: Value) -> Self {
        Self {
            json: OnceLock::from(json),
            apart: None,
            typed: Mutex::default(),
            managed_fields: Mutex::default(),
            made: false,
        }
    }
}

impl Draft {
    /// An object with some members that are not read.
    pub(crate) fn apart(read: Value, unread: Arc<Unread>) -> Self {
        Self {
            apart: Some((read, unread)),
            ..Self::default()
        }
    }

    /// Whether a part of the object is not read: the write is one to the status, and leaves it as it is stored.
    pub fn is_apart(&self) -> bool {
        self.apart.is_some()
    }

    /// What is not read of the object, if something is not.
    pub(crate) fn unread(&self) -> Option<&Arc<Unread>> {
        self.apart.as_ref().map(|(_, unread)| unread)
    }

    /// What is read of the object: what it says of its kind, its metadata and its status, and of most objects all the rest.
    pub fn read_part(&self) -> &Value {
        match &self.apart {
            Some((read, _)) => read,
            None => self.json(),
        }
    }

    /// As [`Self::read_part`], to be changed.
    pub fn read_part_mut(&mut self) -> &mut Value {
        if self.apart.is_none() {
            return self;
        }
        self.forget();
        self.json = OnceLock::new();
        match &mut self.apart {
            Some((read, _)) => read,
            None => unreachable!("looked at above"),
        }
    }

    /// The members that are read, and the others, if there are some.
    pub(crate) fn into_parts(mut self) -> (Value, Option<Arc<Unread>>) {
        match self.apart.take() {
            Some((read, unread)) => (read, Some(unread)),
            None => (self.into_json(), None),
        }
    }

    /// The JSON changes.
    fn forget(&mut self) {
        *self.typed.get_mut() = None;
        self.made = false;
    }

    /// The object as a type.
    ///
    /// # Errors
    /// The JSON does not fit.
    pub fn typed<K>(&self) -> Result<Arc<K>, serde_json::Error>
    where
        K: Serialize + DeserializeOwned + Any + Send + Sync,
    {
        let kept = self.typed.lock().as_ref().map(|typed| Arc::clone(&typed.object));
        if let Some(kept) = kept.and_then(|kept| kept.downcast().ok()) {
            return Ok(kept);
        }
        let made = Arc::new(untracked::read::<K>(self, None)?);
        *self.typed.lock() = Some(Typed::of(Arc::clone(&made)));
        Ok(made)
    }

    /// The object as a type with no more of its specification than these members; it is not kept. None: with all of them.
    ///
    /// # Errors
    /// The JSON does not fit.
    pub fn read_with<K: DeserializeOwned>(
        &self,
        of_spec: Option<&'static [&'static str]>,
    ) -> Result<K, serde_json::Error> {
        match (&self.apart, of_spec) {
            (Some((read, unread)), Some(wanted)) => {
                let spec = unread.part("spec", wanted);
                untracked::read(read, spec.as_deref().map(Spec::Instead))
            }
            _ => untracked::read(self, of_spec.map(Spec::Only)),
        }
    }

    /// The object as a type that can be changed and brought back by [`Self::set`].
    ///
    /// # Errors
    /// The JSON does not fit.
    pub fn take<K>(&mut self) -> Result<K, serde_json::Error>
    where
        K: Serialize + DeserializeOwned + Clone + Any + Send + Sync,
    {
        let typed = self.typed::<K>()?;
        // what nobody else holds need not be copied; without its JSON the object would be lost
        if self.json.get().is_some() {
            *self.typed.get_mut() = None;
        }
        Ok(Arc::unwrap_or_clone(typed))
    }

    /// Replaces the object, but for its managedFields.
    pub fn set<K: Serialize + Any + Send + Sync>(&mut self, object: Arc<K>) {
        self.fold();
        if let Some(mut json) = self.json.take() {
            *self.managed_fields.get_mut() = meta::take_managed_fields(&mut json);
        }
        self.typed = Mutex::new(Some(Typed::of(object)));
        self.made = true;
    }

    /// Whether the JSON is what a type makes, and not what somebody sent or changed.
    pub fn is_made(&self) -> bool {
        self.made
    }

    /// The object as JSON.
    pub fn into_json(mut self) -> Value {
        self.fold();
        self.json.take().unwrap_or_else(|| self.made())
    }

    fn json(&self) -> &Value {
        self.json.get_or_init(|| self.made())
    }

    /// Reads what is not read.
    fn fold(&mut self) {
        if let Some((mut read, unread)) = self.apart.take()
            && self.json.get().is_none()
        {
            unread.add_to(&mut read);
            self.json = OnceLock::from(read);
        }
    }

    /// The JSON that the parts make, or the type, to be kept: the managedFields move into it.
    fn made(&self) -> Value {
        if let Some((read, unread)) = &self.apart {
            let mut json = read.clone();
            unread.add_to(&mut json);
            return json;
        }
        let mut json = match &*self.typed.lock() {
            Some(typed) => (typed.to_json)(&*typed.object),
            None => return Value::Null,
        };
        if let Some(managed) = self.managed_fields.lock().take() {
            meta::set(&mut json, "managedFields", Some(managed));
        }
        json
    }
}

impl Deref for Draft {
    type Target = Value;

    fn deref(&self) -> &Value {
        self.json()
    }
}

impl DerefMut for Draft {
    fn deref_mut(&mut self) -> &mut Value {
        self.fold();
        if self.json.get().is_none() {
            let json = self.made();
            self.json = OnceLock::from(json);
        }
        self.forget();
        match self.json.get_mut() {
            Some(json) => json,
            None => unreachable!("made above"),
        }
    }
}

impl Clone for Draft {
    fn clone(&self) -> Self {
        Self::from(self.json().clone())
    }
}

impl fmt::Debug for Draft {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json().fmt(formatter)
    }
}
