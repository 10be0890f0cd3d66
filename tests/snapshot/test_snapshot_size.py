"""Disk space for a day with one snapshot a minute: at most 25 MB for a database of 100 tables with an index each."""

from __future__ import annotations

import contextlib
import random

import pytest
from snapshot_help import Lab

from dbdyno.snapshot.engines.view import Options
from dbdyno.snapshot.store.pack import GROUP, pack_full
from dbdyno.snapshot.taking.take import open_collector, take

DAY = 1440
MOST_BYTES = 25_000_000


@pytest.mark.soak
def test_a_day_of_a_hundred_tables_fits_into_25_megabytes(own_lab: Lab):
    dice = random.Random(7)
    with contextlib.closing(own_lab.connect()) as conn:
        for table in range(100):
            conn.execute(f"create table t{table} (id int primary key, v int)")
            conn.execute(f"create index on t{table} (v)")
            conn.execute(f"insert into t{table} select g, g from generate_series(1, 200) g")
        with open_collector(own_lab.dsn, Options()) as collector:
            for _ in range(GROUP + 1):
                for _ in range(60):
                    table = min(int(dice.expovariate(1 / 15)), 99)
                    conn.execute(f"update t{table} set v = v + 1 where id = %s", (dice.randrange(200),))
                    conn.execute(f"select count(*) from t{table} where v > %s", (dice.randrange(200),))
                take(collector, own_lab.store, engine_name="postgres")
                target = collector.name
    assert pack_full(own_lab.store, target) == 1
    files = [path for path in own_lab.store.folder.rglob("*") if path.is_file()]
    last = f"{GROUP + 1:06d}"
    blocks = sum(path.stat().st_blocks * 512 for path in files if last not in path.parts)
    per_day = blocks * DAY // GROUP
    print(f"{per_day / 1e6:.1f} MB a day on disk")
    assert per_day < MOST_BYTES
