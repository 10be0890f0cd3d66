//! Size and time of one file in each numbered folder, as of the manifests of a store of snapshots.
//!
//! A store of a month has 43,000 of them. They are looked at in one go, and added up by blocks of numbers, so that
//! whoever knows the sums of a block need not look at its files one by one.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The file in one numbered folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NumberedFile {
    /// Number of the folder.
    pub number: i64,
    /// Size [bytes].
    pub size: i64,
    /// When it was changed [ns since the epoch].
    pub changed_ns: i64,
}

/// What the files of a block of numbers add up to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockTotals {
    /// Number of the block: those of its folders divided by the length of a block.
    pub block: i64,
    /// Number of files.
    pub count: i64,
    /// Sum of the numbers.
    pub numbers: i64,
    /// Sum of the sizes.
    pub sizes: i64,
    /// Sum of the whole seconds of the times.
    pub seconds: i64,
    /// Sum of the rest of the times [ns].
    pub nanoseconds: i64,
}

/// The numbered folders of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NumberedFiles {
    /// The files that exist, in order of their numbers.
    pub files: Vec<NumberedFile>,
    /// Largest number of a folder, with or without the file.
    pub newest: Option<i64>,
}

impl NumberedFiles {
    /// Returns the totals of each block of `length` numbers that has a file, in order.
    #[must_use]
    pub fn totals(&self, length: i64) -> Vec<BlockTotals> {
        let mut found: Vec<BlockTotals> = Vec::new();
        for file in &self.files {
            let block = file.number / length;
            if found.last().is_none_or(|last| last.block != block) {
                found.push(BlockTotals { block, ..BlockTotals::default() });
            }
            if let Some(last) = found.last_mut() {
                last.count += 1;
                last.numbers = last.numbers.wrapping_add(file.number);
                last.sizes = last.sizes.wrapping_add(file.size);
                last.seconds = last.seconds.wrapping_add(file.changed_ns / 1_000_000_000);
                last.nanoseconds = last.nanoseconds.wrapping_add(file.changed_ns % 1_000_000_000);
            }
        }
        found
    }
}

/// Lists the files called `name` in the numbered folders of `folder`; a missing folder has none.
///
/// Folders whose names are not plain decimal numbers are left out.
///
/// # Errors
///
/// The folder cannot be read.
pub fn numbered_files(folder: &Path, name: &str) -> io::Result<NumberedFiles> {
    let mut found = NumberedFiles::default();
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error),
    };
    let mut path = folder.to_path_buf();
    for entry in entries {
        let entry = entry?.file_name();
        let Some(number) = entry.to_str().and_then(plain_number) else { continue };
        found.newest = found.newest.max(Some(number));
        path.push(&entry);
        path.push(name);
        if let Ok(file) = fs::metadata(&path) {
            let changed_ns = file.mtime().saturating_mul(1_000_000_000).saturating_add(file.mtime_nsec());
            found.files.push(NumberedFile { number, size: file.size().cast_signed(), changed_ns });
        }
        path.pop();
        path.pop();
    }
    found.files.sort_unstable();
    Ok(found)
}

fn plain_number(name: &str) -> Option<i64> {
    let is_plain = !name.is_empty() && name.len() <= 18 && name.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| name.parse().ok()).flatten()
}
