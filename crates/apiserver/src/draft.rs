//! An object on its way through a write: [`Draft`]. What a written object is made of stands in [`crate::registry`].

use std::any::Any;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{meta, untracked};

/// An object as JSON, and as the type that rules read it as. Each is made of the other when somebody asks for it, and kept: strategies and plugins,
/// one after the other, ask for the same. Whoever takes the JSON to change it makes the type forgotten, and the other way round.
///
/// The type has no managedFields. No rule looks at them, and they are a good part of most objects.
#[derive(Default)]
pub struct Draft {
    json: OnceLock<Value>,
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
            typed: Mutex::default(),
            managed_fields: Mutex::default(),
            made: false,
        }
    }
}

impl Draft {
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
    pub fn read_with<K: DeserializeOwned>(&self, of_spec: Option<&[&str]>) -> Result<K, serde_json::Error> {
        untracked::read(self, of_spec)
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
        self.json.take().unwrap_or_else(|| self.made())
    }

    fn json(&self) -> &Value {
        self.json.get_or_init(|| self.made())
    }

    /// The JSON that the type makes, to be kept: the managedFields move into it.
    fn made(&self) -> Value {
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
        if self.json.get().is_none() {
            let json = self.made();
            self.json = OnceLock::from(json);
        }
        *self.typed.get_mut() = None;
        self.made = false;
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
