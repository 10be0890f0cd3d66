//! Sampling from measured quantiles.
//!
//! A table of (probability, value) represents measured latencies without a formula for their distribution. Between two
//! points the logarithm of the value is linear in the probability: storage latencies span decades, and a straight line
//! in values would put too much weight at the upper end of each step. [`Table::of_values`] takes 81 points, 31 of them
//! in the last decile up to 1 - 1e-4, because these determine a log writer's waits.

use serde::{Deserialize, Serialize};

/// Quantiles; probabilities rise from 0 to 1, values are positive and do not fall.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(try_from = "Columns", into = "Columns")]
pub struct Table {
    points: Vec<(f64, f64)>,
}

/// Table in the form of a parameter file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Columns {
    probability: Vec<f64>,
    us: Vec<f64>,
}

/// Error in a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The table is too short, or the columns have different lengths.
    #[error("a table of quantiles needs two points or more, and as many values as probabilities")]
    Shape,
    /// A probability is out of order or range.
    #[error("the probabilities of a table must rise from 0 to 1 (point {0})")]
    Probability(usize),
    /// A value is not positive, or is lower than the one before.
    #[error("the values of a table must be positive and must not fall (point {0})")]
    Value(usize),
}

impl Table {
    /// Makes a table from points of (probability, value).
    ///
    /// # Errors
    /// The table is too short, out of order, or has values that are not positive.
    pub fn new(points: Vec<(f64, f64)>) -> Result<Self, TableError> {
        if points.len() < 2 {
            return Err(TableError::Shape);
        }
        let last = points.len() - 1;
        for (i, &(p, value)) in points.iter().enumerate() {
            let rises = i == 0 || points[i - 1].0 < p;
            if !rises || (i == 0 && p != 0.0) || (i == last && (p - 1.0).abs() > 0.0) {
                return Err(TableError::Probability(i));
            }
            let falls = i > 0 && points[i - 1].1 > value;
            if falls || !(value > 0.0 && value.is_finite()) {
                return Err(TableError::Value(i));
            }
        }
        Ok(Self { points })
    }

    /// Returns quantiles of measured values (type 7); values below 1e-9 count as 1e-9.
    ///
    /// # Errors
    /// The table is too short, out of order, or has values that are not positive.
    pub fn of_values(values: &[f64]) -> Result<Self, TableError> {
        let mut sorted: Vec<f64> = values.iter().map(|value| value.max(1e-9)).collect();
        sorted.sort_by(f64::total_cmp);
        if sorted.is_empty() {
            return Err(TableError::Shape);
        }
        let points = probabilities().into_iter().map(|p| (p, quantile_of(&sorted, p)));
        Self::new(points.collect())
    }

    /// Returns the value below which a share `p` lies.
    pub fn quantile(&self, p: f64) -> f64 {
        let after = self.points.partition_point(|&(at, _)| at <= p).min(self.points.len() - 1);
        let ((p0, v0), (p1, v1)) = (self.points[after.max(1) - 1], self.points[after.max(1)]);
        let share = ((p - p0) / (p1 - p0)).clamp(0.0, 1.0);
        v0 * libm::pow(v1 / v0, share)
    }

    /// Returns the mean. Between two points, values grow exponentially, so their mean there is the logarithmic mean of
    /// the two values.
    pub fn mean(&self) -> f64 {
        let step = |&[(p0, v0), (p1, v1)]: &[(f64, f64); 2]| {
            let ratio = v1 / v0;
            let mean = if ratio > 1.0 + 1e-9 { (v1 - v0) / libm::log(ratio) } else { v0 };
            (p1 - p0) * mean
        };
        self.points.windows(2).filter_map(|pair| pair.first_chunk::<2>()).map(step).sum()
    }

    /// Returns the points as pairs of probability and value.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }
}

/// Returns the probabilities: four in the first hundredth; 0.01 to 0.89 in steps of 0.02 (45); 31 from 0.9 to 1 - 1e-4,
/// at equal ratios of the probability that remains up to 1; and 1.
fn probabilities() -> Vec<f64> {
    let start = [0.0, 0.0005, 0.002, 0.005].into_iter();
    let body = start.chain((0..45).map(|i| 0.01 + f64::from(i) / 50.0));
    let tail = (0..31).map(|i| 1.0 - libm::pow(10.0, -1.0 - f64::from(i) / 10.0));
    body.chain(tail).chain([1.0]).collect()
}

/// Returns the type 7 quantile of sorted values, which must not be empty.
pub fn quantile_of(sorted: &[f64], p: f64) -> f64 {
    let at = p * (sorted.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64)
}

impl TryFrom<Columns> for Table {
    type Error = TableError;

    fn try_from(columns: Columns) -> Result<Self, TableError> {
        if columns.probability.len() != columns.us.len() {
            return Err(TableError::Shape);
        }
        Self::new(columns.probability.into_iter().zip(columns.us).collect())
    }
}

impl From<Table> for Columns {
    fn from(table: Table) -> Self {
        let (probability, us) = table.points.into_iter().unzip();
        Self { probability, us }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_two_points_the_logarithm_is_linear() {
        let table = Table::new(vec![(0.0, 10.0), (0.5, 10.0), (1.0, 1_000.0)]).unwrap();
        assert!((table.quantile(0.25) - 10.0).abs() < 1e-12);
        assert!((table.quantile(0.75) - 100.0).abs() < 1e-9);
        assert!((table.mean() - (5.0 + 0.5 * 990.0 / 100_f64.ln())).abs() < 1e-9);
    }

    #[test]
    fn a_table_of_values_gives_their_quantiles_back() {
        let values: Vec<f64> = (0..100_001).map(|i| 1.0 + f64::from(i)).collect();
        let table = Table::of_values(&values).unwrap();
        assert_eq!(table.points().len(), 81);
        for p in [0.01, 0.51, 0.9, 0.99, 0.999, 1.0] {
            assert!((table.quantile(p) / (1.0 + 1e5 * p) - 1.0).abs() < 1e-9, "{p}");
        }
    }

    #[test]
    fn a_table_that_cannot_be_one_says_where() {
        assert_eq!(Table::new(vec![(0.0, 1.0)]), Err(TableError::Shape));
        assert_eq!(Table::new(vec![(0.0, 1.0), (0.9, 2.0)]), Err(TableError::Probability(1)));
        assert_eq!(Table::new(vec![(0.0, 3.0), (1.0, 2.0)]), Err(TableError::Value(1)));
        assert_eq!(Table::of_values(&[]), Err(TableError::Shape));
    }
}
