"""Two plans compared: operators moved, merged, removed or added; conditions are recognised across engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import dbdyno, succeeded
from dbdyno.base.errors import FlowError
from dbdyno.flow import spark_plans
from dbdyno.flow.answers import answer, difference
from dbdyno.flow.compare import compare, join_tree
from dbdyno.flow.conditions import atoms
from dbdyno.flow.pig_plans import parse_plan as pig_plan
from dbdyno.flow.polars_plans import parse_graph as polars_plan
from dbdyno.flow.step import Flow, Kind, Step
from dbdyno.flow.tables import input_tables
from skipped import skipped_on

A, B, C = (Step(Kind.SCAN, name, rows=size) for name, size in (("a", 100), ("b", 50), ("c", 10)))


def join(*inputs: Step, rows: int | None = None) -> Step:
    return Step(Kind.JOIN, "on x = y", inputs=inputs, rows=rows)


def where(below: Step, *conditions: str, rows: int | None = None) -> Step:
    return Step(Kind.FILTER, " and ".join(conditions), conditions, (below,), rows)


def marks(written: Step, executed: Step) -> dict[str, str]:
    return compare(Flow("x", written, executed, "off")).marks()


@pytest.mark.parametrize(
    "text",
    [
        "((region = 'south') AND (amount > 90))",
        "((region#2 = south) AND (amount#7L > 90))",
        'col("region") == "south" & (col("amount") > 90)',
        "c.region='south' and o.amount>90",
        "((CAST(region AS VARCHAR) = 'south') AND (amount > 90))",
    ],
)
def test_a_condition_is_known_again_whatever_engine_wrote_it(text: str) -> None:
    assert atoms(text) == ("region = south", "amount > 90")


def test_what_is_joined_by_or_stays_one() -> None:
    assert atoms("((a = 1) OR ((b = 2) AND (c = 3)))") == ("(a = 1) OR ((b = 2) AND (c = 3))",)


def test_a_filter_below_the_join_was_moved_and_one_in_a_scan_was_merged() -> None:
    written = where(join(A, B), "x = 1", "y = 2")
    executed = join(where(A, "x = 1"), Step(Kind.SCAN, "b", ("y = 2",)))
    assert marks(written, executed) == {"x = 1": "moved", "y = 2": "merged"}
    (moved, merged) = compare(Flow("x", written, executed, "off")).changes
    assert moved.sentence == "x = 1: moved down, below 1 join."
    assert merged.sentence == "y = 2: merged into the scan of b, below 1 join."


def test_what_stays_is_said_to_stay() -> None:
    same = where(join(A, B), "x = 1")
    compared = compare(Flow("x", same, same, "off"))
    assert compared.marks() == {"x = 1": "same"}
    assert compared.headline() == "The steps were executed in the order in which they were written."


def test_conditions_that_went_or_came_are_told() -> None:
    assert marks(where(A, "true"), where(A, "x is not null")) == {"true": "dropped", "x is not null": "added"}


def test_joins_in_another_order_are_told_from_swapped_sides() -> None:
    written = join(join(A, B), C)
    assert join_tree(written) == "((a x b) x c)"
    (other,) = compare(Flow("x", written, join(A, join(B, C)), "off")).changes
    assert other.sentence == "joins: written ((a x b) x c), executed (a x (b x c))."
    (swapped,) = compare(Flow("x", written, join(C, join(B, A)), "off")).changes
    assert "sides swapped" in swapped.sentence


def test_sort_and_limit_become_one_and_a_group_may_go() -> None:
    written = Step(Kind.LIMIT, "5", inputs=(Step(Kind.SORT, "by x", inputs=(A,)),))
    assert marks(written, Step(Kind.TOP, "5", inputs=(A,))) == {"sort": "merged"}
    assert marks(Step(Kind.GROUP, "by x", inputs=(A,)), A) == {"group": "dropped"}


def test_rows_that_pass_between_steps_are_counted() -> None:
    written = where(join(A, B, rows=5000), "x = 1", rows=7)
    executed = join(where(A, "x = 1", rows=1), B, rows=7)
    assert compare(Flow("x", written, executed, "off")).rows_out == (5150, 151)


PIG = """#-----------------------------------------------
# New Logical Plan:
#-----------------------------------------------
r: (Name: LOStore Schema: name#2:chararray)
|
|---f: (Name: LOFilter Schema: c::id#1:int,c::name#2:chararray,c::region#3:chararray,o::amount#6:int)
    |   |
    |   (Name: And Type: boolean Uid: 35)
    |   |
    |   |---(Name: Equal Type: boolean Uid: 31)
    |   |   |
    |   |   |---c::region:(Name: Project Type: chararray Uid: 3 Input: 0 Column: 2)
    |   |   |
    |   |   |---(Name: Constant Type: chararray Uid: 30)
    |   |
    |   |---(Name: GreaterThan Type: boolean Uid: 34)
    |       |
    |       |---o::amount:(Name: Project Type: int Uid: 6 Input: 0 Column: 5)
    |       |
    |       |---(Name: Constant Type: int Uid: 33)
    |
    |---j: (Name: LOJoin(HASH) Schema: c::id#1:int,o::customer#5:int)
        |   |
        |   id:(Name: Project Type: int Uid: 1 Input: 0 Column: 0)
        |   |
        |   customer:(Name: Project Type: int Uid: 5 Input: 1 Column: 1)
        |
        |---c: (Name: LOLoad Schema: id#1:bytearray)RequiredFields:null
        |
        |---o: (Name: LOLoad Schema: no#4:bytearray)RequiredFields:null
#-----------------------------------------------
# Physical Plan:
#-----------------------------------------------
f: Filter[bag] - scope-11
|   |---Constant(south) - scope-13
|   |---Constant(90) - scope-28
# Map Reduce Plan
"""


def test_pigs_plan_is_read_with_the_constants_of_its_physical_plan() -> None:
    plan = pig_plan(PIG)
    (filtered,) = plan.inputs
    assert filtered.atoms == ("region = south", "amount > 90")
    (joined,) = filtered.inputs
    assert (joined.kind, joined.text) == (Kind.JOIN, "on id = customer")
    assert [one.text for one in joined.inputs] == ["c", "o"]


def test_a_graph_of_polars_is_read() -> None:
    graph = r"""digraph polars {
3 [label="equi-join\nleft_on:\nid = col(\"id\")\nright_on:\ncustomer = col(\"customer\")\nhow: INNER",style=filled];
1 [label="multi-scan[csv]\n1 source\nfilter: col(\"region\") == \"south\""];
1 -> 3;
2 [label="multi-scan[csv]\n1 source"];
2 -> 3;
}"""
    plan = polars_plan(graph, ["customers", "orders"])
    assert (plan.kind, plan.text) == (Kind.JOIN, "inner on id = customer")
    assert [(one.text, one.atoms) for one in plan.inputs] == [("customers", ("region = south",)), ("orders", ())]


QUERY = """select c.name, count(*) as n from customers c join orders o on c.id = o.customer
where c.region = 'south' and o.amount > 90 group by c.name order by n desc, c.name"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Write files of customers and orders, a query on them, and the same query in Pig."""
    customers = "".join(f"{n},c{n},{'south' if n % 4 == 0 else 'north'}\n" for n in range(100))
    orders = "".join(f"{n},{n % 100},{n % 97}\n" for n in range(500))
    (tmp_path / "customers.csv").write_text("id,name,region\n" + customers)
    (tmp_path / "orders.csv").write_text("no,customer,amount\n" + orders)
    (tmp_path / "query.sql").write_text(QUERY + ";\n")
    (tmp_path / "script.pig").write_text(
        "c = LOAD 'customers.csv' USING PigStorage(',') AS (id:int, name:chararray, region:chararray);\n"
        "o = LOAD 'orders.csv' USING PigStorage(',') AS (no:int, customer:int, amount:int);\n"
        "j = JOIN c BY id, o BY customer;\n"
        "f = FILTER j BY c::region == 'south' AND o::amount > 90;\n"
        "g = GROUP f BY c::name;\n"
        "s = FOREACH g GENERATE group AS name, COUNT(f) AS n;\n"
        "r = ORDER s BY n DESC, name;\nSTORE r INTO 'out';\n"
    )
    return tmp_path


def words(shop: Path, engine: str) -> list[str]:
    if engine == "pig":
        return ["flow", "show", str(shop / "script.pig")]
    tables = [f"--table={name}={shop / name}.csv" for name in ("customers", "orders")]
    return ["flow", "show", str(shop / "query.sql"), "--engine", engine, *tables]


def test_duckdb_tells_rows_of_both_plans(shop: Path) -> None:
    done = succeeded(*words(shop, "duckdb"))
    assert "2 steps differ from what was written" in done.stdout
    assert "region = south: moved down, below 1 join." in done.stdout
    csv = dbdyno(*words(shop, "duckdb"), "--format", "csv").stdout.splitlines()
    assert csv[0] == "plan,level,kind,text,rows,elapsed_ns,mark"
    assert sum(line.startswith("written,") for line in csv) == 6


@pytest.mark.parametrize(
    ("kind", "words", "text"),
    [
        (Kind.GROUP, "HashAggregate(keys=[region#17, id#3L], functions=[sum(amount#40)])", "by region, id"),
        (Kind.GROUP, "HashAggregate(keys=[], functions=[count(1)])", ""),
        (Kind.SORT, "Sort [s#12L DESC NULLS LAST, name#4 ASC NULLS FIRST], true, 0", "by s desc, name"),
        (Kind.TOP, "TakeOrderedAndProject(limit=3, orderBy=[s#12L ASC NULLS FIRST], output=[s#12L])", "by s"),
    ],
)
def test_steps_of_spark_say_by_what_they_group_and_sort(kind: str, words: str, text: str) -> None:
    assert spark_plans._words(kind, words.partition("(")[0], words, None, {}) == (text, ())


# Py4J leaves the sockets to its JVM to the collector.
LEFT_OPEN = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")


@LEFT_OPEN
@pytest.mark.soak
@pytest.mark.parametrize("engine", ["polars", "spark", "pig"])
def test_real_engines_push_both_conditions_below_the_join(shop: Path, engine: str) -> None:
    if engine != "pig":
        pytest.importorskip({"polars": "polars", "spark": "pyspark"}[engine], reason="make setup-clients; make soak")
    else:
        from dbdyno.flow.pig_plans import jars

        with skipped_on(FlowError):
            jars()
    done = succeeded(*words(shop, engine), "--format", "json")
    for condition in ("region = south", "amount > 90"):
        assert f'"{condition}: m' in done.stdout, done.stdout
        assert "below 1 join" in done.stdout


@pytest.mark.parametrize(
    ("query", "said"),
    [("select * from nope", "does not exist"), ("drop table orders", "expected one SELECT"), ("select (", "syntax")],
)
def test_a_query_that_cannot_be_is_an_error_with_a_place(shop: Path, query: str, said: str) -> None:
    (shop / "query.sql").write_text(query)
    done = dbdyno(*words(shop, "duckdb"))
    assert done.returncode == 2
    assert said in done.stderr
    assert "the query" in done.stderr


def test_tables_are_files_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "a.txt").write_text("x\n1\n")
    for word, said in (
        ("a", "is not NAME=FILE"),
        ("a b=x.csv", "is not NAME=FILE"),
        (f"a={tmp_path}/a.txt", "neither .csv nor .parquet"),
        (f"a={tmp_path}/b.csv", "there is no such file"),
    ):
        with pytest.raises(FlowError, match=said):
            input_tables([word])
    with pytest.raises(FlowError, match="two tables have the name a"):
        input_tables([f"a={tmp_path}/a.csv"] * 2)


def checked(shop: Path, *more: str) -> list[str]:
    tables = [f"--table={name}={shop / name}.csv" for name in ("customers", "orders")]
    return ["flow", "check", str(shop / "query.sql"), *tables, *more]


def test_duckdb_answers_alike_with_and_without_its_optimizer(shop: Path) -> None:
    done = dbdyno(*checked(shop))
    assert (done.returncode, done.stdout) == (0, "The same 5 rows from all: duckdb, as written; duckdb.\n")


def test_answers_that_differ_are_told_with_a_row() -> None:
    first, other = answer("a", False, [(1, "x"), (2, None)]), answer("b", True, [("1.0", "x"), (3, "")])
    assert difference(first, first) is None
    assert difference(first, other) == (
        "a, as written alone has 1 rows, such as (2, ); b alone has 1 rows, such as (3, )"
    )


@LEFT_OPEN
@pytest.mark.soak
def test_four_engines_answer_alike_both_ways(shop: Path) -> None:
    pytest.importorskip("polars", reason="make setup-clients")
    pytest.importorskip("pyspark", reason="make soak")
    done = succeeded(*checked(shop, "--engine", "duckdb,polars,spark", "--pig", str(shop / "script.pig")))
    assert "pig, as written; pig" in done.stdout
    assert not (shop / "out").exists()
