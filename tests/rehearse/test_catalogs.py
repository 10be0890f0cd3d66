"""Catalogs read from a server: with the tested setting, by a role that is not a superuser, and with collations."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from rehearsal_help import database

from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.bench.postgres.server import Postgres
from dbdyno.rehearse.catalog import Catalog, read_catalog
from dbdyno.rehearse.new_server import copied_server

OBJECTS = """
create schema app; create table app."Orders" (id int primary key, kind text collate "C", place int);
insert into app."Orders" select i, 'a', i % 7 from generate_series(1, 500) i;
create index "By_kind" on app."Orders" (kind);
create statistics app.s (dependencies) on kind, place from app."Orders";
create view app.paid as select id from app."Orders";
create function app.tax(int) returns int language sql as 'select 1';
create table hidden (id int); insert into hidden select 1; analyze;
create role plain login; grant usage on schema app to plain; grant select on all tables in schema app to plain;
"""


@pytest.fixture(scope="module")
def dsn() -> Iterator[str]:
    with EmbeddedPostgres() as running:
        yield database(running, "objects", OBJECTS)


@pytest.fixture(scope="module")
def catalog(dsn: str) -> Catalog:
    return read_catalog(Postgres.open(dsn))


def test_names_have_their_schema_and_their_case(catalog: Catalog) -> None:
    assert "app.By_kind" in catalog.indexes
    assert catalog.statistics_tables == {"app.s": "app.Orders"}
    assert (set(catalog.views), set(catalog.functions)) == ({"app.paid"}, {"app.tax"})
    assert catalog.columns["app.Orders.kind"] == "text collate C"
    assert catalog.unread == ()


def test_definitions_do_not_depend_on_the_search_path(dsn: str, catalog: Catalog) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("alter database objects set search_path = app")
    other = read_catalog(Postgres.open(dsn))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("alter database objects reset search_path")
    assert (other.views, other.statistics, other.functions) == (catalog.views, catalog.statistics, catalog.functions)
    assert (other.settings["search_path"], catalog.settings["search_path"]) == ("app", '"$user", public')


def test_a_role_that_is_no_superuser_sees_the_sizes_and_its_own_statistics(dsn: str, catalog: Catalog) -> None:
    plain = read_catalog(Postgres.open(make_conninfo(dsn, user="plain")))
    assert plain.relations["app.Orders"] == catalog.relations["app.Orders"]
    assert plain.relations["app.Orders"].analyzed_columns == 3
    assert plain.relations["hidden"].analyzed_columns is None, "not readable is not missing"
    assert catalog.relations["hidden"].analyzed_columns == 1


def test_the_setting_under_test_is_in_the_new_catalog(dsn: str, catalog: Catalog) -> None:
    changed = read_catalog(Postgres.open(dsn), ("set work_mem = '77kB'", "set nonsense"))
    assert (changed.settings["work_mem"], catalog.settings["work_mem"]) == ("77 kB", "4096 kB")


def test_what_a_server_refuses_to_read_is_named(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("revoke select on pg_statistic_ext from public")
    plain = read_catalog(Postgres.open(make_conninfo(dsn, user="plain")))
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("grant select on pg_statistic_ext to public")
    assert plain.unread == ("extended statistics",)


def test_a_database_with_icu_names_its_provider_locale_and_version_and_the_copy_has_them() -> None:
    with EmbeddedPostgres() as running:
        with psycopg.connect(**running.conninfo()) as connection:
            if connection.info.server_version < 150000:
                pytest.skip("PostgreSQL below 15 has no ICU databases: tools/matrix --fetch 15 gets one that has")
        where = database(running, "icu", template="template0", locale_provider="icu", icu_locale="de-AT")
        server = Postgres.open(where)
        found = read_catalog(server)
        with copied_server(server, running.binaries, lambda _: None) as (copy, _):
            copied = read_catalog(copy)
    assert found.collation.endswith("provider icu, locale de-AT")
    assert found.collation_versions[""]
    assert (copied.collation, copied.collation_versions) == (found.collation, found.collation_versions)
