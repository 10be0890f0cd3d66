"""Reader of logs, which makes a row for each statement with a logged duration, with its plan if it has one.

    with GatheredExecutions() as gathered:
        read([open_log(Path("postgresql.log"))], gathered, Clock())
        gathered.connection.sql("select plan, count(*) from log_executions group by all")

auto_explain and log_min_duration_statement may both log the same execution: the column `source` distinguishes them.
Parse and bind messages are not executions. For a statement within a function, the log's identifier is that of the
statement around it, so only an identifier in the plan (log_verbose) is used.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, field, fields
from typing import TYPE_CHECKING

from dbdyno.base.errors import SnapshotError
from dbdyno.snapshot.engines.postgres.facts import is_ours
from dbdyno.snapshot.engines.postgres.texts import fingerprint
from dbdyno.snapshot.plans import formats
from dbdyno.snapshot.plans.entries import DURATION, NO_ZONE, Clock, Entry, UnreadEntries
from dbdyno.snapshot.plans.explain import ExplainedPlan, TextPlans, UnreadPlanError, read_json
from dbdyno.snapshot.plans.markup import read_xml, read_yaml
from dbdyno.snapshot.plans.misestimates import Misestimate
from dbdyno.snapshot.plans.prefix import Prefix
from dbdyno.snapshot.plans.source import TORN_ERRORS, Source
from dbdyno.snapshot.plans.tree import Node, identity
from dbdyno.snapshot.plans.values import mask_statement

if TYPE_CHECKING:
    from dbdyno.snapshot.plans.executions import GatheredExecutions

TEXTS_MOST = 20_000
PLAN, STATEMENT = "plan", "statement"
_UTILITY = re.compile(
    r"\s*(?:set|reset|show|begin|start|commit|end|rollback|savepoint|release|deallocate|discard|listen|unlisten)\b",
    re.I,
)


@dataclass
class LogFile:
    """The result of reading one log.

    Attributes:
        name: Name of the file.
        form: Format of the log.
        head: Hash of its first line.
        lines: Number of lines read.
        bytes: Number of bytes read.
        executions: Number of executions.
        plans: Number of executions with a plan.
        from_us: Time of the first execution in µs since 1970.
        to_us: Time of the last execution in µs since 1970.
        unread: What could not be read.
    """

    name: str
    form: str
    head: str
    lines: int = 0
    bytes: int = 0
    executions: int = 0
    plans: int = 0
    from_us: int | None = None
    to_us: int | None = None
    unread: UnreadEntries = field(default_factory=UnreadEntries)
    lost: list[str] = field(default_factory=list)
    """What the recording reports that it missed."""

    def count_execution(self, at_us: int) -> None:
        """Count an execution that ended at `at_us`."""
        self.executions += 1
        self.from_us = at_us if self.from_us is None else min(self.from_us, at_us)
        self.to_us = at_us if self.to_us is None else max(self.to_us, at_us)


def read(
    sources: Iterable[Source],
    gathered: GatheredExecutions,
    clock: Clock,
    *,
    prefix: str | None = None,
    since_us: int | None = None,
    until_us: int | None = None,
) -> list[LogFile]:
    """Read logs into rows and return the result for each log.

    `prefix` is the log_line_prefix of text logs, None to guess it.

    Raises:
        SnapshotError: No time can be read, because its time zone is not known.
    """
    reader = _Reader(gathered, since_us, until_us)
    made = Prefix(prefix)
    found = []
    for number, source in enumerate(sources):
        file = LogFile(source.name, formats.form_of(source.start), source.head)
        lines = formats.Lines(source.stream)
        try:
            for entry in _entries(file, lines, made, clock):
                reader.add(entry, file, number)
        except TORN_ERRORS:
            file.unread.add("the file is cut off here, or its archive is damaged", f"{file.name}:{lines.number + 1}")
        finally:
            source.stream.close()
        file.lines, file.bytes = lines.number, lines.bytes
        found.append(file)
    gathered.flush()
    if any(NO_ZONE in one.unread.counts for one in found) and not any(one.executions for one in found):
        raise SnapshotError(
            "the time zone of the log is ambiguous or unknown",
            where=found[0].name,
            next_step="give the value of log_timezone, such as --timezone Europe/Berlin",
        )
    return found


def entries(source: Source, clock: Clock, prefix: str | None = None) -> Iterator[Entry]:
    """Yield a log's entries with a duration, up to where the log is cut off; the source is closed at the end."""
    file = LogFile(source.name, formats.form_of(source.start), source.head)
    with contextlib.suppress(*TORN_ERRORS), contextlib.closing(source.stream):
        yield from _entries(file, formats.Lines(source.stream), Prefix(prefix), clock)


