//! Number of I/Os of an execution of a statement: the counted distribution, and random numbers with another mean.

use serde::{Deserialize, Serialize};

use crate::kernel::Stream;

/// Distribution of the counted numbers of I/Os: each number with its share of the executions.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Counts {
    /// Numbers of I/Os of an execution.
    pub count: Vec<u64>,
    /// Share of the executions with each number.
    pub share: Vec<f64>,
}

impl Counts {
    /// Returns true if no execution has any I/O.
    pub fn is_empty(&self) -> bool {
        self.count.is_empty()
    }

    /// Returns the mean number of I/Os of an execution.
    pub fn mean(&self) -> f64 {
        let all: f64 = self.share.iter().sum();
        let sum: f64 = self.count.iter().zip(&self.share).map(|(&count, share)| count as f64 * share).sum();
        if all > 0.0 { sum / all } else { 0.0 }
    }

    /// Checks that each number has a share.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        let sound = self.share.iter().all(|share| share.is_finite() && *share >= 0.0);
        if self.count.len() != self.share.len() || !sound {
            return Err("each count must have a share from 0".into());
        }
        if !self.is_empty() && self.share.iter().sum::<f64>() <= 0.0 {
            return Err("a count must have a share above 0".into());
        }
        Ok(())
    }

    /// Returns a random number from the counted distribution.
    fn counted(&self, dice: &mut Stream) -> u64 {
        let mut left = dice.unit() * self.share.iter().sum::<f64>();
        for (&count, share) in self.count.iter().zip(&self.share) {
            left -= share;
            if left < 0.0 {
                return count;
            }
        }
        self.count.last().copied().unwrap_or(0)
    }

    /// Returns a random number whose mean is `mean`: each I/O that was counted takes place with the same probability,
    /// or, for a larger mean, each of the other `references` becomes an I/O with the same probability.
    pub fn draw(&self, mean: f64, references: u64, dice: &mut Stream) -> u64 {
        let (counted, before) = (if self.is_empty() { 0 } else { self.counted(dice) }, self.mean());
        let mut chances = |number: u64, p: f64| (0..number).filter(|_| dice.chance(p)).count() as u64;
        if mean < before {
            return chances(counted, mean / before);
        }
        let others = references as f64 - before;
        if mean > before && others > 0.0 {
            return counted + chances(references.saturating_sub(counted), (mean - before) / others);
        }
        counted
    }
}
