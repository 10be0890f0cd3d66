"""A client is a foreign program: reports that can be true are accepted; impossible ones are rejected with a reason."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dbdyno import _core
from dbdyno.base.errors import PlanError
from dbdyno.bench.clients import duckdb_reader, harness, stream
from dbdyno.bench.clients.arms import name_of
from dbdyno.bench.clients.arrivals import Arrivals, draw_arrivals
from dbdyno.bench.clients.builtin import BUILTIN_CLIENTS, install_command, locate, missing_packages
from dbdyno.bench.clients.conformance import ClientUnderTest, examine
from dbdyno.bench.clients.failures import Failures, failures_of
from dbdyno.bench.clients.job import Job, is_query
from dbdyno.bench.clients.load import ClientArm
from dbdyno.bench.clients.process import ClientError, ClientLostError, ClientProcess, StopRequested
from dbdyno.bench.clients.reader import StreamError, StreamReader
from dbdyno.bench.clients.stderr_tail import KEPT_BYTES
from dbdyno.bench.clients.stream import Record, pack
from dbdyno.bench.postgres.clients import environment, refuse_ignored_protection, uri
from waiting import until

PRETENDED = [sys.executable, str(Path(__file__).with_name("pretend_client.py"))]
CONNECTION = {"host": "/tmp", "user": "u", "dbname": "d"}


def job(text: str = "select 1;", **own: object) -> Job:
    arm = {"name": "a", "sessions": 1, "connection": CONNECTION, "scripts": [{"name": "s", "text": text}], **own}
    return Job(arm, _core.Drawer(arm, 7))  # type: ignore[arg-type]


def at_work(pid: int) -> bool:
    """Return True if a process is running; a zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@contextlib.contextmanager
def client(*words: str) -> Iterator[ClientArm]:
    made = ClientArm(job(), [*PRETENDED, *words], {}, "pretended")
    made.secret, made.answer_s = "geheim", 0.4
    try:
        yield made
    finally:
        made.end()


