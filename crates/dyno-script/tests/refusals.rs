//! Tests of scripts that do not parse: position, message and next step of each.

use dyno_script::Compiler;

fn refusal(text: &str) -> String {
    match Compiler::new().compile("x.sql", text) {
        Ok(script) => panic!("{text:?} was accepted: {:?}", script.commands),
        Err(error) => error.to_string(),
    }
}

/// Checks that each script is refused with a message that begins with the given text, and a hint that contains the
/// given words.
///
/// The beginning is compared after the file's name.
fn check(table: &[(&str, &str, &str)]) {
    for (text, beginning, next) in table {
        let message = refusal(text);
        let (place_and_message, hint) = message.split_once("\n  next: ").expect("a next step");
        assert!(
            place_and_message.starts_with(&format!("x.sql:{beginning}")),
            "{text:?}: {place_and_message}\n     expected: x.sql:{beginning}"
        );
        assert!(hint.contains(next), "{text:?}: {hint}\n     expected: {next}");
    }
}

#[test]
fn expressions() {
    check(&[
        ("\\set x 1 +", "1:11: the line ends where the expression goes on", "put a value here"),
        ("\\set x", "1:7: the line ends where the expression goes on", "put a value here"),
        ("\\set x (1", "1:10: the line ends where", "add what is missing: ( expression )"),
        ("\\set x 1)", "1:9: unexpected \")\" in", "put an operator or the end of the line here"),
        ("\\set x pi(", "1:11: the line ends where", "put a value here"),
        ("\\set x abs(1", "1:13: the line ends", "add what is missing: abs(number)"),
        ("\\set x 1 < 2 < 3", "1:14: comparisons cannot be chained", "join two comparisons by and"),
        ("\\set x ramdom(1, 2)", "1:8: unknown function ramdom", "the nearest function is random"),
        ("\\set x ceil(2)", "1:8: unknown function ceil", "the functions are abs, debug,"),
        ("\\set x random(1)", "1:8: random does not take 1 argument", "write random(low, high)"),
        ("\\set x hash()", "1:8: hash does not take an empty list", "write hash(number [, seed])"),
        (
            "\\set x least(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17)",
            "1:8: least does not take 17 arguments",
            "a function takes at most 16 arguments",
        ),
        ("\\set x random", "1:8: the function random has no arguments", "write random(low, high)"),
        ("\\set x 1 * scale", "1:12: scale is neither a value nor", "a colon before the name of a variable: :scale"),
        ("\\set x 1 is 2", "1:13: unexpected \"2\"", "put null, true or false behind is here"),
        ("\\set x case end", "1:13: unexpected \"end\"", "put when here"),
        ("\\set x case when 1 end", "1:20: unexpected \"end\"", "put then here"),
        ("\\set x case when 1 then 2", "1:26: the line ends", "put when, else or end here"),
        ("\\set x then", "1:8: unexpected \"then\"", "put a value here"),
        ("\\set x 9223372036854775808", "1:8: 9223372036854775808 does not fit", "the largest"),
        ("\\set x - 99999999999999999999", "1:10: 99999999999999999999 does", "the largest"),
        ("\\set x 1e400", "1:8: 1e400 does not fit a double", "use a magnitude between"),
        ("\\set x 'a'", "1:8: unexpected character '\\''", "use \\gset to get text from SQL"),
        ("\\set x 1;", "1:9: unexpected character ';'", "remove the semicolon"),
        ("\\set x 2 ^ 3", "1:10: unexpected character '^'", "use pow(base, exponent)"),
        ("\\set x : y", "1:8: unexpected character ':'", "without a blank between them"),
        ("\\set x 1 \\ + 2", "1:10: unexpected character '\\\\'", "the last character of the line"),
        ("\\set x 1 ? 2", "1:10: unexpected character '?'", "use numbers, :variables,"),
    ]);
}

#[test]
fn names() {
    check(&[
        ("\\set", "1:5: \\set without a variable", "write \\set name expression"),
        ("\\set :x 1", "1:6: \":x\" cannot be a variable's name", "leave the colon out"),
        ("\\set 1x 1", "1:6: \"1x\" cannot be a variable's name", "do not begin with a digit"),
        ("select 1 \\gset a-b", "1:16: \"a-b\" cannot be", "use letters, digits"),
        ("\\sleep :1 ms", "1:9: \"1\" cannot be a variable's name", "use letters, digits"),
    ]);
}

