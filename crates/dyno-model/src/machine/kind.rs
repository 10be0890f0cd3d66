//! The kinds of parts that a machine's storage is made of.

use std::fmt;

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    Disk,
    Flash,
    Cache,
    Stripe,
    Mirror,
    Lun,
    Channel,
    Empirical,
}

impl PartKind {
    /// All of them, as errors list them.
    pub const ALL: [Self; 8] =
        [Self::Disk, Self::Flash, Self::Cache, Self::Stripe, Self::Mirror, Self::Lun, Self::Channel, Self::Empirical];

    /// The word after `kind =`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Flash => "flash",
            Self::Cache => "cache",
            Self::Stripe => "stripe",
            Self::Mirror => "mirror",
            Self::Lun => "lun",
            Self::Channel => "channel",
            Self::Empirical => "empirical",
        }
    }

    /// Does it stand over others?
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Cache | Self::Stripe | Self::Mirror | Self::Lun)
    }

    /// Does it stand over one each?
    pub const fn is_single(self) -> bool {
        matches!(self, Self::Cache | Self::Lun)
    }
}

impl fmt::Display for PartKind {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(self.name())
    }
}
