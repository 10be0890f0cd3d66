//! Helpers for tests of the lexer: reading a text in one piece or many, records as plain text that does not depend on
//! batches, and the real files.
#![allow(dead_code, clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use dyno_trace::oracle_10046::files::{ReadOptions, read_file};
use dyno_trace::oracle_10046::input::Source;
use dyno_trace::oracle_10046::lexer::{Lexer, Options};
use dyno_trace::oracle_10046::record::{Batch, Reason, Record, Text};
use dyno_trace::oracle_10046::refusal::Refusal;

/// Result of a reading, with absolute positions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// For each record: its offset, its line, and its text.
    pub records: Vec<(u64, u64, String)>,
    /// For each unreadable stretch: its offset, its line, the reason, and a sample.
    pub unread: Vec<(u64, u64, Reason, String)>,
    /// Number of bytes in all batches together.
    pub bytes: u64,
    /// Number of lines in all batches together.
    pub lines: u64,
}

impl Reading {
    /// Adds a batch, and checks that it follows the last one and contains all its texts.
    pub fn add(&mut self, batch: &Batch) {
        assert_eq!(batch.offset, self.bytes, "batches follow on each other");
        assert_eq!(batch.line, self.lines + 1, "lines are counted on");
        for placed in &batch.records {
            let place = batch.offset + u64::from(placed.at);
            let line = batch.line + u64::from(placed.line);
            self.records.push((place, line, describe(batch, &placed.record)));
        }
        for stretch in &batch.unread {
            let place = batch.offset + u64::from(stretch.at);
            let line = batch.line + u64::from(stretch.line);
            self.unread.push((place, line, stretch.reason, words(batch, stretch.text)));
        }
        self.bytes += batch.bytes.len() as u64;
        self.lines += u64::from(batch.lines);
    }

    /// Returns only the records.
    pub fn shown(&self) -> Vec<&str> {
        self.records.iter().map(|(_, _, record)| record.as_str()).collect()
    }

    /// Returns only the reasons.
    pub fn reasons(&self) -> Vec<Reason> {
        self.unread.iter().map(|(_, _, reason, _)| *reason).collect()
    }
}

/// Returns the bytes of a text in printable form.
pub fn words(batch: &Batch, text: Text) -> String {
    let end = text.start as usize + text.len as usize;
    assert!(end <= batch.bytes.len(), "{text:?} lies in the batch of {}", batch.bytes.len());
    batch.bytes_of(text).escape_ascii().to_string()
}

/// Returns a record with its texts instead of their positions.
pub fn describe(batch: &Batch, record: &Record) -> String {
    let none = i64::MIN.to_string();
    let shown = match record {
        Record::Call(call) => {
            let mut bare = *call;
            (bare.name, bare.lob_type) = Default::default();
            format!("{bare:?} {} {}", words(batch, call.name), words(batch, call.lob_type))
        }
        Record::Wait(wait) => {
            let mut bare = *wait;
            (bare.nam, bare.parameters) = Default::default();
            format!("{bare:?} {} [{}]", words(batch, wait.nam), words(batch, wait.parameters))
        }
        Record::Cursor(cursor) | Record::ParseError(cursor) => {
            let mut bare = *cursor;
            (bare.ad, bare.sqlid, bare.sql) = Default::default();
            let texts = [cursor.ad, cursor.sqlid, cursor.sql].map(|text| words(batch, text));
            let error = matches!(record, Record::ParseError(_));
            format!("{} {bare:?} {texts:?}", if error { "ParseError" } else { "Cursor" })
        }
        Record::Stat(stat) => {
            let mut bare = *stat;
            bare.op = Text::default();
            format!("{bare:?} {}", words(batch, stat.op))
        }
        Record::Bind(bind) => {
            let mut bare = *bind;
            (bare.head, bare.value) = Default::default();
            format!("{bare:?} [{}] [{}]", words(batch, bind.head), words(batch, bind.value))
        }
        Record::Stamp(stamp) => {
            let mut bare = *stamp;
            (bare.value, bare.container) = Default::default();
            format!("{bare:?} [{}] [{}]", words(batch, stamp.value), words(batch, stamp.container))
        }
        Record::Header(text) => format!("Header {}", words(batch, *text)),
        Record::Other(text) => format!("Other {}", words(batch, *text)),
        Record::Binds { .. } | Record::Error(_) | Record::Xct(_) => format!("{record:?}"),
    };
    shown.replace(&none, "-")
}

