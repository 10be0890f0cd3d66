"""A fleet, rules and exports: a target that hangs does not delay the others, and each alert is sent once."""

from __future__ import annotations

import contextlib
import http.server
import json
import re
import socket
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from snapshot_help import Lab

from command_line import dbdyno as run
from dbdyno.base.errors import Error, SnapshotError
from dbdyno.cli.snap.watch import FailureReporter
from dbdyno.snapshot.engines.view import Column, View
from dbdyno.snapshot.sending.alerts import Alerts, post_json, read_rules
from dbdyno.snapshot.sending.exports import otlp, prometheus, samples
from dbdyno.snapshot.store.folder import Snapshot, Store
from dbdyno.snapshot.taking.fleet import Fleet, Status, read_fleet

COUNTERS = ("xact_commit", "xact_rollback", "blks_hit", "blks_read", "tup_returned", "tup_fetched", "tup_inserted")
COUNTERS = (*COUNTERS, "tup_updated", "tup_deleted", "temp_bytes", "deadlocks")
COLUMNS = (
    Column("datid", "key", "count", "BIGINT"),
    Column("datname", "text", "text", "VARCHAR"),
    *(Column(name, "counter", "count", "BIGINT") for name in COUNTERS),
    Column("stats_reset", "gauge", "us", "BIGINT"),
)


@contextlib.contextmanager
def listening(status: int = 200) -> Iterator[tuple[str, list[bytes]]]:
    """A web server on loopback: its address, and the bodies that were posted to it."""
    bodies: list[bytes] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/told?x=1", bodies
        finally:
            server.shutdown()
            thread.join()


def failure() -> SnapshotError:
    return SnapshotError("no answer", where="db1")


# --- the file ---------------------------------------------------------------------------------------------------------


def fleet_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no [[target]]"),
        ("every = 5\n[[target]]", "'every' has a value of the wrong type"),
        ("evry = '5s'\n[[target]]", "'evry' is not a key"),
        ("[[target]]\ndsn = 'x'", "has no name"),
        ("[[target]]\nname = '../up'\ndsn = 'x'", "cannot name a target"),
        ("[[target]]\nname = 'a'", "has no connection string"),
        ("[[target]]\nname = 'a'\ndsn_env = 'NOWHERE'", "has no connection string"),
        ("[[target]]\nname = 'a'\ndsn = 'x'\nevery = 'soon'", "is not a duration"),
        ("[[target]]\nname = 'a'\ndsn = 'x'\n[[target]]\nname = 'A'\ndsn = 'y'", "two targets are named"),
        ("[[target", "is not valid TOML"),
    ],
)
def test_a_file_that_is_none_says_where_and_exits_2(tmp_path: Path, text: str, said: str):
    done = run("snap", "watch", fleet_file(tmp_path, text))
    assert done.returncode == 2 and said in done.stderr and "fleet.toml" in done.stderr, done


def test_keys_above_hold_for_all_and_a_secret_is_not_shown(tmp_path: Path):
    text = (
        "store = 's'\nevery = '2min'\n"
        "[[target]]\nname = 'a'\ndsn_env = 'A'\n[[target]]\nname = 'b'\ndsn = 'y'\nevery = '5s'"
    )
    folder, (a, b) = read_fleet(fleet_file(tmp_path, text), {"A": "postgresql://m:geheim@db/x"})
    assert (folder, a.every_s, b.every_s, a.options.name) == (Path("s"), 120, 5, "a")
    assert "geheim" not in repr(a)


def test_a_target_or_a_file_is_needed(tmp_path: Path):
    done = run("snap", "watch")
    assert done.returncode == 2 and "FLEET.toml" in done.stderr


# --- watching ---------------------------------------------------------------------------------------------------------


