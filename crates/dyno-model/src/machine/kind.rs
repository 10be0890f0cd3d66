//! Kinds of parts of a machine's storage.

use std::fmt;

/// Kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    Disk,
    Flash,
    Cache,
    Stripe,
    Mirror,
    Race,
    Raid5,
    Lun,
    Channel,
    Empirical,
    Volume,
}

impl PartKind {
    /// All kinds in the order in which errors list them.
    pub const ALL: [Self; 11] = [
        Self::Disk,
        Self::Flash,
        Self::Cache,
        Self::Stripe,
        Self::Mirror,
        Self::Race,
        Self::Raid5,
        Self::Lun,
        Self::Channel,
        Self::Empirical,
        Self::Volume,
    ];

    /// Returns the word after `kind =`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Flash => "flash",
            Self::Cache => "cache",
            Self::Stripe => "stripe",
            Self::Mirror => "mirror",
            Self::Race => "race",
            Self::Raid5 => "raid5",
            Self::Lun => "lun",
            Self::Channel => "channel",
            Self::Empirical => "empirical",
            Self::Volume => "volume",
        }
    }

    /// Returns true if a part of this kind is over other parts.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Cache | Self::Stripe | Self::Mirror | Self::Race | Self::Raid5 | Self::Lun)
    }

    /// Returns true if each part of this kind is over a single device.
    pub const fn is_single(self) -> bool {
        matches!(self, Self::Cache | Self::Lun)
    }
}

impl fmt::Display for PartKind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}
