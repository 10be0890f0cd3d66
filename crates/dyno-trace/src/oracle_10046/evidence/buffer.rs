//! Rows to be written into a table, column by column.

use std::hash::Hasher;

use dyno_evidence::NONE;
use dyno_evidence::table::{Column, Kind, Texts, Values};

/// A hash for whole numbers.
#[derive(Clone, Copy, Debug, Default)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        let mixed = (self.0 ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

/// Index of the column with the session's number, in calls and waits.
pub const SESSION: usize = 2;
/// Index of the column with the start [ns], in calls and waits.
pub const STARTED_NS: usize = 6;

/// Number that stands for an unknown or missing word.
const UNKNOWN: u32 = u32::MAX;

/// Words of one column in a stretch of rows: maps foreign numbers to local numbers, which are indexes into a list.
#[derive(Debug, Default)]
struct Known {
    /// Local number by foreign number; foreign numbers are small, since they count names.
    numbers: Vec<u32>,
    /// Foreign numbers that have a local number.
    ids: Vec<u32>,
}

impl Known {
    /// Returns the local number of `id`; `word` is called for its text at the first use.
    #[inline]
    fn number(&mut self, id: u32, list: &mut Vec<String>, word: impl FnOnce(u32) -> String) -> u32 {
        match self.numbers.get(id as usize) {
            _ if id == UNKNOWN => UNKNOWN,
            Some(&number) if number != UNKNOWN => number,
            _ => {
                list.push(word(id));
                self.learn(id, list.len() as u32 - 1)
            }
        }
    }

    fn learn(&mut self, id: u32, number: u32) -> u32 {
        if self.numbers.len() <= id as usize {
            self.numbers.resize(id as usize + 1, UNKNOWN);
        }
        self.numbers[id as usize] = number;
        self.ids.push(id);
        number
    }

    fn forget(&mut self) {
        for id in self.ids.drain(..) {
            self.numbers[id as usize] = UNKNOWN;
        }
    }
}

/// Rows of a table that are still to be written.
#[derive(Debug)]
pub struct Buffer {
    values: Vec<Values>,
    known: Vec<Known>,
    rows: usize,
}

type Columns<'a> = std::iter::Zip<std::slice::IterMut<'a, Values>, std::slice::IterMut<'a, Known>>;

fn empty(kind: Kind) -> Values {
    match kind {
        Kind::I64 => Values::I64(Vec::new()),
        Kind::U64 => Values::U64(Vec::new()),
        Kind::U32 => Values::U32(Vec::new()),
        Kind::U8 => Values::U8(Vec::new()),
        Kind::Bool => Values::Bool(Vec::new()),
        Kind::Text | Kind::Repeated => Values::Text(Texts::default()),
        Kind::Words => Values::Words(Vec::new(), Vec::new()),
    }
}

impl Buffer {
    /// Returns an empty buffer for a table.
    pub fn new(columns: &[Column]) -> Self {
        let values: Vec<Values> = columns.iter().map(|column| empty(column.kind)).collect();
        let known = values.iter().map(|_| Known::default()).collect();
        Self { values, known, rows: 0 }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Shifts the starts of a session's rows, from row `from` on; only for the tables of calls and waits.
    pub fn shift(&mut self, session: u32, from: usize, by_ns: i64) {
        let (before, after) = self.values.split_at_mut(STARTED_NS);
        if let (Values::U32(sessions), Values::I64(starts)) = (&before[SESSION], &mut after[0]) {
            for (start, own) in starts.iter_mut().zip(sessions).skip(from) {
                *start = if *own == session { start.saturating_add(by_ns) } else { *start };
            }
        }
    }

    /// Begins a row; all its columns must follow in their order.
    pub fn row(&mut self) -> Row<'_> {
        self.rows += 1;
        Row { columns: self.values.iter_mut().zip(&mut self.known) }
    }

    /// Begins several rows; all their columns must follow in their order.
    pub fn stretch<'a, R>(&'a mut self, rows: &'a [R]) -> Stretch<'a, R> {
        self.rows += rows.len();
        Stretch { columns: self.values.iter_mut().zip(&mut self.known), rows }
    }

    /// Returns the columns filled so far, so that they can be changed.
    pub fn values(&mut self) -> &mut [Values] {
        &mut self.values
    }

