//! A compiled script: a flat list of commands in which `\if` has become jumps.
//!
//! A session keeps one number, the index of its next command, and needs no stack of conditions.

use crate::error::excerpt;
use crate::{EvalError, Expr, Scope, VarId};

/// One script, ready to run.
#[derive(Debug, Clone)]
pub struct Script {
    /// Name as the caller gave it.
    pub name: String,
    /// Commands in order; the script is over when the index passes the end.
    pub commands: Vec<Command>,
}

impl Script {
    /// Number of commands that go to the server.
    pub fn sql_commands(&self) -> usize {
        self.commands.iter().filter(|command| matches!(command, Command::Sql(_))).count()
    }

    /// Whether a run of the script sends exactly one SQL command, whatever the variables are.
    pub fn is_single_sql(&self) -> bool {
        let branches =
            self.commands.iter().any(|command| matches!(command, Command::JumpUnless { .. } | Command::Jump { .. }));
        !branches && self.sql_commands() == 1
    }
}

/// One step of a script. `line` counts from 1.
#[derive(Debug, Clone)]
pub enum Command {
    /// Send SQL.
    Sql(Sql),
    /// `\set`: evaluate and store.
    Set {
        /// Variable that takes the value.
        var: VarId,
        /// What to evaluate.
        expr: Expr,
        /// Line in the script.
        line: u32,
    },
    /// `\sleep`.
    Sleep {
        /// How long.
        time: SleepTime,
        /// Line in the script.
        line: u32,
    },
    /// Go to `target` unless the expression is true ([`Value::truth`](crate::Value::truth)).
    JumpUnless {
        /// The condition.
        expr: Expr,
        /// Index of the next command when it does not hold.
        target: usize,
        /// Line in the script.
        line: u32,
    },
    /// Go to `target`.
    Jump {
        /// Index of the next command.
        target: usize,
    },
    /// `\startpipeline`.
    StartPipeline {
        /// Line in the script.
        line: u32,
    },
    /// `\syncpipeline`.
    SyncPipeline {
        /// Line in the script.
        line: u32,
    },
    /// `\endpipeline`.
    EndPipeline {
        /// Line in the script.
        line: u32,
    },
    /// `\redo`: read the position of the write-ahead log.
    RedoPosition {
        /// Line in the script.
        line: u32,
    },
}

/// What an SQL command does to the transaction, from its first words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlKind {
    /// `begin`, `start transaction`.
    Begin,
    /// `commit`, `end`.
    Commit,
    /// `rollback`, `abort`; not `rollback to`.
    Rollback,
    /// Anything else, compound commands too.
    Other,
}

/// A stretch of SQL for the simple protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Sent as it is.
    Text(String),
    /// Replaced by the variable's text; a variable that is unset stays as `:name`.
    Var(VarId),
}

/// Where the result of an SQL command goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// Put before each column's name to give the variable's name; may be empty.
    pub prefix: String,
    /// `\aset`: every statement of a compound command, last row, no row is no error.
    /// Otherwise `\gset`: the last statement, exactly one row.
    pub all_rows: bool,
}

/// One SQL command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sql {
    /// What it does to the transaction.
    pub kind: SqlKind,
    /// Text with `$1`, `$2`, ... for the extended protocol, without the final semicolon.
    pub text: String,
    /// The variable behind each `$n`; a variable used twice is there twice.
    pub params: Vec<VarId>,
    /// The same command for the simple protocol.
    pub pieces: Vec<Piece>,
    /// Variables inside quotes or comments: the simple protocol replaces them, the extended
    /// protocol cannot (they stay as text), so a client should refuse those that are set.
    pub quoted: Vec<VarId>,
    /// Several statements joined by `\;`: only the simple protocol can run them.
    pub compound: bool,
    /// Where the result goes, if anywhere.
    pub store: Option<Store>,
    /// Line of its first word, from 1.
    pub line: u32,
    /// The SQL on one line for the evidence, at most 200 characters.
    pub label: String,
}

/// How long a `\sleep` lasts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SleepTime {
    /// Known when the script is read, in microseconds.
    FixedUs(u64),
    /// A variable's whole number times `unit_us`.
    Var {
        /// The variable.
        var: VarId,
        /// Length of its unit, in microseconds.
        unit_us: u64,
        /// Its name, for messages.
        name: Box<str>,
    },
}

impl SleepTime {
    /// How long to sleep now, in microseconds; 0 for a negative time. Of a variable counts the
    /// whole number at the beginning of its text.
    ///
    /// # Errors
    /// The variable is unset or its text does not begin with a whole number.
    pub fn micros(&self, scope: &Scope) -> Result<u64, EvalError> {
        let (var, unit_us, name) = match self {
            Self::FixedUs(time_us) => return Ok(*time_us),
            Self::Var { var, unit_us, name } => (*var, *unit_us, name),
        };
        let name = || name.clone().into_string();
        let mut text = Vec::new();
        if !scope.write_text(var, &mut text) && !scope.is_set(var) {
            return Err(EvalError::Unset { name: name() });
        }
        let text = String::from_utf8_lossy(&text);
        let number = text.trim_start();
        let signed = number.strip_prefix(['+', '-']).unwrap_or(number);
        let digits = signed.bytes().take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return Err(EvalError::SleepTime { name: name(), text: excerpt(&text) });
        }
        if number.starts_with('-') {
            return Ok(0);
        }
        let count: u64 = signed[..digits].parse().unwrap_or(u64::MAX);
        Ok(count.saturating_mul(unit_us))
    }
}
