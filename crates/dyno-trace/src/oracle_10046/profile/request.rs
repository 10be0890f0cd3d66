//! Request for a profile.

use super::super::filter::{Field, Filter};

/// Request for a profile.
#[derive(Clone, Debug)]
pub struct Request {
    /// Fields to group by; the event if none is named.
    pub by: Vec<Field>,
    /// Filter that selects items.
    pub filter: Option<Filter>,
    /// Include only items that began at this time or later [ns].
    pub from_ns: Option<i64>,
    /// Include only items that began before this time [ns].
    pub to_ns: Option<i64>,
    /// Include only calls up to this depth, and their waits.
    pub depth: Option<u8>,
    /// Number of the largest lines to return; the others are summed up.
    pub top: Option<usize>,
}

impl Default for Request {
    fn default() -> Self {
        Self { by: vec![Field::Event], filter: None, from_ns: None, to_ns: None, depth: None, top: None }
    }
}

impl Request {
    /// Returns true if the request leaves out some items.
    pub fn leaves_out(&self) -> bool {
        self.filter.is_some() || self.from_ns.is_some() || self.to_ns.is_some() || self.depth.is_some()
    }

    pub(super) fn uses(&self, is: impl Fn(Field) -> bool + Copy) -> bool {
        self.by.iter().any(|field| is(*field)) || self.filter.as_ref().is_some_and(|filter| filter.uses(is))
    }

    /// Returns true if statements must be distinguished.
    pub fn needs_statements(&self) -> bool {
        self.uses(|field| matches!(field, Field::Statement | Field::Force))
    }

    /// Returns true if a wait's owner must be known.
    pub(super) fn needs_owners(&self) -> bool {
        self.depth.is_some() || self.uses(Field::is_owners)
    }

    /// Returns true if the start of an item matters.
    pub(super) fn needs_times(&self) -> bool {
        self.from_ns.is_some()
            || self.to_ns.is_some()
            || self.uses(|field| matches!(field, Field::Second | Field::Minute))
    }

    pub(super) fn is_by_event(&self) -> bool {
        self.by == [Field::Event] && !self.leaves_out()
    }
}
