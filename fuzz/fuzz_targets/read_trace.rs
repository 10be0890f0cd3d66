//! Any bytes are read without a panic, and are read the same: the quick way and the careful way, in
//! one piece and in chunks. The first three bytes choose the options; the rest is the file.
#![no_main]

use std::mem::discriminant;

use dyno_trace::oracle_10046::lexer::{Lexer, Options};
use dyno_trace::oracle_10046::record::{Batch, Reason, Record};
use libfuzzer_sys::fuzz_target;

/// A file in one batch.
fn whole(text: &[u8], options: Options) -> Batch {
    let mut lexer = Lexer::new(options);
    let mut batch = Batch::default();
    lexer.begin(&mut batch);
    batch.bytes.extend_from_slice(text);
    lexer.lex(&mut batch, true);
    batch
}

/// Where records and unread stretches of a batch stand in the file.
fn places(
    batch: &Batch,
) -> (Vec<(u64, u64, std::mem::Discriminant<Record>)>, Vec<(u64, u64, Reason)>) {
    let place = |at: u32, line: u32| (batch.offset + u64::from(at), batch.line + u64::from(line));
    let records = batch.records.iter().map(|placed| {
        let (at, line) = place(placed.at, placed.line);
        (at, line, discriminant(&placed.record))
    });
    let unread = batch.unread.iter().map(|unread| {
        let (at, line) = place(unread.at, unread.line);
        (at, line, unread.reason)
    });
    (records.collect(), unread.collect())
}

fuzz_target!(|data: &[u8]| {
    let Some((&[flags, chunk, cap], text)) = data.split_first_chunk() else { return };
    let cap = if flags & 2 == 0 { 16 << 20 } else { 16 + 8 * usize::from(cap) };
    let options = Options { binds: flags & 1 == 0, cap, careful: false };
    let one = whole(text, options);
    let careful = whole(text, Options { careful: true, ..options });
    assert_eq!(one.records, careful.records);
    assert_eq!(one.unread, careful.unread);
    assert_eq!(one.bytes.len(), text.len());
    for placed in &one.records {
        if let Record::Wait(wait) = placed.record {
            assert!(one.parameters(&wait).count() <= wait.parameters.len as usize);
        }
    }
    let (mut records, mut unread) = places(&one);
    records.reverse();
    unread.reverse();
    let mut lexer = Lexer::new(options);
    let mut batch = Batch::default();
    let chunks = text.chunks(1 + usize::from(chunk) * 4).map(Some).chain([None]);
    for chunk in chunks {
        batch = match chunk {
            Some(chunk) => lexer.push(chunk, batch),
            None => lexer.finish(batch),
        };
        let (some, more) = places(&batch);
        assert!(some.into_iter().all(|place| records.pop() == Some(place)));
        assert!(more.into_iter().all(|place| unread.pop() == Some(place)));
    }
    assert!(records.is_empty() && unread.is_empty());
});
