"""Predicts commits on MariaDB by a machine calibrated on one session: errors in the median and at p99.

One run of the embedded MariaDB has an arm of one session that writes texts of all sizes, and others that are drawn by a
seed: 1 to 16 sessions, a size, and how a commit is made durable (innodb_flush_log_at_trx_commit, another
innodb_flush_method, a binary log without and with sync_binlog). The machine of the first predicts the others. An error
is model / live - 1; the aims are 10 % at the median and 25 % at p99.

    python benches/predict_mariadb.py [--places own,gp3] [--arms 12] [--blocks 6] [--seed 45] [--markdown FILE.md]
"""

from __future__ import annotations

import random

from figures import lacks, parse
from predict import FITTED, OWN, chosen_places, fitted, kept, options, pairs, rows_of, run, working_folder

from dbdyno.base.errors import TargetError
from dbdyno.bench.mariadb.binaries import find_programs

SESSIONS = (1, 2, 4, 8, 16)
SIZES = (100, 500, 2_000, 8_000)
HOW = {
    "flush 1": "",
    "flush 2": 'server = {settings = {innodb_flush_log_at_trx_commit = "2"}}',
    "flush 0": 'settings = {innodb_flush_log_at_trx_commit = "0"}',
    "method fsync": 'server = {settings = {innodb_flush_method = "fsync"}}',
    "binlog": 'server = {settings = {log_bin = "changes", sync_binlog = "0"}}',
    "binlog synced": 'server = {settings = {log_bin = "changes", sync_binlog = "1"}}',
}
"""How a commit is made durable: key of an arm."""
TABLE = "create table dbdyno_log (id bigint auto_increment primary key, text text)"


def script(size: int) -> str:
    """A script of a transaction that writes a text."""
    text = f"begin;\\ninsert into dbdyno_log (text) values (repeat('x', {size}));\\ncommit;\\n"
    return f'{{name = "{size} bytes", text = "{text}"}}'


def commits(place: str, draw: random.Random, count: int, blocks: int, turn: str) -> str:
    """A plan of commits on a place: the fitted arm writes all sizes, the others one each."""
    arms = [f'[[arm]]\nname = "{FITTED}"\nsessions = 1\nscripts = [{", ".join(map(script, SIZES))}]']
    grid = [(n, size, how) for n in SESSIONS for size in SIZES for how in HOW]
    for n, size, how in draw.sample(grid, count):
        arms.append(f'[[arm]]\nname = "{size} B x{n} {how}"\nsessions = {n}\nscripts = [{script(size)}]\n{HOW[how]}')
    work = f'[workload]\nscripts = [{script(100)}]\nsetup = ["{TABLE}"]\nteardown = ["drop table dbdyno_log"]'
    schedule = f'[schedule]\nblocks = {blocks}\nwarmup_blocks = 1\nturn = "{turn}"\nswitch = "turns"'
    target = 'target = "mariadb"' if place == OWN else f'target = "mariadb+device:{place}"'
    # Arms do different work on purpose.
    rest = '[watch]\nactivity_hz = 0\noverhead_blocks = 0\n[verdict]\naccept = ["work"]'
    return "\n".join(['title = "commits on MariaDB"', target, work, schedule, rest, *arms, ""])


def main() -> None:
    """All places."""
    given = parse(options(__doc__, OWN, 12), places=OWN, arms=1, blocks=2, turn="250ms")
    try:
        find_programs()
    except TargetError as error:
        lacks(str(error))
    places, found = chosen_places(given), []
    with working_folder(given) as work:
        for place in places:
            draw = random.Random(f"{given.seed} {place} MariaDB")
            text = commits(place, draw, given.arms, given.blocks, given.turn)
            path = run(text, work, f"{place}-mariadb")
            machine = fitted(path)
            (work / f"{place}-mariadb-machine.toml").write_text(machine)
            found += list(pairs(path, machine, place, place, "commits on MariaDB"))
    kept(found, "commits on MariaDB", 12)
    print(rows_of(found))
    if given.markdown:
        given.markdown.write_text(rows_of(found))


if __name__ == "__main__":
    main()
