//! Any text is a script or an error with its place; never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut compiler = dyno_script::Compiler::new();
    match compiler.compile("fuzz", text) {
        Ok(script) => drop(script.sql_commands()),
        Err(error) => drop(error.to_string()),
    }
});
