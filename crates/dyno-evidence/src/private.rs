//! Files and folders of evidence that no other user can redirect or read.
//!
//! A temporary file has a random name and is created with `O_EXCL`, which follows no link. Its permissions depend on
//! the umask and the folder: in a run folder with mode 0700, files have mode 0600.

use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Returns the temporary path for a file that will be at `place`: in the same folder, with a random name that ends in
/// `.tmp`.
pub fn aside_of(place: &Path) -> PathBuf {
    let mut name = place.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{:016x}.tmp", RandomState::new().build_hasher().finish()));
    place.with_file_name(name)
}

/// Creates a file for reading and writing; fails if a file or link of this name exists.
///
/// # Errors
/// The system reports an error, such as `AlreadyExists`.
pub fn create_file(path: &Path) -> io::Result<File> {
    let mode = 0o600 | (mode_above(path)? & 0o066);
    OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)
}

/// Creates a folder with the access rights of its parent folder; creates missing parent folders, too.
///
/// # Errors
/// The system reports an error.
pub fn create_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        fs::create_dir_all(above)?;
    }
    match DirBuilder::new().mode(0o700 | (mode_above(path)? & 0o077)).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        done => done,
    }
}

fn mode_above(path: &Path) -> io::Result<u32> {
    let above = path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(fs::metadata(above)?.permissions().mode())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder(name: &str, mode: u32) -> PathBuf {
        let made = std::env::temp_dir().join(format!("dyno-private-{name}-{}", std::process::id()));
        fs::remove_dir_all(&made).ok();
        fs::create_dir(&made).unwrap();
        fs::set_permissions(&made, fs::Permissions::from_mode(mode)).unwrap();
        made
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn what_is_made_in_a_private_folder_is_private() {
        let run = folder("closed", 0o700);
        create_folder(&run.join("calls")).unwrap();
        create_file(&run.join("calls/part")).unwrap();
        assert_eq!((mode(&run.join("calls")), mode(&run.join("calls/part"))), (0o700, 0o600));
        fs::remove_dir_all(run).unwrap();
    }

    #[test]
    fn what_is_made_in_a_shared_folder_can_be_read_by_others() {
        let run = folder("open", 0o755);
        create_folder(&run.join("calls")).unwrap();
        create_file(&run.join("calls/part")).unwrap();
        assert_eq!(mode(&run.join("calls/part")) & 0o400, 0o400);
        assert_eq!(mode(&run.join("calls/part")) & 0o022, 0);
        fs::remove_dir_all(run).unwrap();
    }

    #[test]
    fn a_link_that_waits_at_the_name_is_not_followed() {
        let run = folder("link", 0o700);
        let (victim, trap) = (run.join("victim"), run.join("trap"));
        fs::write(&victim, "kept").unwrap();
        symlink(&victim, &trap).unwrap();
        assert_eq!(create_file(&trap).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        fs::remove_dir_all(run).unwrap();
    }

    #[test]
    fn names_aside_cannot_be_foretold() {
        let place = Path::new("calls/b000000.parquet");
        let names: std::collections::HashSet<PathBuf> = (0..64).map(|_| aside_of(place)).collect();
        assert_eq!(names.len(), 64);
        assert!(names.iter().all(|name| name.to_string_lossy().starts_with("calls/b000000.parquet.")));
        assert!(names.iter().all(|name| name.to_string_lossy().ends_with(".tmp")));
    }
}
