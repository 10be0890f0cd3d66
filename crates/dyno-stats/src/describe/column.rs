//! Input column of a description, the request, and the result.

use crate::moments::Moments;
use crate::ranks::{KolmogorovSmirnov, MannWhitney};

/// Largest product of two groups' counts for which their ties are listed one by one.
pub const SMALL_PAIR: usize = 10_000;

/// Values as they were read, with the number of each value's group and block where there are groups and blocks.
#[derive(Clone, Debug, Default)]
pub struct Piece<T> {
    /// The values, without missing ones.
    pub values: Vec<T>,
    /// Number of the group of each value; empty if all belong to group 0.
    pub groups: Vec<u32>,
    /// Number of the block of each value; empty if there are no blocks.
    pub blocks: Vec<u32>,
    /// Number of the file, to find a value again.
    pub file: u32,
    /// Row of the first value in its file, from 0.
    pub first_row: u64,
    /// Row of each value, counted from `first_row`; empty if no row was left out.
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

/// Requested statistics of a column.
#[derive(Clone, Debug)]
pub struct Request {
    /// Number of groups; every group number is below it.
    pub groups: usize,
    /// Number of blocks; 0 for none.
    pub blocks: usize,
    /// Quantiles, each within 0..=1.
    pub quantiles: Vec<f64>,
    /// Level of the quantiles' intervals.
    pub level: f64,
    /// Number of the longest values to list.
    pub longest: usize,
    /// True if fences and the median absolute deviation are requested.
    pub fences: bool,
}

/// A quantile with its interval from order statistics; a figure that does not exist is NaN.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileValue {
    /// Probability of the quantile.
    pub q: f64,
    /// Value of the quantile by definition 7, the default of R and numpy.
    pub value: f64,
    /// Lower end of the interval for independent values.
    pub low: f64,
    /// Upper end of the interval for independent values.
    pub high: f64,
}

/// Fences and the numbers of values beyond them (see `python/dbdyno/stats/outliers.py` for the rules).
#[derive(Clone, Debug, PartialEq)]
pub struct Fences {
    /// Q1 - 3 IQR, Q1 - 1.5 IQR, Q3 + 1.5 IQR, Q3 + 3 IQR (Tukey).
    pub ends: [f64; 4],
    /// Numbers of values below the first, below the second, above the third, above the fourth end.
    pub beyond: [u64; 4],
    /// Median absolute deviation from the median.
    pub mad: f64,
    /// Number of values whose modified z-score is beyond 3.5.
    pub modified_z: u64,
    /// Number of values more than six standard deviations above the mean.
    pub six_sigma: u64,
}

/// Description of a group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupDescription {
    /// Count, mean (after subtraction of the common `shift`), and sum of squared deviations.
    pub moments: Moments,
    /// Smallest value; NaN without values.
    pub min: f64,
    /// Largest value; NaN without values.
    pub max: f64,
    /// Quantiles in the order requested.
    pub quantiles: Vec<QuantileValue>,
    /// Histogram as pairs of bucket and count; see [`crate::signed`] for the buckets.
    pub histogram: Vec<(u32, u64)>,
    /// Fences, if requested.
    pub fences: Option<Fences>,
}

/// A group within a block.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockDescription {
    /// Group number.
    pub group: u32,
    /// Block number.
    pub block: u32,
    /// Count, mean (after subtraction of the common `shift`), and sum of squared deviations.
    pub moments: Moments,
    /// Type 7 values in the order requested.
    pub quantiles: Vec<f64>,
}

/// One of the longest values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Longest {
    /// The value.
    pub value: f64,
    /// Number of the value's group.
    pub group: u32,
    /// Number of the value's file.
    pub file: u32,
    /// Row in the file, from 0.
    pub row: u64,
}

/// Description of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// Value subtracted from all values before their moments are formed: the smallest value if all are within a factor
    /// of two of it (then the subtraction is exact, and the means keep the digits in which groups differ), else 0.
    pub shift: f64,
    /// Description of each group.
    pub groups: Vec<GroupDescription>,
    /// Rank statistics of group 1 against group 0, if exactly two groups have values.
    pub pair: Option<(MannWhitney, KolmogorovSmirnov)>,
    /// Frequency of each distinct value in both groups of a pair combined, in rising order of the values, for an exact
    /// p; only if the product of the groups' counts is at most [`SMALL_PAIR`].
    pub tied: Vec<u64>,
    /// Twice the sum of the mid-ranks of each group, and the sum of t^3 - t over ties, if there are more than two
    /// groups.
    pub rank_sums: Option<(Vec<u128>, u128)>,
    /// Description of each group in each block with values.
    pub blocks: Vec<BlockDescription>,
    /// Longest values, largest first; of equal values, the later one first.
    pub longest: Vec<Longest>,
}
