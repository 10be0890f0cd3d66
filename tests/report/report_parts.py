"""Parts of the analysis models, drawn at random from a seed and realistic in shape.

Latencies are log-normal around 100 us with a slow second kind of work and rare stalls, so that figures show what they
show in practice. The statistics here are intentionally rough: a renderer must show any values that it gets.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dbdyno.base.json_types import JsonObject

OPERATIONS = 60_000
BLOCKS = 20
WIDTH_S = 0.5
QUANTILES = (
    *(0.001, 0.003, 0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97),
    *(0.99, 0.995, 0.999, 0.9995, 0.9999),
)

Model = JsonObject


def make_latencies(dice: np.random.Generator, factor: float) -> np.ndarray[Any, Any]:
    """Return latencies in time order: with drift, mostly short, some of a slower kind, and a few stalls."""
    drift = 1 + 0.08 * np.sin(np.arange(OPERATIONS) / OPERATIONS * 9)
    waits = 100_000 * factor * drift * dice.lognormal(0, 0.28, OPERATIONS)
    slow = dice.random(OPERATIONS) < 0.035
    waits[slow] = 900_000 * factor**2 * dice.lognormal(0, 0.35, slow.sum())
    stalled = dice.random(OPERATIONS) < 0.0006
    waits[stalled] = 8_000_000 * dice.pareto(2.1, stalled.sum()) + 4_000_000
    return waits


def make_arm(at: int, name: str, waits: np.ndarray[Any, Any]) -> Model:
    picked = np.quantile(waits, (0.5, 0.9, 0.99, 0.999))
    return {
        "index": at,
        "name": name,
        "description": "as the server is set today" if at == 0 else "",
        "changes": {} if at == 0 else {"work_mem": name.removeprefix("work_mem "), "hash_mem_multiplier": "2.0"},
        "sessions": 8,
        "baseline": at == 0,
        "ops": OPERATIONS * 20 + at * 311,
        "errors": 3 * at,
        "error_codes": {"40001": 2 * at, "57014": at} if at else {},
        "retries": 0,
        "skipped": 0,
        "throughput_per_s": 8e9 / waits.mean(),
        "mean_ns": waits.mean(),
        "sd_ns": waits.std(),
        "quantiles_ns": dict(zip(("p50", "p90", "p99", "p99.9"), picked.tolist(), strict=True)),
        "max_ns": float(waits.max()),
    }


def make_metrics(dice: np.random.Generator, at: int, arm: Model, base: Model, factor: float) -> list[Model]:
    rows = []
    table = (
        ("mean", "mean latency", 0.008),
        ("p50", "median latency", 0.006),
        ("p90", "90 % quantile", 0.008),
        ("p99", "99 % quantile", 0.03),
        ("p99.9", "99.9 % quantile", 0.16),
        ("throughput", "throughput", 0.007),
    )
    for name, label, noise in table:
        higher = name == "throughput"
        ratio = (1 / factor if higher else factor) * float(np.exp(dice.normal(0, noise / 3)))
        low, high = ratio * (1 - noise), ratio * (1 + noise)
        worse, better = (low > 1.02, high < 1 / 1.02)
        if higher:
            worse, better = better, worse
        same = low > 1 / 1.02 and high < 1.02
        decision = "slower" if worse else "faster" if better else "same" if same else "unclear"
        value = {"mean": "mean_ns", "throughput": "throughput_per_s"}.get(name)
        rows.append(
            {
                "arm": at,
                "baseline": 0,
                "metric": name,
                "label": label,
                "unit": "1/s" if higher else "ns",
                "higher_is_better": higher,
                "base_value": base[value] if value else base["quantiles_ns"][name],
                "value": arm[value] if value else arm["quantiles_ns"][name],
                "ratio": ratio,
                "low": low,
                "high": high,
                "boot_low": low * 1.001,
                "boot_high": high * 0.999,
                "level": 0.95,
                "p": 0.21 if decision == "unclear" else 3e-9,
                "q": 0.25 if decision == "unclear" else 1e-8,
                "blocks": BLOCKS,
                "decision": decision,
                "words": {"unclear": "cannot tell", "same": "no difference larger than 2 %"}.get(
                    decision, f"{abs(ratio - 1):.1%} {decision}"
                ),
                "smallest_visible": noise * 1.4,
                "blocks_needed": 84 if decision == "unclear" else None,
                "tell_low": 52 if decision == "unclear" else None,
                "tell_high": 190 if decision == "unclear" else None,
            }
        )
    return rows


def make_figures(dice: np.random.Generator, waits: list[np.ndarray[Any, Any]], metrics: list[Model]) -> Model:
    edges = np.geomspace(30_000, 400_000_000, 150)
    figures: Model = {
        "distribution": [],
        "quantile_ratio": [],
        "tail": [],
        "blocks": [],
        "heatmap": [],
        "waits": [],
        "over_time": make_over_time(len(waits)),
        "curve": None,
    }
    for at, took in enumerate(waits):
        share = np.histogram(took, edges)[0] / took.size
        used = np.nonzero(share)[0]
        figures["distribution"].append(
            {
                "arm": at,
                "low_ns": edges[:-1][used].tolist(),
                "high_ns": edges[1:][used].tolist(),
                "share": share[used].tolist(),
            }
        )
        exceed = np.geomspace(1, 1 / took.size, 260)
        figures["tail"].append(
            {
                "arm": at,
                "exceed_share": exceed.tolist(),
                "elapsed_ns": np.quantile(took, 1 - exceed).tolist(),
            }
        )
        figures["heatmap"].append(make_heat(at, took))
        figures["waits"] += make_waits(at)
        if at:
            ratio = np.quantile(took, QUANTILES) / np.quantile(waits[0], QUANTILES)
            spread = 0.004 + 0.25 * (np.array(QUANTILES) ** 40) + 0.02 * (1 - np.array(QUANTILES)) ** 30
            figures["quantile_ratio"].append(
                {
                    "arm": at,
                    "quantile": list(QUANTILES),
                    "ratio": ratio.tolist(),
                    "low": (ratio / (1 + spread)).tolist(),
                    "high": (ratio * (1 + spread)).tolist(),
                }
            )
    for row in metrics:
        if row["metric"] in ("p50", "p99", "throughput"):
            noise = {"p50": 0.012, "p99": 0.05, "throughput": 0.014}[row["metric"]]
            marked = ["reconnect" if at == 12 else "" for at in range(BLOCKS)]
            figures["blocks"].append(
                {
                    "arm": row["arm"],
                    "metric": row["metric"],
                    "block": list(range(BLOCKS)),
                    "at_s": [3 + 2.0 * at for at in range(BLOCKS)],
                    "marked": marked,
                    "ratio": (row["ratio"] * np.exp(dice.normal(0, noise, BLOCKS))).tolist(),
                }
            )
    return figures


def make_over_time(arms: int) -> list[Model]:
    at_s = [2.0 * at for at in range(BLOCKS)]
    host = (("CPU busy", "share", 0.81), ("disk writes", "bytes/s", 4.1e7), ("transactions", "1/s", 812.0))
    whole = {"at_s": at_s, "seconds": [1.9] * BLOCKS}
    own = (("failed transactions", "share", 0.01), ("CPU of a transaction", "ns", 61_000.0))
    own += (("storage reads of a transaction", "bytes", 8192.0), ("blocks of a transaction", "count", 41.0))
    shares = [{"measure": m, "unit": u, "arm": at, "level": v * at} for m, u, v in own for at in range(arms)]
    return [
        {k: v for k, v in row.items() if k != "level"}
        | whole
        | {"value": [row["level"] * (1 + 0.1 * (at % 3)) for at in range(BLOCKS)]}
        for row in (*({"measure": m, "unit": u, "arm": None, "level": v} for m, u, v in host), *shares)
    ]


def make_heat(at: int, took: np.ndarray[Any, Any]) -> Model:
    edges = np.geomspace(30_000, 400_000_000, 64)
    counts, _, lows = np.histogram2d(np.arange(took.size) / took.size * 43, took, (np.arange(0, 43.5, WIDTH_S), edges))
    column, row = np.nonzero(counts)
    return {
        "arm": at,
        "at_s": (column * WIDTH_S).tolist(),
        "width_s": WIDTH_S,
        "low_ns": lows[row].tolist(),
        "high_ns": lows[row + 1].tolist(),
        "count": counts[column, row].astype(int).tolist(),
    }


def make_waits(at: int) -> list[Model]:
    shares = (
        ("CPU", "CPU", 0.44 - 0.04 * at),
        ("data read", "DataFileRead", 0.13 + 0.02 * at),
        ("commit", "WALSync", 0.21 + 0.015 * at),
        ("log write", "WALWrite", 0.05),
        ("lock", "transactionid", 0.03),
        ("data read", "BufFileRead", 0.02 + 0.03 * at),
        ("network", "ClientRead", 0.07),
        ("idle", "idle", 0.02),
    )
    return [
        {"arm": at, "class": kind, "event": event, "samples": int(share * 1900), "share": share}
        for kind, event, share in shares
    ]


def make_run(question: str, title: str = "work-mem") -> Model:
    return {
        "id": "2026-11-21T10-02-11Z-work-mem-7f3a",
        "title": title,
        "question": question,
        "status": "complete",
        "started_at": "2026-11-21T10:02:11Z",
        "duration_s": 131.4,
        "tool_version": "0.1.0",
        "seed": 7,
        "blocks_planned": 20,
        "blocks_whole": 20,
        "warmup_blocks": 2,
        "switch": "slices",
        "slice_ms": 50,
        "order": "random ABBA within each block",
        "threshold": 0.02,
        "plan_toml": '[run]\ntitle = "work-mem"\nblocks = 20\n\n[[arms]]\nname = "work_mem 4 MB"\n',
    }


def make_classical(arms: int) -> list[Model]:
    note = "assumes independent waits"
    return [
        {
            "arm": arm,
            "baseline": 0,
            "test": test,
            "statistic": value,
            "df": df,
            "log10_p": p,
            "effect": effect,
            "note": note,
        }
        for arm in range(1, arms)
        for test, value, df, p, effect in (
            ("Welch t", 41.2, 2_399_120.0, -370.2, "mean difference 9.1 µs"),
            ("Mann-Whitney U", 7.1e11, None, -15046.8, "P(B > A) = 0.57"),
            ("Kolmogorov-Smirnov", 0.093, None, -2.4, "largest gap 0.093"),
        )
    ]


def make_statements(waits: list[np.ndarray[Any, Any]]) -> list[Model]:
    texts = (
        (
            "select o.id, sum(l.amount) from orders o join lines l on l.order_id = o.id "
            "where o.customer = $1 "
            "group by o.id order by 2 desc limit 20",
            "exec",
            0.8,
        ),
        ("commit", "commit", 0.2),
    )
    return [
        {
            "statement": text,
            "kind": kind,
            "arms": [
                {
                    "arm": at,
                    "ops": OPERATIONS * 20,
                    "mean_ns": took.mean() * part,
                    "p50_ns": float(np.median(took)) * part,
                    "p99_ns": float(np.quantile(took, 0.99)) * part,
                }
                for at, took in enumerate(waits)
            ],
        }
        for text, kind, part in texts
    ]


def make_gates() -> list[Model]:
    return [
        {
            "name": "equal work per operation",
            "ok": True,
            "text": "20.0 rows per operation in both arms.",
        },
        {
            "name": "generator lag",
            "ok": False,
            "text": "Up to 4.1 ms in 3 blocks, more than 1 % of the median.",
        },
        {
            "name": "cold or hot",
            "ok": None,
            "text": "Not known: this role may not read pg_stat_io.",
        },
    ]


def make_method() -> Model:
    return {
        "sentences": [
            "Arms alternated in slices of 50 ms in random ABBA order, both connections open.",
            "Per block and metric: the logarithm of the arms' ratio; Student's t over 20 blocks.",
            "Decisions use a threshold of 2 % and a false discovery rate of 5 % over all metrics.",
        ],
        "overhead": {
            "text": "Watching the server cost 0.4 % of throughput.",
            "ratio": 0.996,
            "low": 0.991,
            "high": 1.001,
        },
    }


def make_engine() -> Model:
    return {
        "facts": {
            "version": "PostgreSQL 15.18",
            "CPUs": "2",
            "memory": "23.5 GiB",
            "kernel": "Linux 6.1",
            "data": "ext4",
        },
        "settings": [
            {"name": "shared_buffers", "value": "128MB", "source": "configuration file"},
            {"name": "max_wal_size", "value": "1GB", "source": "default"},
            {"name": "synchronous_commit", "value": "on", "source": "default"},
        ],
    }
