//! Exact waits by watchpoints: for the server's own user, without a capability.
//!
//! A debug register of the processor stops a backend behind each store to its wait word ([`backend`]); the written
//! value is derived from the registers ([`store`]). A second debug register watches the query id, which shows when a
//! statement begins and which one ([`layout`]). [`target`] reads the program, [`watching`] finds backends, `giving`
//! assigns their notes to sessions, and [`run`] is the recording.
//!
//! Limits: a stop costs some ten times as much as a probe beside the store. Backends, parallel workers included, are
//! found after they begin: the time until they are watched is `unobserved`. Row counts and SQLSTATEs are not
//! recorded. A statement has a text only if that could be read while it was the latest one.

pub mod backend;
mod giving;
pub mod layout;
pub mod price;
mod rings;
pub mod run;
pub mod store;
pub mod target;
pub mod watching;
