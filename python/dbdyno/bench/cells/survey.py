"""The state of storage cells before a run changes their plans, and what the run would do.

Nothing here changes a cell: every command is a LIST. Anything that would make the run or its undo impossible is
reported as an error before something is changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dbdyno.base.errors import CellsError
from dbdyno.bench.cells.plan import CellsPlan, refuse_unknown_databases
from dbdyno.cells.hosts import Host
from dbdyno.cells.iorm_plan import IormPlan, alter_command, with_flash_log
from dbdyno.cells.iorm_switch import Directives, read_plans
from dbdyno.cells.listing import read_text
from dbdyno.cells.ssh import Access, Fleet

COLLECTION_METRIC = "FL_DISK_FIRST"
"""Metric that is read to see whether a cell has collected again."""
_ASKED = "attributes name, metricObjectName, metricValue, collectionTime"
_FACTS = ("makeModel", "releaseVersion", "cellVersion", "flashCacheMode")


@dataclass(frozen=True)
class Survey:
    """What was found on the cells before anything was changed.

    Attributes:
        found: The IORM plan of each cell.
        facts: Facts about each cell.
        databases: Databases for which the cells count I/O.
    """

    found: dict[Host, IormPlan]
    facts: dict[Host, dict[str, str]]
    databases: list[str]

    def arms(self, plan: CellsPlan) -> list[dict[Host, Directives]]:
        """Return the plan of each cell in each arm.

        Raises:
            CellsError: A plan cannot be built.
        """
        made: list[dict[Host, Directives]] = []
        for on in plan.arms:
            own: dict[Host, Directives] = {}
            for host, found in self.found.items():
                try:
                    own[host] = with_flash_log(found, plan.databases, on)
                except CellsError as error:
                    raise CellsError(error.message, where=host.name, next_step=error.next_step) from error
            made.append(own)
        return made


def survey(plan: CellsPlan, hosts: Sequence[Host], access: Access) -> Survey:
    """Return the state of the cells, after checking that it can be restored.

    Raises:
        CellsError: A plan cannot be read, is not in effect or could not be restored, or a cell has no flash log.
        PlanError: A database does not exist.
    """
    found = asyncio.run(_look(hosts, access))
    for host, own in found.found.items():
        if not own.active:
            raise CellsError(
                f"its IORM plan is {own.status or 'not shown as active'}, so its directives are not in effect",
                where=host.name,
                next_step="activate the plan with `dbdyno cells run 'alter iormplan active'`",
            )
    refuse_unknown_databases(plan.databases, found.databases)
    found.arms(plan)
    return found


def refuse_flash_log_set(plan: CellsPlan, survey: Survey) -> None:
    """Raise `CellsError` if a cell's plan sets the flash log of these databases, or switches it off for any database.

    Every run of this kind, on any machine, sets the flash log while it is alive, and an interrupted run leaves it set.
    The plan found is then not the one to restore. If `plan.held` is True, the plan is the user's own and is accepted.

    Raises:
        CellsError: A cell has such a plan.
    """
    if plan.held:
        return
    for host, own in survey.found.items():
        for directive in own.directives:
            words = {key.lower(): value for key, value in directive}
            ours = words.get("name", "").lower() in {name.lower() for name in plan.databases}
            if "flashlog" in words and (ours or words["flashlog"].lower() == "off"):
                raise CellsError(
                    f"its IORM plan already has flashLog={words['flashlog']} for {words.get('name')}: another "
                    f"run on these cells may still be active, or may have been interrupted",
                    where=host.name,
                    next_step="wait for that run, or run `dbdyno cells restore RUN` where it was started; if "
                    "the plan is your own, add --set held=ours",
                )


def _refuse_twice(facts: Mapping[Host, Mapping[str, str]]) -> None:
    """Raise `CellsError` for a cell that is named twice.

    Its counters would be summed twice, and its plan altered over two connections at once.
    """
    seen: dict[tuple[str, str], Host] = {}
    for host, own in facts.items():
        key = own.get("name", ""), own.get("id", "")
        other = seen.setdefault(key, host)
        if key[0] and other is not host:
            raise CellsError(
                f"is the same cell as {other.name}: both have the name {key[0]}",
                where=host.name,
                next_step="name the cell once",
            )


async def _look(hosts: Sequence[Host], access: Access) -> Survey:
    async with Fleet(hosts, access) as fleet:
        found = await read_plans(fleet)
        without = [name for name, at in (await collection_times(fleet)).items() if at is None]
        if without:
            raise CellsError(
                f"does not report {COLLECTION_METRIC}, so it has no metrics of a flash log",
                where=without[0],
                next_step="check with `dbdyno cells run 'list flashlog detail'` whether there is a flash log",
            )
        facts, named = {}, {}
        for answer in await fleet.run("cellcli -e list cell detail"):
            details = read_text(answer.output).details
            shown = details[0] if details else {}
            named[answer.host] = {key: shown[key] for key in ("name", "id") if shown.get(key)}
            facts[answer.host] = {key: shown[key] for key in _FACTS if shown.get(key)}
        _refuse_twice(named)
        listed = await fleet.run(f"cellcli -e list metriccurrent DB_IO_RQ_SM {_ASKED}")
    names = {r.object for answer in listed for r in read_text(answer.output).readings}
    return Survey(found, facts, sorted(name for name in names if not name.startswith("_")))


async def collection_times(fleet: Fleet) -> dict[str, int | None]:
    """Return the time of each cell's last collection, by the cell's name; None if a cell does not report it."""
    answers = await fleet.run(f"cellcli -e list metriccurrent {COLLECTION_METRIC} {_ASKED}")
    return {answer.host.name: next((r.at_ns for r in read_text(answer.output).readings), None) for answer in answers}


def describe(plan: CellsPlan, survey: Survey) -> str:
    """Return the description of what a run would do."""
    common = plan.to_plan()
    arms = survey.arms(plan)
    alike: dict[tuple[str, str], list[str]] = {}
    for host, own in survey.found.items():
        facts = ", ".join(f"{key} {value}" for key, value in survey.facts[host].items())
        about = f"{facts or 'no facts'}; objective {own.objective}, {own.status}"
        alike.setdefault((about, alter_command(own.directives)), []).append(host.name)
    lines = [common.title, common.question, ""]
    for (about, text), names in alike.items():
        lines.append(f"{', '.join(names)}: {about}")
        lines.append(f"    now, and restored in any case: {text}")
        if "flashlog=off" in text.lower():
            lines.append(
                "    that plan has the flash log off: it is restored because it was in effect, not because dbdyno"
                " advises it"
            )
    for number, (name, arm) in enumerate(zip(plan.names, arms, strict=True)):
        lines.append(f"arm {name!r}{' (the base)' if number == 0 else ''}")
        by_text: dict[str, list[str]] = {}
        for host, directives in arm.items():
            by_text.setdefault(alter_command(directives), []).append(host.name)
        lines += [f"    {', '.join(names)}: {text}" for text, names in by_text.items()]
    minutes = plan.turn_ns / 60e9
    total = plan.schedule.blocks * len(plan.arms) * (minutes + 1)
    lines += [
        "",
        f"blocks: {plan.schedule.blocks}, each one turn of every arm in random order; a turn takes {minutes:g} min on "
        f"the cells' clocks, from the first collection after the switch",
        f"time: about {total:.0f} min on the cells' clocks",
        "dbdyno runs no load: your database must be under load during the whole run",
    ]
    return "\n".join(lines) + "\n"
