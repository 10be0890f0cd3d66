//! Fuzzing of files and streams: reading arbitrary bytes must end in rows or in an error.

use std::path::Path;

use crate::column::Columns;
use crate::encode::{At, Place, head, rows};
use crate::error::MoveError;
use crate::field::has_long;
use crate::hash::hash_batch;
use crate::read_back::{describe, open, read_back};
use crate::rows::Cutter;
use crate::spec::{ColumnSpec, Kind, TableSpec};

const KINDS: [Kind; 16] = [
    Kind::Bool,
    Kind::Int2,
    Kind::Int4,
    Kind::Int8,
    Kind::Oid,
    Kind::Float4,
    Kind::Float8,
    Kind::Decimal,
    Kind::Date,
    Kind::Time,
    Kind::Timestamp,
    Kind::Timestamptz,
    Kind::Text,
    Kind::Jsonb,
    Kind::Uuid,
    Kind::Bytea,
];
/// Size of a batch [bytes].
const BATCH_BYTES: usize = 4 << 10;
/// Size of a message to a server [bytes].
const SEND_BYTES: usize = 4 << 10;

/// Returns a table with one column for each bit that is set in `bits`; the number of the bit determines the kind of the
/// column.
pub fn table(bits: u16) -> TableSpec {
    let chosen = KINDS.iter().enumerate().filter(|(place, _)| bits >> place & 1 == 1);
    let column = |(place, &kind): (usize, &Kind)| {
        let name = format!("c{place}");
        ColumnSpec { name, kind, precision: 12, scale: 2, pg_type: String::new(), mariadb_type: None }
    };
    TableSpec { columns: chosen.map(column).collect(), metadata: std::iter::empty().collect() }
}

/// Reads a file in every way that the mover has.
pub fn rehearse_file(path: &Path) {
    let _ = describe(path);
    let _ = read_back(path);
    let _ = send(path);
}

/// Encodes a file as it is sent to a server; returns the number of bytes.
fn send(path: &Path) -> Result<u64, MoveError> {
    let (mut out, mut sent) = (Vec::new(), 0);
    head(&mut out);
    for batch in open(path, BATCH_BYTES, None)? {
        let batch = batch?;
        let (mut at, long) = (At::default(), has_long(&batch));
        while at.row < batch.num_rows() {
            out.clear();
            rows(&batch, &mut at, long, SEND_BYTES, &mut Place::default(), &mut out)?;
            sent += out.len() as u64;
        }
    }
    Ok(sent)
}

/// Reads bytes as a server's COPY of a table, in portions of `step` bytes.
pub fn rehearse_copy(bits: u16, step: u8, bytes: &[u8]) {
    let _ = cut(bits, usize::from(step).max(1), bytes);
}

fn cut(bits: u16, step: usize, bytes: &[u8]) -> Result<(), MoveError> {
    let table = table(bits);
    let mut columns = Columns::new(&table, BATCH_BYTES);
    let mut cutter = Cutter::new(table.columns.len());
    for part in bytes.chunks(step) {
        cutter.push(part, |row| {
            if columns.push(row)? {
                hash_batch(&columns.take()?)?;
            }
            Ok(())
        })?;
    }
    let batch = columns.take()?;
    hash_batch(&batch)?;
    let mut out = Vec::new();
    rows(&batch, &mut At::default(), has_long(&batch), usize::MAX, &mut Place::default(), &mut out)
}
