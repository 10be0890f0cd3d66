"""What tests of moving a whole database share: two servers, a database with everything in it, what both hold."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from command_line import dbdyno
from dbdyno.bench.postgres.embedded import EmbeddedPostgres

ROLES = ("app_owner", "reader")
EVERYTHING = r"""
create schema app authorization app_owner;
create schema "Odd Schema";
create type app.mood as enum ('sad', 'ok', 'happy');
create type app.pair as (a int, b text);
create domain app.positive as int check (value > 0);
create sequence app.counter start 7 increment 3;
select setval('app.counter', 46, false);
create function app.twice(i int) returns int language sql immutable begin atomic select i * 2; end;
create function app.touch() returns trigger language plpgsql as
    $f$ begin new.touched := 'x;--' || new.id; return new; end $f$;
create table app.people (id bigint generated always as identity primary key, email text not null unique, born date,
    mood app.mood, home app.pair, age app.positive, touched text,
    doubled int generated always as (age * 2) stored, check (born > '1900-01-01'));
insert into app.people (email, born, mood, home, age)
    select 'p' || g || '@example.org', '2000-01-01'::date + g % 3000,
           (array['sad', 'ok', 'happy'])[1 + g % 3]::app.mood, row(g, 'street "' || g || '"')::app.pair, 1 + g % 90
    from generate_series(1, 2000) g;
create table app.orders (id serial primary key, person bigint not null references app.people,
    amount numeric default 1.5, at timestamptz default now(), note text);
insert into app.orders (person, amount, note) select 1 + g % 2000, g / 7.0, repeat('n', g % 50)
    from generate_series(1, 5000) g;
create index orders_person on app.orders (person);
create index orders_at on app.orders using brin (at);
create index orders_note on app.orders (lower(note)) where note <> '';
create table app.events (id int, day date, what text, primary key (id, day)) partition by range (day);
create table app.events_2024 partition of app.events for values from ('2024-01-01') to ('2025-01-01');
create table app.events_2025 (what text, junk int, day date not null, id int not null);
alter table app.events_2025 drop column junk;
alter table app.events attach partition app.events_2025 for values from ('2025-01-01') to ('2026-01-01');
create table app.events_rest partition of app.events default partition by hash (id);
create table app.events_rest0 partition of app.events_rest for values with (modulus 2, remainder 0);
create table app.events_rest1 partition of app.events_rest for values with (modulus 2, remainder 1);
insert into app.events select g, '2023-06-01'::date + g % 1200, 'e' || g from generate_series(1, 1000) g;
create index events_what on app.events (what);
create table app.event_notes (event int, day date, note text, foreign key (event, day) references app.events);
insert into app.event_notes select id, day, 'note' from app.events limit 100;
create table app.parent (a int, b text);
create table app.child (c int) inherits (app.parent);
insert into app.parent values (1, 'one');
insert into app.child values (2, 'two', 22);
create table app.nothing ();
insert into app.nothing default values;
insert into app.nothing default values;
create table app.empty (id int primary key, m money, reg regclass);
create table app.kinds (id int primary key, m money, f float8, i interval, a text[], moods app.mood[], r int4range,
    j jsonb, b bit(5), n name, reg regclass, ch char(8), num numeric, by bytea);
insert into app.kinds values (1, 12.34, 'NaN', '1 mon 2 days', '{a,NULL,"x y"}', '{sad,NULL}', '[1,5)',
    '{"a": [1,null]}', B'10101', 'n', 'app.people', 'pad', 'NaN', '\x00ff');
insert into app.kinds (id, f) values (2, '-Infinity');
create table app.plain (id int primary key, t text);
insert into app.plain values (1, E'tab\t line\n back\\slash \\N'), (2, null), (3, '');
create table "Odd Schema"."Tab""le; drop -- x" ("Se lect" int primary key, "quote""d" text, "%s {rows}" app.mood);
insert into "Odd Schema"."Tab""le; drop -- x" values (1, 'a', 'sad'), (2, E'\\t\n', null);
create unlogged table app.fast (id int);
insert into app.fast select generate_series(1, 10);
create table app.only_generated (g int generated always as (1) stored);
insert into app.only_generated default values;
create view app.adults as select * from app.people where age > 18;
create materialized view app.totals as select person, sum(amount) as total from app.orders group by person;
create unique index totals_person on app.totals (person);
create materialized view app.grand as select count(*) as n, sum(total) as total from app.totals;
create materialized view app.unfilled as select 1 as one with no data;
create view app.grouped as
    select p.id, p.email, count(*) from app.people p join app.orders o on o.person = p.id group by p.id;
