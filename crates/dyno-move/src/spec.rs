//! What a job is told, and what it tells of each chunk.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dyno_load::ConnectionSpec;
use serde::{Deserialize, Serialize};

/// All that workers need.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// Where the rows are.
    pub connection: ConnectionSpec,
    /// Run in each session before its first chunk; opens the transaction and takes the snapshot.
    pub session_sql: Vec<String>,
    /// What is read.
    pub tables: Vec<TableSpec>,
    /// In the order in which they are taken.
    pub chunks: Vec<ChunkSpec>,
    /// Sessions.
    pub workers: usize,
    /// For all workers together.
    pub memory_bytes: u64,
    /// For all workers together.
    #[serde(default)]
    pub rate_bytes_per_s: Option<u64>,
    /// Level of zstd.
    #[serde(default = "one")]
    pub zstd_level: i32,
    /// Where rows go that are handed on as they come.
    #[serde(default)]
    pub target: Option<TargetSpec>,
    /// `COPY (SELECT …) TO STDOUT` of one line, run after each chunk in its session: what that has cost so far.
    #[serde(default)]
    pub cost_sql: Option<String>,
    /// One file for the rows of all chunks.
    #[serde(default)]
    pub single: Option<SingleSpec>,
    /// Rows that the server could not take are left out and told, instead of ending the job.
    #[serde(default)]
    pub rejects: bool,
}

/// The other side of a job from server to server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetSpec {
    /// Where the rows go.
    pub connection: ConnectionSpec,
    /// Run in each session before its first chunk.
    pub session_sql: Vec<String>,
}

/// One file that all workers write, in the order in which rows come.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SingleSpec {
    /// Its place; `None`: stdout.
    pub path: Option<PathBuf>,
    /// Its form.
    pub form: Form,
    /// What a CSV begins with.
    #[serde(default)]
    pub head: String,
}

/// The form of a single file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Arrow IPC, a file.
    Arrow,
    /// Arrow IPC, a stream.
    Stream,
    /// As the server writes it.
    Csv,
}

fn one() -> i32 {
    1
}

/// Columns of a table, and what stands in the head of its files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// In the order of the rows.
    pub columns: Vec<ColumnSpec>,
    /// Into the schema of the files.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnSpec {
    /// Its name.
    pub name: String,
    /// How its bytes are read.
    pub kind: Kind,
    /// Digits of a decimal.
    #[serde(default)]
    pub precision: u8,
    /// Digits of a decimal after the point.
    #[serde(default)]
    pub scale: i8,
    /// The engine's own type, as it is written in SQL.
    pub pg_type: String,
    /// MariaDB's type, where it came from there.
    #[serde(default)]
    pub mariadb_type: Option<String>,
}

/// How the bytes of a value are read, and what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A byte: boolean.
    Bool,
    /// 16 bits.
    Int2,
    /// 32 bits.
    Int4,
    /// 64 bits.
    Int8,
    /// 32 bits without a sign.
    Oid,
    /// Single precision.
    Float4,
    /// Double precision.
    Float8,
    /// Exact digits with a fixed scale: decimal.
    Decimal,
    /// Days.
    Date,
    /// Microseconds since midnight.
    Time,
    /// Microseconds, no zone.
    Timestamp,
    /// Microseconds, UTC.
    Timestamptz,
    /// UTF-8.
    Text,
    /// A version byte, then UTF-8.
    Jsonb,
    /// 16 bytes, shown as text.
    Uuid,
    /// Bytes.
    Bytea,
}

/// One piece of work.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChunkSpec {
    /// Unique in the job.
    pub number: u32,
    /// Its place in `tables`.
    pub table: usize,
    /// `COPY (SELECT …) TO STDOUT (FORMAT binary)`.
    pub sql: String,
    /// The file that it becomes, or comes from; `None`: read and hashed only.
    pub path: Option<PathBuf>,
    /// Whether the file goes into the table: `sql` is `COPY … FROM STDIN (FORMAT binary)` then.
    #[serde(default)]
    pub load: bool,
    /// The row groups of the file that are loaded, the last not among them; `None`: all of it.
    #[serde(default)]
    pub groups: Option<(usize, usize)>,
    /// Rows of the file before them.
    #[serde(default)]
    pub rows_before: u64,
    /// Number of the file that is loaded: it and the number of the row go before each row, as integer and bigint.
    #[serde(default)]
    pub place: Option<i32>,
    /// `COPY … FROM STDIN (FORMAT binary)` of the target that takes the rows as they come.
    #[serde(default)]
    pub into: Option<String>,
    /// The column by whose values its rows go into folders; `sql` gives its text after all others.
    #[serde(default)]
    pub partition: Option<String>,
    /// Rows are counted and hashed as they come, not decoded.
    #[serde(default)]
    pub raw: bool,
}

/// A finished chunk.
#[derive(Debug, Clone, Serialize)]
pub struct ChunkDone {
    /// Its number.
    pub number: u32,
    /// Rows that were decoded, and that the server counted.
    pub rows: u64,
    /// Bytes of COPY.
    pub copy_bytes: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Sum of the hashes of its rows: the same in any order.
    pub hash: String,
    /// From the statement to the file under its name.
    pub elapsed_ns: u64,
    /// When that was, by this machine's clock, since 1970.
    pub ended_ns: u64,
    /// Which worker.
    pub worker: usize,
    /// Its process at the server.
    pub process: u32,
    /// What its session has cost the server so far, in the server's words.
    pub cost: Option<String>,
    /// Rows of the file that the server could not take.
    pub refused: Vec<Refused>,
    /// Its files, where they are several.
    pub parts: Vec<PartDone>,
}

/// One of the files of a chunk.
#[derive(Debug, Clone, Serialize)]
pub struct PartDone {
    /// Its folder and name.
    pub file: String,
    /// Rows in it.
    pub rows: u64,
    /// The sum of their hashes.
    pub hash: String,
    /// Bytes of it.
    pub file_bytes: u64,
}

/// A row of a file that the server could not take.
#[derive(Debug, Clone, Serialize)]
pub struct Refused {
    /// Counted from 1.
    pub row: u64,
    /// Its column.
    pub column: String,
    /// In words.
    pub reason: &'static str,
}
