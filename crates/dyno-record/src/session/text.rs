//! Properties of a statement that follow from its text.

use dyno_evidence::normal::normal;

use crate::store::Store;

/// Returns the number of the statement in a text; literals are removed, since they are users' values and would make
/// each text a separate statement.
pub(super) fn statement_of(text: &[u8], store: &mut Store) -> u32 {
    store.statement_of_text(normal(text).as_bytes())
}

/// Relation of a statement to plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// It has a plan.
    Planned,
    /// It has none; plans inside it belong to other statements.
    Utility,
    /// It has none, and the server waits for the client during it.
    Copy,
}

impl Sort {
    /// Returns the sort of a statement text; unknown texts get the most common one.
    pub(super) fn of(text: &[u8]) -> Self {
        const WORDS: [&[u8]; 11] = [
            b"alter", b"analyze", b"call", b"cluster", b"create", b"declare", b"do", b"execute", b"explain",
            b"refresh", b"vacuum",
        ];
        let text = text.trim_ascii_start();
        let end = text.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(text.len());
        let is = |word: &[u8]| word.eq_ignore_ascii_case(&text[..end]);
        if is(b"copy") {
            Self::Copy
        } else if WORDS.into_iter().any(is) {
            Self::Utility
        } else {
            Self::Planned
        }
    }
}
