//! Variables of one session, one slot each.
//!
//! Text keeps its spelling for SQL (`1e3` stays `1e3`). It is parsed as a number when it is stored, so that an
//! expression with it costs the same each time. A slot keeps its buffer, so storing results repeatedly does not
//! allocate.

use crate::error::{Fault, excerpt};
use crate::number_text::{write_double, write_int};
use crate::value::Scalar;
use crate::{EvalError, Symbols, Value, VarId};

/// Variables of one session, which exist as long as the session, across scripts.
#[derive(Debug, Clone)]
pub struct Scope {
    slots: Vec<Slot>,
    debug: Vec<String>,
}

#[derive(Debug, Clone, Default)]
struct Slot {
    reading: Reading,
    /// Spelling of a variable that was stored as text.
    text: String,
}

/// Value of a variable for expressions.
#[derive(Debug, Clone, Copy, Default)]
enum Reading {
    #[default]
    Unset,
    Scalar(Scalar),
    /// Stored as text that can be parsed as a scalar.
    Text(Scalar),
    /// Stored as text that cannot be parsed as a scalar.
    Malformed,
}

impl Scope {
    /// Largest number of `debug()` messages kept between two calls of [`Scope::take_debug`].
    pub const DEBUG_MESSAGES: usize = 64;

    /// Returns a scope with all variables unset.
    pub fn new(symbols: &Symbols) -> Self {
        Self { slots: vec![Slot::default(); symbols.len()], debug: Vec::new() }
    }

    /// Returns a variable's value, or `None` if it is not set; allocates memory only for text.
    pub fn get(&self, var: VarId) -> Option<Value> {
        let slot = self.slots.get(var.index())?;
        match slot.reading {
            Reading::Unset => None,
            Reading::Scalar(scalar) => Some(scalar.into()),
            Reading::Text(_) | Reading::Malformed => Some(Value::Text(slot.text.as_str().into())),
        }
    }

    /// Returns true if the variable has been set, even to NULL.
    pub fn is_set(&self, var: VarId) -> bool {
        self.slots.get(var.index()).is_some_and(|slot| !matches!(slot.reading, Reading::Unset))
    }

    /// Stores a value; adds the slot if the variable was declared after the scope was created.
    pub fn set(&mut self, var: VarId, value: Value) {
        let reading = match value {
            Value::Null => Scalar::Null,
            Value::Int(number) => Scalar::Int(number),
            Value::Double(number) => Scalar::Double(number),
            Value::Bool(truth) => Scalar::Bool(truth),
            Value::Text(text) => return self.set_text(var, &text),
        };
        self.slot(var).reading = Reading::Scalar(reading);
    }

    /// Stores a text, such as a column of a result; if the text is a number, expressions use it as one.
    pub fn set_text(&mut self, var: VarId, text: &str) {
        let slot = self.slot(var);
        slot.text.clear();
        slot.text.push_str(text);
        slot.reading = Scalar::parse(text).map_or(Reading::Malformed, Reading::Text);
    }

    /// Removes the value, as if it had never been set.
    pub fn unset(&mut self, var: VarId) {
        self.slot(var).reading = Reading::Unset;
    }

    /// Appends the value's text to `out`; returns false and appends nothing if it is NULL or unset.
    pub fn write_text(&self, var: VarId, out: &mut Vec<u8>) -> bool {
        let Some(slot) = self.slots.get(var.index()) else { return false };
        match slot.reading {
            Reading::Unset | Reading::Scalar(Scalar::Null) => return false,
            Reading::Scalar(Scalar::Int(number)) => write_int(number, out),
            Reading::Scalar(Scalar::Double(number)) => write_double(number, out),
            Reading::Scalar(Scalar::Bool(true)) => out.extend_from_slice(b"true"),
            Reading::Scalar(Scalar::Bool(false)) => out.extend_from_slice(b"false"),
            Reading::Text(_) | Reading::Malformed => out.extend_from_slice(slot.text.as_bytes()),
        }
        true
    }

    /// Returns the messages of `debug()` since the last call, oldest first.
    ///
    /// At most [`Scope::DEBUG_MESSAGES`] are kept; later ones are dropped.
    pub fn take_debug(&mut self) -> Vec<String> {
        std::mem::take(&mut self.debug)
    }

    /// Returns the value for an expression; `name` is for the error message.
    #[inline]
    pub(crate) fn read(&self, var: VarId, name: &str) -> Result<Scalar, Fault> {
        match self.slots.get(var.index()).map(|slot| slot.reading) {
            Some(Reading::Scalar(scalar) | Reading::Text(scalar)) => Ok(scalar),
            other => Err(self.unreadable(var, name, other).into()),
        }
    }

    #[cold]
    fn unreadable(&self, var: VarId, name: &str, reading: Option<Reading>) -> EvalError {
        let name = name.to_owned();
        match reading {
            Some(Reading::Malformed) => EvalError::NotANumber { name, text: excerpt(&self.slots[var.index()].text) },
            _ => EvalError::Unset { name },
        }
    }

    pub(crate) fn note_debug(&mut self, scalar: Scalar) {
        if self.debug.len() >= Self::DEBUG_MESSAGES {
            return;
        }
        let mut text = Vec::new();
        match scalar {
            Scalar::Null => {}
            Scalar::Int(number) => write_int(number, &mut text),
            Scalar::Double(number) => write_double(number, &mut text),
            Scalar::Bool(truth) => text.extend_from_slice(truth.to_string().as_bytes()),
        }
        let text = format!("{} {}", scalar.type_name(), String::from_utf8_lossy(&text));
        self.debug.push(text.trim_end().to_owned());
    }

    fn slot(&mut self, var: VarId) -> &mut Slot {
        if var.index() >= self.slots.len() {
            self.slots.resize_with(var.index() + 1, Slot::default);
        }
        &mut self.slots[var.index()]
    }
}
