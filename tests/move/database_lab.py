"""Helpers of the tests that move a whole database: two servers, a database with every kind of object, and their
contents."""

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

from command_line import dbdyno, succeeded
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
ZOO = r"""
create schema z;
create foreign data wrapper dummy;
create server far foreign data wrapper dummy options (host 'nowhere');
create user mapping for app_owner server far options (user 'x', password 'secret');
create foreign table z.remote (i int) server far;
create function z.add(int, int) returns int language sql immutable as 'select $1 + $2';
create aggregate z.total(int) (sfunc = z.add, stype = int, initcond = '0');
create operator z.### (leftarg = int, rightarg = int, function = z.add);
create operator family z.fam using btree;
create operator class z.oc for type int using btree family z.fam as operator 1 <, operator 2 <=, operator 3 =,
    operator 4 >=, operator 5 >, function 1 btint4cmp(int,int);
create collation z.c (provider = libc, locale = 'C');
create text search dictionary z.dict (template = simple);
create text search configuration z.conf (parser = default);
alter text search configuration z.conf add mapping for asciiword with z.dict;
create procedure z.proc(i int) language sql as 'select 1';
create type z.color as enum ('r','g');
create function z.color_text(z.color) returns text language sql as $$ select 'wrong' $$;
create cast (z.color as text) with function z.color_text(z.color);
create table z.colors (c z.color);
insert into z.colors values ('r'),('g');
create type z.rng as range (subtype = float8);
create domain z.dom as text collate z.c check (value <> '');
create table z.dt (d z.dom default 'x', r z.rng, ii z.color[] );
insert into z.dt values ('a','[1,2]','{r,g}');
create conversion z.conv for 'UTF8' to 'LATIN1' from utf8_to_iso8859_1;
create table z.idx (i int, j int);
insert into z.idx select g, g from generate_series(1,100) g;
create index on z.idx (i z.oc);
create table z.cyc1 (id int primary key, o int);
create table z.cyc2 (id int primary key, o int references z.cyc1);
alter table z.cyc1 add foreign key (o) references z.cyc2 deferrable initially deferred;
insert into z.cyc1 values (1,null);
insert into z.cyc2 values (1,1);
update z.cyc1 set o=1;
create view z.v1 as select 1 as a;
create view z.v2 with (security_barrier) as select * from z.v1;
create or replace view z.v1 as select 1 as a, 2 as b;
create materialized view z.m2 as select count(*) from z.idx;
create materialized view z.m1 as select * from z.m2;
create index on z.m1 (count);
create table z.ident (a int generated by default as identity (start 100 increment 7), b text);
insert into z.ident (b) values ('x'),('y');
create sequence z.owned owned by z.idx.j;
alter table z.idx alter j set default nextval('z.owned');
select nextval('z.owned') from generate_series(1,7);
create publication allt for all tables;
create publication insch for tables in schema z;
create function z.trg() returns trigger language plpgsql as 'begin return new; end';
create trigger tr after insert on z.idx for each row when (new.i > 3) execute function z.trg();
alter table z.idx disable trigger tr;
create table z.part (k int, v text) partition by list (k);
create table z.part1 partition of z.part for values in (1);
create table z.partd partition of z.part default;
create index on z.part (v);
create unique index on z.part (k, v);
insert into z.part values (1,'a'),(2,'b');
create trigger ptr before insert on z.part1 for each row execute function z.trg();
create table z.comp (a text compression pglz, b text) with (fillfactor = 50, autovacuum_enabled = off);
create unlogged table z.ul (i serial);
create table z.long (t text);
insert into z.long select string_agg(md5(g::text),'') from generate_series(1,100000) g;
insert into z.long values (E'\\.'), (E'line\r\nx');
create table z."UPPER" ("Col" int, "order" text);
create index "Idx Name" on z."UPPER" ("order" desc nulls last) ;
create table z.excl (r int4range, constraint "odd name" exclude using gist (r with &&));
comment on schema z is 'zoo';
comment on view z.v1 is 'view';
comment on function z.add(int,int) is 'f';
comment on sequence z.owned is 's';
comment on trigger tr on z.idx is 't';
"""
"""Statements that create rare kinds of objects."""
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
EMPTY = "template0"
_numbers = itertools.count()


