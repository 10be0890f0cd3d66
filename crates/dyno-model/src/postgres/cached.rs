//! Misses of the buffer cache at another size, estimated from the characteristic time of the cache.
//!
//! The estimate assumes that references are independent of each other, and that pages form groups of equal popularity.
//! A page stays in the cache for a time that depends on how often it is referenced within the *characteristic time* T,
//! which is the same for all pages; T is the time for which the expected number of pages in the cache is the number of
//! buffers (Che, Tung and Wang, IEEE JSAC 20 (2002) 1305, for LRU; Fricker, Robert and Roberts, ITC 24 (2012), on why
//! it is accurate).
//!
//! | policy | T | share of time in the cache of a page referenced `x` times within T |
//! |---|---|---|
//! | LRU | time without a reference after which a page is dropped | 1 - exp(-x) |
//! | clock | time between two passes of the hand | S x / (S x + 1), S = mean number of passes that a page survives |
//!
//! `PostgreSQL`'s clock (`freelist.c`, `StrategyGetBuffer`) drops a page whose count is 0 and subtracts 1 from the
//! counts of the others. A page has count 1 when it is read, and each reference adds 1 up to 5. S follows from these
//! rules by a Markov chain on the count (the approach of Nicola, Dan and Dias, SIGMETRICS 1992, for generalized
//! clocks).
//!
//! **Limits.** Pages that statements do not name by a key (upper levels of indexes, catalogs, appended rows) take no
//! buffers in this model. Rings of large scans and the kernel's cache are not modelled.

use super::load::Script;
use super::parameters::PostgresParameters;
pub use super::relation::Relation;

/// Replacement policy of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Least recently used.
    Lru,
    /// `PostgreSQL`'s clock.
    Clock,
}

/// Pages of equal popularity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Group {
    /// Number of pages.
    pub pages: f64,
    /// References to each page, relative to those of other groups.
    pub rate: f64,
}

/// Highest count of a page (`BM_MAX_USAGE_COUNT`).
const COUNT_MOST: usize = 5;
const HALVINGS: usize = 200;

/// Returns the miss ratio of each group in a cache of this number of buffers.
pub fn miss_ratios(groups: &[Group], buffers: f64, policy: Policy) -> Vec<f64> {
    let used = |group: &&Group| group.rate > 0.0;
    if groups.iter().filter(used).map(|group| group.pages).sum::<f64>() <= buffers {
        return vec![0.0; groups.len()];
    }
    let present = |time: f64| groups.iter().map(|group| group.pages * (1.0 - policy.misses(group.rate * time))).sum();
    let highest = groups.iter().map(|group| group.rate).fold(0.0, f64::max);
    let (mut low, mut high) = (1e-9 / highest, 1e-9 / highest);
    for _ in 0..HALVINGS {
        let cached: f64 = present(high);
        if cached >= buffers {
            break;
        }
        high *= 2.0;
    }
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        let cached: f64 = present(middle);
        if cached < buffers { low = middle } else { high = middle }
    }
    groups.iter().map(|group| policy.misses(group.rate * low)).collect()
}

impl Policy {
    /// Returns the share of time that a page is not in the cache, if it is referenced `x` times within the
    /// characteristic time.
    fn misses(self, x: f64) -> f64 {
        match self {
            Self::Lru => libm::exp(-x),
            Self::Clock => 1.0 / (passes(x) * x + 1.0),
        }
    }
}

/// Mean number of passes from which on a page counts as always cached.
const PASSES_MOST: f64 = 1e12;

