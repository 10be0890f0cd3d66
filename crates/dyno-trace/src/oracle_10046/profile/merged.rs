//! Merging of the profiles of files, and their JSON.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::super::accounting::Account;
use super::super::evidence::narrow;
use super::super::filter::{Field, Value};
use super::{
    BETWEEN, CPU_NAME, DECADES, Dictionary, Item, KIND_SUMS, KindSum, Line, Lines, Request, Summing, THINK,
    UNACCOUNTED, What, bounds_of, slot,
};

/// Value of one field in a line's key, independent of the numbers that a file uses for names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Missing,
    Number(i64),
    Text(String),
}

/// Key of a line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    what: &'static str,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
struct NamedLines {
    lines: Lines,
    name: String,
    class: &'static str,
}

/// Profile of any number of files.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    lines: BTreeMap<Key, NamedLines>,
    kinds: BTreeMap<String, KindSum>,
    texts: BTreeMap<String, String>,
    /// Account of all sessions together.
    pub account: Account,
    /// Number of sessions.
    pub sessions: u64,
    /// Start of the first and end of the last session [ns, wall clock].
    pub span_ns: Option<(i64, i64)>,
}

/// Returns lines that hold the durations of one kind only.
fn alone(slot: usize, line: Line) -> Lines {
    let mut lines = Lines::default();
    lines[slot] = line;
    lines
}

impl NamedLines {
    fn total_ns(&self) -> i128 {
        self.lines.iter().map(Line::total_ns).sum()
    }

    /// Returns the number of calls, or the number of waits if there are no calls.
    fn count(&self) -> u64 {
        let [waits, cpu, rest] = &self.lines;
        cpu.count().max(rest.count()).max(if cpu.count() + rest.count() == 0 { waits.count() } else { 0 })
    }

    /// Returns the durations from which quantiles can be computed: those of the only kind present, or `None` if several
    /// kinds are.
    fn only(&self) -> Option<&Line> {
        let mut there = self.lines.iter().filter(|line| line.count() > 0);
        let first = there.next();
        first.filter(|_| there.next().is_none())
    }
}

fn what_word(what: What) -> &'static str {
    match what {
        What::Wait(_) | What::Think => "wait",
        What::Cpu => "cpu",
        What::Unaccounted => "unaccounted",
    }
}

fn name_of(what: What, dictionary: &Dictionary) -> String {
    match what {
        What::Wait(number) => dictionary.events.get(number as usize).map_or_else(String::new, |(name, _)| name.clone()),
        What::Think => THINK.to_owned(),
        What::Cpu => CPU_NAME.to_owned(),
        What::Unaccounted => UNACCOUNTED.to_owned(),
    }
}

impl Profile {
    /// Adds the sums of a file.
    pub fn take(&mut self, mut summing: Summing) {
        summing.settle();
        let by = summing.request.by.clone();
        let dictionary = &summing.dictionary;
        for (number, line) in std::mem::take(&mut summing.events).into_iter().enumerate() {
            self.plain(What::Wait(number as u32), dictionary, line);
        }
        self.plain(What::Think, dictionary, std::mem::take(&mut summing.think));
        self.plain(What::Cpu, dictionary, std::mem::take(&mut summing.cpu));
        self.plain(What::Unaccounted, dictionary, std::mem::take(&mut summing.unaccounted));
        for (item, line) in summing.groups.values() {
            self.grouped(item, &by, dictionary, &summing.lines[*line]);
        }
        for (kind, sum) in summing.kinds.iter().enumerate().filter(|(_, sum)| sum.count > 0) {
            let to = self.kinds.entry(dictionary.kind(kind as u16).to_owned()).or_default();
            to.count += sum.count;
            to.sums.iter_mut().zip(sum.sums).for_each(|(to, sum)| *to += sum);
        }
        for (number, text) in &summing.texts {
            if let Some((key, _)) = dictionary.statements.get(number) {
                self.texts.insert(key.clone(), text.clone());
            }
        }
    }

