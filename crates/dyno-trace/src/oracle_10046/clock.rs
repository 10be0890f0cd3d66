//! Wall clock of a session.
//!
//! Records carry `tim`, a clock with an arbitrary origin. A plain `***` stamp gives the wall clock just before the next
//! record, so wall(t) = stamp + (t - tim of the next record). Each stamp is a new anchor; the error of the old anchor
//! at that moment is the residual: drift and steps of the system's clock. Without any stamp `tim` itself is taken as
//! UNIX time.

use super::record::NONE;

/// Mapping from `tim` [ns] to the wall clock [ns since the UNIX epoch].
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    offset_ns: i64,
    anchored: bool,
    /// Stamp whose record has not been read yet.
    stamp_ns: i64,
    /// Stamp and `tim` of the last anchor [ns].
    last: Option<(i64, i64)>,
    /// Unit that fits the last intervals between anchors, and the number of consecutive intervals that it fits.
    fits: (TimUnit, u32),
    /// Number of anchors.
    pub anchors: u64,
    /// Largest residual, without its sign [ns].
    pub residual_max_ns: i64,
}

/// Shortest interval that determines the unit of `tim` [ns].
const INTERVAL_LEAST_NS: i64 = 1_000_000_000;

/// Length of a tick on ports that shift by ten bits instead of dividing by a thousand (9i) [ns].
pub const TICK_NS: i64 = 1_024;

/// Returns the unit of the CPU time `c` [ns]: `c` comes from the operating system, which does not count in ticks.
pub(super) fn cpu_unit_ns(unit_ns: i64) -> i64 {
    if unit_ns == TICK_NS { 1_000 } else { unit_ns }
}

/// True unit, according to the wall clock, of a `tim` that is read as microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimUnit {
    /// Microseconds, as assumed.
    #[default]
    Microsecond,
    /// 1.024 µs.
    Tick,
    /// 10,000 µs.
    Centisecond,
}

impl TimUnit {
    /// Returns the unit of `tim`: the wall clock advanced by `wall` ns; `tim`, read as microseconds, by `passed` ns. A
    /// tick is 2.4 % longer than a microsecond; stamps with milliseconds that are at least a second apart resolve
    /// 0.1 %.
    fn of(wall: i64, passed: i64) -> Self {
        if passed <= 0 || wall < INTERVAL_LEAST_NS {
            return Self::Microsecond;
        }
        match wall as f64 / passed as f64 {
            ratio if (8_000.0..=12_500.0).contains(&ratio) => Self::Centisecond,
            ratio if (1.021..=1.027).contains(&ratio) => Self::Tick,
            _ => Self::Microsecond,
        }
    }
}

/// Effect of anchoring the clock at a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Error of the clock: stamp minus the time by the old anchor [ns]; [`NONE`] for the first anchor.
    pub residual_ns: i64,
    /// Error of all earlier times if this is the first anchor [ns]: they have to be shifted by this error.
    pub shift_ns: Option<i64>,
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            offset_ns: 0,
            anchored: false,
            stamp_ns: NONE,
            last: None,
            fits: (TimUnit::Microsecond, 0),
            anchors: 0,
            residual_max_ns: 0,
        }
    }
}

impl Clock {
    /// Records a plain stamp; the next record with a `tim` will anchor it.
    pub fn stamp(&mut self, wall_ns: i64) {
        if wall_ns != NONE {
            self.stamp_ns = wall_ns;
        }
    }

    /// Returns true if a stamp's record has not been read yet.
    #[inline]
    pub fn waits(&self) -> bool {
        self.stamp_ns != NONE
    }

    /// Returns true if there was no stamp yet in this segment: the first one may shift all times before it.
    #[inline]
    pub fn is_early(&self) -> bool {
        !self.anchored
    }

    /// Removes and returns the pending stamp [ns], since its record belongs to another session.
    pub fn take_stamp(&mut self) -> i64 {
        std::mem::replace(&mut self.stamp_ns, NONE)
    }

