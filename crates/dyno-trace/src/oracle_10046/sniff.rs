//! Detection of files that users mistake for a 10046 trace, from their first bytes.

use std::path::Path;

use super::lexer::is_record_line;
use super::refusal::Refusal;

/// Refuses a file that is not an SQL trace; `first` is the beginning of the file, or all of it if `whole`.
pub(super) fn sniff(path: &Path, first: &[u8], whole: bool) -> Result<(), Refusal> {
    let path = path.to_owned();
    if first.is_empty() {
        return Err(Refusal::Empty { path });
    }
    if first.starts_with(&[0xff, 0xfe]) || first.starts_with(&[0xfe, 0xff]) {
        return Err(Refusal::Utf16 { path });
    }
    let has_record = first.split(|byte| *byte == b'\n').any(is_record_line);
    // A trace may hold odd bytes, in dumps and values; not at every third place.
    if let Some((offset, byte)) = odd_byte(first, if has_record { 3 } else { 30 }) {
        return Err(Refusal::Binary { path, offset, byte });
    }
    let any = |texts: &[&str]| texts.iter().any(|text| memchr::memmem::find(first, text.as_bytes()).is_some());
    if any(&["YashanDB", " ydbdty=", ",yct="]) && !any(&["Oracle Database"]) {
        return Err(Refusal::Yashan { path });
    }
    if has_record {
        return Ok(());
    }
    if any(&["TRACE CONFIGURATION INFORMATION FOLLOWS", " nsprecv: ", " nttrd: ", " nscon: "]) {
        return Err(Refusal::SqlNet { path });
    }
    if any(&["TKPROF: Release"]) {
        return Err(Refusal::Report { path });
    }
    if whole { Err(without_records(path.as_ref(), first)) } else { Ok(()) }
}

/// Returns the refusal of a file in which no record was found; `first` is its beginning.
pub(super) fn without_records(path: &Path, first: &[u8]) -> Refusal {
    let path = path.to_owned();
    let signs: [&[u8]; 4] = [
        b"QUERY BLOCK SIGNATURE",
        b"Registered qb: ",
        b"PARAMETERS USED BY THE OPTIMIZER",
        b"SINGLE TABLE ACCESS PATH",
    ];
    if signs.iter().any(|sign| memchr::memmem::find(first, sign).is_some()) {
        Refusal::Optimizer { path }
    } else {
        Refusal::NoRecords { path }
    }
}

/// Returns the first byte that cannot be part of a text, with its offset, if there is more than one such byte in `most`
/// bytes. A run of NULs at the beginning is ignored: log rotation leaves it.
fn odd_byte(first: &[u8], most: usize) -> Option<(u64, u8)> {
    let zeros = first.iter().take_while(|byte| **byte == 0).count();
    let sample = &first[zeros..first.len().min(zeros + 8192)];
    let is_odd = |byte: &u8| matches!(byte, 0..=8 | 14..=26 | 28..=31 | 127);
    let odd = sample.iter().filter(|byte| is_odd(byte)).count();
    let place = sample.iter().position(is_odd)?;
    (odd * most > sample.len()).then(|| ((zeros + place) as u64, sample[place]))
}
