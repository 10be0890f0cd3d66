//! Tests of logins at a real server: passwords over TCP, and TLS with certificates made for the test.

use crate::common::{Server, binaries, load, run, server, transactions};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::{Value, json};
use std::sync::Arc;

/// Tries to log in and run a load; returns the error message if that fails.
fn attempt(server: &Server, connection: &Value) -> Result<(), String> {
    attempt_by(server, connection, json!({}))
}

/// Tries to log in and run a load, with additional keys for the arm; returns the error message if that fails.
fn attempt_by(server: &Server, connection: &Value, more: Value) -> Result<(), String> {
    // More than any buffer holds, in both directions.
    let long = "x".repeat(300_000);
    let script = format!(
        "select 1 / (length('{long}') = 300000)::int;\nselect repeat('y', 50000) from generate_series(1, 20);\n"
    );
    let mut spec = server.spec("login", &script, more);
    let place = spec["arms"][0]["connection"].as_object_mut().expect("an object");
    place.insert("host".into(), "127.0.0.1".into());
    place.extend(connection.as_object().expect("an object").clone());
    let mut load = load(&spec);
    load.connect(0, &Arc::default()).map_err(|e| e.to_string())?;
    let block = run(&mut load, &transactions(3)).map_err(|e| e.to_string())?;
    assert_eq!(block.report.arms[0].errors, 0);
    Ok(())
}

#[test]
fn passwords_work_by_every_method_and_only_the_right_one() {
    let Some(server) = server() else { return };
    server.sql(
        "create role scram login password 'geheim'; create role clear login password 'geheim'; \
         set password_encryption = 'md5'; create role md5 login password 'geheim'; \
         create role nobody_may login password 'geheim'",
    );
    // In the clear only if the options ask for it.
    let clear = attempt(server, &json!({"user": "clear", "password": "geheim"})).expect_err("is refused");
    assert!(clear.contains("the connection is not encrypted\n  next: use sslmode=require"), "{clear}");
    let with = |user: &str, password: &str| {
        let require = if user == "clear" { "password" } else { "" };
        json!({"user": user, "password": password, "require_auth": require})
    };
    for user in ["scram", "clear", "md5"] {
        attempt(server, &with(user, "geheim")).expect(user);
        let wrong = attempt(server, &with(user, "falsch")).expect_err(user);
        assert!(wrong.contains("28P01") && wrong.contains("next: check the user"), "{wrong}");
        assert!(wrong.contains(&format!("port {}, user {user}, database", server.port)), "{wrong}");
        assert!(!wrong.contains("falsch"), "{wrong}");
        let none = attempt(server, &with(user, "")).expect_err(user);
        assert!(none.contains("none was given"), "{none}");
    }
    let refused = attempt(server, &json!({"user": "nobody_may"})).expect_err("rejected");
    assert!(refused.contains("28000") && refused.contains("pg_hba.conf"), "{refused}");
    let missing = attempt(server, &json!({"dbname": "nowhere"})).expect_err("no such database");
    assert!(missing.contains("3D000") && missing.contains("check the name"), "{missing}");
}

struct Certificates {
    server: String,
    key: String,
    root: String,
}

fn signed(names: &[&str]) -> Certificates {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let leaf = CertificateParams::new(names).expect("names").signed_by(&key, &issuer).expect("signs");
    Certificates { server: leaf.pem(), key: key.serialize_pem(), root: issuer.pem() }
}

fn self_signed(names: &[&str]) -> Certificates {
    let key = KeyPair::generate().expect("a key");
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    let mut params = CertificateParams::new(names).expect("names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained); // as `openssl req -x509` makes them
    let pem = params.self_signed(&key).expect("signs").pem();
    Certificates { server: pem.clone(), key: key.serialize_pem(), root: pem }
}

fn install(server: &Server, certificates: &Certificates) -> (String, String) {
    server.file("server.crt", &certificates.server);
    server.file("server.key", &certificates.key);
    let root = server.file("root.crt", &certificates.root);
    let other = server.file("other.crt", &signed(&["localhost"]).root);
    server.sql(&format!("alter system set ssl_cert_file = '{}/server.crt'", server.dir.display()));
    server.sql(&format!("alter system set ssl_key_file = '{}/server.key'", server.dir.display()));
    server.sql("alter system set ssl = on");
    server.sql("select pg_reload_conf()");
    std::thread::sleep(std::time::Duration::from_millis(300));
    (root.display().to_string(), other.display().to_string())
}

#[test]
fn tls_follows_sslmode() {
    let Some(bin) = binaries() else { return };
    let server = &Server::start(bin, &[]);
    server.sql("create role tls login password 'geheim'");
    let login = |mode: &str, host: &str, root: Option<&str>| {
        let connection = json!({"user": "tls", "password": "geheim", "host": host, "sslmode": mode,
            "sslrootcert": root});
        attempt(server, &connection)
    };

    let (root, other) = install(server, &signed(&["localhost"]));
    let used = "select count(*) from pg_stat_ssl where ssl";
    assert_eq!(server.sql(used), "0");
    // The role may log in with TLS only, and SCRAM is then bound to the channel.
    login("prefer", "127.0.0.1", None).expect("TLS is taken when it is offered");
    login("require", "127.0.0.1", None).expect("require does not check");
    login("require", "127.0.0.1", Some(&root)).expect("require with a root checks the chain");
    login("verify-ca", "127.0.0.1", Some(&root)).expect("the chain is good");
    login("verify-full", "localhost", Some(&root)).expect("chain and name are good");
    let by_line = json!({"user": "tls", "password": "geheim", "host": "localhost", "sslmode": "verify-full",
        "sslrootcert": root, "channel_binding": "require"});
    let network = json!({"network": {"delay_ns": 1_000_000, "rate_bit_per_s": 1_000_000_000}});
    attempt_by(server, &by_line, network).expect("TLS is spoken through a line from end to end");
    let cases = [
        ("disable", "localhost", None, "28000"),
        ("require", "127.0.0.1", Some(&other), "next: check sslmode and sslrootcert"),
        ("verify-ca", "127.0.0.1", Some(&other), "next: check sslmode and sslrootcert"),
        ("verify-full", "127.0.0.1", Some(&root), "not valid for name"),
        ("verify-full", "localhost", Some(&"/no/such/file".to_owned()), "sslrootcert /no/such/file"),
    ];
    for (mode, host, root, expected) in cases {
        let error = login(mode, host, root.map(String::as_str)).expect_err(mode);
        assert!(error.contains(expected), "{mode} {host}: {error}");
    }

    let (root, other) = install(server, &self_signed(&["localhost"]));
    login("require", "localhost", None).expect("require does not check");
    login("verify-ca", "127.0.0.1", Some(&root)).expect("the certificate is its own root");
    login("verify-full", "localhost", Some(&root)).expect("and has the name");
    let error = login("verify-full", "127.0.0.1", Some(&root)).expect_err("another name");
    assert!(error.contains("not valid for name"), "{error}");
    login("verify-ca", "localhost", Some(&other)).expect_err("another root");
}
