//! Specification of a probe: parsed from JSON and checked.

use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;

use super::block::{HEAD, HEADER};
use super::{ProbeError, Sizes};

/// Largest amount of redo per write, without headers \[bytes\]: the limit of Oracle's log writer.
const WRITE_BYTES_MAX: u64 = 1 << 20;
/// Smallest number of writes of the largest size for which a file must have room.
const WRITES_PER_LAP_MIN: u64 = 4;
/// Default limit of a copy's backlog \[bytes\].
const BACKLOG_BYTES: u64 = 32 << 20;

/// Specification of a [`Probe`](super::Probe).
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// Seed of every random stream.
    pub seed: u64,
    /// Variants under test.
    pub arms: Vec<ProbeArm>,
}

/// One log writer with its sessions and its files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProbeArm {
    /// Name in the evidence.
    pub name: String,
    /// One or two files, which the probe creates.
    pub paths: Vec<PathBuf>,
    /// When a write to two paths counts as done.
    #[serde(default)]
    pub rule: Rule,
    /// How a write is made durable: words of [`Sync`] joined by `+`.
    #[serde(default = "default_sync")]
    pub sync: String,
    /// Redo of a commit, in the text form of [`Sizes`].
    #[serde(default = "default_size")]
    pub size: String,
    /// Size of a redo block \[bytes\].
    #[serde(default = "default_block")]
    pub block_bytes: usize,
    /// Size of each file \[bytes\]; the log reuses it as a ring.
    #[serde(default = "default_file")]
    pub file_bytes: u64,
    /// Number of sessions that commit.
    #[serde(default = "default_sessions")]
    pub sessions: u16,
    /// Closed loop: mean think time of a session between two commits \[ns\], exponentially distributed.
    #[serde(default)]
    pub think_ns: u64,
    /// Open loop: mean rate of commits \[1/s\], as a Poisson process; `None` for a closed loop.
    #[serde(default)]
    pub rate_per_s: Option<f64>,
    /// Largest backlog of a copy \[bytes\]; by default a quarter of the file, at most 32 MiB.
    #[serde(default)]
    pub backlog_bytes: Option<u64>,
    /// Duration from which on a copy's write counts as an outlier \[ns\].
    #[serde(default = "default_outlier")]
    pub outlier_ns: u64,
    /// With one path: true to let a separate thread write to the path, as with two paths.
    #[serde(default)]
    pub hand_over: bool,
    /// True to keep the files at the end.
    #[serde(default)]
    pub keep: bool,
}

/// When a write to two paths counts as done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rule {
    /// When every copy is durable, as with the members of a log group.
    #[default]
    All,
    /// When the first copy is durable, as in the race of a flash log.
    First,
}

/// How a write reaches the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sync {
    /// `O_DIRECT`: bypasses the page cache.
    pub direct: bool,
    /// `O_DSYNC`: a write returns when its data is durable.
    pub dsync: bool,
    /// `fdatasync` after each write.
    pub fdatasync: bool,
}

impl FromStr for Sync {
    type Err = ProbeError;

    fn from_str(text: &str) -> Result<Self, ProbeError> {
        let mut sync = Self::default();
        for word in text.split('+') {
            match word.trim() {
                "direct" => sync.direct = true,
                "dsync" => sync.dsync = true,
                "fdatasync" => sync.fdatasync = true,
                other => {
                    return Err(ProbeError::spec("sync", format!("{other:?} is not a way to sync"), WAYS));
                }
            }
        }
        if sync.dsync && sync.fdatasync {
            let message = "dsync and fdatasync do the same work twice";
            return Err(ProbeError::spec("sync", message, WAYS));
        }
        Ok(sync)
    }
}

const WAYS: &str = "choose direct+dsync, dsync, fdatasync, direct+fdatasync or direct";

fn default_sync() -> String {
    "direct+dsync".to_owned()
}
fn default_size() -> String {
    "512".to_owned()
}
const fn default_block() -> usize {
    4096
}
const fn default_file() -> u64 {
    64 << 20
}
const fn default_sessions() -> u16 {
    1
}
const fn default_outlier() -> u64 {
    500_000_000
}

impl ProbeSpec {
    /// Parses and checks a specification; touches no file.
    ///
    /// # Errors
    /// The JSON does not parse, has an unknown key, or a value is out of range.
    pub fn from_json(text: &str) -> Result<Self, ProbeError> {
        let spec: Self = serde_json::from_str(text).map_err(|error| ProbeError::unreadable(&error))?;
        spec.check()?;
        Ok(spec)
    }

    /// Checks the constraints that the types cannot express.
    ///
    /// # Errors
    /// A value is invalid; the first such value is reported.
    pub fn check(&self) -> Result<(), ProbeError> {
        if self.arms.is_empty() || self.arms.len() > usize::from(u8::MAX) {
            return Err(ProbeError::spec("arms", "there must be 1 to 255", "name one or more"));
        }
        self.arms.iter().try_for_each(ProbeArm::check)
    }
}

