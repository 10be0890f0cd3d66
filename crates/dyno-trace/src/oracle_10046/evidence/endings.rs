//! Last rows of a file, which can be made only when the whole file has been read.

use dyno_evidence::EvidenceError;

use super::super::header::Facts;
use super::super::reader::Reader;
use super::super::record::NONE;
use super::super::session::Session;
use super::folder::Small;
use super::{Evidence, narrow};

/// Writes the remaining rows of a file and the rows about the file itself; `path` is the path as given.
///
/// # Errors
/// A part cannot be written.
pub fn finish(reader: &mut Reader<Evidence>, path: &str) -> Result<(), EvidenceError> {
    let (file, base) = (reader.sink.options.file, reader.sink.options.base);
    let records: u64 = reader.tally.records.iter().sum();
    let (tally, header, unit_ns) = (&reader.tally, reader.header.join("\n"), reader.unit_ns());
    reader
        .sink
        .small
        .buffer(Small::Files)
        .row()
        .u32(file)
        .text(Some(path))
        .i64(tally.bytes as i64)
        .i64(tally.lines as i64)
        .i64(records as i64)
        .text(Some(&reader.facts.version))
        .u8(tally.level())
        .i64(unit_ns)
        .text(Some(&header));
    for (number, session) in reader.sessions.iter().enumerate() {
        if !session.is_fresh() || reader.sessions.len() == 1 {
            session_row(&mut reader.sink, number as u32 + base, session, &reader.facts);
        }
    }
    let sink = &mut reader.sink;
    sink.flush_calls(true);
    sink.flush_waits(true);
    sink.call_parts.finish()?;
    sink.wait_parts.finish()?;
    sink.links.finish()?;
    sink.small.flush_all()?;
    sink.error.take().map_or(Ok(()), Err)
}

fn session_row(sink: &mut Evidence, number: u32, session: &Session, facts: &Facts) {
    let account = &session.account;
    let process = if session.process.is_empty() { &facts.pid } else { &session.process };
    let (first, last) = session.tims.unwrap_or((NONE, NONE));
    let file = sink.options.file;
    sink.small
        .buffer(Small::Sessions)
        .row()
        .u32(number)
        .u32(file)
        .text(Some(&session.name))
        .text(Some(process))
        .text(Some(&facts.host))
        .text(Some(&facts.instance))
        .i64(first)
        .i64(last)
        .i64(session.started_ns.unwrap_or(NONE))
        .i64(narrow(account.elapsed_ns))
        .i64(account.calls as i64)
        .i64(account.waits as i64)
        .i64(narrow(account.calls_ns))
        .i64(narrow(account.between_ns()))
        .i64(narrow(account.unexplained_ns()))
        .i64(narrow(account.cpu_ns))
        .i64(narrow(account.wait_inside_ns))
        .i64(narrow(account.unaccounted_ns()))
        .i64(account.orphans() as i64)
        .i64(account.segments as i64);
}
