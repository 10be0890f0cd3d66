//! Writers of `waits` parts: one row per wait of a session on an event. [`write_waits`] takes all rows at once, for
//! samples of a live engine; [`WaitsWriter`] takes rows as they occur, for a model, which knows every wait.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};

use crate::EvidenceError;
use crate::part::Part;
use crate::table::{Column, Kind, Table, Values};

/// Columns of waits, all of the same length.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    /// Name of the arm.
    pub arm: Vec<String>,
    /// Block number.
    pub block: Vec<u32>,
    /// Session (process id on the engine).
    pub session: Vec<i64>,
    /// Time at which the wait was seen [ns since the UNIX epoch].
    pub started_ns: Vec<i64>,
    /// Duration [ns]; the sampling period for sampled waits.
    pub elapsed_ns: Vec<i64>,
    /// Name of the event in the engine.
    pub event: Vec<String>,
    /// Class of the event in the engine.
    pub event_type: Vec<String>,
    /// Class of the event shared by all engines.
    pub class: Vec<String>,
    /// Kind of the waiting session, as the engine calls it.
    pub object: Vec<String>,
    /// `exact`, `sampled` or `summed`.
    pub fidelity: Vec<String>,
}

/// Writes `<dir>/<name>.parquet` with these waits, which have no parameters; returns the number of rows.
///
/// # Errors
/// The part cannot be written, or the columns have unequal lengths.
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
        Field::new("p1", DataType::Int64, true),
        Field::new("p2", DataType::Int64, true),
        Field::new("p3", DataType::Int64, true),
    ]));
    let unknown: ArrayRef = Arc::new(Int64Array::new_null(waits.arm.len()));
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
        Arc::clone(&unknown),
        Arc::clone(&unknown),
        unknown,
    ];
    let batch =
        RecordBatch::try_new(Arc::clone(&schema) as _, columns).map_err(|e| EvidenceError::Shape(e.to_string()))?;
    let mut part = Part::create(dir, name, schema, &["started_ns"])?;
    part.write(&batch)?;
    part.finish()
}

/// Names of an event and of its classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventName {
    /// Name of the event in the engine.
    pub event: String,
    /// Class of the event in the engine.
    pub event_type: String,
    /// Class shared by all engines.
    pub class: String,
}

/// A wait, timed exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitRow {
    /// Arm, as an index into the part's arms.
    pub arm: u32,
    /// Session number.
    pub session: i64,
    /// Start [ns since the UNIX epoch].
    pub started_ns: i64,
    /// Duration [ns].
    pub elapsed_ns: i64,
    /// Event, as an index into the part's events.
    pub event: u32,
    /// Kind of the waiting session, as an index into the part's objects.
    pub object: u32,
    /// Parameters of the event.
    pub p: [i64; 3],
}

const COLUMNS: [Column; 13] = [
    Column::new("arm", Kind::Words),
    Column::new("block", Kind::U32),
    Column::new("session", Kind::I64),
    Column::new("started_ns", Kind::I64),
    Column::new("elapsed_ns", Kind::I64),
    Column::new("event", Kind::Words),
    Column::new("event_type", Kind::Words),
    Column::new("class", Kind::Words),
    Column::new("object", Kind::Words),
    Column::new("fidelity", Kind::Words),
    Column::optional("p1", Kind::I64),
    Column::optional("p2", Kind::I64),
    Column::optional("p3", Kind::I64),
];

/// Writer of one part of exactly timed waits; the part is invisible until [`WaitsWriter::finish`].
pub struct WaitsWriter {
    table: Table,
    block: u32,
    arms: Vec<String>,
    events: Vec<EventName>,
    objects: Vec<String>,
}

impl WaitsWriter {
    /// Opens `<dir>/<name>.parquet` under a temporary name; the lists contain the texts to which the numbers in a
    /// [`WaitRow`] refer.
    ///
    /// # Errors
    /// The part cannot be created.
    pub fn create(
        dir: &Path,
        name: &str,
        block: u32,
        arms: Vec<String>,
        events: Vec<EventName>,
        objects: Vec<String>,
    ) -> Result<Self, EvidenceError> {
        let table = Table::create(dir, name, &COLUMNS)?;
        Ok(Self { table, block, arms, events, objects })
    }

    /// Appends waits.
    ///
    /// # Errors
    /// The part cannot be written.
    pub fn push(&mut self, rows: &[WaitRow]) -> Result<(), EvidenceError> {
        let numbers = |get: fn(&WaitRow) -> i64| Values::I64(rows.iter().map(get).collect());
        let words = |get: fn(&EventName) -> &String| {
            let keys = rows.iter().map(|row| row.event).collect();
            Values::Words(keys, self.events.iter().map(get).cloned().collect())
        };
        self.table.write(&mut [
            Values::Words(rows.iter().map(|row| row.arm).collect(), self.arms.clone()),
            Values::U32(vec![self.block; rows.len()]),
            numbers(|row| row.session),
            numbers(|row| row.started_ns),
            numbers(|row| row.elapsed_ns),
            words(|name| &name.event),
            words(|name| &name.event_type),
            words(|name| &name.class),
            Values::Words(rows.iter().map(|row| row.object).collect(), self.objects.clone()),
            Values::Words(vec![0; rows.len()], vec!["exact".into()]),
            numbers(|row| row.p[0]),
            numbers(|row| row.p[1]),
            numbers(|row| row.p[2]),
        ])
    }

    /// Closes the part and renames it into place; returns its number of rows.
    ///
    /// # Errors
    /// The part cannot be written.
    pub fn finish(self) -> Result<u64, EvidenceError> {
        self.table.finish()
    }
}
