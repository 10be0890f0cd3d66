//! All tests of the crate that use it from outside, as one program: each would link the whole crate again.

mod expressions;
mod goldens;
mod properties;
mod refusals;
mod scripts;
mod support;
