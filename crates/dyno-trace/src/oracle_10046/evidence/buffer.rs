//! Rows on their way into a table, column by column.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

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

/// A map from whole numbers.
pub type NumberMap<V> = HashMap<u32, V, BuildHasherDefault<NumberHasher>>;

/// Words of one column in one stretch of rows: numbers from elsewhere become numbers into a list.
#[derive(Debug, Default)]
pub struct Words {
    numbers: Vec<u32>,
    list: Vec<String>,
    known: NumberMap<u32>,
    last: Option<(u32, u32)>,
}

impl Words {
    /// Adds the word that `id` stands for; `word` tells it at first sight.
    #[inline]
    pub fn push(&mut self, id: u32, word: impl FnOnce(u32) -> String) {
        if let Some((known, number)) = self.last
            && known == id
        {
            self.numbers.push(number);
            return;
        }
        let list = &mut self.list;
        let number = *self.known.entry(id).or_insert_with(|| {
            list.push(word(id));
            list.len() as u32 - 1
        });
        self.last = Some((id, number));
        self.numbers.push(number);
    }

    /// Adds the absence of a word.
    pub fn push_none(&mut self) {
        self.numbers.push(u32::MAX);
    }

    /// The column so far; the next one begins.
    pub fn take(&mut self) -> Values {
        self.known.clear();
        self.last = None;
        Values::Words(std::mem::take(&mut self.numbers), std::mem::take(&mut self.list))
    }
}

#[derive(Debug)]
enum Store {
    Plain(Values),
    Words(Words),
}

/// Rows of a table that wait to be written.
#[derive(Debug)]
pub struct Buffer {
    columns: &'static [Column],
    stores: Vec<Store>,
    rows: usize,
}

fn store(kind: Kind) -> Store {
    Store::Plain(match kind {
        Kind::I64 => Values::I64(Vec::new()),
        Kind::U64 => Values::U64(Vec::new()),
        Kind::U32 => Values::U32(Vec::new()),
        Kind::U8 => Values::U8(Vec::new()),
        Kind::Bool => Values::Bool(Vec::new()),
        Kind::Text | Kind::Repeated => Values::Text(Texts::default()),
        Kind::Words => return Store::Words(Words::default()),
    })
}

impl Buffer {
    /// An empty buffer for a table.
    pub fn new(columns: &'static [Column]) -> Self {
        let stores = columns.iter().map(|column| store(column.kind)).collect();
        Self { columns, stores, rows: 0 }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Begins a row; all its columns have to follow in their order.
    pub fn row(&mut self) -> Row<'_> {
        self.rows += 1;
        Row { stores: self.stores.iter_mut() }
    }

    /// The columns so far; the buffer is empty again.
    pub fn take(&mut self) -> Vec<Values> {
        self.rows = 0;
        self.stores
            .iter_mut()
            .zip(self.columns)
            .map(|(own, column)| match own {
                Store::Words(words) => words.take(),
                Store::Plain(_) => match std::mem::replace(own, store(column.kind)) {
                    Store::Plain(values) => values,
                    Store::Words(mut words) => words.take(),
                },
            })
            .collect()
    }
}

/// A row being filled.
pub struct Row<'a> {
    stores: std::slice::IterMut<'a, Store>,
}

impl Row<'_> {
    /// The next column: a whole number, or its absence.
    pub fn i64(mut self, value: i64) -> Self {
        if let Some(Store::Plain(Values::I64(values))) = self.stores.next() {
            values.push(value);
        }
        self
    }

    /// The next column: a whole number without sign.
    pub fn u64(mut self, value: u64) -> Self {
        if let Some(Store::Plain(Values::U64(values))) = self.stores.next() {
            values.push(value);
        }
        self
    }

    /// The next column: a small whole number.
    pub fn u32(mut self, value: u32) -> Self {
        if let Some(Store::Plain(Values::U32(values))) = self.stores.next() {
            values.push(value);
        }
        self
    }

    /// The next column: a tiny whole number, or 255 for its absence.
    pub fn u8(mut self, value: u8) -> Self {
        if let Some(Store::Plain(Values::U8(values))) = self.stores.next() {
            values.push(value);
        }
        self
    }

    /// The next column: a flag.
    pub fn bool(mut self, value: bool) -> Self {
        if let Some(Store::Plain(Values::Bool(values))) = self.stores.next() {
            values.push(value);
        }
        self
    }

    /// The next column: a text, or its absence.
    pub fn text(mut self, text: Option<&str>) -> Self {
        if let Some(Store::Plain(Values::Text(texts))) = self.stores.next() {
            texts.push(text);
        }
        self
    }

    /// The next column: bytes as text.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        if let Some(Store::Plain(Values::Text(texts))) = self.stores.next() {
            texts.push_bytes(bytes);
        }
        self
    }

    /// The next column: a word, or its absence (`u32::MAX`).
    pub fn word(mut self, id: u32, word: impl FnOnce(u32) -> String) -> Self {
        if let Some(Store::Words(words)) = self.stores.next() {
            if id == u32::MAX {
                words.push_none();
            } else {
                words.push(id, word);
            }
        }
        self
    }
}

/// A number of a sum that is wider than a column; at the end of the range it stays there.
pub fn narrow(value: i128) -> i64 {
    value.clamp(i128::from(NONE + 1), i128::from(i64::MAX)) as i64
}
