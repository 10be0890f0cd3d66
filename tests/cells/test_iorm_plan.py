"""IORM plans are read, changed only in the flash log directives, and written back."""

from __future__ import annotations

import pytest

from dbdyno.base.errors import CellsError
from dbdyno.cells.iorm_plan import alter_command, is_same_plan, plan_of, with_flash_log
from dbdyno_rig.cell import Cell
from fresh_dice import fresh_dice

NAME = "\t name:              \t exa1cel01_IORMPLAN\n"
EMPTY = NAME + "\t catPlan:\n\t dbPlan:\n\t objective:         \t basic\n\t status:\t active\n"


def listed(*lines: str, status: str = "active") -> str:
    """Return the output of LIST IORMPLAN DETAIL; further directives are on the lines below the first one."""
    under = "\n\t                   \t ".join(lines)
    return (
        f"{NAME}\t catPlan:\n\t dbPlan:            \t {under}\n"
        f"\t objective:         \t low_latency\n\t status:            \t {status}\n"
    )


def test_a_plan_without_directives():
    plan = plan_of(EMPTY, "cel01")
    assert (plan.directives, plan.objective, plan.active) == ((), "basic", True)
    assert alter_command(plan.directives) == 'alter iormplan dbplan=""'


def test_a_plan_by_share_is_read_and_written_as_it_is():
    lines = ("name=sales,share=8,limit=50,flashLog=on", "name=default,share=1")
    plan = plan_of(listed(*lines), "cel01")
    assert alter_command(plan.directives) == f"alter iormplan dbplan=(({lines[0]}),({lines[1]}))"
    assert not plan_of(listed(*lines, status="inactive"), "cel01").active


def test_only_the_flash_log_of_the_database_changes():
    plan = plan_of(listed("name=SALES,share=8,flashcache=off", "name=hr,share=2"), "cel01")
    assert alter_command(with_flash_log(plan, ["sales"], on=False)) == (
        "alter iormplan dbplan=((name=SALES,share=8,flashcache=off,flashLog=off),(name=hr,share=2))"
    )
    both = with_flash_log(plan, ["sales", "HR"], on=True)
    assert [dict(one)["flashLog"] for one in both] == ["on", "on"]


def test_a_flash_log_that_was_set_is_set_in_its_place():
    plan = plan_of(listed("name=sales,flashlog=off,share=3"), "cel01")
    (one,) = with_flash_log(plan, ["sales"], on=True)
    assert one == (("name", "sales"), ("flashlog", "on"), ("share", "3"))


def test_in_a_plan_without_directives_the_rest_is_named_as_the_source_did():
    plan = plan_of(EMPTY, "cel01")
    assert alter_command(with_flash_log(plan, ["ORCL"], on=False)) == (
        "alter iormplan dbplan=((name=ORCL,flashLog=off),(name=other,flashLog=on))"
    )


def test_a_database_of_the_rest_keeps_what_the_rest_gives_it():
    plan = plan_of(listed("name=sales,share=8", "name=default,share=2,limit=30"), "cel01")
    assert alter_command(with_flash_log(plan, ["hr"], on=False)) == (
        "alter iormplan dbplan=((name=sales,share=8),(name=hr,share=2,limit=30,flashLog=off),"
        "(name=default,share=2,limit=30))"
    )


def test_a_plan_by_allocation_gives_no_directive_to_a_new_database():
    plan = plan_of(listed("name=sales,level=1,allocation=80", "name=other,level=2,allocation=100"), "cel01")
    assert len(with_flash_log(plan, ["sales"], on=False)) == 2
    with pytest.raises(CellsError, match="hr has no directive in the plan, which is based on allocation"):
        with_flash_log(plan, ["hr"], on=False)


@pytest.mark.parametrize(
    "line",
    [
        "sales,share=8",
        "name=sales,share=",
        "name=a,name=b",
        "name=a b,share=1",
        "name=a;share=1",
        "name='a',share=1",
        "name=a,(share=1)",
    ],
)
def test_a_directive_that_could_not_be_written_again_is_refused(line: str):
    with pytest.raises(CellsError, match="cannot be restored") as refused:
        plan_of(listed(line), "cel01")
    assert refused.value.where == "cel01"


@pytest.mark.parametrize("text", ["", "CELL-01504: Invalid command syntax.\n", "nonsense\n", NAME])
def test_an_answer_without_a_plan_is_refused(text: str):
    with pytest.raises(CellsError, match="no readable IORM plan"):
        plan_of(text, "cel01")


def test_a_name_that_is_none_is_refused():
    with pytest.raises(CellsError, match="is not a database name"):
        with_flash_log(plan_of(EMPTY, "cel01"), ["x),(name=y"], on=True)


def test_the_order_of_words_and_their_case_mean_nothing():
    one = plan_of(listed("name=sales,share=8", "name=hr,share=1"), "a").directives
    assert is_same_plan(one, plan_of(listed("SHARE=1,name=HR", "share=8,name=Sales"), "b").directives)
    assert not is_same_plan(one, plan_of(listed("name=sales,share=8"), "b").directives)


def test_what_a_modelled_cell_shows_is_what_it_was_told(a_cell: Cell):
    dice = fresh_dice()
    for _ in range(200):
        names = dice.sample(["sales", "hr", "DW01", "test$x", "default"], dice.randint(1, 5))
        lines = [
            f"name={name},share={dice.randint(1, 32)}"
            + dice.choice(["", f",limit={dice.randint(1, 100)}"])
            + dice.choice(["", ",flashCache=off"])
            + dice.choice(["", ",flashLog=on", ",flashLog=off"])
            for name in names
        ]
        plan = plan_of(listed(*lines), "cel01")
        wanted = with_flash_log(plan, [dice.choice(["sales", "new"])], on=dice.random() < 0.5)
        for directives in (plan.directives, wanted, ()):
            assert a_cell.answer(alter_command(directives))[1] == 0
            shown = plan_of(a_cell.answer("list iormplan detail")[0], "cell01")
            assert is_same_plan(shown.directives, directives)


@pytest.fixture(scope="module")
def a_cell() -> Cell:
    from rig_help import cell

    return cell()
