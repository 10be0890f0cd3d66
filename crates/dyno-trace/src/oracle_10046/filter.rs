//! Filters that select items: `event ~ 'db file%' and elapsed_us >= 1000 and not kind = close`.
//!
//! ```text
//! filter = part { "or" part }            part = fact { "and" fact }
//! fact   = [ "not" ] ( "(" filter ")" | name op value )
//! op     = "=" | "!=" | "<" | "<=" | ">" | ">=" | "~"
//! value  = number | word | 'quoted' | "quoted"        a doubled quote stands for itself
//! ```
//!
//! `~` compares with a pattern, ignoring case: `%` or `*` stands for any text, `_` or `?` for one character; without
//! any of them the text may be anywhere. Other comparisons of texts are exact. A missing value equals nothing and
//! differs from everything.

use std::fmt;

/// Fields to filter and group by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Field {
    /// Name of the event; `CPU` and `unaccounted-for within calls` for a call's own time.
    Event,
    /// Common class of the event.
    Class,
    /// Kind of the call; for a wait, the kind of its owner.
    Kind,
    /// Key of the statement.
    Statement,
    /// Statement with its literals replaced.
    Force,
    /// MODULE NAME.
    Module,
    /// ACTION NAME.
    Action,
    /// CLIENT ID.
    Client,
    /// SERVICE NAME.
    Service,
    /// SESSION ID, or the process if there is none.
    Session,
    /// Container of the session.
    Container,
    /// Path of the file as given.
    File,
    /// Recursion depth; for a wait, the depth of its owner.
    Depth,
    /// Object number of a wait.
    Object,
    /// First parameter of a wait.
    P1,
    /// Second parameter of a wait.
    P2,
    /// Third parameter of a wait.
    P3,
    /// Start in whole seconds since the UNIX epoch.
    Second,
    /// Start in whole minutes since the UNIX epoch.
    Minute,
    /// Duration of a wait, or of the call the item belongs to [µs]; only in filters.
    ElapsedUs,
    /// Rows of the call; only in filters.
    Rows,
}

impl Field {
    /// All fields with their names; the last two cannot be used to group items.
    pub const ALL: [(&'static str, Self); 21] = [
        ("event", Self::Event),
        ("class", Self::Class),
        ("kind", Self::Kind),
        ("statement", Self::Statement),
        ("force", Self::Force),
        ("module", Self::Module),
        ("action", Self::Action),
        ("client", Self::Client),
        ("service", Self::Service),
        ("session", Self::Session),
        ("container", Self::Container),
        ("file", Self::File),
        ("depth", Self::Depth),
        ("object", Self::Object),
        ("p1", Self::P1),
        ("p2", Self::P2),
        ("p3", Self::P3),
        ("second", Self::Second),
        ("minute", Self::Minute),
        ("elapsed_us", Self::ElapsedUs),
        ("rows", Self::Rows),
    ];

    /// Returns the name of the field.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, field)| *field == self).map_or("", |(name, _)| name)
    }

    /// Returns the field of that name if it can be grouped by.
    pub fn to_group_by(name: &str) -> Option<Self> {
        let grouping = &Self::ALL[..Self::ALL.len() - 2];
        grouping.iter().find(|(known, _)| *known == name).map(|(_, field)| *field)
    }

    /// Returns true if the field's values are numbers.
    pub fn is_number(self) -> bool {
        self >= Self::Depth
    }

    /// Returns true if a wait gets the value of this field only from its owner.
    pub fn is_owners(self) -> bool {
        matches!(self, Self::Kind | Self::Depth | Self::Rows)
    }
}

/// Value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// The item has no such value.
    Missing,
    /// A number.
    Number(i64),
    /// A text.
    Text(&'a str),
}

/// Items with fields.
pub trait Fields {
    /// Returns the value of a field of this item.
    fn value(&self, field: Field) -> Value<'_>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Equal,
    Differs,
    Less,
    AtMost,
    More,
    AtLeast,
    Like,
}

#[derive(Clone, Debug, PartialEq)]
enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Compare(Field, Op, String, f64),
}

