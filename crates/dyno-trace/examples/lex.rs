//! Measures how fast a trace is lexed, and counts its records:
//! `cargo run --release -p dyno-trace --example lex -- FILE [THREADS [CHUNK_BYTES]]`.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use dyno_trace::oracle_10046::files::{ReadOptions, read_file};
use dyno_trace::oracle_10046::input::Source;
use dyno_trace::oracle_10046::record::Record;
use dyno_trace::oracle_10046::refusal::Refusal;

fn name(record: &Record) -> &'static str {
    match record {
        Record::Call(_) => "call",
        Record::Wait(_) => "wait",
        Record::Cursor(_) => "cursor",
        Record::Stat(_) => "stat",
        Record::Binds { .. } => "binds",
        Record::Bind(_) => "bind",
        Record::Error(_) => "error",
        Record::ParseError(_) => "parse error",
        Record::Xct(_) => "xctend",
        Record::Stamp(_) => "stamp",
        Record::Header(_) => "header",
        Record::Other(_) => "other",
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = PathBuf::from(arguments.next().ok_or("which file?")?);
    let mut options = ReadOptions::default();
    if let Some(threads) = arguments.next() {
        options.threads = threads.parse()?;
    }
    if let Some(bytes) = arguments.next() {
        options.chunk_bytes = bytes.parse()?;
    }
    let source = Source::File(file);
    for _ in 0..3 {
        let start = Instant::now();
        let mut records = 0;
        let end = read_file::<Refusal>(&source, &options, &mut |batch| {
            records += batch.records.len();
            Ok(batch)
        })?;
        let seconds = start.elapsed().as_secs_f64();
        let speed = end.bytes as f64 / 1e6 / seconds;
        println!("{seconds:.3} s, {speed:.0} MB/s, {} lines, {records} records", end.lines);
    }
    let mut kinds = BTreeMap::new();
    let mut unread = BTreeMap::new();
    read_file::<Refusal>(&source, &options, &mut |batch| {
        for placed in &batch.records {
            *kinds.entry(name(&placed.record)).or_insert(0_u64) += 1;
        }
        for stretch in &batch.unread {
            let sample = String::from_utf8_lossy(batch.bytes_of(stretch.text)).into_owned();
            let line = batch.line + u64::from(stretch.line);
            unread.entry(stretch.reason).or_insert((0_u64, line, sample)).0 += 1;
        }
        Ok(batch)
    })?;
    println!("{kinds:?}");
    for (reason, (count, line, sample)) in unread {
        println!("{reason:?}: {count}, first in line {line}: {sample}");
    }
    Ok(())
}
