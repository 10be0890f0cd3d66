//! Tests of mounted devices from outside, in one program.

mod catalogue;
mod journals;
mod path_tails;
mod wall_clock;
