# make demo: the dashboard on a simulated server.   make test: everything that must hold.
# Both do all the set-up on a fresh machine. PYTHON may name another Python (3.10 or newer).

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SCENARIO ?= stuck-rank
WORKERS ?= 4

# Byte code is kept also where the environment says not to: every child that the tests start is sgmon, and each worker of
# pytest reads all tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test check format lint types layers versions compiled audit real-server real-vllm test-real bench mutants goldens snapshots screenshots man lock clean

demo: $(READY)
	@$(BIN)/sgmon demo $(SCENARIO)

# Half of a test's time is waiting (for a server, an interval, a deadline): four workers keep two cores busy.
test: $(READY)
	@$(MAKE) --no-print-directory -j 2 check compiled
	$(BIN)/pytest -q -n $(WORKERS) --dist loadfile

# The byte code of the tests of a fresh tree: once, beside the checks, and not by each worker.
compiled: $(READY)
	@[ -d tests/__pycache__ ] || $(BIN)/pytest -q --collect-only >/dev/null || true

check: types versions format lint layers

format: $(READY)
	$(BIN)/ruff format --check .

lint: $(READY)
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

versions: $(READY)
	$(BIN)/vermin --quiet --no-tips --target=3.10- --violations --eval-annotations --backport typing sgmon widgets tui_app
	$(BIN)/vermin --quiet --no-tips --target=3.8- --violations --backport typing --exclude typing.TypeAlias \
	    --exclude os.pidfd_open $$($(BIN)/python -m sgmon.remote.packing)

# Known vulnerabilities of what requirements.lock names, and the licences. Where no database of vulnerabilities can be
# asked, that is said and is no failure; a vulnerability or a licence is.
audit: $(READY)
	$(BIN)/python -m tools.licences
	@$(BIN)/python -m tools.audit

# Against real servers on this machine's CPU, those that are installed: SGLang by make real-server (3.5 GB), vLLM by
# make real-vllm (4 GB).
test-real: $(READY)
	$(BIN)/pytest -q -m real tests/real

real-server:
	bash tests/real/install.sh

real-vllm:
	bash tests/real/vllm/install.sh

bench: $(READY)
	$(BIN)/python -m benchmarks

# Mutation testing of the analysis, docs/mutants.md: SEED and NUMBER draw the sample, SINCE (a revision of git) of lines
# that changed since then alone. MUTANTS_TESTS are the tests that may
# kill. The map of which test runs which line is made once (build/mutants.map; remove it after changes).
SEED   ?= 18
NUMBER ?= 200
SINCE  ?=
MUTANTS_TESTS ?= $(addprefix tests/,deaths diagnosis discovery foresight log logs/test_log_only.py logs/test_earlier.py \
    logs/test_rotation.py logview nodes/test_connection.py nodes/test_outlet.py nodes_view servers stacks unit vllm)
mutants: $(READY)
	$(BIN)/pip install -q mutmut==3.8.1 'coverage>=7'
	mkdir -p build
	[ -e build/mutants.map ] || $(BIN)/pytest -q -p tools.mutants.reaching --reaching build/mutants.map $(MUTANTS_TESTS)
	$(BIN)/python -m tools.mutants --map build/mutants.map --seed $(SEED) --number $(NUMBER) \
	    $(if $(SINCE),--since $(SINCE)) --results build/mutants-$(SEED).jsonl

# what sgmon says of each recording, and reads in each log, as the tests keep it, after a change that is meant
goldens: $(READY)
	$(BIN)/pytest -q --snapshot-update tests/deaths tests/diagnosis tests/foresight tests/log/test_goldens.py \
	    tests/servers/test_goldens.py tests/vllm

# the pictures of the overview that the tests keep, after a change that is meant
snapshots: $(READY)
	$(BIN)/pytest -q --snapshot-update tests/ui/test_snapshots.py

screenshots: $(READY)
	$(BIN)/python screenshots/make.py

man: $(READY)
	$(BIN)/python -m tools.write_man sgmon.1

lock: $(READY)
	$(BIN)/pip install -q uv
	$(BIN)/uv pip compile --universal --python-version 3.10 --generate-hashes --no-emit-index-url \
	    --no-header --no-annotate pyproject.toml --group dev -o requirements.lock -q

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { \
	    echo "sgmon needs Python 3.10 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1 || echo not there)." >&2; \
	    echo "Try: make $(firstword $(MAKECMDGOALS) demo) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	    echo "$(PYTHON) has no venv module: on Debian and Ubuntu, apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -q --no-deps -e .
	@touch $(READY)

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .import_linter_cache dist build