def test_one_that_hangs_and_one_that_is_gone_cost_the_others_nothing(lab: Lab, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        text = (
            "every = '200ms'\nsample = '0'\n"
            f"[[target]]\nname = 'hung'\ndsn = 'postgresql://m@127.0.0.1:{port}/x'\n"
            "[[target]]\nname = 'gone'\ndsn = 'postgresql://m@127.0.0.1:1/x'\n"
            "[[target]]\nname = 'good'\ndsn_env = 'GOOD'\n[[target]]\nname = 'same'\ndsn_env = 'GOOD'\n"
        )
        _, targets = read_fleet(fleet_file(tmp_path, text), {"GOOD": lab.dsn})
        stop, taken, failed = threading.Event(), {"good": 0, "same": 0}, set()

        def tell(target, store, made) -> None:
            if isinstance(made, Snapshot):
                taken[target.name] += 1
            else:
                failed.add(target.name)
            if min(taken.values()) >= 3 and "gone" in failed:
                stop.set()

        fleet = Fleet(tmp_path / "fleet", targets, tell, stop=stop)
        fleet.run()
    assert min(taken.values()) >= 3 and "good" not in failed
    assert fleet.status["gone"].problem is not None and fleet.status["good"].word(0) == "ok"
    assert [one.target for one in Store(tmp_path / "fleet" / "good")][:3] == ["good"] * 3
    assert Store(tmp_path / "fleet" / "hung").numbers() == []


def test_the_folder_of_a_fleet_names_the_stores_in_it(tmp_path: Path):
    for name in ("db1", "db2"):
        added(Store(tmp_path / name), 1)
    done = run("snap", "list", "--store", str(tmp_path))
    assert done.returncode == 0
    assert f"with a store for each of db1, db2: --store {tmp_path / 'db1'}" in done.stderr


def test_a_fleet_is_looked_at_at_the_same_pace_all_the_time(tmp_path: Path):
    """The time to the next look doubled with each."""
    enough, looks = threading.Event(), []

    class Waiting(Fleet):
        def _watch(self, *_: object) -> None:
            assert enough.wait(20)

    def look() -> None:
        looks.append(1)
        if len(looks) == 12:
            enough.set()

    text = "store = 's'\n[[target]]\nname = 'one'\ndsn = 'postgresql://h/d'"
    _, (target,) = read_fleet(fleet_file(tmp_path, text), {})
    Waiting(tmp_path, [target], lambda *_: None, stop=threading.Event()).run(look=look, look_s=0.02)
    assert enough.is_set()


def test_what_fails_as_before_is_told_once(tmp_path: Path):
    """A target that was not there was told of with two lines in every period."""
    text = "every = '200ms'\nsample = '0'\n[[target]]\nname = 'gone'\ndsn = 'postgresql://m@127.0.0.1:1/x'\n"
    done = run("snap", "watch", fleet_file(tmp_path, text), "--for", "1500ms")
    assert done.returncode == 2
    assert done.stderr.count("dbdyno: gone: ") == 1, done.stderr
    assert "Connection refused" in done.stderr and "failing" in done.stderr


def test_a_failure_is_told_when_it_begins_changes_and_is_over(capsys: pytest.CaptureFixture[str]):
    failing, taken = FailureReporter(), cast(Snapshot, None)
    for made in (taken, Error("gone"), Error("gone"), Error("silent"), taken, taken, Error("silent")):
        failing.report(made, "a: ")
    assert capsys.readouterr().err.splitlines() == [
        "dbdyno: a: gone",
        "dbdyno: a: silent",
        "dbdyno: a: answers again; failures before: 3",
        "dbdyno: a: silent",
    ]


def test_a_status_says_what_is_the_matter():
    one = Status("a", next_s=60, since=100)
    assert one.word(150) == "waiting" and one.word(221) == "silent"
    one.taken, one.problem = 1, "login failed"
    assert one.word(150) == "failing"


# --- rules ------------------------------------------------------------------------------------------------------------


def rules_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "rules.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[[rule]]\nname = 'a'",
        "[[rule]]\nname = 'a'\nmetric = 'tps'\nabove = 1\nbelow = 2",
        "[[rule]]\nname = 'a'\nmetric = 'tps'\nabove = true",
        "[[rule]]\nname = 'a'\nmetric = 'tps'\nabove = 1\nfor = 0",
        "[[rule]]\nname = 'a'\nmetric = 'tps'\nabove = 1\ncommand = 'rm -rf /'",
        "[[rule]]\nname = 'a'\nmetric = 'tps'\nabove = 1\ncommand = ['./here']",
        "[[rule]]\nname = 'a'\nmetric = 'tps'\nabove = 1\nwebhook = 'file:///etc/passwd'",
    ],
)
def test_a_rule_that_is_none_says_where(tmp_path: Path, text: str):
    with pytest.raises(SnapshotError, match=r"rules\.toml"):
        read_rules(rules_file(tmp_path, text))


