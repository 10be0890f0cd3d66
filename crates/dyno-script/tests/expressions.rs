//! Tests of expressions: their values, and their errors.

use std::collections::BTreeSet;

use dyno_script::{Command, Compiler, EvalError, Rng, Scope, Seeds, Value, eval};

/// Evaluates an expression over `:seven` = 7, `:half` = 0.5, `:word` = 'word' and the unset `:nothing`.
fn evaluate(expression: &str) -> Result<Value, EvalError> {
    let mut compiler = Compiler::new();
    let seven = compiler.declare("seven").expect("a name");
    let half = compiler.declare("half").expect("a name");
    let word = compiler.declare("word").expect("a name");
    let script = compiler
        .compile("expression", &format!("\\set result {expression}"))
        .unwrap_or_else(|error| panic!("{expression}: {error}"));
    let Command::Set { expr, .. } = &script.commands[0] else { panic!("not a \\set") };
    let mut scope = Scope::new(compiler.symbols());
    scope.set(seven, Value::Int(7));
    scope.set_text(half, "0.5");
    scope.set_text(word, "word");
    eval(expr, &mut scope, &mut Seeds::new(1).session())
}

#[test]
fn values() {
    let int = Value::Int;
    let double = Value::Double;
    let (yes, no) = (Value::Bool(true), Value::Bool(false));
    let table = [
        ("1 + 2 * 3", int(7)),
        ("(1 + 2) * 3", int(9)),
        ("10 - 4 - 3", int(3)),
        ("2 * 3 % 4", int(2)),
        ("-7 / 2", int(-3)),
        ("-7 % 3", int(-1)),
        ("- - 7", int(7)),
        ("-9223372036854775808", int(i64::MIN)),
        ("-9223372036854775808 % -1", int(0)),
        ("~ 1 + 2", int(!3)),
        ("1 | 6 & 3", int(3)),
        ("1 << 3 + 1", int(16)),
        ("1 << 64", int(1)),
        ("1 << -1", int(i64::MIN)),
        ("-8 >> 1", int(-4)),
        ("1.5 + 1", double(2.5)),
        ("1 / 2.0", double(0.5)),
        ("7.6 % 5", int(3)),
        ("5.5 & 7", int(6)),
        (":seven + :half", double(7.5)),
        ("1 < 2", yes.clone()),
        ("2 > 1", yes.clone()),
        ("1 >= 1.0", yes.clone()),
        ("1 != 1", no.clone()),
        ("1 <> 2", yes.clone()),
        ("1 + 1 = 2 and not 2 = 3", yes.clone()),
        ("false and 1 / 0 = 1", no.clone()),
        ("true or 1 / 0 = 1", yes.clone()),
        ("null and false", Value::Null),
        ("true and null", Value::Null),
        ("false or null", Value::Null),
        ("not null", Value::Null),
        ("null is null", yes.clone()),
        ("1 is not null", yes.clone()),
        ("1 isnull", no.clone()),
        ("1 notnull", yes.clone()),
        ("1 = 1 is true", yes.clone()),
        ("1 is true", no.clone()),
        ("1 = 2 is not false", no.clone()),
        ("null is null is null", no.clone()),
        ("null + 1", Value::Null),
        ("abs(null)", Value::Null),
        ("case when 0 then 1 when 0.5 then 2 else 3 end", int(2)),
        ("case when null then 1 end", Value::Null),
        ("CASE WHEN TRUE THEN 1 ELSE 1 / 0 END", int(1)),
        ("abs(-5)", int(5)),
        ("abs(-5.5)", double(5.5)),
        ("int(2.5)", int(2)),
        ("int(3.5)", int(4)),
        ("double(3)", double(3.0)),
        ("greatest(1, 3, 2)", int(3)),
        ("greatest(1, 2.5)", double(2.5)),
        ("least(1, 3, -2)", int(-2)),
        ("mod(7, 4)", int(3)),
        ("sqrt(9)", double(3.0)),
        ("POWER(2, 10)", double(1024.0)),
        ("pow(4, 0.5)", double(2.0)),
        ("ln(1)", double(0.0)),
        ("exp(0)", double(1.0)),
        ("pi() > 3.14159 and pi() < 3.1416", yes),
        ("debug(null)", Value::Null),
        ("random(7, 7)", int(7)),
        ("random_zipfian(3, 3, 1.5)", int(3)),
        ("permute(5, 1, 2)", int(0)),
        ("1 \\\n + \\\r\n 2", int(3)),
    ];
    for (expression, expected) in table {
        assert_eq!(evaluate(expression), Ok(expected), "{expression}");
    }
}

/// Returns the name of an error's kind; a new kind needs an expression in the table below.
fn kind(error: &EvalError) -> &'static str {
    match error {
        EvalError::Unset { .. } => "unset",
        EvalError::NotANumber { .. } => "not a number",
        EvalError::IntegerRange { .. } => "integer range",
        EvalError::DoubleRange { .. } => "double range",
        EvalError::DivisionByZero => "division by zero",
        EvalError::Type { .. } => "type",
        EvalError::EmptyRange { .. } => "empty range",
        EvalError::WideRange { .. } => "wide range",
        EvalError::Parameter { .. } => "parameter",
        EvalError::PermuteSize { .. } => "permute size",
        EvalError::SleepTime { .. } => "sleep time", // raised in scripts.rs
    }
}

