# Everything is made inside the clone: .venv (Python, pinned), target (Rust), dist (wheels), runs (evidence).
# Needs: git, Python 3.11+, Rust, a C compiler, make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
CARGO ?= cargo
WORKERS ?= 4
COVERED ?= tests
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name Cargo.toml -o -name help.txt) Cargo.toml Cargo.lock
PYTHON_FILES := python packages tests benches tools/wheel_backend.py tools/docs_hooks.py
CORE := python/dbdyno/_core.abi3.so
# The backend is one of our own around maturin's (tools/wheel_backend.py).
export MATURIN_NO_MISSING_BUILD_BACKEND_WARNING := 1

# What maturin told pyo3 of the interpreter: without it cargo would compile the binding for another one, and maturin for
# its own once more.
AS_BUILT = $(addprefix PYO3_CONFIG_FILE=,$(firstword $(wildcard $(abspath target/maturin)/pyo3-config-*-abi3.txt)))
# Clippy's driver is a compiler, too; these variables are how cargo-clippy starts it.
CLIPPY := $(shell command -v clippy-driver)
CLIPPY_RUNS = RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__
LINTED = $(AS_BUILT) $(if $(CLIPPY),$(CLIPPY_RUNS))

# `release` is what users get, and the tests of Rust beside it are compiled as `bench`, with the same dependencies. With
# `ci` the core is compiled as the tests are, and linted as it is compiled: our crates and all they need are compiled once.
PROFILE ?= release
TESTED := $(PROFILE:release=bench)
ifeq ($(PROFILE),ci)
BUILT = $(if $(CLIPPY),$(CLIPPY_RUNS))
endif

.PHONY: help setup setup-clients setup-wide setup-test programs build wheel wheel-arm64 man docs demo demo-ui test test-rust test-python check-rust compile-rust matrix soak coverage bench reference lint lint-rust lint-python audit format clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

setup: $(VENV)/ready build  ## virtual environment, pinned dependencies, release build

# The set-up holds what runs and what builds; what tests and what only Spark needs come with the targets that use it.
# What builds comes first: with -j2 the core is compiled while the rest is downloaded.
$(VENV)/maturin: requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.11"; exit 2; }
	@$(PYTHON) -c 'import venv, ensurepip' || \
	  { echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) "$$(grep '^maturin==' requirements-dev.txt)"
	@touch $@

$(VENV)/ready: requirements.txt packages/dbdyno-rig/pyproject.toml | $(VENV)/maturin
	$(PIP) -r requirements.txt
	$(PIP) --no-deps -e packages/dbdyno-rig
	@touch $@

$(VENV)/dev: requirements-dev.txt | $(VENV)/ready
	$(PIP) -r requirements-dev.txt
	@touch $@

$(VENV)/extra: requirements-extra.txt | $(VENV)/ready
	$(PIP) -r requirements-extra.txt
	@touch $@

$(VENV)/clients: requirements-clients.txt | $(VENV)/ready
	$(PIP) -r requirements-clients.txt
	@touch $@

setup-clients: setup $(VENV)/clients  ## drivers of the external clients, into .venv and target/clients (needs Java, Maven, npm)
	tools/setup-clients

$(VENV)/wide: requirements-wide.txt | $(VENV)/ready
	$(PIP) -r requirements-wide.txt
	@touch $@

setup-wide: setup $(VENV)/wide  ## Cassandra's driver, into .venv; Cassandra, Spark's connector, Pig and HDFS, into target/wide (needs Java 17, Maven)
	tools/setup-wide

build: $(CORE) $(VENV)/dbdyno  ## release build of the Rust core (PROFILE=ci: a quick one)

# A core of another profile is none: what users measure with is never what CI was quick to compile.
$(VENV)/built-as-$(PROFILE): | $(VENV)/maturin
	@rm -f $(VENV)/built-as-*
	@touch $@

$(CORE): $(RUST_SOURCES) pyproject.toml tools/wheel_backend.py $(VENV)/built-as-$(PROFILE) | $(VENV)/maturin
	$(BUILT) DBDYNO_PROFILE=$(PROFILE) CARGO=$(CARGO) $(BIN)/python tools/wheel_backend.py $(BIN) >/dev/null
	$(BUILT) VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --profile $(PROFILE) --quiet --skip-install
	@touch $@

$(VENV)/dbdyno: pyproject.toml | $(CORE) $(VENV)/ready
	$(BUILT) PIP_QUIET=1 VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --profile $(PROFILE) --quiet
	@touch $(CORE) $@

setup-test: setup $(VENV)/dev $(VENV)/docs programs  ## what only the tests need, from Debian's packages (chromium, postgresql, mariadb, sshd)

programs:
	tools/setup-test

wheel: setup  ## dist/: a wheel for this platform (abi3, Python 3.11 and later), the source, the wheel of dbdyno-rig, the bill of materials, all checked
	rm -rf dist
	CARGO=$(CARGO) $(BIN)/python tools/wheel_backend.py >/dev/null
	$(BIN)/maturin build --release --quiet --interpreter $(abspath $(BIN))/python --out dist
	$(BIN)/maturin sdist --out dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist packages/dbdyno-rig
	$(BIN)/python tools/sbom dist/dbdyno.cdx.json
	PYTHON=$(BIN)/python tools/check-wheels

wheel-arm64: wheel  ## as wheel, and a wheel for Linux on arm64 beside it, cross-compiled by Zig (rustup target add aarch64-unknown-linux-gnu)
	PYTHON=$(abspath $(BIN))/python CARGO=$(CARGO) tools/portable-wheel aarch64
	PYTHON=$(BIN)/python tools/check-wheels

man: setup $(VENV)/dev  ## man pages of all commands in target/man
	$(BIN)/python tools/man.py target/man

