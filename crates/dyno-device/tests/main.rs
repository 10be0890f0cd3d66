//! Tests of mounted devices from outside, in one program.

mod journals;
mod wall_clock;
