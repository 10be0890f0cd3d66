//! All tests that use the crate from outside, as one program: several programs would each link the whole crate again.

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
