//! Cost of recording every operation: ns per row, bytes per row, and peak memory after a tenth of the rows and after
//! all rows; the two peaks must be equal.
//!
//! ```sh
//! cargo run --release -p dyno-evidence --example capture -- 50000000
//! cargo run --release -p dyno-evidence --example capture -- 8000000 20 folder   # 20 parts, kept
//! ```

use std::time::Instant;

use dyno_evidence::{Call, CallKind, CallsWriter, EvidenceError};

/// Number of rows that are collected before they are passed to the writer.
const BUFFER: usize = 1 << 16;

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Returns a plausible operation with a latency of some tens of microseconds.
fn operation(at: u64, block: u32, state: &mut u64) -> Call {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let elapsed = 20_000 + ((*state >> 40) % 30_000) as i64;
    Call {
        started_ns: 1_790_000_000_000_000_000 + at as i64 * 40_000,
        elapsed_ns: elapsed,
        rows: 1,
        block,
        arm: ((at / 2_000) % 2) as u16,
        session: (at % 8) as u16,
        slice: (at / 2_000) as u32,
        kind: CallKind::Transaction,
        ..Call::new()
    }
}

fn argument(at: usize) -> Option<String> {
    std::env::args().nth(at)
}

fn main() -> Result<(), EvidenceError> {
    let rows: u64 = argument(1).and_then(|n| n.parse().ok()).unwrap_or(5_000_000);
    let parts: u64 = argument(2).and_then(|n| n.parse().ok()).unwrap_or(1);
    let kept = argument(3);
    let aside = std::env::temp_dir().join(format!("dyno-capture-{}", std::process::id()));
    let dir = kept.as_ref().map_or(aside, Into::into);
    let (mut buffer, mut state, mut early) = (Vec::with_capacity(BUFFER), 1, 0);
    let (mut written_ns, began) = (0, Instant::now());
    for part in 0..parts {
        let arms = ["base".to_owned(), "other".to_owned()];
        let mut writer = CallsWriter::create(&dir, &format!("b{part:06}"), &arms, &["select".into()])?;
        let (first, last) = (rows * part / parts, rows * (part + 1) / parts);
        for at in first..last {
            buffer.push(operation(at, part as u32, &mut state));
            if buffer.len() == BUFFER || at + 1 == last {
                let start = Instant::now();
                writer.push(&buffer, &[])?;
                written_ns += start.elapsed().as_nanos();
                buffer.clear();
            }
            if at == rows / 10 {
                early = peak_kib();
            }
        }
        let start = Instant::now();
        writer.finish()?;
        written_ns += start.elapsed().as_nanos();
    }
    let total_ns = began.elapsed().as_nanos();
    let sizes = std::fs::read_dir(&dir).into_iter().flatten().flatten();
    let bytes: u64 = sizes.filter_map(|file| file.metadata().ok()).map(|m| m.len()).sum();
    if kept.is_none() {
        std::fs::remove_dir_all(&dir).ok();
    }
    let per_row = |ns: u128| ns as f64 / rows as f64;
    println!(
        "{rows} rows: {:.1} ns a row, of it {:.1} ns to encode and write; {:.2} bytes a row; peak {} MiB after a tenth, {} MiB after all",
        per_row(total_ns),
        per_row(written_ns),
        bytes as f64 / rows as f64,
        early / 1024,
        peak_kib() / 1024,
    );
    Ok(())
}
