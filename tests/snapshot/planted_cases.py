"""Thirty causes that make a server slower, each planted into the same mixed load."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import psycopg
from planted_mix import Case, Mix
from snapshot_help import FACTS, FAMILY, FOREIGN_KEY, OTHER_STATISTICS

from slow_storage import SlowStorage
from together import together

RELOAD = "select pg_reload_conf()"
Made = Callable[[Mix], Case]
CASES: dict[str, Made] = {}


def case(made: Made) -> Made:
    CASES[made.__name__] = made
    return made


def alter_system(mix: Mix, **settings: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return functions that set these settings for the entire server, and that reset them."""
    lines = [f"alter system set {name} = '{value}'" for name, value in settings.items()]
    undo = lambda: mix.lab.run("alter system reset all", RELOAD, "select pg_sleep(0.2)")  # noqa: E731
    return mix.plant(*lines, RELOAD, "select pg_sleep(0.2)"), undo


def table(mix: Mix, columns: str, row: str, rows: int) -> None:
    """Create a table, fill it with rows that are a function of their number n, and vacuum it."""
    name = columns.partition(" ")[0]
    fill = f"insert into {name} select {row} from generate_series(1, {rows}) n"
    mix.lab.run(f"create table {columns}", fill, f"vacuum analyze {name}")


# ---- plans ----------------------------------------------------------------------------------------------------------


@case
def a_dropped_index(mix: Mix) -> Case:
    mix.lab.run("create index sale_item on sale (item)", "analyze sale")
    return Case(
        mix.run("select sum(amount) from sale where item = 5", times=20),
        mix.plant("drop index sale_item"),
        "index sale_item on sale was dropped",
    )


@case
def statistics_of_another_day(mix: Mix) -> Case:
    mix.lab.run(*FACTS)
    return Case(
        mix.run("select count(b) from facts where a < 3", times=8),
        mix.plant(*OTHER_STATISTICS),
        "another plan since facts was analyzed",
    )


@case
def extended_statistics_dropped(mix: Mix) -> Case:
    """Plant two columns with equal values: without the statistics the planner expects one row from each side, and joins
    both in a nested loop.
    """
    mix.lab.run(
        "create table town (zip int, city int, v int)",
        "insert into town select n % 200, n % 200, n from generate_series(1, 40000) n",
        "create statistics town_zip_city (dependencies, mcv) on zip, city from town",
        "alter table town alter zip set statistics 1000",
        "alter table town alter city set statistics 1000",
        "vacuum analyze town",
    )
    query = (
        "select sum(b.v) from town a join town b on a.v = b.v where a.zip = 7 and a.city = 7 and b.zip = 7"
        " and b.city = 7"
    )
    return Case(
        mix.run(query, times=4),
        mix.plant("drop statistics town_zip_city"),
        "statistics object town_zip_city on town was dropped",
    )


@case
def a_setting_of_the_planner(mix: Mix) -> Case:
    mix.lab.run(
        "create table facts (a int, b int, c text)",
        "insert into facts select n * 7919 % 2000, n, repeat('x', 100) from generate_series(1, 60000) n",
        "create index facts_a on facts (a)",
        "vacuum analyze facts",
    )
    plant, undo = alter_system(mix, enable_bitmapscan="off", random_page_cost="400")
    return Case(
        mix.run("select sum(b) from facts where a between 10 and 40", times=8),
        plant,
        "other plans for ",
        share=False,  # those of the other statements are others as well
        says="random_page_cost: 4 → 400",
        undo=undo,
    )


@case
def a_setting_of_a_role(mix: Mix) -> Case:
    off = [f"alter role shop set enable_{kind}scan = off" for kind in ("index", "bitmap", "indexonly")]
    asked = ("select sum(amount) from sale where cust = 12 and item > 0", "select kind from item where id = 5")
    return Case(
        mix.run(*asked, times=15, user="shop"),
        mix.plant(*off),
        "settings of role shop: enable_bitmapscan",
        "Slower: settings of role shop",
        undo=lambda: mix.lab.run("alter role shop reset all"),
    )