def make_database(engine: EmbeddedPostgres, name: str, template: str = EMPTY) -> str:
    """Create a database as a copy of another, and the roles that own its objects; return its connection string."""
    with contextlib.closing(psycopg.connect(**engine.conninfo(), autocommit=True)) as conn:
        known = {row[0] for row in conn.execute("select rolname from pg_roles")}
        for role in ROLES:
            if role not in known:
                conn.execute(f"create role {role}".encode())
        conn.execute(f"create database {name} template {template}".encode())
    return make_conninfo("", **{**engine.conninfo(), "dbname": name})


def execute(dsn: str, *statements: str) -> None:
    """Execute statements in a database."""
    with contextlib.closing(psycopg.connect(dsn, autocommit=True)) as conn:
        for statement in statements:
            conn.execute(statement.encode())


class Databases:
    """Two servers, with a copy of the database to move and an empty one for each test."""

    def __init__(self, here: EmbeddedPostgres, there: EmbeddedPostgres, folder: Path, template: str = EMPTY) -> None:
        self.here, self.there, self.folder = here, there, folder
        self.job = folder / "job"
        self.name = f"moved_{next(_numbers)}"
        self.source = make_database(here, f"{self.name}_source", template)
        self.target = make_database(there, f"{self.name}_target")

    def over_tcp(self) -> None:
        """Reach both servers over TCP, with a password; otherwise it is the socket, which needs none."""
        here, there = self.here.tcp_conninfo(), self.there.tcp_conninfo()
        self.source = make_conninfo(self.source, host=here["host"], password=here["password"])
        self.target = make_conninfo(self.target, host=there["host"], password=there["password"])

    def close(self) -> None:
        """Drop both databases."""
        for engine, end in ((self.here, "source"), (self.there, "target")):
            with contextlib.closing(psycopg.connect(**engine.conninfo(), autocommit=True)) as conn:
                conn.execute(f"drop database if exists {self.name}_{end} with (force)".encode())

    def run(self, dsn: str, *statements: str) -> None:
        """Execute statements in one of the databases."""
        execute(dsn, *statements)

    def rows(self, dsn: str, query: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query in one of the databases."""
        with contextlib.closing(psycopg.connect(dsn, autocommit=True)) as conn:
            return conn.execute(query.encode()).fetchall()

    def move(self, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run `dbdyno move` for the whole database."""
        return dbdyno("move", self.source, self.target, "--database", "--job", self.job, *words, **environment)

    def resume(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run `dbdyno move resume` for the job."""
        return dbdyno("move", "resume", self.job, "--source", self.source, "--target", self.target, *words)

    def moved(self, *words: object, **environment: str) -> subprocess.CompletedProcess[str]:
        """Move the whole database, which must succeed."""
        return succeeded("move", self.source, self.target, "--database", "--job", self.job, *words, **environment)

    def resumed(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Resume the job, which must succeed."""
        return succeeded("move", "resume", self.job, "--source", self.source, "--target", self.target, *words)

    def schema(self, dsn: str, programs: Path) -> str:
        """Return the output of `pg_dump -s`, without its random key for psql."""
        done = subprocess.run([programs / "pg_dump", "-s", dsn], capture_output=True, text=True, check=True)
        kept = [line for line in done.stdout.splitlines() if not line.startswith(("\\restrict", "\\unrestrict"))]
        return "\n".join(kept)


def content(dsn: str) -> dict[str, Sequence[Any]]:
    """Return all rows of all tables as text, the values of sequences, and the large objects."""
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
