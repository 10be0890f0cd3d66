//! Tests of compiled scripts: where commands end, what they become, where branches lead.

use dyno_script::{Command, Compiler, EvalError, Piece, Scope, Script, SleepTime, Sql, SqlKind, Store, Value};

fn compile(text: &str) -> (Compiler, Script) {
    let mut compiler = Compiler::new();
    let script = compiler.compile("x.sql", text).unwrap_or_else(|error| panic!("{error}"));
    (compiler, script)
}

fn sqls(script: &Script) -> Vec<&Sql> {
    let commands = script.commands.iter();
    commands.filter_map(|command| if let Command::Sql(sql) = command { Some(sql) } else { None }).collect()
}

/// Returns the SQL texts of a script's commands for the extended protocol.
fn texts(text: &str) -> Vec<String> {
    sqls(&compile(text).1).into_iter().map(|sql| sql.text.clone()).collect()
}

#[test]
fn semicolons_end_commands_outside_of_quotes() {
    let table: &[(&str, &[&str])] = &[
        ("select 1; select 2", &["select 1", "select 2"]),
        ("  select\n 1 ;\n\n", &["select\n 1"]),
        ("select ';', 'it''s;';", &["select ';', 'it''s;'"]),
        ("select '\\'; select '\\';", &["select '\\'", "select '\\'"]),
        ("select E'\\';', e'\\\\'; select 2", &["select E'\\';', e'\\\\'", "select 2"]),
        ("select some'\\'; select 2", &["select some'\\'", "select 2"]),
        ("select e'a'\n'\\';'; x", &["select e'a'\n'\\';'", "x"]),
        ("select 'a' '\\'; x", &["select 'a' '\\'", "x"]),
        ("select \";\"\"\"; x", &["select \";\"\"\"", "x"]),
        ("select $$;$$, $a$ ; $$ $a$; x", &["select $$;$$, $a$ ; $$ $a$", "x"]),
        ("select $1, a$b$, $; x", &["select $1, a$b$, $", "x"]),
        ("select /* ; /* ' */ ; */ 1; x", &["select /* ; /* ' */ ; */ 1", "x"]),
        ("/*+ hint */ select 1", &["/*+ hint */ select 1"]),
        ("-- ;'\n-- x\nselect 1 -- ; '\n; x", &["select 1 -- ; '", "x"]),
        ("select (1; 2); x", &["select (1; 2)", "x"]),
        ("select 1)); x", &["select 1))", "x"]),
        ("select 'ä;ö' as größe; x", &["select 'ä;ö' as größe", "x"]),
        (
            "create function f() begin atomic select case 1 when 1 then 2 end; x; end; y",
            &["create function f() begin atomic select case 1 when 1 then 2 end; x; end", "y"],
        ),
        (
            "create or replace procedure p() begin atomic x; end; y",
            &["create or replace procedure p() begin atomic x; end", "y"],
        ),
        ("begin; x; end; y", &["begin", "x", "end", "y"]),
        (";", &[""]),
        ("select 1 \\set a 1\nselect 2\n\\set b 2", &["select 1", "select 2"]),
        ("\u{feff}select 1", &["select 1"]),
        ("select 1\r\n;\r\nselect 2;\r\n", &["select 1", "select 2"]),
    ];
    for (text, expected) in table {
        assert_eq!(texts(text), *expected, "{text}");
    }
}

#[test]
fn joined_statements_are_one_compound_command() {
    let (_, script) = compile("begin \\; select :a \\; end; select 'x\\;'");
    let found = sqls(&script);
    assert_eq!(found[0].text, "begin ; select $1 ; end");
    assert!(found[0].compound && !found[1].compound);
    assert_eq!(found[0].kind, SqlKind::Other);
    assert_eq!(found[1].text, "select 'x\\;'");
}

#[test]
fn variables_become_parameters_outside_of_quotes() {
    let (compiler, script) =
        compile("select :a, :b::int, x::a, y[1:2], :a, ::c, :=d, \\:e, ':f', \":g\", $$:h$$ /* :i */");
    let sql = sqls(&script)[0];
    assert_eq!(sql.text, "select $1, $2::int, x::a, y[1:2], $3, ::c, :=d, :e, ':f', \":g\", $$:h$$ /* :i */");
    let names = |vars: &[dyno_script::VarId]| -> Vec<String> {
        vars.iter().map(|var| compiler.symbols().name(*var).to_owned()).collect()
    };
    assert_eq!(names(&sql.params), ["a", "b", "a"]);
    assert_eq!(names(&sql.quoted), ["f", "g", "h", "i"]);
    let pieces = sql.pieces.iter().map(|piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Var(var) => format!("<{}>", compiler.symbols().name(*var)),
    });
    assert_eq!(
        pieces.collect::<String>(),
        "select <a>, <b>::int, x::a, y[1:2], <a>, ::c, :=d, :e, '<f>', \"<g>\", $$<h>$$ /* <i> */"
    );
    assert_eq!(sql.label, "select :a, :b::int, x::a, y[1:2], :a, ::c, :=d, :e, ':f', \":g\", $$:h$$ /* :i */");
}

