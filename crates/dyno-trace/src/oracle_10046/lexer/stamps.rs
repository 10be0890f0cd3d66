//! Lexer of `***` lines and APPNAME: wall-clock stamps, changes of context, boundaries of pieces.

use crate::oracle_10046::record::{NONE, Stamp, StampKind, Text};

/// A parsed time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moment {
    wall_ns: i64,
    zone: i64,
    digits: u8,
    /// Length in the line [bytes].
    len: usize,
}

/// Keys before `:(value)`.
const KEYS: [(&[u8], StampKind); 9] = [
    (b"SESSION ID", StampKind::Session),
    (b"CLIENT ID", StampKind::Client),
    (b"SERVICE NAME", StampKind::Service),
    (b"MODULE NAME", StampKind::Module),
    (b"ACTION NAME", StampKind::Action),
    (b"CLIENT DRIVER", StampKind::Driver),
    (b"CONTAINER ID", StampKind::Container),
    (b"CLIENT IP", StampKind::ClientIp),
    (b"CONNECTION ID", StampKind::Connection),
];

/// Beginnings of the lines at the boundaries of trace pieces; older versions add the word DUMP.
const PIECES: [(&[u8], StampKind); 4] = [
    (b"TRACE CONTINUED FROM FILE ", StampKind::ContinuedFrom),
    (b"TRACE CONTINUES IN FILE ", StampKind::ContinuesIn),
    (b"TRACE DUMP CONTINUED FROM FILE ", StampKind::ContinuedFrom),
    (b"TRACE DUMP CONTINUES IN FILE ", StampKind::ContinuesIn),
];

/// Reads a `*** ` line; `base` is where it begins in the batch.
pub(super) fn stamp(line: &[u8], base: usize) -> Stamp {
    let text = |start: usize, end: usize| Text { start: (base + start) as u32, len: (end - start) as u32 };
    let mut stamp = Stamp {
        kind: StampKind::Unknown,
        value: text(0, line.len()),
        wall_ns: NONE,
        zone: NONE,
        digits: 0,
        container: Text::default(),
    };
    let body = line.get(4..).unwrap_or_default();
    if let Some(moment) = moment(body) {
        let rest = &body[moment.len..];
        let at = 4 + moment.len;
        let value = at + (rest.len() - rest.trim_ascii_start().len());
        let bare = rest.trim_ascii();
        if bare.is_empty() || bare.starts_with(b"(") {
            set(&mut stamp, moment);
            stamp.kind = StampKind::Clock;
            stamp.value = Text::default();
            if bare.len() > 2 && bare.ends_with(b")") {
                stamp.container = text(value + 1, value + bare.len() - 1);
            }
            return stamp;
        }
    }
    if let Some(pid) = body.strip_prefix(b"[ Unix process pid: ") {
        let digits = pid.iter().take_while(|byte| byte.is_ascii_digit()).count();
        stamp.kind = StampKind::Process;
        stamp.value = text(line.len() - pid.len(), line.len() - pid.len() + digits);
        return stamp;
    }
    if let Some(size) = body.strip_prefix(b"DUMP FILE SIZE IS LIMITED TO ") {
        let digits = size.iter().take_while(|byte| byte.is_ascii_digit()).count();
        stamp.kind = StampKind::SizeLimit;
        stamp.value = text(line.len() - size.len(), line.len() - size.len() + digits);
        return stamp;
    }
    for (start, kind) in PIECES {
        if let Some(name) = body.strip_prefix(start) {
            let name = name.strip_suffix(b"***").unwrap_or(name).trim_ascii_end();
            let at = 4 + start.len();
            return Stamp { kind, value: text(at, at + name.len()), ..stamp };
        }
    }
    keyed(line, body, &mut stamp, &text);
    stamp
}

/// Reads `KEY:(value) moment`; the value may contain brackets, so it ends at the last one before the moment.
fn keyed(line: &[u8], body: &[u8], stamp: &mut Stamp, text: &dyn Fn(usize, usize) -> Text) {
    for (key, kind) in KEYS {
        let Some(rest) = body.strip_prefix(key).and_then(|rest| rest.strip_prefix(b":(")) else {
            continue;
        };
        let at = line.len() - rest.len();
        let Some(close) = memchr::memrchr(b')', rest) else {
            return;
        };
        let tail = rest[close + 1..].trim_ascii();
        match moment(tail) {
            Some(moment) if moment.len == tail.len() => set(stamp, moment),
            None if tail.is_empty() => {}
            _ => return,
        }
        stamp.kind = kind;
        stamp.value = text(at, at + close);
        return;
    }
}

