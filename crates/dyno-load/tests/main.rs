//! All tests of the crate that use it from outside, as one program: each would link the whole crate again.

mod common;
mod dead_server;
mod errors;
mod line;
mod load;
mod login;
mod open_loop;
mod probe;
mod probe_files;
