//! Evidence: everything that a run recorded, as Parquet parts that any reader can open.
//!
//! A run folder holds `calls/`, `waits/` and `metrics/`. A part is written under a temporary name that ends in `.tmp`
//! and renamed into place when it is complete, so even a process that is killed leaves only complete parts; every
//! reader ignores names that end in `.tmp`.
//!
//! ```
//! use dyno_evidence::{Call, CallKind, CallsWriter, NONE, read_calls};
//! # fn main() -> Result<(), dyno_evidence::EvidenceError> {
//! let dir = std::env::temp_dir().join(format!("dyno-doc-{}", std::process::id()));
//! let mut part = CallsWriter::create(&dir, "b000000", &["base".into()], &["select-only".into()])?;
//! let call = Call { started_ns: 5, elapsed_ns: 38_000, kind: CallKind::Transaction, ..Call::new() };
//! part.push(&[call], &[])?;
//! assert_eq!(part.finish()?, 1);
//! assert_eq!(read_calls(&dir.join("b000000.parquet"))?.elapsed_ns, [38_000]);
//! # std::fs::remove_dir_all(&dir).ok();
//! # Ok(())
//! # }
//! ```
//!
//! Limits: a part has one writer; times are whole nanoseconds since the UNIX epoch and fit an `i64` until the year
//! 2262.

// What `dyno_cpu` compiles twice is inlined for certain, or it would be compiled once.
#![allow(clippy::inline_always)]

mod call;
mod calls;
pub mod catalogue;
mod chunk;
mod column;
mod error;
mod flags;
mod metrics;
pub mod normal;
pub mod numbered;
mod numbers;
mod packed;
mod part;
pub mod private;
mod read;
pub mod table;
mod table_read;
pub mod trace_store;
pub mod trace_tables;
mod values;
mod waits;
mod words;

pub use call::{Call, CallKind, Failure, NONE};
pub use calls::CallsWriter;
pub use column::{ColumnError, NO_WORD, NumberColumn, NumberPiece, Numbers, read_numbers};
pub use error::EvidenceError;
pub use metrics::{Metrics, write_metrics};
pub use read::{CallColumns, read_calls, read_columns};
pub use waits::{EventName, WaitRow, Waits, WaitsWriter, write_waits};