def is_ignored(text: str) -> bool:
    """Return True for a statement that is ignored: settings, transaction control, dbdyno's own."""
    return bool(text) and (is_ours(text) or _UTILITY.match(text) is not None)


def _entries(file: LogFile, lines: formats.Lines, prefix: Prefix, clock: Clock) -> Iterator[Entry]:
    if file.form == "jsonlog":
        return formats.jsonlog_entries(lines, file.name, clock, file.unread)
    if file.form == "csvlog":
        return formats.csvlog_entries(lines, file.name, clock, file.unread)
    if file.form == "JSON":
        return formats.service_entries(lines, file.name, prefix, clock, file.unread)
    if file.form == "syslog":
        return formats.syslog_entries(lines, file.name, prefix, clock, file.unread)
    return formats.text_entries(lines, file.name, prefix, clock, file.unread)


class _Reader:
    """Converter of entries to rows, with bounded caches of texts and trees."""

    def __init__(self, gathered: GatheredExecutions, since_us: int | None, until_us: int | None) -> None:
        self._gathered = gathered
        self._since = since_us
        self._until = until_us
        self._plans = TextPlans()
        self._identities: dict[int, tuple[Node, str]] = {}
        self._texts: dict[str, tuple[str, bool]] = {}

    def add(self, entry: Entry, file: LogFile, number: int) -> None:
        """Add the row of an entry, unless it is not an execution or is outside of the requested time."""
        found = DURATION.match(entry.message.partition("\n")[0] if "\n" in entry.message[:60] else entry.message[:4096])
        if found is None or found[2] in ("parse ", "bind "):
            return
        if (self._since is not None and entry.at_us < self._since) or (
            self._until is not None and entry.at_us > self._until
        ):
            return
        duration_us = round(float(found[1]) * 1000)
        rest = entry.message[found.end() :].lstrip("\n")
        if found[2] == "plan:":
            self._plan(entry, rest, duration_us, file, number)
        elif rest or entry.queryid is not None:
            self._row(entry, rest, duration_us, None, file, number)

    def _plan(self, entry: Entry, rest: str, duration_us: int, file: LogFile, number: int) -> None:
        try:
            text, plan = self._explained(rest)
        except UnreadPlanError as error:
            file.unread.add(f"a plan: {error}", f"{file.name}:{entry.line}")
            return
        self._row(entry, text, duration_us, plan, file, number)

    def _explained(self, rest: str) -> tuple[str, ExplainedPlan]:
        """Return the statement and its plan, for any auto_explain.log_format."""
        if rest.startswith("{"):
            return read_json(rest)
        if rest.startswith("<"):
            return read_xml(rest)
        if rest.startswith('Query Text: "') and "\nPlan:" in rest:
            return read_yaml(rest)
        return self._plans.read(rest)

    def _row(
        self, entry: Entry, text: str, duration_us: int, explained: ExplainedPlan | None, file: LogFile, number: int
    ) -> None:
        known, passed = self._text(text)
        if passed:
            return
        own = explained.queryid if explained is not None else None
        queryid = own if own is not None else None if entry.nested else entry.queryid
        plan = self._identity(explained.plan) if explained is not None else None
        measured = explained or ExplainedPlan(Node(""))
        if plan is not None and any(one.found is not None for one in measured.numbers):
            self._gathered.add_measurements(plan, duration_us, measured.numbers)
        file.count_execution(entry.at_us)
        file.plans += explained is not None
        self._gathered.add(
            (
                *(number, entry.line, entry.at_us, queryid, known, plan, duration_us),
                *(STATEMENT if explained is None else PLAN, entry.nested, entry.database),
                *(measured.rows_planned, measured.rows, measured.misestimate, measured.hits, measured.reads),
                *(astuple(measured.wrong) if measured.wrong else (None,) * len(fields(Misestimate))),
            )
        )

    def _text(self, text: str) -> tuple[str, bool]:
        """Return the fingerprint of a text, and whether the statement is ignored (see `is_ignored`)."""
        found = self._texts.get(text)
        if found is None:
            if len(self._texts) >= TEXTS_MOST:
                self._texts.clear()
            known = fingerprint(text) if text else ""
            passed = is_ignored(text)
            found = self._texts[text] = known, passed
            if text and not passed:
                self._gathered.add_text(known, mask_statement(text))
        return found

    def _identity(self, plan: Node) -> str:
        """Return the identity of a plan; each tree object is hashed only once."""
        found = self._identities.get(id(plan))
        if found is None:
            if len(self._identities) >= TEXTS_MOST:
                self._identities.clear()
            found = self._identities[id(plan)] = plan, identity(plan)
            self._gathered.add_plan(found[1], plan)
        return found[1]