/// A parsed filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    root: Node,
}

/// Syntax error in a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// Text of the filter.
    pub text: String,
    /// Character at which parsing failed, from 0.
    pub at: usize,
    /// What was expected.
    pub expected: String,
}

impl fmt::Display for FilterError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blank = " ".repeat(self.at);
        write!(to, "filter: expected {}\n  {}\n  {blank}^", self.expected, self.text)
    }
}

impl std::error::Error for FilterError {}

impl Filter {
    /// Parses a filter.
    ///
    /// # Errors
    /// The filter has a syntax error.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let mut parser = Parser { chars: text.chars().collect(), at: 0, nesting: 0 };
        let root = parser.any()?;
        parser.blanks();
        if parser.at < parser.chars.len() {
            return Err(parser.error("and, or, or the end"));
        }
        Ok(Self { root })
    }

    /// Returns true if the filter selects an item.
    pub fn passes(&self, item: &impl Fields) -> bool {
        passes(&self.root, item)
    }

    /// Returns true if the filter compares any field for which `is` returns true.
    pub fn uses(&self, is: impl Fn(Field) -> bool + Copy) -> bool {
        uses(&self.root, is)
    }
}

fn uses(node: &Node, is: impl Fn(Field) -> bool + Copy) -> bool {
    match node {
        Node::And(nodes) | Node::Or(nodes) => nodes.iter().any(|node| uses(node, is)),
        Node::Not(node) => uses(node, is),
        Node::Compare(field, ..) => is(*field),
    }
}

fn passes(node: &Node, item: &impl Fields) -> bool {
    match node {
        Node::And(nodes) => nodes.iter().all(|node| passes(node, item)),
        Node::Or(nodes) => nodes.iter().any(|node| passes(node, item)),
        Node::Not(node) => !passes(node, item),
        Node::Compare(field, op, text, number) => match item.value(*field) {
            Value::Missing => *op == Op::Differs,
            Value::Number(value) => compare_numbers(*op, value, *number),
            Value::Text(value) => compare_texts(*op, value, text),
        },
    }
}

#[allow(clippy::float_cmp)]
fn compare_numbers(op: Op, value: i64, number: f64) -> bool {
    let value = value as f64;
    match op {
        Op::Equal | Op::Like => value == number,
        Op::Differs => value != number,
        Op::Less => value < number,
        Op::AtMost => value <= number,
        Op::More => value > number,
        Op::AtLeast => value >= number,
    }
}

fn compare_texts(op: Op, value: &str, text: &str) -> bool {
    match op {
        Op::Equal => value == text,
        Op::Differs => value != text,
        Op::Less => value < text,
        Op::AtMost => value <= text,
        Op::More => value > text,
        Op::AtLeast => value >= text,
        Op::Like => like(value, text),
    }
}

/// Returns true if a text matches a pattern, ignoring case.
pub fn like(text: &str, pattern: &str) -> bool {
    let text: Vec<char> = text.to_lowercase().chars().collect();
    let mut pattern: Vec<char> = pattern.to_lowercase().chars().collect();
    if !pattern.iter().any(|c| matches!(c, '%' | '*' | '_' | '?')) {
        pattern.insert(0, '%');
        pattern.push('%');
    }
    let (mut at, mut want, mut star, mut from) = (0, 0, None, 0);
    while at < text.len() {
        match pattern.get(want) {
            Some('%' | '*') => {
                star = Some(want);
                from = at;
                want += 1;
            }
            Some(c) if matches!(c, '_' | '?') || *c == text[at] => {
                at += 1;
                want += 1;
            }
            _ => match star {
                Some(last) => {
                    from += 1;
                    at = from;
                    want = last + 1;
                }
                None => return false,
            },
        }
    }
    pattern[want..].iter().all(|c| matches!(c, '%' | '*'))
}

/// Largest nesting depth of brackets and `not`.
const NESTING_MAX: usize = 50;

struct Parser {
    chars: Vec<char>,
    at: usize,
    nesting: usize,
}

impl Parser {
    fn error(&self, expected: &str) -> FilterError {
        let text = self.chars.iter().collect();
        FilterError { text, at: self.at, expected: expected.to_owned() }
    }

