//! The writer of `calls` parts.

use std::path::Path;
use std::sync::Arc;

use arrow_array::types::{UInt8Type, UInt16Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Int64Array, RecordBatch, StringArray, UInt8Array, UInt16Array,
    UInt32Array, new_null_array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::part::Part;
use crate::{Call, CallKind, EvidenceError, Failure, NONE};

/// Number of rows that are turned into columns at a time.
const BATCH_ROWS: usize = 1 << 16;

const DELTAS: [&str; 6] = ["slice", "intended_ns", "started_ns", "elapsed_ns", "redo_bytes", "unflushed_bytes"];

/// Writer of one part of calls; the part is invisible until [`CallsWriter::finish`].
pub struct CallsWriter {
    part: Part,
    schema: SchemaRef,
    arms: Arc<StringArray>,
    statements: Arc<StringArray>,
    kinds: Arc<StringArray>,
}

impl CallsWriter {
    /// Opens `<dir>/<name>.parquet` under a temporary name; `arms` and `statements` contain the names to which the
    /// numbers in a [`Call`] refer.
    ///
    /// # Errors
    /// The part cannot be created.
    pub fn create(dir: &Path, name: &str, arms: &[String], statements: &[String]) -> Result<Self, EvidenceError> {
        let schema = schema();
        Ok(Self {
            part: Part::create(dir, name, Arc::clone(&schema), &DELTAS)?,
            schema,
            arms: Arc::new(StringArray::from_iter_values(arms)),
            statements: Arc::new(StringArray::from_iter_values(statements)),
            kinds: Arc::new(StringArray::from_iter_values(CallKind::ALL.map(CallKind::word))),
        })
    }

    /// Appends calls; [`Call::error`] is a position in `failures`, counted from 1.
    ///
    /// # Errors
    /// The part cannot be written.
    pub fn push(&mut self, calls: &[Call], failures: &[Failure]) -> Result<(), EvidenceError> {
        for chunk in calls.chunks(BATCH_ROWS) {
            let batch = self.batch(chunk, failures)?;
            self.part.write(&batch)?;
        }
        Ok(())
    }

    /// Closes the part, syncs it and renames it into place; returns its number of rows.
    ///
    /// # Errors
    /// The part cannot be written.
    pub fn finish(self) -> Result<u64, EvidenceError> {
        self.part.finish()
    }

    fn batch(&self, calls: &[Call], failures: &[Failure]) -> Result<RecordBatch, EvidenceError> {
        let names = |key: fn(&Call) -> u16, values: &Arc<StringArray>| -> Result<ArrayRef, _> {
            let keys = UInt16Array::from_iter_values(calls.iter().map(key));
            dictionary16(keys, values)
        };
        let kinds = UInt8Array::from_iter_values(calls.iter().map(|c| c.kind as u8));
        let mut columns: Vec<ArrayRef> = vec![
            names(|c| c.arm, &self.arms)?,
            Arc::new(UInt32Array::from_iter_values(calls.iter().map(|c| c.block))),
            Arc::new(UInt32Array::from_iter_values(calls.iter().map(|c| c.slice))),
            Arc::new(UInt16Array::from_iter_values(calls.iter().map(|c| c.session))),
            dictionary8(kinds, &self.kinds)?,
            names(|c| c.statement, &self.statements)?,
            optional(calls, |c| c.intended_ns),
            Arc::new(Int64Array::from_iter_values(calls.iter().map(|c| c.started_ns))),
            Arc::new(Int64Array::from_iter_values(calls.iter().map(|c| c.elapsed_ns))),
            optional(calls, |c| c.rows),
            optional(calls, |c| c.redo_bytes),
            optional(calls, |c| c.unflushed_bytes),
        ];
        let [code, vendor, message, expected] = failed(calls, failures);
        let tries: ArrayRef = Arc::new(UInt8Array::from_iter_values(calls.iter().map(|c| c.tries)));
        columns.extend([code, tries, vendor, message, expected]);
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(|e| EvidenceError::Shape(e.to_string()))
    }
}

/// Returns four columns for the failed calls: code, engine's error number, message, and whether the error was expected.
/// They are plain columns, since the Parquet reader is slow on an empty dictionary.
fn failed(calls: &[Call], failures: &[Failure]) -> [ArrayRef; 4] {
    if calls.iter().all(|call| call.error == 0) {
        let nothing = |kind: DataType| new_null_array(&kind, calls.len());
        return [DataType::Utf8, DataType::UInt16, DataType::Utf8, DataType::Boolean].map(nothing);
    }
    let own = || calls.iter().map(|call| failures.get(usize::from(call.error.checked_sub(1)?)));
    [
        Arc::new(own().map(|f| Some(f?.code.as_str())).collect::<StringArray>()) as Arc<dyn Array>,
        Arc::new(own().map(|f| f?.vendor).collect::<UInt16Array>()),
        Arc::new(own().map(|f| f?.message.as_deref()).collect::<StringArray>()),
        Arc::new(own().map(|f| f?.expected).collect::<BooleanArray>()),
    ]
}

fn optional(calls: &[Call], value: fn(&Call) -> i64) -> ArrayRef {
    Arc::new(calls.iter().map(|c| Some(value(c)).filter(|v| *v != NONE)).collect::<Int64Array>())
}

fn dictionary16(keys: UInt16Array, values: &Arc<StringArray>) -> Result<ArrayRef, EvidenceError> {
    let array = DictionaryArray::<UInt16Type>::try_new(keys, Arc::<StringArray>::clone(values) as ArrayRef)
        .map_err(|e| EvidenceError::Shape(e.to_string()))?;
    Ok(Arc::new(array))
}

fn dictionary8(keys: UInt8Array, values: &Arc<StringArray>) -> Result<ArrayRef, EvidenceError> {
    let array = DictionaryArray::<UInt8Type>::try_new(keys, Arc::<StringArray>::clone(values) as ArrayRef)
        .map_err(|e| EvidenceError::Shape(e.to_string()))?;
    Ok(Arc::new(array))
}

fn schema() -> SchemaRef {
    let words = |key: DataType| DataType::Dictionary(Box::new(key), Box::new(DataType::Utf8));
    Arc::new(Schema::new(vec![
        Field::new("arm", words(DataType::UInt16), false),
        Field::new("block", DataType::UInt32, false),
        Field::new("slice", DataType::UInt32, false),
        Field::new("session", DataType::UInt16, false),
        Field::new("kind", words(DataType::UInt8), false),
        Field::new("statement", words(DataType::UInt16), false),
        Field::new("intended_ns", DataType::Int64, true),
        Field::new("started_ns", DataType::Int64, false),
        Field::new("elapsed_ns", DataType::Int64, false),
        Field::new("rows", DataType::Int64, true),
        Field::new("redo_bytes", DataType::Int64, true),
        Field::new("unflushed_bytes", DataType::Int64, true),
        Field::new("error", DataType::Utf8, true),
        Field::new("tries", DataType::UInt8, false),
        Field::new("vendor_code", DataType::UInt16, true),
        Field::new("message", DataType::Utf8, true),
        Field::new("expected", DataType::Boolean, true),
    ]))
}
