//! Names of things in the store: topics and keys.

use std::fmt;
use std::sync::Arc;

/// What one ordered map and one event window are kept for: `<group>/<resource>`; the core group is empty (`/pods`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Topic(Arc<str>);

impl Topic {
    /// The topic of a resource, `apps` and `deployments` giving `apps/deployments`.
    pub fn new(group: &str, resource: &str) -> Self {
        Self(format!("{group}/{resource}").into())
    }

    /// The topic as text, `<group>/<resource>`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn from_text(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Where one value lives.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The resource.
    pub topic: Topic,
    /// `<cluster>/<namespace>/<name>`, or `<cluster>/<name>` for what is in no namespace.
    pub path: Arc<str>,
}

impl Key {
    /// The key of `path` in `topic`.
    pub fn new(topic: Topic, path: impl Into<Arc<str>>) -> Self {
        Self {
            topic,
            path: path.into(),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.topic, self.path)
    }
}
