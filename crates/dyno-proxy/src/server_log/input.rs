//! Lines of a log file, plain or gzip, with bounded memory.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use memchr::{memchr, memchr_iter};

/// Size above which an entry is only counted, not read [bytes].
pub const LONGEST: usize = 16 << 20;
const BLOCK: usize = 1 << 18;

/// A file that counts the bytes read from it.
struct Counted {
    file: File,
    done: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read(into)?;
        self.done.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

/// Line of a file.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    /// Bytes of the line without the line end; of a line longer than [`LONGEST`], only the beginning.
    pub bytes: &'a [u8],
    /// Number of the line, from 1.
    pub number: u64,
    /// False if the file ends within the line.
    pub is_whole: bool,
}

/// Reader of lines.
pub struct Lines {
    reader: Box<dyn Read>,
    buffer: Vec<u8>,
    /// Offset of the unread part of the buffer.
    at: usize,
    end: usize,
    number: u64,
    /// Number of unpacked bytes read.
    pub bytes: u64,
    /// True if all lines of the first block end with a carriage return before the line feed; otherwise a carriage
    /// return is part of a statement.
    has_returns: Option<bool>,
    is_over: bool,
    stop: Option<Arc<AtomicBool>>,
    /// Reason why the file could not be read to its end.
    pub broken: Option<io::Error>,
}

impl Lines {
    /// Opens a file; `done` counts the bytes read from the disk.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn open(path: &Path, done: Arc<AtomicU64>) -> io::Result<Self> {
        let mut head = [0; 2];
        let count = File::open(path)?.read(&mut head)?;
        let file = Counted { file: File::open(path)?, done };
        Ok(Self::of(if head[..count] == [0x1f, 0x8b] {
            Box::new(MultiGzDecoder::new(BufReader::with_capacity(BLOCK, file)))
        } else {
            Box::new(file)
        }))
    }

    /// Returns the lines of any stream.
    pub fn of(reader: Box<dyn Read>) -> Self {
        let buffer = vec![0; BLOCK];
        Self {
            reader,
            buffer,
            at: 0,
            end: 0,
            number: 0,
            bytes: 0,
            has_returns: None,
            is_over: false,
            stop: None,
            broken: None,
        }
    }

    /// Makes the reader stop early, once `stop` is true.
    pub fn stop_with(&mut self, stop: Arc<AtomicBool>) {
        self.stop = Some(stop);
    }

    /// Returns the next line; `None` at the end of the file, or where it becomes unreadable.
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        let mut searched = self.at;
        loop {
            if let Some(found) = memchr(b'\n', &self.buffer[searched..self.end]) {
                let (from, end) = (self.at, searched + found);
                self.at = end + 1;
                self.number += 1;
                return Some(self.line(from, end, true));
            }
            if self.is_over {
                let (from, end) = (self.at, self.end);
                self.at = end;
                self.number += u64::from(from < end);
                return (from < end).then(|| self.line(from, end, false));
            }
            // Of a line that is too long the beginning stays, one byte more than can be.
            if self.end - self.at > LONGEST {
                self.end = self.at + LONGEST + 1;
            }
            searched = self.fill();
        }
    }

    fn line(&mut self, from: usize, end: usize, is_whole: bool) -> Line<'_> {
        let bytes = &self.buffer[from..end];
        let has_returns = *self.has_returns.get_or_insert_with(|| {
            let start = &self.buffer[..self.end];
            memchr_iter(b'\n', start).all(|at| at > 0 && start[at - 1] == b'\r')
        });
        let bytes = bytes.strip_suffix(b"\r").filter(|_| has_returns).unwrap_or(bytes);
        Line { bytes, number: self.number, is_whole }
    }

    /// Reads more bytes; returns the offset of the new ones.
    fn fill(&mut self) -> usize {
        if self.at > 0 {
            self.buffer.copy_within(self.at..self.end, 0);
            (self.at, self.end) = (0, self.end - self.at);
        }
        if self.buffer.len() - self.end < BLOCK / 2 {
            self.buffer.resize(self.end + BLOCK, 0);
        } else if self.buffer.len() > 8 * BLOCK && self.end < BLOCK {
            self.buffer.truncate(2 * BLOCK);
            self.buffer.shrink_to_fit();
        }
        let from = self.end;
        if self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            self.is_over = true;
            return from;
        }
        match self.reader.read(&mut self.buffer[from..]) {
            Ok(0) => self.is_over = true,
            Ok(count) => {
                self.end += count;
                self.bytes += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => (self.is_over, self.broken) = (true, Some(error)),
        }
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &'static [u8]) -> Vec<(Vec<u8>, u64, bool)> {
        let mut lines = Lines::of(Box::new(text));
        let mut found = Vec::new();
        while let Some(line) = lines.next_line() {
            found.push((line.bytes.to_vec(), line.number, line.is_whole));
        }
        found
    }

    #[test]
    fn the_last_line_tells_that_it_was_cut() {
        assert_eq!(lines(b"a\r\n\r\nb"), [(b"a".to_vec(), 1, true), (vec![], 2, true), (b"b".to_vec(), 3, false)]);
        assert!(lines(b"").is_empty());
        assert_eq!(lines(b"a\n").len(), 1);
    }

    #[test]
    fn a_carriage_return_is_part_of_the_line_where_not_all_have_one() {
        assert_eq!(lines(b"a\r\nb\n"), [(b"a\r".to_vec(), 1, true), (b"b".to_vec(), 2, true)]);
    }

    #[test]
    fn a_line_that_is_too_long_keeps_its_beginning_and_the_next_is_read() {
        let long = vec![b'x'; LONGEST + 3 * BLOCK];
        let text: &'static [u8] = Box::leak([&long[..], b"\nnext\n"].concat().into_boxed_slice());
        let found = lines(text);
        assert_eq!(found.len(), 2);
        assert!(found[0].0.len() > LONGEST);
        assert_eq!(found[1].0, b"next");
    }
}
