//! All tests that use the crate from outside, as one program: several programs would each link the whole crate.

mod common;
mod dead_server;
mod errors;
mod line;
mod load;
mod login;
mod open_loop;
mod probe;
mod probe_files;