@case
def a_setting_of_a_function(mix: Mix) -> Case:
    body = "select sum(amount) from sale where cust = 5"
    mix.lab.run(f"create function dear() returns bigint language sql stable as '{body}'")
    slow = [f"alter function dear() set enable_{kind}scan = off" for kind in ("bitmap", "index")]
    return Case(
        mix.run("select dear()", times=20),
        mix.plant(*slow),
        "settings of function public.dear",
    )


@case
def a_prepared_plan_that_fits_all_values(mix: Mix) -> Case:
    """Plant a value that nearly all rows have, so that the generic plan is a sequential scan."""
    mix.lab.run(
        "create table task (state int, v int)",
        "insert into task select case n % 4000 when 0 then 2 when 1 then 3 else 1 end, n"
        " from generate_series(1, 20000) n",
        "create index task_state on task (state)",
        "vacuum analyze task",
    )

    def load(mode: str) -> Callable[[], None]:
        def asks() -> None:
            with mix.session() as conn:
                conn.execute(f"set plan_cache_mode = '{mode}'")  # type: ignore[arg-type]
                conn.execute("prepare one(int) as select sum(amount) from task join sale on id = v where state = $1")
                mix.ask(conn, "execute one(2)", 10, "planted")

        return asks

    return Case(
        load("force_custom_plan"),
        lambda: None,
        "another plan for sale, with the same indexes",
        "Slower: another plan for sale",
        after=load("force_generic_plan"),
    )


@case
def compiling_turned_on(mix: Mix) -> Case:
    mix.lab.run("alter system set jit = off", "alter system set jit_above_cost = 10", RELOAD, "select pg_sleep(0.2)")
    plant, undo = alter_system(mix, jit="on")
    ask = "select kind, sum(price), max(price + 1), min(price - 1) from item where price % 7 = 3 group by kind"
    return Case(
        mix.run(ask, times=5),
        plant,
        "statements are now compiled (JIT)",
        r"Slower: statements are now compiled \(JIT\)",
        says="jit: off → on",
        share=False,  # one of the other statements is compiled as well
        undo=undo,
    )


@case
def parallel_workers_used_up(mix: Mix) -> Case:
    mix.lab.run(
        "create table big (a int, b int)",
        "insert into big select n, n from generate_series(1, 1500000) n",
        "alter table big set (parallel_workers = 2)",
        "vacuum analyze big",
    )
    plant, undo = alter_system(mix, max_parallel_workers="0")
    return Case(
        mix.run("select count(*) from big where a % 7 = 3", times=3),
        plant,
        "statements get no parallel workers",
        says="max_parallel_workers: 8 → 0",
        sampled=True,
        undo=undo,
    )


# ---- work and data --------------------------------------------------------------------------------------------------


@case
def sorts_that_spill(mix: Mix) -> Case:
    mix.lab.run("alter system set work_mem = '16MB'", RELOAD, "select pg_sleep(0.2)")
    plant, undo = alter_system(mix, work_mem="64kB")
    return Case(
        mix.run("select count(*) from (select * from sale order by amount, cust desc offset 0) s", times=10),
        plant,
        "sorts and hashes spill to temporary files",
        "Slower: sorts and hashes spill",
        says="work_mem 16384 → 64 kB",
        undo=undo,
    )


@case
def a_release_with_a_query_in_a_loop(mix: Mix) -> Case:
    load = mix.run("select sum(price) from item where kind = 5", times=4)

    def release() -> None:
        load()
        mix.run("select price + 1 from item where id = 99", times=500)()

    return Case(
        load, lambda: None, "new statement: select price", "More work: new statement: select price", after=release
    )


@case
def a_new_statement_that_no_index_serves(mix: Mix) -> Case:
    load = mix.run("select price from item where id = 5", times=4)

    def release() -> None:
        load()
        mix.run("select sum(amount) from sale where item = 77", times=20)()

    return Case(
        load,
        lambda: None,
        "new statement, which reads sale whole",
        "More work: new statement, which reads sale whole",
        after=release,
        says="no index begins with item",
    )


