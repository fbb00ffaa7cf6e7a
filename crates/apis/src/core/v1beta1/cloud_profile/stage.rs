//! Where a version stands in its life: [VER-10] by classification and expiration date, [VER-12] by lifecycle.

use k8s_openapi::jiff::Timestamp;

use super::*;

/// Where a version stands in its life [VER-10], [VER-12].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Its life has not begun.
    Unavailable,
    /// For those who choose it.
    Preview,
    /// Recommended, or not classified.
    Supported,
    /// About to end.
    Deprecated,
    /// At its end.
    Expired,
}

impl Stage {
    /// The stage of a name as the API has it; what is no name of a stage is taken as `supported`.
    pub fn of(name: &str) -> Self {
        match name {
            "unavailable" => Self::Unavailable,
            "preview" => Self::Preview,
            "deprecated" => Self::Deprecated,
            "expired" => Self::Expired,
            _ => Self::Supported,
        }
    }

    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unavailable => "unavailable",
            Self::Preview => "preview",
            Self::Supported => "supported",
            Self::Deprecated => "deprecated",
            Self::Expired => "expired",
        }
    }

    /// Whether shoots and pools may be created with a version in this stage.
    pub fn is_active(self) -> bool {
        !matches!(self, Self::Expired | Self::Unavailable)
    }

    fn at(
        classification: Option<&str>,
        expiration: Option<Timestamp>,
        lifecycle: &[LifecycleStage],
        now: Timestamp,
    ) -> Self {
        if lifecycle.is_empty() {
            return match (classification, expiration) {
                (_, Some(expiration)) if expiration <= now => Self::Expired,
                (Some(classification), _) => Self::of(classification),
                (None, _) => Self::Supported,
            };
        }
        lifecycle
            .iter()
            .rev()
            .find(|stage| stage.start_time.as_ref().is_none_or(|start| start.0 <= now))
            .map_or(Self::Unavailable, |stage| Self::of(&stage.classification))
    }
}

/// The times at which a version comes into another stage.
fn turns(expiration: Option<Timestamp>, lifecycle: &[LifecycleStage]) -> Vec<Timestamp> {
    match lifecycle.is_empty() {
        true => expiration.into_iter().collect(),
        false => {
            let starts = lifecycle.iter().filter_map(|stage| stage.start_time.as_ref());
            starts.map(|start| start.0).collect()
        }
    }
}

impl ExpirableVersion {
    /// The times at which the version comes into another stage.
    pub fn turns(&self) -> Vec<Timestamp> {
        turns(self.expiration_date.as_ref().map(|date| date.0), &self.lifecycle)
    }

    /// The stage of the version at a time.
    pub fn stage(&self, now: Timestamp) -> Stage {
        let expiration = self.expiration_date.as_ref().map(|date| date.0);
        Stage::at(self.classification.as_deref(), expiration, &self.lifecycle, now)
    }
}

impl MachineImage {
    /// What the versions have in common with those of Kubernetes.
    pub fn expirable_versions(&self) -> Vec<ExpirableVersion> {
        self.versions.iter().map(MachineImageVersion::expirable).collect()
    }
}

impl MachineImageVersion {
    /// What the version has in common with those of Kubernetes.
    pub fn expirable(&self) -> ExpirableVersion {
        ExpirableVersion {
            classification: self.classification.clone(),
            expiration_date: self.expiration_date.clone(),
            lifecycle: self.lifecycle.clone(),
            version: self.version.clone(),
        }
    }

    /// The times at which the version comes into another stage.
    pub fn turns(&self) -> Vec<Timestamp> {
        turns(self.expiration_date.as_ref().map(|date| date.0), &self.lifecycle)
    }

    /// The stage of the version at a time, as for Kubernetes versions.
    pub fn stage(&self, now: Timestamp) -> Stage {
        let expiration = self.expiration_date.as_ref().map(|date| date.0);
        Stage::at(self.classification.as_deref(), expiration, &self.lifecycle, now)
    }
}
