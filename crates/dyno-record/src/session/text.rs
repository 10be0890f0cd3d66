//! Properties of a statement that are derived from its text.

use dyno_evidence::normal::normal;

use crate::store::Store;

/// Returns the number of the statement in a text; literals are removed, since they are users' values and would make
/// each text a separate statement.
pub(super) fn statement_of(text: &[u8], store: &mut Store) -> u32 {
    store.statement_of_text(normal(text).as_bytes())
}

/// Kind of a statement: whether it has a plan, and whether it copies data from or to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// The statement has a plan.
    Planned,
    /// The statement has no plan; plans inside it belong to other statements.
    Utility,
    /// The statement has no plan, and the server waits for the client while it runs.
    Copy,
}

impl Sort {
    /// Returns the kind of a statement, by its text; an unknown text gets the most common kind.
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