@case
def a_table_that_doubled(mix: Mix) -> Case:
    double = "insert into sale select id + {0}, item, cust + {0}, amount from sale"
    return Case(
        mix.run("select count(*) from sale where amount % 7 = 3", times=8),
        mix.plant(double.format(20000), double.format(40000)),
        "table sale grew",
    )


@case
def a_column_that_made_rows_wide(mix: Mix) -> Case:
    wide = ("alter table sale add note text", "update sale set note = repeat('n', 400)", "vacuum full sale")
    return Case(
        mix.run("select count(*) from sale where amount % 7 = 3", times=8),
        mix.plant(*wide),
        "table sale takes ",
        says="columns that came: note",
    )


@case
def values_that_grew_into_toast(mix: Mix) -> Case:
    mix.lab.run(
        "create table doc (id int primary key, body text)",
        "alter table doc alter body set storage external",
        "insert into doc select n, repeat('d', 500) from generate_series(1, 500) n",
        "vacuum analyze doc",
    )
    return Case(
        mix.run("select sum(length(body || '')) from doc", times=4),
        mix.plant("update doc set body = repeat(md5(id::text), 500)", "vacuum doc"),
        "more is read from the TOAST of doc",
    )


@case
def autovacuum_turned_off(mix: Mix) -> Case:
    mix.lab.run("alter system set autovacuum_naptime = '1h'", "alter system set autovacuum = on", RELOAD)
    off = ("alter system set autovacuum = off", RELOAD, *["update sale set item = item + 1"] * 12)
    return Case(
        mix.run("select count(*) from sale where amount % 7 = 3", times=8),
        mix.plant(*off),
        "autovacuum was turned off, and sale is bloated",
        undo=lambda: mix.lab.run("alter system reset all", RELOAD),
    )


@case
def a_transaction_that_keeps_dead_rows(mix: Mix) -> Case:
    table(mix, "queue (id int primary key, v int)", "n, n", 2000)
    held: list[psycopg.Connection] = []
    vacuum = mix.plant("vacuum queue")

    def load() -> None:
        with mix.session() as conn:
            mix.ask(conn, "update queue set v = v + 1", 2, "planted")
            vacuum()
            mix.ask(conn, "select count(*) from queue where v > 0", 10, "planted")

    def forget() -> None:
        held.append(mix.lab.connect(application_name="forgotten"))
        held[0].execute("begin isolation level repeatable read")
        held[0].execute("select count(*) from queue")

    return Case(
        load,
        forget,
        "table queue is bloated",
        says="of forgotten, idle in transaction): rows that it may see stay",
        sampled=True,
        undo=lambda: [one.close() for one in held] and None,
    )


@case
def hot_updates_lost_to_a_new_index(mix: Mix) -> Case:
    mix.lab.run(
        "create table stock (id int primary key, item int, v int) with (fillfactor = 50)",
        "insert into stock select n, n, n from generate_series(1, 5000) n",
        *(f"create index stock_{n} on stock ({what})" for n, what in enumerate(("item", "item, id", "id, item"))),
        "vacuum analyze stock",
    )
    return Case(
        mix.run("update stock set v = v + 1 where id between 100 and 400", times=12),
        mix.plant("create index stock_v on stock (v)"),
        "index stock_v on stock was created: updates are no longer HOT",
        says="HOT updates 100% → 0%",
    )


@case
def three_indexes_more(mix: Mix) -> Case:
    mix.lab.run("create table log (id serial, a int, b int, c text)")
    insert = "insert into log (a, b, c) select n, n * 7, md5(n::text) from generate_series(1, 300) n"
    more = [f"create index log_{n} on log ({what})" for n, what in enumerate(("md5(c)", "c, a", "b, c"))]
    return Case(
        mix.run(insert, times=8),
        mix.plant(*more),
        "3 indexes on log were created: writes are dearer",
        "Slower: 3 indexes on log were created",
    )


@case
def a_foreign_key_without_an_index(mix: Mix) -> Case:
    mix.lab.run(*FAMILY)
    done = [0]

    def deletes() -> None:
        done[0] += 10
        mix.run(*(f"delete from parent where id = {one}" for one in range(done[0] - 9, done[0] + 1)))()

    words = "foreign key child_parent_fkey has no index on child (parent_id)"
    return Case(deletes, mix.plant(FOREIGN_KEY), words)


