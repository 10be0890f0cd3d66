//! All tests of the crate that use it from outside, as one program: each would link the whole crate again.

mod accounting_cases;
mod accounting_common;
mod accounting_properties;
mod evidence_job;
mod lexer_binds;
mod lexer_common;
mod lexer_files;
mod lexer_invariance;
mod lexer_records;
mod lexer_traps;
mod profile_filter;
mod writer_roundtrip;
