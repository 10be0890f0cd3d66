"""Rules that find causes in the load on MariaDB: temporary tables on disk, sorts in several passes, connections."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.snapshot.causes.change import Cause
from dbdyno.snapshot.causes.mariadb.reading import MariadbChange
from dbdyno.snapshot.causes.statements import statement_label, statements_of_new_sessions
from dbdyno.snapshot.wording import rate_change

_SPILLS = (
    (
        "disk_tables",
        "temporary tables go to disk",
        "temporary tables on disk",
        ("tmp_memory_table_size", "max_heap_table_size"),
    ),
    ("merges", "sorts do not fit in memory", "merge passes", ("sort_buffer_size",)),
)


def spills(change: MariadbChange) -> Iterator[Cause]:
    """Yield a cause if statements that rarely or never wrote temporary tables or sorts to disk now do so."""
    for name, words, label, settings in _SPILLS:
        found = [
            number
            for number, one in change.statements.items()
            if one.after.get(name) and one.per_call(name)[1] >= 2 * one.per_call(name)[0] + 0.2
        ]
        if not found:
            continue
        most = max(found, key=lambda n: change.statements[n].growth("ms"))
        old, new = (sum(getattr(change.statements[n], end).get(name, 0) for n in found) for end in ("before", "after"))
        yield Cause(
            f"{words}: {statement_label(change.statements[most])}",
            f"{label} {rate_change(old, new)}{_smaller(change, settings)}",
            frozenset(found),
            weight=2.6,
        )


def _smaller(change: MariadbChange, names: tuple[str, ...]) -> str:
    changed = ((name, *change.setting(name)) for name in names)
    return "".join(f"; {name} {old} → {new}" for name, old, new in changed if old != new)


def connections(change: MariadbChange) -> Iterator[Cause]:
    """Yield a cause if connections are opened at least three times as often as before."""
    old, new = change.status("connections")
    if new < 3 * old or new - old < 3:
        return
    most = change.state("max_used_connections")[1]
    refused = change.status("connection_errors_max_connections")[1]
    evidence = f"connections opened {rate_change(old, new)}; at most {most:.0f} open at once since the server started"
    if refused:
        evidence += f"; {rate_change(0, refused)} refused"
    yield Cause("many more connections are opened", evidence, statements_of_new_sessions(change, old, new), weight=1.5)


RULES = (spills, connections)
