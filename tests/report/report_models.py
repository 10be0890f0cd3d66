"""Analysis models for the renderers' tests: as real ones look, from seeded dice, and as bad as they can get.

Latencies are log-normal around 100 us with a slow second kind of work and rare stalls, so that figures show what they
show in practice. The statistics here are rough on purpose: a renderer must show what it is given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

OPERATIONS = 60_000
BLOCKS = 20
WIDTH_S = 0.5
QUANTILES = (
    0.001, 0.003, 0.01, 0.03, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99, 0.995, 0.999,
    0.9995, 0.9999,
)  # fmt: skip
HOSTILE = "</script><img src=x onerror=alert(1)>'\"--&amp;{{7*7}}\u2028\u202e\x1b[31m\x00${x}`'];//"

Model = dict[str, Any]


def experiment(factors: tuple[float, ...] = (1.0, 1.066), seed: int = 7) -> Model:
    """Two or more arms; each arm's median is the given multiple of 100 us, its tail a little more."""
    dice = np.random.default_rng(seed)
    waits = [_latencies(dice, factor) for factor in factors]
    names = ["work_mem 64 MB", "work_mem 4 MB", "work_mem 1 MB", "work_mem 256 kB"][: len(factors)]
    arms = [_arm(at, name, waits[at]) for at, name in enumerate(names)]
    metrics = [row for at in range(1, len(arms)) for row in _metrics(dice, at, arms[at], arms[0], factors[at])]
    return {
        "schema": 1,
        "kind": "experiment",
        "run": _run("Does work_mem matter for the order report?"),
        "verdict": {
            "decision": "slower",
            "headline": f"{names[-1]} is slower than {names[0]}: the median by 6.6 %.",
            "sentences": [
                "The median went from 99.6 to 106 µs, 6.6 % slower (95 % interval 5.9 to 7.3 %, 20 blocks).",
                "Throughput fell by 6.1 %.",
                "The far tail (p99.9) differs by less than this run can see; 64 more blocks would tell.",
            ],
        },
        "arms": arms,
        "metrics": metrics,
        "classical": _classical(len(arms)),
        "statements": _statements(waits),
        "figures": _figures(dice, waits, metrics),
        "warnings": [
            {
                "code": "generator-lag",
                "text": "In 3 of 20 blocks the load generator started operations up to 4.1 ms late.",
                "next": "Lower the rate, or give the client its own CPU: sessions = 4.",
            },
            {
                "code": "busy-host",
                "text": "The fsync canary varied by 31 % between blocks: something else used the disk.",
                "next": "Run again when the host is quiet; --blocks 40 would tell p99.9 apart as it is.",
            },
        ],
        "gates": _gates(),
        "method": _method(),
        "engine": _engine(),
    }


def three_arms() -> Model:
    """Three arms: much faster, the same, much slower."""
    model = experiment((1.0, 0.82, 1.9, 1.004))
    model["verdict"] |= {"decision": "faster", "headline": "work_mem 4 MB is 18 % faster at the median."}
    return model


def aa() -> Model:
    """One arm against itself."""
    model = experiment((1.0, 1.001), seed=11)
    model["kind"] = "aa"
    for arm in model["arms"]:
        arm["name"] = "as it is"
    model["arms"][1]["changes"] = {}
    model["run"]["title"] = "Noise floor of the order report"
    model["verdict"] = {
        "decision": "noise floor",
        "headline": "This set-up can see a difference of 1.2 % at the median with 20 blocks.",
        "sentences": ["One arm ran against itself, so every difference below is noise.",
                      "To see 1 % at the median takes 29 blocks; to see 5 % at p99.9, 46."],
    }  # fmt: skip
    return model


