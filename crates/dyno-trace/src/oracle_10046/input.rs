//! Inputs: files, standard input, directories and patterns; plain or compressed, detected by content, not by name.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Chain, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Memory};

use super::compression::Compression;
use super::refusal::Refusal;

/// Memory limit of an xz or lzma decoder [KiB]: the largest preset needs 65 MiB.
const DECODER_KIB: u32 = 96 * 1024;

/// Largest ratio of unpacked text to compressed input. Traces compress by a factor of 8 to 60, traces that only repeat
/// one line by 200.
const RATIO_MAX: u64 = 400;

/// Size of text up to which the ratio is not checked [bytes].
const RATIO_FROM: u64 = 64 << 20;

/// One input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file.
    File(PathBuf),
    /// Standard input.
    Stdin,
}

impl Source {
    /// Returns the path as given; `-` for standard input.
    pub fn path(&self) -> PathBuf {
        match self {
            Source::File(path) => path.clone(),
            Source::Stdin => PathBuf::from("-"),
        }
    }

    /// Returns the size on disk [bytes]; 0 for standard input or if it is unknown.
    pub fn bytes(&self) -> u64 {
        match self {
            Source::File(path) => path.metadata().map_or(0, |metadata| metadata.len()),
            Source::Stdin => 0,
        }
    }
}

/// An open input.
pub(super) enum Input {
    /// A plain file, which several threads can read at any offset.
    File(File, u64),
    /// Any other input, read from front to back.
    Stream(Box<dyn Read + Send>, Compression),
}

/// Opens a source. `taken` counts the bytes read from disk, before they are unpacked; the reader of a plain file counts
/// its bytes itself.
pub(super) fn open(source: &Source, taken: &Arc<AtomicU64>) -> Result<Input, Refusal> {
    let unreadable = |source_error| Refusal::Unreadable { path: source.path(), source: source_error };
    match source {
        Source::File(path) => {
            let mut file = File::open(path).map_err(unreadable)?;
            let metadata = file.metadata().map_err(unreadable)?;
            if metadata.is_dir() {
                return Err(Refusal::NoTraces { path: path.clone() });
            }
            let first = first_bytes(&mut file).map_err(unreadable)?;
            let compression = Compression::of(&first);
            if compression == Compression::Plain && metadata.is_file() {
                return Ok(Input::File(file, metadata.len()));
            }
            stream(first, file, compression, taken).map_err(unreadable)
        }
        Source::Stdin => {
            let mut stdin = io::stdin();
            let first = first_bytes(&mut stdin).map_err(unreadable)?;
            let compression = Compression::of(&first);
            stream(first, stdin, compression, taken).map_err(unreadable)
        }
    }
}

/// Returns up to the first 16 bytes.
fn first_bytes(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut first = Vec::with_capacity(16);
    from.take(16).read_to_end(&mut first)?;
    Ok(first)
}

fn stream(
    first: Vec<u8>,
    rest: impl Read + Send + 'static,
    compression: Compression,
    taken: &Arc<AtomicU64>,
) -> io::Result<Input> {
    let packed = Arc::new(AtomicU64::new(0));
    let raw = Counted { from: Cursor::new(first).chain(rest), taken: Arc::clone(taken), own: Arc::clone(&packed) };
    let reader: Box<dyn Read + Send> = match compression {
        Compression::Plain => Box::new(raw),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(buffered(raw))),
        Compression::Xz => Box::new(lzma_rust2::XzReader::new_mem_limit(buffered(raw), true, DECODER_KIB)),
        Compression::Lzma => Box::new(lzma_rust2::LzmaReader::new_mem_limit(buffered(raw), DECODER_KIB, None)?),
        Compression::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(buffered(raw))),
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::with_buffer(buffered(raw))?),
    };
    let limit = if compression == Compression::Plain { u64::MAX } else { RATIO_FROM };
    Ok(Input::Stream(Box::new(Limited { from: reader, packed, text: 0, limit }), compression))
}

/// Error for a small file that unpacks to so much text that it cannot be a trace; reading stops there.
#[derive(Debug, thiserror::Error)]
#[error("{packed} bytes unpack to more than {text} bytes, over {RATIO_MAX} times as much")]
pub struct TooDense {
    packed: u64,
    text: u64,
}

/// Reader that stops if the unpacked text is too large for its compressed input.
struct Limited {
    from: Box<dyn Read + Send>,
    packed: Arc<AtomicU64>,
    text: u64,
    /// Size of the text up to which the ratio is not checked [bytes].
    limit: u64,
}

impl Read for Limited {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(into)?;
        self.text += count as u64;
        if self.text > self.limit {
            let packed = self.packed.load(Memory::Relaxed);
            if self.text / RATIO_MAX > packed {
                return Err(io::Error::other(TooDense { packed, text: self.text }));
            }
        }
        Ok(count)
    }
}

