//! What a container sees in its file system: the secrets and config maps that its pod mounts, and its arguments.

use k8s_openapi::api::core::v1::{ConfigMap, Container, KeyToPath, Pod, Secret, Volume};
use kube::{Api, Client};

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    /// Nothing is mounted there.
    #[error("no volume is mounted at {0}")]
    NotMounted(String),
    /// The mounted object has no such key.
    #[error("{object} has no key for {path}")]
    NoKey {
        /// The mounted object.
        object: String,
        /// The path asked for.
        path: String,
    },
    /// The object cannot be read.
    #[error(transparent)]
    Api(#[from] kube::Error),
    /// The file is no text.
    #[error("{0} is no text")]
    NoText(String),
}

/// The files of one container.
pub(crate) struct Files<'a> {
    client: Client,
    pod: &'a Pod,
    container: &'a Container,
}

impl<'a> Files<'a> {
    pub(crate) fn new(client: Client, pod: &'a Pod, container: &'a Container) -> Self {
        Self { client, pod, container }
    }

    /// The values of an argument `--name=value`, in order; commands count as arguments.
    pub(crate) fn arguments(&self, name: &str) -> Vec<&'a str> {
        let all = self.container.command.iter().chain(&self.container.args).flatten();
        let prefix = format!("--{name}=");
        all.filter_map(|argument| argument.strip_prefix(prefix.as_str()))
            .collect()
    }

    /// The last value of an argument.
    pub(crate) fn argument(&self, name: &str) -> Option<&'a str> {
        self.arguments(name).last().copied()
    }

    /// The file that an argument names.
    pub(crate) async fn file_of(&self, argument: &str) -> Result<String, FileError> {
        let path = self
            .argument(argument)
            .ok_or_else(|| FileError::NotMounted(format!("--{argument}")))?;
        self.read(path).await
    }

    /// A file.
    pub(crate) async fn read(&self, path: &str) -> Result<String, FileError> {
        let mounts = self.container.volume_mounts.iter().flatten();
        let mount = mounts
            .filter(|mount| {
                path.strip_prefix(mount.mount_path.trim_end_matches('/'))
                    .is_some_and(|rest| rest.starts_with('/') || rest.is_empty())
            })
            .max_by_key(|mount| mount.mount_path.len())
            .ok_or_else(|| FileError::NotMounted(path.to_owned()))?;
        let inside = match &mount.sub_path {
            Some(sub) => sub.clone(),
            None => path
                .trim_start_matches(mount.mount_path.trim_end_matches('/'))
                .trim_start_matches('/')
                .to_owned(),
        };
        let volumes = self.pod.spec.iter().filter_map(|spec| spec.volumes.as_ref()).flatten();
        let volume = volumes
            .into_iter()
            .find(|volume| volume.name == mount.name)
            .ok_or_else(|| FileError::NotMounted(path.to_owned()))?;
        self.read_volume(volume, &inside, path).await
    }

    async fn read_volume(&self, volume: &Volume, inside: &str, path: &str) -> Result<String, FileError> {
        if let Some(secret) = &volume.secret {
            return self
                .read_secret(
                    secret.secret_name.as_deref().unwrap_or_default(),
                    secret.items.as_deref(),
                    inside,
                    path,
                )
                .await;
        }
        if let Some(map) = &volume.config_map {
            return self
                .read_config_map(&map.name, map.items.as_deref(), inside, path)
                .await;
        }
        let sources = volume
            .projected
            .as_ref()
            .and_then(|projected| projected.sources.as_deref())
            .unwrap_or_default();
        for source in sources {
            let found = if let Some(secret) = &source.secret {
                self.read_secret(&secret.name, secret.items.as_deref(), inside, path)
                    .await
            } else if let Some(map) = &source.config_map {
                self.read_config_map(&map.name, map.items.as_deref(), inside, path)
                    .await
            } else {
                continue;
            };
            match found {
                Err(FileError::NoKey { .. }) => {}
                other => return other,
            }
        }
        Err(FileError::NotMounted(path.to_owned()))
    }

    fn namespace(&self) -> String {
        super::namespace(self.pod)
    }

    async fn read_secret(
        &self,
        name: &str,
        items: Option<&[KeyToPath]>,
        inside: &str,
        path: &str,
    ) -> Result<String, FileError> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace());
        let secret = api.get(name).await?;
        let data = key_of(items, inside).and_then(|key| secret.data.as_ref()?.get(key).cloned());
        let bytes = data.ok_or_else(|| FileError::NoKey {
            object: format!("Secret {name}"),
            path: path.to_owned(),
        })?;
        String::from_utf8(bytes.0).map_err(|_| FileError::NoText(path.to_owned()))
    }

    async fn read_config_map(
        &self,
        name: &str,
        items: Option<&[KeyToPath]>,
        inside: &str,
        path: &str,
    ) -> Result<String, FileError> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace());
        let map = api.get(name).await?;
        let data = key_of(items, inside).and_then(|key| map.data.as_ref()?.get(key).cloned());
        data.ok_or_else(|| FileError::NoKey {
            object: format!("ConfigMap {name}"),
            path: path.to_owned(),
        })
    }
}

/// The key that is shown at a path inside a volume.
fn key_of<'a>(items: Option<&'a [KeyToPath]>, inside: &'a str) -> Option<&'a str> {
    match items {
        None => Some(inside),
        Some(items) => items
            .iter()
            .find(|item| item.path == inside)
            .map(|item| item.key.as_str()),
    }
}