def test_a_rule_is_told_once_when_broken_and_once_when_it_holds_by_command_and_webhook(tmp_path: Path):
    told, lines = tmp_path / "told", []
    with listening() as (url, bodies):
        path = rules_file(
            tmp_path,
            "[[rule]]\nname = 'away'\nmetric = 'failed'\nabove = 1\n"
            f"command = ['tee', '-a', '{told}']\nwebhook = '{url}'",
        )
        alerts = Alerts(read_rules(path), lines.append, {"PATH": "/usr/bin:/bin", "PGPASSWORD": "geheim"})
        store, good = Store(tmp_path / "none"), added(Store(tmp_path / "snaps"), 1)
        for made in (failure(), failure(), failure(), good, good):
            alerts.evaluate(store, "db1", made)
        alerts.close()
    assert alerts.fired == 1 and [line.split(":")[0] for line in lines] == ["alert firing", "alert resolved"]
    assert [json.loads(body)["state"] for body in bodies] == ["firing", "resolved"]
    assert json.loads(bodies[0]) | {"at": ""} == {
        "rule": "away",
        "target": "db1",
        "state": "firing",
        "metric": "failed",
        "value": 2.0,
        "above": 1.0,
        "at": "",
    }
    assert told.read_text() == "".join(body.decode() for body in bodies)
    assert len(told.read_text().splitlines()) == 2, "a command that appends to a file makes lines"


def test_a_command_sees_no_secret_and_a_failure_is_told(tmp_path: Path):
    told, lines = tmp_path / "told", []
    script = f"env > {told}; : --token verborgen; exit 3"
    with listening(status=500) as (url, _):
        text = (
            f"[[rule]]\nname = 'a'\nmetric = 'failed'\nabove = 0\ncommand = ['sh', '-c', '{script}']\nwebhook = '{url}'"
        )
        alerts = Alerts(
            read_rules(rules_file(tmp_path, text)), lines.append, {"PATH": "/usr/bin:/bin", "PGPASSWORD": "geheim"}
        )
        alerts.evaluate(Store(tmp_path / "none"), "db1", failure())
        alerts.close()
    assert "geheim" not in told.read_text() and "PATH=" in told.read_text()
    assert any("command failed: it ended with 3" in line for line in lines)
    assert any("answered 500" in line for line in lines)
    assert not any("verborgen" in line for line in lines), "arguments may hold secrets, and logs none"


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n"])
def test_an_answer_that_drips_holds_nobody_up(head: bytes):
    """Each byte comes before the limit of a single read."""
    ended = threading.Event()

    def drip(listener: socket.socket) -> None:
        with contextlib.suppress(OSError), listener.accept()[0] as client:
            client.sendall(head)
            while not ended.wait(0.01):
                client.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=drip, args=(listener,), daemon=True).start()
        try:
            with pytest.raises(TimeoutError, match="did not answer within"):
                post_json(f"http://127.0.0.1:{listener.getsockname()[1]}/", b"{}", 0.3)
        finally:
            ended.set()


