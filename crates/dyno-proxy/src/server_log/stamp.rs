//! Times in a log, as nanoseconds since 1970.
//!
//! A stamp has the name of a time zone (`2026-11-21 00:59:57.437 CET`), an offset, or is in seconds since 1970 (`%n`).
//! A name other than UTC may mean several zones: it is looked up in the transitions of the server's `log_timezone`, if
//! these are given, and otherwise taken as UTC and reported.

use std::collections::BTreeSet;

use serde::Deserialize;

const SECOND_NS: u64 = 1_000_000_000;
const DAY_S: i64 = 86_400;
/// Range of years that a log may contain.
const YEARS: std::ops::Range<i64> = 1970..2200;
/// Length of a date and time of day, `2026-11-21 00:59:57`.
const LENGTH: usize = 19;
const MONTHS: [&[u8]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Change of a time zone's offset.
#[derive(Clone, Debug, Deserialize)]
pub struct Transition {
    /// Time from which the offset applies [s since 1970].
    pub from_s: i64,
    /// Offset from UTC [s].
    pub offset_s: i64,
    /// Abbreviation, such as CET.
    pub name: String,
}

/// Reader of stamps.
#[derive(Debug, Default)]
pub struct Clock {
    zone: Vec<Transition>,
    last: Vec<u8>,
    last_s: i64,
    /// Resolution of the last stamp [ns].
    pub resolution_ns: u64,
    /// Names of time zones that were assumed to be UTC; a missing name is an empty text.
    pub assumed: BTreeSet<String>,
    /// True if a stamp had whole seconds only.
    pub is_coarse: bool,
    /// True if a year was assumed.
    pub is_year_assumed: bool,
}

impl Clock {
    /// Returns a reader; `zone` has the transitions of the log's time zone, or is empty.
    pub fn new(zone: Vec<Transition>) -> Self {
        Self { zone, ..Self::default() }
    }

    /// Returns the time of a stamp [ns since 1970]; `None` if the text is not a time.
    pub fn read(&mut self, text: &[u8]) -> Option<u64> {
        if !matches!(text.get(10), Some(b' ' | b'T')) {
            let digits = text.iter().position(|byte| *byte == b'.').map_or(0, |point| text.len() - point - 1);
            self.resolution_ns = resolution(digits);
            return epoch(text);
        }
        let (head, rest) = text.split_at_checked(LENGTH)?;
        let (fraction_ns, rest) = if let Some((b'.', digits)) = rest.split_first() {
            let (fraction_ns, behind) = fraction(digits)?;
            self.resolution_ns = resolution(digits.len() - behind.len());
            (fraction_ns, behind)
        } else {
            (self.is_coarse, self.resolution_ns) = (true, SECOND_NS);
            (0, rest)
        };
        let zone = rest.trim_ascii();
        let is_known =
            self.last.len() == LENGTH + zone.len() && self.last.starts_with(head) && self.last.ends_with(zone);
        if !is_known {
            self.last_s = self.second(head, zone)?;
            self.last.clear();
            self.last.extend_from_slice(head);
            self.last.extend_from_slice(zone);
        }
        Some(u64::try_from(self.last_s).ok()? * SECOND_NS + fraction_ns)
    }

    /// Returns the time of syslog's stamp without a year, `Nov 21 00:59:57`.
    pub fn read_month(&mut self, text: &[u8], year: i64) -> Option<u64> {
        let month = MONTHS.iter().position(|month| text.starts_with(month))? + 1;
        let [_, _, _, _, tens, ones, _, time @ ..] = text else { return None };
        let tens = if *tens == b' ' { b'0' } else { *tens };
        let mut stamp = format!("{year:04}-{month:02}-{}{} ", char::from(tens), char::from(*ones)).into_bytes();
        stamp.extend_from_slice(time);
        self.is_year_assumed = true;
        self.read(&stamp)
    }

    fn second(&mut self, head: &[u8], zone: &[u8]) -> Option<i64> {
        let local = local_second(head)?;
        if let Some(offset_s) = offset(zone) {
            return Some(local - offset_s);
        }
        let name = String::from_utf8_lossy(zone).into_owned();
        if let Some(offset_s) = self.offset_at(local, &name) {
            return Some(local - offset_s);
        }
        if self.assumed.len() < 10 {
            self.assumed.insert(name);
        }
        Some(local)
    }

    /// Returns the zone's offset at a local time [s]; if two offsets are possible, the one with the abbreviation
    /// `name`.
    fn offset_at(&self, local_s: i64, name: &str) -> Option<i64> {
        let mut found = None;
        for (at, one) in self.zone.iter().enumerate() {
            let until_s = self.zone.get(at + 1).map_or(i64::MAX, |next| next.from_s);
            let utc_s = local_s - one.offset_s;
            if (at == 0 || one.from_s <= utc_s) && utc_s < until_s {
                if one.name == name {
                    return Some(one.offset_s);
                }
                found = found.or(Some(one.offset_s));
            }
        }
        // A time that the clocks skipped.
        found.or_else(|| self.zone.iter().rfind(|one| one.from_s <= local_s).map(|one| one.offset_s))
    }
}

fn number(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > 12 {
        return None;
    }
    text.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

/// Returns the nanoseconds in the leading digits, and the rest of the text.
fn fraction(text: &[u8]) -> Option<(u64, &[u8])> {
    let length = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = text.get(..length.min(9))?;
    let scale = 10_u64.pow(9 - digits.len() as u32);
    Some((number(digits)? as u64 * scale, &text[length..]))
}

/// Returns the resolution of a stamp with this many digits after its point [ns].
fn resolution(digits: usize) -> u64 {
    10_u64.pow(9 - digits.min(9) as u32)
}

fn epoch(text: &[u8]) -> Option<u64> {
    let point = text.iter().position(|byte| *byte == b'.').unwrap_or(text.len());
    let second = number(&text[..point])?;
    let fraction_ns = if point < text.len() { fraction(&text[point + 1..])?.0 } else { 0 };
    (second > 100_000_000).then_some(second as u64 * SECOND_NS + fraction_ns)
}

fn local_second(head: &[u8]) -> Option<i64> {
    let part = |from: usize, length: usize| number(&head[from..from + length]);
    let is_formed = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')].iter().all(|(at, mark)| head[*at] == *mark);
    let (year, month, day) = (part(0, 4)?, part(5, 2)?, part(8, 2)?);
    let (hour, minute, second) = (part(11, 2)?, part(14, 2)?, part(17, 2)?);
    let is_sound = is_formed
        && YEARS.contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    is_sound.then(|| days(year, month, day) * DAY_S + hour * 3600 + minute * 60 + second)
}

/// Returns the days since 1970-01-01 of a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Returns the offset from UTC of a zone that is a form of UTC or is written as an offset [s]; `None` for other names.
fn offset(zone: &[u8]) -> Option<i64> {
    if matches!(zone, b"UTC" | b"GMT" | b"Z" | b"UCT") {
        return Some(0);
    }
    let (sign, rest) = zone.split_first()?;
    let sign = match sign {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits: Vec<u8> = rest.iter().copied().filter(|byte| *byte != b':').collect();
    let minutes = if digits.len() > 2 { number(&digits[2..])? } else { 0 };
    Some(sign * (number(digits.get(..2)?)? * 3600 + minutes * 60))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_NS: u64 = 1_795_222_797_437_000_000;

    #[test]
    fn a_stamp_has_a_zone_an_offset_or_is_counted_from_1970() {
        let mut clock = Clock::default();
        for text in [
            "2026-11-21 00:59:57.437 UTC",
            "2026-11-21 01:59:57.437 +01",
            "2026-11-21T06:29:57.437+05:30",
            "2026-11-20 20:59:57.437 -0400",
            "1795222797.437",
        ] {
            assert_eq!(clock.read(text.as_bytes()), Some(AT_NS), "{text}");
        }
        assert!(!clock.is_coarse && clock.assumed.is_empty());
        assert_eq!(clock.read(b"2026-11-21 00:59:57 CET"), Some(AT_NS / SECOND_NS * SECOND_NS));
        assert_eq!(clock.assumed.iter().collect::<Vec<_>>(), ["CET"]);
        assert!(clock.is_coarse);
        for text in ["", "2026-13-21 00:59:57.437 UTC", "2026-11-21", "1795", "2026-11-21 00:59:57.x", "yesterday"] {
            assert_eq!(clock.read(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn the_hour_that_comes_twice_is_told_apart_by_its_name() {
        let transition =
            |from_s, hours: i64, name: &str| Transition { from_s, offset_s: hours * 3600, name: name.into() };
        let zone = vec![transition(1_774_746_000, 2, "CEST"), transition(1_792_890_000, 1, "CET")];
        let mut clock = Clock::new(zone);
        let summer = clock.read(b"2026-10-25 02:30:00.000 CEST").expect("a time");
        let winter = clock.read(b"2026-10-25 02:30:00.000 CET").expect("a time");
        assert_eq!((winter - summer) / SECOND_NS, 3600);
        assert!(clock.assumed.is_empty());
    }

    #[test]
    fn a_month_without_a_year_is_read_in_the_year_that_is_given() {
        let mut clock = Clock::default();
        assert_eq!(clock.read_month(b"Nov 21 00:59:57", 2026), Some(AT_NS / SECOND_NS * SECOND_NS));
        assert!(clock.read_month(b"Jan  1 00:00:00", 2026).is_some() && clock.is_year_assumed);
        assert_eq!(clock.read_month(b"Foo  1 00:00:00", 2026), None);
    }
}
