//! Measures the cost of an evaluation [ns], for the hot path of a load generator.
//!
//! `cargo run --release -p dyno-script --example speed`

use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use dyno_script::{Command, Compiler, Scope, Seeds, Value, eval};

const EXPRESSIONS: &[&str] = &[
    "5",
    ":scale",
    "1 + 2 * 3",
    ":scale * 100000 + 1",
    "random(1, 100000 * :scale)",
    "random(-5000, 5000)",
    "random_gaussian(1, 100000 * :scale, 5.0)",
    "random_exponential(1, 100000 * :scale, 5.0)",
    "random_zipfian(1, 100000 * :scale, 1.07)",
    "hash(:scale)",
    "permute(:scale, 100000)",
    "case when :scale > 10 then 1 when :scale > 0 then 2 else 3 end",
    "debug(1)",
];

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for expression in EXPRESSIONS {
        let cost_ns = (0..300).map(|_| cost_ns(expression)).fold(f64::INFINITY, f64::min);
        writeln!(out, "{cost_ns:8.1} ns  \\set x {expression}")?;
    }
    let cost_ns = (0..300).map(|_| text_cost_ns()).fold(f64::INFINITY, f64::min);
    writeln!(out, "{cost_ns:8.1} ns  text of an integer")
}

/// Returns the cost of one evaluation [ns] in one round; the minimum of many rounds is free of interruptions.
fn cost_ns(expression: &str) -> f64 {
    const ROUNDS: u32 = 20_000;
    let mut compiler = Compiler::new();
    let scale = compiler.declare("scale").expect("a name");
    let seed = compiler.declare("default_seed").expect("a name");
    let script = compiler.compile("speed", &format!("\\set x {expression}")).expect("a script");
    let mut scope = Scope::new(compiler.symbols());
    scope.set_text(scale, "10");
    scope.set(seed, Value::Int(42));
    let mut rng = Seeds::new(7).session();
    let Command::Set { var, expr, .. } = &script.commands[0] else { return f64::NAN };
    let start = Instant::now();
    for _ in 0..ROUNDS {
        let value = eval(black_box(expr), &mut scope, &mut rng).expect("a value");
        scope.set(*var, value);
    }
    start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
}

fn text_cost_ns() -> f64 {
    const ROUNDS: u32 = 20_000;
    let mut compiler = Compiler::new();
    let var = compiler.declare("x").expect("a name");
    let mut scope = Scope::new(compiler.symbols());
    scope.set(var, Value::Int(123_456));
    let mut out = Vec::new();
    let start = Instant::now();
    for _ in 0..ROUNDS {
        out.clear();
        scope.write_text(black_box(var), &mut out);
        black_box(&out);
    }
    start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
}
