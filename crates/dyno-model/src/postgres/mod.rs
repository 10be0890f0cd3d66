//! `PostgreSQL`: a server process per session, one write-ahead log that any of them can flush, and row locks.
//!
//! ```text
//!   client threads --request--> server process --row lock--> other sessions' ends
//!     share the cores             |   |
//!        ^                        |   '- insert into the log (a position)
//!        '------ reply -----------'
//!                                 '- commit: flush up to its position
//!                                      log lock free: takes it, waits commit_delay, writes, syncs, releases
//!                                      log lock held: sleeps until it is free, then looks again
//! ```
//!
//! **Group commit.** There is no log writer between a commit and the device. The process that finds the log lock free
//! flushes everything inserted so far; those that find it held sleep until it is released, and most of them then find
//! their records flushed. So one flush serves all commits that arrived during the one before.
//!
//! **Rows.** Sessions that wait for a row wake up one after the other at the end of the transaction that holds the row
//! lock; the first one that runs gets the lock.
//!
//! **Processors.** Client threads and server processes share the cores, each of which has a run queue (`cores`): if
//! there are more sessions than cores, they queue. A process that is woken onto an idle core starts after a random time
//! (`delay`, half of it at the server and half at the client of a round trip), and its waker spends CPU time on that.
//! On a busy core the process only waits for the core. A server process or a client's thread that returns to a core
//! that was idle, or on which others have run in the meantime, loads its data into the core's cache again.
//!
//! | module | what |
//! |---|---|
//! | [`parameters`] | parameters of a server, and costs of its statements |
//! | [`cached`] | misses of the buffer cache at another size |
//! | `cores` | cores, and which process gets which core |
//! | `relation` | pages that statements reference by a key |
//! | [`counts`] | numbers of I/Os of a statement |
//! | [`files`] | data files and temporary files |
//! | `placement` | which core a process gets, and the balance of queues |
//! | `queue` | a core's run queue, and the state of a process in it |
//! | `utilisation` | how busy the cores are, as Linux averages it |
//! | [`load`] | what sessions do: scripts of steps |
//! | `process` | a process on the cores, with its account |
//! | `wal` | the log and its lock |
//! | `rows` | locks of rows |
//! | `session` | a session and its client |
//! | `turns` | turns of an arm, and the rests between them |
//! | [`run`] | a load on a machine, and its result |
//!
//! **Files.** A statement reads as many data blocks as were counted, or as many as the cache is expected to miss at
//! another size ([`cached`]); it writes changed blocks to make room, and temporary blocks of sorts and hashes. Each is a
//! wait for a device.
//!
//! **Limits.** Pages in the cache are not modelled one by one. There is no background writer, no checkpoint, no latch
//! except that of the log, and no parallel worker.

pub mod cached;
mod cores;
pub mod counts;
pub mod files;
pub mod load;
pub mod parameters;
mod placement;
mod process;
mod queue;
mod relation;
mod rows;
pub mod run;
mod session;
mod turns;
mod utilisation;
mod wal;
mod wal_writer;

pub use cores::CoresParameters;
pub use files::Devices;
pub use load::{Load, Script, Step};
pub use parameters::{PostgresParameters, Statement};
pub use process::Wait;
pub use run::{Outcome, run, run_on};
