//! Errors of a script, when it is compiled and when it runs.
//!
//! A [`ScriptError`] is found before anything runs and has a position. An [`EvalError`] depends on the values of
//! variables and is found by the session that evaluates an expression.

use thiserror::Error;

/// Error in the text of a script: position, message and next step.
///
/// Displayed as `file:line:column: message`, then a line `  next: hint`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}:{column}: {message}\n  next: {hint}")]
pub struct ScriptError {
    /// Name of the script, as given by the caller.
    pub file: String,
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
    /// What is wrong.
    pub message: String,
    /// Next step for the author of the script.
    pub hint: String,
}

/// Reason why an expression (or a `\sleep`) cannot be evaluated with the current values.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum EvalError {
    /// A variable is not set in this session.
    #[error("variable :{name} is not set")]
    Unset {
        /// Name of the variable.
        name: String,
    },
    /// The text of a variable is neither a number nor a boolean nor NULL.
    #[error("variable :{name} holds '{text}', which is not a number")]
    NotANumber {
        /// Name of the variable.
        name: String,
        /// Text of the variable, at most 80 characters.
        text: String,
    },
    /// The result does not fit 64 bits.
    #[error("{operation} exceeds the range of 64-bit integers")]
    IntegerRange {
        /// Operation whose result does not fit.
        operation: &'static str,
    },
    /// A double does not fit a 64-bit integer.
    #[error("{value} does not fit a 64-bit integer")]
    DoubleRange {
        /// Value of the double.
        value: f64,
    },
    /// Integer division or remainder by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A value has the wrong type.
    #[error("expected {to}, found {from}")]
    Type {
        /// Type of the value.
        from: &'static str,
        /// Required type.
        to: &'static str,
    },
    /// The lower bound of a random function is greater than its upper bound.
    #[error("the range {low} to {high} of a random function is empty")]
    EmptyRange {
        /// Lower bound.
        low: i64,
        /// Upper bound.
        high: i64,
    },
    /// The range of a random function does not fit 64 bits.
    #[error("the range {low} to {high} of a random function is too large")]
    WideRange {
        /// Lower bound.
        low: i64,
        /// Upper bound.
        high: i64,
    },
    /// The third argument of a random function is out of range.
    #[error("the parameter of {function} must be {bounds}, not {value}")]
    Parameter {
        /// Name of the function.
        function: &'static str,
        /// Allowed values.
        bounds: &'static str,
        /// Actual value.
        value: f64,
    },
    /// The size given to `permute` is not positive.
    #[error("the size given to permute must be greater than zero, not {size}")]
    PermuteSize {
        /// Actual value.
        size: i64,
    },
    /// The variable of a `\sleep` does not begin with an integer.
    #[error("variable :{name} holds '{text}', which is not a time to sleep")]
    SleepTime {
        /// Name of the variable.
        name: String,
        /// Text of the variable, at most 80 characters.
        text: String,
    },
}

/// Error on the hot path; boxed, so that the usual result fits in two registers.
pub(crate) type Fault = Box<EvalError>;

/// Returns the beginning of a text, for a message.
pub(crate) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
