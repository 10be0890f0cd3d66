//! What a profile is asked for.

use super::super::filter::{Field, Filter};

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// Fields to group by; the event where nothing is named.
    pub by: Vec<Field>,
    /// Which items count.
    pub filter: Option<Filter>,
    /// Only what began at this time or later.
    pub from_ns: Option<i64>,
    /// Only what began before this time.
    pub to_ns: Option<i64>,
    /// Only calls up to this depth, and waits of theirs.
    pub depth: Option<u8>,
    /// The largest lines; the others are summed up.
    pub top: Option<usize>,
}

impl Default for Request {
    fn default() -> Self {
        Self { by: vec![Field::Event], filter: None, from_ns: None, to_ns: None, depth: None, top: None }
    }
}

impl Request {
    /// Whether some items do not count.
    pub fn leaves_out(&self) -> bool {
        self.filter.is_some() || self.from_ns.is_some() || self.to_ns.is_some() || self.depth.is_some()
    }

    pub(super) fn uses(&self, is: impl Fn(Field) -> bool + Copy) -> bool {
        self.by.iter().any(|field| is(*field)) || self.filter.as_ref().is_some_and(|filter| filter.uses(is))
    }

    /// Whether statements have to be told apart.
    pub fn needs_statements(&self) -> bool {
        self.uses(|field| matches!(field, Field::Statement | Field::Force))
    }

    /// Whether a wait has to wait for its owner.
    pub(super) fn needs_owners(&self) -> bool {
        self.depth.is_some() || self.uses(Field::is_owners)
    }

    /// Whether it matters when an item began.
    pub(super) fn needs_times(&self) -> bool {
        self.from_ns.is_some()
            || self.to_ns.is_some()
            || self.uses(|field| matches!(field, Field::Second | Field::Minute))
    }

    pub(super) fn is_by_event(&self) -> bool {
        self.by == [Field::Event] && !self.leaves_out()
    }
}
