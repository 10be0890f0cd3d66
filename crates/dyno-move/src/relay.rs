//! Rows that are forwarded as they arrive: to another server, into a CSV file, or only counted and hashed.

use std::path::Path;
use std::time::Instant;

use crate::error::MoveError;
use crate::hash::Tally;
use crate::rows::Cutter;
use crate::session::{SEND_BYTES, give_up};
use crate::spec::{ChunkDone, ChunkSpec};
use crate::worker::{Moved, Worker};

impl Worker<'_> {
    /// Forwards a chunk in COPY's binary or text form; its rows are only parsed to be counted and hashed.
    pub(crate) fn relay(&mut self, chunk: &ChunkSpec) -> Result<ChunkDone, MoveError> {
        let (started, shared) = (Instant::now(), self.shared);
        let mut target = match (&chunk.into, &mut self.target) {
            (Some(sql), Some(target)) => {
                if let Some(around) = &chunk.around {
                    around.before.iter().try_for_each(|sql| target.run(sql))?;
                }
                target.begin_in(sql)?;
                Some(target)
            }
            _ => None,
        };
        let mut cutter = if chunk.lines {
            Rows::Lines(Lines::default())
        } else {
            Rows::Binary(Cutter::new(shared.spec.tables[chunk.table].columns.len()))
        };
        let (mut tally, mut bytes, mut gathered) = (Tally::default(), 0_u64, Gathered::default());
        let table = &shared.spec.tables[chunk.table];
        let copied = self.session.copy_out(&chunk.sql, table, |message| {
            bytes += message.len() as u64;
            cutter.push(message, &mut tally)?;
            let Some(target) = &mut target else { return shared.came(message.len()) };
            gathered.push(message, |part| target.send_in(part))?;
            shared.came(message.len())
        });
        let counted = copied.inspect_err(|error: &MoveError| give_up(&self.session, error))?;
        if !cutter.is_whole() {
            return Err(MoveError::Stream("it ended in the middle".into()));
        }
        if counted != tally.rows {
            return Err(MoveError::Count { counted, decoded: tally.rows });
        }
        if let Some(target) = target {
            target.send_in(&gathered.bytes)?;
            let arrived = target.end_in()?;
            if arrived != tally.rows {
                return Err(MoveError::Count { counted: arrived, decoded: tally.rows });
            }
            if let Some(around) = &chunk.around {
                around.ending(&tally, bytes).try_for_each(|sql| target.run(&sql))?;
            }
        }
        self.done(chunk, Moved { bytes, tally, ..Moved::of(started) })
    }

    /// Writes a chunk in the server's own CSV form into the single file of the job.
    pub(crate) fn text(&mut self, chunk: &ChunkSpec) -> Result<ChunkDone, MoveError> {
        let (started, shared) = (Instant::now(), self.shared);
        let Some(single) = &shared.single else { return Err(MoveError::Internal("a CSV without its file".into())) };
        let (mut bytes, mut out) = (0_u64, Vec::with_capacity(2 * SEND_BYTES));
        let table = &shared.spec.tables[chunk.table];
        let copied = self.session.copy_out(&chunk.sql, table, |message| {
            bytes += message.len() as u64;
            // Workers write in turn, so each must write complete rows.
            if !message.is_empty() && !message.ends_with(b"\n") {
                return Err(MoveError::Stream("a message that is no whole row of CSV".into()));
            }
            out.extend_from_slice(message);
            if out.len() > SEND_BYTES {
                single.write_text(&out)?;
                out.clear();
                out.shrink_to(2 * SEND_BYTES);
            }
            shared.came(message.len())
        });
        let rows = copied.inspect_err(|error: &MoveError| give_up(&self.session, error))?;
        single.write_text(&out)?;
        self.done(chunk, Moved { bytes, tally: Tally { rows, sum: 0 }, ..Moved::of(started) })
    }

    /// Loads a CSV file unchanged; the server parses it.
    pub(crate) fn load_text(&mut self, chunk: &ChunkSpec, path: &Path) -> Result<ChunkDone, MoveError> {
        use std::io::Read;
        let (started, shared) = (Instant::now(), self.shared);
        let mut file = std::fs::File::open(path).map_err(|e| MoveError::io(path, &e))?;
        let mut bytes = 0_u64;
        let counted = self.session.copy_in(&chunk.sql, |out| {
            let read = (&mut file).take(SEND_BYTES as u64).read_to_end(out).map_err(|e| MoveError::io(path, &e))?;
            bytes += read as u64;
            shared.came(read)?;
            Ok::<bool, MoveError>(read > 0)
        });
        let rows = counted.inspect_err(|error| give_up(&self.session, error))?;
        self.done(chunk, Moved { bytes, tally: Tally { rows, sum: 0 }, ..Moved::of(started) })
    }
}

