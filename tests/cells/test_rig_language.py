"""CellCLI of a modelled cell: commands with their answers, and rejected commands."""

from __future__ import annotations

import pytest
from rig_help import cell, said, value

from dbdyno_rig.cell import Cell
from dbdyno_rig.language import KINDS, Condition, Query, RefusedError, parse_command
from dbdyno_rig.objects import ATTRIBUTES
from dbdyno_rig.rack import Load, Rack
from fresh_dice import fresh_dice


@pytest.fixture(scope="module")
def asked() -> Cell:
    return cell(seconds=61)


def rows(text: str) -> list[list[str]]:
    return [[word.strip() for word in line.split("\t")[1:]] for line in text.splitlines()]


def test_a_list_with_everything_in_it_is_read():
    text = (
        "LIST metricCurrent FL_IO_W, FL_RQ_W ATTRIBUTES name,metricValue WHERE name LIKE 'FL_.*' "
        'AND metricValue > 0 AND metricObjectName not like "x y" ORDER BY metricValue DESC, name '
        "LIMIT 5 DETAIL;"
    )
    assert parse_command(text) == Query(
        "metriccurrent",
        ("FL_IO_W", "FL_RQ_W"),
        ("name", "metricValue"),
        (
            Condition("name", "like", "FL_.*"),
            Condition("metricValue", ">", "0"),
            Condition("metricObjectName", "not like", "x y"),
        ),
        (("metricValue", True), ("name", False)),
        5,
        True,
    )


