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
    /// Forwards a chunk in COPY's binary form; its rows are only parsed to be counted and hashed.
    pub(crate) fn relay(&mut self, chunk: &ChunkSpec) -> Result<ChunkDone, MoveError> {
        let (started, shared) = (Instant::now(), self.shared);
        let mut target = match (&chunk.into, &mut self.target) {
            (Some(sql), Some(target)) => {
                target.begin_in(sql)?;
                Some(target)
            }
            _ => None,
        };
        let mut cutter = Cutter::new(shared.spec.tables[chunk.table].columns.len());
        let (mut tally, mut bytes, mut gathered) = (Tally::default(), 0_u64, Gathered::default());
        let table = &shared.spec.tables[chunk.table];
        let copied = self.session.copy_out(&chunk.sql, table, |message| {
            bytes += message.len() as u64;
            cutter.push(message, |row| {
                tally.add(row.raw());
                Ok(())
            })?;
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
