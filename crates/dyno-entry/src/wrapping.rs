//! A table whose long texts are wrapped, identical to that of `_table` in `cli/output.py`, which rich lays out.
//!
//! A column of short names without blanks keeps its width. If the table is wider than the output, the widest of the
//! other columns are narrowed until it fits (`rich/table.py`, `_collapse_widths`), and their texts are wrapped at
//! blanks (`rich/_wrap.py`, `divide_line`).

/// Longest text that is not wrapped if it has no blank.
const NAME_MOST: usize = 48;
/// Minimum width of a text column: normally, and on a narrow terminal [columns].
const TEXT_LEAST: usize = 24;
const TEXT_NARROW: usize = 12;
/// Blank columns between two columns.
const GAP: usize = 2;

/// Names and values of the cells of a row; the names are the same in all rows.
pub type Row = [(&'static str, String); 6];

struct Column {
    /// The header and the cells.
    cells: Vec<Vec<char>>,
    /// True if the cells are not wrapped.
    whole: bool,
    /// Blank columns in front of a cell and behind it.
    padding: [usize; 2],
    /// Width with the padding [columns].
    width: usize,
}

/// Returns the rows as a table, or `None` if a text needs more than one column for a character, has markup of rich, or
/// is aligned as a number.
pub fn table(rows: &[Row], width: usize) -> Option<String> {
    let names: Vec<&str> = rows.first()?.iter().map(|(name, _)| *name).collect();
    let mut columns = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let values: Vec<&str> = rows.iter().map(|row| row[at].1.as_str()).collect();
        if !values.iter().all(|value| is_plain(value)) || may_be_numbers(&values) {
            return None;
        }
        let whole = values.iter().all(|value| !value.contains(' ') && value.chars().count() <= NAME_MOST);
        let cells: Vec<Vec<char>> = std::iter::once(name).chain(&values).map(|text| text.chars().collect()).collect();
        let padding = [usize::from(at > 0), usize::from(at + 1 < names.len())];
        let longest = cells.iter().map(Vec::len).max()?;
        columns.push(Column { cells, whole, padding, width: longest + padding[0] + padding[1] });
    }
    fit(&mut columns, width)?;
    Some(lines(&columns))
}

/// Narrows the columns that may be wrapped until the table fits; `None` if it cannot.
fn fit(columns: &mut [Column], width: usize) -> Option<()> {
    let longest = |column: &Column| column.cells.iter().map(Vec::len).max().unwrap_or(0);
    let fixed: usize = columns.iter().filter(|column| column.whole).map(|column| longest(column) + GAP).sum();
    let texts = columns.iter().filter(|column| !column.whole).count();
    let each = width.saturating_sub(fixed) / texts.max(1);
    let width = width.max(fixed + texts * each.clamp(TEXT_NARROW, TEXT_LEAST));
    for column in columns.iter_mut() {
        column.width = column.width.min(width);
    }
    loop {
        let excess = columns.iter().map(|column| column.width).sum::<usize>().saturating_sub(width);
        if excess == 0 {
            return Some(());
        }
        let widths = |but: usize| columns.iter().filter(move |one| !one.whole && one.width != but).map(|one| one.width);
        let most = widths(usize::MAX).max()?;
        let step = most - widths(most).max().unwrap_or(0);
        narrow(columns, most, excess, step);
    }
}

/// Takes the excess, but at most `step` from each, from the columns with the width `most`, in equal parts (`rich/_ratio.py`,
/// `ratio_reduce`).
fn narrow(columns: &mut [Column], most: usize, excess: usize, step: usize) {
    let mut count = columns.iter().filter(|column| !column.whole && column.width == most).count();
    let (most_each, mut left) = (excess.min(step), excess);
    for column in columns.iter_mut().filter(|column| !column.whole && column.width == most) {
        let part = most_each.min((left as f64 / count as f64).round_ties_even() as usize);
        column.width -= part;
        left -= part;
        count -= 1;
    }
}

fn lines(columns: &[Column]) -> String {
    let mut out = String::new();
    for at in 0..columns[0].cells.len() {
        let cells: Vec<Vec<String>> = columns.iter().map(|column| cell(column, at)).collect();
        for line in 0..cells.iter().map(Vec::len).max().unwrap_or(0) {
            for (column, lines) in columns.iter().zip(&cells) {
                match lines.get(line) {
                    Some(text) => out.push_str(text),
                    None => out.extend(std::iter::repeat_n(' ', column.width)),
                }
            }
            out.push('\n');
        }
    }
    out
}

/// Returns the lines of a cell, filled with blanks to the width of the column.
fn cell(column: &Column, at: usize) -> Vec<String> {
    let [before, behind] = column.padding;
    let width = column.width - before - behind;
    let text = &column.cells[at];
    let ends = if column.whole { Vec::new() } else { breaks(text, width) };
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let pieces = starts.zip(ends.iter().copied().chain([text.len()]));
    let filled = |(from, to): (usize, usize)| {
        let piece: String = text[from..to].iter().take(width).collect();
        format!("{:before$}{piece:<width$}{:behind$}", "", "")
    };
    pieces.map(filled).collect()
}

/// Returns the places at which the text is divided into lines of this width.
fn breaks(text: &[char], width: usize) -> Vec<usize> {
    let (mut found, mut used) = (Vec::new(), 0);
    for (from, to) in words(text) {
        let bare = text[from..to].iter().rposition(|sign| !sign.is_whitespace()).map_or(0, |last| last + 1);
        if used + bare <= width {
            used += to - from;
        } else if bare > width {
            for start in (from..to).step_by(width) {
                found.extend((start > 0).then_some(start));
                used = width.min(to - start);
            }
        } else if used > 0 && from > 0 {
            found.push(from);
            used = to - from;
        }
    }
    found
}

/// Returns the words with the blanks behind them, and the blanks at the beginning of the text with the first one.
fn words(text: &[char]) -> Vec<(usize, usize)> {
    let (mut found, mut from) = (Vec::new(), 0);
    let until = |from: usize, blank: bool| {
        text[from..].iter().position(|sign| sign.is_whitespace() != blank).map_or(text.len(), |at| from + at)
    };
    while from < text.len() {
        let begin = until(from, true);
        if begin == text.len() {
            break;
        }
        let to = until(until(begin, false), true);
        found.push((from, to));
        from = to;
    }
    found
}

/// Returns true if each character takes one column, and rich takes no part of the text as markup or the name of an
/// emoji.
fn is_plain(text: &str) -> bool {
    let narrow = |sign: char| {
        matches!(sign, ' '..='Z' | ']'..='~' | '\u{a0}'..='\u{ac}' | '\u{ae}'..='\u{2ff}' | '\u{370}'..='\u{482}'
            | '\u{2010}'..='\u{2027}' | '\u{202f}'..='\u{205e}' | '\u{2190}'..='\u{22ff}')
    };
    let parts: Vec<&str> = text.split(':').collect();
    let between = parts.get(1..parts.len() - 1).unwrap_or_default();
    // Two digits are the minutes of a time; 100 and 1234 are names.
    let is_minutes = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_emoji = |part: &&str| !part.is_empty() && !part.contains(char::is_whitespace) && !is_minutes(part);
    text.chars().all(narrow) && !between.iter().any(is_emoji)
}

/// Returns true if a column may hold numbers, which are aligned on the right.
fn may_be_numbers(values: &[&str]) -> bool {
    let mut texts = values.iter().filter(|value| !matches!(**value, "" | "–" | "-")).peekable();
    let of_number = |sign: char| sign.is_numeric() || sign.is_whitespace() || "+-−,.e%to".contains(sign);
    texts.peek().is_some() && texts.all(|text| text.chars().all(of_number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divided(text: &str, width: usize) -> Vec<String> {
        let cells = vec![text.chars().collect()];
        cell(&Column { cells, whole: false, padding: [0, 0], width }, 0)
    }

    #[test]
    fn a_text_is_wrapped_at_blanks_and_a_long_word_where_it_must_be() {
        assert_eq!(divided("one two three", 8), ["one two ", "three   "]);
        assert_eq!(divided("a longer-word b", 6), ["a     ", "longer", "-word ", "b     "]);
        assert_eq!(divided("", 3), ["   "]);
    }

    #[test]
    fn markup_wide_characters_and_emoji_are_left_to_python() {
        for text in ["a [b]", "a\\", "日本", "é\u{301}", ":smile:", ":100:", "a\nb"] {
            assert!(!is_plain(text), "{text:?}");
        }
        for text in ["10:02:11", "a: b: c", "+3.4\u{202f}% → −1 µs", "Ærøskøbing"] {
            assert!(is_plain(text), "{text:?}");
        }
    }
}
