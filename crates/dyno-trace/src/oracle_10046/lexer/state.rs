//! What goes from one batch to the next. It is next to nothing, which is why a file can be read by
//! several threads: a record is read the same whatever stood before it.

/// What a lexer remembers between batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::oracle_10046) struct State {
    /// No record yet since the beginning of the file or of a header.
    pub(super) header: bool,
    /// What the last batch ended in the middle of.
    pub(super) carry: Carry,
}

/// What a batch can end in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carry {
    Nothing,
    /// A run of NULs, counted already.
    Zeros,
    /// A line that is too long, counted already.
    LongLine,
}

impl Default for State {
    fn default() -> Self {
        State { header: true, carry: Carry::Nothing }
    }
}

impl State {
    /// The state in front of a record in the middle of a file.
    pub(in crate::oracle_10046) fn between_records() -> Self {
        State { header: false, carry: Carry::Nothing }
    }

    /// Whether a record that begins here is read the same as after [`State::between_records`].
    pub(in crate::oracle_10046) fn is_between_records(self) -> bool {
        self.carry == Carry::Nothing
    }
}
