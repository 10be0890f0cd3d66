"""The tables of a map as Spark SQL: how rows are built, which conditions can be pushed, and what is refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from wide_tables import ORDERS, kind, shop, table

from dbdyno.base.errors import WideError
from dbdyno.wide.catalog import CLUSTERING, PARTITION, REGULAR
from dbdyno.wide.decode import converter
from dbdyno.wide.mapping import WideMap, map_of
from dbdyno.wide.pushdown import plan_scan
from dbdyno.wide.query_analysis import analyse_query
from dbdyno.wide.spark import JARS, cause_of, check_scala_version, is_pushed, jars, transpile
from dbdyno.wide.spark_views import view


def made(text: str, found: WideMap | None = None) -> str:
    """Return the view for the only scan of a query."""
    found = found or shop()
    ((relation, wanted),) = analyse_query(text, found).scans.values()
    scan = plan_scan(relation, found.tables[relation.of], wanted)
    return view(relation, scan.table, scan.columns, "s")


def test_a_parent_is_one_row_for_each_partition_and_a_child_has_clustering_columns() -> None:
    assert made("select name from customers") == (
        "select `name` as `name` from (select `customer_id`, max(`name`) as `name` from s group by `customer_id`)"
    )
    assert made("select order_no from orders") == (
        "select `order_no` as `order_no` from s where cast(`order_date` as string) is not null"
    )


def test_elements_are_exploded_with_what_tells_them_apart() -> None:
    tags = made("select * from orders_tags")
    assert "_dbdyno_at as `position`" in tags
    assert "from s lateral view posexplode(`tags`) _dbdyno as _dbdyno_at, _dbdyno_value where" in tags
    assert "explode(map_entries(`attrs`))" in made("select * from orders_attrs")
    phones = made("select * from customers_phones")
    assert "(select `customer_id`, max(`phones`) as `phones` from s group by `customer_id`) lateral view" in phones
    assert made("select street from customers_home").endswith("where `home` is not null")


def test_a_decimal_is_held_to_the_type_that_the_map_names() -> None:
    sql = made("select amount from orders")
    assert "cast(`amount` as decimal(38,10)) is distinct from `amount`, raise_error('dbdyno: " in sql


def test_what_spark_does_not_read_alike_is_refused_with_its_place() -> None:
    odd = table(("id", PARTITION, "int"), ("n", CLUSTERING, "int"), ("t", REGULAR, "frozen<list<frozen<list<int>>>>"))
    found = map_of("shop", {odd.name: odd}, {odd.name: ("kids", "parents")})
    with pytest.raises(WideError, match="Spark cannot read a list as varchar") as caught:
        made("select value from kids_t", found)
    assert "orders_by_customer, column value" in str(caught.value.where)


@pytest.mark.parametrize(
    ("text", "pushed"),
    [
        ("select * from orders where customer_id = 1 and order_date > date '2026-01-01'", True),
        ("select * from orders where order_date > date '2026-01-01'", False),
        ("select * from orders where status = 'open'", True),
        ("select * from orders where status = 'open' and order_date > date '2026-01-01'", False),
        ("select * from orders where rate = 1.5", False),
        ("select * from orders where customer_id = 1 and customer_id in (1, 2)", False),
    ],
)
def test_the_connector_pushes_only_what_needs_no_allow_filtering(text: str, pushed: bool) -> None:
    ((relation, wanted),) = analyse_query(text, shop()).scans.values()
    assert is_pushed(plan_scan(relation, ORDERS, wanted), filtering=False) == pushed
    assert is_pushed(plan_scan(relation, ORDERS, wanted, filtering=True), filtering=True)


def test_of_a_key_of_two_columns_only_the_last_may_be_in() -> None:
    two = table(("a", PARTITION, "int"), ("b", PARTITION, "int"), ("n", CLUSTERING, "int"))
    found = map_of("shop", {two.name: two}, {two.name: ("kids", "parents")})
    for text, pushed in (("a = 1 and b in (1, 2)", True), ("a in (1, 2) and b = 1", False), ("a = 1", False)):
        ((relation, wanted),) = analyse_query(f"select * from kids where {text} and n > 3", found).scans.values()
        assert is_pushed(plan_scan(relation, two, wanted), filtering=False) == pushed, text


def test_sql_of_duckdb_becomes_that_of_spark_and_code_of_java_is_refused() -> None:
    sql = transpile("select a, count(*) from _scan_0 as t group by a order by a")
    assert sql.endswith("ORDER BY a NULLS LAST")
    for odd in ("select reflect('java.lang.System', 'exit', 1)", "select java_method('a', 'b')"):
        with pytest.raises(WideError, match="runs Java code"):
            transpile(odd)


def test_of_a_task_that_failed_the_root_of_it_is_told() -> None:
    said = (
        "An error occurred.\n: SparkException: Job aborted due to stage failure: most recent failure:"
        " Lost task 1.0 (host executor driver): org.apache.spark.SparkException: Exception thrown\n\tat x.y(z)\n"
        "Caused by: java.util.concurrent.ExecutionException: \nCaused by: a.b.DriverTimeoutException: Query timed out\n"
    )
    assert cause_of(said) == "DriverTimeoutException: Query timed out"
    assert cause_of(said.partition("\n\tat")[0]) == "SparkException: Exception thrown"
    begun = "An error occurred while calling o395.next.\n: a.b.DriverTimeoutException: Query timed out\n\tat x.y(z)"
    assert cause_of(begun) == "DriverTimeoutException: Query timed out"
    assert cause_of(begun.replace(": Query timed out", "")) == "DriverTimeoutException"
    assert cause_of("[TABLE_OR_VIEW_NOT_FOUND] there is none") is None


def test_without_the_connector_the_next_step_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JARS, str(tmp_path))
    with pytest.raises(WideError, match="Spark Cassandra connector is not installed") as caught:
        jars()
    assert "make setup-wide" in str(caught.value.next_step)


@pytest.mark.parametrize(
    ("months", "days", "nanoseconds", "said"),
    [
        (15, 15, 14_706_007_008_009, "1y3mo15d4h5m6s7ms8us9ns"),
        (-1, 0, -10_800_000_000_000, "-1mo3h"),
        (0, 2, 0, "2d"),
        (0, 0, 0, ""),
    ],
)
def test_a_duration_is_text_in_cassandras_own_form(months: int, days: int, nanoseconds: int, said: str) -> None:
    convert = converter(kind("duration"), "varchar")
    assert convert(SimpleNamespace(months=months, days=days, nanoseconds=nanoseconds)) == said


def test_a_connector_of_another_scala_is_refused_before_spark_starts(tmp_path: Path) -> None:
    (tmp_path / "scala-library-2.13.16.jar").touch()
    found = [Path("spark-cassandra-connector_2.12-3.5.1.jar")]
    with pytest.raises(
        WideError,
        match=r"spark-cassandra-connector_2.12-3.5.1.jar does not match Spark, which "
        r"is built with Scala 2.13",
    ):
        check_scala_version(found, tmp_path)
    check_scala_version([Path("spark-cassandra-connector_2.13-3.5.1.jar")], tmp_path)
