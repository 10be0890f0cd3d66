"""Checks of whether a client conforms to the protocol; nothing is changed on the server.

Each check requests something and verifies what comes back. Checks run one after the other on one process; after a
failed check the next one begins with a new process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dbdyno.base.errors import Error
from dbdyno.base.json_types import JsonObject
from dbdyno.bench.clients import stream
from dbdyno.bench.clients.arrivals import NOT_DUE
from dbdyno.bench.clients.check_statements import PAUSE_NS, POSTGRES, CheckStatements
from dbdyno.bench.clients.job import Job
from dbdyno.bench.clients.load import ClientArm
from dbdyno.bench.clients.process import END_S, ClientError, ClientHungError
from dbdyno.bench.clients.time_coverage import TimeCoverage

if TYPE_CHECKING:
    from dbdyno.base.core_types import LoadArm
    from dbdyno.bench.clients.reader import Records

PASSED, FAILED, NOTED = "ok", "failed", "noted"
LATE_S = 1.0
"""Maximum seconds by which a time-limited slice of short statements may end too late."""
PATIENCE_S = 10.0
"""Maximum seconds in which a client under test must answer a request that involves no work."""
START_TIMES = 3
"""Factor by which the timeout is longer for a client's start, which may load a virtual machine and drivers."""
HANGS_MOST = 2
"""Number of hangs after which the checks end, because every remaining check would hang as long."""
REMAINING_CHECKS = "the other checks"
"""Name of the verdict that replaces the remaining checks."""
SLICE_NS = 50_000_000
SESSIONS = 3
DUE, DUE_NS = 40, 80_000_000
"""Number of transactions of the open loop, and the time over which they are due."""
MODES = {"literals": "simple", "binds": "extended", "prepared": "prepared"}
VALUES = {"number": "4711", "word": "o'clock %s ?"}
NULL = "\\set nothing null\n"


@dataclass(frozen=True)
class CheckResult:
    """Result of one check: `ok`, `failed`, or `noted` for a figure that is neither right nor wrong."""

    check: str
    verdict: str
    detail: str


class UnexpectedResultError(Error):
    """Error for a result that differs from what was requested."""


class UnsupportedFeatureError(Error):
    """Error for an optional feature that the client does not offer."""


class ClientUnderTest:
    """A client under test with its server.

    Attributes:
        arm: The client, as an arm.
        alive: Returns the number of the client's sessions on the server.
        words: Statements that the server understands.
        hung: Number of checks in which the client hung.
    """

    def __init__(self, arm: ClientArm, alive: Callable[[], int], words: CheckStatements = POSTGRES) -> None:
        self.arm, self.alive, self.words, self.slice = arm, alive, words, 0
        self.hung = 0
        self.set_patience(PATIENCE_S)

    def set_patience(self, patience_s: float) -> None:
        """Set how many seconds the client may be silent after a request."""
        self.arm.start_s = START_TIMES * patience_s
        self.arm.connect_s = self.arm.answer_s = patience_s

    def assign_job(self, script: str, protocol: str = "prepared", fetch_size: int | None = None, **own: Any) -> None:
        """Give the client another job and connect it; `own` overrides fields of the job's arm."""
        from dbdyno import _core

        base = self.arm.job.arm
        arm: LoadArm = {
            **base,
            "protocol": protocol,
            "sessions": 1,
            "session_sql": [],
            "statement_timeout_ms": None,
            "rate_per_s": None,
            "variables": {},
            **own,  # type: ignore[typeddict-item]
            "scripts": [{"name": "check", "text": script}],
        }
        self.arm.disconnect()
        self.arm.job = Job(arm, _core.Drawer(arm, 7), fetch_size)
        self.arm.connect()
        self.arm.draw()

    def run(self, transactions: int | None = None, length_ns: int | None = None) -> tuple[stream.Record, Records]:
        """Run one slice and return its end record and its operations."""
        self.slice += 1
        ran = self.arm.turn(self.slice, length_ns, transactions)
        return ran.end, ran.records

    def rows(self, script: str, *, protocol: str = "prepared", fetch_size: int | None = None, **own: Any) -> list[int]:
        """Run three transactions of a script of one statement, and return the number of rows of each."""
        self.assign_job(script, protocol, fetch_size, **own)
        return [int(rows) for rows in _whole(self.run(3)[1])["rows"]]

    def codes(self, script: str, count: int, **own: Any) -> list[str]:
        """Run `count` transactions of a script and return the error code of each."""
        self.assign_job(script, **own)
        return [code.decode() for code in _whole(self.run(count)[1])["code"]]


