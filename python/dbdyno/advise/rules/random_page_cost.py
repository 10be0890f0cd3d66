"""Rule: random_page_cost compared with the measured times of random and sequential reads."""

from __future__ import annotations

from collections.abc import Iterator

from dbdyno.advise.facts import Facts
from dbdyno.advise.formatting import block_bytes, count, duration
from dbdyno.advise.kinds import Io, Setting
from dbdyno.advise.rule import Advice, Evidence, InsufficientEvidence, Rule

LEAST_READS, FACTOR, DEVICE_S = 10_000, 2.0, 0.0001


def judge(facts: Facts) -> Iterator[Advice | InsufficientEvidence]:
    """Yield a finding if the measured times per page of index reads and of scans contradict random_page_cost."""
    random, sequential = facts.setting("random_page_cost"), facts.setting("seq_page_cost")
    if random is None or sequential is None or sequential.number <= 0:
        return
    each = {}
    for context in ("normal", "bulkread"):
        rows = [one for one in facts.rows_of(Io) if one.context == context and one.object == "relation"]
        if any(one.read_ms is None for one in rows):
            yield InsufficientEvidence("reads are not timed", "track_io_timing = on")
            return
        reads, pages = sum(one.reads for one in rows), sum(one.read_bytes for one in rows) / block_bytes(facts)
        if reads < LEAST_READS or pages <= 0:
            yield InsufficientEvidence(f"fewer than {count(LEAST_READS)} reads in context {context}")
            return
        each[context] = (sum(one.read_ms or 0.0 for one in rows) / pages / 1000, reads)
    (normal_s, normal), (bulk_s, bulk) = each["normal"], each["bulkread"]
    if normal_s < DEVICE_S or bulk_s <= 0:
        yield InsufficientEvidence("the page cache answers the reads, so they say nothing about the device")
        return
    measured, given = normal_s / bulk_s, random.number / sequential.number
    if 1 / FACTOR < given / measured < FACTOR:
        return
    wanted = max(round(measured * sequential.number, 1), sequential.number)
    yield Advice(
        f"a random read of a page takes {count(measured)} times as long as a "
        f"sequential read; random_page_cost says {count(given)}",
        (
            Evidence("random read of a page", normal_s * 1e9, "ns", "pg_stat_io, context normal, read_time / pages"),
            Evidence(
                "sequential read of a page", bulk_s * 1e9, "ns", "pg_stat_io, context bulkread, read_time / pages"
            ),
            Evidence("random reads", normal, "count", "pg_stat_io, context normal, reads"),
            Evidence("sequential reads", bulk, "count", "pg_stat_io, context bulkread, reads"),
            Evidence("random_page_cost", random.number, "number", "pg_settings"),
        ),
        f"only statements whose plan changes gain; a random read takes {duration(normal_s)}; the figures do not "
        f"include cached pages",
        (f"alter system set random_page_cost = {wanted}", "select pg_reload_conf()"),
        level="hint",
        subject="random_page_cost",
        proposed=str(wanted),
    )


RULE = Rule(
    name="random_page_cost",
    family="planner",
    title="random_page_cost against measured reads",
    reads=(Setting, Io),
    condition="there are 10,000 timed reads in each of the contexts normal and bulkread,"
    " a random read takes 0.1 ms or more, and the measured "
    "ratio differs from random_page_cost / seq_page_cost by a factor of two or more",
    expects="time of statements whose plan changes",
    risk="plans change; cached pages cost the same either way",
    source="PostgreSQL documentation, pg_stat_io and Planner Cost Constants (2025)",
    refuted="statements take as long under both values",
    judge=judge,
    least=160000,
    setting="random_page_cost",
)
