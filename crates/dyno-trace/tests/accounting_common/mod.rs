//! Hand-written traces, read into rows that tests can examine.
#![allow(clippy::unwrap_used, dead_code)]

use std::collections::HashMap;

use dyno_trace::oracle_10046::lexer::{Lexer, Options};
use dyno_trace::oracle_10046::reader::{Reader, Reading};
use dyno_trace::oracle_10046::record::Batch;
use dyno_trace::oracle_10046::rows::{CallRow, Context, Owner, Sink, WaitRow};
use dyno_trace::oracle_10046::statements::Registry;

/// All rows that a reader produces.
#[derive(Debug, Default)]
pub struct Rows {
    pub calls: Vec<CallRow>,
    pub waits: Vec<WaitRow>,
    /// Parent by child, both running numbers.
    pub parents: HashMap<u64, u64>,
    /// Owner by wait, both running numbers.
    pub owners: HashMap<u64, u64>,
    pub between: Vec<u64>,
    pub contexts: Vec<Context>,
    pub residuals: Vec<i64>,
    pub shifts: Vec<i64>,
    pub errors: Vec<(i64, Option<u64>)>,
    merged: Vec<Vec<u64>>,
}

const MERGED: u64 = 1 << 62;

impl Rows {
    fn spread(&self, item: u64) -> Vec<u64> {
        if item & MERGED == 0 {
            return vec![item];
        }
        let inside = &self.merged[(item & !MERGED) as usize];
        inside.iter().flat_map(|item| self.spread(*item)).collect()
    }
}

impl Sink for Rows {
    fn call(&mut self, _batch: &Batch, row: &CallRow) {
        self.calls.push(*row);
    }
    fn wait(&mut self, _batch: &Batch, row: &WaitRow) {
        self.waits.push(*row);
    }
    fn adopt(&mut self, child: u64, parent: Owner) {
        for child in self.spread(child) {
            assert!(self.parents.insert(child, parent.number).is_none(), "two parents");
        }
    }
    fn own(&mut self, wait: u64, owner: Owner) {
        for wait in self.spread(wait) {
            assert!(self.owners.insert(wait, owner.number).is_none(), "two owners");
        }
    }
    fn merge_calls(&mut self, calls: &[u64]) -> u64 {
        self.merged.push(calls.to_vec());
        MERGED | (self.merged.len() as u64 - 1)
    }
    fn merge_waits(&mut self, waits: &[u64]) -> u64 {
        self.merge_calls(waits)
    }
    fn between(&mut self, wait: u64) {
        let waits = self.spread(wait);
        self.between.extend(waits);
    }
    fn failure(
        &mut self,
        _cursor: u64,
        error: i64,
        _tim: i64,
        call: Option<u64>,
        _at: dyno_trace::oracle_10046::rows::Belongs,
    ) {
        self.errors.push((error, call));
    }
    fn anchor(&mut self, _session: u32, _tim: i64, residual_ns: i64) {
        self.residuals.push(residual_ns);
    }
    fn shift(&mut self, _session: u32, from_call: u64, from_wait: u64, by_ns: i64) {
        let calls = self.calls.iter_mut().filter(|row| row.number >= from_call);
        calls.for_each(|row| row.started_ns += by_ns);
        let waits = self.waits.iter_mut().filter(|row| row.number >= from_wait);
        waits.for_each(|row| row.started_ns += by_ns);
        self.shifts.push(by_ns);
    }
    fn context(&mut self, _number: u32, context: &Context) {
        self.contexts.push(context.clone());
    }
}

/// Reads a text in pieces of `chunk` bytes.
pub fn read_chunked(text: &str, reading: Reading, chunk: usize) -> Reader<Rows> {
    chunked(text.as_bytes(), reading, chunk)
}

/// Reads bytes that may be invalid text.
pub fn read_bytes(bytes: &[u8]) -> Reader<Rows> {
    chunked(bytes, Reading::default(), 1 << 16)
}

fn chunked(bytes: &[u8], reading: Reading, chunk: usize) -> Reader<Rows> {
    let mut reader = Reader::new(Rows::default(), reading, Registry::default());
    let mut lexer = Lexer::new(Options::default());
    for chunk in bytes.chunks(chunk) {
        let batch = lexer.push(chunk, Batch::default());
        reader.batch(&batch).unwrap();
    }
    let batch = lexer.finish(Batch::default());
    reader.batch(&batch).unwrap();
    reader.finish();
    reader
}

/// Reads a text.
pub fn read(text: &str) -> Reader<Rows> {
    read_chunked(text, Reading::default(), 1 << 16)
}

/// Returns the line of a call.
pub fn call(kind: &str, cursor: u64, c: i64, e: i64, dep: u8, tim: i64) -> String {
    format!("{kind} #{cursor}:c={c},e={e},p=0,cr=0,cu=0,mis=0,r=0,dep={dep},og=1,plh=7,tim={tim}\n")
}

/// Returns the line of a wait.
pub fn wait(cursor: u64, event: &str, ela: i64, tim: i64) -> String {
    format!("WAIT #{cursor}: nam='{event}' ela= {ela} p1=1 p2=2 p3=3 obj#=-1 tim={tim}\n")
}
