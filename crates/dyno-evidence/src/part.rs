//! A Parquet file that becomes visible only when it is complete.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::{ArrowColumnWriter, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnDescPtr, ColumnPath};

use crate::EvidenceError;
use crate::chunk::Packer;
use crate::flags::FlagsColumn;
use crate::numbers::NumbersColumn;
use crate::private::{aside_of, create_file, create_folder};
use crate::values::Values;
use crate::words::{WordsColumn, is_words};

/// Number of rows after which a row group is closed: the most that a writer keeps in memory.
const ROW_GROUP_ROWS: usize = 1 << 20;
const ZSTD_LEVEL: i32 = 1;

/// Rows of one column to be written into a part.
pub(crate) enum Cells<'a> {
    /// An Arrow array, for the Parquet library's encoders and for words.
    Array(ArrayRef),
    /// Values for dbdyno's own encoders: whole numbers, flags and words.
    Values(&'a Values),
}

/// How a part stores its columns.
pub(crate) struct Shape<'a> {
    /// Columns of rising or similar whole numbers, stored as packed differences.
    pub deltas: &'a [&'a str],
    /// Columns of mostly different values, stored without a dictionary.
    pub plain: &'a [&'a str],
    /// Columns without a stored smallest and largest value: for texts, finding these costs more than storing the texts.
    pub unsorted: &'a [&'a str],
    /// Number of rows after which a row group is closed: the most that a writer keeps in memory.
    pub row_group_rows: usize,
    /// True if the smallest and largest values are stored for every page. If false, they are stored only for the row
    /// group, and whole numbers and flags must come as [`Cells::Values`], for dbdyno's own encoders.
    pub page_statistics: bool,
    /// True if the part is synced before it is renamed, so that it survives a power cut.
    pub durable: bool,
}

/// A part being written: `<name>.parquet.<random>.tmp`, renamed to `<name>.parquet` by [`Part::finish`].
pub(crate) struct Part {
    writer: Option<Writer>,
    aside: PathBuf,
    place: PathBuf,
    rows: u64,
    durable: bool,
}

impl Part {
    /// Opens the part under a temporary name; `deltas` names the columns of rising or similar whole numbers.
    pub(crate) fn create(dir: &Path, name: &str, schema: SchemaRef, deltas: &[&str]) -> Result<Self, EvidenceError> {
        let shape = Shape {
            deltas,
            plain: &[],
            unsorted: &[],
            row_group_rows: ROW_GROUP_ROWS,
            page_statistics: true,
            durable: true,
        };
        Self::shaped(dir, name, schema, &shape)
    }

    /// Opens the part under a temporary name, with its columns stored as `shape` specifies.
    pub(crate) fn shaped(dir: &Path, name: &str, schema: SchemaRef, shape: &Shape<'_>) -> Result<Self, EvidenceError> {
        create_folder(dir).map_err(|e| EvidenceError::io(dir, e))?;
        let place = dir.join(format!("{name}.parquet"));
        let aside = aside_of(&place);
        let file = create_file(&aside).map_err(|e| EvidenceError::io(&aside, e))?;
        Self::onto(file, aside, place, schema, shape)
    }

    fn onto(
        file: File,
        aside: PathBuf,
        place: PathBuf,
        schema: SchemaRef,
        shape: &Shape<'_>,
    ) -> Result<Self, EvidenceError> {
        let writer = Writer::create(file, schema, shape).map_err(|e| EvidenceError::parquet(&aside, e))?;
        Ok(Self { writer: Some(writer), aside, place, rows: 0, durable: shape.durable })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), EvidenceError> {
        let cells: Vec<Cells<'_>> = batch.columns().iter().map(|array| Cells::Array(Arc::clone(array))).collect();
        self.write_cells(&cells, batch.num_rows())
    }

