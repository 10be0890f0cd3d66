"""Whether a client keeps to the protocol: what each check asks for, and what came. It changes nothing on the server.

Checks run one after the other on one process; after one that failed the next begins with a new process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dbdyno.base.errors import Error
from dbdyno.bench.clients import stream
from dbdyno.bench.clients.arrivals import NOT_DUE
from dbdyno.bench.clients.check_words import PAUSE_NS, POSTGRES, Words
from dbdyno.bench.clients.job import Job
from dbdyno.bench.clients.load import ClientArm
from dbdyno.bench.clients.process import END_S, ClientError, ClientHungError
from dbdyno.bench.clients.time_coverage import Accounted

if TYPE_CHECKING:
    from dbdyno.base.core_types import LoadArm
    from dbdyno.bench.clients.reader import Records

Held, Failed, Told = "ok", "failed", "told"
LATE_S = 1.0
"""How much longer than asked a slice of short statements may take."""
PATIENCE_S = 10.0
"""What a client under test may take to answer what takes no time."""
START_TIMES = 3
"""How many times as long it may take to start: a virtual machine and its drivers are loaded then."""
HANGS_MOST = 2
"""A client that hung so often would hang in all that is left, each time for as long."""
LEFT = "the other checks"
"""The verdict in place of those."""
SLICE_NS = 50_000_000
SESSIONS = 3
DUE, DUE_NS = 40, 80_000_000
"""Transactions of the open loop, and the time over which they are due."""
MODES = {"literals": "simple", "binds": "extended", "prepared": "prepared"}
VALUES = {"number": "4711", "word": "o'clock %s ?"}
NULL = "\\set nothing null\n"


@dataclass(frozen=True)
class Verdict:
    """One check: `ok`, `failed`, or `told` where a figure has no right or wrong."""

    check: str
    verdict: str
    detail: str


class WrongError(Error):
    """What came is not what was asked for."""


class NotOfferedError(Error):
    """What a client may leave out is not there."""


class Examined:
    """A client under test, on a server: `alive` counts its sessions there, `words` are what the server understands."""

    def __init__(self, arm: ClientArm, alive: Callable[[], int], words: Words = POSTGRES) -> None:
        self.arm, self.alive, self.words, self.slice = arm, alive, words, 0
        self.hung = 0
        self.wait_for(PATIENCE_S)

    def wait_for(self, patience_s: float) -> None:
        """How long the client may be silent when it is asked for something."""
        self.arm.start_s = START_TIMES * patience_s
        self.arm.connect_s = self.arm.answer_s = patience_s

    def job(self, script: str, protocol: str = "prepared", fetch_size: int | None = None, **own: Any) -> None:
        """Gives it another job."""
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
        """One slice of it."""
        self.slice += 1
        ran = self.arm.turn(self.slice, length_ns, transactions)
        return ran.end, ran.records

    def rows(self, script: str, *, protocol: str = "prepared", fetch_size: int | None = None, **own: Any) -> list[int]:
        """The rows of three transactions of one statement."""
        self.job(script, protocol, fetch_size, **own)
        return [int(rows) for rows in _whole(self.run(3)[1])["rows"]]

    def codes(self, script: str, count: int, **own: Any) -> list[str]:
        """The error codes of transactions."""
        self.job(script, **own)
        return [code.decode() for code in _whole(self.run(count)[1])["code"]]


def _whole(records: Records) -> Records:
    whole: Records = records[records["kind"] == stream.TRANSACTION]
    return whole


def _same(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise WrongError(f"{what}: expected {expected}, found {found}")


def greets(own: Examined) -> str:
    """It starts, says which version of the protocol it speaks, and takes the right clock."""
    began = time.monotonic()
    return f"{own.arm.start().about or 'without a name'}, after {time.monotonic() - began:.2f} s"


def counts(own: Examined) -> str:
    """A slice of so many transactions has exactly those."""
    own.job("select 1;")
    for count in (1, 7, 1):
        own.run(count)
    return "slices of 1, 7 and 1 transactions"


def ends(own: Examined) -> str:
    """A slice of some time ends when it is over."""
    own.job("select 1;")
    longest = max(own.run(length_ns=SLICE_NS)[0].elapsed_ns for _ in range(3))
    if longest > SLICE_NS + LATE_S * 1e9 or longest < SLICE_NS:
        raise WrongError(f"slices of {SLICE_NS / 1e6:g} ms took up to {longest / 1e6:.0f} ms")
    return f"slices of {SLICE_NS / 1e6:g} ms took up to {longest / 1e6:.1f} ms"


def tells_all_of_its_time(own: Examined) -> str:
    """What takes its time on the server takes that long, and transactions fill the time that their sessions have."""
    own.job(own.words.pause)
    whole = _whole(own.run(1)[1])
    _same(own.words.pause, [code.decode() for code in whole["code"]], [""])
    shortest = int(whole["elapsed_ns"].min())
    if shortest < PAUSE_NS:
        raise WrongError(f"what takes {PAUSE_NS / 1e6:g} ms on the server took {shortest / 1e6:.3g} ms")
    own.job(own.words.session, sessions=SESSIONS)
    own.arm.accounted = Accounted()
    for _ in range(SESSIONS):
        own.run(length_ns=SLICE_NS)
    if doubt := own.arm.accounted.doubt():
        raise WrongError(doubt)
    return f"operations for {own.arm.accounted.share() or 0:.0%} of the time of {SESSIONS} sessions"


def counts_rows(own: Examined) -> str:
    """The rows of a query are all taken and counted; none are 0."""
    _same("rows of a query without any", own.rows(own.words.no_row), [0, 0, 0])
    _same("rows of a query", own.rows(own.words.rows), [250] * 3)
    return "0 and 250 rows"


def fetches(own: Examined) -> str:
    """With a fetch size the rows are the same."""
    if not own.words.fetches:
        raise NotOfferedError("this server sends all rows of a query at once: no arm of it has a fetch size")
    for size in (1, 100, 250, 1000):
        _same(f"rows with fetch size {size}", own.rows(own.words.rows, fetch_size=size), [250] * 3)
    return "250 rows by 1, 100, 250 and 1,000"


def takes_values(own: Examined) -> str:
    """Numbers, text with quotes and signs, and NULL arrive in each way of sending statements."""
    for mode, protocol in MODES.items():
        _same(f"rows with {mode}", own.rows(NULL + own.words.values, protocol=protocol, variables=VALUES), [1, 1, 1])
    return ", ".join(MODES)


def prepares_statements(own: Examined) -> str:
    """The server keeps a statement where it is to be prepared, and only there."""
    for mode, protocol in MODES.items():
        kept = own.rows(own.words.kept, **_mode(protocol))[-1]
        least, most = own.words.kept_rows[mode]
        if not least <= kept <= most:
            raise WrongError(f"with {mode} the server has prepared {kept} statements")
    return "once with prepared alone"


def _mode(protocol: str) -> dict[str, Any]:
    return {"protocol": protocol, "variables": VALUES}


def tells_errors(own: Examined) -> str:
    """A failed statement has its SQLSTATE, and the next transaction is not touched by it."""
    words, (failing, code) = own.words, own.words.failing
    _same(failing, own.codes(failing, 2), [code] * 2)
    _same("no such table", own.codes("select * from dbdyno_no_such_table;", 1), [words.no_table])
    _same("an error in a transaction", own.codes(f"begin;\n{failing}\n{words.end};", 2), [code] * 2)
    _same("after errors", own.codes("select 1;", 2), ["", ""])
    return f"{code}, {words.no_table}; in a transaction, too"


def writes_statements(own: Examined) -> str:
    """A script of several statements has a record for each, before that of its transaction."""
    own.job(f"begin;\nselect 1;\n{own.words.end};")
    kinds = [int(kind) for kind in own.run(2)[1]["kind"]]
    _same("kinds of records", kinds, [stream.STATEMENT] * 3 + [stream.TRANSACTION] + [stream.STATEMENT] * 3 + [4])
    return f"begin, statement, {own.words.end}, transaction"


def keeps_sessions(own: Examined) -> str:
    """Sessions are as many connections at once, each with work of its own."""
    own.job(own.words.session, sessions=SESSIONS)
    _same("connections on the server", own.alive(), SESSIONS)
    found = sorted(set(_whole(own.run(length_ns=SLICE_NS)[1])["session"].tolist()))
    _same("sessions at work", found, list(range(SESSIONS)))
    own.run(SESSIONS + 1)
    return f"{SESSIONS} sessions, each at work"


def keeps_due_times(own: Examined) -> str:
    """In an open loop no transaction begins before it is due, and none is left out."""
    own.job("select 1;", sessions=2, rate_per_s=DUE / (DUE_NS / 1e9))
    own.slice += 2
    try:
        own.arm.turn(own.slice - 1, None, DUE)
        ran = own.arm.turn(own.slice, None, DUE)
    except ClientError as error:
        if NOT_DUE not in error.message:
            raise
        raise NotOfferedError(f"no open loop, so arms with rate_per_s end with an error: {error.message}") from error
    late = np.sort((ran.records["started_ns"] - ran.intended_ns)[ran.intended_ns >= 0])
    return f"{DUE} due over {DUE_NS / 1e6:g} ms began {late[len(late) // 2] / 1e3:.0f} us late, half of them less"


def prepares_sessions(own: Examined) -> str:
    """What each session runs first is in effect, the limit of statements too."""
    (sql, query), (endless, code) = own.words.setting, own.words.endless
    _same("a setting of the session", own.rows(query, session_sql=[sql]), [1] * 3)
    _same("the limit of statements", own.codes(endless, 1, statement_timeout_ms=50), [code])
    return "settings and statement_timeout"


def closes(own: Examined) -> str:
    """It closes its sessions when told, and opens others."""
    own.job("select 1;")
    own.arm.disconnect()
    if own.arm.process is None:
        raise WrongError("it did not answer to close")
    deadline = time.monotonic() + END_S
    while own.alive() and time.monotonic() < deadline:
        time.sleep(0.02)
    _same("connections on the server", own.alive(), 0)
    own.arm.connect()
    own.arm.draw()
    own.run(1)
    return "closed and opened again"


def ends_with_stdin(own: Examined) -> str:
    """At the end of its stdin it ends by itself, with exit 0."""
    own.job("select 1;")
    process = own.arm.process
    assert process is not None
    began = time.monotonic()
    willing = process.end()
    took, code = time.monotonic() - began, process.process.returncode
    own.arm.process, own.arm.open = None, False
    if not willing:
        raise WrongError(f"still ran {END_S:g} s after its stdin ended")
    _same("exit", code, 0)
    return f"after {took:.2f} s"


def stops(own: Examined) -> str:
    """A signal ends it in the middle of a statement, and its session on the server."""
    own.job(own.words.sleep)
    process = own.arm.process
    assert process is not None
    process.send(b'{"do":"slice","slice":1,"length_ns":1000000,"transactions":null}\n')
    time.sleep(0.2)
    began = time.monotonic()
    process.process.terminate()
    while process.process.poll() is None and time.monotonic() - began < END_S:
        time.sleep(0.02)
    took, alive = time.monotonic() - began, process.process.returncode is None
    own.arm.kill()
    if alive:
        raise WrongError(f"still ran {END_S:g} s after SIGTERM")
    while own.alive() and time.monotonic() - began < 2 * END_S:
        time.sleep(0.1)
    _same("connections on the server", own.alive(), 0)
    return f"after {took:.2f} s"


CHECKS: dict[str, Callable[[Examined], str]] = {
    "starts": greets,
    "runs so many transactions": counts,
    "ends slices in time": ends,
    "tells all of its time": tells_all_of_its_time,
    "counts rows": counts_rows,
    "honours the fetch size": fetches,
    "sends values": takes_values,
    "prepares statements": prepares_statements,
    "tells errors": tells_errors,
    "tells statements": writes_statements,
    "keeps sessions": keeps_sessions,
    "keeps due times": keeps_due_times,
    "prepares sessions": prepares_sessions,
    "closes sessions": closes,
    "ends with its stdin": ends_with_stdin,
    "stops": stops,
}


def examined(own: Examined) -> Iterator[Verdict]:
    """Carries the checks out; a client that does not start, or hangs again and again, ends them."""
    try:
        for name, check in CHECKS.items():
            verdict = _checked(own, name, check)
            yield verdict
            if name == "starts" and verdict.verdict == Failed:
                return
            if own.hung == HANGS_MOST:
                again = f"not run, for it hung {own.hung} times; where it is only slow, give it longer: --patience"
                yield Verdict(LEFT, Failed, again)
                return
    finally:
        own.arm.end()


def _checked(own: Examined, name: str, check: Callable[[Examined], str]) -> Verdict:
    try:
        return Verdict(name, Held, check(own))
    except NotOfferedError as error:
        own.arm.kill()
        return Verdict(name, Told, error.message)
    except (ClientError, WrongError) as error:
        own.arm.kill()
        own.hung += isinstance(error, ClientHungError)
        return Verdict(name, Failed, error.message)