#[test]
fn backslash_commands() {
    check(&[
        ("\\stes x 1", "1:1: unknown command \\stes", "the nearest command is \\set"),
        ("\\copy t", "1:1: unknown command \\copy", "use one of the commands \\set, \\sleep,"),
        ("\\shell rm", "1:1: \\shell is refused: a script never", "hand its result over"),
        ("\\setshell x date", "1:1: \\setshell is refused", "hand its result over"),
        ("select 1 \\", "1:10: a backslash without a command", "in SQL, put backslashes in quotes"),
        ("\\sleep", "1:1: \\sleep without a time", "write \\sleep number unit"),
        ("\\sleep ms", "1:8: \"ms\" is not a whole number", "write \\sleep number unit"),
        ("\\sleep 1.5 s", "1:8: \"1.5\" is not a whole number", "write \\sleep number unit"),
        ("\\sleep 1 min", "1:10: \"min\" is not a unit of time", "use one of the units us, ms and s"),
        ("\\sleep 10h", "1:10: \"h\" is not a unit of time", "use one of the units us, ms and s"),
        ("\\sleep 99999999999999 s", "1:8: this time is too long", "choose a shorter time"),
        ("\\sleep 1 ms 2", "1:13: unexpected \"2\" behind \\sleep", "\\sleep takes 2 words at most"),
        ("\\redo now", "1:7: unexpected \"now\" behind \\redo", "write \\redo alone on its line"),
        ("\\gset", "1:1: \\gset does not follow an SQL command", "put it right behind the SQL"),
        ("select 1;\n\\set x 1\n\\aset", "3:1: \\aset does not follow", "right behind the SQL"),
        ("select 1 \\gset\n\\gset", "2:1: \\gset does not follow", "right behind the SQL"),
        ("select 1 \\gset a b", "1:18: unexpected \"b\" behind \\gset", "\\gset takes one word"),
    ]);
}

#[test]
fn branches() {
    check(&[
        ("\\if 1\nselect 1;", "1:1: \\if without \\endif", "add \\endif"),
        ("select 1;\n\\endif", "2:1: \\endif without \\if", "put \\if before it"),
        ("\\else", "1:1: \\else without \\if", "put \\if before it"),
        ("\\elif 1", "1:1: \\elif without \\if", "put \\if before it"),
        ("\\if 1\n\\else\n\\else\n\\endif", "3:1: \\else behind \\else", "\\else is the last branch"),
        ("\\if 1\n\\else\n\\elif 1\n\\endif", "3:1: \\elif behind \\else", "\\else is the last"),
        ("\\if 1\n\\if 2\n\\endif", "1:1: \\if without \\endif", "add \\endif"),
    ]);
}

#[test]
fn pipelines() {
    check(&[
        ("\\startpipeline\nselect 1;", "1:1: \\startpipeline without", "add \\endpipeline before"),
        ("\\startpipeline\n\\startpipeline", "2:1: \\startpipeline within a pipeline", "end the first pipeline"),
        ("select 1;\n\\endpipeline", "2:1: no pipeline is open here", "begin one with"),
        ("\\syncpipeline", "1:1: no pipeline is open here", "begin one with \\startpipeline"),
        (
            "\\startpipeline\nselect 1 \\gset\n\\endpipeline",
            "2:10: \\gset within a pipeline",
            "put it behind \\endpipeline",
        ),
    ]);
}

#[test]
fn unfinished_sql() {
    check(&[
        ("select 'a;\n", "1:8: this string is not closed", "close it with a quote"),
        ("select\n  \"a;\n", "2:3: this quoted name is not closed", "close it with a double quote"),
        ("select $q$ a; $$", "1:8: this dollar-quoted string is not closed", "close it with $q$"),
        ("select /* /* */ 1;", "1:8: this comment is not closed", "close it with */"),
        ("select (1;\nselect 2;", "1:8: this parenthesis is not closed", "close it with )"),
        ("select (1 \\set x 1", "1:8: this parenthesis is not closed", "close it with )"),
    ]);
}

#[test]
fn whole_scripts() {
    check(&[
        ("", "1:1: the script has no command", "write SQL"),
        ("-- nothing\n /* at all */\n", "1:1: the script has no command", "write SQL"),
        ("select\0;", "1:7: a zero byte", "save the script as UTF-8 text"),
        ("select 'é', (\n", "1:13: this parenthesis", "close it"), // columns are characters
    ]);
}

#[test]
fn nothing_exhausts_the_stack() {
    for deep in [
        format!("\\set x {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("\\set x {}1", "- ".repeat(100_000)),
        format!("\\set x {}true", "not ".repeat(100_000)),
        format!("\\set x :a{}", " + :a".repeat(100_000)),
        format!("\\set x {}", "case when 1 then ".repeat(100_000)),
        format!("\\set x {}", "abs(".repeat(100_000)),
        format!("\\set x :a{}", " is null".repeat(100_000)),
    ] {
        assert!(refusal(&deep).contains("the expression is too deep"), "{}", &deep[..40]);
    }
    let long = format!("\\set x 1{}", " + 1".repeat(100_000)); // constants are folded and do not accumulate
    assert!(Compiler::new().compile("x.sql", &long).is_ok());
}

#[test]
fn names_that_cannot_be_declared() {
    for name in ["", "1a", "a-b", ":a", "a b"] {
        let error = Compiler::new().declare(name).expect_err(name);
        assert!(error.to_string().contains("cannot be a variable's name"), "{error}");
    }
    assert!(Compiler::new().declare("größe_1").is_ok());
}
