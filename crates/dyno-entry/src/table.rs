//! A simple profile as text, identical to that of `pages/trace_profile.py` and `report/terminal.py`.

use serde_json::Value;

use crate::model::Model;
use crate::words::{self, THIN};

/// Characters for the last part of a bar, in steps of an eighth.
const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const BAR: f64 = 10.0;
/// Columns of durations, and the smallest page width at which each is shown.
const LENGTHS: [(&str, usize); 4] = [("mean", 112), ("p50", 122), ("p99", 101), ("max", 0)];
const BAR_FROM: usize = 92;
const SELF_CPU_FROM: usize = 84;
/// Width of a line without its skew [columns]; Python must make the page if the skew does not fit beside it.
const BESIDE_SKEW: usize = 60;
const SKEW_LEAST: usize = 12;

/// Smallest width to which a name may be folded [columns].
const NAME_LEAST: usize = 29;

struct Column {
    left: bool,
    cells: Vec<String>,
}

impl Column {
    fn new(left: bool, label: &str, cells: impl Iterator<Item = String>) -> Self {
        Self { left, cells: std::iter::once(label.to_owned()).chain(cells).collect() }
    }

    fn width(&self) -> usize {
        self.cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

/// Returns the page as text, or `None` if the page is not simple enough for this program.
pub fn text(model: &Model<'_>, width: usize) -> Option<String> {
    let mut out = head(model, width)?;
    out.push_str("\nWhere the time went, by event\n");
    out.push_str(&lines(&profile(model, width)?, width)?);
    if !model.calls().is_empty() {
        out.push_str("\nDatabase calls, seconds\n");
        out.push_str(&lines(&calls(model, width)?, width)?);
    }
    Some(out.replace(THIN, " "))
}

fn head(model: &Model<'_>, width: usize) -> Option<String> {
    let fact = |name: &str| model.fact(name).as_u64().unwrap_or(0);
    let some = |known: bool, words: String| if known { words } else { String::new() };
    let elapsed = model.fact("elapsed_ns").as_i64()?;
    let chips = [
        words::counted(fact("files"), "file"),
        some(fact("bytes") > 0, words::size(fact("bytes") as f64)),
        words::counted(fact("lines"), "line"),
        words::counted(fact("sessions"), "session"),
        some(elapsed > 0, format!("{} of session time", words::span(elapsed as f64 / 1e9))),
        words::period(model.fact("from_ns").as_i64(), model.fact("to_ns").as_i64()),
    ];
    let told: Vec<&str> = chips.iter().map(String::as_str).filter(|chip| !chip.is_empty()).collect();
    let (title, facts) = (wrapped(&model.title, width)?, wrapped(&told.join(" · "), width)?);
    (elapsed >= 0 && is_plain(&model.title)).then(|| format!("{title}\n{facts}\n"))
}

/// Returns text wrapped at spaces to this width; `None` if a word is wider.
fn wrapped(text: &str, width: usize) -> Option<String> {
    let (mut lines, mut at) = (String::new(), 0);
    for word in text.split_inclusive([' ', THIN]) {
        let bare = word.trim_end_matches([' ', THIN]).chars().count();
        if bare > width {
            return None;
        }
        if at + bare > width {
            lines.truncate(lines.trim_end_matches([' ', THIN]).len());
            lines.push('\n');
            at = 0;
        }
        lines += word;
        at += word.chars().count();
    }
    Some(lines)
}

/// Returns true if the text is one line without special characters.
fn is_plain(text: &str) -> bool {
    let blank = text.starts_with(' ') || text.ends_with(' ') || text.contains("  ");
    !text.is_empty() && !blank && text.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

fn profile(model: &Model<'_>, width: usize) -> Option<Vec<Column>> {
    let rows = model.rows();
    let names: Option<Vec<&str>> = rows.iter().map(|row| row["name"].as_str().filter(|name| is_plain(name))).collect();
    let (names, elapsed) = (names?, model.fact("elapsed_ns").as_f64()?);
    let float = |name: &str| rows.iter().map(|row| row[name].as_f64()).collect::<Option<Vec<f64>>>();
    let total = |text: &str| std::iter::once(text.to_owned());
    let text = |cells: Vec<f64>, shown: fn(f64) -> String| cells.into_iter().map(shown).collect::<Vec<_>>().into_iter();
    let shares = float("share")?;
    let mut columns = vec![
        Column::new(true, "line", names.iter().map(|name| (*name).to_owned()).chain(total("total"))),
        Column::new(false, "count", text(float("count")?, count).chain(total(""))),
        Column::new(false, "seconds", text(float("total_ns")?, words::seconds).chain(total(&words::seconds(elapsed)))),
        Column::new(false, "share", text(shares.clone(), words::share).chain(total(&words::share(1.0)))),
    ];
    if width >= BAR_FROM {
        columns.push(Column::new(true, "", text(shares, bar).chain(total(""))));
    }
    for (name, _) in LENGTHS.iter().filter(|(_, least)| *least <= width) {
        let cells = text(float(&format!("{name}_ns"))?, words::duration);
        columns.push(Column::new(false, name, cells.chain(total(""))));
    }
    let decades = decades(rows)?;
    if decades.len() > width.saturating_sub(BESIDE_SKEW).max(SKEW_LEAST) {
        return None;
    }
    let label =
        if decades[0] == BELOW { "<1 µs…".to_owned() } else { format!("{}…", words::decade(low(decades[0]))) };
    columns.push(Column::new(true, &label, rows.iter().map(|row| skew(row, &decades)).chain(total(""))));
    Some(columns)
}

fn count(value: f64) -> String {
    if value == 0.0 { String::new() } else { words::count(value) }
}

fn bar(share: f64) -> String {
    if share.is_nan() || share <= 0.0 {
        return String::new();
    }
    let eighths = ((share.min(1.0) * BAR * 8.0).round_ties_even() as usize).max(1);
    "█".repeat(eighths / 8) + PARTS[eighths % 8]
}

/// Decade in which all times below 1 µs are counted: that of 100 ns.
const BELOW: u32 = 2;

fn low(decade: u32) -> f64 {
    10_f64.powi(decade as i32)
}

/// Returns the buckets of a line's histogram as pairs of decade and total time [ns].
fn buckets(row: &Value) -> impl Iterator<Item = (u32, i64)> {
    let held = row["histogram"].as_array().into_iter().flatten();
    held.filter_map(|bucket| {
        let (low, count, total) = (bucket[0].as_i64()?, bucket[2].as_u64()?, bucket[3].as_i64()?);
        let decade = if low < 1000 { BELOW } else { low.ilog10() };
        (low >= 0 && count > 0).then_some((decade, total))
    })
}

/// Returns all decades from the first to the last that is used, or `None` if there is none.
fn decades(rows: &[Value]) -> Option<Vec<u32>> {
    let used = || rows.iter().flat_map(buckets).map(|(decade, _)| decade);
    Some((used().min()?..=used().max()?).collect())
}

/// Returns one character for each decade; its height shows the time spent in that decade.
fn skew(row: &Value, decades: &[u32]) -> String {
    if row["histogram"].as_array().is_none_or(Vec::is_empty) {
        return String::new();
    }
    let of = |decade: &u32| -> Option<f64> {
        let mut there = buckets(row).filter(|(at, _)| at == decade).peekable();
        there.peek()?;
        Some(there.map(|(_, total)| total as f64).sum())
    };
    let found: Vec<Option<f64>> = decades.iter().map(of).collect();
    let most = found.iter().flatten().fold(0.0, |most: f64, time| most.max(*time));
    let small = if most > 0.0 { most / 1000.0 } else { 1.0 };
    let heights: Vec<f64> = found.iter().map(|time| time.map_or(0.0, |t| if t == 0.0 { small } else { t })).collect();
    let top = heights.iter().fold(0.0, |top: f64, height| top.max(*height));
    let sign = |height: &f64| {
        if *height <= 0.0 { '·' } else { EIGHTHS[((height / top * 8.0).round_ties_even() as usize).clamp(1, 8)] }
    };
    heights.iter().map(sign).collect()
}

fn calls(model: &Model<'_>, width: usize) -> Option<Vec<Column>> {
    let rows = model.calls();
    let kinds: Option<Vec<&str>> = rows.iter().map(|row| row["kind"].as_str().filter(|kind| is_plain(kind))).collect();
    let column = |name: &str, label: &str, shown: fn(f64) -> String| {
        let cells: Option<Vec<String>> = rows.iter().map(|row| row[name].as_f64().map(shown)).collect();
        Some(Column::new(false, label, cells?.into_iter()))
    };
    let mut columns = vec![
        Column::new(true, "kind", kinds?.into_iter().map(str::to_owned)),
        column("count", "count", words::count)?,
        column("elapsed_ns", "elapsed", words::seconds)?,
        column("cpu_ns", "CPU", words::seconds)?,
        column("self_elapsed_ns", "self", words::seconds)?,
    ];
    if width >= SELF_CPU_FROM {
        columns.push(column("self_cpu_ns", "self CPU", words::seconds)?);
    }
    columns.push(column("rows", "rows", words::count)?);
    Some(columns)
}

/// Returns the columns that fit, from the left, when names are folded to their smallest width; `None` if a numeric
/// column does not fit, because Python must report that.
fn fitting(columns: &[Column], width: usize) -> Option<Vec<&Column>> {
    let (mut kept, mut used) = (Vec::new(), 0);
    for column in columns {
        let need = column.width().min(if kept.is_empty() { NAME_LEAST } else { usize::MAX }) + 2;
        if kept.is_empty() || used + need <= width + 2 {
            kept.push(column);
            used += need;
        } else if !column.left {
            return None;
        }
    }
    Some(kept)
}

/// Returns the rows of a table, or `None` if they are wider than the page.
fn lines(columns: &[Column], width: usize) -> Option<String> {
    let columns = fitting(columns, width)?;
    let whole: usize = columns.iter().map(|column| column.width()).sum::<usize>() + 2 * (columns.len() - 1);
    if whole > width {
        return None;
    }
    let mut out = String::new();
    for at in 0..columns[0].cells.len() {
        let padded = columns.iter().map(|column| {
            let (cell, wide) = (&column.cells[at], column.width());
            if column.left { format!("{cell:<wide$}") } else { format!("{cell:>wide$}") }
        });
        let line = padded.collect::<Vec<_>>().join("  ");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    Some(out)
}
