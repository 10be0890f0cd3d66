"""Evidence of a live MariaDB: its version and variables, which is what the table of known faults asks."""

from __future__ import annotations

import contextlib

from dbdyno.advise.facts import Facts, Lack
from dbdyno.advise.kinds import PLACES, Server, Setting
from dbdyno.advise.live import APPLICATION_NAME

_ELSEWHERE = Lack("known faults and the version are judged on MariaDB, nothing else yet")


def read(dsn: str) -> Facts:
    """The evidence of the server of a connection string. Raises `TargetError` where it does not answer."""
    from dbdyno.bench.mariadb.server import MariaDB, shown_value
    from dbdyno.bench.mariadb.session import rows

    target = MariaDB.open(dsn)
    with contextlib.closing(target.connect(name=APPLICATION_NAME)) as connection:
        ((version, platform, standby),) = rows(connection, "select @@version, @@version_compile_machine, @@read_only")
        settings = [
            Setting(str(name).lower(), shown_value(str(name), str(value)))
            for name, value in rows(connection, "show global variables")
        ]
    text = str(version)
    parts = [int(one) for one in text.partition("-")[0].split(".")[:3]]
    number = sum(part * 100**place for place, part in enumerate(reversed(parts)))
    server = Server("mariadb", text, number, bool(int(standby)), str(platform))
    lacking = {kind: _ELSEWHERE for kind in PLACES if kind not in (Server, Setting)}
    return Facts(target.safe_dsn, "server", {Server: [server], Setting: settings}, lacking)
