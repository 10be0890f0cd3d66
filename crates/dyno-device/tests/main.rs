//! Tests of mounted devices from outside, in one program.

mod catalogue;
mod journals;
mod over_ring;
mod path_tails;
mod wall_clock;
