//! Skewed popularity: item `i` of `0..n` is chosen with probability proportional to `(i + 1)^-skew`.
//!
//! The distribution function is a table, searched by bisection between the bounds that a guide table of the same length
//! gives. The result is exact; a sample takes one draw and a small constant number of steps.

use super::sample::Stream;

/// Popularity of `n` items.
#[derive(Clone, Debug)]
pub struct Zipf {
    /// Cumulative probability of the items up to and including this one.
    up_to: Vec<f64>,
    /// First item whose cumulative probability is above i / n.
    guide: Vec<u32>,
}

impl Zipf {
    /// Returns the popularity of `n` > 0 items; a skew of 0 makes them equally popular.
    pub fn new(n: u32, skew: f64) -> Self {
        let mut sum = 0.0;
        let mut up_to: Vec<f64> = (1..=n)
            .map(|i| {
                sum += libm::pow(f64::from(i), -skew);
                sum
            })
            .collect();
        for p in &mut up_to {
            *p /= sum;
        }
        let mut item = 0;
        let guide = (0..n).map(|i| {
            while up_to[item as usize] <= f64::from(i) / f64::from(n) && item + 1 < n {
                item += 1;
            }
            item
        });
        let guide = guide.collect();
        Self { up_to, guide }
    }

    /// Returns a random item.
    #[inline]
    pub fn sample(&self, stream: &mut Stream) -> u32 {
        let n = self.up_to.len();
        let u = stream.unit();
        let place = (u * n as f64) as usize;
        let from = self.guide[place] as usize;
        let to = self.guide.get(place + 1).map_or(n - 1, |&item| item as usize);
        (from + self.up_to[from..to].partition_point(|&p| p <= u)) as u32
    }

    /// Returns the probability of an item.
    pub fn probability(&self, item: u32) -> f64 {
        let i = item as usize;
        self.up_to[i] - if i == 0 { 0.0 } else { self.up_to[i - 1] }
    }
}
