use super::*;

fn session(parts: &[(bool, u8, &[u8])]) -> Vec<Digest> {
    let mut session = Session::default();
    let mut found = Found::default();
    for (at, (is_server, tag, body)) in parts.iter().enumerate() {
        let said = Said { tag: *tag, body: body.to_vec(), is_whole: true, places: None };
        session.take(&Kept { session: 1, at_ns: 100 * at as u64, is_server: *is_server, said }, 0, &mut found);
    }
    found.digests
}

#[test]
fn statements_with_other_literals_are_one() {
    let found = session(&[
        (false, b'Q', b"select 1\0"),
        (true, b'C', b"SELECT 1\0"),
        (true, b'Z', b"I"),
        (false, b'Q', b"select 2\0"),
        (true, b'E', b"22012"),
        (true, b'Z', b"I"),
    ]);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].calls, found[0].failed, found[0].total_ns), (2, 1, 400));
    assert_eq!(found[0].samples[1].text, b"select 2");
}

#[test]
fn a_prepared_statement_has_its_text_types_and_values() {
    let found = session(&[
        (false, b'P', b"s1\0select $1\0\0\x01\0\0\0\x17"),
        (false, b'B', b"\0s1\0\0\x01\0\x01\0\x02\0\0\0\x04\0\0\0\x07\xff\xff\xff\xff\0\0"),
        (false, b'E', b"\0\0\0\0\0"),
        (false, b'S', b""),
        (true, b'C', b"SELECT 1\0"),
        (true, b'Z', b"I"),
    ]);
    let sample = &found[0].samples[0];
    assert_eq!(sample.text, b"select $1");
    assert_eq!(sample.types, [23]);
    assert_eq!(sample.values, [Some(vec![0, 0, 0, 7]), None]);
    assert_eq!(sample.binary, [true, true]);
}

#[test]
fn executions_of_a_prepared_statement_with_a_name_are_counted() {
    let run = |name: &str| {
        let parse = format!("{name}\0select $1\0\0\0");
        let bind = format!("\0{name}\0\0\0\0\x01\0\0\0\x017\0\0");
        let mut parts: Vec<(bool, u8, &[u8])> = vec![(false, b'P', parse.as_bytes())];
        for _ in 0..7 {
            parts.extend([(false, b'B', bind.as_bytes()), (false, b'E', &[0; 5]), (false, b'S', &[])]);
            parts.extend([(true, b'C', &b"SELECT 1\0"[..]), (true, b'Z', b"I")]);
        }
        session(&parts)[0].prepared
    };
    assert_eq!((run("s1"), run("")), (7, 0));
}

#[test]
fn settings_of_a_session_keep_statements_apart() {
    let found = session(&[
        (false, b'Q', b"select 1\0"),
        (true, b'C', b""),
        (true, b'Z', b"I"),
        (false, b'Q', b"SET search_path = app\0"),
        (true, b'C', b""),
        (true, b'Z', b"I"),
        (false, b'Q', b"select 1\0"),
        (true, b'C', b""),
        (true, b'Z', b"I"),
    ]);
    let settings: Vec<_> =
        found.iter().filter(|one| one.text.starts_with("select")).map(|one| one.settings.len()).collect();
    assert_eq!(settings, [0, 1]);
}

#[test]
fn further_rows_of_a_portal_are_no_further_execution() {
    let mut parts: Vec<(bool, u8, &[u8])> =
        vec![(false, b'P', b"\0select $1\0\0\0"), (false, b'B', b"p\0\0\0\0\0\x01\0\0\0\x017\0\0")];
    for _ in 0..3 {
        parts.extend([(false, b'E', &b"p\0\0\0\0\x64"[..]), (false, b'S', b""), (true, b's', b""), (true, b'Z', b"T")]);
    }
    parts.extend([
        (false, b'E', &b"p\0\0\0\0\x64"[..]),
        (false, b'S', b""),
        (true, b'C', b"SELECT 350\0"),
        (true, b'Z', b"T"),
    ]);
    parts.extend([(false, b'B', &b"p\0\0\0\0\0\x01\0\0\0\x018\0\0"[..]), (false, b'E', b"p\0\0\0\0\x64")]);
    parts.extend([(false, b'S', &b""[..]), (true, b'C', b"SELECT 1\0"), (true, b'Z', b"I")]);
    let found = session(&parts);
    assert_eq!((found.len(), found[0].calls, found[0].samples.len()), (1, 2, 2));
    assert_eq!(found[0].total_ns, 1800, "the time of all fetches counts");
}

#[test]
fn executions_under_settings_of_a_transaction_are_counted() {
    let of = |setting: &str| {
        let setting = format!("{setting}\0");
        let found = session(&[
            (false, b'Q', b"begin\0"),
            (true, b'C', b"BEGIN\0"),
            (true, b'Z', b"T"),
            (false, b'Q', setting.as_bytes()),
            (true, b'C', b"SET\0"),
            (true, b'Z', b"T"),
            (false, b'Q', b"select 1 from t\0"),
            (true, b'C', b"SELECT 1\0"),
            (true, b'Z', b"T"),
            (false, b'Q', b"commit\0"),
            (true, b'C', b"COMMIT\0"),
            (true, b'Z', b"I"),
            (false, b'Q', b"select 1 from t\0"),
            (true, b'C', b"SELECT 1\0"),
            (true, b'Z', b"I"),
        ]);
        let one = found.iter().find(|one| one.text.starts_with("select ? from t")).expect("a statement");
        (one.calls, one.unsettled)
    };
    assert_eq!(of("set local app.tenant = 7"), (2, 1));
    assert_eq!(of("select set_config('app.tenant', '7', true)"), (2, 1));
    assert_eq!(of("select set_config('app.tenant', '7', false)"), (2, 2));
    assert_eq!(of("set local statement_timeout = 0"), (2, 0));
}

#[test]
fn bodies_of_any_bytes_are_no_panic() {
    let mut state = 7;
    for _ in 0..20_000 {
        let length = (draw(&mut state) % 24) as usize;
        let body: Vec<u8> = (0..length).map(|_| draw(&mut state) as u8 & 3).collect();
        let tag = b"PBEQSCZX"[(draw(&mut state) % 8) as usize];
        session(&[(false, b'P', &body), (false, tag, &body), (false, b'E', b"\0"), (true, b'Z', b"I")]);
    }
}
