//! Positions of keys in statements, as given in a request: which parameters, literals and returned columns are keys.

use std::sync::Arc;

use serde::Deserialize;

use super::bind::format_of;
use super::values::Kind;

/// Position of a key: number of the parameter (from 1) or literal (from 0), key space, and true for an array of keys.
pub type Place = (usize, usize, bool);

/// Positions of keys in the statements of a capture.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyPlan {
    /// Kind of the values of each key space.
    pub spaces: Vec<Kind>,
    /// Positions of keys, one entry per shape of a text.
    pub statements: Vec<Places>,
}

/// Positions of keys in a text.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Places {
    /// Shape of the text.
    pub shape: String,
    /// Positions of parameters that are keys.
    #[serde(default)]
    pub parameters: Vec<Place>,
    /// Positions of literals that are keys.
    #[serde(default)]
    pub literals: Vec<Place>,
    /// For each statement of the text, the key space of each returned column whose values are generated.
    #[serde(default)]
    pub returns: Vec<Vec<Option<usize>>>,
    /// True if the text changes data although the end of its statement may not show it:
    /// `with x as (insert ...) select ...`.
    #[serde(default)]
    pub writes: bool,
}

/// Generated keys in the rows of one execution.
#[derive(Clone, Debug)]
pub struct Returned {
    /// Positions of keys in the text.
    pub places: Arc<Places>,
    /// Index of the statement in the text.
    pub statement: usize,
    /// Formats of the columns, as a Bind requests them.
    pub formats: Vec<bool>,
}

impl Returned {
    /// Returns the key space of each column.
    pub fn spaces(&self) -> &[Option<usize>] {
        self.places.returns.get(self.statement).map_or(&[], Vec::as_slice)
    }

    /// Returns true if a column is in binary form.
    pub fn is_binary(&self, column: usize) -> bool {
        format_of(&self.formats, column)
    }
}
