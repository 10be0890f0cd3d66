//! A column of numbers as it is given, what is asked of it, and what is found.

use crate::moments::Moments;
use crate::ranks::{KolmogorovSmirnov, MannWhitney};

/// Largest product of the counts of a pair for which ties are told one by one.
pub const SMALL_PAIR: usize = 10_000;

/// Values as they were read: one number of a group and of a block for each, or none at all.
#[derive(Clone, Debug, Default)]
pub struct Piece<T> {
    /// The values, without missing ones.
    pub values: Vec<T>,
    /// Number of the group of each value; empty: all belong to group 0.
    pub groups: Vec<u32>,
    /// Number of the block of each value; empty: there are no blocks.
    pub blocks: Vec<u32>,
    /// Number of the file, for finding a value again.
    pub file: u32,
    /// Row of the first value in its file, from 0.
    pub first_row: u64,
    /// Row of each value after the first row, where rows were left out; empty: every row is there.
    pub rows: Vec<u32>,
}

impl<T> Piece<T> {
    pub(super) fn group(&self, at: usize) -> usize {
        self.groups.get(at).map_or(0, |&g| g as usize)
    }

    pub(super) fn row(&self, at: usize) -> u64 {
        self.first_row + self.rows.get(at).map_or(at as u64, |&r| u64::from(r))
    }
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// Number of groups; every group number is below it.
    pub groups: usize,
    /// Number of blocks; 0 without.
    pub blocks: usize,
    /// Quantiles, each within 0..=1.
    pub quantiles: Vec<f64>,
    /// Level of the quantiles' intervals.
    pub level: f64,
    /// How many of the longest to name.
    pub longest: usize,
    /// Whether fences and the median absolute deviation are wanted.
    pub fences: bool,
}

/// A quantile with the order statistics around it; NaN where there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileValue {
    /// Which quantile.
    pub q: f64,
    /// Type 7 value.
    pub value: f64,
    /// Lower end for independent values.
    pub low: f64,
    /// Upper end for independent values.
    pub high: f64,
}

/// Values beyond fences (see `python/dbdyno/stats/outliers.py` for the rules).
#[derive(Clone, Debug, PartialEq)]
pub struct Fences {
    /// Q1 - 3 IQR, Q1 - 1.5 IQR, Q3 + 1.5 IQR, Q3 + 3 IQR (Tukey).
    pub ends: [f64; 4],
    /// How many lie below the first, below the second, above the third, above the fourth.
    pub beyond: [u64; 4],
    /// Median absolute deviation from the median.
    pub mad: f64,
    /// How many have a modified z beyond 3.5.
    pub modified_z: u64,
    /// How many lie more than six standard deviations above the mean.
    pub six_sigma: u64,
}

/// All of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupDescription {
    /// Count, mean (less the common `shift`), squared deviations.
    pub moments: Moments,
    /// Smallest value; NaN without values.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// In the order asked.
    pub quantiles: Vec<QuantileValue>,
    /// (bucket, count); see [`crate::signed`].
    pub histogram: Vec<(u32, u64)>,
    /// Where asked.
    pub fences: Option<Fences>,
}

/// A group within a block.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockDescription {
    /// Number of the group.
    pub group: u32,
    /// Number of the block.
    pub block: u32,
    /// Count, mean (less the common `shift`), squared deviations.
    pub moments: Moments,
    /// Type 7 values in the order asked.
    pub quantiles: Vec<f64>,
}

/// One of the longest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Longest {
    /// The value.
    pub value: f64,
    /// Number of its group.
    pub group: u32,
    /// Number of its file.
    pub file: u32,
    /// Its row in the file, from 0.
    pub row: u64,
}

/// Everything about the column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// What was taken from every value before its moments were formed: the smallest value, where
    /// all lie within a factor of two of it (then the subtraction is exact, and the means keep the
    /// digits in which groups differ), else 0.
    pub shift: f64,
    /// One per group.
    pub groups: Vec<GroupDescription>,
    /// Rank statistics of group 1 against group 0, when there are two groups with values.
    pub pair: Option<(MannWhitney, KolmogorovSmirnov)>,
    /// How often each distinct value occurs in both groups of a small pair together (product of the
    /// counts to [`SMALL_PAIR`]), rising: what an exact p needs.
    pub tied: Vec<u64>,
    /// Twice the sum of the mid-ranks of each group, and the sum of t^3 - t over ties, when there
    /// are more than two groups.
    pub rank_sums: Option<(Vec<u128>, u128)>,
    /// One per group and block with values.
    pub blocks: Vec<BlockDescription>,
    /// Largest first; of equal ones the later.
    pub longest: Vec<Longest>,
}