def test_clauses_stand_in_any_order_and_once():
    first = parse_command("list cell attributes name where name = a order by name limit 3 detail")
    assert parse_command("list cell detail limit 3 where name = a order by name attributes name") == first
    for text in ("where name = a where name = b", "limit 1 limit 2", "attributes a attributes b"):
        with pytest.raises(RefusedError, match="CELL-01504"):
            parse_command(f"list cell {text}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("list cell", [["cell01", "online"]]),
        ("list cell where name like -\n 'cell.*' attributes status", [["online"]]),
        ("list flashcache", [["cell01_FLASHCACHE", "normal"]]),
        ("list flashlog attributes name, size", [["cell01_FLASHLOG", "512M"]]),
        ("list flashcache attributes size", [["365.25G"]]),
        ("list iormplan", [["cell01_IORMPLAN", "active"]]),
        ("list alerthistory", []),
        (
            "list celldisk where diskType = 'flashdisk' and name like '.*_0[01]_.*'",
            [["FD_00_cell01", "normal"], ["FD_01_cell01", "normal"]],
        ),
        (
            "list celldisk attributes name, size where size > 100G order by name desc limit 1",
            [["CD_11_cell01", "600G"]],
        ),
        (
            "list griddisk DATA_CD_00_cell01 attributes name, cellDisk, cachingPolicy, cachedBy",
            [["DATA_CD_00_cell01", "CD_00_cell01", "default", "cell01_FLASHCACHE"]],
        ),
        ("list griddisk where name like 'RECO_.*' limit 1", [["RECO_CD_00_cell01", "active"]]),
        ("list metricdefinition FL_IO_W attributes name, metricType, unit", [["FL_IO_W", "Cumulative", "IO requests"]]),
        (
            "list metriccurrent CD_IO_ERRS where metricObjectName = 'CD_03_cell01'",
            [["CD_IO_ERRS", "CD_03_cell01", "0"]],
        ),
        ("list metriccurrent where name = 'FL_BY_KEEP' and metricValue != 0", []),
        ("LIST CELL ATTRIBUTES flashCacheMode", [["WriteThrough"]]),
    ],
)
def test_a_question_has_its_answer(asked: Cell, text: str, expected: list[list[str]]):
    assert rows(said(asked, text)) == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "CELL-01504: Invalid command syntax."),
        ("liszt cell", "CELL-01504: Invalid command syntax."),
        ("list", "CELL-01504: Invalid command syntax."),
        ("list table", "CELL-01504: Invalid command syntax."),
        ("list cell attributes colour", "CELL-01504: Invalid command syntax."),
        ("list cell attributes name,", "CELL-01504: Invalid command syntax."),
        ("list cell where", "CELL-01504: Invalid command syntax."),
        ("list cell where name", "CELL-01504: Invalid command syntax."),
        ("list cell where name = a or name = b", "CELL-01504: Invalid command syntax."),
        ("list cell where name like '('", "CELL-01504: Invalid command syntax."),
        ("list cell limit two", "CELL-01504: Invalid command syntax."),
        ("list cell detail detail", "CELL-01504: Invalid command syntax."),
        ("list cell where name = 'open", "CELL-01504: Invalid command syntax."),
        (
            "list metriccurrent order by name",
            "CELL-02026: The LIMIT parameter is mandatory for"
            ' "LIST METRICCURRENT" command when using the ORDER BY option.',
        ),
        ("list metriccurrent NO_SUCH", "CELL-02007: "),
        ("drop cell", "CELL-01504: Invalid command syntax."),
        ("create flashcache all size=big", "CELL-01504: Invalid command syntax."),
        ("create flashcache all", "CELL-02526: "),
        ("create flashcache", "CELL-01504: Invalid command syntax."),
        ("create flashcache size=1G", "CELL-01504: Invalid command syntax."),
        ("create flashcache all celldisk='FD_00_cell01'", "CELL-01504: Invalid command syntax."),
        ("create flashcache celldisk='FD_99_cell01'", "CELL-02007: "),
        ("create flashcache celldisk='FD_00_cell01, FD_01_cell01'", "CELL-02526: "),
        ("create flashlog", "CELL-01504: Invalid command syntax."),
        ("create griddisk all flashdisk", "CELL-01504: Invalid command syntax."),
        ("create griddisk all flashdisk prefix=A size=1G", "CELL-02526: "),
        ("drop griddisk all prefix=DATA", "CELL-02526: "),
        ("alter iormplan", "CELL-01504: Invalid command syntax."),
        ("alter iormplan objective=fast", "CELL-01504: Invalid command syntax."),
        ("alter iormplan dbplan=((flashLog=off))", "CELL-01504: Invalid command syntax."),
        ("alter iormplan dbplan=((name=A, share=33))", "CELL-01504: Invalid command syntax."),
        ("alter iormplan dbplan=((name=A, flashLog=maybe))", "CELL-01504: "),
        ("alter iormplan dbplan=((name=A, share=1), (name=a, share=2))", "CELL-02526: "),
        ("alter iormplan dbplan=((name=A, level=1, allocation=50))", "CELL-02526: "),
        (
            "alter iormplan dbplan=((name=A, level=1, allocation=60), (name=other, level=1, allocation=60))",
            "CELL-02526: ",
        ),
        ("alter iormplan dbplan=((name=A, flashcachesize=1G))", "CELL-02526: "),
        ("alter iormplan dbplan=((name=A)", "CELL-01504: Invalid command syntax."),
        ("alter cell flashCacheMode=WriteBack", "CELL-02526: "),
        ("alter cell flashCacheMode=Sideways", "CELL-01504: Invalid command syntax."),
        ("alter griddisk DATA_CD_00_cell01 cachingPolicy=none", "CELL-02526: "),
        ("alter griddisk NONE_CD_00 cachingPolicy=none", "CELL-02007: "),
        ("describe nothing", "CELL-01504: Invalid command syntax."),
    ],
)
def test_what_cannot_be_is_refused_with_a_code(asked: Cell, text: str, error: str):
    before = said(asked, "list iormplan detail") + said(asked, "list flashcache detail")
    output, code = asked.answer(text)
    assert code == 1
    assert output.strip().startswith(error)
    assert before == said(asked, "list iormplan detail") + said(asked, "list flashcache detail")


def test_any_garbage_is_answered_and_never_breaks_the_cell(asked: Cell):

    dice = fresh_dice()
    words = [
        *("list", "cell", "metriccurrent", "where", "name", "like", "=", "(", ")", ",", "'", '"', "order", "by"),
        *("limit", "1", "detail", "attributes", "all", "alter", "iormplan", "dbplan", "flashcache", "\t", "é", "--"),
        *("%", "not", "and", "help", "describe"),
    ]
    for _ in range(3_000):
        text = dice.choice(["", " "]).join(dice.choices(words, k=dice.randint(0, 12)))
        _, code = asked.answer(text, xml=dice.random() < 0.5)
        assert code in (0, 1)


def test_help_names_every_topic_and_the_form_of_each(asked: Cell):
    topics = said(asked, "help")
    for words in ("ALTER IORMPLAN", "DROP FLASHCACHE", "LIST METRICHISTORY", "DESCRIBE", "LIST"):
        assert f"\t {words}\n" in topics
    assert "ALTER IORMPLAN {[OBJECTIVE=]" in said(asked, "help alter iormplan")
    assert said(asked, "help list").count("LIST ") == 12
    assert asked.answer("help dance")[1] == 1


