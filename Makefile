# `make run` and `make test` need Python 3.11 or newer and nothing else; they set up the rest.
# make test ARGS="-k merge" hands ARGS on to pytest.

PORT ?= 8000
ARGS ?=
DURATION ?= 120
SEED ?=
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
PYTHON ?= $(shell for python in python3.11 python3 python; do \
	$$python -c 'import sys; assert sys.version_info >= (3, 11)' 2>/dev/null \
	&& echo $$python && break; done)
NEWEST_PYTHON ?= $(shell for python in python3.13 $$HOME/.pyenv/versions/3.13*/bin/python; do \
	$$python -c '' 2>/dev/null && echo $$python && break; done)

bin := $(VENV)/bin
pip_quiet := install --disable-pip-version-check -qq
# What runs embedded must not meet the services that a shell may know.
embedded := env -u DATABASE_URL -u REDIS_URL

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test test-js test-embedded test-services test-newest \
	test-newest-embedded test-newest-services install check chaos bench audit format lock screenshots

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' Makefile

run: $(VENV)/.run ## Serve everything in one process, on PORT (8000)
	$(bin)/python manage.py serve --port $(PORT)

# Both modes at the same time: tests wait a lot.
test: test-js install ## Run every test
	@$(bin)/python -m tests.together \
		$(MAKE) --no-print-directory test-embedded test-newest-embedded -- \
		$(MAKE) --no-print-directory test-services test-newest-services

test-js: ## Test the page's script with Node
	@if command -v node >/dev/null; then \
		echo '== node: the page'"'"'s script'; \
		node --test $(or $(wildcard tests/js/*.test.mjs),$(error No tests/js/*.test.mjs)); \
	else \
		echo '== left out for want of Node: the page'"'"'s script (apt-get install nodejs)'; \
		test "$$CI" != true; \
	fi

test-embedded: $(VENV)/.dev ## Test the embedded mode: SQLite, delivery in memory
	@echo '== pytest in $(VENV): embedded, on SQLite and memory'
	@$(embedded) $(bin)/python -m pytest $(ARGS)

test-services: $(VENV)/.dev ## Test on Postgres and Redis: DATABASE_URL and REDIS_URL, or its own
	@echo '== pytest in $(VENV): on Postgres and Redis'
	@$(bin)/python -m tests.services $(bin)/python -m pytest $(ARGS)

# What the newest Django can change lies within the process: real processes are tested once.
in_process := --ignore-glob='*/test_live_*' --ignore=tests/browser --ignore=tests/test_selfcheck.py

# $(call newest,targets): with the newest Django, where python3.13 is at hand
define newest
	@python='$(NEWEST_PYTHON)'; if [ -n "$$python" ]; then \
		$(MAKE) --no-print-directory $(1) PYTHON="$$python" VENV=.venv-newest \
			CONSTRAINTS=constraints-newest.txt ARGS="$(in_process) $(ARGS)"; \
	else \
		echo '== left out: no python3.13 at hand to test the newest Django on'; \
	fi
endef

test-newest: test-newest-embedded test-newest-services ## In-process tests on Python 3.13 and the newest Django, where python3.13 is at hand

test-newest-embedded: ## The same, embedded mode only
	$(call newest,test-embedded)

test-newest-services: ## The same, on Postgres and Redis only
	$(call newest,test-services)

install: $(VENV)/.dev ## Install what the tests need, for both Djangos
	$(call newest,.venv-newest/.dev)

chaos: $(VENV)/.dev ## Do harm to a running system for DURATION (120) seconds, and check every run
	@$(embedded) $(bin)/python -m tests.chaos --duration $(DURATION) $(if $(SEED),--seed $(SEED))

check: $(VENV)/.dev ## Lint, types, import rules, migrations, Django's own checks
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(embedded) $(bin)/mypy
	$(bin)/lint-imports --no-logo
	$(embedded) $(bin)/python manage.py makemigrations --check --dry-run
	$(embedded) $(bin)/python manage.py check

# Apart from `check`, because it depends on what others found out today, and on a registry that
# answers questions about vulnerabilities: some mirrors do not, and --strict fails there.
audit: ## Ask the package registry whether a pinned version has known vulnerabilities
	@venv=$$(mktemp -d) && trap 'rm -rf "$$venv"' EXIT \
	&& $(or $(PYTHON),$(error audit needs Python 3.11 or newer)) -m venv "$$venv" \
	&& "$$venv/bin/pip" $(pip_quiet) 'pip-audit==2.*' \
	&& for file in constraints.txt constraints-newest.txt; do \
		echo "== $$file"; \
		"$$venv/bin/pip-audit" --strict --no-deps --disable-pip --progress-spinner off \
			--requirement $$file || exit 1; \
	done

bench: $(VENV)/.dev ## Measure against the alternatives; QUICK=1, ONLY=load,system, REPEATS=3
	@$(embedded) $(bin)/python -m bench

format: $(VENV)/.dev ## Put the code into shape
	$(bin)/ruff check --fix
	$(bin)/ruff format

screenshots: $(VENV)/.dev ## Take the docs' pictures of the page anew
	$(bin)/python -m bench.screenshots

lock: ## Choose the newest versions anew and pin them in both constraints files
	$(call pin,$(or $(PYTHON),$(error lock needs Python 3.11)),5.2,constraints.txt)
	$(call pin,$(or $(NEWEST_PYTHON),$(error lock needs Python 3.13)),6.1,constraints-newest.txt)

# $(call pin,python,Django's series,file)
define pin
	@echo '== choosing versions for Django $(2)'
	@venv=$$(mktemp -d) && trap 'rm -rf "$$venv"' EXIT && $(1) -m venv "$$venv" \
	&& "$$venv/bin/pip" $(pip_quiet) --editable '.[dev]' 'Django==$(2).*' \
	&& "$$venv/bin/pip" freeze --exclude-editable >"$$venv/pins" \
	&& { echo '# Written by `make lock`, with Django $(2).'; cat "$$venv/pins"; } >$(3)
endef

$(VENV)/.run: pyproject.toml $(CONSTRAINTS)
	@echo '== installing what Koda needs into $(VENV)'
	@[ -x $(bin)/pip ] || $(or $(PYTHON),$(error Koda needs Python 3.11 or newer)) -m venv $(VENV)
	@$(bin)/pip $(pip_quiet) --editable . --constraint $(CONSTRAINTS)
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo '== installing what its tests need into $(VENV)'
	@$(bin)/pip $(pip_quiet) --editable '.[dev]' --constraint $(CONSTRAINTS)
	@touch $@
