//! The writer of `waits` parts: one row per wait of a session on an event.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};

use crate::EvidenceError;
use crate::part::Part;

/// Columns of waits, all of one length.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// Arm's name.
    pub arm: Vec<String>,
    /// Block number.
    pub block: Vec<u32>,
    /// Session (process id of the engine's session).
    pub session: Vec<i64>,
    /// When it was seen, ns since the UNIX epoch.
    pub started_ns: Vec<i64>,
    /// How long; for sampled waits the sampling period.
    pub elapsed_ns: Vec<i64>,
    /// The engine's own name of the event.
    pub event: Vec<String>,
    /// The engine's own group of the event.
    pub event_type: Vec<String>,
    /// The common class of the event.
    pub class: Vec<String>,
    /// What waited: the engine's word for the kind of session.
    pub object: Vec<String>,
    /// `exact`, `sampled` or `summed`.
    pub fidelity: Vec<String>,
}

/// Writes `<dir>/<name>.parquet` with these waits; returns the number of rows.
pub fn write_waits(dir: &Path, name: &str, waits: &Waits) -> Result<u64, EvidenceError> {
    let schema = Arc::new(Schema::new(vec![
        Field::new("arm", DataType::Utf8, false),
        Field::new("block", DataType::UInt32, false),
        Field::new("session", DataType::Int64, false),
        Field::new("started_ns", DataType::Int64, false),
        Field::new("elapsed_ns", DataType::Int64, false),
        Field::new("event", DataType::Utf8, false),
        Field::new("event_type", DataType::Utf8, false),
        Field::new("class", DataType::Utf8, false),
        Field::new("object", DataType::Utf8, false),
        Field::new("fidelity", DataType::Utf8, false),
    ]));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from_iter_values(&waits.arm)),
        Arc::new(UInt32Array::from(waits.block.clone())),
        Arc::new(Int64Array::from(waits.session.clone())),
        Arc::new(Int64Array::from(waits.started_ns.clone())),
        Arc::new(Int64Array::from(waits.elapsed_ns.clone())),
        Arc::new(StringArray::from_iter_values(&waits.event)),
        Arc::new(StringArray::from_iter_values(&waits.event_type)),
        Arc::new(StringArray::from_iter_values(&waits.class)),
        Arc::new(StringArray::from_iter_values(&waits.object)),
        Arc::new(StringArray::from_iter_values(&waits.fidelity)),
    ];
    let batch = RecordBatch::try_new(Arc::clone(&schema) as _, columns)
        .map_err(|e| EvidenceError::Shape(e.to_string()))?;
    let mut part = Part::create(dir, name, schema, &["started_ns"])?;
    part.write(&batch)?;
    part.finish()
}
