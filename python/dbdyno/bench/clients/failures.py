"""A client's failed operations as evidence: SQLSTATE, error number, whether the plan expects it, message without data.

A client sends an error's message once per statement, SQLSTATE and number; it is used for all operations that failed in
this way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dbdyno.bench.clients import stream

if TYPE_CHECKING:
    from dbdyno.bench.clients.job import Job
    from dbdyno.bench.clients.process import FailureKey
    from dbdyno.bench.clients.reader import Records

Failure = tuple[str, int, str, bool]
"""SQLSTATE, the engine's error number or 0, message without values, and whether the plan expects the error."""
MOST = 250
OTHER: Failure = ("other", 0, "", False)


@dataclass
class Failures:
    """Failures of one slice; `numbers` has for each operation 0, or 1 + the index of its failure in `listed`."""

    numbers: NDArray[np.int64]
    listed: list[Failure] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    """Description of each failure in one line, as dbdyno's own load would write it."""

    def unexpected(self, whole: NDArray[np.bool_]) -> list[int]:
        """Return the failure number of each unexpected failure among the operations selected by the mask `whole`."""
        bad = [number for number, failure in enumerate(self.listed, 1) if not failure[3]]
        return [int(number) for number in self.numbers[whole & np.isin(self.numbers, bad)]]


def failures_of(records: Records, job: Job, messages: Mapping[FailureKey, str]) -> Failures:
    """Return how the operations of a slice failed; a transaction has the message of the statement that ended it."""
    found = Failures(np.zeros(len(records), np.int64))
    places: dict[tuple[int, FailureKey], int] = {}
    last: dict[int, int] = {}
    scripts = job.drawer.scripts()
    owners = {number: at for at, script in enumerate(scripts) for number in script["statements"]}
    for at in np.flatnonzero(records["code"] != b""):
        row = records[at]
        session, named = int(row["session"]), int(row["statement"])
        if row["kind"] == stream.TRANSACTION:
            script = named
            own = scripts[script]["statements"]
            statement = own[0] if scripts[script]["single"] else last.get(session, own[0] if own else 0)
        else:
            script, statement = owners.get(named, 0), named
            last[session] = statement
        failed = (statement, row["code"].decode("ascii"), int(row["vendor"]))
        if (script, failed) not in places:
            places[script, failed] = _place(found, job, script, failed, messages)
        found.numbers[at] = places[script, failed]
    return found


def _place(failures: Failures, job: Job, script: int, failed: FailureKey, messages: Mapping[FailureKey, str]) -> int:
    """Return the number of a failure, after adding it if it is new."""
    failure, words = _known_failure(job, script, failed, messages)
    if len(failures.listed) >= MOST and failure not in failures.listed:
        failure, words = OTHER, "other"
    if failure not in failures.listed:
        failures.listed.append(failure)
        failures.words.append(words)
    return failures.listed.index(failure) + 1


def _known_failure(
    job: Job, script: int, failed: FailureKey, messages: Mapping[FailureKey, str]
) -> tuple[Failure, str]:
    from dbdyno import _core

    _, code, vendor = failed
    # A client that does not distinguish statements sends the message once.
    text = messages.get(failed) or next((words for (_, *same), words in messages.items() if same == [code, vendor]), "")
    known = "\n".join([*(own["text"] for own in job.arm["scripts"]), *job.arm.get("session_sql", ())])
    message, words = _core.reported_error(code, vendor, text, known)
    return (code, vendor, message if text else "", job.expects(script, code, vendor)), words
