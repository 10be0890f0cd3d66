//! Oracle's extended SQL trace, event 10046, from 8i to 26ai.

pub mod accounting;
pub mod check;
pub mod clock;
pub mod compression;
pub mod events;
pub mod evidence;
pub mod files;
pub mod filter;
pub mod force;
pub mod header;
pub mod input;
pub mod job;
pub mod lexer;
pub mod parameters;
pub mod profile;
pub mod reader;
pub mod reading;
pub mod record;
pub mod refusal;
pub mod rows;
pub mod session;
mod sniff;
mod split;
pub mod statements;
pub mod tally;
pub mod writer;
