//! Oracle's extended SQL trace, event 10046, from 8i to 26ai.

pub mod accounting;
pub mod check;
pub mod clock;
pub mod events;
pub mod evidence;
pub mod force;
pub mod profile;
pub mod filter;
pub mod files;
pub mod header;
pub mod input;
pub mod refusal;
pub mod job;
pub mod lexer;
pub mod parameters;
pub mod reader;
pub mod record;
pub mod rows;
pub mod session;
pub mod statements;
pub mod tally;
mod sniff;
mod split;
