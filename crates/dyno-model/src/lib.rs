//! A database instance and its storage, in virtual time.
//!
//! A deterministic discrete-event simulation. Sessions, log writer, database writer, flash cards, disks and storage
//! cells are modelled by what they *do* (queue, seek, turn, program, erase, post, wait), and the figures of a study are
//! measured in this simulation:
//!
//! ```text
//!   run         arms x blocks of a machine, into evidence        machine   from TOML
//!      |
//!   workload    what sessions do: commit, update, look up, scan, sort
//!      |
//!   database    sessions, log buffer and log writer, buffer cache and database writer
//!      |
//!   cell        storage cells: flash log, flash cache, resource management, disk groups
//!      |
//!   device      flash, disk, controller cache, stripe, mirror, LUN, channel, empirical
//!      |
//!   kernel      virtual clock, calendar, processes, resources, channels, random streams
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`kernel`] | the simulation engine, which knows nothing of storage or databases |
//! | [`device`] | storage devices, each with its parameters and where their numbers come from |
//! | [`cell`] | storage cells and the disk groups over them |
//! | [`database`] | an instance and its processes, with their waits |
//! | [`workload`] | what its sessions do |
//! | [`postgres`] | a `PostgreSQL`, its clients and its log, with the costs that a run measured |
//! | [`machine`] | instance and storage from a text, with a source for each number |
//! | [`run`] | arms of a study on machines, written as evidence |
//! | [`formula`] | the closed forms that kernel and devices are tested against |
//!
//! Nothing here reads a clock, a file or the environment, and only [`run`] writes files. Equal version, parameters and
//! seed give runs that are equal to the bit on every machine. Time is whole nanoseconds (`_ns`), size whole bytes.

pub mod cell;
pub mod database;
pub mod device;
pub mod formula;
pub mod kernel;
pub mod machine;
pub mod postgres;
pub mod run;
pub mod workload;
