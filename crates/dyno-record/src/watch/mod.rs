//! Exact waits by watchpoints: for the server's own user, without a capability.
//!
//! A debug register of the processor stops a backend behind each store to the word that says what it waits for
//! ([`backend`]); the value is told from the registers ([`store`]). A second register stands on the query id, which tells
//! when a statement is taken up and which ([`layout`]). [`target`] is what the program says, [`watching`] finds backends, `giving` gives their
//! notes to sessions, [`run`] is the recording.
//!
//! Limits: a stop costs some ten times what a probe beside the store does. A backend is found after it was born, and a
//! parallel worker as well: the time until it is watched is `unobserved`. Rows and SQLSTATEs are not told. A statement
//! has its text where that could be read while it was the last one.

pub mod backend;
mod giving;
pub mod layout;
pub mod price;
mod rings;
pub mod run;
pub mod store;
pub mod target;
pub mod watching;
