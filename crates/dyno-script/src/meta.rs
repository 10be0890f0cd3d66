//! Backslash commands: their names, their words, and their errors.

use crate::command::SleepTime;
use crate::expr_lexer::{continuation, skip_blanks};
use crate::names::Names;
use crate::source::{Source, is_name};
use crate::{ScriptError, spelling};

/// Backslash commands that a script may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meta {
    Set,
    Sleep,
    If,
    Elif,
    Else,
    Endif,
    Gset,
    Aset,
    StartPipeline,
    SyncPipeline,
    EndPipeline,
    Redo,
}

const NAMES: &[(&str, Meta)] = &[
    ("set", Meta::Set),
    ("sleep", Meta::Sleep),
    ("if", Meta::If),
    ("elif", Meta::Elif),
    ("else", Meta::Else),
    ("endif", Meta::Endif),
    ("gset", Meta::Gset),
    ("aset", Meta::Aset),
    ("startpipeline", Meta::StartPipeline),
    ("syncpipeline", Meta::SyncPipeline),
    ("endpipeline", Meta::EndPipeline),
    ("redo", Meta::Redo),
];

/// Word between blanks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Word<'s> {
    pub(crate) text: &'s str,
    pub(crate) start: usize,
}

/// Returns the command at `backslash`, the word of its name, and the offset after the name.
pub(crate) fn command<'s>(source: &Source<'s>, backslash: usize) -> Result<(Meta, Word<'s>, usize), ScriptError> {
    let (word, end) = next_word(source, backslash + 1);
    let Some(word) = word else {
        return Err(source.error(
            backslash,
            "a backslash without a command",
            "write the command's name right behind it; in SQL, put backslashes in quotes",
        ));
    };
    if let Some((_, meta)) = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word.text)) {
        return Ok((*meta, word, end));
    }
    if ["shell", "setshell"].iter().any(|shell| shell.eq_ignore_ascii_case(word.text)) {
        return Err(source.error(
            backslash,
            format!("\\{} is refused: a script never runs a program", word.text),
            "run the program before the experiment and hand its result over as a variable",
        ));
    }
    let names = || NAMES.iter().map(|(name, _)| *name);
    let hint = spelling::nearest(word.text, names()).map_or_else(
        || format!("use one of the commands \\{}", names().collect::<Vec<_>>().join(", \\")),
        |nearest| format!("the nearest command is \\{nearest}"),
    );
    let name = crate::error::excerpt(word.text);
    Err(source.error(backslash, format!("unknown command \\{name}"), hint))
}

/// Returns the next word of a line and the offset after it; if the line has no more words, `None` and the offset after
/// the line.
pub(crate) fn next_word<'s>(source: &Source<'s>, offset: usize) -> (Option<Word<'s>>, usize) {
    let start = skip_blanks(source, offset);
    let mut end = start;
    loop {
        match source.byte(end) {
            0 | b' ' | b'\t' | b'\r' | 0x0b | 0x0c | b'\n' => break,
            b'\\' if continuation(source, end).is_some() => break,
            _ => end += 1,
        }
    }
    if end > start {
        return (Some(Word { text: &source.text[start..end], start }), end);
    }
    (None, end + usize::from(source.byte(end) == b'\n'))
}

/// Returns the remaining words of a line, at most `most`, and the offset after the line.
pub(crate) fn words<'s>(
    source: &Source<'s>,
    name: Word,
    mut offset: usize,
    most: usize,
) -> Result<(Vec<Word<'s>>, usize), ScriptError> {
    let mut words = Vec::new();
    loop {
        let (word, end) = next_word(source, offset);
        let Some(word) = word else { return Ok((words, end)) };
        if words.len() == most {
            let hint = match most {
                0 => format!("write \\{} alone on its line", name.text),
                1 => format!("\\{} takes one word at most", name.text),
                _ => format!("\\{} takes {most} words at most", name.text),
            };
            return Err(source.error(word.start, format!("unexpected {:?} behind \\{}", word.text, name.text), hint));
        }
        words.push(word);
        offset = end;
    }
}

/// Returns the name of the variable that `\set` assigns, and the offset after it.
pub(crate) fn variable_name<'s>(source: &Source<'s>, offset: usize) -> Result<(Word<'s>, usize), ScriptError> {
    let (word, end) = next_word(source, offset);
    let Some(word) = word else {
        return Err(source.error(
            skip_blanks(source, offset),
            "\\set without a variable",
            "write \\set name expression",
        ));
    };
    check_name(source, word)?;
    Ok((word, end))
}

/// Refuses words that are not a valid variable name.
pub(crate) fn check_name(source: &Source, word: Word) -> Result<(), ScriptError> {
    if is_name(word.text) {
        return Ok(());
    }
    let hint = if word.text.starts_with(':') {
        "leave the colon out where a variable is assigned"
    } else {
        "use letters, digits and underscores, and do not begin with a digit"
    };
    let name = crate::error::excerpt(word.text);
    Err(source.error(word.start, format!("{name:?} cannot be a variable's name"), hint))
}

/// Returns the duration of a `\sleep` from its words: an integer or a variable, and a unit.
///
/// The unit may follow the number directly; without a unit, the duration is in seconds.
pub(crate) fn sleep_time(
    source: &Source,
    name: Word,
    words: &[Word],
    names: &mut Names,
) -> Result<SleepTime, ScriptError> {
    let Some(time) = words.first() else {
        return Err(source.error(
            name.start - 1,
            "\\sleep without a time",
            "write \\sleep number unit, with the unit us, ms or s",
        ));
    };
    if let Some(variable) = time.text.strip_prefix(':') {
        let word = Word { text: variable, start: time.start + 1 };
        check_name(source, word)?;
        let unit_us = words.get(1).map_or(Ok(1_000_000), |unit| unit_us(source, *unit))?;
        let var = names.read(source, variable, time.start);
        return Ok(SleepTime::Var { var, unit_us, name: variable.into() });
    }
    let signed = time.text.strip_prefix(['+', '-']).unwrap_or(time.text);
    let sign = time.text.len() - signed.len();
    let digits = signed.bytes().take_while(u8::is_ascii_digit).count();
    let rest = Word { text: &signed[digits..], start: time.start + sign + digits };
    if digits == 0 || (!rest.text.is_empty() && words.len() > 1) {
        return Err(source.error(
            time.start,
            format!("{:?} is not a whole number", time.text),
            "write \\sleep number unit, with the unit us, ms or s",
        ));
    }
    let unit = if rest.text.is_empty() { words.get(1).copied() } else { Some(rest) };
    let unit_us = unit.map_or(Ok(1_000_000), |unit| unit_us(source, unit))?;
    if time.text.starts_with('-') {
        return Ok(SleepTime::FixedUs(0));
    }
    let number: Option<u64> = signed[..digits].parse().ok();
    match number.and_then(|number| number.checked_mul(unit_us)) {
        Some(time_us) => Ok(SleepTime::FixedUs(time_us)),
        None => Err(source.error(time.start, "this time is too long", "choose a shorter time")),
    }
}

/// Returns the length of a unit [us].
fn unit_us(source: &Source, word: Word) -> Result<u64, ScriptError> {
    for (unit, length_us) in [("us", 1), ("ms", 1_000), ("s", 1_000_000)] {
        if word.text.eq_ignore_ascii_case(unit) {
            return Ok(length_us);
        }
    }
    Err(source.error(word.start, format!("{:?} is not a unit of time", word.text), "use one of the units us, ms and s"))
}
