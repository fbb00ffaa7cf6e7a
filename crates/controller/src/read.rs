//! Reading objects that nobody follows: [`Read`]. What is followed is read from an [`crate::Informer`].

use kube::api::ListParams;
use kube::{Api, Error, Resource};
use serde::de::DeserializeOwned;

use crate::raw::Raw;

/// Reads objects as controllers want them: without their managedFields, which are the larger half of many and nobody looks at. Who does takes
/// [`Api::get`] and its like.
pub trait Read<K> {
    /// The object of this name.
    ///
    /// # Errors
    /// What the API says.
    fn read(&self, name: &str) -> impl Future<Output = Result<K, Error>> + Send;

    /// The object of this name, if there is one.
    ///
    /// # Errors
    /// What the API says otherwise.
    fn read_opt(&self, name: &str) -> impl Future<Output = Result<Option<K>, Error>> + Send;

    /// The selected objects.
    ///
    /// # Errors
    /// What the API says.
    fn read_list(&self, selected: &ListParams) -> impl Future<Output = Result<Vec<K>, Error>> + Send;
}

impl<K: Resource + Clone + DeserializeOwned> Read<K> for Api<K> {
    fn read(&self, name: &str) -> impl Future<Output = Result<K, Error>> + Send {
        let api = Raw::api(self.clone());
        async move { api.get(name).await?.read().map_err(Error::SerdeError) }
    }

    fn read_opt(&self, name: &str) -> impl Future<Output = Result<Option<K>, Error>> + Send {
        let api = Raw::api(self.clone());
        async move {
            let found = api.get_opt(name).await?;
            found.map(|found| found.read().map_err(Error::SerdeError)).transpose()
        }
    }

    fn read_list(&self, selected: &ListParams) -> impl Future<Output = Result<Vec<K>, Error>> + Send {
        let api = Raw::api(self.clone());
        async move {
            let list = api.list(selected).await?;
            let objects = list.items.iter().map(Raw::read);
            objects.collect::<Result<_, _>>().map_err(Error::SerdeError)
        }
    }
}
