//! Time stamps in the format of a trace.

use std::fmt::Write;

use super::super::record::NONE;

/// Returns the year, month and day that is `days` days after 1970-01-01; in the calculation, years begin in March, so
/// that the leap day is a year's last day.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// Returns `2024-03-26T18:41:01.013083-07:00`, or `2017-01-18 12:24:14.701` without a zone; empty if there is no time.
/// `zone_min` is [`NONE`] without a zone.
pub fn moment(wall_ns: i64, zone_min: i64, digits: u8) -> String {
    if wall_ns == NONE {
        return String::new();
    }
    let zone = if zone_min == NONE { 0 } else { zone_min };
    let local = i128::from(wall_ns) + i128::from(zone) * 60_000_000_000;
    let seconds = local.div_euclid(1_000_000_000) as i64;
    let nanos = local.rem_euclid(1_000_000_000) as i64;
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let second = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let between = if zone_min == NONE && digits <= 3 { ' ' } else { 'T' };
    let mut text = format!("{year:04}-{month:02}-{day:02}{between}{hour:02}:{minute:02}:{second:02}");
    if digits > 0 {
        let digits = digits.min(9);
        let fraction = nanos / 10i64.pow(9 - u32::from(digits));
        let _ = write!(text, ".{fraction:0width$}", width = usize::from(digits));
    }
    if zone_min != NONE {
        let sign = if zone_min < 0 { '-' } else { '+' };
        let _ = write!(text, "{sign}{:02}:{:02}", zone_min.abs() / 60, zone_min.abs() % 60);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_every_age() {
        assert_eq!(moment(1_484_742_254_701_000_000, NONE, 3), "2017-01-18 12:24:14.701");
        assert_eq!(moment(1_711_503_661_013_083_000, -420, 6), "2024-03-26T18:41:01.013083-07:00");
        assert_eq!(moment(1_592_050_803_212_067_000, 330, 6), "2020-06-13T17:50:03.212067+05:30");
        assert_eq!(moment(951_782_400_000_000_000, NONE, 0), "2000-02-29 00:00:00");
        assert_eq!(moment(-1_000_000_000, NONE, 0), "1969-12-31 23:59:59");
        assert_eq!(moment(NONE, NONE, 3), "");
    }
}
