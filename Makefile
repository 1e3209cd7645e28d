# The two commands are `make run` and `make test`; each first installs what it needs (tools/prepare.py).
SHELL := /bin/bash
.DEFAULT_GOAL := help
CORES ?= 8
PYTHON ?= python3
PREPARE = $(PYTHON) tools/prepare.py

export PATH := $(CURDIR)/.venv/bin:$(PATH)
# A container may have no home folder that can be written; uv, Snakemake, DVC and MLflow need one.
ifneq ($(shell mkdir -p "$$HOME/.cache" 2>/dev/null && test -w "$$HOME/.cache" && echo yes),yes)
export HOME := $(CURDIR)/.cache/home
endif
export DVC_NO_ANALYTICS := true
export MLFLOW_DISABLE_TELEMETRY := true
export DO_NOT_TRACK := true
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help prepare prepare-dev run test lint docs ui status sync check reproduce bench leaderboard audit-peers publishable lock clean

help:  ## Show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "make %-11s %s\n", $$1, $$2}' Makefile

prepare:  ## Install what `make run` needs into .venv
	@$(PREPARE)

prepare-dev:  ## Install what tests, checks and pages need on top of that
	@$(PREPARE) dev

run: prepare  ## Run the benchmark: reports/index.html, mlflow.db, dvc.lock
	snakemake --cores $(CORES)

test: prepare-dev  ## Run all tests but the long ones (pytest -m long)
	pytest -m "not long"

lint: prepare-dev  ## Check formatting, style, types, layers, spelling, security, workflow
	ruff format --check .
	ruff check .
	mypy
	lint-imports --no-logo
	codespell
	bandit --quiet --configfile pyproject.toml --recursive lib stages reproduce bench docs examples tools
	python tests/advisories.py
	snakefmt --check Snakefile stages reproduce workflow
	snakemake --lint
	snakemake -s reproduce/Snakefile --lint

docs: prepare-dev  ## Write what follows from sources and measurements, and build the site: site/index.html
	python docs/generate.py
	python docs/build_site.py

ui:  ## Compare the curves in MLflow (http://127.0.0.1:5000)
	@$(PREPARE) ui
	python stages/ui.py

status:  ## Say what a run that is under way is doing
	@$(PREPARE) look
	@python stages/status.py

# After `git checkout` or `dvc pull` the files are right and their times are not. Where DVC says that all is
# current, Snakemake is told so too.
sync: prepare  ## Bring data and models to the present commit
	@python -m privsvm_bench.workflow.private_outputs
	@dvc checkout --quiet && dvc status --quiet \
		|| { echo "error: dvc.lock: the outputs are not those of this commit; see dvc status, then run dvc pull or dvc repro" >&2; exit 1; }
	snakemake --touch --forceall --cores 1 --quiet all -- versioned
	snakemake --cores $(CORES)

check:  ## Check that the outputs of `make run` are there, sane and recorded
	@$(PREPARE) look
	python stages/check.py

reproduce: prepare  ## Run the papers' experiments: reports/reproduce/index.html
	snakemake -s reproduce/Snakefile --cores $(CORES)

bench: prepare-dev  ## Time the solvers against named peers
	@uv pip install --quiet --python .venv/bin/python --require-hashes \
		-r requirements.lock -r requirements-dev.lock -r bench/requirements.lock \
		|| echo "bench: the peers of bench/requirements.lock cannot be installed here; their columns will say so" >&2
	python bench/speed.py

# Not in the list above, which is short: docs/leaderboard.md, docs/auditing.md and CONTRIBUTING.md say what they run.
leaderboard: prepare-dev
	python bench/utility/$(if $(ENTRY),join.py "$(ENTRY)" $(ARGS),leaderboard.py)

audit-peers: prepare
	python bench/audit/run_peers.py

publishable: docs
	python tools/publishable.py

LOCKED := --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --quiet --upgrade
# What is already in some locks, the next one leaves out.
without = $$(sed -n 's/^\([a-z0-9.-]*\)==.*/--no-emit-package \1/p' $(1)) $(addprefix --constraints ,$(1))
lock: prepare  ## Resolve the newest allowed versions into requirements.lock and the locks on top of it
	uv pip compile pyproject.toml $(LOCKED) --extra workflow --extra sign -o requirements.lock
	uv pip compile pyproject.toml $(LOCKED) --extra dev --extra docs --extra export --extra rows --extra dask --extra ui \
		$(call without,requirements.lock) -o requirements-dev.lock
	uv pip compile pyproject.toml $(LOCKED) --extra bench \
		$(call without,requirements.lock requirements-dev.lock) -o bench/requirements.lock
	uv pip compile pyproject.toml $(LOCKED) --extra slurm \
		$(call without,requirements.lock) -o profiles/slurm/requirements.lock

clean:  ## Remove outputs that can be made again, and old environments (not .venv, not DVC's cache)
	rm -rf .snakemake logs dvc_plots site data/[!o]* reports/index.html reports/pages reports/assets reports/reproduce/*.html reports/reproduce/printed
	@for path in .cache/* .cache/venvs/*; do \
		[ "$$path" = .cache/venvs ] || [ "$$path" -ef .venv ] || [ "$$path" = .cache/venvs/lock ] || rm -rf "$$path"; done