impl ProbeArm {
    fn check(&self) -> Result<(), ProbeError> {
        let wrong = |place: &str, message: String, next: &str| Err(ProbeError::spec(place, message, next));
        self.sync.parse::<Sync>()?;
        self.size.parse::<Sizes>()?;
        if self.paths.is_empty() || self.paths.len() > 2 {
            return wrong("path", format!("{} paths", self.paths.len()), "name one or two files");
        }
        if self.rule == Rule::First && self.paths.len() == 1 {
            return wrong("race", "a race needs two paths".to_owned(), "name a second file");
        }
        if self.paths.len() == 2 && self.paths[0] == self.paths[1] {
            return wrong("path", "both paths are the same".to_owned(), "name two files");
        }
        if !self.block_bytes.is_power_of_two() || !(512..=65536).contains(&self.block_bytes) {
            let message = format!("{} is not a block size", self.block_bytes);
            return wrong("block size", message, "choose 512, 1KiB, 2KiB, 4KiB ... 64KiB");
        }
        if self.sessions == 0 {
            return wrong("sessions", "expected at least one".to_owned(), "give 1 or more");
        }
        if self.rate_per_s.is_some_and(|rate| !(rate.is_finite() && rate > 0.0 && rate <= 1e7)) {
            return wrong(
                "rate",
                "must be above 0 and at most 10 million a second".to_owned(),
                "give a number in this range",
            );
        }
        if self.rate_per_s.is_some() && self.think_ns > 0 {
            let message = "a rate and a think time are given".to_owned();
            return wrong("rate", message, "give only one of the two: arrivals by the clock, or sessions that think");
        }
        let least = HEAD as u64 + WRITES_PER_LAP_MIN * self.write_bytes_max();
        if self.file_bytes < least {
            let message =
                format!("{} bytes hold fewer than {WRITES_PER_LAP_MIN} writes of the largest size", self.file_bytes);
            let step = format!("give at least {}KiB", least.div_ceil(1024));
            return wrong("file size", message, &step);
        }
        if self.backlog() + 2 * self.write_bytes_max() > self.file_bytes - HEAD as u64 {
            let message =
                format!("a copy that is {} bytes behind would be overwritten before it is durable", self.backlog());
            return wrong("backlog", message, "give a larger file, or half of it as the backlog");
        }
        Ok(())
    }

    /// Returns the amount of redo that fits into one block \[bytes\].
    pub fn payload_bytes(&self) -> u64 {
        (self.block_bytes - HEADER) as u64
    }

    /// Returns the largest amount of redo of one write \[bytes\].
    pub fn batch_bytes_max(&self) -> u64 {
        let largest = self.size.parse::<Sizes>().map_or(1, |sizes| sizes.largest());
        (largest * u64::from(self.sessions)).clamp(1, WRITE_BYTES_MAX)
    }

    /// Returns the largest size of one write \[bytes\], including headers and the unused end of the last block.
    pub fn write_bytes_max(&self) -> u64 {
        self.batch_bytes_max().div_ceil(self.payload_bytes()) * self.block_bytes as u64
    }

    /// Returns the largest backlog of a copy \[bytes\].
    pub fn backlog(&self) -> u64 {
        self.backlog_bytes.unwrap_or((self.file_bytes / 4).min(BACKLOG_BYTES))
    }

    /// Returns the number of slots; after the last one, the log continues at the first.
    pub fn slots(&self) -> u64 {
        (self.file_bytes - HEAD as u64) / self.block_bytes as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(arm: &str) -> String {
        let text = format!(r#"{{"seed": 1, "arms": [{{"name": "a", {arm}}}]}}"#);
        ProbeSpec::from_json(&text).unwrap_err().to_string()
    }

    #[test]
    fn each_wrong_value_is_named_with_the_next_step() {
        let two = r#""paths": ["a", "b"], "#;
        for (arm, said) in [
            (r#""paths": []"#.to_owned(), "path: 0 paths"),
            (r#""paths": ["a", "a"]"#.to_owned(), "path: both paths are the same"),
            (r#""paths": ["a"], "rule": "first""#.to_owned(), "race: a race needs two paths"),
            (format!(r#"{two}"sync": "often""#), "sync: \"often\" is not a way to sync"),
            (format!(r#"{two}"sync": "dsync+fdatasync""#), "sync: dsync and fdatasync"),
            (format!(r#"{two}"size": "big""#), "size: \"big\" is not a size"),
            (format!(r#"{two}"block_bytes": 700"#), "block size: 700"),
            (format!(r#"{two}"sessions": 0"#), "sessions: expected at least one"),
            (format!(r#"{two}"rate_per_s": 0.0"#), "rate: must be above 0"),
            (format!(r#"{two}"rate_per_s": 5.0, "think_ns": 1"#), "rate: a rate and a think"),
            (format!(r#"{two}"file_bytes": 8192"#), "file size: 8192 bytes hold fewer than 4"),
            (format!(r#"{two}"backlog_bytes": 67108864"#), "backlog: a copy that is 67108864"),
            (format!(r#"{two}"colour": 1"#), "probe: unknown field `colour`"),
        ] {
            let found = refusal(&arm);
            assert!(found.starts_with(said), "{found}");
            assert!(found.contains("\n  next: "), "{found}");
        }
    }

    #[test]
    fn every_way_of_sync_is_read() {
        let read = |text: &str| text.parse::<Sync>().unwrap();
        assert!(read("direct+dsync").direct && read("direct+dsync").dsync);
        assert!(read("fdatasync").fdatasync && !read("fdatasync").direct);
        assert!(!read("direct").dsync && !read("direct").fdatasync);
    }
}
