//! Columns of few different texts, stored as Parquet dictionaries from the numbers they come as.
//!
//! The library's writer looks every value up in a table of texts again, which costs more than all
//! else of a column of waits. Here a text is looked up once a batch, and what is left is to pack
//! numbers (RLE and bit packing, `RLE_DICTIONARY` of the format's description of encodings).
//! Extremes of such columns are not kept: nobody asks for them.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;

/// Rows of a page.
const PAGE_ROWS: usize = 1 << 16;
/// No number of a text.
const UNKNOWN: u32 = u32::MAX;

/// Whether a column is one of these.
pub(crate) fn is_words(kind: &DataType) -> bool {
    matches!(kind, DataType::Dictionary(keys, texts) if **texts == DataType::Utf8
        && matches!(**keys, DataType::UInt8 | DataType::UInt16 | DataType::UInt32))
}

/// One column of one row group.
pub(crate) struct WordsColumn {
    descr: ColumnDescPtr,
    compression: Compression,
    numbers: HashMap<String, u32>,
    /// The texts as the format stores them: length, bytes.
    texts: Vec<u8>,
    /// Of the page being filled: numbers of the texts that are there.
    page: Vec<u32>,
    /// Of the page being filled: which rows have a text; empty while all have.
    present: Vec<bool>,
    page_rows: usize,
    pages: Vec<(CompressedPage, usize)>,
    rows: usize,
}

impl WordsColumn {
    pub(crate) fn new(descr: ColumnDescPtr, compression: Compression) -> Self {
        Self {
            descr,
            compression,
            numbers: HashMap::new(),
            texts: Vec::new(),
            page: Vec::new(),
            present: Vec::new(),
            page_rows: 0,
            pages: Vec::new(),
            rows: 0,
        }
    }

    /// Appends an array for which [`is_words`] holds.
    pub(crate) fn write(&mut self, array: &ArrayRef, zstd: &mut Compressor<'_>) -> Result<()> {
        let (keys, nulls, texts) = taken_apart(array)?;
        let mut known = vec![UNKNOWN; texts.len()];
        let mut at = 0;
        while at < keys.len() {
            let end = keys.len().min(at + PAGE_ROWS - self.page_rows);
            self.take(&keys, nulls.as_ref(), at..end, texts, &mut known);
            if self.page_rows == PAGE_ROWS {
                self.end_page(zstd)?;
            }
            at = end;
        }
        Ok(())
    }

    fn take(
        &mut self,
        keys: &[u32],
        nulls: Option<&NullBuffer>,
        rows: std::ops::Range<usize>,
        texts: &StringArray,
        known: &mut [u32],
    ) {
        let count = rows.len();
        if nulls.is_some() && self.present.is_empty() {
            self.present = vec![true; self.page_rows];
        } else if nulls.is_none() && !self.present.is_empty() {
            self.present.resize(self.page_rows + count, true);
        }
        for at in rows {
            if let Some(nulls) = nulls {
                self.present.push(nulls.is_valid(at));
                if nulls.is_null(at) {
                    continue;
                }
            }
            let key = keys[at] as usize;
            if known[key] == UNKNOWN {
                known[key] = self.number(texts.value(key));
            }
            self.page.push(known[key]);
        }
        self.page_rows += count;
        self.rows += count;
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

    fn end_page(&mut self, zstd: &mut Compressor<'_>) -> Result<()> {
        let mut raw = Vec::with_capacity(64);
        if self.descr.max_def_level() > 0 {
            let mut levels = Vec::new();
            if self.present.is_empty() {
                run_of(1, self.page_rows, 1, &mut levels);
            } else {
                let there: Vec<u32> = self.present.iter().map(|&there| u32::from(there)).collect();
                pack(&there, 1, &mut levels);
            }
            raw.extend_from_slice(&(levels.len() as u32).to_le_bytes());
            raw.append(&mut levels);
        }
        let width = width_of(self.numbers.len());
        raw.push(width as u8);
        pack(&self.page, width, &mut raw);
        let page = Page::DataPage {
            buf: compressed(&raw, zstd)?,
            num_values: self.page_rows as u32,
            encoding: Encoding::RLE_DICTIONARY,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.pages.push((CompressedPage::new(page, raw.len()), self.page_rows));
        self.page.clear();
        self.present.clear();
        self.page_rows = 0;
        Ok(())
    }

    /// The bytes of the column, dictionary first, and what the file has to know of them.
    pub(crate) fn close(mut self, zstd: &mut Compressor<'_>) -> Result<(Bytes, ColumnCloseResult)> {
        if self.page_rows > 0 {
            self.end_page(zstd)?;
        }
        if self.numbers.is_empty() {
            self.number(""); // a dictionary without a text takes the readers' slow road
        }
        let dictionary = Page::DictionaryPage {
            buf: compressed(&self.texts, zstd)?,
            num_values: self.numbers.len() as u32,
            encoding: Encoding::PLAIN,
            is_sorted: false,
        };
        let mut sink = TrackedWrite::new(Vec::new());
        let mut index = OffsetIndexBuilder::new();
        let mut out = SerializedPageWriter::new(&mut sink);
        let first = out.write_page(CompressedPage::new(dictionary, self.texts.len()))?;
        let mut uncompressed = first.uncompressed_size;
        for (page, rows) in self.pages {
            let spec = out.write_page(page)?;
            uncompressed += spec.uncompressed_size;
            index.append_offset_and_size(spec.offset as i64, spec.compressed_size as i32);
            index.append_row_count(rows as i64);
        }
        out.close()?;
        let bytes = Bytes::from(sink.into_inner()?);
        let metadata = ColumnChunkMetaData::builder(self.descr)
            .set_compression(self.compression)
            .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, Encoding::RLE_DICTIONARY])
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(uncompressed as i64)
            .set_num_values(self.rows as i64)
            .set_dictionary_page_offset(Some(0))
            .set_data_page_offset(first.bytes_written as i64)
            .build()?;
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: self.rows as u64,
            metadata,
            bloom_filter: None,
            column_index: None,
            offset_index: Some(index.build()),
        };
        Ok((bytes, close))
    }
}