fn set(stamp: &mut Stamp, moment: Moment) {
    stamp.wall_ns = moment.wall_ns;
    stamp.zone = moment.zone;
    stamp.digits = moment.digits;
}

/// Reads `2017-01-18 12:24:14.701` (up to 12.1), `2024-03-26T18:41:01.013083-07:00` (since 12.2, without the zone in
/// some traces) or `1999.07.12.13.45.22.000` (8.0 and before).
fn moment(text: &[u8]) -> Option<Moment> {
    let number = |at: usize, len: usize| -> Option<i64> {
        let digits = text.get(at..at + len)?;
        digits.iter().all(u8::is_ascii_digit).then(|| value(digits))
    };
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    let separators = [text[4], text[7], text[10], text[13], text[16]];
    let known = matches!(&separators, b"--T::" | b"-- ::" | b".....");
    let in_range = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60 && second < 62;
    if !known || !in_range {
        return None;
    }
    let mut len = 19;
    let mut nanos = 0;
    let mut digits = 0;
    if text.get(19) == Some(&b'.') {
        let fraction = text[20..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        digits = fraction.min(9);
        nanos = value(&text[20..20 + digits]) * 10_i64.pow(9 - digits as u32);
        len = 20 + fraction;
    }
    let zone = zone(&text[len..]);
    if zone.is_some() {
        len += 6;
    }
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute - zone.unwrap_or(0)) * 60;
    Some(Moment {
        wall_ns: (seconds + second).checked_mul(1_000_000_000)?.checked_add(nanos)?,
        zone: zone.unwrap_or(NONE),
        digits: digits as u8,
        len,
    })
}

/// Returns the offset of `+02:00` or `-07:00` [min].
fn zone(text: &[u8]) -> Option<i64> {
    let text: &[u8; 6] = text.first_chunk()?;
    let [sign, h1, h2, b':', m1, m2] = text else {
        return None;
    };
    let sign = match sign {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = [*h1, *h2, *m1, *m2];
    let minutes = value(&digits[..2]) * 60 + value(&digits[2..]);
    digits.iter().all(u8::is_ascii_digit).then_some(sign * minutes)
}

fn value(digits: &[u8]) -> i64 {
    digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit.wrapping_sub(b'0')))
}

/// Returns the number of days from 1970-01-01 to a date of the Gregorian calendar; in the calculation, years begin in
/// March, so that the leap day is a year's last day.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let months = (month + 9) % 12;
    let in_year = (153 * months + 2) / 5 + day - 1;
    year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + in_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_every_age() {
        let ms = moment(b"2017-01-18 12:24:14.701").unwrap();
        assert_eq!((ms.wall_ns, ms.zone, ms.digits), (1_484_742_254_701_000_000, NONE, 3));
        let west = moment(b"2024-03-26T18:41:01.013083-07:00").unwrap();
        assert_eq!((west.wall_ns, west.zone, west.digits), (1_711_503_661_013_083_000, -420, 6));
        let bare = moment(b"2023-05-19T05:28:00.339263 (X(1))").unwrap();
        assert_eq!((bare.wall_ns, bare.zone, bare.len), (1_684_474_080_339_263_000, NONE, 26));
        let dots = moment(b"1999.07.12.13.45.22.000").unwrap();
        assert_eq!(dots.wall_ns, 931_787_122_000_000_000);
        assert_eq!(moment(b"2024-13-26T18:41:01"), None);
        assert_eq!(moment(b"2024-03-26"), None);
        assert_eq!(days(1970, 1, 1), 0);
        assert_eq!(days(2000, 3, 1), 11_017);
    }

    #[test]
    fn a_value_may_hold_brackets() {
        let line = b"*** MODULE NAME:(load (full)) 2020-06-13T12:20:03.212098+01:00";
        let stamp = stamp(line, 100);
        assert_eq!(stamp.kind, StampKind::Module);
        assert_eq!((stamp.value.start, stamp.value.len), (117, 11));
        assert_eq!(stamp.zone, 60);
    }
}