#[test]
fn labels_are_one_short_line() {
    let (_, script) = compile(&format!("select\n\t1,  \r\n {}", "ä, ".repeat(100)));
    let label = &sqls(&script)[0].label;
    assert!(label.starts_with("select 1, ä, ä,") && label.ends_with("..."));
    assert_eq!(label.chars().count(), 200);
    let (_, script) = compile(&"x".repeat(200));
    assert_eq!(sqls(&script)[0].label, "x".repeat(200));
}

#[test]
fn kinds_follow_the_first_words() {
    use SqlKind::{Begin, Commit, Other, Rollback};
    for (text, kind) in [
        ("begin", Begin),
        ("BEGIN isolation level serializable", Begin),
        ("/* x */ Start  Transaction read only", Begin),
        ("start_transaction", Other),
        ("commit", Commit),
        ("END", Commit),
        ("commit and chain", Commit),
        ("commit prepared 'x'", Other),
        ("rollback", Rollback),
        ("abort work", Rollback),
        ("rollback to savepoint a", Other),
        ("rollback work to a", Other),
        ("rollback transaction to a", Other),
        ("rollback prepared 'x'", Other),
        ("select 1", Other),
        ("beginning", Other),
    ] {
        let (_, script) = compile(text);
        assert_eq!(sqls(&script)[0].kind, kind, "{text}");
    }
}

#[test]
fn results_are_stored_by_the_command_before() {
    let (_, script) = compile("select 1 \\gset\nselect 2;\n\\gset two_\nselect 3 \\; x \\aset");
    let store = |prefix: &str, all_rows| Some(Store { prefix: prefix.to_owned(), all_rows });
    let found: Vec<_> = sqls(&script).into_iter().map(|sql| sql.store.clone()).collect();
    assert_eq!(found, [store("", false), store("two_", false), store("", true)]);
}

