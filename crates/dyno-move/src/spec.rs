//! Specification of a job, and its report of each chunk.

use std::collections::BTreeMap;
use std::path::PathBuf;

use dyno_load::ConnectionSpec;
use serde::{Deserialize, Serialize};

use crate::hash::Tally;

/// Specification of a job.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSpec {
    /// Connection to the source of the rows.
    pub connection: ConnectionSpec,
    /// SQL run in each session before its first chunk; it opens the transaction and takes the snapshot.
    pub session_sql: Vec<String>,
    /// Tables to read.
    pub tables: Vec<TableSpec>,
    /// Chunks, in the order in which they are processed.
    pub chunks: Vec<ChunkSpec>,
    /// Number of workers, each with a session.
    pub workers: usize,
    /// Memory of all workers together [bytes].
    pub memory_bytes: u64,
    /// Largest rate of all workers together [bytes/s].
    #[serde(default)]
    pub rate_bytes_per_s: Option<u64>,
    /// Compression level of zstd.
    #[serde(default = "one")]
    pub zstd_level: i32,
    /// Target server, if rows are forwarded as they arrive.
    #[serde(default)]
    pub target: Option<TargetSpec>,
    /// SQL that is run in the session after each chunk and returns one line: the costs of the session so far.
    ///
    /// It is `COPY (SELECT …) TO STDOUT` for PostgreSQL.
    #[serde(default)]
    pub cost_sql: Option<String>,
    /// Single file for the rows of all chunks.
    #[serde(default)]
    pub single: Option<SingleSpec>,
    /// True to leave out and report rows that the server cannot accept, instead of ending the job.
    #[serde(default)]
    pub rejects: bool,
}

/// Target of a job from server to server.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetSpec {
    /// Connection to the target.
    pub connection: ConnectionSpec,
    /// SQL run in each session before its first chunk.
    pub session_sql: Vec<String>,
}

/// Single file that all workers write, in the order in which rows arrive.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SingleSpec {
    /// Path; `None` for stdout.
    pub path: Option<PathBuf>,
    /// Form of the file.
    pub form: Form,
    /// First line of a CSV file.
    #[serde(default)]
    pub head: String,
}

/// Form of a single file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// Arrow IPC file.
    Arrow,
    /// Arrow IPC stream.
    Stream,
    /// CSV as the server writes it.
    Csv,
}

fn one() -> i32 {
    1
}

/// Columns of a table, and metadata for its files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableSpec {
    /// Columns, in the order of the values in a row.
    pub columns: Vec<ColumnSpec>,
    /// Metadata for the schema of the files.
    #[serde(default)]
    pub metadata: BTreeMap<String, String>,
}

/// One column.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnSpec {
    /// Name of the column.
    pub name: String,
    /// How the column's bytes are decoded.
    pub kind: Kind,
    /// Total digits of a decimal.
    #[serde(default)]
    pub precision: u8,
    /// Digits of a decimal after the point.
    #[serde(default)]
    pub scale: i8,
    /// Type in the engine's SQL.
    pub pg_type: String,
    /// MariaDB's type, if the column came from there.
    #[serde(default)]
    pub mariadb_type: Option<String>,
}

/// Encoding of a value, and the type that it becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Boolean of one byte.
    Bool,
    /// Integer of 16 bits.
    Int2,
    /// Integer of 32 bits.
    Int4,
    /// Integer of 64 bits.
    Int8,
    /// Unsigned integer of 32 bits.
    Oid,
    /// Single-precision number.
    Float4,
    /// Double-precision number.
    Float8,
    /// Decimal with a fixed scale.
    Decimal,
    /// Date [days].
    Date,
    /// Time since midnight [us].
    Time,
    /// Timestamp without time zone [us].
    Timestamp,
    /// Timestamp in UTC [us].
    Timestamptz,
    /// UTF-8 text.
    Text,
    /// JSON: a version byte, then UTF-8 text.
    Jsonb,
    /// UUID of 16 bytes, shown as text.
    Uuid,
    /// Bytes.
    Bytea,
}