    fn blanks(&mut self) {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
    }

    fn word(&self) -> String {
        let rest = self.chars[self.at..].iter();
        rest.take_while(|c| c.is_alphanumeric() || **c == '_').collect()
    }

    fn takes_word(&mut self, word: &str) -> bool {
        self.blanks();
        let found = self.word().eq_ignore_ascii_case(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn takes(&mut self, text: &str) -> bool {
        self.blanks();
        let found = text.chars().enumerate().all(|(n, c)| self.chars.get(self.at + n) == Some(&c));
        self.at += if found { text.len() } else { 0 };
        found
    }

    fn any(&mut self) -> Result<Node, FilterError> {
        let mut nodes = vec![self.all()?];
        while self.takes_word("or") {
            nodes.push(self.all()?);
        }
        Ok(if nodes.len() == 1 { nodes.swap_remove(0) } else { Node::Or(nodes) })
    }

    fn all(&mut self) -> Result<Node, FilterError> {
        let mut nodes = vec![self.fact()?];
        while self.takes_word("and") {
            nodes.push(self.fact()?);
        }
        Ok(if nodes.len() == 1 { nodes.swap_remove(0) } else { Node::And(nodes) })
    }

    fn fact(&mut self) -> Result<Node, FilterError> {
        if self.nesting > NESTING_MAX {
            return Err(self.error("fewer brackets"));
        }
        self.nesting += 1;
        let node = if self.takes_word("not") {
            Node::Not(Box::new(self.fact()?))
        } else if self.takes("(") {
            let inside = self.any()?;
            if !self.takes(")") {
                return Err(self.error(")"));
            }
            inside
        } else {
            self.comparison()?
        };
        self.nesting -= 1;
        Ok(node)
    }

    fn comparison(&mut self) -> Result<Node, FilterError> {
        self.blanks();
        let name = self.word().to_lowercase();
        let Some((_, field)) = Field::ALL.iter().find(|(known, _)| *known == name) else {
            let names: Vec<&str> = Field::ALL.iter().map(|(name, _)| *name).collect();
            return Err(self.error(&format!("one of {}", names.join(", "))));
        };
        self.at += name.chars().count();
        let op = self.op()?;
        self.blanks();
        let from = self.at;
        let text = self.text()?;
        let number = text.parse::<f64>().unwrap_or(f64::NAN);
        if field.is_number() && number.is_nan() {
            self.at = from;
            return Err(self.error(&format!("a number for {name}")));
        }
        Ok(Node::Compare(*field, op, text, number))
    }

    fn op(&mut self) -> Result<Op, FilterError> {
        const OPS: [(&str, Op); 9] = [
            ("!=", Op::Differs),
            ("<>", Op::Differs),
            ("<=", Op::AtMost),
            (">=", Op::AtLeast),
            ("==", Op::Equal),
            ("=", Op::Equal),
            ("<", Op::Less),
            (">", Op::More),
            ("~", Op::Like),
        ];
        for (text, op) in OPS {
            if self.takes(text) {
                return Ok(op);
            }
        }
        Err(self.error("one of = != < <= > >= ~"))
    }

    fn text(&mut self) -> Result<String, FilterError> {
        let quote = self.chars.get(self.at).copied();
        if !matches!(quote, Some('\'' | '"')) {
            let end = |c: &char| c.is_whitespace() || matches!(c, ')' | '(');
            let word: String = self.chars[self.at..].iter().take_while(|c| !end(c)).collect();
            self.at += word.chars().count();
            return if word.is_empty() { Err(self.error("a value")) } else { Ok(word) };
        }
        let mut text = String::new();
        self.at += 1;
        loop {
            let here = self.chars.get(self.at).copied();
            self.at += 1;
            match here {
                None => return Err(self.error("the closing quote")),
                Some(c) if Some(c) == quote => {
                    if self.chars.get(self.at).copied() != quote {
                        return Ok(text);
                    }
                    self.at += 1;
                    text.push(c);
                }
                Some(c) => text.push(c),
            }
        }
    }
}