#[test]
fn branches_become_jumps() {
    let (_, script) = compile(
        "\\if 1\nselect 1;\n\\elif 2\nselect 2;\n\\if 3\nselect 3;\n\\endif\n\\else\nselect 4;\n\\endif\nselect 5",
    );
    let shape: Vec<String> = script
        .commands
        .iter()
        .map(|command| match command {
            Command::Sql(sql) => sql.text.clone(),
            Command::JumpUnless { target, line, .. } => format!("unless {target} line {line}"),
            Command::Jump { target } => format!("jump {target}"),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        shape,
        [
            "unless 3 line 1", // 0
            "select 1",
            "jump 9",
            "unless 8 line 3", // 3
            "select 2",
            "unless 7 line 5", // 5
            "select 3",
            "jump 9", // 7
            "select 4",
            "select 5", // 9
        ]
    );
}

#[test]
fn lines_are_those_of_the_first_word() {
    let (_, script) = compile("-- x\n\n/* y */ select\n1;\n\\set a \\\n 1\nselect 2;\\redo\n");
    let lines: Vec<u32> = script
        .commands
        .iter()
        .map(|command| match command {
            Command::Sql(sql) => sql.line,
            Command::Set { line, .. } | Command::RedoPosition { line } => *line,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(lines, [3, 5, 7, 7]);
}

#[test]
fn pipelines_and_counts() {
    let (_, script) = compile("\\startpipeline\nx;\n\\syncpipeline\ny;\n\\endpipeline\n");
    assert!(matches!(script.commands[0], Command::StartPipeline { line: 1 }));
    assert!(matches!(script.commands[2], Command::SyncPipeline { line: 3 }));
    assert!(matches!(script.commands[4], Command::EndPipeline { line: 5 }));
    assert_eq!((script.sql_commands(), script.is_single_sql()), (2, false));
    assert!(compile("\\set a 1\nselect :a;").1.is_single_sql());
    assert!(!compile("\\if 1\nselect 1;\n\\endif").1.is_single_sql());
    // Whether a pipeline is open in a branch is only known at run time.
    let branch = "\\if :a\n\\startpipeline\n\\endif\nx;\n\\if :a\n\\endpipeline\n\\endif";
    assert_eq!(compile(branch).1.sql_commands(), 1);
}

#[test]
fn sleeps() {
    let table = [
        ("\\sleep 3", 3_000_000),
        ("\\sleep 3 s", 3_000_000),
        ("\\sleep +3 MS", 3_000),
        ("\\sleep 3us", 3),
        ("\\sleep -3 ms", 0),
        ("\\sleep 4000 s", 4_000_000_000),
    ];
    for (text, time_us) in table {
        let (_, script) = compile(text);
        let Command::Sleep { time, .. } = &script.commands[0] else { panic!("{text}") };
        assert_eq!(*time, SleepTime::FixedUs(time_us), "{text}");
    }
    let (compiler, script) = compile("\\sleep :t ms");
    let Command::Sleep { time, .. } = &script.commands[0] else { panic!("not a sleep") };
    let var = compiler.symbols().lookup("t").expect("the variable");
    let mut scope = Scope::new(compiler.symbols());
    assert!(matches!(time.micros(&scope), Err(EvalError::Unset { .. })));
    for (value, time_us) in [(Value::Int(7), 7_000), (Value::Double(2.9), 2_000), (Value::Int(-7), 0)] {
        scope.set(var, value);
        assert_eq!(time.micros(&scope), Ok(time_us));
    }
    scope.set_text(var, "12 apples");
    assert_eq!(time.micros(&scope), Ok(12_000));
    scope.set_text(var, "apples");
    assert!(matches!(time.micros(&scope), Err(EvalError::SleepTime { .. })));
    scope.set(var, Value::Null);
    assert!(matches!(time.micros(&scope), Err(EvalError::SleepTime { .. })));
}

#[test]
fn variables_are_shared_by_the_scripts_of_a_compiler() {
    let mut compiler = Compiler::new();
    let scale = compiler.declare("scale").expect("a name");
    compiler.compile("a.sql", "\\set a :scale\nselect :a;").expect("a script");
    let other = compiler.compile("b.sql", "select :a, :scale;").expect("a script");
    assert_eq!(compiler.symbols().len(), 2);
    assert_eq!(compiler.symbols().lookup("scale"), Some(scale));
    let a = compiler.symbols().lookup("a").expect("the variable");
    assert_eq!(sqls(&other)[0].params, [a, scale]);
    assert_eq!(compiler.symbols().lookup("b"), None);
}

#[test]
fn variables_that_nothing_sets_are_named() {
    let mut compiler = Compiler::new();
    compiler.declare("scale").expect("a name");
    let text = "\\set a :scale + :late\nselect ':text', :a, x[1:n], :b_x;\n\\sleep :pause ms\n\
                select 1 \\gset b_\n\\set late hash(1)\nselect :b_;\n";
    compiler.compile("x.sql", text).expect("a script");
    let found: Vec<_> = compiler.unassigned().iter().map(ToString::to_string).collect();
    let places: Vec<_> = found.iter().filter_map(|text| text.lines().next()).collect();
    assert_eq!(
        places,
        [
            "x.sql:2:24: nothing sets the variable :n",
            "x.sql:3:8: nothing sets the variable :pause",
            "x.sql:5:11: nothing sets the variable :default_seed",
            "x.sql:6:8: nothing sets the variable :b_",
        ]
    );
    compiler.compile("y.sql", "select 1 \\gset").expect("a script"); // could set any of them
    assert!(compiler.unassigned().is_empty());
}

#[test]
fn a_scope_keeps_spelling_and_types() {
    let (compiler, _) = compile("select :a");
    let var = compiler.symbols().lookup("a").expect("the variable");
    let mut scope = Scope::new(compiler.symbols());
    let text = |scope: &Scope| {
        let mut out = Vec::new();
        scope.write_text(var, &mut out).then(|| String::from_utf8_lossy(&out).into_owned())
    };
    assert_eq!((scope.get(var), text(&scope), scope.is_set(var)), (None, None, false));
    for (value, expected) in [
        (Value::Int(-5), Some("-5")),
        (Value::Double(0.1), Some("0.1")),
        (Value::Bool(true), Some("true")),
        (Value::Bool(false), Some("false")),
        (Value::Text("1e3".into()), Some("1e3")),
        (Value::Text("".into()), Some("")),
        (Value::Null, None),
    ] {
        scope.set(var, value.clone());
        assert_eq!(scope.get(var), Some(value));
        assert_eq!(text(&scope).as_deref(), expected);
        assert!(scope.is_set(var));
    }
    scope.unset(var);
    assert!(!scope.is_set(var));
}