def gone(pid: int) -> bool:
    """Whether a process has ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_an_honest_client_gives_its_operations_and_ends_with_its_stdin():
    with client("honest") as own:
        own.connect()
        assert own.process is not None and own.process.about == "pretended 1.0"
        own.draw()
        before = time.monotonic_ns()
        end, records, *_ = own.turn(7, None, 5)
        assert (end.rows, len(records), set(records["slice"])) == (5, 5, {7})
        assert (records["started_ns"] >= before).all() and (records["code"] == b"").all()
        end, records, *_ = own.turn(8, 20_000_000, None)
        assert end.elapsed_ns >= 20_000_000 and len(records) == 3
        own.disconnect()
        assert own.process is not None, "only its sessions are closed"
        own.connect()
        process = own.process
        own.end()
        assert process.process.returncode == 0


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("other slice", "record 5 of the slice names a slice other than 2"),
        ("other session", "names a session numbered 1 or higher"),
        ("other script", "names a statement or script that does not exist"),
        ("no time", "took less than no time"),
        ("before", "started before the slice was requested: is its clock CLOCK_MONOTONIC?"),
        ("after", "ended after its report arrived"),
        ("rows", "has a negative number of rows"),
        ("number alone", "has an error number but no SQLSTATE"),
        ("code", "has an error code that is not five letters and digits"),
        ("backwards", "times go backwards: a transaction began before the previous one in its session had ended"),
        ("stray statement", "has a statement without its transaction"),
        ("long statement", "has a statement that began before its transaction, or ended after it"),
        ("outside", "record 1 is outside the times in the slice's end record"),
        ("too many", "the slice's end record reports 10 transactions, but 5 were recorded"),
        ("too few", "has 4 transactions, but 5 were requested"),
        ("other end", "ended slice 78, but slice 2 was requested"),
        ("short records", "wrote an invalid record"),
        ("prints", "wrote an invalid record, number 10: 'INFO connection pool is warm"),
        ("goes on", "wrote more after its answer: 10 bytes that are not a complete record"),
        ("fails", "cannot go on: the password is *** and more (SQLSTATE 57P01)"),
    ],
)
def test_what_cannot_be_true_is_named_and_the_client_ended(how: str, words: str, tmp_path: Path):
    with client(how, str(tmp_path / "pid")) as own:
        own.connect()
        own.turn(1, None, 5)
        with pytest.raises(ClientError) as caught:
            own.turn(2, None, 5)
        assert caught.value.message.startswith("the client pretended ")
        assert words in caught.value.message
        assert not isinstance(caught.value, ClientLostError), "nothing that another try would mend"
        assert own.process is None and gone(int((tmp_path / "pid").read_text()))


def test_what_a_client_prints_between_slices_is_named_too():
    with client("prints later") as own:
        own.connect()
        own.turn(1, None, 1)
        time.sleep(0.3)
        with pytest.raises(ClientError, match=r"wrote data that was not requested: .*'DEBUG slice is done'"):
            own.turn(2, None, 1)


@pytest.mark.parametrize(
    ("how", "words"),
    [("dies", "ended with exit 3: out of wits"), ("hangs", "hangs: it has not answered for 0.4 s")],
)
def test_a_client_that_dies_or_hangs_is_named_and_may_be_started_again(how: str, words: str, tmp_path: Path):
    with client(how, str(tmp_path / "pid")) as own:
        own.connect()
        own.turn(1, None, 5)
        with pytest.raises(ClientLostError, match="the client pretended") as caught:
            own.turn(2, None, 5)
        assert words in caught.value.message
        assert gone(int((tmp_path / "pid").read_text()))
        own.connect()
        own.turn(1, None, 5)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("other version", "speaks version 9 of the protocol; expected version 1"),
        ("other clock", "does not use the same clock"),
        ("greets with text", "wrote an invalid record, number 1: 'Picked up JAVA_TOOL_OPTIONS"),
    ],
)
def test_a_client_that_greets_wrongly_is_refused(how: str, words: str):
    with client(how) as own, pytest.raises(ClientError) as caught:
        own.connect()
    assert words in caught.value.message


def test_a_client_that_hangs_in_each_check_is_refused_after_two():
    """Each of sixteen checks waited for it anew: three minutes."""
    with client("hangs") as own:
        examination = ClientUnderTest(own, alive=lambda: 0)
        assert (own.start_s, own.connect_s, own.answer_s) == (30.0, 10.0, 10.0)
        examination.set_patience(0.4)
        said = list(examine(examination))
    assert [(row.check, row.verdict) for row in said] == [
        ("starts", "ok"),
        ("runs the requested number of transactions", "failed"),
        ("ends slices on time", "failed"),
        ("the other checks", "failed"),
    ]
    assert said[1].detail.endswith("hangs: it has not answered for 0.4 s")
    assert said[-1].detail == "not run, for it hung 2 times; where it is only slow, give it longer: --patience"


def test_a_wish_to_stop_ends_a_client_in_the_middle_of_its_work(tmp_path: Path):
    with client("hangs", str(tmp_path / "pid")) as own:
        own.connect()
        own.turn(1, None, 1)
        own.answer_s, own.stopped = 60, True
        with pytest.raises(StopRequested):
            own.turn(2, None, 1)
        assert until(lambda: gone(int((tmp_path / "pid").read_text())), 5)


def test_what_a_client_started_ends_with_it(tmp_path: Path):
    script = tmp_path / "parent.py"
    script.write_text(
        "import subprocess, sys\n"
        f"child = subprocess.Popen(['sleep', '60'])\nopen({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
        "sys.stdin.read()\n"
    )
    running = ClientProcess([sys.executable, str(script)], {}, "parent")
    pid = int(until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text(), 10))
    running.end(0.2)
    assert until(lambda: not at_work(pid), 5)


@pytest.mark.parametrize("way", ["end", "kill"])
def test_a_daemon_that_a_client_started_ends_with_it_too(way: str, tmp_path: Path):
    """A child in a session of its own was no longer in the client's group, and stayed."""
    script = tmp_path / "parent.py"
    script.write_text(
        "import subprocess, sys, time\nfrom dbdyno.bench.clients import stream\n"
        "child = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        f"open({str(tmp_path / 'child')!r}, 'w').write(str(child.pid))\n"
        "hello = stream.Record(stream.HELLO, statement=stream.VERSION, started_ns=time.monotonic_ns(), text='p')\n"
        "sys.stdout.buffer.write(stream.pack(hello))\nsys.stdout.buffer.flush()\nsys.stdin.read()\n"
    )
    arm = ClientArm(job(), [sys.executable, str(script)], {}, "parent")
    arm.start()
    pid = int((tmp_path / "child").read_text())
    assert at_work(pid)
    getattr(arm, way)()
    assert not at_work(pid)


