//! Columns of few different texts, which arrive as numbers and are stored as Parquet dictionaries.
//!
//! The Parquet library's writer looks up every value in a table of texts, which takes longer than everything else that
//! is done for a column of waits. Here a text is looked up once per batch, and only numbers are packed (RLE and bit
//! packing, `RLE_DICTIONARY` in the Parquet format's description of encodings). The smallest and largest text are not
//! stored, since nothing uses them.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::schema::types::ColumnDescPtr;

use crate::chunk::{PAGE_ROWS, Packer, Pages, Presence, varint};

/// Number that marks a missing text.
const UNKNOWN: u32 = u32::MAX;

/// Returns true if a column of this type is stored by this encoder.
pub(crate) fn is_words(kind: &DataType) -> bool {
    matches!(kind, DataType::Dictionary(keys, texts) if **texts == DataType::Utf8
        && matches!(**keys, DataType::UInt8 | DataType::UInt16 | DataType::UInt32))
}

/// One column of words in one row group.
pub(crate) struct WordsColumn {
    pages: Pages,
    compression: Compression,
    numbers: HashMap<String, u32>,
    /// Distinct texts, in the format's encoding: length and bytes.
    texts: Vec<u8>,
    /// Page being filled: numbers of the texts that are present.
    page: Vec<u32>,
    presence: Option<Presence>,
    /// For each word of the current batch, its number in the dictionary.
    known: Vec<u32>,
}

impl WordsColumn {
    pub(crate) fn new(descr: ColumnDescPtr, compression: Compression) -> Self {
        Self {
            presence: (descr.max_def_level() > 0).then(Presence::default),
            pages: Pages::new(descr, Encoding::RLE_DICTIONARY),
            compression,
            numbers: HashMap::new(),
            texts: Vec::new(),
            page: Vec::new(),
            known: Vec::new(),
        }
    }

    /// Appends an array whose type satisfies [`is_words`].
    pub(crate) fn write_array(&mut self, array: &ArrayRef, packer: &mut Packer) -> Result<()> {
        let (keys, texts) = taken_apart(array)?;
        let texts: Vec<&str> = (0..texts.len()).map(|at| texts.value(at)).collect();
        self.write(&keys, &texts, packer)
    }

    /// Appends words: indexes into a list of texts; [`u32::MAX`] marks a missing word.
    pub(crate) fn write<T: AsRef<str>>(&mut self, keys: &[u32], texts: &[T], packer: &mut Packer) -> Result<()> {
        self.known.clear();
        self.known.resize(texts.len(), UNKNOWN);
        self.page.reserve(keys.len().min(PAGE_ROWS - self.pages.open_rows));
        let mut at = 0;
        while at < keys.len() {
            let end = keys.len().min(at + PAGE_ROWS - self.pages.open_rows);
            keys[at..end].chunks(64).for_each(|keys| self.take(keys, texts));
            self.pages.open_rows += end - at;
            if self.pages.open_rows == PAGE_ROWS {
                self.end_page(packer)?;
            }
            at = end;
        }
        Ok(())
    }

    /// Appends up to 64 words.
    fn take<T: AsRef<str>>(&mut self, keys: &[u32], texts: &[T]) {
        let Some(&first) = keys.first() else { return };
        let present = if keys.iter().any(|key| *key != first) {
            self.take_each(keys, texts)
        } else if let Some(number) = self.number_of(first, texts) {
            self.page.resize(self.page.len() + keys.len(), number);
            u64::MAX >> (64 - keys.len())
        } else {
            0
        };
        if let Some(presence) = &mut self.presence {
            presence.push(present, keys.len());
        }
    }

    /// Appends words; returns a bit for each word, set if the word is present.
    fn take_each<T: AsRef<str>>(&mut self, keys: &[u32], texts: &[T]) -> u64 {
        let (mut present, mut numbers, mut count) = (0, [0; 64], 0);
        for (at, &key) in keys.iter().enumerate() {
            if let Some(number) = self.number_of(key, texts) {
                numbers[count % 64] = number;
                count += 1;
                present |= 1 << at;
            }
        }
        self.page.extend_from_slice(&numbers[..count]);
        present
    }

    /// Returns the number of a word in the dictionary, or `None` if the word is missing.
    #[inline]
    fn number_of<T: AsRef<str>>(&mut self, key: u32, texts: &[T]) -> Option<u32> {
        match self.known.get(key as usize) {
            Some(&UNKNOWN) => {
                let number = self.number(texts[key as usize].as_ref());
                self.known[key as usize] = number;
                Some(number)
            }
            number => number.copied(),
        }
    }

    fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        self.texts.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.texts.extend_from_slice(text.as_bytes());
        number
    }

    fn end_page(&mut self, packer: &mut Packer) -> Result<()> {
        let mut raw = std::mem::take(&mut packer.raw);
        raw.clear();
        if let Some(presence) = &mut self.presence {
            presence.end_page(&mut raw);
        }
        let width = width_of(self.numbers.len());
        raw.push(width as u8);
        pack(&self.page, width, &mut raw);
        self.pages.push(packer.compressed(&raw)?, raw.len());
        packer.raw = raw;
        self.page.clear();
        Ok(())
    }

    /// Returns the bytes of the column, dictionary first, and the metadata that the file needs.
    pub(crate) fn close(mut self, packer: &mut Packer) -> Result<(Bytes, ColumnCloseResult)> {
        if self.pages.open_rows > 0 {
            self.end_page(packer)?;
        }
        if self.numbers.is_empty() {
            self.number(""); // a dictionary without a text takes the readers' slow road
        }
        let dictionary = Page::DictionaryPage {
            buf: packer.compressed(&self.texts)?,
            num_values: self.numbers.len() as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        self.pages.close(self.compression, Some(CompressedPage::new(dictionary, self.texts.len())), None)
    }
}

/// Returns the key of each row ([`UNKNOWN`] if missing), and the list to which the keys refer.
fn taken_apart(array: &ArrayRef) -> Result<(Vec<u32>, &StringArray)> {
    macro_rules! of {
        ($kind:ty) => {
            array.as_dictionary_opt::<$kind>().and_then(|made| {
                let keys = made.keys().iter().map(|key| key.map_or(UNKNOWN, u32::from)).collect();
                Some((keys, made.values().as_string_opt::<i32>()?))
            })
        };
    }
    of!(UInt32Type)
        .or_else(|| of!(UInt16Type))
        .or_else(|| of!(UInt8Type))
        .ok_or_else(|| ParquetError::General("a column of words is no dictionary".to_owned()))
}

/// Returns the number of bits needed to number this many texts; never 0, since some readers do not accept 0 bits.
fn width_of(texts: usize) -> u32 {
    (texts.saturating_sub(1) as u32 | 1).ilog2() + 1
}

/// Packs numbers with `width` bits each, as runs of equal numbers and groups of eight.
fn pack(numbers: &[u32], width: u32, out: &mut Vec<u8>) {
    let (mut literal, mut at) = (0, 0); // what lies between them waits to be packed
    while at < numbers.len() {
        let value = numbers[at];
        let run = run_at(&numbers[at..], value);
        let missing = (at - literal).next_multiple_of(8) - (at - literal);
        if run >= missing + 16 {
            groups_of(&numbers[literal..at + missing], width, out);
            run_of(value, run - missing, width, out);
            literal = at + run;
        }
        at += run;
    }
    groups_of(&numbers[literal..], width, out);
}

/// Returns how many numbers at the beginning equal `value`; in a long run many numbers are compared at a time.
fn run_at(numbers: &[u32], value: u32) -> usize {
    const MANY: usize = 32;
    if numbers.get(1) != Some(&value) {
        return 1;
    }
    let is_value = |many: &&[u32; MANY]| many.iter().fold(0, |all, number| all | (number ^ value)) == 0;
    let whole = MANY * numbers.as_chunks().0.iter().take_while(is_value).count();
    whole + numbers[whole..].iter().take_while(|next| **next == value).count()
}

fn run_of(value: u32, count: usize, width: u32, out: &mut Vec<u8>) {
    varint((count as u64) << 1, out);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Packs numbers in groups of eight; the last group is padded.
fn groups_of(numbers: &[u32], width: u32, out: &mut Vec<u8>) {
    if numbers.is_empty() {
        return;
    }
    let groups = numbers.len().div_ceil(8);
    varint((groups as u64) << 1 | 1, out);
    let end = out.len() + groups * width as usize;
    let (mut bits, mut held) = (0_u64, 0);
    for numbers in numbers.chunks(64) {
        let (mut packed, mut full) = ([0; 4 * 64], 0);
        for &number in numbers {
            bits |= u64::from(number) << held;
            held += width;
            if held >= 32 {
                packed[full..full + 4].copy_from_slice(&(bits as u32).to_le_bytes());
                full += 4;
                bits >>= 32;
                held -= 32;
            }
        }
        out.extend_from_slice(&packed[..full]);
    }
    out.extend_from_slice(&bits.to_le_bytes()[..held.div_ceil(8) as usize]);
    out.resize(end, 0);
}
