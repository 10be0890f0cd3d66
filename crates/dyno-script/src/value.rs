//! Values of expressions and variables.
//!
//! Within the crate, expressions work on [`Scalar`], which is `Copy`. Text exists only in variables and is parsed as
//! a scalar once, when it is stored.

use crate::EvalError;
use crate::error::Fault;

/// Value of a variable or an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// Signed 64-bit integer.
    Int(i64),
    /// Double-precision number.
    Double(f64),
    /// Boolean.
    Bool(bool),
    /// Text from a result or from the caller; never the result of an expression.
    Text(Box<str>),
}

impl Value {
    /// Returns true if the value makes a condition true: it is true, or a number other than zero.
    pub fn truth(&self) -> bool {
        match self {
            Self::Null | Self::Text(_) => false,
            Self::Int(number) => *number != 0,
            Self::Double(number) => *number != 0.0,
            Self::Bool(truth) => *truth,
        }
    }
}

impl From<Scalar> for Value {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Null => Self::Null,
            Scalar::Int(number) => Self::Int(number),
            Scalar::Double(number) => Self::Double(number),
            Scalar::Bool(truth) => Self::Bool(truth),
        }
    }
}

/// Value other than text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Int(i64),
    Double(f64),
    Bool(bool),
}

impl Scalar {
    /// Returns true if the value makes a condition true: it is true, or a number other than zero.
    pub(crate) fn truth(self) -> bool {
        match self {
            Self::Null => false,
            Self::Int(number) => number != 0,
            Self::Double(number) => number != 0.0,
            Self::Bool(truth) => truth,
        }
    }

    /// Converts to an integer; a double is rounded to the nearest, ties to even.
    pub(crate) fn to_int(self) -> Result<i64, Fault> {
        match self {
            Self::Int(number) => Ok(number),
            Self::Double(number) => double_to_int(number),
            Self::Null | Self::Bool(_) => Err(self.unfit("an integer").into()),
        }
    }

    /// Converts to a double.
    pub(crate) fn to_double(self) -> Result<f64, Fault> {
        match self {
            Self::Int(number) => Ok(number as f64),
            Self::Double(number) => Ok(number),
            Self::Null | Self::Bool(_) => Err(self.unfit("a double").into()),
        }
    }

    /// Converts to a boolean; numbers are not accepted, unlike in [`Scalar::truth`].
    pub(crate) fn to_bool(self) -> Result<bool, Fault> {
        match self {
            Self::Bool(truth) => Ok(truth),
            _ => Err(self.unfit("a truth value").into()),
        }
    }

    /// Returns the name of the value's type.
    pub(crate) fn type_name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Int(_) => "integer",
            Self::Double(_) => "double",
            Self::Bool(_) => "boolean",
        }
    }

    fn unfit(self, to: &'static str) -> EvalError {
        let from = match self {
            Self::Null => "NULL",
            Self::Int(_) => "an integer",
            Self::Double(_) => "a double",
            Self::Bool(_) => "a truth value",
        };
        EvalError::Type { from, to }
    }

    /// Parses a variable's text: `null`, a boolean (also abbreviated), an integer, or a double.
    ///
    /// `1` and `0` are integers. `None` if the text is none of these, or out of range.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        if text.eq_ignore_ascii_case("null") {
            return Some(Self::Null);
        }
        if let Some(truth) = parse_truth(text) {
            return Some(Self::Bool(truth));
        }
        let number = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
        let digits = number.strip_prefix(['+', '-']).unwrap_or(number);
        if digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return number.parse().ok().map(Self::Int);
        }
        parse_double(number).map(Self::Double)
    }
}

/// Rounds to the nearest integer, ties to even.
fn double_to_int(number: f64) -> Result<i64, Fault> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0; // 2^63, exactly
    let rounded = number.round_ties_even();
    if (-LIMIT..LIMIT).contains(&rounded) {
        Ok(rounded as i64)
    } else {
        Err(EvalError::DoubleRange { value: number }.into())
    }
}

fn parse_truth(text: &str) -> Option<bool> {
    let begins =
        |word: &str| word.as_bytes().get(..text.len()).is_some_and(|head| head.eq_ignore_ascii_case(text.as_bytes()));
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if begins("true") || begins("yes") || is("on") {
        Some(true)
    } else if begins("false") || begins("no") || is("off") || is("of") {
        Some(false)
    } else {
        None
    }
}

/// Parses a double as C does: finite literals that become infinite, or underflow, are out of range.
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    let mantissa = text.split(['e', 'E']).next().unwrap_or(text);
    let literal = mantissa.bytes().any(|byte| byte.is_ascii_digit());
    let nonzero = mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    let overflow = literal && number.is_infinite();
    let underflow = nonzero && (number == 0.0 || number.is_subnormal());
    (!overflow && !underflow).then_some(number)
}
