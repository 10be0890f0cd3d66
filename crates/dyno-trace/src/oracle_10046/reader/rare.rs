//! Records that are neither calls nor waits: texts, plans, binds, errors, ends of transactions.

use super::super::record::{Batch, Cursor, Failure, NONE, Placed, Record};
use super::super::rows::{Belongs, NewStatement, Place, Sink};
use super::super::statements::News;
use super::{Reader, place};

impl<S: Sink> Reader<S> {
    pub(super) fn rare(&mut self, batch: &Batch, placed: &Placed) {
        let place = place(batch, placed);
        match &placed.record {
            Record::Cursor(cursor) | Record::ParseError(cursor) => {
                self.cursor(batch, place, cursor);
            }
            Record::Stat(stat) => {
                let at = self.belongs(place, stat.cursor, NONE);
                let known = self.sessions[self.current].cursors.get(stat.cursor);
                let plan_hash = known.map_or(NONE, |known| known.plan_hash);
                self.sink.plan(batch, stat, plan_hash, at);
            }
            Record::Binds { cursor } => {
                self.binds_cursor = *cursor;
                let at = self.belongs(place, *cursor, NONE);
                self.sink.binds(*cursor, at);
            }
            Record::Bind(bind) => {
                let at = self.belongs(place, self.binds_cursor, NONE);
                self.sink.bind(batch, self.binds_cursor, bind, at);
            }
            Record::Error(failure) => self.failure(place, failure),
            Record::Xct(xct) => {
                self.clock(xct.tim, self.moment(xct.tim));
                let at = self.belongs(place, 0, xct.tim);
                self.sink.transaction(xct.rollback, xct.read_only, xct.tim, at);
            }
            Record::Stamp(stamp) => self.stamp(batch, place, stamp),
            Record::Header(text) => {
                self.header_line(place, &String::from_utf8_lossy(batch.bytes_of(*text)));
            }
            Record::Other(_) | Record::Call(_) | Record::Wait(_) => {}
        }
    }

    fn belongs(&mut self, place: Place, cursor: u64, tim: i64) -> Belongs {
        let (statement, _) = self.statement(cursor, place);
        let end = self.moment(tim);
        let session = &self.sessions[self.current];
        let at_ns = if tim == NONE { NONE } else { session.clock.wall(end) };
        Belongs { place, session: self.current as u32, statement, at_ns }
    }

    fn cursor(&mut self, batch: &Batch, place: Place, cursor: &Cursor) {
        self.clock(cursor.tim, self.moment(cursor.tim));
        if !self.reading.statements {
            return;
        }
        let statement = self.statements.number(batch, cursor);
        let news = self.statements.news();
        self.sessions[self.current].cursors.set(cursor.cursor, statement, cursor.uid);
        let at = self.belongs(place, cursor.cursor, cursor.tim);
        if news != News::Known {
            self.tell_statement(Some(batch.bytes_of(cursor.sql)), Some(cursor), at);
        }
        self.sink.cursor(batch, cursor, at);
    }

    #[cold]
    pub(super) fn tell_statement(&mut self, text: Option<&[u8]>, cursor: Option<&Cursor>, at: Belongs) {
        let key = self.statements.key(at.statement);
        let first = self.statements.news() == News::InRun;
        let new = NewStatement { number: at.statement, key: &key, text, first };
        self.sink.statement(new, cursor, at);
    }

    /// Handles an ERROR, whose `tim` is in another unit in 9i and 10g and is not used as a clock.
    fn failure(&mut self, place: Place, failure: &Failure) {
        let mut at = self.belongs(place, failure.cursor, NONE);
        let session = &mut self.sessions[self.current];
        at.at_ns = session.last().map_or(NONE, |last| session.clock.wall(last));
        let call = session.cursors.get(failure.cursor).map(|known| known.last_call);
        let call = call.filter(|number| *number != u64::MAX);
        self.sink.failure(failure.cursor, failure.err, failure.tim, call, at);
    }
}
