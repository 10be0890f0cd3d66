//! Metrics.
/// A metric.
pub struct Metric;
