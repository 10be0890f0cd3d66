//! A database instance: sessions and their CPU, the redo path, the buffer cache and its writer.
//!
//! ```text
//!   session --cpu--> cores            session --redo--> log buffer --space--> lgwr --> device
//!      |                                 |  full: log buffer space               |
//!      '-- commit: posts lgwr, waits log file sync until its redo is safe <------'
//!                                        lgwr: log file parallel write, then posts the waiters
//!
//!   session --get block--> buffer cache --miss--> device
//!      |                     |  no clean buffer: free buffer waits
//!      '--- dirty block -----'--> dbwr, some writes at once --> device
//! ```
//!
//! What happens is told as waits, under Oracle's names with p1, p2 and p3 ([`wait`]). For every
//! session elapsed time = CPU + sum of waits, to the nanosecond; waiting for a core is one of the
//! waits ([`wait::Event::CpuQueue`]), although a real engine leaves that gap unnamed.
//!
//! **Simultaneous events.** A commit that arrives at the instant at which the log writer gathers goes
//! with the write if it came first in the order of the calendar, else with the next.
//!
//! Missing here: touch counts, write-ahead (the database writer does not wait for the log writer),
//! checkpoints, private strands, log switches.

pub mod buffers;
pub mod redo;
pub mod session;
pub mod wait;

pub use buffers::{BufferCache, BufferParameters};
pub use redo::{Redo, RedoParameters};
pub use session::Session;
pub use wait::{Event, Ledger, Wait};
