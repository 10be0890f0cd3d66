//! File that is written under a temporary name and renamed once it is complete and on the disk.

use std::collections::hash_map::RandomState;
use std::fs::{self, File, OpenOptions};
use std::hash::BuildHasher;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::MoveError;

/// Temporary and final name of a file; the temporary file is removed on drop unless it was published.
#[derive(Debug)]
pub struct TemporaryFile {
    path: PathBuf,
    place: PathBuf,
    published: bool,
}

impl TemporaryFile {
    /// Opens the temporary file.
    ///
    /// # Errors
    /// The folder cannot be read, or the file cannot be created.
    pub fn create(place: &Path) -> Result<(Self, File), MoveError> {
        let folder = folder_of(place);
        let open_to = fs::metadata(folder).map_err(|e| MoveError::io(folder, &e))?.mode() & 0o066;
        let aside = aside_of(place);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600 | open_to).open(&aside);
        let file = file.map_err(|e| MoveError::io(&aside, &e))?;
        Ok((Self { path: aside, place: place.into(), published: false }, file))
    }

    /// Returns the path of the temporary file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs and renames the file; returns its size [bytes].
    ///
    /// # Errors
    /// The operating system refuses.
    pub fn publish(&mut self, file: &File) -> Result<u64, MoveError> {
        file.sync_all().map_err(|e| MoveError::io(&self.path, &e))?;
        let bytes = file.metadata().map_err(|e| MoveError::io(&self.path, &e))?.len();
        fs::rename(&self.path, &self.place).map_err(|e| MoveError::io(&self.place, &e))?;
        self.published = true;
        // The directory entry is on the disk before the file is reported as finished.
        let folder = folder_of(&self.place);
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|e| MoveError::io(folder, &e))?;
        Ok(bytes)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.published {
            fs::remove_file(&self.path).ok();
        }
    }
}

fn folder_of(place: &Path) -> &Path {
    place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the temporary path: `.<name>.<random>.tmp` in the same folder.
fn aside_of(place: &Path) -> PathBuf {
    let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    place.with_file_name(format!(".{name}.{:016x}.tmp", RandomState::new().hash_one(&name)))
}