    /// Anchors the clock at the record after a stamp.
    pub fn anchor(&mut self, tim_ns: i64) -> Anchor {
        self.compare(tim_ns);
        let offset = self.stamp_ns.saturating_sub(tim_ns);
        let moved = offset.saturating_sub(self.offset_ns);
        let first = !self.anchored;
        (self.offset_ns, self.anchored, self.stamp_ns) = (offset, true, NONE);
        self.anchors += 1;
        if first {
            return Anchor { residual_ns: NONE, shift_ns: Some(moved) };
        }
        self.residual_max_ns = self.residual_max_ns.max(moved.saturating_abs());
        Anchor { residual_ns: moved, shift_ns: None }
    }

    /// Compares the wall clock with `tim` between two stamps; if they do not advance alike, `tim` counts something
    /// other than microseconds.
    fn compare(&mut self, tim_ns: i64) {
        if let Some((stamp, tim)) = self.last.replace((self.stamp_ns, tim_ns)) {
            let wall = self.stamp_ns.saturating_sub(stamp);
            let passed = tim_ns.saturating_sub(tim);
            let unit = TimUnit::of(wall, passed);
            self.fits = (unit, if unit == self.fits.0 { self.fits.1 + 1 } else { 1 });
        }
    }

    /// Returns the unit shown by the stamps, once enough intervals in a row agree.
    pub fn unit(&self) -> TimUnit {
        /// Number of consecutive intervals that establish centiseconds (nothing else resembles them), and number that
        /// establish ticks (a clock under adjustment may resemble them).
        const ENOUGH: (u32, u32) = (2, 3);
        match self.fits {
            (TimUnit::Centisecond, count) if count >= ENOUGH.0 => TimUnit::Centisecond,
            (TimUnit::Tick, count) if count >= ENOUGH.1 => TimUnit::Tick,
            _ => TimUnit::Microsecond,
        }
    }

    /// Handles a `tim` that went back: the next stamp anchors the clock anew. Until then the old anchor is used, which
    /// is correct where sessions of one host were merged.
    pub fn restart(&mut self) {
        self.anchored = false;
    }

    /// Returns the wall clock at a `tim` [ns].
    #[inline]
    pub fn wall(&self, tim_ns: i64) -> i64 {
        tim_ns.saturating_add(self.offset_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_is_the_wall_clock_of_the_next_record() {
        let mut clock = Clock::default();
        assert_eq!(clock.wall(7_000), 7_000, "without a stamp tim is the time");
        clock.stamp(1_000_000);
        assert_eq!(clock.anchor(10_000), Anchor { residual_ns: NONE, shift_ns: Some(990_000) });
        assert_eq!(clock.wall(10_500), 1_000_500);
        clock.stamp(2_000_000);
        assert_eq!(clock.anchor(1_009_900).residual_ns, 100);
        assert_eq!((clock.wall(1_009_900), clock.residual_max_ns), (2_000_000, 100));
    }

    #[test]
    fn centiseconds_taken_for_microseconds_show_in_the_stamps() {
        let mut clock = Clock::default();
        for second in 0..4i64 {
            clock.stamp(second * 1_000_000_000);
            clock.anchor(1_000 * (500 + second * 100));
        }
        assert_eq!(clock.unit(), TimUnit::Centisecond);
        clock.stamp(5_000_000_000);
        clock.anchor(1_000_000_000);
        assert_eq!(clock.unit(), TimUnit::Microsecond);
    }

    #[test]
    fn ticks_of_1024_ns_show_in_the_stamps_and_a_slewed_clock_does_not() {
        for (ppm, unit) in [(24_000, TimUnit::Tick), (500, TimUnit::Microsecond), (50_000, TimUnit::Microsecond)] {
            let mut clock = Clock::default();
            for second in 0..5i64 {
                clock.stamp(second * 2_000_000_000 / 1_000_000 * 1_000_000);
                clock.anchor(second * 2_000_000_000 * 1_000_000 / (1_000_000 + ppm));
            }
            assert_eq!(clock.unit(), unit, "{ppm}");
        }
    }

    #[test]
    fn numbers_at_the_end_of_their_range_do_not_overflow() {
        let mut clock = Clock::default();
        clock.stamp(i64::MAX);
        clock.anchor(i64::MIN + 1);
        assert_eq!(clock.wall(i64::MAX), i64::MAX);
    }
}
