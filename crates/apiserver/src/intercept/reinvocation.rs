//! Which plugins run again: a webhook or a policy that changed an object makes the whole chain run a second time, and in it those webhooks and
//! policies that acted before the change and want to act again.

use std::collections::BTreeSet;

use serde_json::Value;

/// What one request's admission remembers between its two rounds.
#[derive(Default)]
pub struct Reinvocation {
    again: bool,
    is_second: bool,
    webhooks: Acted,
    policies: Acted,
}

/// What one plugin remembers.
#[derive(Default)]
struct Acted {
    /// The object as the plugin left it.
    last: Option<Value>,
    /// Who acted and may act again.
    acted: BTreeSet<String>,
    /// Who is to act in the second round.
    required: BTreeSet<String>,
}

/// The plugins that may run again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Webhooks,
    Policies,
}

impl Acted {
    fn require(&mut self) {
        self.required.append(&mut self.acted);
    }
}

impl Reinvocation {
    /// Begins the second round, if there is to be one.
    pub(crate) fn begin(&mut self) -> bool {
        let begins = self.again && !self.is_second;
        self.is_second |= begins;
        begins
    }

    /// The number of the round, from 0.
    pub(crate) fn round(&self) -> usize {
        usize::from(self.is_second)
    }

    fn of(&mut self, who: Who) -> &mut Acted {
        match who {
            Who::Webhooks => &mut self.webhooks,
            Who::Policies => &mut self.policies,
        }
    }

    /// A plugin's turn comes: what others changed since the last one concerns all of its own.
    pub(crate) fn turn(&mut self, who: Who, object: Option<&Value>) {
        let is_second = self.is_second;
        let own = self.of(who);
        if is_second && own.last.as_ref() != object {
            own.require();
        }
    }

    /// Whether one is left out of this round.
    pub(crate) fn leaves_out(&mut self, who: Who, uid: &str) -> bool {
        self.is_second && !self.of(who).required.contains(uid)
    }

    /// One changed the object.
    pub(crate) fn changed(&mut self, who: Who) {
        self.of(who).require();
        self.again = true;
    }

    /// One that may act again has acted.
    pub(crate) fn acted(&mut self, who: Who, uid: &str) {
        self.of(who).acted.insert(uid.to_owned());
    }

    /// A plugin's turn is over.
    pub(crate) fn leave(&mut self, who: Who, object: Option<&Value>) {
        // only a second round asks, which webhooks begin last
        let asked = self.again || who == Who::Policies;
        self.of(who).last = if asked { object.cloned() } else { None };
    }
}