/// Reads a text in chunks of the given sizes, repeated cyclically.
pub fn read_in(text: &[u8], sizes: &[usize], options: Options) -> Reading {
    let mut lexer = Lexer::new(options);
    let mut reading = Reading::default();
    let mut batch = Batch::default();
    let mut rest = text;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (chunk, after) = rest.split_at((*size).clamp(1, rest.len()));
        rest = after;
        batch = lexer.push(chunk, batch);
        reading.add(&batch);
    }
    batch = lexer.finish(batch);
    reading.add(&batch);
    assert_eq!(reading.bytes, text.len() as u64, "every byte passes");
    reading
}

/// Reads a text in one piece, keeping binds.
pub fn read(text: impl AsRef<[u8]>) -> Reading {
    let options = Options { binds: true, ..Options::default() };
    read_in(text.as_ref(), &[usize::MAX], options)
}

/// Returns the records of a text in one piece, with the batch that they point into.
pub fn batch_of(text: impl AsRef<[u8]>) -> Batch {
    let mut lexer = Lexer::new(Options { binds: true, ..Options::default() });
    let mut batch = Batch::default();
    lexer.begin(&mut batch);
    batch.bytes.extend_from_slice(text.as_ref());
    lexer.lex(&mut batch, true);
    batch
}

/// Returns the only record of a text.
pub fn only(text: impl AsRef<[u8]>) -> (Batch, Record) {
    let batch = batch_of(text);
    assert_eq!(batch.records.len(), 1, "{:?} {:?}", batch.records, batch.unread);
    assert!(batch.unread.is_empty(), "{:?}", batch.unread);
    let record = batch.records[0].record;
    (batch, record)
}

/// Reads a file with `read_file`.
pub fn read_path(path: &Path, options: &ReadOptions) -> Result<Reading, Refusal> {
    let mut reading = Reading::default();
    let source = Source::File(path.to_owned());
    let end = read_file::<Refusal>(&source, options, &mut |batch| {
        reading.add(&batch);
        Ok(batch)
    })?;
    assert_eq!((end.bytes, end.lines), (reading.bytes, reading.lines));
    Ok(reading)
}

/// Returns the real traces; empty, with a message on stderr, if they are not available.
pub fn real_files() -> Vec<PathBuf> {
    let root = std::env::var_os("DBDYNO_DATA")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data"), PathBuf::from);
    let Ok(entries) = root.join("traces").read_dir() else {
        eprintln!("skipped: no real traces in {}", root.display());
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "trc"))
        .collect();
    files.sort();
    files
}

/// Random number generator with a seed (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    /// Returns the next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit.max(1) as u64) as usize
    }
}

/// Damages a text in one of the ways in which files get damaged: bytes changed, stretches lost, doubled, moved, filled
/// with NULs, lines joined, the end cut off.
pub fn damage(text: &mut Vec<u8>, dice: &mut Dice) {
    const PIECES: [&[u8]; 14] = [
        b"\n",
        b"\r\n",
        b"'",
        b"\"",
        b"=====================\n",
        b"END OF STMT\n",
        b"#",
        b"\0\0\0",
        b"WAIT #1: nam='x' ela= ",
        b" Bind#0\n",
        b"  value=\"",
        b"*** 20",
        b"99999999999999999999",
        b"PARSING IN CURSOR #5 len=70 dep=0 uid=1 oct=3 lid=1 tim=1 hv=1 ad='0'\n",
    ];
    if text.is_empty() {
        return;
    }
    let at = dice.below(text.len());
    let end = (at + 1 + dice.below(200)).min(text.len());
    match dice.below(8) {
        0 => text[at] = dice.roll() as u8,
        1 => text[at] ^= 1 << dice.below(8),
        2 => drop(text.drain(at..end)),
        3 => {
            let copy = text[at..end].to_vec();
            let to = dice.below(text.len());
            text.splice(to..to, copy);
        }
        4 => text[at..end].fill(0),
        5 => {
            let piece = PIECES[dice.below(PIECES.len())];
            text.splice(at..at, piece.iter().copied());
        }
        6 => {
            if let Some(found) = text[at..].iter().position(|byte| *byte == b'\n') {
                text.remove(at + found);
            }
        }
        _ => {
            if dice.below(4) == 0 {
                text.truncate(at);
            }
        }
    }
}
