//! Tests that hold for any input: nothing panics, integers are exact, distributions stay in range.

use crate::support::{Run, run};
use dyno_script::{Command, Compiler, EvalError, Rng, Scope, Seeds, Value, eval};
use proptest::prelude::*;

/// Compiles and runs a text; anything wrong with the text must be reported as an error, not cause a panic.
fn survive(text: &str) {
    let defines = vec![("a", "1"), ("b", "x")];
    let what = Run { seed: 1, clients: 1, transactions: 2, defines };
    if let Err(message) = run("any.sql", text, &what) {
        assert!(!message.is_empty());
    }
}

/// Text of an integer expression, and its value computed in 128 bits; `None` if 64 bits cannot hold the value or a
/// divisor is zero.
#[derive(Debug, Clone)]
struct Sum {
    text: String,
    value: Option<i128>,
}

fn fits(value: i128) -> Option<i128> {
    i64::try_from(value).ok().map(i128::from)
}

fn sums() -> impl Strategy<Value = Sum> {
    let leaf = prop_oneof![any::<i64>(), -10_i64..10, Just(i64::MIN), Just(i64::MAX)]
        .prop_map(|number| Sum { text: format!("({number})"), value: Some(i128::from(number)) });
    leaf.prop_recursive(5, 40, 2, |inner| {
        (inner.clone(), inner, 0..5_usize).prop_map(|(left, right, operator)| {
            let operands = left.value.zip(right.value);
            let value = operands.and_then(|(left, right)| match operator {
                0 => fits(left + right),
                1 => fits(left - right),
                2 => fits(left * right),
                3 => left.checked_div(right).and_then(fits),
                _ => left.checked_rem(right).and_then(fits),
            });
            let symbol = ["+", "-", "*", "/", "%"][operator];
            Sum { text: format!("({} {symbol} {})", left.text, right.text), value }
        })
    })
}

