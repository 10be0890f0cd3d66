//! Numbers as text in the form of `pages/format.py`: three significant digits, a thin space, and a unit.

/// Space between a number and its unit, and between groups of digits.
pub const THIN: char = '\u{202f}';
const MINUS: char = '−';
/// Smallest number of digits before the decimal point from which on digits are grouped in threes.
const GROUPED_FROM: usize = 5;
const DIGITS: usize = 3;

const TIME_UNITS: [(f64, &str); 4] = [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
const SIZE_UNITS: [(f64, &str); 6] = [
    (1_125_899_906_842_624.0, "PiB"),
    (1_099_511_627_776.0, "TiB"),
    (1_073_741_824.0, "GiB"),
    (1_048_576.0, "MiB"),
    (1_024.0, "KiB"),
    (1.0, "B"),
];

/// Returns a time [ns] as ns, µs, ms or s.
pub fn duration(ns: f64) -> String {
    scaled(ns, &TIME_UNITS, DIGITS)
}

/// Returns the lower end of a decade [ns] with one digit and its unit.
pub fn decade(ns: f64) -> String {
    scaled(ns, &TIME_UNITS, 1)
}

/// Returns a size [bytes] with its unit.
pub fn size(bytes: f64) -> String {
    scaled(bytes, &SIZE_UNITS, DIGITS)
}

/// Returns a duration [s], which must not be negative, in a readable form: `850 ms`, `2 min 5 s`, `3 h 20 min`.
pub fn span(seconds: f64) -> String {
    if seconds < 99.95 {
        return duration(seconds * 1e9);
    }
    let whole = seconds.round_ties_even() as u64;
    let (hours, minutes, rest) = (whole / 3600, whole / 60, whole % 60);
    if hours > 0 {
        format!("{hours}{THIN}h {}{THIN}min", minutes % 60)
    } else {
        format!("{minutes}{THIN}min {rest}{THIN}s")
    }
}

/// Returns a whole number with its digits grouped.
pub fn count(value: f64) -> String {
    signed(value, grouped(&format!("{:.0}", value.abs())))
}

/// Returns a number with its noun, as in `1 file` or `3 files`, or an empty text for 0.
pub fn counted(value: u64, noun: &str) -> String {
    match value {
        0 => String::new(),
        1 => format!("1 {noun}"),
        _ => format!("{} {noun}s", count(value as f64)),
    }
}

/// Returns a time [ns] in seconds with six decimals.
pub fn seconds(ns: f64) -> String {
    let micro = (ns.abs() / 1000.0).round_ties_even() as u64;
    let whole = thousands(&(micro / 1_000_000).to_string());
    format!("{}{whole}.{:06}", if ns < 0.0 { MINUS.to_string() } else { String::new() }, micro % 1_000_000)
}

/// Returns a share as a percentage with one decimal.
pub fn share(value: f64) -> String {
    let sign = if value < -0.0005 { MINUS.to_string() } else { String::new() };
    format!("{sign}{:.1}{THIN}%", value.abs() * 100.0)
}

/// Returns `2020-06-13 11:20:03 to 11:20:05`, or an empty text if the wall clock is unknown.
pub fn period(from_ns: Option<i64>, to_ns: Option<i64>) -> String {
    let (Some(from), Some(to)) = (from_ns.and_then(moment), to_ns.and_then(moment)) else { return String::new() };
    if from[..10] == to[..10] { format!("{from} to {}", &to[11..]) } else { format!("{from} to {to}") }
}

/// Returns a UTC time as text; `None` outside of 1979 to 2096.
fn moment(ns: i64) -> Option<String> {
    (300_000_000_000_000_000..4_000_000_000_000_000_000).contains(&ns).then(|| {
        let (days, second) = (ns / 1_000_000_000 / 86_400, ns / 1_000_000_000 % 86_400);
        let (year, month, day) = date(days);
        format!("{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", second / 3600, second / 60 % 60, second % 60)
    })
}

/// Returns the date of a number of days after 1970-01-01 (Howard Hinnant, `civil_from_days`).
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

fn scaled(value: f64, units: &[(f64, &str)], digits: usize) -> String {
    for (factor, name) in units.iter().filter(|(factor, _)| *factor > 1.0) {
        let rounded: f64 = format!("{:.*e}", digits - 1, value.abs() / factor).parse().unwrap_or(0.0);
        if rounded >= 1.0 {
            return format!("{}{THIN}{name}", significant(value / factor, digits));
        }
    }
    let shown = if value.fract() == 0.0 { count(value) } else { significant(value, digits) };
    format!("{shown}{THIN}{}", units[units.len() - 1].1)
}

fn significant(value: f64, digits: usize) -> String {
    signed(value, grouped(&format!("{:.*}", places(value, digits), value.abs())))
}

/// Returns the number of decimals that gives this many significant digits after rounding.
fn places(value: f64, digits: usize) -> usize {
    if value == 0.0 {
        return 0;
    }
    let text = format!("{:.*e}", digits - 1, value.abs());
    let exponent: i64 = text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    (digits as i64 - 1 - exponent).max(0) as usize
}

fn grouped(plain: &str) -> String {
    match plain.split_once('.') {
        Some((whole, rest)) => format!("{}.{rest}", grouped(whole)),
        None if plain.len() >= GROUPED_FROM => thousands(plain),
        None => plain.to_owned(),
    }
}

fn thousands(digits: &str) -> String {
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(THIN);
        }
        shown.push(digit);
    }
    shown
}

fn signed(value: f64, shown: String) -> String {
    let is_zero = shown.chars().all(|sign| matches!(sign, '0' | '.' | THIN));
    if value >= 0.0 || is_zero { shown } else { format!("{MINUS}{shown}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_worded_as_on_every_page() {
        let plain = |text: String| text.replace(THIN, " ");
        assert_eq!(plain(duration(444_000.0)), "444 µs");
        assert_eq!(plain(duration(999_600.0)), "1.00 ms");
        assert_eq!(plain(duration(-343_000.0)), "−343 µs");
        assert_eq!(plain(duration(0.0)), "0 ns");
        assert_eq!(plain(duration(12_345_600_000_000.0)), "12 346 s");
        assert_eq!(plain(size(2879.0)), "2.81 KiB");
        assert_eq!(plain(span(260.5)), "4 min 20 s");
        assert_eq!(plain(span(7384.0)), "2 h 3 min");
        assert_eq!(plain(seconds(-299_000.0)), "−0.000299");
        assert_eq!(plain(seconds(1_234_567_000_000_000.0)), "1 234 567.000000");
        assert_eq!(plain(share(-0.238)), "−23.8 %");
        assert_eq!(plain(counted(12_345, "line")), "12 345 lines");
        assert_eq!(plain(decade(1000.0)), "1 µs");
    }

    #[test]
    fn a_period_names_the_day_once() {
        let at = |seconds: i64| Some(seconds * 1_000_000_000);
        assert_eq!(period(at(1_684_466_880), at(1_684_466_881)), "2023-05-19 03:28:00 to 03:28:01");
        assert_eq!(period(at(951_782_399), at(951_782_400)), "2000-02-28 23:59:59 to 2000-02-29 00:00:00");
        assert_eq!(period(at(5), at(6)), "");
    }
}