def test_the_login_of_a_collector_is_not_told(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://scott:verborgen@127.0.0.1:{port}/v1/metrics"
    done = run("snap", "export", "--otlp", url, "--once", "--store", tmp_path / "none")
    assert done.returncode == 2 and "cannot receive the metrics" in done.stderr
    assert "verborgen" not in done.stdout + done.stderr


def test_watch_exits_1_where_a_rule_was_broken(lab: Lab, tmp_path: Path):
    path = rules_file(tmp_path, "[[rule]]\nname = 'any'\nmetric = 'wal'\nabove = -1")
    words = ("--target", lab.dsn, "--every", "1s", "--for", "1s", "--sample", "0", "--store", tmp_path / "w")
    done = run("snap", "watch", *words, "--alert", path)
    assert done.returncode == 1 and "alert firing: any" in done.stderr, done


# --- exports ----------------------------------------------------------------------------------------------------------


def added(store: Store, n: int, target: str = 'db"1') -> Snapshot:
    view = View("pg_stat_database", "database", COLUMNS, [(5, "app", n, *(0,) * 10, None)], scope_by="datid")
    at_ns = (1_800_000_000 + n) * 10**9
    return store.add([view], engine="postgres", target=target, at_ns=at_ns, facts={}, before=store.last(target))


def test_names_and_labels_are_those_of_the_fields_exporters(tmp_path: Path):
    store = Store(tmp_path / "fleet" / "one")
    added(store, 10)
    added(store, 70)
    text = prometheus(samples(tmp_path / "fleet"))
    assert "# TYPE pg_stat_database_xact_commit counter\n" in text
    assert 'pg_stat_database_xact_commit{target="db\\"1",datid="5",datname="app"} 70\n' in text
    assert 'dbdyno_tps{target="db\\"1",engine="postgres"} 1\n' in text
    line = re.compile(r'(# TYPE \w+ (counter|gauge)|[a-zA-Z_]\w*\{(\w+="(\\.|[^"\\])*",?)*\} \S+)')
    assert all(line.fullmatch(one) for one in text.splitlines())
    names = [one.split()[2] for one in text.splitlines() if one.startswith("# TYPE")]
    assert len(names) == len(set(names))


def test_open_telemetry_gets_sums_and_gauges_by_target(tmp_path: Path):
    store = Store(tmp_path / "snaps")
    added(store, 1)
    (resource,) = json.loads(otlp(samples(tmp_path / "snaps")))["resourceMetrics"]
    found = {one["name"]: one for one in resource["scopeMetrics"][0]["metrics"]}
    commits = found["pg_stat_database_xact_commit"]["sum"]
    assert (commits["isMonotonic"], commits["aggregationTemporality"]) == (True, 2)
    assert commits["dataPoints"][0]["asDouble"] == 1 and commits["dataPoints"][0]["timeUnixNano"].endswith("0" * 9)
    with listening() as (url, bodies):
        done = run("snap", "export", "--otlp", url, "--once", "--store", tmp_path / "snaps")
    assert done.returncode == 0 and "resourceMetrics" in json.loads(bodies[0])


def test_metrics_are_answered_on_loopback_and_nothing_else(tmp_path: Path):
    from dbdyno.cli.snap.export import _address, _server
    from dbdyno.snapshot.sending.exports import CachedText

    added(Store(tmp_path / "snaps"), 3)
    server = _server(*_address(":0", False), CachedText(tmp_path / "snaps", tables=False))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        base = f"http://127.0.0.1:{server.server_address[1]}"
        with urllib.request.urlopen(f"{base}/metrics") as answer:
            assert b"pg_stat_database_xact_commit" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(f"{base}/etc/passwd")
        refused.value.close()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    "words", [("--prometheus", "0.0.0.0:9187"), ("--prometheus", "9187x"), ("--otlp", "file:///x"), ()]
)
def test_an_address_that_is_open_to_all_or_none_is_refused(words: tuple[str, ...]):
    assert run("snap", "export", *words).returncode == 2


def test_a_collector_that_is_away_is_an_error_with_its_place(tmp_path: Path):
    added(Store(tmp_path / "snaps"), 3)
    done = run("snap", "export", "--once", "--otlp", "http://127.0.0.1:1/v1/metrics", "--store", tmp_path / "snaps")
    assert done.returncode == 2 and "http://127.0.0.1:1/v1/metrics: cannot receive the metrics" in done.stderr