fn buffered<R: Read>(raw: R) -> BufReader<R> {
    BufReader::with_capacity(256 * 1024, raw)
}

/// Reader that counts the bytes it reads.
struct Counted<R> {
    from: Chain<Cursor<Vec<u8>>, R>,
    taken: Arc<AtomicU64>,
    /// Number of bytes read from this input only.
    own: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.from.read(into)?;
        self.taken.fetch_add(count as u64, Memory::Relaxed);
        self.own.fetch_add(count as u64, Memory::Relaxed);
        Ok(count)
    }
}

/// Returns the inputs that `given` stands for: files, `-` for standard input, directories (all `*.trc` below them,
/// compressed or not), patterns. The files of one directory or pattern are in natural order (`ora_9` before `ora_10`).
/// A path that cannot be found yields a refusal; the other paths are still returned.
pub fn expand<P: AsRef<Path>>(given: &[P]) -> (Vec<Source>, Vec<Refusal>) {
    let mut sources = Vec::new();
    let mut refusals = Vec::new();
    for path in given {
        match expand_one(path.as_ref()) {
            Ok(found) => sources.extend(found),
            Err(refusal) => refusals.push(refusal),
        }
    }
    let mut seen = HashSet::new();
    sources.retain(|source| {
        let Source::File(path) = source else { return seen.insert(PathBuf::from("-")) };
        let fresh = seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone()));
        if !fresh {
            refusals.push(Refusal::Twice { path: path.clone() });
        }
        fresh
    });
    (sources, refusals)
}

fn expand_one(path: &Path) -> Result<Vec<Source>, Refusal> {
    if path == Path::new("-") {
        return Ok(vec![Source::Stdin]);
    }
    if path.is_dir() {
        let mut found = Vec::new();
        directory(path, &mut found).map_err(|source| Refusal::Unreadable { path: path.to_owned(), source })?;
        if found.is_empty() {
            return Err(Refusal::NoTraces { path: path.to_owned() });
        }
        return Ok(in_order(found));
    }
    let pattern = path.to_string_lossy();
    if path.exists() || !pattern.contains(['*', '?', '[']) {
        return Ok(vec![Source::File(path.to_owned())]);
    }
    let matches = glob::glob(&pattern)
        .map_err(|error| Refusal::Pattern { pattern: pattern.clone().into_owned(), reason: error.msg.to_owned() })?;
    let files: Vec<PathBuf> = matches.filter_map(Result::ok).filter(|path| path.is_file()).collect();
    if files.is_empty() {
        return Err(Refusal::NoMatch { pattern: pattern.into_owned() });
    }
    Ok(in_order(files))
}

/// Finds the traces in and below a directory; links to directories are not followed, so that the search always ends.
fn directory(path: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in path.read_dir()? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let path = entry.path();
        if kind.is_dir() {
            directory(&path, found)?;
        } else if is_trace_name(&path) && path.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns true for `x.trc`, with or without a compression suffix such as `.gz`.
fn is_trace_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let packed = [".gz", ".xz", ".lzma", ".bz2", ".zst", ".zstd"];
    let bare = packed.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(&name);
    bare.strip_suffix(".trc").is_some_and(|stem| !stem.is_empty() && !stem.starts_with('.'))
}

fn in_order(mut files: Vec<PathBuf>) -> Vec<Source> {
    files.sort_by(|a, b| natural(&a.to_string_lossy(), &b.to_string_lossy()));
    files.into_iter().map(Source::File).collect()
}

/// Compares names in natural order: runs of digits are compared by their value.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a.as_bytes(), b.as_bytes());
    while let (Some(x), Some(y)) = (left.first(), right.first()) {
        let order = if x.is_ascii_digit() && y.is_ascii_digit() {
            let (left_end, right_end) = (run(left), run(right));
            let (first, second) = (significant(&left[..left_end]), significant(&right[..right_end]));
            (left, right) = (&left[left_end..], &right[right_end..]);
            first.len().cmp(&second.len()).then_with(|| first.cmp(second))
        } else {
            (left, right) = (&left[1..], &right[1..]);
            x.cmp(y)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}

fn run(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

fn significant(digits: &[u8]) -> &[u8] {
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    &digits[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_natural_order() {
        let mut names = vec!["ora_10.trc", "ora_9.trc", "ora_9_1.trc", "ora_009.trc", "a.trc"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["a.trc", "ora_009.trc", "ora_9.trc", "ora_9_1.trc", "ora_10.trc"]);
    }

    #[test]
    fn traces_in_a_directory_are_told_by_their_names() {
        for yes in ["a.trc", "A.TRC", "a.trc.gz", "a.trc.zst", "a.trc.bz2"] {
            assert!(is_trace_name(Path::new(yes)), "{yes}");
        }
        for no in ["a.trm", ".trc", "a.txt", "trc", "a.trc.md", "a.gz"] {
            assert!(!is_trace_name(Path::new(no)), "{no}");
        }
    }
}
