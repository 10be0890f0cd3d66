"""Turns of a session: the time between two messages from the client, and the owner of the waits in it.

The owner of a turn is the first statement of the client in it, the end of a transaction if it contains nothing else, or
else the owner of the turn before. All waits are sorted together as arrays, because DuckDB's window functions take six
times as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbdyno.trace.source import Traces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.integer[Any]]

ROWS = "turn_rows"
"""Name of the table of the waits between calls, with the numbers of their owner and of their kind."""
HARD, COMMIT = "hard parses", "commits"
FROM_CLIENT = "SQL*Net message from client"
_CALL, _HARD, _COMMIT = 0, 1, 2
"""Ranks of calls that can own a turn: the owner is the first call with the lowest rank."""
_NOTHING = -1
_NAMES = f"""
create or replace temp table turn_owners as
  select row_number() over (order by owner) - 1 as owner_code, owner
  from (select distinct owner from owned union select '{COMMIT}');
create or replace temp table turn_kinds as
  select row_number() over (order by event, class) - 1 as kind_code, event, class
  from (select distinct event, class from waits where call is null);
"""  # noqa: S608
_OWNERS = f"""
select session, line, owner_code::integer as owner,
       case owner when '{HARD}' then {_HARD} when '{COMMIT}' then {_COMMIT} else {_CALL} end::utinyint as rank
from owned join turn_owners using (owner) where depth = 0 and kind <> 'close'
union all
select session, line, owner_code::integer, {_COMMIT}::utinyint from transactions join turn_owners on owner = '{COMMIT}'
"""  # noqa: S608
_WAITS = f"""
select w.session, w.line, w.file, w.started_ns, w.elapsed_ns, k.kind_code::usmallint as kind_code,
       coalesce(w.event = '{FROM_CLIENT}', false) as ends,
       coalesce(w.think, false) or coalesce(w.class, '') = 'idle' as is_idle
from waits w join turn_kinds k on k.event is not distinct from w.event and k.class is not distinct from w.class
where w.call is null
"""  # noqa: S608
_VIEW = """
create or replace temp view turns as
select session, file, line, event, class, started_ns, elapsed_ns, coalesce(owner, '') as owner, is_idle
from turn_rows left join turn_owners using (owner_code) join turn_kinds using (kind_code)
"""


def make_turns(traces: Traces) -> None:
    """Create a view `turns`: the waits between calls, each with its owner and whether it is idle; it reads `owned`."""
    traces.connection.execute(_NAMES)
    waits = arrays(traces, _WAITS)
    owners = owners_of(arrays(traces, _OWNERS), waits)
    del waits["ends"]
    traces.register(ROWS, {**waits, "owner_code": owners})  # not copied: there are a million rows
    traces.connection.execute(_VIEW)


def arrays(traces: Traces, query: str) -> dict[str, NDArray[Any]]:
    """Return the columns of a query as arrays; the query must return no NULL."""
    import numpy as np

    return {name: np.asarray(one) for name, one in traces.connection.execute(query).fetchnumpy().items()}


def free_turns(traces: Traces) -> None:
    """Drop the tables that `make_turns` made, and the views over them."""
    traces.connection.execute("drop view if exists turns")
    traces.unregister(ROWS)


def owners_of(owners: dict[str, NDArray[Any]], waits: dict[str, NDArray[Any]]) -> Ints:
    """Return the owner of each wait, or -1 if neither its turn nor an earlier turn of the session has an owner.

    Args:
        owners: Calls that can own a turn: `session`, `line`, `owner` and `rank`. The first two columns are removed from
            this argument.
        waits: The waits between calls: `session`, `line`, and whether a wait `ends` its turn.
    """
    import numpy as np

    many = owners["session"].size
    session = np.concatenate([owners.pop("session"), waits["session"]])
    order = np.lexsort((_lines([owners.pop("line"), waits["line"]]), session)).astype(np.int32, copy=False)
    session = session[order]
    ends = np.concatenate([np.zeros(many, dtype=bool), waits["ends"]])[order]
    begins = np.ones(order.size, dtype=bool)
    begins[1:] = ends[:-1] | (session[1:] != session[:-1])
    turn = np.cumsum(begins, dtype=np.int32) - 1
    starts = np.flatnonzero(begins)
    owner: Ints = np.full(starts.size, _NOTHING, dtype=np.int32)
    is_owner = order < many
    mine, turns = order[is_owner], turn[is_owner]
    for rank in (_COMMIT, _HARD, _CALL):
        chosen = owners["rank"][mine] == rank
        # Of repeated indices the last one counts: backwards, that is the first in the turn.
        owner[turns[chosen][::-1]] = owners["owner"][mine[chosen]][::-1]
    owner = _fill_owners(owner, session[starts])
    found = np.empty(waits["session"].size, dtype=np.int32)
    found[order[~is_owner] - many] = owner[turn[~is_owner]]
    return found


def _lines(sides: list[Ints]) -> Ints:
    """Return the line numbers of all sides as one array, of 32-bit integers if they are small enough."""
    import numpy as np

    last = max(int(side.max(initial=0)) for side in sides)
    return np.concatenate(sides, dtype=np.int32 if last <= np.iinfo(np.int32).max else np.int64, casting="unsafe")


def _fill_owners(owner: Ints, session: Ints) -> Ints:
    """Return the owner of each turn; a turn without an owner gets that of the previous turn in its session."""
    import numpy as np

    at = np.arange(owner.size)
    last = np.maximum.accumulate(np.where(owner != _NOTHING, at, 0)) if owner.size else at
    first = np.searchsorted(session, session)
    return np.where(last >= first, owner[last], _NOTHING)
