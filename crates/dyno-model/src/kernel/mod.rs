//! Simulation kernel: a virtual clock, and what waits on it.
//!
//! ```text
//!                      +--------------------- Simulation ----------------------+
//!   async fn session   |  processes   wake   +-------+   now    +-----------+  |
//!   async fn lgwr  <---+-- polled  <---------| ready |<---------| calendar  |  |
//!                      |                     | FIFO  |          | (time,seq)|  |
//!   disk, flash    <---+-- machines  <-------+-------+<---------+-----------+  |
//!   (state machines)   |   called        the clock moves only when ready is    |
//!                      |                 empty and nothing is left for now     |
//!                      +--------------------------------------------------------+
//!          resources, conditions, channels: lists of processes to wake, in order
//! ```
//!
//! **Order of simultaneous events.** Everything that happens is an event with a time and a sequence number assigned
//! when it was requested; events happen in the order of (time, number). Therefore: of two timers that end at the same
//! instant the one that was started first comes first; a process woken at this instant runs after everything that was
//! already due at this instant; releasing a resource wakes its next user at once, but that user runs after the
//! releasing process has reached its next wait. Nothing depends on addresses, hash order or threads.
//!
//! **Two styles.** A sequence of steps (a session, the log writer) is an `async fn`, spawned as a process. A
//! frequent and simple component that is better written as a state machine (a disk, a flash channel) is a [`Machine`]
//! that handles its own events. Both share one calendar, hence one order.
//!
//! | module | what |
//! |---|---|
//! | [`calendar`] | events to come, by (time, number) |
//! | [`sim`] | clock, processes, machines, the run itself, the hash of everything that happened |
//! | [`hold`] | passing of virtual time |
//! | [`waitlist`] | processes that wait, in order of arrival or priority; the basis of the next three |
//! | [`resource`] | servers with a queue, and their statistics |
//! | [`condition`] | waiting for a notification; a latch that opens once |
//! | [`channel`] | values from one process to another |
//! | [`join`] | waiting for several futures: all of them, or the first |
//! | [`station`] | counts and areas of a queueing station; Little's law as an identity |
//! | [`streams`] | named random streams from one seed |
//! | [`sample`] | samplers that give the same numbers everywhere |
//! | [`table`], [`zipf`] | sampling from measured quantiles; skewed popularity |
//! | [`replicate`] | many runs in parallel threads, arms on common random numbers |
//!
//! ```
//! use dyno_model::kernel::{Resource, Simulation};
//!
//! let simulation = Simulation::new(1);
//! let counter = Resource::new(&simulation, "counter", 1);
//! for _ in 0..2 {
//!     let (sim, counter) = (simulation.sim().clone(), counter.clone());
//!     simulation.spawn("customer", async move {
//!         let _served = counter.acquire().await;
//!         sim.hold(1_000).await;
//!     });
//! }
//! simulation.run()?;
//! assert_eq!(simulation.now_ns(), 2_000);
//! assert_eq!(counter.report().wait_ns_sum, 1_000);
//! # Ok::<(), dyno_model::kernel::SimError>(())
//! ```

mod agenda;
pub mod calendar;
pub mod channel;
pub mod condition;
pub mod error;
pub mod hold;
pub mod join;
mod process;
pub mod replicate;
pub mod resource;
pub mod sample;
pub mod sim;
pub mod station;
pub mod streams;
pub mod table;
pub mod waitlist;
pub mod zipf;

pub use channel::Channel;
pub use condition::{Condition, Latch};
pub use error::{HORIZON_NS, SimError, Waiting};
pub use process::ProcessId;
pub use resource::{Acquire, Permit, Resource};
pub use sample::Stream;
pub use sim::{Machine, MachineId, Sim, Simulation};
pub use station::{Station, StationReport};
pub use streams::Streams;
