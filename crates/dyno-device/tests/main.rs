//! Mounted devices from outside, as one program.

mod journals;
mod wall_clock;