def test_what_a_client_writes_to_stderr_fills_no_disk_and_its_last_line_is_told(tmp_path: Path):
    """It went to a file without a name, for as long as the run lasted."""
    script = tmp_path / "chatty.py"
    script.write_text("import sys\nsys.stderr.write('debug\\n' * 200_000 + 'the last word\\n')\nsys.exit(3)\n")
    running = ClientProcess([sys.executable, str(script)], {}, "chatty")
    with pytest.raises(ClientLostError, match=r"ended with exit 3.*: the last word"):
        running.read_greeting()
    assert len(running.said.text()) == KEPT_BYTES
    running.end(0.1)


def test_a_client_that_ignores_everything_ends_with_a_killed_dbdyno(tmp_path: Path):
    """Seen: it outlived a kill -9, since it did not look at the end of its stdin."""
    deaf = tmp_path / "deaf.py"
    deaf.write_text(
        "import os, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        f"open({str(tmp_path / 'pids')!r}, 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        "from dbdyno.bench.clients import stream\n"
        "hello = stream.Record(stream.HELLO, statement=stream.VERSION, started_ns=time.monotonic_ns(), text='deaf')\n"
        "sys.stdout.buffer.write(stream.pack(hello))\nsys.stdout.buffer.flush()\n"
        "time.sleep(60)\n"
    )
    owner = tmp_path / "owner.py"
    owner.write_text(
        "import sys, time\n"
        f"sys.path[:0] = {[str(path) for path in Path(__file__).parents[:2]]!r}\nfrom test_client_protocol import job\n"
        "from dbdyno.bench.clients.load import ClientArm\nfrom dbdyno.bench.guardian import Guardian\n"
        f"arm = ClientArm(job(), [sys.executable, {str(deaf)!r}], {{}}, 'deaf')\n"
        "arm.guardian = Guardian()\narm.start()\nprint('started', flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, str(owner)], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"started\n"
        pids = [int(word) for word in until(lambda: (tmp_path / "pids").read_text(), 10).split()]
        running.kill()
    assert until(lambda: not any(at_work(pid) for pid in pids), 20)


def test_records_arrive_in_any_pieces():
    records = [
        Record(
            stream.HELLO, statement=1, started_ns=5, text="ä name of more than forty-eight bytes, to be on two lines"
        ),
        Record(stream.TRANSACTION, 3, 4, 5, 6, 7, 8, "40001"),
        Record(stream.STATEMENT, 3, 4, 5, 6, 7, 8),
        Record(stream.SAID, code="22012", text="division by zero"),
        Record(stream.END, slice=4, rows=1),
    ]
    data = b"".join(map(pack, records))
    for size in (1, 7, 48, 49, 4096):
        reader, plain, others = StreamReader(), 0, []
        for at in range(0, len(data), size):
            for got in reader.feed(data[at : at + size]):
                if isinstance(got, Record):
                    others.append(got)
                else:
                    plain += len(got)
        assert (plain, others, reader.describe_leftover()) == (2, [records[0], *records[3:]], "")


def test_a_record_is_48_bytes_as_the_page_says():
    head = pack(Record(stream.TRANSACTION, 1, 2, 3, 4, 5, 6, "40001"))
    assert struct.unpack("<BBHIIIqqq8s", head) == (4, 0xDB, 1, 2, 3, 0, 4, 5, 6, b"40001\0\0\0")
    assert pack(Record(stream.SAID, code="23000", vendor=1062))[40:] == b"23000\0" + (1062).to_bytes(2, "little")
    page = (Path(__file__).parents[2] / "docs" / "reference" / "client-protocol.md").read_text()
    assert all(f"| {number} | {name} |" in page for number, name in stream.KINDS.items())


@pytest.mark.parametrize("data", [b"\x04\x00" + bytes(46), b"\x2a\xdb" + bytes(46), b"\x01\xdb" + b"\xff" * 46])
def test_bytes_that_are_no_record_are_refused(data: bytes):
    with pytest.raises(StreamError):
        list(StreamReader().feed(data))


def test_a_job_says_all_that_a_client_needs():
    made = job("\\set id random(1, 9)\nbegin;\nselect :id, '12:30' where :word = 'x';\nend;", variables={"word": "o'c"})
    told = json.loads(made.job_message())
    assert (told["mode"], told["sessions"], told["fetch_size"]) == ("prepared", 1, None)
    assert [(own["kind"], own["query"]) for own in told["statements"]] == [
        ("begin", False),
        ("exec", True),
        ("commit", False),
    ]
    assert told["statements"][1]["pieces"] == ["select ", ", '12:30' where ", " = 'x'"]
    drawn = json.loads(made.draw_message())["transactions"]
    assert len(drawn) == 1 and len(drawn[0]) == 2_000
    script, steps = drawn[0][0]
    assert script == 0 and [step[0] for step in steps] == [0, 1, 2] and steps[1][2] == "o'c"


def test_what_never_varies_is_sent_once():
    assert [len(own) for own in json.loads(job("select 1;", sessions=3).draw_message())["transactions"]] == [1, 1, 1]


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("select 1", True),
        (" VALUES (1)", True),
        ("with x as (select 1) select * from x", True),
        ("with x as (delete from t returning *) select * from x", False),
        ("update t set a = 1 returning a", False),
        ("select 1 into t", False),
        ("begin", False),
    ],
)
def test_only_what_reads_is_fetched_by_a_cursor(sql: str, reads: bool):
    assert is_query(sql) == reads