#[test]
fn errors() {
    let table = [
        (":nothing", "variable :nothing is not set"),
        ("hash(1)", "variable :default_seed is not set"),
        ("1 + :word", "variable :word holds 'word', which is not a number"),
        ("9223372036854775807 + 1", "an addition exceeds the range of 64-bit integers"),
        ("-9223372036854775807 - 2", "a subtraction exceeds the range of 64-bit integers"),
        ("4611686018427387904 * 2", "a multiplication exceeds the range of 64-bit integers"),
        ("-9223372036854775808 / -1", "a division exceeds the range of 64-bit integers"),
        ("abs(-9223372036854775808)", "an absolute value exceeds the range of 64-bit integers"),
        ("int(9223372036854775807.0)", "9223372036854776000 does not fit a 64-bit integer"),
        ("int(0.0 / 0.0)", "NaN does not fit a 64-bit integer"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("not 1", "expected a truth value, found an integer"),
        ("1 and true", "expected a truth value, found an integer"),
        ("false or 0.5", "expected a truth value, found a double"),
        ("true + 1", "expected an integer, found a truth value"),
        ("true = true", "expected an integer, found a truth value"),
        ("sqrt(true)", "expected a double, found a truth value"),
        ("random(2, 1)", "the range 2 to 1 of a random function is empty"),
        ("random(-1, 9223372036854775807)", "the range -1 to 9223372036854775807 of a random function is too large"),
        ("random_gaussian(1, 2, 1.9)", "the parameter of random_gaussian must be at least 2, not 1.9"),
        ("random_exponential(1, 2, 0)", "the parameter of random_exponential must be greater than zero, not 0"),
        ("random_zipfian(1, 2, 1)", "the parameter of random_zipfian must be from 1.001 to 1000, not 1"),
        ("permute(1, 0, 5)", "the size given to permute must be greater than zero, not 0"),
    ];
    let mut kinds = BTreeSet::from(["sleep time"]);
    for (expression, message) in table {
        let error = evaluate(expression).expect_err(expression);
        assert_eq!(error.to_string(), message, "{expression}");
        kinds.insert(kind(&error));
    }
    assert_eq!(kinds.len(), 11, "a kind of error without an expression: {kinds:?}");
}

#[test]
fn debug_leaves_a_message_and_the_value() {
    let mut compiler = Compiler::new();
    let text = "\\set x debug(1.5) + debug(2) + case when debug(true) then debug(null) end\n";
    let script = compiler.compile("debug", text).expect("a script");
    let Command::Set { expr, .. } = &script.commands[0] else { panic!("not a \\set") };
    let mut scope = Scope::new(compiler.symbols());
    assert_eq!(eval(expr, &mut scope, &mut Rng::new(1)), Ok(Value::Null));
    assert_eq!(scope.take_debug(), ["double 1.5", "integer 2", "boolean true", "null"]);
    assert!(scope.take_debug().is_empty());
    for _ in 0..2 * Scope::DEBUG_MESSAGES {
        let _ = eval(expr, &mut scope, &mut Rng::new(1));
    }
    assert_eq!(scope.take_debug().len(), Scope::DEBUG_MESSAGES);
}

#[test]
fn constants_are_calculated_beforehand() {
    for (expression, constant) in [
        ("1 + 2 * 3", true),
        ("least(4, pi()) > 3 and not false", true),
        ("hash(42, 7) % 10", true),
        ("case when 1 = 1 then 2 end", true),
        ("1 / 0", false), // fails when it is evaluated, not before
        ("random(1, 1)", false),
        ("debug(1)", false),
        (":x + 1", false),
        ("hash(42)", false), // reads :default_seed
    ] {
        let script = Compiler::new().compile("x", &format!("\\set x {expression}")).expect("a script");
        let Command::Set { expr, .. } = &script.commands[0] else { panic!("not a \\set") };
        assert_eq!(expr.is_constant(), constant, "{expression}");
    }
}

#[test]
fn operands_of_greater_than_draw_from_right_to_left() {
    let draw = |text: &str, seed| {
        let script = Compiler::new().compile("x", text).expect("a script");
        let Command::Set { expr, .. } = &script.commands[0] else { panic!("not a \\set") };
        let mut scope = Scope::new(Compiler::new().symbols());
        eval(expr, &mut scope, &mut Rng::new(seed)).expect("a value")
    };
    for seed in 0..100 {
        let less = draw("\\set x random(1, 10) < random(0, 15)", seed);
        let greater = draw("\\set x random(0, 15) > random(1, 10)", seed);
        assert_eq!(less, greater, "the same draws in the same order");
    }
}
