//! The writers of `waits` parts: one row per wait of a session on an event. [`write_waits`] takes
//! all rows at once (samples of a live engine), [`WaitsWriter`] takes them as they come (a model,
//! which knows every wait).

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array};
use arrow_schema::{DataType, Field, Schema};

use crate::EvidenceError;
use crate::part::Part;
use crate::table::{Column, Kind, Table, Values};

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

/// Writes `<dir>/<name>.parquet` with these waits, whose parameters nobody knows; returns the number
/// of rows.
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

/// What an event is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventName {
    /// The engine's own name.
    pub event: String,
    /// The engine's own group.
    pub event_type: String,
    /// The common class.
    pub class: String,
}

/// One wait, timed exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitRow {
    /// Arm: a number into the part's arms.
    pub arm: u32,
    /// Session.
    pub session: i64,
    /// When it began, ns since the UNIX epoch.
    pub started_ns: i64,
    /// How long it was.
    pub elapsed_ns: i64,
    /// Event: a number into the part's events.
    pub event: u32,
    /// What waited: a number into the part's objects.
    pub object: u32,
    /// The event's parameters.
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

/// Writes one part of exactly timed waits; nothing is visible before [`WaitsWriter::finish`].
pub struct WaitsWriter {
    table: Table,
    block: u32,
    arms: Vec<String>,
    events: Vec<EventName>,
    objects: Vec<String>,
}

impl WaitsWriter {
    /// Opens `<dir>/<name>.parquet`, aside; the lists are what the numbers in a [`WaitRow`] stand for.
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

    /// Closes the part and puts it in place; returns its number of rows.
    pub fn finish(self) -> Result<u64, EvidenceError> {
        self.table.finish()
    }
}