def failed(*rows: tuple, said: dict | None = None, **own: object) -> Failures:
    """Return the failures in records (kind, statement, code, vendor) of one session."""
    data = b"".join(pack(Record(kind, 0, 1, at, 5, 1, code=code, vendor=vendor)) for kind, at, code, vendor in rows)
    (records,) = StreamReader().feed(data)
    text = own.pop("text", "begin;\nselect amount from orders where id = 7;\nend;")
    return failures_of(records, job(str(text), **own), said or {})


def test_an_error_has_its_number_and_its_message_without_the_data_in_it():
    constraint = 'duplicate key value violates unique constraint "once_pkey"'
    said = {(1, "23505", 0): f"{constraint}\0R_bt_check_unique\0nonce_pkey"}
    rows = (stream.STATEMENT, 1, "23505", 0), (stream.TRANSACTION, 0, "23505", 0), (stream.TRANSACTION, 0, "", 0)
    found = failed(*rows, said=said)
    assert found.listed == [("23505", 0, constraint, False)] and found.numbers.tolist() == [1, 1, 0]
    assert found.words == [f"ERROR: {constraint} (SQLSTATE 23505)"]
    duplicate = {(0, "23000", 1062): "Duplicate entry 'hunter' for key 'PRIMARY'"}
    own = failed((stream.TRANSACTION, 0, "23000", 1062), said=duplicate, text="select 1;")
    assert own.listed[0][:2] == ("23000", 1062) and own.listed[0][2].startswith("Duplicate entry '…' for key")


@pytest.mark.parametrize(
    ("code", "vendor", "text"),
    [
        ("23514", 0, "customer hunter owes"),
        ("23514", 0, "customer hunter owes\0Rexec_stmt_raise"),
        ("P0001", 0, "hunter\0Relog"),
        ("22P02", 0, 'invalid input syntax for type integer: "hun\nhunter\0Rpg_strtoint32'),
        ("45000", 1644, "hunter"),
        ("XX000", 0, "ValueError: hunter"),
    ],
)
def test_a_message_that_may_hold_a_value_is_not_kept(code: str, vendor: int, text: str):
    found = failed((stream.TRANSACTION, 0, code, vendor), said={(0, code, vendor): text}, text="select 1;")
    assert "hunter" not in str(found.listed) + str(found.words) and found.listed[0][:2] == (code, vendor)


