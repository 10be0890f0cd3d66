//! All tests that use the crate from outside, as one program: several programs would each link the whole crate.

mod expressions;
mod goldens;
mod properties;
mod refusals;
mod scripts;
mod support;
