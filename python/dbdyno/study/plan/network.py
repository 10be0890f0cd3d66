"""Network between the sessions and the server: `network = {delay = "5ms", rate = "100Mbit"}`.

A delay is for one way, as in `tc netem`: a delay of 5 ms is a round trip of 10 ms. A rate is for each way, and all
sessions of an arm share it. Plans keep the values as they were written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dbdyno.base.json_types import JsonObject
from dbdyno.study.plan.durations import duration_ns
from dbdyno.study.plan.key import Key

if TYPE_CHECKING:
    from dbdyno.base.core_types import NetworkLine
    from dbdyno.study.plan.reader import PlanReader

DELAY, RATE = "delay", "rate"
KEYS = (
    Key(
        DELAY,
        "duration",
        'delay each way: with "5ms" a round trip takes 10 ms longer; "0s" measures the overhead of the line itself',
        '"5ms"',
        low=0,
        high=1,
    ),
    Key(
        RATE,
        "str",
        "bits per second each way, shared by all sessions of the arm: a number with kbit, Mbit or Gbit,\n"
        "from 8kbit to 100Gbit",
        '"100Mbit"',
    ),
)
_UNITS = {"kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9}
_RATE_LEAST, _RATE_MOST = 8_000, 100 * 10**9


def read(reader: PlanReader, table: JsonObject, where: str, at: int) -> dict[str, str]:
    """Return the keys and values of a network table after checking them; errors are raised by `reader`."""
    reader.check(table, KEYS, where, at)
    rate = table.get(RATE)
    if rate is not None and rate_bit_per_s(rate) is None:
        reader.fail(
            f"rate must be a number and kbit, Mbit or Gbit, from 8kbit to 100Gbit, found {rate!r}",
            where,
            RATE,
            at,
            'write rate = "100Mbit"',
        )
    return {name: str(value) for name, value in table.items()}


def rate_bit_per_s(text: str) -> int | None:
    """Return the bits per second of a rate such as '100Mbit'; `None` if it is not a rate within the limits.

    >>> rate_bit_per_s("1.5Mbit")
    1500000
    """
    match = re.fullmatch(r"\s*(\d{1,9}(?:\.\d{1,9})?)\s*(kbit|Mbit|Gbit)\s*", text)
    if match is None:
        return None
    rate = round(float(match[1]) * _UNITS[match[2]])
    return rate if _RATE_LEAST <= rate <= _RATE_MOST else None


def line_parameters(network: Mapping[str, str]) -> NetworkLine | None:
    """Return the load generator's parameters for a network; `None` if no network is emulated."""
    if not network:
        return None
    delay_ns = duration_ns(network.get(DELAY, "0s")) or 0
    return {"delay_ns": delay_ns, "rate_bit_per_s": rate_bit_per_s(network.get(RATE, ""))}


def network_text(network: Mapping[str, str]) -> str:
    """Return a network in words, such as '5ms each way, 100Mbit'; empty if there is none."""
    parts = [f"{network[DELAY]} each way"] if DELAY in network else []
    return ", ".join([*parts, *([network[RATE]] if RATE in network else [])])


def differing_network(network: Mapping[str, str]) -> dict[str, str]:
    """Return an arm's network as an entry of its differences in a manifest; {} if the arm has no network."""
    return {"network": network_text(network)} if network else {}