    /// Appends rows: one entry of `cells` for each column.
    pub(crate) fn write_cells(&mut self, cells: &[Cells<'_>], rows: usize) -> Result<(), EvidenceError> {
        if let Some(writer) = &mut self.writer {
            writer.write(cells, rows).map_err(|e| EvidenceError::parquet(&self.aside, e))?;
            self.rows += rows as u64;
        }
        Ok(())
    }

    /// Returns the number of rows written so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Closes the part, syncs it if it is to be durable, and renames it; returns the number of rows.
    pub(crate) fn finish(mut self) -> Result<u64, EvidenceError> {
        if let Some(mut writer) = self.writer.take() {
            if let Err(error) = self.end(&mut writer) {
                self.writer = Some(writer); // so that dropping this part removes the file
                return Err(error);
            }
            fs::rename(&self.aside, &self.place).map_err(|e| EvidenceError::io(&self.place, e))?;
            if self.durable {
                sync_folder(&self.place);
            }
        }
        Ok(self.rows)
    }

    /// Writes the footer, flushes, and syncs.
    ///
    /// `into_inner` is not used: it converts an I/O error into text, so a full disk would not be recognized.
    fn end(&self, writer: &mut Writer) -> Result<(), EvidenceError> {
        writer.finish().map_err(|e| EvidenceError::parquet(&self.aside, e))?;
        if self.durable {
            writer.file.inner_mut().get_ref().sync_all().map_err(|e| EvidenceError::io(&self.aside, e))?;
        }
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.writer.take().is_some() {
            fs::remove_file(&self.aside).ok();
        }
    }
}

/// Size of a write to the file [bytes]. The library's own buffer has 8 KB, so a file of 7 MB took 900 system calls.
const WRITE_BYTES: usize = 1 << 18;

/// The Parquet file of a part, written row group by row group.
struct Writer {
    file: SerializedFileWriter<BufWriter<File>>,
    factory: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
    /// Columns of the open row group; empty between two row groups.
    columns: Vec<Column>,
    group_rows: usize,
    group_rows_most: usize,
    /// True if dbdyno's own encoders store whole numbers and flags.
    is_own: bool,
    packer: Packer,
}

/// Column of the open row group: words, whole numbers or flags for dbdyno's own encoders, or a column that the library
/// encodes.
enum Column {
    Words(WordsColumn),
    Numbers(NumbersColumn),
    Flags(FlagsColumn),
    Other(Box<ArrowColumnWriter>),
}

impl Writer {
    fn create(file: File, schema: SchemaRef, shape: &Shape<'_>) -> ParquetResult<Self> {
        let file = BufWriter::with_capacity(WRITE_BYTES, file);
        let opened = ArrowWriter::try_new(file, SchemaRef::clone(&schema), Some(properties(shape)));
        let (file, factory) = opened?.into_serialized_writer()?;
        let packer = Packer::new(ZSTD_LEVEL)?;
        Ok(Self {
            file,
            factory,
            schema,
            columns: Vec::new(),
            group_rows: 0,
            group_rows_most: shape.row_group_rows,
            is_own: !shape.page_statistics,
            packer,
        })
    }

    fn write(&mut self, cells: &[Cells<'_>], rows: usize) -> ParquetResult<()> {
        let mut at = 0;
        while at < rows {
            if self.columns.is_empty() {
                self.columns = self.begin()?;
            }
            let end = rows.min(at + self.group_rows_most - self.group_rows);
            for (number, cells) in cells.iter().enumerate() {
                self.write_column(number, cells, at..end)?;
            }
            self.group_rows += end - at;
            if self.group_rows == self.group_rows_most {
                self.end_group()?;
            }
            at = end;
        }
        Ok(())
    }

    fn write_column(&mut self, number: usize, cells: &Cells<'_>, rows: Range<usize>) -> ParquetResult<()> {
        match (&mut self.columns[number], cells) {
            (Column::Words(column), Cells::Values(Values::Words(keys, words))) => {
                column.write(&keys[rows], words, &mut self.packer)
            }
            (Column::Words(column), Cells::Array(array)) => {
                column.write_array(&array.slice(rows.start, rows.len()), &mut self.packer)
            }
            (Column::Flags(column), Cells::Values(Values::Bool(flags))) => column.write(&flags[rows], &mut self.packer),
            (Column::Numbers(column), Cells::Values(values)) => column.write(values, rows, &mut self.packer),
            (Column::Other(column), Cells::Array(array)) => {
                let values = array.slice(rows.start, rows.len());
                compute_leaves(self.schema.field(number), &values)?.iter().try_for_each(|leaf| column.write(leaf))
            }
            _ => Err(ParquetError::General(format!("column {number}: values of another kind"))),
        }
    }

    /// Creates the columns of a row group; the library's column writers are created only if a column needs one, since
    /// each writer has a separate compressor.
    fn begin(&self) -> ParquetResult<Vec<Column>> {
        let fields = || self.schema.fields().iter().zip(self.file.schema_descr().columns());
        let own: Vec<Option<Column>> =
            fields().map(|(field, descr)| self.own(field, descr)).collect::<ParquetResult<_>>()?;
        if own.iter().all(Option::is_some) {
            return Ok(own.into_iter().flatten().collect());
        }
        let others = self.factory.create_column_writers(self.file.flushed_row_groups().len())?;
        let columns = own.into_iter().zip(others);
        Ok(columns.map(|(own, other)| own.unwrap_or_else(|| Column::Other(Box::new(other)))).collect())
    }

    /// Returns dbdyno's own encoder for a field, or `None` if the library must encode it.
    fn own(&self, field: &Field, descr: &ColumnDescPtr) -> ParquetResult<Option<Column>> {
        let compression = Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?);
        let (kind, descr) = (field.data_type(), descr.clone());
        Ok(match kind {
            kind if is_words(kind) => Some(Column::Words(WordsColumn::new(descr, compression))),
            kind if self.is_own && kind.is_integer() => {
                Some(Column::Numbers(NumbersColumn::new(descr, compression, kind.is_unsigned_integer())))
            }
            DataType::Boolean if self.is_own => Some(Column::Flags(FlagsColumn::new(descr, compression))),
            _ => None,
        })
    }

