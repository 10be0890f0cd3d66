//! Writer of `metrics` parts: counters and gauges of the engine and the host.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};

use crate::EvidenceError;
use crate::part::Part;

/// Columns of metrics, all of the same length.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Name of the arm; empty if the reading belongs to no arm.
    pub arm: Vec<String>,
    /// Block number.
    pub block: Vec<u32>,
    /// View or file that was read, such as `pg_stat_wal`.
    pub source: Vec<String>,
    /// Kind of the object measured, such as `database`.
    pub object_type: Vec<String>,
    /// Name of that object.
    pub object: Vec<String>,
    /// Name of the metric.
    pub metric: Vec<String>,
    /// Time of the reading [ns since the UNIX epoch].
    pub at_ns: Vec<i64>,
    /// Value of the metric.
    pub value: Vec<f64>,
    /// Unit of the value.
    pub unit: Vec<String>,
    /// `counter`, `gauge` or `rate`.
    pub kind: Vec<String>,
}

/// Writes `<dir>/<name>.parquet` with these metrics; returns the number of rows.
///
/// # Errors
/// The part cannot be written, or the columns have unequal lengths.
pub fn write_metrics(dir: &Path, name: &str, metrics: &Metrics) -> Result<u64, EvidenceError> {
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let schema = Arc::new(Schema::new(vec![
        text("arm"),
        Field::new("block", DataType::UInt32, false),
        text("source"),
        text("object_type"),
        text("object"),
        text("metric"),
        Field::new("at_ns", DataType::Int64, false),
        Field::new("value", DataType::Float64, false),
        text("unit"),
        text("kind"),
    ]));
    let words = |values: &[String]| -> ArrayRef { Arc::new(StringArray::from_iter_values(values)) };
    let columns: Vec<ArrayRef> = vec![
        words(&metrics.arm),
        Arc::new(UInt32Array::from(metrics.block.clone())),
        words(&metrics.source),
        words(&metrics.object_type),
        words(&metrics.object),
        words(&metrics.metric),
        Arc::new(Int64Array::from(metrics.at_ns.clone())),
        Arc::new(Float64Array::from(metrics.value.clone())),
        words(&metrics.unit),
        words(&metrics.kind),
    ];
    let batch =
        RecordBatch::try_new(Arc::clone(&schema) as _, columns).map_err(|e| EvidenceError::Shape(e.to_string()))?;
    let mut part = Part::create(dir, name, schema, &["at_ns"])?;
    part.write(&batch)?;
    part.finish()
}
