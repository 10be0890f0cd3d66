//! Database instance: sessions on cores, the redo path, the buffer cache, and their writers.
//!
//! ```text
//!   session --cpu--> cores, run queue
//!      |
//!      |--change--> private strand --commit--> public strands --space--> lgwr --> log members
//!      |                                        full: log buffer space     |      (the slowest)
//!      |                                        file full: log file switch |
//!      |-- commit: posts lgwr, waits log file sync until its redo is safe <'
//!      |
//!      |--get--> buffer cache --miss--> data files
//!      |            |  no clean buffer: free buffer waits
//!      |            '- dirty --> write list, checkpoint queue --> dbwr, some writes at once
//!      |                                                           (redo first: write-ahead)
//!      |--scan--> data files, past the buffers
//!      '--sort--> runs and merges on temporary space
//! ```
//!
//! Events are recorded as waits, under Oracle's names with p1, p2 and p3 ([`event`]), and as calls. For every session
//! elapsed time = CPU + sum of waits, to the nanosecond.
//!
//! | module | what |
//! |---|---|
//! | [`instance`] | parameters, storage, background processes |
//! | [`session`] | the steps of a session |
//! | [`cpu`], [`task`] | cores and their scheduler; processes on them |
//! | [`redo`], [`log_files`] | log buffer; log files and their switch |
//! | [`checkpoint`] | which redo is still needed |
//! | [`buffers`], [`lru`] | buffer cache; which buffer is reused next |
//! | [`sort`] | runs, fan-in and passes |
//! | [`event`], [`wait`] | names of waits; waits, calls and ledgers |
//!
//! **Simultaneous events.** If a commit arrives at the instant at which the log writer gathers redo, the order of the
//! calendar decides: a commit that comes first is part of this write, otherwise of the next one.
//!
//! **Limits.** There is one instance; undo, locks, and all latches except that of redo allocation are not modelled. The
//! workload determines the structure of tables and indexes. A transaction never rolls back.

pub mod buffer_parameters;
pub mod buffers;
pub mod checkpoint;
pub mod cpu;
mod dbwr;
mod direct;
pub mod event;
pub mod instance;
mod io;
mod lgwr;
pub mod log_files;
pub mod lru;
pub mod redo;
pub mod redo_parameters;
pub mod session;
pub mod sort;
pub mod task;
pub mod wait;

pub use buffer_parameters::BufferParameters;
pub use buffers::BufferCounts;
pub use cpu::{Policy, SchedulerParameters};
pub use event::Event;
pub use instance::{Instance, InstanceParameters, ParameterError, Storage};
pub use redo::RedoCounts;
pub use redo_parameters::RedoParameters;
pub use session::{Scan, Session};
pub use sort::{Sort, SortPlan};
pub use wait::{Call, CallKind, Ledger, Process, Sink, Wait};