@case
def a_trigger_that_scans(mix: Mix) -> Case:
    mix.lab.run(
        "create function looks() returns trigger language plpgsql as"
        " $$ begin perform count(*) from sale where amount % 7 = 1; return new; end $$"
    )
    words = "sale is scanned by trigger t whenever this runs"
    return Case(
        mix.run("update item set price = price where id = 5", times=15),
        mix.plant("create trigger t before update on item for each row execute function looks()"),
        words,
    )


@case
def a_sequence_without_a_cache(mix: Mix) -> Case:
    mix.lab.run("create sequence ticket cache 1000")
    return Case(
        mix.run("select max(nextval('ticket')) from generate_series(1, 8000)", times=4),
        mix.plant("alter sequence ticket cache 1"),
        "sequence ticket caches 1 value; before it was 1,000",
        "Slower: sequence ticket caches 1 value",
    )


# ---- waiting --------------------------------------------------------------------------------------------------------


@case
def an_alter_behind_a_reader(mix: Mix) -> Case:
    """Plant an ALTER TABLE that waits for a reader's open transaction, and sessions that wait for the ALTER TABLE."""
    asked = "select sum(amount) from sale where cust = 3"

    def blocked() -> None:
        reader = mix.lab.connect(application_name="report")
        reader.autocommit = False
        reader.execute("select 1 from sale limit 1")
        with together(mix.plant("alter table sale alter amount set default 5")):
            time.sleep(0.05)
            with together(*[mix.run(asked)] * 3):
                time.sleep(0.4)
                reader.rollback()
        reader.close()

    return Case(
        mix.run(asked, times=3),
        lambda: None,
        "sessions wait for a lock on sale",
        after=blocked,
        says="of report",
        share=False,
        sampled=True,
    )


@case
def a_session_that_forgot_to_commit(mix: Mix) -> Case:
    held: list[psycopg.Connection] = []
    ask = "update sale set amount = amount + 1 where id = 5"

    def forget() -> None:
        held.append(mix.lab.connect(application_name="till"))
        held[0].autocommit = False
        held[0].execute("update sale set amount = 0 where id = 5")

    def load() -> None:
        with mix.session() as conn, contextlib.suppress(psycopg.errors.QueryCanceled):
            conn.execute("set statement_timeout = '300ms'")
            mix.ask(conn, ask, 3, "planted")

    return Case(
        load,
        forget,
        "sessions wait for row locks of each other in update sale",
        says="idle in a transaction",
        share=False,
        sampled=True,
        undo=lambda: [one.close() for one in held] and None,
    )


@case
def a_hot_row(mix: Mix) -> Case:
    ask = "update item set price = price + 1 where id = 7"
    words = "sessions wait for row locks of each other in update item"
    convoy = partial(mix.lab.convoy, ask, mix.run(ask))
    return Case(mix.run(ask, times=3), lambda: None, words, after=convoy, sampled=True)


@case
def a_storm_of_sessions(mix: Mix) -> Case:
    ask = "select price from item where id = 4"

    def storm() -> None:
        for _ in range(60):
            mix.run(ask)()

    return Case(
        mix.run(ask, times=60),
        lambda: None,
        "many more sessions begin",
        "(Slower|Cannot tell): many more sessions begin",
        after=storm,
        share=False,
    )


@case
def checkpoints_that_follow_each_other(mix: Mix) -> Case:
    """Plant frequent checkpoints: the first change of each page after a checkpoint writes the full page to the WAL."""
    table(mix, "page (id int primary key, v int, w text) with (fillfactor = 50)", "n, n, repeat('w', 200)", 24_000)
    mix.lab.run("checkpoint")
    update = mix.run("update page set v = v + 1 where id % 15 = 3", times=3)

    def storm() -> None:
        with mix.session() as conn:
            for _ in range(3):
                conn.execute("set pg_stat_statements.track = 'none'")
                conn.execute("checkpoint")
                conn.execute("reset pg_stat_statements.track")
                mix.ask(conn, "update page set v = v + 1 where id % 15 = 3", 1, "planted")

    return Case(
        update,
        lambda: None,
        "checkpoints follow each other",
        after=storm,
    )


