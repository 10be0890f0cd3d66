//! Compiled script: a flat list of commands in which `\if` has become jumps.
//!
//! A session only has to keep the index of its next command and needs no stack of conditions.

use crate::error::excerpt;
use crate::{EvalError, Expr, Scope, VarId};

/// Script that is ready to run.
#[derive(Debug, Clone)]
pub struct Script {
    /// Name, as given by the caller.
    pub name: String,
    /// Commands in order; the script ends when the index passes the last one.
    pub commands: Vec<Command>,
}

impl Script {
    /// Returns the number of commands that are sent to the server.
    pub fn sql_commands(&self) -> usize {
        self.commands.iter().filter(|command| matches!(command, Command::Sql(_))).count()
    }

    /// Returns true if every run of the script sends exactly one SQL command.
    pub fn is_single_sql(&self) -> bool {
        let branches =
            self.commands.iter().any(|command| matches!(command, Command::JumpUnless { .. } | Command::Jump { .. }));
        !branches && self.sql_commands() == 1
    }
}

/// One step of a script; `line` counts from 1.
#[derive(Debug, Clone)]
pub enum Command {
    /// SQL command to send.
    Sql(Sql),
    /// `\set`: evaluates an expression and stores the value.
    Set {
        /// Variable that gets the value.
        var: VarId,
        /// Expression to evaluate.
        expr: Expr,
        /// Line in the script.
        line: u32,
    },
    /// `\sleep`.
    Sleep {
        /// Duration.
        time: SleepTime,
        /// Line in the script.
        line: u32,
    },
    /// Jump to `target` unless the expression is true ([`Value::truth`](crate::Value::truth)).
    JumpUnless {
        /// Condition.
        expr: Expr,
        /// Index of the next command if the condition is false.
        target: usize,
        /// Line in the script.
        line: u32,
    },
    /// Unconditional jump to `target`.
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
    /// `\redo`: reads the position of the write-ahead log.
    RedoPosition {
        /// Line in the script.
        line: u32,
    },
}

/// Effect of an SQL command on the transaction, derived from its first words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlKind {
    /// Begins a transaction: `begin`, `start transaction`.
    Begin,
    /// Commits: `commit`, `end`.
    Commit,
    /// Rolls back: `rollback`, `abort`; not `rollback to`.
    Rollback,
    /// Any other command, including compound commands.
    Other,
}

/// Part of an SQL command for the simple protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Text that is sent unchanged.
    Text(String),
    /// Variable that is replaced by its text; an unset variable remains as `:name`.
    Var(VarId),
}

/// Variables that receive the result of an SQL command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// Prefix of the variables' names, followed by the column's name; may be empty.
    pub prefix: String,
    /// True for `\aset`, false for `\gset`.
    ///
    /// `\aset` stores the last row of every statement of a compound command and accepts missing rows. `\gset` stores
    /// the last statement's result, which must be exactly one row.
    pub all_rows: bool,
}

/// One SQL command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sql {
    /// Effect on the transaction.
    pub kind: SqlKind,
    /// Text with `$1`, `$2`, ... for the extended protocol, without the final semicolon.
    pub text: String,
    /// Variable of each `$n`; a variable that is used twice is listed twice.
    pub params: Vec<VarId>,
    /// The same command for the simple protocol.
    pub pieces: Vec<Piece>,
    /// Variables inside quotes or comments.
    ///
    /// The simple protocol replaces them. The extended protocol cannot and leaves them as text, so a client should
    /// refuse those that are set.
    pub quoted: Vec<VarId>,
    /// True for several statements joined by `\;`, which only the simple protocol can run.
    pub compound: bool,
    /// Destination of the result, if it is stored.
    pub store: Option<Store>,
    /// Line of the command's first word, counted from 1.
    pub line: u32,
    /// SQL on one line for the evidence, at most 200 characters.
    pub label: String,
}

/// Duration of a `\sleep`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SleepTime {
    /// Duration that is known at compile time [us].
    FixedUs(u64),
    /// Integer value of a variable times `unit_us`.
    Var {
        /// Variable.
        var: VarId,
        /// Length of the unit of the variable's value [us].
        unit_us: u64,
        /// Name of the variable, for messages.
        name: Box<str>,
    },
}

impl SleepTime {
    /// Returns the duration with the current values [us]; 0 if it is negative.
    ///
    /// The text of a variable only has to begin with an integer.
    ///
    /// # Errors
    /// The variable is unset, or its text does not begin with an integer.
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