def test_a_client_that_says_no_words_still_tells_its_errors():
    assert failed((stream.TRANSACTION, 0, "42P01", 0), text="select 1;").listed == [("42P01", 0, "", False)]


def test_an_expected_error_is_known_by_its_sqlstate_or_its_number():
    rows = (stream.TRANSACTION, 0, "23000", 1062), (stream.TRANSACTION, 0, "40001", 1213)
    for expected in (["1062"], ["23000"]):
        found = failed(*rows, text="select 1;", expected_errors=expected)
        assert [own[3] for own in found.listed] == [True, False]
        assert found.unexpected(np.array([True, True])) == [2]


def test_more_errors_than_the_evidence_has_room_for_become_one():
    rows = [(stream.TRANSACTION, 0, "23000", number) for number in range(1, 300)]
    found = failed(*rows, text="select 1;")
    assert len(found.listed) == 251 and found.listed[-1][0] == "other" and found.numbers.max() == 251


def test_due_times_come_from_the_seed_and_are_a_poisson_process():
    own = draw_arrivals(1_000.0, [7, 1], 1_000_000_000, None, 0)
    assert (
        own
        == draw_arrivals(1_000.0, [7, 1], 1_000_000_000, None, 0)
        != draw_arrivals(1_000.0, [7, 2], 1_000_000_000, None, 0)
    )
    assert 850 < len(own.due_ns) < 1_150 and list(own.due_ns) == sorted(own.due_ns)
    gaps = np.diff(own.due_ns)
    assert 0.85 < gaps.std() / gaps.mean() < 1.15
    assert own.give_up_ns - own.due_ns[-1] > 9_000_000_000
    assert len(draw_arrivals(50.0, [7, 1], None, 20, 0).due_ns) == 20


def test_a_response_time_counts_from_when_the_transaction_was_due():
    """The second begins late, as the first took long: it has waited, and that is told."""
    data = b"".join(pack(Record(4, at, 1, 0, started, 50)) for at, started in ((0, 100), (1, 180)))
    (records,) = StreamReader().feed(data)
    assert Arrivals([90, 110], 10**19).intended(records).tolist() == [90, 110]
    with pytest.raises(StreamError, match="1 of 2 transactions began before they were due in the open loop"):
        Arrivals([90, 181], 10**19).intended(records)
    with pytest.raises(StreamError, match="has 2 transactions, but 1 were due"):
        Arrivals([90], 10**19).intended(records)
    with pytest.raises(StreamError, match="has 2 transactions, but 3 were due"):
        Arrivals([90, 110, 120], 10**19).intended(records)
    assert len(Arrivals([90, 110, 120], 1).intended(records)) == 2, "given up"


def test_a_client_that_knows_no_open_loop_is_named():
    made = ClientArm(job(rate_per_s=100.0), [*PRETENDED, "honest"], {}, "pretended")
    try:
        made.connect()
        with pytest.raises(ClientError, match="transactions began before they were due in the open loop"):
            made.turn(1, None, 5)
    finally:
        made.end()


def test_a_connection_goes_by_the_environment():
    parameters = {"host": "::1", "port": "1", "user": "a b", "password": "p@ss/:", "dbname": "d", "sslmode": "require"}
    own = environment(parameters)
    assert (own["PGHOST"], own["PGPASSWORD"], own["PGSSLMODE"]) == ("::1", "p@ss/:", "require")
    from psycopg.conninfo import conninfo_to_dict

    assert conninfo_to_dict(own["DBDYNO_DSN"]) == parameters
    socket = {"host": "/tmp/a b", "port": "5433", "user": "u", "dbname": "d"}
    assert conninfo_to_dict(uri(socket)) == socket