@case
def a_table_swapped_for_one_without_indexes(mix: Mix) -> Case:
    swap = ("create table s2 as select * from sale", "drop table sale", "alter table s2 rename to sale")
    words = "table sale was recreated without its indexes sale_cust, sale_pkey"
    return Case(
        mix.run("select sum(amount) from sale where cust = 3", times=10),
        mix.plant(*swap, "analyze sale", "grant all on sale to shop"),
        words,
        share=False,
    )


@case
def a_cold_cache_after_a_restart(mix: Mix) -> Case:
    """Plant a restart that empties the server's cache but not the system's, so that no session waits longer."""
    table(mix, "wide (id int primary key, filler text)", "n, repeat('x', 900)", 8000)
    return Case(
        mix.run("select sum(length(filler)) from wide where id % 3 = 0", times=8),
        mix.lab.engine.restart,
        "the server was restarted, its cache was cold",
        "(No change larger than|Cannot tell|Slower: the server was restarted)",
        share=False,
    )


@case
def processors_that_others_use(mix: Mix) -> Case:
    """Plant other programs on the host, one per processor."""
    others: list[subprocess.Popen[bytes]] = []
    spin = [sys.executable, "-c", "while True: pass"]

    def end() -> None:
        for one in others:
            one.kill()
            one.wait()

    words = "calls take longer at the same work: others use the processors"
    return Case(
        mix.run("select count(*) from generate_series(1, 200000) n where n % 7 = 3", times=4),
        lambda: others.extend(subprocess.Popen(spin) for _ in range(4 * (os.cpu_count() or 1))),
        words,
        sampled=True,
        share=False,
        undo=end,
    )


@case
def a_log_on_a_slow_device(mix: Mix) -> Case:
    assert isinstance(mix.lab.engine, SlowStorage)
    storage = mix.lab.engine
    return Case(
        mix.run("insert into journal (what) values ('paid')", times=10, options=""),
        lambda: storage.delay_us(20_000),
        "syncs of the WAL became slow",
        share=False,
        sampled=True,
    )


@case
def temporary_files_on_a_slow_device(mix: Mix) -> Case:
    """Plant another tablespace for temporary files, on a device that writes slowly."""
    assert isinstance(mix.lab.engine, SlowStorage)
    storage = mix.lab.engine
    storage.make_tablespace("scratch")
    mix.lab.run("alter system set work_mem = '64kB'", RELOAD, "select pg_sleep(0.2)")
    plant, undo = alter_system(mix, temp_tablespaces="scratch")
    return Case(
        mix.run("select count(*) from (select * from sale order by amount, cust desc offset 0) s", times=4),
        plant,
        "temporary files became slow",
        says="temp_tablespaces: (database) → scratch",
        undo=undo,
    )


@case
def a_standby_that_does_not_replay(mix: Mix) -> Case:
    """Plant a standby query that delays the replay of a vacuum; commits wait until the standby has replayed them."""
    assert mix.standby is not None
    reports: list[psycopg.Connection] = []
    table(mix, "seen (id int primary key, v int)", "n, 1", 2000)
    standby = mix.standby

    def report() -> None:
        conn = psycopg.connect(**standby.conninfo(), autocommit=True)  # type: ignore[arg-type]
        reports.append(conn)
        conn.execute("begin isolation level repeatable read")
        conn.execute("select count(*) from seen")
        mix.plant("set synchronous_commit = local", "delete from seen where id < 1500", "vacuum seen")()

    def load() -> None:
        with mix.session(options="") as conn:  # a statement_timeout ends no wait in a commit
            giving_up = threading.Timer(0.3, conn.cancel)
            giving_up.start()
            mix.ask(conn, "insert into journal (what) values ('paid')", 1, "planted")
            giving_up.cancel()

    return Case(
        load,
        report,
        "commits wait for a standby",
        says="a conflicting statement",
        share=False,
        sampled=True,
        undo=lambda: [one.close() for one in reports] and None,
    )
