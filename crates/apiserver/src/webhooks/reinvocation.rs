//! Which plugins run again: a webhook that changed an object makes the whole chain run a second time, and in it those webhooks that were
//! asked before the change and want to be asked again.

use std::collections::BTreeSet;

use serde_json::Value;

/// What one request's admission remembers between its two rounds.
#[derive(Default)]
pub struct Reinvocation {
    again: bool,
    is_second: bool,
    /// The object as the webhooks left it.
    last: Option<Value>,
    /// Webhooks asked in this round that may be asked again.
    asked: BTreeSet<String>,
    /// Webhooks to ask in the second round.
    required: BTreeSet<String>,
}

impl Reinvocation {
    /// Begins the second round, if there is to be one.
    pub(crate) fn begin(&mut self) -> bool {
        let begins = self.again && !self.is_second;
        self.is_second |= begins;
        begins
    }

    pub(super) fn is_second(&self) -> bool {
        self.is_second
    }

    /// The webhooks' turn comes: what other plugins changed since the last one concerns all of them.
    pub(super) fn turn(&mut self, object: Option<&Value>) {
        if self.is_second && self.last.as_ref() != object {
            self.require();
        }
    }

    pub(super) fn is_required(&self, uid: &str) -> bool {
        self.required.contains(uid)
    }

    /// A webhook changed the object.
    pub(super) fn changed(&mut self) {
        self.require();
        self.again = true;
    }

    /// A webhook that may be asked again was asked.
    pub(super) fn asked(&mut self, uid: &str) {
        self.asked.insert(uid.to_owned());
    }

    /// The webhooks' turn is over.
    pub(super) fn leave(&mut self, object: Option<&Value>) {
        // only a second round asks
        self.last = if self.again { object.cloned() } else { None };
    }

    fn require(&mut self) {
        self.required.append(&mut self.asked);
    }
}