def test_describe_says_what_can_be_changed(asked: Cell):
    assert rows(said(asked, "describe metriccurrent"))[0] == ["name"]
    lines = said(asked, "describe griddisk").splitlines()
    assert [line.split()[0] for line in lines if line.endswith("modifiable")] == ["cachingPolicy"]
    for kind in KINDS:
        assert said(asked, f"describe {kind}").splitlines()[0].split()[0] in ATTRIBUTES[kind]


def test_space_is_given_in_units_of_16_mb():
    asked = cell(seconds=1)
    said(asked, "drop flashcache")
    disks = ",".join(row[0] for row in rows(said(asked, "list celldisk where diskType=FlashDisk")))
    said(asked, f"create flashcache celldisk='{disks}', size=300M")
    assert rows(said(asked, "list flashcache attributes size")) == [["288M"]]
    said(asked, "create griddisk all flashdisk prefix=SMALL, size=1M")
    assert rows(said(asked, "list griddisk SMALL_FD_00_cell01 attributes size")) == [["16M"]]


@pytest.mark.soak
def test_conditions_know_the_age_and_no_list_shows_it():
    asked = cell(seconds=5 * 60)
    assert len(rows(said(asked, "list metrichistory FL_IO_W where ageInMinutes < 3"))) == 3
    assert "ageInMinutes" not in said(asked, "list metrichistory FL_IO_W detail")
    assert asked.answer("list cell where ageInMinutes < 3")[1] == 1


def test_detail_puts_further_lines_of_a_value_under_it():
    asked = cell()
    said(asked, "alter iormplan dbplan=((name=ORCL, share=4), (name=default, share=1))")
    lines = said(asked, "list iormplan detail").splitlines()
    at = next(n for n, line in enumerate(lines) if "dbPlan:" in line)
    assert lines[at].split("\t ")[-1] == "name=ORCL,share=4"
    assert lines[at + 1].split("\t ")[-1] == "name=default,share=1"
    assert lines[at + 1].split("\t ")[1].strip() == ""


def test_order_by_sorts_numbers_as_numbers(asked: Cell):
    text = "list metriccurrent attributes metricValue where objectType = FLASHCACHE order by metricValue desc limit 200"
    values = [float(row[0].split()[0].replace(",", "").rstrip("%")) for row in rows(said(asked, text))]
    assert values[0] > 0
    assert values == sorted(values, reverse=True)


def test_a_refusal_in_xml_is_a_document():
    output, code = cell().answer("list nothing", xml=True)
    assert code == 1
    assert "<error>CELL-01504: Invalid command syntax.</error>" in output


def test_refused_commands_carry_their_code():
    with pytest.raises(RefusedError, match="CELL-02026"):
        parse_command("list cell order by name")


def test_a_dropped_flash_cache_is_empty_and_a_new_one_has_its_size():
    asked = cell(seconds=5)
    assert value(asked, "FC_BY_USED") > 0
    assert "successfully dropped" in said(asked, "drop flashcache")
    assert said(asked, "list flashcache") == ""
    assert value(asked, "FC_BY_USED") == 0
    asked.rack.advance(5 * 10**9)
    assert value(asked, "FC_BY_USED") == 0
    assert said(asked, "list flashcachecontent") == ""
    output, code = asked.answer("drop flashcache")
    assert (code, "does not exist" in output) == (1, True)
    assert asked.answer("create flashcache all size=400G")[1] == 1
    said(asked, "create flashcache all size=100G")
    assert "100G" in said(asked, "list flashcache attributes size")
    asked.rack.advance(5 * 10**9)
    assert value(asked, "FC_BY_USED") > 0


def test_flash_log_off_in_the_plan_ends_the_race_and_not_the_writes():
    asked = cell(seconds=5)
    said(asked, "alter iormplan dbplan=((name=ORCL, flashLog=off), (name=other, flashLog=on))")
    asked.rack.advance(10**9)
    raced, asked_for = value(asked, "FL_IO_W"), value(asked, "FL_RQ_W")
    asked.rack.advance(10 * 10**9)
    assert value(asked, "FL_IO_W") == raced
    assert value(asked, "FL_RQ_W") > asked_for + 50
    assert value(asked, "FL_IO_W_SKIP_IORM_PLAN") >= value(asked, "FL_RQ_W") - asked_for
    said(asked, "alter iormplan dbplan=''")
    asked.rack.advance(5 * 10**9)
    assert value(asked, "FL_IO_W") > raced + 50