create trigger touch before insert or update on app.people for each row execute function app.touch();
create rule no_delete as on delete to app.empty do instead nothing;
alter table app.orders enable row level security;
create policy own on app.orders using (person = 1);
create policy for_reader on app.orders for select to reader using (true);
create statistics app.people_stats (dependencies) on born, age from app.people;
create publication pub for table app.people;
comment on table app.people is 'People''s; table';
comment on column app.people.email is 'mail';
comment on index app.orders_person is 'idx';
comment on constraint orders_person_fkey on app.orders is 'fk';
grant usage on schema app to reader;
grant select on app.people to reader with grant option;
grant select (id, amount) on app.orders to reader;
alter default privileges in schema app grant select on tables to reader;
alter table app.people owner to app_owner;
alter function app.twice(int) owner to app_owner;
alter table app.orders alter column note set statistics 300;
alter table app.orders alter column note set storage external;
alter table app.people cluster on people_pkey;
alter table app.orders replica identity using index orders_pkey;
alter table app.event_notes add constraint later check (note <> 'zz') not valid;
create unique index people_born_email on app.people (born, email) include (age);
create table app.rooms (room int, during int4range, exclude using gist (during with &&));
insert into app.rooms values (1, '[1,3)'), (2, '[5,8)');
select lo_from_bytea(0, decode(repeat('00ff10', 400000), 'hex'));
select lo_from_bytea(424242, 'hello');
select lo_create(424243);
comment on large object 424242 is 'greeting';
grant select on large object 424242 to reader;
alter large object 424242 owner to app_owner;
create function app.ddl() returns event_trigger language plpgsql as
    $$ begin raise exception 'no DDL here'; end $$;
create event trigger watch on ddl_command_end when tag in ('CREATE INDEX', 'CREATE TABLE') execute function app.ddl();
create event trigger nodrop on sql_drop execute function app.ddl();
"""
TABLES_SQL = """
select n.nspname::text, c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind in ('r', 'm') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
  and (c.relkind = 'r' or c.relispopulated) order by 1, 2
"""
SEQUENCES_SQL = """
select n.nspname::text, c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace
where c.relkind = 'S' order by 1, 2
"""
OBJECTS_SQL = """
select oid::text, pg_get_userbyid(lomowner)::text, lomacl::text, obj_description(oid, 'pg_largeobject'),
       md5(lo_get(oid)) from pg_largeobject_metadata order by oid
"""
_numbers = itertools.count()


class Databases:
    """Two servers, and for each test a database to move and an empty one."""

    def __init__(self, here: EmbeddedPostgres, there: EmbeddedPostgres, folder: Path) -> None:
        self.here, self.there, self.folder = here, there, folder
        self.job = folder / "job"
        self.name = f"moved_{next(_numbers)}"
        self.source, self.target = self._make(here, "source"), self._make(there, "target")

    def _make(self, engine: EmbeddedPostgres, end: str) -> str:
        name = f"{self.name}_{end}"
        with contextlib.closing(psycopg.connect(**engine.tcp_conninfo(), autocommit=True)) as conn:
            known = {row[0] for row in conn.execute("select rolname from pg_roles")}
            for role in ROLES:
                if role not in known:
                    conn.execute(f"create role {role}".encode())
            conn.execute(f"create database {name} template template0".encode())
        return make_conninfo("", **{**engine.tcp_conninfo(), "dbname": name})

    def close(self) -> None:
        """Drops both databases."""
        for engine, end in ((self.here, "source"), (self.there, "target")):
            with contextlib.closing(psycopg.connect(**engine.tcp_conninfo(), autocommit=True)) as conn:
                conn.execute(f"drop database if exists {self.name}_{end} with (force)".encode())

    def run(self, dsn: str, *statements: str) -> None:
        """Statements in one of the databases."""
        with contextlib.closing(psycopg.connect(dsn, autocommit=True)) as conn:
            for statement in statements:
                conn.execute(statement.encode())

    def rows(self, dsn: str, query: str) -> list[tuple[Any, ...]]:
        """Rows of one of the databases."""
        with contextlib.closing(psycopg.connect(dsn, autocommit=True)) as conn:
            return conn.execute(query.encode()).fetchall()

    def move(self, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """`dbdyno move` of the whole database."""
        return dbdyno("move", self.source, self.target, "--database", "--job", self.job, *words, **environment)

    def resume(self, *words: object) -> subprocess.CompletedProcess[str]:
        """`dbdyno move resume` of the job."""
        return dbdyno("move", "resume", self.job, "--source", self.source, "--target", self.target, *words)

    def schema(self, dsn: str, programs: Path) -> str:
        """What `pg_dump -s` writes, without its key against psql's commands."""
        done = subprocess.run([programs / "pg_dump", "-s", dsn], capture_output=True, text=True, check=True)
        kept = [line for line in done.stdout.splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))]
        return "\n".join(kept)


def content(dsn: str) -> dict[str, Sequence[Any]]:
    """All rows of all tables as text, values of sequences, and large objects."""
    with contextlib.closing(psycopg.connect(dsn, autocommit=True)) as conn:
        conn.execute("set extra_float_digits = 3")
        conn.execute("set row_security = off")
        found: dict[str, Sequence[Any]] = {}
        for name in conn.execute(TABLES_SQL).fetchall():
            place = sql.Identifier(*name)
            query = sql.SQL("select t::text from only {} t order by 1").format(place)
            found[".".join(name)] = [row[0] for row in conn.execute(query)]
        for name in conn.execute(SEQUENCES_SQL).fetchall():
            query = sql.SQL("select last_value, is_called from {}").format(sql.Identifier(*name))
            found[".".join(name)] = conn.execute(query).fetchall()
        found["large objects"] = conn.execute(OBJECTS_SQL).fetchall()
        return found
