//! Values of the columns of a table: whole numbers, flags, words, texts.

use arrow_array::StringArray;
use arrow_array::builder::{ArrayBuilder, StringBuilder};

/// Kind of a column's values, and the value that marks a missing one in an optional column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers; [`NONE`] if missing.
    I64,
    /// Unsigned whole numbers; never missing.
    U64,
    /// Small whole numbers; never missing.
    U32,
    /// Tiny whole numbers; 255 if missing.
    U8,
    /// Flags; never missing.
    Bool,
    /// Few distinct texts, as indexes into a list; `u32::MAX` if missing.
    Words,
    /// Texts.
    Text,
    /// Texts that recur often.
    Repeated,
}

/// Texts of a column.
#[derive(Debug, Default)]
pub struct Texts(StringBuilder);

impl Texts {
    /// Appends a text, or NULL.
    pub fn push(&mut self, text: Option<&str>) {
        self.0.append_option(text);
    }

    /// Appends bytes as text; invalid UTF-8 is replaced.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        self.0.append_value(String::from_utf8_lossy(bytes));
    }

    /// Returns the texts as an array and empties this list.
    pub(crate) fn array(&mut self) -> StringArray {
        self.0.finish()
    }
}

/// Values of a column.
#[derive(Debug)]
pub enum Values {
    /// Values of [`Kind::I64`].
    I64(Vec<i64>),
    /// Values of [`Kind::U64`].
    U64(Vec<u64>),
    /// Values of [`Kind::U32`].
    U32(Vec<u32>),
    /// Values of [`Kind::U8`].
    U8(Vec<u8>),
    /// Values of [`Kind::Bool`].
    Bool(Vec<bool>),
    /// Values of [`Kind::Words`]: indexes into the list of words.
    Words(Vec<u32>, Vec<String>),
    /// Values of [`Kind::Text`] and [`Kind::Repeated`].
    Text(Texts),
}

impl Values {
    /// Returns the number of values.
    pub fn len(&self) -> usize {
        match self {
            Self::I64(values) => values.len(),
            Self::U64(values) => values.len(),
            Self::U32(values) | Self::Words(values, _) => values.len(),
            Self::U8(values) => values.len(),
            Self::Bool(values) => values.len(),
            Self::Text(texts) => texts.0.len(),
        }
    }

    /// Returns true if there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes the values and keeps the allocated memory.
    pub fn clear(&mut self) {
        match self {
            Self::I64(values) => values.clear(),
            Self::U64(values) => values.clear(),
            Self::U32(values) => values.clear(),
            Self::U8(values) => values.clear(),
            Self::Bool(values) => values.clear(),
            Self::Words(numbers, words) => {
                numbers.clear();
                words.clear();
            }
            Self::Text(texts) => *texts = Texts::default(),
        }
    }

    pub(crate) fn is_of(&self, kind: Kind) -> bool {
        match self {
            Self::I64(_) => kind == Kind::I64,
            Self::U64(_) => kind == Kind::U64,
            Self::U32(_) => kind == Kind::U32,
            Self::U8(_) => kind == Kind::U8,
            Self::Bool(_) => kind == Kind::Bool,
            Self::Words(..) => kind == Kind::Words,
            Self::Text(_) => matches!(kind, Kind::Text | Kind::Repeated),
        }
    }
}
