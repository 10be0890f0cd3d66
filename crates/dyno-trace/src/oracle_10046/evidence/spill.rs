//! Running numbers of rows spilled to a file, so that a call with millions of calls inside does not keep millions of
//! numbers in memory until it ends.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use dyno_evidence::EvidenceError;
use dyno_evidence::private::{aside_of, create_file};

/// Bit that marks a number as standing for several numbers; the other bits are the offset in the file.
const MARK: u64 = 1 << 63;

/// Spilled numbers; the file is removed when this is dropped.
#[derive(Debug, Default)]
pub struct Spill {
    path: PathBuf,
    file: Option<File>,
    end: u64,
}

impl Spill {
    /// Returns an empty spill, whose file would be `<dir>/f<number>.spill.<random>.tmp`.
    pub fn new(dir: &Path, number: u32) -> Self {
        Self { path: aside_of(&dir.join(format!("f{number:06}.spill"))), file: None, end: 0 }
    }

    /// Returns true if a number stands for several spilled numbers.
    #[inline]
    pub fn holds(item: u64) -> bool {
        item & MARK != 0
    }

    fn failed(&self, source: std::io::Error) -> EvidenceError {
        EvidenceError::Io { path: self.path.clone(), source }
    }

    fn open(&mut self) -> Result<&mut File, EvidenceError> {
        if self.file.is_none() {
            self.file = Some(create_file(&self.path).map_err(|source| self.failed(source))?);
        }
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        let path = &self.path;
        self.file.as_mut().ok_or_else(|| EvidenceError::Io { path: path.clone(), source: missing })
    }

    /// Spills numbers and returns the number that stands for them.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn put(&mut self, items: &[u64]) -> Result<u64, EvidenceError> {
        let mut bytes = Vec::with_capacity(8 * (items.len() + 1));
        bytes.extend_from_slice(&(items.len() as u64).to_le_bytes());
        for item in items {
            bytes.extend_from_slice(&item.to_le_bytes());
        }
        let at = self.end;
        let file = self.open()?;
        let written = file.seek(SeekFrom::Start(at)).and_then(|_| file.write_all(&bytes));
        written.map_err(|source| self.failed(source))?;
        self.end += bytes.len() as u64;
        Ok(at | MARK)
    }

    /// Calls `take` with each number for which `item` stands, in their order.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn each(&mut self, item: u64, mut take: impl FnMut(u64)) -> Result<(), EvidenceError> {
        let mut open = vec![item];
        while let Some(item) = open.pop() {
            if !Self::holds(item) {
                take(item);
                continue;
            }
            let inside = self.read(item & !MARK)?;
            open.extend(inside.into_iter().rev());
        }
        Ok(())
    }

    fn read(&mut self, at: u64) -> Result<Vec<u64>, EvidenceError> {
        let end = self.end;
        let file = self.open()?;
        let mut word = [0; 8];
        let mut read = || -> std::io::Result<Vec<u64>> {
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut word)?;
            let len = u64::from_le_bytes(word).min(end);
            let mut bytes = vec![0; 8 * len as usize];
            file.read_exact(&mut bytes)?;
            let numbers = bytes.chunks_exact(8).map(|chunk| {
                word.copy_from_slice(chunk);
                u64::from_le_bytes(word)
            });
            Ok(numbers.collect())
        };
        read().map_err(|source| self.failed(source))
    }
}

impl Drop for Spill {
    fn drop(&mut self) {
        if self.file.take().is_some() {
            fs::remove_file(&self.path).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_in_order_however_deep_they_were_put_aside() {
        let mut spill = Spill::new(&std::env::temp_dir(), std::process::id());
        let first = spill.put(&[1, 2, 3]).unwrap();
        let second = spill.put(&[4, 5]).unwrap();
        let whole = spill.put(&[first, second, 6]).unwrap();
        let mut seen = Vec::new();
        spill.each(whole, |number| seen.push(number)).unwrap();
        assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
        let path = spill.path.clone();
        drop(spill);
        assert!(!path.exists());
    }
}
