//! Files as one stream of COPY's binary form, encoded ahead of the sender.
//!
//! A thread reads and encodes while the previous piece is being sent, also across file boundaries: a server that had to
//! wait until the next file was open lost a tenth of its time. The amount of waiting data is limited; at most one row
//! that is larger than the limit waits.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::encode::{Place, end, head};
use crate::encoder::{Encoder, Form};
use crate::error::MoveError;
use crate::hash::Tally;

/// Size of a piece [bytes]; larger ones no longer fit into the server's caches while it parses them.
const PIECE_BYTES: usize = 32 << 10;
/// Amount of waiting data at which encoding pauses [bytes].
const WAITING_BYTES: usize = 4 << 20;

#[derive(Default)]
struct State {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Tallies of the completely read files.
    tallies: Vec<Tally>,
    /// Rows of the current file.
    rows: u64,
    ended: Option<Result<(), MoveError>>,
    /// True if the receiver no longer exists.
    left: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room; returns false if the receiver no longer exists.
    fn has_room(&self) -> bool {
        let state = self.lock();
        let is_full = |state: &mut State| state.bytes >= WAITING_BYTES && !state.left;
        !self.changed.wait_while(state, is_full).unwrap_or_else(PoisonError::into_inner).left
    }

    fn put(&self, piece: Vec<u8>, rows: u64) {
        let mut state = self.lock();
        state.bytes += piece.len();
        state.rows = rows;
        state.waiting.push_back(piece);
        self.changed.notify_all();
    }
}

/// Stream of encoded pieces.
pub struct Ahead {
    shared: Arc<Shared>,
}

impl Ahead {
    /// Starts to read the files, one after the other; a batch has at most `bytes_max` bytes.
    pub fn of_copy(files: Vec<PathBuf>, bytes_max: usize) -> Self {
        let shared = Arc::new(Shared::default());
        let inside = Arc::clone(&shared);
        thread::spawn(move || {
            let ended = catch_unwind(AssertUnwindSafe(|| encode(&inside, &files, bytes_max)));
            // The panic message is on stderr; the receiver must not wait for ever.
            let ended = ended.unwrap_or_else(|_| Err(MoveError::Internal("the reader ended in the middle".into())));
            inside.lock().ended = Some(ended);
            inside.changed.notify_all();
        });
        Self { shared }
    }

    /// Returns the next piece, or `None` at the end.
    ///
    /// # Errors
    /// The current file cannot be read or encoded; reported after all earlier pieces were returned.
    pub fn next(&self) -> Result<Option<Vec<u8>>, MoveError> {
        let state = self.shared.lock();
        let is_empty = |state: &mut State| state.waiting.is_empty() && state.ended.is_none();
        let mut state = self.shared.changed.wait_while(state, is_empty).unwrap_or_else(PoisonError::into_inner);
        if let Some(piece) = state.waiting.pop_front() {
            state.bytes -= piece.len();
            self.shared.changed.notify_all();
            return Ok(Some(piece));
        }
        match state.ended.replace(Ok(())) {
            Some(Err(error)) => Err(error),
            _ => Ok(None),
        }
    }

    /// Returns the number of rows so far, and the tallies of the files that were read completely.
    pub fn tallies(&self) -> (u64, Vec<Tally>) {
        let state = self.shared.lock();
        (state.tallies.iter().map(|one| one.rows).sum::<u64>() + state.rows, state.tallies.clone())
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.shared.lock().left = true;
        self.shared.changed.notify_all();
    }
}

fn encode(shared: &Shared, files: &[PathBuf], bytes_max: usize) -> Result<(), MoveError> {
    let mut first = Vec::new();
    head(&mut first);
    shared.put(first, 0);
    for path in files {
        if !encode_file(shared, path, bytes_max)? {
            return Ok(());
        }
    }
    let mut last = Vec::new();
    end(&mut last);
    shared.put(last, 0);
    Ok(())
}

/// Encodes a file; returns false if the receiver no longer exists.
fn encode_file(shared: &Shared, path: &Path, bytes_max: usize) -> Result<bool, MoveError> {
    let mut encoder = Encoder::open(path, None, bytes_max, Place::default(), Form::Rows)?;
    loop {
        if !shared.has_room() {
            return Ok(false);
        }
        let mut piece = Vec::with_capacity(2 * PIECE_BYTES);
        let goes_on = encoder.more(PIECE_BYTES, &mut piece)?;
        let tally = encoder.tally();
        if !piece.is_empty() {
            shared.put(piece, tally.rows);
        }
        if !goes_on {
            let mut state = shared.lock();
            state.tallies.push(tally);
            state.rows = 0;
            return Ok(true);
        }
    }
}
