//! Exact waits by watchpoints, which the operating system user of the server may set without a capability.
//!
//! A debug register of the processor stops a backend after each store to its wait word ([`backend`]); the written value
//! is derived from the registers ([`store`]). A second debug register watches the query id, which shows when a
//! statement begins and which one ([`layout`]). [`target`] reads the program, [`watching`] finds backends, `giving`
//! assigns their notes to sessions, and [`run`] is the recording.
//!
//! Limits: a stop costs some ten times as much as a probe beside the store. Backends, parallel workers included, are
//! found only after they have begun: the time until they are watched is `unobserved`. Row counts and SQLSTATEs are not
//! recorded. The text of a statement is known only if it could be read while the statement was the session's latest.

pub mod backend;
mod giving;
pub mod layout;
pub mod price;
mod rings;
pub mod run;
pub mod store;
pub mod target;
pub mod watching;