/// Keys, which of them stand for a value, and the list that they count in.
fn taken_apart(array: &ArrayRef) -> Result<(Vec<u32>, Option<NullBuffer>, &StringArray)> {
    macro_rules! of {
        ($kind:ty) => {
            array.as_dictionary_opt::<$kind>().and_then(|made| {
                let keys = made.keys().values().iter().map(|&key| u32::from(key)).collect();
                let nulls = made.keys().nulls().filter(|nulls| nulls.null_count() > 0).cloned();
                Some((keys, nulls, made.values().as_string_opt::<i32>()?))
            })
        };
    }
    of!(UInt32Type)
        .or_else(|| of!(UInt16Type))
        .or_else(|| of!(UInt8Type))
        .ok_or_else(|| ParquetError::General("a column of words is no dictionary".to_owned()))
}

fn compressed(raw: &[u8], zstd: &mut Compressor<'_>) -> Result<Bytes> {
    let packed = zstd.compress(raw).map_err(|error| ParquetError::External(Box::new(error)))?;
    Ok(Bytes::from(packed))
}

/// Bits of the numbers of so many texts; never 0, which some readers do not take.
fn width_of(texts: usize) -> u32 {
    (texts.saturating_sub(1) as u32 | 1).ilog2() + 1
}

/// Numbers of `width` bits as runs and groups of eight.
fn pack(numbers: &[u32], width: u32, out: &mut Vec<u8>) {
    let (mut literal, mut at) = (0, 0); // what lies between them waits to be packed
    while at < numbers.len() {
        let value = numbers[at];
        let run = numbers[at..].iter().take_while(|&&next| next == value).count();
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

fn run_of(value: u32, count: usize, width: u32, out: &mut Vec<u8>) {
    varint((count as u64) << 1, out);
    out.extend_from_slice(&value.to_le_bytes()[..width.div_ceil(8) as usize]);
}

/// Groups of eight numbers; the last is filled up.
fn groups_of(numbers: &[u32], width: u32, out: &mut Vec<u8>) {
    if numbers.is_empty() {
        return;
    }
    let groups = numbers.len().div_ceil(8);
    varint((groups as u64) << 1 | 1, out);
    let end = out.len() + groups * width as usize;
    let (mut bits, mut held) = (0_u64, 0);
    for &number in numbers {
        bits |= u64::from(number) << held;
        held += width;
        if held >= 32 {
            out.extend_from_slice(&(bits as u32).to_le_bytes());
            bits >>= 32;
            held -= 32;
        }
    }
    out.extend_from_slice(&bits.to_le_bytes()[..held.div_ceil(8) as usize]);
    out.resize(end, 0);
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