def test_a_plan_without_shares_lets_no_database_wait_for_its_turn():
    """It once counted as one share each, and held the requests of all back."""
    settings = {"cells.disks": "3", "TEST.workload.sessions": "200"}
    load = Load({"kind": "key-lookup", "keys": 4 * 10**9}, 200, 1, settings)
    asked = Cell(Rack("model:exadata-x2-shared", load), 0)

    def waited_ms() -> float:
        asked.rack.advance(10**9)
        rows = asked.rack.core.collect(0)["rows"]
        return sum(row[3] for row in rows if row[2] in ("DB_IO_WT_SM", "DB_IO_WT_LG"))

    assert waited_ms() > 0
    said(asked, "alter iormplan dbplan=((name=ORCL, flashLog=off), (name=other, flashLog=on))")
    before = waited_ms()
    assert waited_ms() == before
    said(asked, "alter iormplan dbplan=((name=ORCL, share=1, flashLog=off))")
    assert waited_ms() > before


def test_an_inactive_plan_is_kept_and_not_in_force():
    asked = cell()
    said(asked, "alter iormplan dbplan=((name=ORCL, flashLog=off))")
    said(asked, "alter iormplan inactive")
    assert asked.facts()["plan"] == {}
    assert "flashLog=off" in said(asked, "list iormplan detail")
    said(asked, "alter iormplan active")
    assert asked.facts()["plan"]["ORCL"]["flash_log"] is False


def test_a_write_back_cache_is_flushed_before_it_is_dropped():
    asked = cell(seconds=60, cells__flash_cache__mode="write-back")
    assert asked.answer("drop flashcache")[1] == 1
    said(asked, "alter flashcache all flush")
    assert "working" in said(asked, "list flashcache attributes flushstatus")
    asked.rack.advance(60 * 10**9)
    assert "completed" in said(asked, "list flashcache attributes flushstatus")
    said(asked, "drop flashcache")
    said(asked, "alter cell flashCacheMode=writethrough")
    said(asked, "create flashcache all")
    assert "WriteThrough" in said(asked, "list cell attributes flashCacheMode")


def test_the_flash_log_is_dropped_and_created():
    asked = cell(seconds=2)
    said(asked, "drop flashlog")
    assert said(asked, "list flashlog") == ""
    said(asked, "create flashlog all")
    assert "512M" in said(asked, "list flashlog detail")


def test_grid_disks_on_flash_take_space_and_have_counters_of_zero():
    asked = cell(seconds=2)
    said(asked, "drop flashcache")
    told = said(asked, "create griddisk all flashdisk prefix=RF, size=5G")
    assert told.count("successfully created") == 16
    assert asked.answer("create griddisk all flashdisk prefix=RF size=1G")[1] == 1
    (row,) = rows(said(asked, "list griddisk RF_FD_00_cell01 attributes size, asmModeStatus"))
    assert row == ["5G", "UNUSED"]
    (counter,) = rows(said(asked, "list metriccurrent GD_IO_RQ_W_SM where metricObjectName = RF_FD_00_cell01"))
    assert counter[-1] == "0 IO requests"
    said(asked, "drop griddisk all flashdisk prefix=RF")
    assert said(asked, "list griddisk where name like 'RF_.*'") == ""


def test_the_caching_policy_of_a_group_is_set():
    asked = cell()
    names = [row[0] for row in rows(said(asked, "list griddisk where name like 'DATA_.*'"))]
    said(asked, f"alter griddisk {', '.join(names)} cachingPolicy=none")
    policies = rows(said(asked, "list griddisk attributes cachingPolicy where name like 'DATA.*'"))
    assert {row[0] for row in policies} == {"none"}


def test_a_restart_begins_the_counters_and_the_history_anew():
    asked = cell(seconds=130)
    assert len(asked.rack.samples[0]) > 2
    began = asked.rack.service_began_ns(0)
    said(asked, "alter cell restart services cellsrv")
    assert asked.rack.service_began_ns(0) == began + 130 * 10**9
    assert rows(said(asked, "list metriccurrent FL_RQ_W")) == [["FL_RQ_W", "FLASHLOG", "0 IO requests"]]
    assert len(rows(said(asked, "list metrichistory FL_RQ_W"))) == 1