def _whole(records: Records) -> Records:
    whole: Records = records[records["kind"] == stream.TRANSACTION]
    return whole


def _expect(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise UnexpectedResultError(f"{what}: expected {expected}, found {found}")


def check_greeting(client: ClientUnderTest) -> str:
    """Check that the client starts, says which version of the protocol it speaks, and uses the right clock."""
    began = time.monotonic()
    return f"{client.arm.start().about or 'without a name'}, after {time.monotonic() - began:.2f} s"


def check_transaction_count(client: ClientUnderTest) -> str:
    """Check that a slice limited by a number of transactions has exactly that number."""
    client.assign_job("select 1;")
    for count in (1, 7, 1):
        client.run(count)
    return "slices of 1, 7 and 1 transactions"


def check_slice_end(client: ClientUnderTest) -> str:
    """Check that a slice limited by time ends when the time is over."""
    client.assign_job("select 1;")
    longest = max(client.run(length_ns=SLICE_NS)[0].elapsed_ns for _ in range(3))
    if longest > SLICE_NS + LATE_S * 1e9 or longest < SLICE_NS:
        raise UnexpectedResultError(f"slices of {SLICE_NS / 1e6:g} ms took up to {longest / 1e6:.0f} ms")
    return f"slices of {SLICE_NS / 1e6:g} ms took up to {longest / 1e6:.1f} ms"


def check_reported_time(client: ClientUnderTest) -> str:
    """Check that a slow statement is reported as slow, and that a session's transactions fill the slice's time."""
    client.assign_job(client.words.pause)
    whole = _whole(client.run(1)[1])
    _expect(client.words.pause, [code.decode() for code in whole["code"]], [""])
    shortest = int(whole["elapsed_ns"].min())
    if shortest < PAUSE_NS:
        raise UnexpectedResultError(
            f"a statement that sleeps {PAUSE_NS / 1e6:g} ms was reported with {shortest / 1e6:.3g} ms"
        )
    client.assign_job(client.words.session, sessions=SESSIONS)
    client.arm.accounted = TimeCoverage()
    for _ in range(SESSIONS):
        client.run(length_ns=SLICE_NS)
    if doubt := client.arm.accounted.problem():
        raise UnexpectedResultError(doubt)
    return f"operations account for {client.arm.accounted.share() or 0:.0%} of the time of {SESSIONS} sessions"


def check_row_counts(client: ClientUnderTest) -> str:
    """Check that all rows of a query are fetched and counted, and that a query without rows counts 0."""
    _expect("rows of an empty query", client.rows(client.words.no_row), [0, 0, 0])
    _expect("rows of a query", client.rows(client.words.rows), [250] * 3)
    return "0 and 250 rows"


def check_fetch_size(client: ClientUnderTest) -> str:
    """Check that a fetch size does not change the rows."""
    if not client.words.fetches:
        raise UnsupportedFeatureError(
            "this server sends all rows of a query at once: its arms cannot have a fetch size"
        )
    for size in (1, 100, 250, 1000):
        _expect(f"rows with fetch size {size}", client.rows(client.words.rows, fetch_size=size), [250] * 3)
    return "250 rows by 1, 100, 250 and 1,000"


def check_values(client: ClientUnderTest) -> str:
    """Check that numbers, text with special characters, and NULL arrive in each way of sending statements."""
    for mode, protocol in MODES.items():
        _expect(
            f"rows with {mode}", client.rows(NULL + client.words.values, protocol=protocol, variables=VALUES), [1, 1, 1]
        )
    return ", ".join(MODES)


def check_prepared_statements(client: ClientUnderTest) -> str:
    """Check that the server keeps a prepared statement if, and only if, the plan asks for prepared statements."""
    for mode, protocol in MODES.items():
        kept = client.rows(client.words.kept, **_mode(protocol))[-1]
        least, most = client.words.kept_rows[mode]
        if not least <= kept <= most:
            raise UnexpectedResultError(
                f"with {mode}, the server keeps {kept} prepared statements; expected {least} to {most}"
            )
    return "once, and only with prepared"


def _mode(protocol: str) -> JsonObject:
    return {"protocol": protocol, "variables": VALUES}


def check_errors(client: ClientUnderTest) -> str:
    """Check that a failed statement has its SQLSTATE, and that the next transaction is not affected."""
    words, (failing, code) = client.words, client.words.failing
    _expect(failing, client.codes(failing, 2), [code] * 2)
    _expect("no such table", client.codes("select * from dbdyno_no_such_table;", 1), [words.no_table])
    _expect("an error in a transaction", client.codes(f"begin;\n{failing}\n{words.end};", 2), [code] * 2)
    _expect("after errors", client.codes("select 1;", 2), ["", ""])
    return f"{code}, {words.no_table}; in a transaction, too"


def check_statement_records(client: ClientUnderTest) -> str:
    """Check that a script of several statements has a record for each, before that of its transaction."""
    client.assign_job(f"begin;\nselect 1;\n{client.words.end};")
    kinds = [int(kind) for kind in client.run(2)[1]["kind"]]
    _expect("kinds of records", kinds, [stream.STATEMENT] * 3 + [stream.TRANSACTION] + [stream.STATEMENT] * 3 + [4])
    return f"begin, statement, {client.words.end}, transaction"


def check_sessions(client: ClientUnderTest) -> str:
    """Check that each session is a separate, simultaneous connection with work to do."""
    client.assign_job(client.words.session, sessions=SESSIONS)
    _expect("connections on the server", client.alive(), SESSIONS)
    found = sorted(set(_whole(client.run(length_ns=SLICE_NS)[1])["session"].tolist()))
    _expect("sessions at work", found, list(range(SESSIONS)))
    client.run(SESSIONS + 1)
    return f"{SESSIONS} sessions, each at work"


def check_due_times(client: ClientUnderTest) -> str:
    """Check that in an open loop no transaction begins before it is due, and none is left out."""
    client.assign_job("select 1;", sessions=2, rate_per_s=DUE / (DUE_NS / 1e9))
    client.slice += 2
    try:
        client.arm.turn(client.slice - 1, None, DUE)
        ran = client.arm.turn(client.slice, None, DUE)
    except ClientError as error:
        if NOT_DUE not in error.message:
            raise
        raise UnsupportedFeatureError(
            f"the client does not support an open loop, so arms with rate_per_s end with an error: {error.message}"
        ) from error
    late = np.sort((ran.records["started_ns"] - ran.intended_ns)[ran.intended_ns >= 0])
    return f"{DUE} transactions due over {DUE_NS / 1e6:g} ms; median delay {late[len(late) // 2] / 1e3:.0f} us"


def check_session_setup(client: ClientUnderTest) -> str:
    """Check that each session's setup SQL and the statement timeout are in effect."""
    (sql, query), (endless, code) = client.words.setting, client.words.endless
    _expect("a setting of the session", client.rows(query, session_sql=[sql]), [1] * 3)
    _expect("the statement timeout", client.codes(endless, 1, statement_timeout_ms=50), [code])
    return "settings and statement_timeout"


def check_closing(client: ClientUnderTest) -> str:
    """Check that the client closes its sessions on request, and can open new ones."""
    client.assign_job("select 1;")
    client.arm.disconnect()
    if client.arm.process is None:
        raise UnexpectedResultError("the client did not answer the request to close")
    deadline = time.monotonic() + END_S
    while client.alive() and time.monotonic() < deadline:
        time.sleep(0.02)
    _expect("connections on the server", client.alive(), 0)
    client.arm.connect()
    client.arm.draw()
    client.run(1)
    return "closed and opened again"


def check_end_of_stdin(client: ClientUnderTest) -> str:
    """Check that the client exits with code 0 at the end of its stdin."""
    client.assign_job("select 1;")
    process = client.arm.process
    assert process is not None
    began = time.monotonic()
    willing = process.end()
    took, code = time.monotonic() - began, process.process.returncode
    client.arm.process, client.arm.open = None, False
    if not willing:
        raise UnexpectedResultError(f"still ran {END_S:g} s after its stdin ended")
    _expect("exit", code, 0)
    return f"after {took:.2f} s"


def check_signal(client: ClientUnderTest) -> str:
    """Check that a signal in the middle of a statement ends the client and its session on the server."""
    client.assign_job(client.words.sleep)
    process = client.arm.process
    assert process is not None
    process.send(b'{"do":"slice","slice":1,"length_ns":1000000,"transactions":null}\n')
    time.sleep(0.2)
    began = time.monotonic()
    process.process.terminate()
    while process.process.poll() is None and time.monotonic() - began < END_S:
        time.sleep(0.02)
    took, alive = time.monotonic() - began, process.process.returncode is None
    client.arm.kill()
    if alive:
        raise UnexpectedResultError(f"still ran {END_S:g} s after SIGTERM")
    while client.alive() and time.monotonic() - began < 2 * END_S:
        time.sleep(0.1)
    _expect("connections on the server", client.alive(), 0)
    return f"after {took:.2f} s"


CHECKS: dict[str, Callable[[ClientUnderTest], str]] = {
    "starts": check_greeting,
    "runs the requested number of transactions": check_transaction_count,
    "ends slices on time": check_slice_end,
    "accounts for all of its time": check_reported_time,
    "counts rows": check_row_counts,
    "honours the fetch size": check_fetch_size,
    "sends values": check_values,
    "prepares statements": check_prepared_statements,
    "tells errors": check_errors,
    "tells statements": check_statement_records,
    "keeps sessions": check_sessions,
    "keeps due times": check_due_times,
    "prepares sessions": check_session_setup,
    "closes sessions": check_closing,
    "ends with its stdin": check_end_of_stdin,
    "stops": check_signal,
}


def examine(client: ClientUnderTest) -> Iterator[CheckResult]:
    """Yield the verdict of each check; a client that does not start, or hangs repeatedly, ends the checks."""
    try:
        for name, check in CHECKS.items():
            verdict = _run_check(client, name, check)
            yield verdict
            if name == "starts" and verdict.verdict == FAILED:
                return
            if client.hung == HANGS_MOST:
                again = f"not run, for it hung {client.hung} times; where it is only slow, give it longer: --patience"
                yield CheckResult(REMAINING_CHECKS, FAILED, again)
                return
    finally:
        client.arm.end()


def _run_check(client: ClientUnderTest, name: str, check: Callable[[ClientUnderTest], str]) -> CheckResult:
    try:
        return CheckResult(name, PASSED, check(client))
    except UnsupportedFeatureError as error:
        client.arm.kill()
        return CheckResult(name, NOTED, error.message)
    except (ClientError, UnexpectedResultError) as error:
        client.arm.kill()
        client.hung += isinstance(error, ClientHungError)
        return CheckResult(name, FAILED, error.message)
