//! How many requests are served at once where nobody wants priority and fairness: those beyond are refused. Watches and others that last do not count.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::user::UserInfo;

/// Places for requests: for those that read, and for the others.
#[derive(Debug)]
pub struct InFlight {
    reads: Option<Arc<Semaphore>>,
    writes: Option<Arc<Semaphore>>,
}

/// All places are taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Full;

impl InFlight {
    /// For so many that read, and so many others; 0 stands for any number.
    pub fn new(reads: usize, writes: usize) -> Self {
        let places = |count: usize| (count > 0).then(|| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS))));
        Self {
            reads: places(reads),
            writes: places(writes),
        }
    }

    /// A place for a request, for as long as the answer is kept. None where it needs none: there are any number, or it comes from somebody who may do
    /// everything.
    ///
    /// # Errors
    /// [`Full`].
    pub(crate) fn place(&self, verb: &str, user: &UserInfo) -> Result<Option<OwnedSemaphorePermit>, Full> {
        let places = match verb {
            "get" | "list" | "watch" => &self.reads,
            _ => &self.writes,
        };
        let Some(places) = places else { return Ok(None) };
        match Arc::clone(places).try_acquire_owned() {
            Ok(place) => Ok(Some(place)),
            Err(_) if user.is_master() => Ok(None),
            Err(_) => Err(Full),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user::MASTERS;

    #[test]
    fn only_so_many_are_served_at_once() {
        let (jane, admin) = (UserInfo::new("jane", &[]), UserInfo::new("admin", &[MASTERS]));
        let own = InFlight::new(1, 2);
        let first = own.place("list", &jane).unwrap();
        assert!(first.is_some());
        assert_eq!(own.place("get", &jane).unwrap_err(), Full);
        assert!(own.place("get", &admin).unwrap().is_none());
        let writes = [own.place("create", &jane).unwrap(), own.place("post", &admin).unwrap()];
        assert!(writes.iter().all(Option::is_some));
        assert_eq!(own.place("delete", &jane).unwrap_err(), Full);
        drop(first);
        assert!(own.place("get", &jane).is_ok());
        assert!(InFlight::new(0, 0).place("get", &jane).unwrap().is_none());
    }
}
