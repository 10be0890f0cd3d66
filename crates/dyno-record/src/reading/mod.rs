//! Recording of waits by reading the server's shared memory from another process: no probe, no stop, no write.
//!
//! A backend's wait word and its entry in `pg_stat_activity`'s array are in the postmaster's shared mapping. [`memory`]
//! maps it read-only, or copies from it where mapping is not permitted. [`arrays`] finds the arrays of processes in it
//! and checks them against the running program. [`looks`] looks at all backends again and again, [`pace`] decides how
//! often, [`locks`] finds who holds a lock, and [`run`] turns the findings into calls and waits.
//!
//! Limits: a wait that is shorter than the time between two looks is seen with probability length / period. So sums of
//! time are unbiased, and numbers of waits are lower bounds; [`capture`] estimates how many waits there were.

pub mod activity;
pub mod arrays;
pub mod capture;
pub mod horizon;
pub mod locks;
pub mod looks;
pub mod memory;
pub mod pace;
pub mod program;
mod rhythm;
pub mod run;
pub mod seen;
mod sessions;
mod stretches;
mod tally;
pub mod target;
