"""Merging of the calls of several hosts into one part: on one clock, with renumbered sessions and a host column."""

from __future__ import annotations

import importlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbdyno.base.errors import TargetError
from dbdyno.base.files import file_replacement

if TYPE_CHECKING:
    from dbdyno.hosts.clock import ClockFit


@dataclass
class HostPart:
    """One host's part: its bytes, its clock, and the first session number of each arm.

    `write_calls` sets `calls` (number of transactions), `cut` (number of those that began before all hosts were in the
    slice) and `mean_ns` (mean time of the others [ns], by the arm's name).
    """

    host: str
    content: bytes
    clock: ClockFit
    first_session: Mapping[str, int]
    calls: int = 0
    cut: int = 0
    mean_ns: dict[str, float] = field(default_factory=dict)


def load_pyarrow() -> Any:
    """Import and return pyarrow.

    Raises:
        TargetError: pyarrow is not installed.
    """
    try:
        importlib.import_module("pyarrow.parquet")
        importlib.import_module("pyarrow.compute")
        return importlib.import_module("pyarrow")
    except ImportError as error:
        raise TargetError(
            "the package pyarrow is not installed; load from many hosts needs it",
            next_step="run `pip install 'dbdyno[distributed]'`",
        ) from error


def write_calls(
    parts: Sequence[HostPart], begins_ns: Mapping[int, int], path: Path
) -> tuple[int, set[tuple[str, int]]]:
    """Write the calls of all hosts as one part.

    A call that began before all hosts were in its slice is cut: its slice number is increased by the number of slices.
    Summaries need memory in proportion to the largest slice number, so the increase is as small as possible.

    Args:
        parts: The parts of the hosts.
        begins_ns: For each slice number, the time at which all hosts were in that slice and none was in the previous
            one.
        path: The file to write.

    Returns:
        The number of rows, and the arm and slice number of all cut calls.
    """
    pa = load_pyarrow()
    read = [(part, pa.parquet.read_table(io.BytesIO(part.content))) for part in parts if part.content]
    if not read:
        return 0, set()
    beyond_at = 1 + max(int(pa.compute.max(table["slice"]).as_py() or 0) for _, table in read)
    tables = [_table(pa, part, table, begins_ns, beyond_at) for part, table in read]
    whole = pa.concat_tables(tables).unify_dictionaries()
    path.parent.mkdir(parents=True, exist_ok=True)
    with file_replacement(path) as file:
        pa.parquet.write_table(whole, file, compression="zstd", row_group_size=1 << 20)
    beyond = whole.filter(pa.compute.greater_equal(whole["slice"], beyond_at)).select(["arm", "slice"])
    pairs = beyond.group_by(["arm", "slice"]).aggregate([]).to_pylist() if len(beyond) else []
    return len(whole), {(row["arm"], row["slice"]) for row in pairs}


def _table(pa: Any, part: HostPart, table: Any, begins_ns: Mapping[int, int], beyond_at: int) -> Any:
    """Return the rows of a host with times converted to this machine's clock."""
    import numpy as np

    clock = part.clock

    def ours(column: str) -> Any:
        known = pa.compute.fill_null(table[column], 0).to_numpy()
        return known - np.rint(clock.offset_ns + clock.drift * (known - clock.host_ns)).astype(np.int64)

    started, slices = ours("started_ns"), table["slice"].to_numpy()
    limit = np.array([begins_ns.get(number, 0) for number in range(beyond_at)], np.int64)
    cut = started < limit[slices]
    arms = table["arm"].combine_chunks()
    first = np.array([part.first_session[name] for name in arms.dictionary.to_pylist()])
    codes = arms.indices.to_numpy()
    columns = {
        "slice": pa.array(np.where(cut, slices + beyond_at, slices).astype(np.uint32)),
        "session": pa.array((table["session"].to_numpy() + first[codes]).astype(np.uint16)),
        "started_ns": pa.array(started),
    }
    if table["intended_ns"].null_count < len(table):
        columns["intended_ns"] = pa.array(ours("intended_ns"), mask=table["intended_ns"].is_null().to_numpy())
    for name, column in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), column)
    _count(part, table, cut, codes, arms.dictionary.to_pylist())
    host = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(table), np.uint16)), pa.array([part.host]))
    return table.append_column(pa.field("host", host.type, nullable=False), host)


def _count(part: HostPart, table: Any, cut: Any, codes: Any, arms: list[str]) -> None:
    import numpy as np

    kinds = table["kind"].combine_chunks()
    whole = kinds.indices.to_numpy() == kinds.dictionary.to_pylist().index("transaction")
    part.calls, part.cut = int(whole.sum()), int((whole & cut).sum())
    elapsed = table["elapsed_ns"].to_numpy()
    for code, name in enumerate(arms):
        own = elapsed[whole & ~cut & (codes == code)]
        if len(own):
            part.mean_ns[name] = float(np.mean(own))