/// One unit of work.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChunkSpec {
    /// Unique number in the job.
    pub number: u32,
    /// Index of the chunk's table in `tables`.
    pub table: usize,
    /// Statement that reads the rows: `COPY (SELECT …) TO STDOUT (FORMAT binary)`.
    pub sql: String,
    /// File that is written or loaded; `None` if the rows are only read and hashed.
    pub path: Option<PathBuf>,
    /// True if the file is loaded into the table: `sql` is then `COPY … FROM STDIN (FORMAT binary)`.
    #[serde(default)]
    pub load: bool,
    /// Row groups of the file to load: from the first number up to, but not including, the second; `None` for all.
    #[serde(default)]
    pub groups: Option<(usize, usize)>,
    /// Number of rows in the file before the row groups to load.
    #[serde(default)]
    pub rows_before: u64,
    /// Number of the loaded file, if each row is to begin with it (integer) and with the row's number (bigint).
    #[serde(default)]
    pub place: Option<i32>,
    /// Statement, run at the target, that accepts the forwarded rows: `COPY … FROM STDIN (FORMAT binary)`.
    #[serde(default)]
    pub into: Option<String>,
    /// Statements, run at the target, that form one transaction with `into`.
    #[serde(default)]
    pub around: Option<AroundSpec>,
    /// Column by whose values the rows are divided into folders; `sql` returns its text after all other columns.
    #[serde(default)]
    pub partition: Option<String>,
    /// True if rows are counted and hashed as they arrive, without being decoded.
    #[serde(default)]
    pub raw: bool,
    /// True if the rows arrive as lines of COPY's text form, which are forwarded as they are; needs `raw`.
    #[serde(default)]
    pub lines: bool,
}

/// Statements that are run at the target before and after the forwarded rows of a chunk; together with them they form
/// one transaction.
///
/// The target then knows which chunks it has, however the job ends.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AroundSpec {
    /// Statements that begin the transaction.
    pub before: Vec<String>,
    /// Statements that end the transaction; `{rows}`, `{bytes}` and `{hash}` stand for the result.
    pub after: Vec<String>,
}

impl AroundSpec {
    /// Returns the statements that end the transaction, with the result of the chunk.
    pub(crate) fn ending(&self, tally: &Tally, bytes: u64) -> impl Iterator<Item = String> {
        let (rows, bytes, hash) = (tally.rows.to_string(), bytes.to_string(), tally.hash());
        self.after
            .iter()
            .map(move |sql| sql.replace("{rows}", &rows).replace("{bytes}", &bytes).replace("{hash}", &hash))
    }
}

/// Report of a finished chunk.
#[derive(Debug, Clone, Serialize)]
pub struct ChunkDone {
    /// Chunk number.
    pub number: u32,
    /// Number of rows, as decoded and as counted by the server.
    pub rows: u64,
    /// Number of bytes in COPY's form.
    pub copy_bytes: u64,
    /// Size of the file [bytes].
    pub file_bytes: u64,
    /// Sum of the hashes of the chunk's rows, which does not depend on their order.
    pub hash: String,
    /// Time from the statement to the finished file [ns].
    pub elapsed_ns: u64,
    /// Time at which the chunk was finished, by this machine's clock [ns since 1970].
    pub ended_ns: u64,
    /// Worker number.
    pub worker: usize,
    /// Process id of the worker's session at the server.
    pub process: u32,
    /// Costs of the worker's session so far, as the server reports them.
    pub cost: Option<String>,
    /// Rows of the file that the server could not accept.
    pub refused: Vec<Refused>,
    /// Files of the chunk, if there are several.
    pub parts: Vec<PartDone>,
}

/// One of the files of a chunk.
#[derive(Debug, Clone, Serialize)]
pub struct PartDone {
    /// Folder and name of the file.
    pub file: String,
    /// Number of rows.
    pub rows: u64,
    /// Sum of the rows' hashes.
    pub hash: String,
    /// Size of the file [bytes].
    pub file_bytes: u64,
}

/// Row of a file that the server could not accept.
#[derive(Debug, Clone, Serialize)]
pub struct Refused {
    /// Row, counted from 1.
    pub row: u64,
    /// Name of the column.
    pub column: String,
    /// Reason why the server could not accept the row.
    pub reason: &'static str,
}
