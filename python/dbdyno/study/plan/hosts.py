"""Hosts that share a plan's load: `[load] hosts = ["a", "b"]`, and the shared folder for their evidence.

Hosts are written as for `--hosts`, except that `@FILE` is not allowed, so that a plan does not depend on another file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbdyno.base.errors import CellsError
from dbdyno.base.json_types import JsonObject
from dbdyno.cells.hosts import hosts_of
from dbdyno.study.plan.key import Key

if TYPE_CHECKING:
    from dbdyno.study.plan.plan import Plan
    from dbdyno.study.plan.reader import PlanReader

HOSTS, SHARED_FOLDER = "hosts", "shared_folder"
KEYS = (
    Key(
        HOSTS,
        "texts",
        'hosts that share the load, reached over SSH, such as ["a", "b", "c"] or ["me@rack[01-16]:2222"];\n'
        "--hosts or --scheduler on the command line replaces them",
        None,
    ),
    Key(
        SHARED_FOLDER,
        "str",
        "absolute path of a folder that this machine and all hosts see: hosts leave their evidence there\n"
        "when a block ends, instead of sending it through the scheduler",
        None,
    ),
)


def read(reader: PlanReader, load: JsonObject) -> JsonObject:
    """Return the hosts and the shared folder in `[load]` in the form of `Plan`; fail if one is invalid."""
    texts: list[str] = load.get(HOSTS, [])
    folder: str | None = load.get(SHARED_FOLDER)
    if HOSTS in load:
        if any(word.strip().startswith("@") for text in texts for word in text.split(",")):
            reader.fail("a plan has no @FILE of hosts", "load", HOSTS, 0, "write their names, or use --hosts @FILE")
        try:
            hosts_of(texts)
        except CellsError as error:
            reader.fail(error.message, "load", HOSTS, 0, 'write [USER@]HOST[:PORT], such as ["a", "me@b:2222"]')
    if folder is not None and not folder.startswith("/"):
        reader.fail(f"{folder!r} is not an absolute path", "load", SHARED_FOLDER, 0, "all hosts use this path")
    return {HOSTS: texts, SHARED_FOLDER: folder}


def host_side_effects(plan: Plan) -> list[str]:
    """Return sentences on what running a plan does on its hosts; empty if the plan names no hosts."""
    orders = [f"starts Python processes over SSH on: {', '.join(plan.hosts)}"] if plan.hosts else []
    return orders + ([f"hosts write to the folder {plan.shared_folder}"] if plan.shared_folder else [])