    fn end_group(&mut self) -> ParquetResult<()> {
        let mut group = self.file.next_row_group()?;
        for column in self.columns.drain(..) {
            match column {
                Column::Words(words) => {
                    let (bytes, close) = words.close(&mut self.packer)?;
                    group.append_column(&bytes, close)?;
                }
                Column::Numbers(numbers) => {
                    let (bytes, close) = numbers.close(&mut self.packer)?;
                    group.append_column(&bytes, close)?;
                }
                Column::Flags(flags) => {
                    let (bytes, close) = flags.close(&mut self.packer)?;
                    group.append_column(&bytes, close)?;
                }
                Column::Other(other) => other.close()?.append_to_row_group(&mut group)?,
            }
        }
        group.close()?;
        self.group_rows = 0;
        Ok(())
    }

    fn finish(&mut self) -> ParquetResult<()> {
        if !self.columns.is_empty() {
            self.end_group()?;
        }
        self.file.finish()?;
        self.file.inner_mut().flush()?;
        Ok(())
    }
}

/// Makes the rename durable where the file system supports it.
fn sync_folder(place: &Path) {
    if let Some(Ok(folder)) = place.parent().map(File::open) {
        folder.sync_all().ok();
    }
}

fn properties(shape: &Shape<'_>) -> WriterProperties {
    let mut base = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL).unwrap_or_default()))
        .set_max_row_group_row_count(Some(shape.row_group_rows))
        .set_created_by("dbdyno".to_owned());
    if !shape.page_statistics {
        base = base.set_statistics_enabled(EnabledStatistics::Chunk);
    }
    for column in shape.unsorted {
        let path = ColumnPath::from(*column);
        base = base.set_column_statistics_enabled(path, EnabledStatistics::None);
    }
    for column in shape.plain {
        base = base.set_column_dictionary_enabled(ColumnPath::from(*column), false);
    }
    shape.deltas.iter().fold(base, |builder, column| delta(builder, column)).build()
}

fn delta(builder: WriterPropertiesBuilder, column: &str) -> WriterPropertiesBuilder {
    let path = ColumnPath::from(column);
    builder.set_column_dictionary_enabled(path.clone(), false).set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::fs::OpenOptions;
    use std::sync::Arc;

    use arrow_array::Int64Array;
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    /// The part is so small that its bytes leave the buffer only with the footer.
    #[test]
    fn a_disk_that_is_full_at_the_footer_reads_as_a_full_disk() {
        let dir = std::env::temp_dir().join(format!("dyno-part-full-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let aside = dir.join("p.tmp");
        fs::write(&aside, "").unwrap();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
        let shape = Shape {
            deltas: &[],
            plain: &[],
            unsorted: &[],
            row_group_rows: ROW_GROUP_ROWS,
            page_statistics: true,
            durable: true,
        };
        let mut part = Part::onto(full, aside, dir.join("p.parquet"), Arc::clone(&schema), &shape).unwrap();
        part.write(&RecordBatch::try_new(schema, vec![Arc::new(Int64Array::from(vec![1]))]).unwrap()).unwrap();
        let error = part.finish().unwrap_err();
        assert!(matches!(error, EvidenceError::Io { .. }), "{error}");
        assert!(error.to_string().contains("dbdyno run --resume"), "{error}");
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0, "what was begun is taken away");
        fs::remove_dir_all(dir).unwrap();
    }
}
