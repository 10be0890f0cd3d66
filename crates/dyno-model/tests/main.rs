//! All tests that use the crate from outside, as one program: several programs would each link the whole crate again.

mod accepted;
mod buffers;
mod calibrate;
mod cell_common;
mod cell_identities;
mod cells;
mod common;
mod controllers;
mod databases;
mod disks;
mod flash;
mod flash_cache;
mod iorm;
mod kernel;
mod machines;
mod parameters;
mod postgres;
mod queues;
mod redo;
mod rig;
mod run_swarm;
mod runs;
mod samplers;
mod sessions;
mod swarm;
mod volumes;
