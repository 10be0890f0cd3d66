//! JSON as Python's `json.dumps(..., indent=1, ensure_ascii=False)` writes it.

use serde_json::Value;

/// JSON text under construction.
#[derive(Default)]
pub struct Out {
    text: String,
    depth: usize,
    /// True if the innermost open bracket already has an entry.
    filled: bool,
}

impl Out {
    /// Opens a bracket.
    pub fn open(&mut self, bracket: char) {
        self.text.push(bracket);
        self.depth += 1;
        self.filled = false;
    }

    /// Closes the innermost bracket.
    pub fn close(&mut self, bracket: char) {
        self.depth -= 1;
        if self.filled {
            self.line();
        }
        self.text.push(bracket);
        self.filled = true;
    }

    /// Writes the key of an object's entry.
    pub fn key(&mut self, name: &str) {
        self.next();
        self.string(name);
        self.text.push_str(": ");
    }

    /// Writes an entry of an object.
    pub fn entry(&mut self, name: &str, value: &Value) {
        self.key(name);
        self.value(value);
    }

    /// Returns the whole text with a newline at its end.
    pub fn end(mut self) -> String {
        self.text.push('\n');
        self.text
    }

    /// Begins an entry of an array or object.
    pub fn next(&mut self) {
        if self.filled {
            self.text.push(',');
        }
        self.line();
        self.filled = true;
    }

    fn line(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n(' ', self.depth));
    }

    fn string(&mut self, text: &str) {
        self.text.push_str(&Value::from(text).to_string());
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Array(items) => {
                self.open('[');
                for item in items {
                    self.next();
                    self.value(item);
                }
                self.close(']');
            }
            Value::Object(entries) => {
                self.open('{');
                for (name, entry) in entries {
                    self.entry(name, entry);
                }
                self.close('}');
            }
            Value::Number(number) if number.is_f64() => {
                self.text.push_str(&float(number.as_f64().unwrap_or(0.0)));
            }
            other => self.text.push_str(&other.to_string()),
        }
    }
}

/// Returns a float as Python's `repr` writes it: the fewest digits that identify the value, with an exponent from 1e16
/// on and below 1e-4.
fn float(value: f64) -> String {
    if value == 0.0 {
        return if value.is_sign_negative() { "-0.0" } else { "0.0" }.to_owned();
    }
    let plain = format!("{value:e}");
    let (digits, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = value.to_string();
        return if plain.contains('.') { plain } else { format!("{plain}.0") };
    }
    format!("{digits}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

/// Returns true if a value is empty.
pub fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        other => other.is_null(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn floats_are_written_as_python_writes_them() {
        let cases = [
            (110_600.0, "110600.0"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.000_012_5, "1.25e-05"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (9_007_199_254_740_993.0, "9007199254740992.0"),
            (-0.5, "-0.5"),
            (-0.0, "-0.0"),
        ];
        for (value, text) in cases {
            assert_eq!(float(value), text);
        }
    }

    #[test]
    fn nested_values_are_indented_by_one_and_empty_ones_stand_on_one_line() {
        let mut out = Out::default();
        out.open('{');
        out.entry("a", &json!([1, [], {"b": null}]));
        out.entry("c", &json!("µ\"\n"));
        out.close('}');
        assert_eq!(out.end(), "{\n \"a\": [\n  1,\n  [],\n  {\n   \"b\": null\n  }\n ],\n \"c\": \"µ\\\"\\n\"\n}\n");
    }
}