@pytest.mark.parametrize("name", ["jdbc", "node-postgres", "asyncpg", "connectorx"])
def test_a_driver_that_would_ignore_how_a_connection_is_protected_is_refused(name: str):
    refuse_ignored_protection(name, {"channel_binding": "prefer", "sslmode": "verify-full"}, "arm 'a'")
    for option in ({"require_auth": "scram-sha-256"}, {"channel_binding": "require"}, {"sslcrl": "x.crl"}):
        with pytest.raises(PlanError, match=f"the client {name} does not support {next(iter(option))}"):
            refuse_ignored_protection(name, option, "arm 'a'")
        refuse_ignored_protection("psycopg", option, "arm 'a'")


def test_a_client_that_is_not_there_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    with pytest.raises(PlanError, match="there is no client 'psycpg'") as caught:
        locate("psycpg", tmp_path, "arm 'a'")
    assert "psycopg" in str(caught.value.next_step) and "dbdyno client list" in str(caught.value.next_step)
    with pytest.raises(PlanError, match="there is no program 'no-such-program'"):
        locate(["no-such-program"], tmp_path, "arm 'a'")
    monkeypatch.setenv("DBDYNO_CLIENTS", str(tmp_path))
    assert BUILTIN_CLIENTS["node-postgres"].missing() and BUILTIN_CLIENTS["jdbc"].missing()
    with pytest.raises(PlanError, match="the client jdbc cannot run") as caught:
        locate("jdbc", tmp_path, "arm 'a'")
    assert "make setup-clients" in str(caught.value.next_step)
    assert install_command(BUILTIN_CLIENTS["polars"]).startswith(
        "make setup-clients, or pip install polars adbc_driver_postgresql"
    )


def test_duckdb_refuses_what_it_would_answer_without_the_server():
    """Its own pg_catalog and functions hide the server's, so such a query would measure DuckDB."""
    import duckdb

    connection = duckdb.connect(":memory:")
    connection.execute("attach ':memory:' as pg")
    fetch = duckdb_reader.duckdb_reader(connection)
    with pytest.raises(harness.FatalClientError, match="reads no table of the server"):
        fetch("select i from generate_series(1, 3) t(i)")


def test_duckdb_keeps_no_setting_of_a_session_and_says_so_before_it_connects():
    asked = harness.Job(1, "literals", None, [], [], ["set work_mem = '1MB'"], None)
    with pytest.raises(harness.FatalClientError, match="settings of a session would be lost"):
        duckdb_reader.attach_server("postgresql://nobody@127.0.0.1:1/none", asked)


def test_a_program_is_never_taken_from_the_current_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    own = tmp_path / "own-client"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    with pytest.raises(PlanError):
        locate(["own-client"], tmp_path, "arm 'a'")
    assert locate(["./own-client", "-x"], tmp_path, "arm 'a'").command == [str(tmp_path / "own-client"), "-x"]


@pytest.mark.parametrize(
    ("packages", "words"),
    [
        ((), None),
        (("psycopg",), "the package psycopg is not installed"),
        (("connectorx", "pandas"), "the packages connectorx and pandas are not installed"),
        (("a", "b", "c"), "the packages a, b and c are not installed"),
    ],
)
def test_several_packages_that_are_gone_are_several(packages: tuple[str, ...], words: str | None):
    """It said "the package connectorx, pandas is not installed"."""
    assert missing_packages(packages) == words


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("psycopg", "psycopg"),
        (["./my-client", "--fast"], "my-client"),
        (["/usr/bin/python3", "clients/one.py", "--fast"], "python3 one.py"),
        (["java", "-cp", "build:lib/*", "my.Client"], "java"),
    ],
)
def test_a_client_is_named_by_what_is_run(command: str | list[str], name: str):
    """Two clients in Python were both "the client python"."""
    assert name_of(command) == name


def test_text_among_records_is_shown_without_what_follows_it():
    with pytest.raises(StreamError) as caught:
        list(StreamReader().feed(b"hello\n" + bytes(42) + b"Z" * 96))
    assert caught.value.message.endswith("record, number 1: 'hello'")