$(VENV)/docs: requirements-docs.txt | $(VENV)/ready
	$(PIP) -r requirements-docs.txt
	@touch $@

# Not --quiet: that drops the warnings that --strict counts, and a broken link is one. The variable: the theme tells at
# each build when it is no longer maintained (May 2027).
docs: build $(VENV)/docs  ## documentation site in site/, to be read as files (site/index.html)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

demo: setup  ## synchronous_commit on and off on an embedded PostgreSQL, about two minutes
	$(BIN)/dbdyno run examples/synchronous_commit.toml

demo-ui: setup  ## pages in a browser over a planted day of a server, made in about a minute
	rm -rf target/demo-ui
	$(BIN)/python tests/ui/planted_day.py target/demo-ui
	$(BIN)/dbdyno ui --runs runs --store target/demo-ui/snaps

# Tests of the load wait for servers and sockets: more of them at once than there are cores.
WAITING := RUST_TEST_THREADS=8

# With -j Rust is compiled beside Python's tests, where these wait for servers; its own tests come last, by themselves.
test: setup $(VENV)/dev compile-rust test-python  ## all tests; Rust is linted as it is compiled for them
	$(MAKE) --no-print-directory check-rust

test-rust:
	$(WAITING) $(CARGO) test --profile $(TESTED) --quiet --workspace --tests --example evaluate
	$(CARGO) test --profile $(TESTED) --quiet --workspace --doc

# Each worker has servers of its own, and takes from the others when it is done. Tests that fail beside the other workers
# run a second time, alone on the machine, and are named at the end: one that is named there often is a test to mend.
PYTEST = $(BUILT) $(BIN)/python -m pytest -o cache_dir=target/pytest tests
test-python: setup $(VENV)/dev
	$(PYTEST) --cache-clear -n $(WORKERS) --dist worksteal || \
		{ [ $$? -eq 1 ] && $(PYTEST) --last-failed --last-failed-no-failures none -rfEp; }

matrix: setup $(VENV)/dev  ## the snapshot tests on PostgreSQL 12 to 18, those of MariaDB on 10.11 and 11.4; binaries through Maven
	tools/matrix

soak: setup $(VENV)/dev $(VENV)/extra  ## long tests: memory over 50 million operations, 350 faults, fuzzing of traces, thousands of models
	DYNO_SWARM=2000 $(CARGO) test --release --quiet -p dyno-model --test tests -- swarm:: run_swarm:: accepted::
	$(CARGO) test --release --quiet -p dyno-trace -- --ignored --nocapture
	$(CARGO) test --release --quiet -p dyno-load --test tests -- dead_server:: --ignored --nocapture
	tools/fuzz
	$(BIN)/python -m pytest -s -m soak -o addopts=-q tests

# The processes that tests start are measured, too; what is killed is not.
coverage: setup $(VENV)/dev $(VENV)/extra  ## lines of Python that the default tests cover; twice as long as `make test`
	@mkdir -p target/coverage
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -p no:cacheprovider -n $(WORKERS) --dist worksteal $(COVERED) || true
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report | tail -1

bench: setup $(VENV)/dev  ## all benches: figures into benches/results.jsonl, and docs/explanation/performance.md made of them
	$(BIN)/python benches/all.py

# Lint and tests of Rust in one. By itself cargo-clippy looks at all dependencies a second time, and at our crates beside
# the tests that are compiled; here what no test needs, the examples and (unless `make build` did) the binding, is
# compiled to be looked at. If a test fails, all run a second time, fewer at once. What rustdoc compiles takes no part in
# make's -j, and would say so for each crate.
check-rust: compile-rust
	$(LINTED) $(WAITING) $(CARGO) test --profile $(TESTED) --quiet --workspace --tests --examples || \
		$(LINTED) RUST_TEST_THREADS=2 $(CARGO) test --profile $(TESTED) --quiet --workspace --tests --examples
	MAKEFLAGS= $(LINTED) $(CARGO) test --profile $(TESTED) --quiet --workspace --doc

compile-rust: setup
	@$(if $(CLIPPY),,echo "clippy is not installed: Rust is tested and not linted")
	$(CARGO) fmt --check
	$(if $(BUILT),,$(LINTED) nice -n 5 $(CARGO) rustc --profile bench --quiet -p dyno-python --crate-type rlib)
	$(LINTED) nice -n 5 $(CARGO) test --profile $(TESTED) --quiet --workspace --tests --examples --no-run

lint: lint-rust lint-python  ## formatting, lints and types; warnings are errors (-j2: both at once)

lint-rust:
	$(CARGO) fmt --check
	$(AS_BUILT) $(CARGO) clippy --release --quiet --workspace --all-targets -- -D warnings

lint-python: $(VENV)/dev
	$(BIN)/ruff format --check $(PYTHON_FILES)
	$(BIN)/ruff check $(PYTHON_FILES)
	nice -n 5 $(BIN)/mypy

reference: setup  ## pages of docs that are tables of the program
	$(BIN)/python tools/reference
	$(BIN)/python -m dbdyno.study.plan.reference > docs/reference/plan.md
	PYTHONPATH=tests $(BIN)/python tests/manners/options.py
	PYTHONPATH=tests $(BIN)/python tests/manners/engines.py
	$(BIN)/python tests/manners/arrows.py

audit:  ## the workflows; dependencies: licences, sources, duplicates, advisories (installs what it needs below target/tools); says what could not be checked
	@tools/lint-workflows
	@tools/audit

format:  ## put the code in form
	$(CARGO) fmt
	$(BIN)/ruff format $(PYTHON_FILES)
	$(BIN)/ruff check --fix $(PYTHON_FILES)

clean:
	rm -rf target dist site $(VENV) python/dbdyno/_core.abi3.so