    fn plain(&mut self, what: What, dictionary: &Dictionary, line: Line) {
        if line.count() > 0 {
            let name = name_of(what, dictionary);
            let key = Key { what: what_word(what), parts: vec![Part::Text(name.clone())] };
            let lines = alone(slot(what), line);
            self.merge(key, &NamedLines { lines, name, class: dictionary.class(what) });
        }
    }

    fn grouped(&mut self, item: &Item, by: &[Field], dictionary: &Dictionary, lines: &Lines) {
        let part = |field: &Field| match (field, dictionary.value(item, *field)) {
            (Field::Event, _) => Part::Text(name_of(item.what, dictionary)),
            (_, Value::Missing) => Part::Missing,
            (_, Value::Number(value)) => Part::Number(value),
            (_, Value::Text(text)) => Part::Text(text.to_owned()),
        };
        let parts: Vec<Part> = by.iter().map(part).collect();
        // Without the event a line holds all kinds of time: that of the calls and their waits.
        let told = by.contains(&Field::Event);
        let name = if told { name_of(item.what, dictionary) } else { words(&parts) };
        let by_class = told || by.contains(&Field::Class);
        let class = if by_class { dictionary.class(item.what) } else { "" };
        let what = if told { what_word(item.what) } else { "call" };
        self.merge(Key { what, parts }, &NamedLines { lines: lines.clone(), name, class });
    }

    fn merge(&mut self, key: Key, told: &NamedLines) {
        match self.lines.get_mut(&key) {
            Some(known) => known.lines.iter_mut().zip(&told.lines).for_each(|(own, theirs)| own.merge(theirs)),
            None => {
                self.lines.insert(key, told.clone());
            }
        }
    }

    /// Adds the account of a session; its time between calls becomes a line.
    pub fn session(&mut self, account: &Account, name: &str, file: &str, request: &Request) {
        self.sessions += 1;
        self.account.add(account);
        if request.leaves_out() || account.segments == 0 {
            return;
        }
        let part = |field: &Field| match field {
            Field::Event => Part::Text(BETWEEN.to_owned()),
            Field::Session => Part::Text(name.to_owned()),
            Field::File => Part::Text(file.to_owned()),
            _ => Part::Missing,
        };
        let key = Key { what: "between", parts: request.by.iter().map(part).collect() };
        let mut line = Line::default();
        line.record(narrow(account.unexplained_ns()));
        self.merge(key, &NamedLines { lines: alone(2, line), name: BETWEEN.to_owned(), class: "other" });
    }

    /// Extends the profile's span to include a session that lasted from `from_ns` to `to_ns` [ns, wall clock].
    pub fn span(&mut self, from_ns: i64, to_ns: i64) {
        let (first, last) = self.span_ns.unwrap_or((from_ns, to_ns));
        self.span_ns = Some((first.min(from_ns), last.max(to_ns)));
    }
}

fn words(parts: &[Part]) -> String {
    let word = |part: &Part| match part {
        Part::Missing => "(none)".to_owned(),
        Part::Number(value) => value.to_string(),
        Part::Text(text) => text.clone(),
    };
    parts.iter().map(word).collect::<Vec<_>>().join(", ")
}

fn row(key: &Key, told: &NamedLines, by: &[Field], elapsed_ns: i128) -> Json {
    let mut keys = Map::new();
    for (field, part) in by.iter().zip(&key.parts) {
        let value = match part {
            Part::Missing => Json::Null,
            Part::Number(value) => json!(value),
            Part::Text(text) => json!(text),
        };
        keys.insert(field.name().to_owned(), value);
    }
    let total = told.total_ns();
    let share = if elapsed_ns == 0 { 0.0 } else { total as f64 / elapsed_ns as f64 };
    let mut row = json!({
        "key": keys,
        "what": key.what,
        "name": told.name,
        "class": told.class,
        "count": told.count(),
        "waits": told.lines[0].count(),
        "total_ns": narrow(total),
        "share": share,
    });
    let figures = match told.only() {
        Some(line) => figures(line),
        // Calls and their waits together: no duration is of one thing. The skew is that of the waits.
        None => json!({
            "mean_ns": null, "min_ns": null, "p50_ns": null, "p99_ns": null, "max_ns": null,
            "histogram": histogram(&told.lines[0]),
        }),
    };
    if let (Json::Object(row), Json::Object(figures)) = (&mut row, figures) {
        row.extend(figures);
    }
    row
}

