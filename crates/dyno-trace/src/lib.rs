//! Readers of trace files: what sessions of an engine did, call by call, wait by wait.
//!
//! There is one folder for each format. [`oracle_10046`] reads Oracle's extended SQL trace (event 10046).

pub mod oracle_10046;