/// Returns the mean number of passes of the clock's hand that a page survives if it is referenced `x` times between two
/// passes.
fn passes(x: f64) -> f64 {
    // left[c] = 1 + the sum over k of p(k) left[min(c + k, 5) - 1]: passes that are left to a page whose count is c after
    // the last one; a page whose count is still 0 at the next one is dropped.
    let mut p = [libm::exp(-x); COUNT_MOST];
    for count in 1..COUNT_MOST {
        p[count] = p[count - 1] * x / count as f64;
    }
    let mut rows = [[0.0; COUNT_MOST + 1]; COUNT_MOST];
    for (count, row) in rows.iter_mut().enumerate() {
        (row[count], row[COUNT_MOST]) = (1.0, 1.0);
        let mut rest = 1.0;
        for (more, chance) in p.iter().enumerate().take(COUNT_MOST - count) {
            rest -= chance;
            if let Some(next) = (count + more).checked_sub(1) {
                row[next] -= chance;
            }
        }
        row[COUNT_MOST - 1] -= rest;
    }
    for at in 0..COUNT_MOST {
        let pivot = rows[at];
        for row in &mut rows[at + 1..] {
            let factor = row[at] / pivot[at];
            row.iter_mut().zip(pivot).for_each(|(own, other)| *own -= factor * other);
        }
    }
    let mut left = [0.0; COUNT_MOST];
    for at in (0..COUNT_MOST).rev() {
        let above: f64 = (at + 1..COUNT_MOST).map(|of| rows[at][of] * left[of]).sum();
        left[at] = (rows[at][COUNT_MOST] - above) / rows[at][at];
    }
    // Close to never its equations cancel out.
    if left[1] > 0.0 && left[1] < PASSES_MOST { left[1] } else { PASSES_MOST }
}

/// Returns for each statement the mean number of data blocks that an execution reads with the machine's buffers: the
/// counted number, times the misses expected at this size, divided by those expected at the calibrated size.
pub(super) fn reads(parameters: &PostgresParameters, scripts: &[Script]) -> Vec<f64> {
    let counted: Vec<f64> = parameters.statements.iter().map(|statement| statement.reads.mean()).collect();
    let (now, then) = (parameters.shared_buffers_mb, parameters.calibrated_buffers_mb);
    if now <= 0.0 || then <= 0.0 || (now - then).abs() < f64::EPSILON || parameters.relations.is_empty() {
        return counted;
    }
    let rates = references(parameters, scripts);
    let (now, then) = (misses(&parameters.relations, &rates, now), misses(&parameters.relations, &rates, then));
    let of = |statement: &super::parameters::Statement, all: &[f64]| -> f64 {
        statement.touches.iter().filter_map(|&relation| all.get(relation)).sum()
    };
    let scaled = |(statement, counted): (&super::parameters::Statement, f64)| {
        let (now, then) = (of(statement, &now), of(statement, &then));
        let mean = if then > LEAST_MISSES { counted * now / then } else { counted + now };
        if statement.touches.is_empty() { counted } else { mean.min(statement.touches.len() as f64) }
    };
    parameters.statements.iter().zip(counted).map(scaled).collect()
}

/// Number of expected misses of an execution above which counted reads are scaled by the ratio of expected misses.
const LEAST_MISSES: f64 = 1e-3;
/// Number of pages in a megabyte.
const PAGES_PER_MB: f64 = 128.0;

/// Returns how often each relation is referenced in a transaction.
fn references(parameters: &PostgresParameters, scripts: &[Script]) -> Vec<f64> {
    let mut rates = vec![0.0; parameters.relations.len()];
    let all: u64 = scripts.iter().map(|script| script.weight).sum();
    for script in scripts {
        for step in &script.steps {
            for &relation in &parameters.statements[step.statement].touches {
                if let Some(rate) = rates.get_mut(relation) {
                    *rate += script.weight as f64 / all as f64;
                }
            }
        }
    }
    rates
}

/// Returns the miss ratio of each relation's references with buffers of this size [MB], given how often each relation
/// is referenced.
pub fn misses(relations: &[Relation], rates: &[f64], buffers_mb: f64) -> Vec<f64> {
    let mut groups = Vec::new();
    for (relation, rate) in relations.iter().zip(rates) {
        let all: f64 = relation.share.iter().sum();
        for (&pages, share) in relation.pages.iter().zip(&relation.share) {
            let pages = pages as f64;
            groups.push(Group { pages, rate: if all > 0.0 { rate * share / all / pages } else { 0.0 } });
        }
    }
    let ratios = miss_ratios(&groups, buffers_mb * PAGES_PER_MB, Policy::Clock);
    let mut left = ratios.iter();
    let of = |relation: &Relation| {
        let all: f64 = relation.share.iter().sum();
        let sum: f64 = relation.share.iter().zip(left.by_ref()).map(|(share, miss)| share * miss).sum();
        if all > 0.0 { sum / all } else { 0.0 }
    };
    relations.iter().map(of).collect()
}
