//! Merging of one file's rows from all tables, in the order of the file, with one batch of each table in memory.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use dyno_evidence::EvidenceError;
use dyno_evidence::table::{Rows, TableRows, read_table};

use super::super::evidence::shared_part;

/// A piece of text and its position: line, then byte.
#[derive(Debug)]
pub struct Piece {
    line: i64,
    byte_offset: i64,
    /// Text with its line end.
    pub text: String,
}

/// Function from a batch to the texts of its rows.
pub type Render<'a> = Box<dyn Fn(&Rows) -> Result<Vec<String>, EvidenceError> + 'a>;

/// Rows of one table that belong to one file.
pub struct Stream<'a> {
    parts: VecDeque<PathBuf>,
    open: Option<TableRows>,
    columns: Vec<&'static str>,
    file: u32,
    render: Render<'a>,
    waiting: VecDeque<Piece>,
}

impl<'a> Stream<'a> {
    /// Returns the rows of `file` in these parts, which must be in order.
    pub fn new(parts: Vec<PathBuf>, columns: &[&'static str], file: u32, render: Render<'a>) -> Self {
        let mut columns = columns.to_vec();
        columns.extend(["file", "line", "byte_offset"]);
        let (parts, waiting) = (parts.into(), VecDeque::new());
        Self { parts, open: None, columns, file, render, waiting }
    }

    /// Returns the position of the next row; `None` after the last.
    fn next_place(&mut self) -> Result<Option<(i64, i64)>, EvidenceError> {
        while self.waiting.is_empty() {
            let Some(rows) = self.next_batch()? else { return Ok(None) };
            let (files, lines) = (rows.u32s("file")?, rows.i64s("line")?);
            let offsets = rows.i64s("byte_offset")?;
            if !files.contains(&self.file) {
                continue;
            }
            let texts = (self.render)(&rows)?;
            for (((file, line), byte_offset), text) in files.into_iter().zip(lines).zip(offsets).zip(texts) {
                if file == self.file {
                    self.waiting.push_back(Piece { line, byte_offset, text });
                }
            }
        }
        Ok(self.waiting.front().map(|piece| (piece.line, piece.byte_offset)))
    }

    fn next_batch(&mut self) -> Result<Option<Rows>, EvidenceError> {
        loop {
            if let Some(open) = &mut self.open {
                match open.next() {
                    Some(rows) => return rows.map(Some),
                    None => self.open = None,
                }
            }
            let Some(path) = self.parts.pop_front() else { return Ok(None) };
            self.open = Some(read_table(&path, &self.columns)?);
        }
    }
}

/// Returns the next piece of all streams in the order of the file; `None` at its end.
///
/// # Errors
/// A part cannot be read.
pub fn next_piece(streams: &mut [Stream<'_>]) -> Result<Option<Piece>, EvidenceError> {
    let mut first: Option<((i64, i64), usize)> = None;
    for (number, stream) in streams.iter_mut().enumerate() {
        if let Some(place) = stream.next_place()?
            && first.is_none_or(|(known, _)| place < known)
        {
            first = Some((place, number));
        }
    }
    Ok(first.and_then(|(_, number)| streams[number].waiting.pop_front()))
}

/// Returns the parts of a large table that hold a file's rows, in order; they may also hold rows of neighbouring files.
///
/// # Errors
/// The folder of the table cannot be read.
pub fn parts_of(run: &Path, table: &str, file: u32) -> Result<Vec<PathBuf>, EvidenceError> {
    let dir = run.join(table);
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let failed = |source| EvidenceError::Io { path: dir.clone(), source };
    let (begin, shared) = (format!("f{file:06}-"), format!("{}.parquet", shared_part(file)));
    let mut parts = Vec::new();
    for entry in dir.read_dir().map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name == shared || name.starts_with(&begin) && name.ends_with(".parquet") {
            parts.push(path);
        }
    }
    parts.sort();
    Ok(parts)
}
