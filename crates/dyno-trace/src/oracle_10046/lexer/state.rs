//! State between two batches. There is hardly any, so a file can be read by several threads: a record is read the same
//! whatever preceded it.

/// State that a lexer keeps between batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::oracle_10046) struct State {
    /// True if no record was read since the beginning of the file or of a header.
    pub(super) header: bool,
    /// Structure that the last batch ended inside of.
    pub(super) carry: Carry,
}

/// Structures that a batch can end inside of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carry {
    Nothing,
    /// A run of NULs, which is already counted.
    Zeros,
    /// A line that is too long, which is already counted.
    LongLine,
}

impl Default for State {
    fn default() -> Self {
        State { header: true, carry: Carry::Nothing }
    }
}

impl State {
    /// Returns the state before a record in the middle of a file.
    pub(in crate::oracle_10046) fn between_records() -> Self {
        State { header: false, carry: Carry::Nothing }
    }

    /// Returns true if a record that begins here is read the same as after [`State::between_records`].
    pub(in crate::oracle_10046) fn is_between_records(self) -> bool {
        self.carry == Carry::Nothing
    }
}
