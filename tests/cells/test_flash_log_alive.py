"""A second run on the same cells is refused, from whatever folder or machine the first one was started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from flash_rig import Rig
from rig_help import access

from dbdyno.base.errors import CellsError
from dbdyno.bench.cells.survey import describe, refuse_flash_log_set, survey
from dbdyno.cells.hosts import hosts_of


@pytest.mark.parametrize(
    "plan",
    [
        "dbplan=((name=ORCL,share=3,flashLog=off),(name=default,share=1))",
        "dbplan=((name=ORCL,share=3,flashLog=on),(name=default,share=1))",
        "dbplan=((name=HR,share=3,flashLog=off),(name=default,share=1))",
    ],
)
def test_a_plan_that_holds_flash_log_already_is_not_taken_for_the_one_to_put_back(rig: Rig, plan: str):
    """While a run is alive its plan holds flashLog=; a second one would leave production so."""
    rig.cells[0].answer('alter iormplan dbplan=""')
    rig.cells[1].answer(f"alter iormplan {plan}")
    before = rig.plans
    with pytest.raises(CellsError, match="another run on these cells may still be active") as told:
        refuse_flash_log_set(rig.plan(held="refuse"), rig.survey(rig.plan()))
    assert told.value.where == rig.hosts[1].name
    assert "off" not in str(told.value.next_step)
    assert rig.plans == before


def test_a_plan_of_ones_own_is_accepted_by_name_and_never_advised(rig: Rig):
    rig.cells[1].answer("alter iormplan dbplan=((name=ORCL,share=3,flashLog=off),(name=default,share=1))")
    plan = rig.plan(held="ours")
    assert "not because dbdyno advises it" in describe(plan, rig.survey(plan))


def test_a_plan_without_flash_log_is_no_reason_to_refuse(rig: Rig):
    for cell in rig.cells:
        cell.answer("alter iormplan dbplan=((name=ORCL,share=3),(name=default,share=1))")
    refuse_flash_log_set(rig.plan(held="refuse"), rig.survey(rig.plan()))


def test_a_cell_named_twice_is_refused_before_anything_is_changed(rig: Rig, tmp_path: Path):
    first = f"127.0.0.1:{rig.served.ports[0]}"
    plan = replace(rig.plan(), hosts=f"{first},celladmin@{first}")
    again = replace(hosts_of([first])[0], address="localhost", user="celladmin")
    hosts = [*hosts_of([first], user="celladmin"), again]
    known = rig.served.known_hosts
    known.write_text(known.read_text() + known.read_text().replace("127.0.0.1", "localhost"))
    with pytest.raises(CellsError, match="is the same cell as"):
        survey(plan, hosts, access(rig.served))
