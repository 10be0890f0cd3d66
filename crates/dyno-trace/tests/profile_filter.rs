//! Tests filters: their syntax, their error messages, and what they select.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;

use dyno_trace::oracle_10046::filter::{Field, Fields, Filter, Value, like};
use proptest::prelude::*;

/// An item with a few fields.
struct Item(HashMap<Field, (Option<i64>, String)>);

impl Item {
    fn of(texts: &[(Field, &str)], numbers: &[(Field, i64)]) -> Self {
        let mut fields = HashMap::new();
        for (field, text) in texts {
            fields.insert(*field, (None, (*text).to_owned()));
        }
        for (field, number) in numbers {
            fields.insert(*field, (Some(*number), String::new()));
        }
        Self(fields)
    }
}

impl Fields for Item {
    fn value(&self, field: Field) -> Value<'_> {
        match self.0.get(&field) {
            None => Value::Missing,
            Some((Some(number), _)) => Value::Number(*number),
            Some((None, text)) => Value::Text(text),
        }
    }
}

fn passes(filter: &str) -> bool {
    let item = Item::of(
        &[(Field::Event, "db file sequential read"), (Field::Module, "it's \"here\"")],
        &[(Field::ElapsedUs, 1500), (Field::Depth, 0)],
    );
    Filter::parse(filter).unwrap().passes(&item)
}

#[test]
fn comparisons_of_numbers_and_texts() {
    assert!(passes("elapsed_us = 1500") && passes("elapsed_us >= 1.5e3") && passes("elapsed_us<2000"));
    assert!(!passes("elapsed_us != 1500") && !passes("elapsed_us > 1500"));
    assert!(passes("event = 'db file sequential read'") && !passes("event = 'db file'"));
    assert!(passes("module = \"it's \"\"here\"\"\""), "a doubled quote stands for itself");
    assert!(passes("EVENT ~ 'DB FILE%'") && passes("event ~ sequential") && !passes("event ~ 'file%'"));
}

#[test]
fn and_binds_more_tightly_than_or_and_not_than_both() {
    assert!(passes("depth = 1 and depth = 2 or depth = 0"));
    assert!(!passes("depth = 1 and (depth = 2 or depth = 0)"));
    assert!(passes("not depth = 1 and depth = 0"));
    assert!(!passes("not (depth = 1 or depth = 0)"));
}

#[test]
fn what_an_item_does_not_have_only_differs() {
    assert!(!passes("kind = fetch") && !passes("kind ~ '%'") && !passes("p1 < 5"));
    assert!(passes("kind != fetch") && passes("not p1 = 5"));
}

#[test]
fn a_filter_that_is_not_understood_says_where_and_what_was_expected() {
    let told = |filter: &str| Filter::parse(filter).unwrap_err();
    assert_eq!(told("evnt = 'x'").at, 0);
    assert!(told("evnt = 'x'").expected.contains("event, class, kind"));
    assert_eq!((told("depth = x").at, told("depth = x").expected.as_str()), (8, "a number for depth"));
    assert_eq!(told("depth 5").expected, "one of = != < <= > >= ~");
    assert_eq!(told("(depth = 5").expected, ")");
    assert_eq!(told("depth = 5 event = x").expected, "and, or, or the end");
    assert_eq!(told("event = 'x").expected, "the closing quote");
    assert!(told("event = ").to_string().ends_with('^'));
}

#[test]
fn brackets_inside_brackets_have_an_end() {
    let deep = "(".repeat(10_000) + "depth = 0" + &")".repeat(10_000);
    assert_eq!(Filter::parse(&deep).unwrap_err().expected, "fewer brackets");
    assert!(Filter::parse(&"not ".repeat(10_000)).is_err());
}

#[test]
fn patterns() {
    assert!(like("log file sync", "log%") && like("log file sync", "*SYNC") && like("abc", "a_c"));
    assert!(like("abcabd", "%ab_") && like("", "%") && like("x", "") && !like("ac", "a_c"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".{0,60}") {
        Filter::parse(&text).ok();
    }

    #[test]
    fn a_text_is_like_itself_with_anything_around(a in "[a-z]{0,5}", b in "[a-z]{1,5}", c in "[a-z]{0,5}") {
        let text = format!("{a}{b}{c}");
        let pattern = format!("%{b}%");
        prop_assert!(like(&text, &pattern));
    }
}
