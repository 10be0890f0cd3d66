"""Study checksum: cost of checksums on data pages, and the additional cost of full-page images.

Two separate servers, created by initdb with and without checksums, run side by side; the arms alternate in slices.
Readers scan a table that does not fit into shared_buffers, so each page that is read is verified. Writers change single
rows of it, so that a checksum is computed for each page that is written, and hint bits are logged. Full-page images
belong to the log and not to checksums, so they are a separate factor: `--set full_page_writes=on,off`.

On MariaDB (`--target mariadb`) the checksum is `innodb_checksum_algorithm`, which is fixed when a server is created,
and which versions up to 10.5 can do without (`none`, `innodb`). The protection from torn pages is a separate factor
there, too: `innodb_doublewrite`.

Limits: the pages come from the file system's cache, where a checksum has the largest share of the cost; with a disk
behind it the share is smaller. Pages are written by the checkpointer and by evictions, of which the sessions' CPU
covers only the evictions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from dbdyno.base.errors import PlanError
from dbdyno.study.library.data import TABLE, WorkloadSetup, keyed_table, mariadb_table, scan_of, update_of
from dbdyno.study.plan.factors import Level, choose_levels, combine_levels, one_number, option_values
from dbdyno.study.plan.plan import Judge, Plan, Schedule, Script, Server, Watch, Workload
from dbdyno.study.plan.study import Factor, Study, Variant
from dbdyno.study.plan.targets import plan_on_target

LOADS = {
    "scan": Level("scan", scripts=[Script("scan", scan_of(TABLE))]),
    "update": Level("update", scripts=[Script("update", update_of(TABLE))]),
}


def _servers(options: Mapping[str, str]) -> list[Level]:
    """Return a server for each combination of checksums and full-page writes."""
    found = []
    for images in option_values(options["full_page_writes"], "full_page_writes"):
        for sums in option_values(options["checksums"], "checksums"):
            _on_or_off(sums, "checksums")
            _on_or_off(images, "full_page_writes")
            settings = {
                "shared_buffers": options["shared_buffers"],
                "full_page_writes": images,
                "autovacuum": "off",
                "max_parallel_workers_per_gather": "0",
            }
            server = Server(settings=settings, initdb=["--data-checksums"] if sums == "on" else [])
            name = f"checksums {sums}, full_page_writes {images}" if "," in options["full_page_writes"] else ""
            found.append(Level(name or f"checksums {sums}", server=server))
    return found


MARIADB = {
    "checksum": "crc32,full_crc32",
    "load": "scan,update",
    "doublewrite": "on",
    "rows": "400000",
    "pool": "8M",
}
PLAIN_MARIADB = {"innodb_flush_method": "fsync"}
"""Settings with which pages come from the file system's cache; a device would hide the cost of a checksum."""


def _mariadb_servers(options: Mapping[str, str]) -> list[Level]:
    """Return a server for each combination of checksum and doublewrite buffer."""
    found = []
    for doublewrite in option_values(options["doublewrite"], "doublewrite"):
        _on_or_off(doublewrite, "doublewrite")
        for sums in option_values(options["checksum"], "checksum"):
            settings = {
                "innodb_buffer_pool_size": options["pool"],
                "innodb_checksum_algorithm": sums,
                "innodb_doublewrite": doublewrite,
                **PLAIN_MARIADB,
            }
            name = f"{sums}, doublewrite {doublewrite}" if "," in options["doublewrite"] else sums
            # The server's initial pages have the same checksum as all others.
            initdb = [f"--innodb-checksum-algorithm={sums}"]
            found.append(Level(name, server=Server(settings=settings, initdb=initdb)))
    return found


def _on_or_off(word: str, where: str) -> None:
    if word not in ("on", "off"):
        raise PlanError(
            f"expected on or off, found {word!r}",
            where=f"--set {where}",
            next_step="write on, off, or the two with a comma between them: on,off",
        )


def _plan(options: Mapping[str, str], quick: bool) -> Plan:
    return _make_plan(options, quick, _servers(options), keyed_table)


def _on_mariadb(options: Mapping[str, str], quick: bool, target: str) -> Plan:
    return plan_on_target(_make_plan(options, quick, _mariadb_servers(options), mariadb_table), target)


def _make_plan(
    options: Mapping[str, str], quick: bool, servers: list[Level], table: Callable[[int], WorkloadSetup]
) -> Plan:
    rows = one_number(options["rows"], "rows")
    return Plan(
        **STUDY.heading,
        arms=combine_levels(choose_levels(LOADS, options["load"], "load"), servers, within=True),
        workload=Workload(variables={"rows": str(rows)}, **table(rows)),
        schedule=Schedule(blocks=6 if quick else 16, warmup_blocks=1, turn_ns=400_000_000 if quick else None),
        watch=Watch(overhead_blocks=0),
        judge=Judge(headline="mean"),
    )


STUDY = Study(
    name="checksum",
    question="What do checksums of data pages cost?",
    workload="One session scans a table four times as large as shared_buffers, or updates rows of it by key; a server "
    "made by initdb with checksums and one without. Server CPU per transaction is reported.",
    targets="PostgreSQL: embedded servers that the study starts, on this host. MariaDB: --target mariadb, likewise, "
    "with the factors checksum=crc32,full_crc32 (innodb_checksum_algorithm; up to 10.5 also none), doublewrite=on, "
    "load, rows, pool=8M (innodb_buffer_pool_size)",
    source="Glenn Fawcett: block checksums of Oracle on and off, with a bug in checksum code and patched (E20)",
    found_there="CPU +45 % to +250 % with the bug (6814520), +8 % with the patch.",
    factors=(
        Factor("checksums", "on and off: options of initdb; the first is the base", "off,on"),
        Factor("load", "scan, update", "scan,update"),
        Factor("full_page_writes", "full-page images in the log after a checkpoint: on, off", "on", full="on,off"),
        Factor("rows", "rows of the table, about 100 bytes each", "400000", full="4000000", quick="100000"),
        Factor("shared_buffers", "smaller than the table, so that pages are read", "8MB", quick="2MB"),
    ),
    make=_plan,
    variants={"mariadb": Variant(MARIADB, _on_mariadb)},
)
