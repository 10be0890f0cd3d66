//! Oracle's extended SQL trace, event 10046, from 8i to 26ai.

pub mod record;
