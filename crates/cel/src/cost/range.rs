//! Costs and sizes between a least and a most.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) min: u64,
    pub(super) max: u64,
}

fn factor(value: u64, factor: f64) -> u64 {
    let product = (value as f64 * factor).ceil();
    if product >= u64::MAX as f64 {
        u64::MAX
    } else {
        product as u64
    }
}

impl Range {
    pub(super) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    pub(super) fn exactly(value: u64) -> Self {
        Self { min: value, max: value }
    }

    pub(super) fn up_to(max: u64) -> Self {
        Self { min: 0, max }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_add(other.min),
            max: self.max.saturating_add(other.max),
        }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self {
            min: self.min.saturating_mul(other.min),
            max: self.max.saturating_mul(other.max),
        }
    }

    /// Rounded up.
    pub(super) fn by(self, by: f64) -> Self {
        Self {
            min: factor(self.min, by),
            max: factor(self.max, by),
        }
    }

    /// What covers both.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
        }
    }

    /// What covers all; nothing without any.
    pub(super) fn any_of(ranges: impl Iterator<Item = Self>) -> Self {
        ranges.reduce(Self::or).unwrap_or_default()
    }
}
