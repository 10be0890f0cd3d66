//! Buffer of rows that wait for a link found later in the file: a call's parent, a wait's owner.

use dyno_evidence::table::{Column, Values};

use super::buffer::Buffer;

/// Number of rows that stay in the processor's cache until their columns are filled.
const STRETCH: usize = 64;

/// A row with the link found so far.
pub trait LateRow: Copy + Default {
    /// Texts for the numbers in rows.
    type Names<'a>;
    /// Columns of the table.
    const COLUMNS: &'static [Column];

    /// Returns the number of the row's session, and the row's start [ns], which may be changed.
    fn session_and_start(&mut self) -> (u32, &mut i64);

    /// Fills the columns from rows, in the order of the table; must be `#[inline(always)]`.
    fn fill(rows: &[Self], columns: &mut Buffer, file: u32, names: &Self::Names<'_>);
}

/// Rows whose links are not yet known. The latest rows are kept as rows, the earlier ones as columns.
pub struct LateRows<K> {
    pub(super) file: u32,
    /// Places for the latest rows.
    recent: Box<[K; STRETCH]>,
    /// Number of places in use.
    used: usize,
    pub(super) columns: Buffer,
}

impl<K: LateRow> LateRows<K> {
    /// Returns an empty buffer.
    pub fn new(file: u32) -> Self {
        Self { file, recent: Box::new([K::default(); STRETCH]), used: 0, columns: Buffer::new(K::COLUMNS) }
    }

    /// Returns the number of buffered rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.columns.rows() + self.used
    }

    /// Adds a row and returns its place, which the caller has to fill; this way a row is copied only once.
    #[inline(always)]
    pub(super) fn add(&mut self, names: &K::Names<'_>) -> &mut K {
        if self.used == STRETCH {
            self.settle(names);
        }
        self.used += 1;
        &mut self.recent[self.used - 1]
    }

    /// Returns the row at `at` if it is not in the columns yet.
    pub(super) fn recent(&mut self, at: usize) -> Option<&mut K> {
        let at = at.checked_sub(self.columns.rows())?;
        self.recent[..self.used].get_mut(at)
    }

    /// Shifts the starts of a session's rows, from the row at `from` on.
    pub fn shift(&mut self, session: u32, from: usize, by_ns: i64) {
        let settled = self.columns.rows();
        self.columns.shift(session, from, by_ns);
        for kept in self.recent[..self.used].iter_mut().skip(from.saturating_sub(settled)) {
            let (own, started_ns) = kept.session_and_start();
            if own == session {
                *started_ns = started_ns.saturating_add(by_ns);
            }
        }
    }

    /// Passes the columns of all buffered rows to `write`, after `complete` has changed them.
    pub(super) fn drain_with<T>(
        &mut self,
        names: &K::Names<'_>,
        complete: impl FnOnce(&mut [Values]),
        write: impl FnOnce(&mut [Values]) -> T,
    ) -> T {
        self.settle(names);
        complete(self.columns.values());
        self.columns.drain(write)
    }

    /// Fills the columns from the recent rows.
    fn settle(&mut self, names: &K::Names<'_>) {
        dyno_cpu::run(Settle { rows: self, names });
    }
}

/// Converter of recent rows into columns.
struct Settle<'s, 'n, 'a, K: LateRow> {
    rows: &'s mut LateRows<K>,
    names: &'n K::Names<'a>,
}

impl<K: LateRow> dyno_cpu::Work for Settle<'_, '_, '_, K> {
    type Done = ();

    #[inline(always)]
    fn run(self) {
        let LateRows { file, recent, used, columns } = self.rows;
        K::fill(&recent[..*used], columns, *file, self.names);
        *used = 0;
    }
}