def curve(found: bool = True, seed: int = 3) -> Model:
    """Commit time over redo size with a sawtooth of 1 MiB, or a straight line."""
    dice = np.random.default_rng(seed)
    redo = dice.uniform(0, 4 * 2**20, 1500)
    rising = redo % 2**20 if found else redo / 2.5
    took = (450_000 + 2.2 * rising) * dice.lognormal(0, 0.13, redo.size)
    took[dice.random(redo.size) < 0.012] *= dice.uniform(4, 14)
    edges = np.linspace(0, 4 * 2**20, 33)
    bins = []
    for low, high in zip(edges[:-1], edges[1:], strict=True):
        inside = took[(redo >= low) & (redo < high)]
        quarter, middle, three = np.percentile(inside, (10, 50, 90))
        bins.append({"redo_bytes": (low + high) / 2, "median_ns": middle, "low_ns": quarter,
                     "high_ns": three, "n": int(inside.size)})  # fmt: skip
    along = np.linspace(0, 4 * 2**20, 400)
    fitted = 452_000 + 2.21 * (along % 2**20 if found else along / 2.5)
    model = experiment((1.0,), seed)
    model["kind"] = "curve"
    model["arms"][0] |= {"name": "commit", "description": "update of n rows, then commit"}
    model["run"] = _run("Commit time over redo size", title="redo-size")
    model["verdict"] = {
        "decision": "found" if found else "not found",
        "headline": "A sawtooth with a period of 1.00 MiB." if found else "No sawtooth: commit time rises evenly.",
        "sentences": ["Up to 1.00 MiB of redo, each further KiB costs 2.2 µs at commit; then it starts again."],
    }
    model["figures"] = {
        "curve": {
            "x_label": "redo bytes since the last commit", "bins": bins,
            "points": {"redo_bytes": redo.tolist(), "elapsed_ns": took.tolist()},
            "fit": {"redo_bytes": along.tolist(), "elapsed_ns": fitted.tolist()},
            "models": [
                {"name": "constant", "parameters": 1, "bic": 9120.4, "chosen": False},
                {"name": "straight line", "parameters": 2, "bic": 8873.0, "chosen": not found},
                {"name": "sawtooth", "parameters": 4, "bic": 7011.9, "chosen": found},
            ],
            "period_bytes": 2**20 if found else None, "found": found,
            "sentence": "The sawtooth is preferred over a straight line by 1861 BIC points.",
        }
    } | {key: value for key, value in model["figures"].items() if key in ("distribution", "waits", "heatmap", "tail")}  # fmt: skip
    return model


def aborted() -> Model:
    """One whole block of thirty, intervals unknown."""
    model = experiment()
    model["run"] |= {"status": "aborted", "blocks_planned": 30, "blocks_whole": 1, "duration_s": 9.7}
    model["verdict"] = {
        "decision": "unclear",
        "headline": "Cannot tell: the run ended after 1 of 30 blocks.",
        "sentences": ["One block has no interval."],
    }
    for row in model["metrics"]:
        row |= dict.fromkeys(("low", "high", "boot_low", "boot_high", "p", "q", "smallest_visible"))
        row |= {"blocks": 1, "decision": "unclear", "blocks_needed": None, "words": "cannot tell"}
    for entry in model["figures"]["quantile_ratio"]:
        entry |= {"low": [None] * len(entry["ratio"]), "high": None}
    for entry in model["figures"]["blocks"]:
        entry |= {key: entry[key][:1] for key in ("block", "at_s", "ratio", "marked")}
    model["classical"] = []
    model["warnings"] = [{"code": "aborted", "text": "The run was stopped.", "next": "dbdyno run --resume RUN"}]
    return model


def bare(kind: str = "experiment") -> Model:
    """Nothing but the head."""
    return {"schema": 1, "kind": kind}


def hollow(kind: str = "experiment") -> Model:
    """Every key there, every value null or empty."""
    keys = ("arms", "metrics", "classical", "statements", "warnings", "gates")
    names = ("distribution", "quantile_ratio", "tail", "blocks", "heatmap", "waits")
    return {
        "schema": 1,
        "kind": kind,
        "run": dict.fromkeys(_run("")),
        "verdict": {"decision": None, "headline": None, "sentences": []},
        **{key: [] for key in keys},
        "figures": {name: [] for name in names} | {"curve": None},
        "method": {"sentences": [], "overhead": None},
        "engine": {"facts": {}, "settings": []},
    }


def nulls() -> Model:
    """As real, but every number is null."""
    def without(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: v if k in ("schema", "arm", "index", "baseline") else without(v) for k, v in value.items()}
        if isinstance(value, list):
            return [without(entry) for entry in value]
        return None if isinstance(value, float) or type(value) is int else value

    return without(experiment())  # type: ignore[no-any-return]


