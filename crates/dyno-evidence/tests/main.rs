//! All tests of the crate that use it from outside, as one program: each would link the whole crate again.

mod catalogue;
mod flags;
mod numbers;
mod parts;
mod words;