/// Parser of rows that are only counted and hashed.
enum Rows {
    Binary(Cutter),
    Lines(Lines),
}

impl Rows {
    fn push(&mut self, bytes: &[u8], tally: &mut Tally) -> Result<(), MoveError> {
        match self {
            Self::Binary(cutter) => cutter.push(bytes, |row| {
                tally.add(row.raw());
                Ok(())
            }),
            Self::Lines(lines) => {
                lines.push(bytes, |line| tally.add(line));
                Ok(())
            }
        }
    }

    fn is_whole(&self) -> bool {
        match self {
            Self::Binary(cutter) => cutter.is_whole(),
            Self::Lines(lines) => lines.begun.is_empty(),
        }
    }
}

/// Parser of COPY's text form: each line is a row, because line ends within values are escaped.
#[derive(Debug, Default)]
struct Lines {
    /// Bytes of a line whose end has not arrived.
    begun: Vec<u8>,
}

impl Lines {
    fn push(&mut self, bytes: &[u8], mut row: impl FnMut(&[u8])) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let (line, after) = rest.split_at(end + 1);
            if self.begun.is_empty() {
                row(line);
            } else {
                self.begun.extend_from_slice(line);
                row(&self.begun);
                self.begun = Vec::new();
            }
            rest = after;
        }
        self.begun.extend_from_slice(rest);
    }
}

/// Combines short messages into long ones, in order.
#[derive(Debug, Default)]
struct Gathered {
    bytes: Vec<u8>,
}

impl Gathered {
    fn push(&mut self, message: &[u8], mut send: impl FnMut(&[u8]) -> Result<(), MoveError>) -> Result<(), MoveError> {
        if !self.bytes.is_empty() && self.bytes.len() + message.len() > SEND_BYTES {
            send(&self.bytes)?;
            self.bytes.clear();
        }
        if message.len() > SEND_BYTES {
            return send(message);
        }
        self.bytes.extend_from_slice(message);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lines_survive_any_tearing(
            rows in prop::collection::vec("[a-z\\\\]{0,20}", 0..20), portion in 1_usize..30,
        ) {
            let bytes = rows.iter().fold(String::new(), |all, row| all + row + "\n");
            let (mut lines, mut found) = (Lines::default(), Vec::new());
            for part in bytes.as_bytes().chunks(portion) {
                lines.push(part, |line| found.push(String::from_utf8_lossy(line).trim_end().to_owned()));
            }
            prop_assert!(lines.begun.is_empty());
            prop_assert_eq!(found, rows);
        }

        #[test]
        fn what_is_gathered_keeps_its_order(lengths in prop::collection::vec(0_usize..100_000, 0..20)) {
            let mut next = 0_u8;
            let messages: Vec<Vec<u8>> = lengths
                .iter()
                .map(|&length| std::iter::repeat_with(|| { next = next.wrapping_add(7); next }).take(length).collect())
                .collect();
            let (mut gathered, mut sent) = (Gathered::default(), Vec::new());
            for message in &messages {
                gathered.push(message, |part| { sent.extend_from_slice(part); Ok(()) }).expect("is taken");
            }
            sent.extend_from_slice(&gathered.bytes);
            prop_assert_eq!(sent, messages.concat());
        }
    }
}