def hostile(kind: str = "experiment") -> Model:
    """Every string that came from outside tries to break out of the page."""
    kept = {"kind", "schema", "unit", "metric", "decision", "started_at", "switch", "status"}

    def spoilt(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {(k if key not in ("changes", "facts", "error_codes") else k + HOSTILE): spoilt(v, k)
                    for k, v in value.items()}  # fmt: skip
        if isinstance(value, list):
            return [spoilt(entry, key) for entry in value]
        return value + HOSTILE if isinstance(value, str) and key not in kept else value

    return spoilt(curve() if kind == "curve" else experiment())  # type: ignore[no-any-return]


def _latencies(dice: np.random.Generator, factor: float) -> np.ndarray[Any, Any]:
    """Operations in time order: drifting, mostly quick, some of a slower kind, a few stalls."""
    drift = 1 + 0.08 * np.sin(np.arange(OPERATIONS) / OPERATIONS * 9)
    waits = 100_000 * factor * drift * dice.lognormal(0, 0.28, OPERATIONS)
    slow = dice.random(OPERATIONS) < 0.035
    waits[slow] = 900_000 * factor**2 * dice.lognormal(0, 0.35, slow.sum())
    stalled = dice.random(OPERATIONS) < 0.0006
    waits[stalled] = 8_000_000 * dice.pareto(2.1, stalled.sum()) + 4_000_000
    return waits


def _arm(at: int, name: str, waits: np.ndarray[Any, Any]) -> Model:
    picked = np.quantile(waits, (0.5, 0.9, 0.99, 0.999))
    return {
        "index": at, "name": name, "description": "as the server is set today" if at == 0 else "",
        "changes": {} if at == 0 else {"work_mem": name.removeprefix("work_mem "), "hash_mem_multiplier": "2.0"},
        "sessions": 8, "baseline": at == 0, "ops": OPERATIONS * 20 + at * 311, "errors": 3 * at,
        "error_codes": {"40001": 2 * at, "57014": at} if at else {}, "retries": 0, "skipped": 0,
        "throughput_per_s": 8e9 / waits.mean(), "mean_ns": waits.mean(), "sd_ns": waits.std(),
        "quantiles_ns": dict(zip(("p50", "p90", "p99", "p99.9"), picked.tolist(), strict=True)),
        "max_ns": float(waits.max()),
    }  # fmt: skip


def _metrics(dice: np.random.Generator, at: int, arm: Model, base: Model, factor: float) -> list[Model]:
    rows = []
    table = (("mean", "mean latency", 0.008), ("p50", "median latency", 0.006), ("p90", "90 % quantile", 0.008),
             ("p99", "99 % quantile", 0.03), ("p99.9", "99.9 % quantile", 0.16), ("throughput", "throughput", 0.007))  # fmt: skip
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
        pick = (lambda a, v=value, n=name: a[v] if v else a["quantiles_ns"][n])
        rows.append({
            "arm": at, "baseline": 0, "metric": name, "label": label, "unit": "1/s" if higher else "ns",
            "higher_is_better": higher, "base_value": pick(base), "value": pick(arm), "ratio": ratio, "low": low,
            "high": high, "boot_low": low * 1.001, "boot_high": high * 0.999, "level": 0.95,
            "p": 0.21 if decision == "unclear" else 3e-9, "q": 0.25 if decision == "unclear" else 1e-8,
            "blocks": BLOCKS, "decision": decision,
            "words": {"unclear": "cannot tell", "same": "no difference larger than 2 %"}.get(
                decision, f"{abs(ratio - 1):.1%} {decision}"),
            "smallest_visible": noise * 1.4, "blocks_needed": 84 if decision == "unclear" else None,
        })  # fmt: skip
    return rows


def _figures(dice: np.random.Generator, waits: list[np.ndarray[Any, Any]], metrics: list[Model]) -> Model:
    edges = np.geomspace(30_000, 400_000_000, 150)
    figures: Model = {"distribution": [], "quantile_ratio": [], "tail": [], "blocks": [], "heatmap": [], "waits": [],
                      "curve": None}  # fmt: skip
    for at, took in enumerate(waits):
        share = np.histogram(took, edges)[0] / took.size
        used = np.nonzero(share)[0]
        figures["distribution"].append({"arm": at, "low_ns": edges[:-1][used].tolist(),
                                        "high_ns": edges[1:][used].tolist(), "share": share[used].tolist()})  # fmt: skip
        exceed = np.geomspace(1, 1 / took.size, 260)
        figures["tail"].append({"arm": at, "exceed_share": exceed.tolist(),
                                "elapsed_ns": np.quantile(took, 1 - exceed).tolist()})  # fmt: skip
        figures["heatmap"].append(_heat(at, took))
        figures["waits"] += _waits(at)
        if at:
            ratio = np.quantile(took, QUANTILES) / np.quantile(waits[0], QUANTILES)
            spread = 0.004 + 0.25 * (np.array(QUANTILES) ** 40) + 0.02 * (1 - np.array(QUANTILES)) ** 30
            figures["quantile_ratio"].append({
                "arm": at, "quantile": list(QUANTILES), "ratio": ratio.tolist(),
                "low": (ratio / (1 + spread)).tolist(), "high": (ratio * (1 + spread)).tolist()})  # fmt: skip
    for row in metrics:
        if row["metric"] in ("p50", "p99", "throughput"):
            noise = {"p50": 0.012, "p99": 0.05, "throughput": 0.014}[row["metric"]]
            marked = ["reconnect" if at == 12 else "" for at in range(BLOCKS)]
            figures["blocks"].append({
                "arm": row["arm"], "metric": row["metric"], "block": list(range(BLOCKS)),
                "at_s": [3 + 2.0 * at for at in range(BLOCKS)], "marked": marked,
                "ratio": (row["ratio"] * np.exp(dice.normal(0, noise, BLOCKS))).tolist()})  # fmt: skip
    return figures


def _heat(at: int, took: np.ndarray[Any, Any]) -> Model:
    edges = np.geomspace(30_000, 400_000_000, 64)
    counts, _, lows = np.histogram2d(np.arange(took.size) / took.size * 43, took, (np.arange(0, 43.5, WIDTH_S), edges))
    column, row = np.nonzero(counts)
    return {"arm": at, "at_s": (column * WIDTH_S).tolist(), "width_s": WIDTH_S, "low_ns": lows[row].tolist(),
            "high_ns": lows[row + 1].tolist(), "count": counts[column, row].astype(int).tolist()}  # fmt: skip


def _waits(at: int) -> list[Model]:
    shares = (("CPU", "CPU", 0.44 - 0.04 * at), ("data read", "DataFileRead", 0.13 + 0.02 * at),
              ("commit", "WALSync", 0.21 + 0.015 * at), ("log write", "WALWrite", 0.05), ("lock", "transactionid", 0.03),
              ("data read", "BufFileRead", 0.02 + 0.03 * at), ("network", "ClientRead", 0.07), ("idle", "idle", 0.02))  # fmt: skip
    return [{"arm": at, "class": kind, "event": event, "samples": int(share * 1900), "share": share}
            for kind, event, share in shares]  # fmt: skip


def _run(question: str, title: str = "work-mem") -> Model:
    return {
        "id": "2026-11-21T10-02-11Z-work-mem-7f3a", "title": title, "question": question, "status": "complete",
        "started_at": "2026-11-21T10:02:11Z", "duration_s": 131.4, "tool_version": "0.1.0", "seed": 7,
        "blocks_planned": 20, "blocks_whole": 20, "warmup_blocks": 2, "switch": "slices", "slice_ms": 50,
        "order": "random ABBA within each block", "threshold": 0.02,
        "plan_toml": '[run]\ntitle = "work-mem"\nblocks = 20\n\n[[arms]]\nname = "work_mem 4 MB"\nset.work_mem = "4MB"\n',
    }  # fmt: skip


def _classical(arms: int) -> list[Model]:
    note = "assumes independent waits"
    return [
        {"arm": arm, "baseline": 0, "test": test, "statistic": value, "df": df, "log10_p": p, "effect": effect, "note": note}
        for arm in range(1, arms)
        for test, value, df, p, effect in (
            ("Welch t", 41.2, 2_399_120.0, -370.2, "mean difference 9.1 µs"),
            ("Mann-Whitney U", 7.1e11, None, -15046.8, "P(B > A) = 0.57"),
            ("Kolmogorov-Smirnov", 0.093, None, -2.4, "largest gap 0.093"),
        )
    ]  # fmt: skip


def _statements(waits: list[np.ndarray[Any, Any]]) -> list[Model]:
    texts = (("select o.id, sum(l.amount) from orders o join lines l on l.order_id = o.id where o.customer = $1 "
              "group by o.id order by 2 desc limit 20", "exec", 0.8), ("commit", "commit", 0.2))  # fmt: skip
    return [
        {"statement": text, "kind": kind, "arms": [
            {"arm": at, "ops": OPERATIONS * 20, "mean_ns": took.mean() * part, "p50_ns": float(np.median(took)) * part,
             "p99_ns": float(np.quantile(took, 0.99)) * part} for at, took in enumerate(waits)]}
        for text, kind, part in texts
    ]  # fmt: skip


def _gates() -> list[Model]:
    return [
        {"name": "equal work per operation", "ok": True, "text": "20.0 rows per operation in both arms."},
        {"name": "generator lag", "ok": False, "text": "Up to 4.1 ms in 3 blocks, more than 1 % of the median."},
        {"name": "cold or hot", "ok": None, "text": "Not known: this role may not read pg_stat_io."},
    ]


def _method() -> Model:
    return {
        "sentences": [
            "Arms alternated in slices of 50 ms in random ABBA order, both connections open; 2 warm-up blocks not counted.",
            "Per block and metric: the logarithm of the arms' ratio; the interval is Student's t over 20 blocks.",
            "Decisions use a threshold of 2 % and a false discovery rate of 5 % over all metrics.",
        ],
        "overhead": {"text": "Watching the server cost 0.4 % of throughput.", "ratio": 0.996, "low": 0.991, "high": 1.001},
    }  # fmt: skip


def _engine() -> Model:
    return {
        "facts": {"version": "PostgreSQL 15.18", "CPUs": "2", "memory": "23.5 GiB", "kernel": "Linux 6.1", "data": "ext4"},
        "settings": [
            {"name": "shared_buffers", "value": "128MB", "source": "configuration file"},
            {"name": "max_wal_size", "value": "1GB", "source": "default"},
            {"name": "synchronous_commit", "value": "on", "source": "default"},
        ],
    }  # fmt: skip
