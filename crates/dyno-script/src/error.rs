//! What can be wrong with a script, and what can go wrong while one runs.
//!
//! A [`ScriptError`] is found before anything runs and names its place; an [`EvalError`] depends on
//! the values of the variables and is found by the session that evaluates.

use thiserror::Error;

/// A script that does not parse: where, what, and what to do next.
///
/// Displayed as `file:line:column: message`, then a line `  next: hint`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}:{column}: {message}\n  next: {hint}")]
pub struct ScriptError {
    /// Name of the script as the caller gave it.
    pub file: String,
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
    /// What is wrong.
    pub message: String,
    /// The next step for the author of the script.
    pub hint: String,
}

/// An expression (or a `\sleep`) that cannot be evaluated with the present values.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum EvalError {
    /// Nothing has set the variable in this session.
    #[error("variable :{name} is not set")]
    Unset {
        /// The variable's name.
        name: String,
    },
    /// A variable's text is neither a number nor a truth value nor NULL.
    #[error("variable :{name} holds '{text}', which is not a number")]
    NotANumber {
        /// The variable's name.
        name: String,
        /// Its text, at most 80 characters.
        text: String,
    },
    /// The result does not fit 64 bits.
    #[error("{operation} leaves the range of 64-bit integers")]
    IntegerRange {
        /// What was calculated.
        operation: &'static str,
    },
    /// A double that no 64-bit integer can hold.
    #[error("{value} does not fit a 64-bit integer")]
    DoubleRange {
        /// The double.
        value: f64,
    },
    /// Integer division or remainder by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A value of the wrong type.
    #[error("{from} stands where {to} is needed")]
    Type {
        /// The type that is there.
        from: &'static str,
        /// The type that is needed.
        to: &'static str,
    },
    /// A random function whose lower bound is above its upper bound.
    #[error("the range {low} to {high} of a random function is empty")]
    EmptyRange {
        /// Lower bound.
        low: i64,
        /// Upper bound.
        high: i64,
    },
    /// A random function whose range does not fit 64 bits.
    #[error("the range {low} to {high} of a random function is too large")]
    WideRange {
        /// Lower bound.
        low: i64,
        /// Upper bound.
        high: i64,
    },
    /// The third argument of a random function.
    #[error("the parameter of {function} must be {bounds}, not {value}")]
    Parameter {
        /// Name of the function.
        function: &'static str,
        /// What it takes.
        bounds: &'static str,
        /// What it got.
        value: f64,
    },
    /// `permute` over no element.
    #[error("the size given to permute must be greater than zero, not {size}")]
    PermuteSize {
        /// What it got.
        size: i64,
    },
    /// The variable of a `\sleep` does not begin with a whole number.
    #[error("variable :{name} holds '{text}', which is not a time to sleep")]
    SleepTime {
        /// The variable's name.
        name: String,
        /// Its text, at most 80 characters.
        text: String,
    },
}

/// An error on the hot path: boxed, so that the usual result fits two registers.
pub(crate) type Fault = Box<EvalError>;

/// The beginning of a text for a message.
pub(crate) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 80;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
