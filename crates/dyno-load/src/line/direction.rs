//! Bytes of one connection in one direction of a line: received, then due at a time, then delivered.

use std::collections::VecDeque;
use std::io;

/// One direction of one connection.
#[derive(Debug, Default)]
pub struct Direction {
    pieces: VecDeque<Piece>,
    held: usize,
    ends_ns: Option<i64>,
    finished: bool,
}

#[derive(Debug)]
struct Piece {
    due_ns: i64,
    bytes: Box<[u8]>,
    taken: usize,
}

/// Result of delivering the bytes that are due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LetGo {
    /// Number of pieces delivered completely.
    pub pieces: u64,
    /// Sum of the lateness of the delivered pieces [ns].
    pub late_ns: u64,
    /// Largest lateness of one piece [ns].
    pub late_max_ns: u64,
    /// True if nothing more will come in this direction, so that the far end must be shut down.
    pub ended: bool,
    /// True if the far end had no room for the rest of the bytes.
    pub blocked: bool,
}

impl Direction {
    /// Returns the number of bytes under way.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns true if all bytes and the end of the stream have been delivered.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Returns true while the near end can still send bytes.
    pub fn is_open(&self) -> bool {
        self.ends_ns.is_none()
    }

    /// Adds bytes that arrive at `due_ns`; discards them if this direction is already finished.
    pub fn give(&mut self, bytes: &[u8], due_ns: i64) {
        if !self.finished {
            self.held += bytes.len();
            self.pieces.push_back(Piece { due_ns, bytes: bytes.into(), taken: 0 });
        }
    }

    /// Marks the end of the stream, which arrives at `due_ns`; only the first call counts.
    pub fn end(&mut self, due_ns: i64) {
        self.ends_ns.get_or_insert(due_ns);
    }

    /// Delivers the bytes that are due at `now_ns` by calling `take`, the write function of the far end; bytes for
    /// which the far end has no room stay queued.
    pub fn let_go(&mut self, now_ns: i64, mut take: impl FnMut(&[u8]) -> io::Result<usize>) -> LetGo {
        let mut gone = LetGo::default();
        while let Some(piece) = self.pieces.front_mut().filter(|piece| piece.due_ns <= now_ns) {
            match take(&piece.bytes[piece.taken..]) {
                Ok(0) => return self.give_up(gone),
                Ok(count) => {
                    piece.taken += count;
                    self.held -= count;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return LetGo { blocked: true, ..gone },
                Err(_) => return self.give_up(gone),
            }
            if piece.taken == piece.bytes.len() {
                let late_ns = now_ns.saturating_sub(piece.due_ns) as u64;
                gone.pieces += 1;
                gone.late_ns = gone.late_ns.saturating_add(late_ns);
                gone.late_max_ns = gone.late_max_ns.max(late_ns);
                self.pieces.pop_front();
            }
        }
        if !self.finished && self.pieces.is_empty() && self.ends_ns.is_some_and(|due_ns| due_ns <= now_ns) {
            self.finished = true;
            gone.ended = true;
        }
        gone
    }

    /// Discards everything because the far end accepts no more bytes.
    fn give_up(&mut self, gone: LetGo) -> LetGo {
        self.pieces.clear();
        (self.held, self.finished) = (0, true);
        LetGo { ended: true, ..gone }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a write function of a far end that accepts `room` bytes in total.
    fn far(room: usize, taken: &mut Vec<u8>) -> impl FnMut(&[u8]) -> io::Result<usize> {
        let mut left = room;
        move |bytes| {
            let count = bytes.len().min(left);
            left -= count;
            taken.extend_from_slice(&bytes[..count]);
            if count == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(count) }
        }
    }

    #[test]
    fn nothing_arrives_before_its_time_and_all_of_it_in_order() {
        let (mut way, mut taken) = (Direction::default(), Vec::new());
        way.give(b"one", 10);
        way.give(b"two", 20);
        way.end(25);
        assert_eq!(way.let_go(9, far(99, &mut taken)), LetGo::default());
        let gone = way.let_go(12, far(99, &mut taken));
        assert_eq!((gone.pieces, gone.late_ns, gone.late_max_ns), (1, 2, 2));
        assert!(!way.let_go(24, far(99, &mut taken)).ended && way.held() == 0);
        assert!(way.let_go(25, far(99, &mut taken)).ended && way.is_finished());
        assert!(!way.let_go(26, far(99, &mut taken)).ended, "the end is told once");
        assert_eq!(taken, b"onetwo");
    }

    #[test]
    fn a_far_end_without_room_gets_the_rest_later() {
        let (mut way, mut taken) = (Direction::default(), Vec::new());
        way.give(b"hello", 0);
        way.end(0);
        let gone = way.let_go(0, far(2, &mut taken));
        assert!(gone.blocked && gone.pieces == 0);
        assert_eq!(way.held(), 3);
        let gone = way.let_go(7, far(99, &mut taken));
        assert_eq!((gone.pieces, gone.late_ns, gone.ended, gone.blocked), (1, 7, true, false));
        assert_eq!(taken, b"hello");
    }

    #[test]
    fn a_far_end_that_is_gone_finishes_the_way() {
        let mut way = Direction::default();
        way.give(b"lost", 0);
        let gone = way.let_go(0, |_| Err(io::ErrorKind::BrokenPipe.into()));
        assert!(gone.ended && way.is_finished() && way.held() == 0);
        way.give(b"thrown away", 1);
        assert_eq!(way.held(), 0);
    }

    #[test]
    fn a_stream_ends_once_at_its_first_time() {
        let mut way = Direction::default();
        way.end(5);
        way.end(9);
        assert!(!way.is_open() && way.let_go(5, |_| Ok(0)).ended);
    }
}
