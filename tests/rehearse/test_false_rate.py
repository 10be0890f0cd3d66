"""Repeated rehearsals with equal copies: every reported regression is false, and at most 5 % of them may report one.

DBDYNO_REHEARSALS=10 DBDYNO_STATEMENTS=300 DBDYNO_LENGTH=60s pytest -m soak -s tests/rehearse/test_false_rate.py
"""

from __future__ import annotations

import os
import random
import secrets
from collections import Counter
from pathlib import Path

import psycopg
import pytest
from rehearsal_help import database, model_in, shop

from command_line import dbdyno
from dbdyno.bench.postgres.embedded import EmbeddedPostgres
from dbdyno.trace.proxy.proxy_run import ProxyOptions, run_proxy

COLUMNS = ("id", "customer", "amount", "status", "region", "zone")
CONDITIONS = (
    "customer = %s",
    "id = %s",
    "region = 5 and id < %s",
    "customer between %s and 40",
    "region > 90 and zone <> %s",
)
RATE = 0.05


def texts(count: int, dice: random.Random) -> list[str]:
    """Return different statements, with different columns, aggregates and conditions."""
    found = []
    for at in range(count):
        one, other = dice.sample(COLUMNS, 2)
        what = dice.choice(("count", "min", "max"))
        found.append(f"select {what}({one}), max({other}) as c{at} from orders where {dice.choice(CONDITIONS)}")
    return found


def captured(engine: EmbeddedPostgres, folder: Path, statements: list[str], dice: random.Random) -> Path:
    """Return a captured run in which each statement ran with five values; half of the sessions prepare statements."""
    with run_proxy(ProxyOptions("127.0.0.1:0", ("127.0.0.1", engine.port), binds=True), folder) as it:
        port = it.address.rpartition(":")[2]
        way = {**engine.tcp_conninfo(), "host": "127.0.0.1", "port": port, "sslmode": "disable", "dbname": "shop"}
        with psycopg.connect(**way, autocommit=True) as session:
            for place, text in enumerate(statements):
                for _ in range(7 if place % 2 else 5):
                    session.execute(text, [dice.randint(1, 2000)], prepare=bool(place % 2))
    return folder


@pytest.mark.soak
def test_at_most_one_rehearsal_in_twenty_reports_a_regression_that_is_none(tmp_path: Path) -> None:
    count, statements = int(os.environ.get("DBDYNO_REHEARSALS", "10")), int(os.environ.get("DBDYNO_STATEMENTS", "300"))
    length = os.environ.get("DBDYNO_LENGTH", "60s")
    seed = int(os.environ.get("DBDYNO_SEED", secrets.randbelow(10**9)))
    print(f"\nseed {seed}, {count} rehearsals of {statements} statements, {length} each")
    dice = random.Random(seed)
    false = 0
    with shop() as engine:
        load = captured(engine, tmp_path / "captured", texts(statements, dice), dice)
        old, new = (database(engine, name, template="shop") for name in ("old", "new"))
        for number in range(count):
            words = ("--load", load, "--for", length, "--seed", seed + number, "--out", tmp_path / str(number))
            done = dbdyno("rehearse", old, new, *words)
            model = model_in(tmp_path / str(number))
            found = Counter(row["decision"] for row in (*model["statements"], *model["left_out"]))
            shares: Counter[str] = Counter()
            for row in (*model["statements"], *model["left_out"]):
                shares[row["decision"]] += row["share"]
            weights = ", ".join(f"{word} {100 * share:.0f} %" for word, share in shares.most_common())
            print(f"{number + 1}: {dict(found.most_common())}; by weight {weights}", flush=True)
            print(f"   {model['verdict']['headline']}; {'; '.join(model['load']['notes'])}", flush=True)
            assert done.returncode in (0, 1), done.stderr
            assert not {"fails", "differs"} & found.keys(), f"seed {seed}"
            false += "slower" in found
    print(f"with a regression: {false} of {count}")
    assert false <= RATE * count, f"seed {seed}: {false} of {count} rehearsals report a regression"
