//! Captures made from logs of `PostgreSQL` and `MariaDB`: the same tables as `dbdyno trace proxy --binds`, as far as a
//! log has the data.
//!
//! ```text
//! files -> input -> csvlog, jsonlog, text, syslog -> entries -> event    (one thread)
//!                                                                 |
//!                                       the tables of a trace <- session <- import   (another)
//! ```
//!
//! [`text`] puts entries together, [`event`] reads what they say, [`session`] makes the messages that a client must
//! have sent, and the proxy's own [`crate::follow::Follower`] writes them.
//!
//! Limits: messages in English. A log has no results, so generated keys cannot be mapped by a replay, and numbers of
//! rows cannot be compared. Pipelines are not visible: every execution is a round trip of its own.

pub mod command;
mod commit_order;
pub mod csvlog;
pub mod entry;
pub mod event;
mod import;
pub mod input;
mod job;
pub mod jsonlog;
pub mod mariadb;
pub mod parameters;
pub mod reason;
pub mod session;
pub mod spread;
pub mod stamp;
pub mod syslog;
pub mod text;

pub use import::Import;
pub use job::{File, Form, LogError, LogJob, Request};