fn figures(line: &Line) -> Json {
    let negative = |q: Option<f64>| q.map_or(json!(line.min_ns().min(0)), |value| json!(value));
    json!({
        "mean_ns": line.total_ns() as f64 / line.count().max(1) as f64,
        "min_ns": line.min_ns(),
        "p50_ns": negative(line.quantile(0.5)),
        "p99_ns": negative(line.quantile(0.99)),
        "max_ns": line.max_ns(),
        "histogram": histogram(line),
    })
}

fn histogram(line: &Line) -> Vec<Json> {
    let mut histogram = Vec::new();
    if line.negative.count > 0 {
        histogram.push(json!([line.min_ns(), 0, line.negative.count, narrow(line.negative.total_ns)]));
    }
    for (at, (count, total)) in line.decades.iter().enumerate().take(DECADES) {
        if *count > 0 {
            let (low, high) = bounds_of(at);
            histogram.push(json!([low, high, count, narrow(*total)]));
        }
    }
    histogram
}

/// Returns the profile as JSON, largest line first.
pub fn profile_json(profile: &Profile, request: &Request) -> Map<String, Json> {
    let mut lines: Vec<(&Key, &NamedLines)> = profile.lines.iter().collect();
    lines.sort_by(|a, b| b.1.total_ns().cmp(&a.1.total_ns()).then_with(|| a.0.cmp(b.0)));
    let kept = request.top.unwrap_or(usize::MAX).min(lines.len());
    let (mut count, mut total) = (0, 0);
    for (_, told) in &lines[kept..] {
        count += told.count();
        total += told.total_ns();
    }
    let elapsed = profile.account.elapsed_ns;
    let rows: Vec<Json> = lines[..kept].iter().map(|(key, told)| row(key, told, &request.by, elapsed)).collect();
    let calls: Vec<Json> = profile.kinds.iter().map(|(kind, sum)| kind_row(kind, sum)).collect();
    let mut told = Map::new();
    let mut put = |name: &str, value: Json| {
        told.insert(name.to_owned(), value);
    };
    put("sessions", json!(profile.sessions));
    put("elapsed_ns", json!(narrow(elapsed)));
    put("from_ns", json!(profile.span_ns.map(|(from, _)| from)));
    put("to_ns", json!(profile.span_ns.map(|(_, to)| to)));
    put("by", json!(request.by.iter().map(|field| field.name()).collect::<Vec<_>>()));
    put("rows", Json::Array(rows));
    put("calls", Json::Array(calls));
    put("left_out_by_top", json!({"count": count, "total_ns": narrow(total)}));
    let shown = |key: &String| lines[..kept].iter().any(|(k, _)| k.parts.contains(&Part::Text(key.clone())));
    let texts: Map<String, Json> =
        profile.texts.iter().filter(|(key, _)| shown(key)).map(|(key, text)| (key.clone(), json!(text))).collect();
    put("statements", Json::Object(texts));
    told
}

fn kind_row(kind: &str, sum: &KindSum) -> Json {
    let mut row = Map::new();
    row.insert("kind".to_owned(), json!(kind));
    row.insert("count".to_owned(), json!(sum.count));
    for (name, value) in KIND_SUMS.iter().zip(sum.sums) {
        row.insert((*name).to_owned(), json!(narrow(value)));
    }
    Json::Object(row)
}
