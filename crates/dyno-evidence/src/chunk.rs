//! Shared parts of dbdyno's own column encoders: pages, missing values, and the end of a column chunk.

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, OffsetIndexBuilder};
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;
use zstd::bulk::Compressor;
use zstd::zstd_safe::compress_bound;

/// Number of rows in a page.
pub(crate) const PAGE_ROWS: usize = 1 << 16;
/// Space reserved for the header of a page [bytes].
const PAGE_HEAD: usize = 64;

/// Bitmap of the rows of a page that have a value.
#[derive(Debug, Default)]
pub(crate) struct Presence {
    bits: Vec<u64>,
    rows: usize,
    there: usize,
}

impl Presence {
    /// Appends up to 64 rows, one bit each, set if the row has a value; bits beyond `rows` must be 0.
    #[inline(always)]
    pub(crate) fn push(&mut self, bits: u64, rows: usize) {
        let held = self.rows % 64;
        if held == 0 {
            self.bits.push(bits);
        } else {
            if let Some(last) = self.bits.last_mut() {
                *last |= bits << held;
            }
            if held + rows > 64 {
                self.bits.push(bits >> (64 - held));
            }
        }
        self.rows += rows;
        self.there += bits.count_ones() as usize;
    }

    /// Writes the definition levels of the page, which precede its values, and begins the next page.
    pub(crate) fn end_page(&mut self, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        if self.there == 0 || self.there == self.rows {
            varint((self.rows as u64) << 1, out);
            out.push(u8::from(self.there > 0));
        } else {
            let groups = self.rows.div_ceil(8);
            varint((groups as u64) << 1 | 1, out);
            let end = out.len() + groups;
            self.bits.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
            out.truncate(end);
        }
        let len = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&len.to_le_bytes());
        self.bits.clear();
        (self.rows, self.there) = (0, 0);
    }
}

/// Pages of one column of one row group.
pub(crate) struct Pages {
    descr: ColumnDescPtr,
    encoding: Encoding,
    list: Vec<(CompressedPage, usize)>,
    rows: usize,
    /// Number of rows of the page being filled.
    pub(crate) open_rows: usize,
}

impl Pages {
    pub(crate) fn new(descr: ColumnDescPtr, encoding: Encoding) -> Self {
        Self { descr, encoding, list: Vec::new(), rows: 0, open_rows: 0 }
    }

    /// Ends the page being filled: its stored bytes, and its size before compression [bytes].
    pub(crate) fn push(&mut self, buf: Bytes, raw: usize) {
        let rows = std::mem::take(&mut self.open_rows);
        let page = Page::DataPage {
            buf,
            num_values: rows as u32,
            encoding: self.encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        };
        self.list.push((CompressedPage::new(page, raw), rows));
        self.rows += rows;
    }

    /// Returns the bytes of the chunk, dictionary first, and the chunk's metadata, which the file needs.
    pub(crate) fn close(
        self,
        compression: Compression,
        dictionary: Option<CompressedPage>,
        statistics: Option<Statistics>,
    ) -> Result<(Bytes, ColumnCloseResult)> {
        let stored: usize = self.list.iter().map(|(page, _)| page.data().len() + PAGE_HEAD).sum();
        let mut sink = TrackedWrite::new(Vec::with_capacity(stored));
        let mut index = OffsetIndexBuilder::new();
        let mut out = SerializedPageWriter::new(&mut sink);
        let mut encodings = vec![Encoding::RLE, self.encoding];
        let (mut uncompressed, mut data_at, mut dictionary_at) = (0, 0, None);
        if let Some(page) = dictionary {
            let first = out.write_page(page)?;
            (uncompressed, data_at) = (first.uncompressed_size, first.bytes_written);
            dictionary_at = Some(0);
            encodings.push(Encoding::PLAIN);
        }
        for (page, rows) in self.list {
            let spec = out.write_page(page)?;
            uncompressed += spec.uncompressed_size;
            index.append_offset_and_size(spec.offset as i64, spec.compressed_size as i32);
            index.append_row_count(rows as i64);
        }
        out.close()?;
        let bytes = Bytes::from(sink.into_inner()?);
        let mut metadata = ColumnChunkMetaData::builder(self.descr)
            .set_compression(compression)
            .set_encodings(encodings)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(uncompressed as i64)
            .set_num_values(self.rows as i64)
            .set_dictionary_page_offset(dictionary_at)
            .set_data_page_offset(data_at as i64);
        if let Some(statistics) = statistics {
            metadata = metadata.set_statistics(statistics);
        }
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: self.rows as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: Some(index.build()),
        };
        Ok((bytes, close))
    }
}

/// Compressor for the pages of a part, and buffers that all pages reuse: allocating fresh memory costs more than
/// copying a finished page.
pub(crate) struct Packer {
    zstd: Compressor<'static>,
    packed: Vec<u8>,
    /// Bytes of the page that is being finished, before compression.
    pub(crate) raw: Vec<u8>,
}

impl Packer {
    /// Returns a compressor with this zstd level.
    pub(crate) fn new(level: i32) -> Result<Self> {
        let zstd = Compressor::new(level).map_err(external)?;
        Ok(Self { zstd, packed: Vec::new(), raw: Vec::new() })
    }

    /// Returns `raw` in compressed form.
    pub(crate) fn compressed(&mut self, raw: &[u8]) -> Result<Bytes> {
        self.packed.clear();
        self.packed.reserve(compress_bound(raw.len()));
        self.zstd.compress_to_buffer(raw, &mut self.packed).map_err(external)?;
        Ok(Bytes::copy_from_slice(&self.packed))
    }
}

fn external(error: std::io::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

#[inline(always)]
pub(crate) fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