    /// Passes the columns to `to`; afterwards the buffer is empty and keeps its memory.
    pub fn drain<T>(&mut self, to: impl FnOnce(&mut [Values]) -> T) -> T {
        let done = to(&mut self.values);
        self.values.iter_mut().for_each(Values::clear);
        self.known.iter_mut().for_each(Known::forget);
        self.rows = 0;
        done
    }
}

/// Rows being filled, column by column.
pub struct Stretch<'a, R> {
    columns: Columns<'a>,
    rows: &'a [R],
}

impl<R> Stretch<'_, R> {
    /// Fills the next column with whole numbers.
    #[inline(always)]
    pub fn i64(mut self, value: impl Fn(&R) -> i64) -> Self {
        if let Some((Values::I64(values), _)) = self.columns.next() {
            values.extend(self.rows.iter().map(value));
        }
        self
    }

    /// Fills the next column with unsigned whole numbers.
    #[inline(always)]
    pub fn u64(mut self, value: impl Fn(&R) -> u64) -> Self {
        if let Some((Values::U64(values), _)) = self.columns.next() {
            values.extend(self.rows.iter().map(value));
        }
        self
    }

    /// Fills the next column with small whole numbers.
    #[inline(always)]
    pub fn u32(mut self, value: impl Fn(&R) -> u32) -> Self {
        if let Some((Values::U32(values), _)) = self.columns.next() {
            values.extend(self.rows.iter().map(value));
        }
        self
    }

    /// Fills the next column with tiny whole numbers; 255 means missing.
    #[inline(always)]
    pub fn u8(mut self, value: impl Fn(&R) -> u8) -> Self {
        if let Some((Values::U8(values), _)) = self.columns.next() {
            values.extend(self.rows.iter().map(value));
        }
        self
    }

    /// Fills the next column with flags.
    #[inline(always)]
    pub fn bool(mut self, value: impl Fn(&R) -> bool) -> Self {
        if let Some((Values::Bool(values), _)) = self.columns.next() {
            values.extend(self.rows.iter().map(value));
        }
        self
    }

    /// Fills the next column with words, by their numbers; `u32::MAX` means missing.
    #[inline(always)]
    pub fn words(mut self, id: impl Fn(&R) -> u32, word: impl Fn(u32) -> String) -> Self {
        if let Some((Values::Words(numbers, list), known)) = self.columns.next() {
            numbers.extend(self.rows.iter().map(|row| known.number(id(row), list, &word)));
        }
        self
    }
}

/// A row being filled.
pub struct Row<'a> {
    columns: Columns<'a>,
}

impl Row<'_> {
    /// Fills the next column with a whole number or [`NONE`].
    pub fn i64(mut self, value: i64) -> Self {
        if let Some((Values::I64(values), _)) = self.columns.next() {
            values.push(value);
        }
        self
    }

    /// Fills the next column with an unsigned whole number.
    pub fn u64(mut self, value: u64) -> Self {
        if let Some((Values::U64(values), _)) = self.columns.next() {
            values.push(value);
        }
        self
    }

    /// Fills the next column with a small whole number.
    pub fn u32(mut self, value: u32) -> Self {
        if let Some((Values::U32(values), _)) = self.columns.next() {
            values.push(value);
        }
        self
    }

    /// Fills the next column with a tiny whole number; 255 means missing.
    pub fn u8(mut self, value: u8) -> Self {
        if let Some((Values::U8(values), _)) = self.columns.next() {
            values.push(value);
        }
        self
    }

    /// Fills the next column with a flag.
    pub fn bool(mut self, value: bool) -> Self {
        if let Some((Values::Bool(values), _)) = self.columns.next() {
            values.push(value);
        }
        self
    }

    /// Fills the next column with a text or NULL.
    pub fn text(mut self, text: Option<&str>) -> Self {
        if let Some((Values::Text(texts), _)) = self.columns.next() {
            texts.push(text);
        }
        self
    }

    /// Fills the next column with bytes as text.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        if let Some((Values::Text(texts), _)) = self.columns.next() {
            texts.push_bytes(bytes);
        }
        self
    }

    /// Fills the next column with a word, by its number; `u32::MAX` means missing.
    pub fn word(mut self, id: u32, word: impl FnOnce(u32) -> String) -> Self {
        if let Some((Values::Words(numbers, list), known)) = self.columns.next() {
            numbers.push(known.number(id, list, word));
        }
        self
    }
}

/// Returns a sum as `i64`, limited to the range of `i64`.
pub fn narrow(value: i128) -> i64 {
    value.clamp(i128::from(NONE + 1), i128::from(i64::MAX)) as i64
}
