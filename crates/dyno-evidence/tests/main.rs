//! All tests that use the crate from outside, as one program: several programs would each link the whole crate.

mod catalogue;
mod flags;
mod numbered;
mod numbers;
mod parts;
mod words;
