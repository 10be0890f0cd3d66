//! Precedence levels of operators, which are those of pgbench and SQL.
//!
//! From loose to tight: OR; AND; NOT; IS, ISNULL, NOTNULL; comparisons, which do not chain; `| # & << >>` and the
//! prefix `~`; `+ -`; `* / %`; the prefixes `-` and `+`. All binary operators are left-associative. The operand of a
//! prefix operator is everything that binds tighter than the operator, so `~ 1 + 2` is `~(1 + 2)` and `not a = b` is
//! `not (a = b)`.

use crate::expr::Binary;
use crate::expr_lexer::Token;

pub(crate) const OR: u8 = 1;
pub(crate) const AND: u8 = 2;
pub(crate) const NOT: u8 = 3;
pub(crate) const IS: u8 = 4;
pub(crate) const COMPARISON: u8 = 5;
pub(crate) const BITS: u8 = 6;
pub(crate) const SUM: u8 = 7;
pub(crate) const PRODUCT: u8 = 8;
pub(crate) const SIGN: u8 = 9;

/// Words with a special meaning, which are not functions.
const KEYWORDS: &[&str] =
    &["and", "or", "not", "is", "isnull", "notnull", "null", "true", "false", "case", "when", "then", "else", "end"];

/// Returns true if a word is a keyword, ignoring case.
pub(crate) fn is_keyword(word: &str) -> bool {
    KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(word))
}

/// Operator between or after operands.
pub(crate) enum Infix {
    Or,
    And,
    /// A test such as `is not null`; its first word has not been consumed yet.
    Test,
    /// Binary operator; the flag is true if its operands are exchanged.
    Operator(Binary, bool),
}

/// Returns the level and meaning of a token between operands, or `None` if it is not an operator.
pub(crate) fn infix(token: Token) -> Option<(u8, Infix)> {
    let symbol = match token {
        Token::Word(word) => return word_infix(word),
        Token::Symbol(symbol) => symbol,
        _ => return None,
    };
    let (level, operator) = match symbol {
        "<" | ">" => (COMPARISON, Binary::Less),
        "<=" | ">=" => (COMPARISON, Binary::LessOrEqual),
        "=" => (COMPARISON, Binary::Equal),
        "<>" | "!=" => (COMPARISON, Binary::NotEqual),
        "|" => (BITS, Binary::BitOr),
        "#" => (BITS, Binary::BitXor),
        "&" => (BITS, Binary::BitAnd),
        "<<" => (BITS, Binary::ShiftLeft),
        ">>" => (BITS, Binary::ShiftRight),
        "+" => (SUM, Binary::Add),
        "-" => (SUM, Binary::Subtract),
        "*" => (PRODUCT, Binary::Multiply),
        "/" => (PRODUCT, Binary::Divide),
        "%" => (PRODUCT, Binary::Modulo),
        _ => return None,
    };
    Some((level, Infix::Operator(operator, matches!(symbol, ">" | ">="))))
}

fn word_infix(word: &str) -> Option<(u8, Infix)> {
    if word.eq_ignore_ascii_case("or") {
        Some((OR, Infix::Or))
    } else if word.eq_ignore_ascii_case("and") {
        Some((AND, Infix::And))
    } else if ["is", "isnull", "notnull"].iter().any(|test| word.eq_ignore_ascii_case(test)) {
        Some((IS, Infix::Test))
    } else {
        None
    }
}