fn evaluate(expression: &str) -> Result<Value, EvalError> {
    let script = Compiler::new().compile("x", &format!("\\set x {expression}")).expect(expression);
    let Command::Set { expr, .. } = &script.commands[0] else { panic!("not a \\set") };
    let mut scope = Scope::new(Compiler::new().symbols());
    eval(expr, &mut scope, &mut Rng::new(1))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_compiled_or_refused(text in any::<String>()) {
        survive(&text);
    }

    #[test]
    fn any_bytes_are_compiled_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        survive(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn any_words_of_the_language_are_compiled_or_refused(
        words in prop::collection::vec(prop::sample::select(WORDS), 0..40),
        blanks in prop::collection::vec(prop::sample::select(&[" ", "\n", "", " \\\n"][..]), 40),
    ) {
        let text: String = words.iter().zip(&blanks).flat_map(|(word, blank)| [*word, *blank]).collect();
        survive(&text);
    }

    #[test]
    fn integers_are_exact(sum in sums()) {
        match (evaluate(&sum.text), sum.value) {
            (Ok(Value::Int(found)), Some(expected)) => prop_assert_eq!(i128::from(found), expected),
            (Err(EvalError::IntegerRange { .. } | EvalError::DivisionByZero), None) => {}
            (found, expected) => prop_assert!(false, "{found:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn random_functions_stay_within_their_bounds(
        seed in any::<u64>(), low in any::<i32>(), width in 0..i64::from(i32::MAX), parameter in 2.0..50.0
    ) {
        let low = i64::from(low);
        let high = low + width;
        let mut rng = Seeds::new(seed).session();
        let mut scope = Scope::new(Compiler::new().symbols());
        for call in ["random", "random_gaussian", "random_exponential", "random_zipfian"] {
            let more = if call == "random" { String::new() } else { format!(", {parameter:?}") };
            let text = format!("\\set x {call}({low}, {high}{more})");
            let script = Compiler::new().compile("x", &text).expect("a script");
            let Command::Set { expr, .. } = &script.commands[0] else { panic!("not a \\set") };
            for _ in 0..50 {
                let Ok(Value::Int(drawn)) = eval(expr, &mut scope, &mut rng) else { panic!("{text}") };
                prop_assert!((low..=high).contains(&drawn), "{text}: {drawn}");
            }
        }
    }

    #[test]
    fn permutations_are_one_to_one(size in 1_i64..200, seed in any::<i64>()) {
        let mut seen = vec![false; size as usize];
        for number in 0..size {
            let Ok(Value::Int(place)) = evaluate(&format!("permute({number}, {size}, {seed})")) else {
                panic!("no place")
            };
            prop_assert!(!std::mem::replace(&mut seen[place as usize], true));
        }
    }

    #[test]
    fn doubles_survive_a_round_trip_through_text(number in prop::num::f64::NORMAL) {
        let mut compiler = Compiler::new();
        let var = compiler.declare("a").expect("a name");
        let mut scope = Scope::new(compiler.symbols());
        scope.set(var, Value::Double(number));
        let mut text = Vec::new();
        scope.write_text(var, &mut text);
        let read: f64 = String::from_utf8_lossy(&text).parse().expect("a number");
        prop_assert!(((read - number) / number).abs() <= 5.1e-15, "{number:e}");
    }
}

/// Fragments of scripts, for texts that get far in the compiler.
const WORDS: &[&str] = &[
    "\\set x ",
    "\\set",
    "\\if ",
    "\\elif ",
    "\\else",
    "\\endif",
    "\\sleep ",
    "\\gset",
    "\\aset p",
    ";",
    "\\;",
    "\\:",
    "\\redo",
    "\\startpipeline",
    "\\endpipeline",
    "\\syncpipeline",
    "\n",
    "select 1",
    "begin",
    "commit",
    "create function",
    "begin atomic",
    "end",
    "case",
    "when",
    "then",
    "else",
    ":a",
    ":b",
    "::",
    ":=",
    "'",
    "''",
    "\"",
    "$$",
    "$a$",
    "/*",
    "*/",
    "--",
    "E'",
    "(",
    ")",
    ",",
    "1",
    "0",
    "9223372036854775807",
    "9223372036854775808",
    "1.5",
    "1e400",
    ".5",
    "null",
    "true",
    "false",
    "not",
    "and",
    "or",
    "is",
    "isnull",
    "+",
    "-",
    "*",
    "/",
    "%",
    "<",
    "<=",
    "<>",
    "=",
    "&",
    "|",
    "#",
    "<<",
    ">>",
    "~",
    "random(",
    "random_zipfian(1, 10, 1.5)",
    "permute(1, 2, 3)",
    "hash(",
    "least(",
    "abs(",
    "debug(",
    "ms",
    "us",
    "é",
    "\u{0}",
    "\r\n",
    "\\",
    "\t",
];

/// Compiles texts close to valid scripts: the goldens with parts cut out, doubled and replaced.
///
/// The sequence is the same each time.
#[test]
fn damaged_scripts_are_compiled_or_refused() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    let mut rng = Rng::new(20_240_607);
    for stem in ["functions", "random", "branches", "texts"] {
        let text = std::fs::read_to_string(folder.join(format!("{stem}.sql"))).expect("a script");
        let whole: Vec<char> = text.chars().collect();
        for _ in 0..2_000 {
            let start = rng.up_to(whole.len() as u64 - 1) as usize;
            let length = rng.up_to(300) as usize;
            let mut part = whole[start..whole.len().min(start + length)].to_vec();
            for _ in 0..rng.up_to(3) {
                let place = rng.up_to(part.len() as u64) as usize;
                let word = WORDS[rng.up_to(WORDS.len() as u64 - 1) as usize];
                let end = part.len().min(place + rng.up_to(5) as usize);
                part.splice(place..end, word.chars());
            }
            survive(&part.into_iter().collect::<String>());
        }
    }
}
