# The two commands are `make run` and `make test`; each prepares .venv on first use.
SHELL := /bin/bash
.DEFAULT_GOAL := help
CORES ?= 8
VENV := .venv

# The python3 of the path. Where that was built without optimisations, as pyenv builds it, the system's if it is of the
# same version: with that, everything takes a tenth less time.
SYSTEM_PYTHON := /usr/bin/python3
OPTIMISED := -c 'import sys, sysconfig; sys.exit("--enable-optimizations" not in (sysconfig.get_config_var("CONFIG_ARGS") or ""))'
MINOR_VERSION := import sys; print(sys.version_info[:2])
PYTHON ?= $(shell if python3 $(OPTIMISED) || [ "$$(python3 -c '$(MINOR_VERSION)' 2> /dev/null)" \
	!= "$$($(SYSTEM_PYTHON) -c 'import ensurepip; $(MINOR_VERSION)' 2> /dev/null)" ]; then echo python3; else echo $(SYSTEM_PYTHON); fi)

export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export DVC_NO_ANALYTICS := true
export MLFLOW_DISABLE_TELEMETRY := true
export DO_NOT_TRACK := true
# Without compiled bytecode every start of a job is three times slower.
export UV_COMPILE_BYTECODE := 1
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test test-slurm test-s3 mutants fuzz test-faults kills wheel audit audit-peers coverage docs status ui plots sync track bench bench-rows firstfit utility reproduce draws pages lint \
	lock check  clean

help:  ## Show this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# uv comes from the same lock, by its hash; where it does not run, pip does the same more slowly.
$(VENV)/ready: requirements.lock pyproject.toml
	@echo "Preparing $(VENV) with $(PYTHON) (one to three minutes, once)"
	@rm -rf $(VENV)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "error: $(PYTHON) is older than 3.11; run make PYTHON=<path of a newer one>" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@awk '/^uv==/{p=1} p{print} p&&!/\\$$/{exit}' requirements.lock > $(VENV)/uv.lock
	@if $(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $(VENV)/uv.lock \
		&& $(VENV)/bin/uv --version > /dev/null; then \
		$(VENV)/bin/uv pip install --quiet --python $(VENV)/bin/python --require-hashes -r requirements.lock; \
	else \
		$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock; \
	fi
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
	@PATH="$(CURDIR)/$(VENV)/bin:$$PATH" python -m privsvm.warm_up

run: $(VENV)/ready  ## Run the benchmark: reports/index.html, mlflow.db, dvc.lock
	snakemake --cores $(CORES)

test: $(VENV)/ready  ## Run all tests
	pytest

# Environments of their own: the plugins, where they are installed, slow every start or ask for older packages.
test-slurm: $(VENV)/ready  ## Run a benchmark through a real Slurm, and take that apart meanwhile (SLURM_OPTIONS="--default")
	@PYTHONPATH=. python -m tests.cluster.slurm_daemons
	@uv venv --quiet --allow-existing --python $(VENV)/bin/python .cache/venvs/slurm
	@uv pip install --quiet --python .cache/venvs/slurm/bin/python --require-hashes -r requirements.lock -r profiles/slurm/requirements.lock
	PYTHONPATH=$(CURDIR):$(CURDIR)/lib .cache/venvs/slurm/bin/python -P -m tests.cluster.run_slurm $(SLURM_OPTIONS)

test-s3: $(VENV)/ready  ## Keep data, models, a workflow's files and MLflow's in an S3 store, runs in PostgreSQL: servers on this machine
	@uv venv --quiet --allow-existing --python $(VENV)/bin/python .cache/venvs/s3
	@uv pip install --quiet --python .cache/venvs/s3/bin/python --require-hashes -r tests/cluster/s3.lock
	@uv venv --quiet --allow-existing --python $(VENV)/bin/python .cache/venvs/moto
	@uv pip install --quiet --python .cache/venvs/moto/bin/python --require-hashes -r tests/cluster/moto.lock
	PYTHONPATH=$(CURDIR):$(CURDIR)/lib .cache/venvs/s3/bin/python -P -m tests.cluster.run_s3 --moto .cache/venvs/moto/bin/moto_server

mutants: $(VENV)/ready  ## Plant bugs, and see which privacy tests find them: docs/mutants.md
	python tests/mutants/run.py

fuzz: $(VENV)/ready  ## Read 1,000 new mutations of small files with every reader (FUZZ_CASES=n chooses)
	PRIVSVM_FUZZ_CASES=$(or $(FUZZ_CASES),1000) pytest tests/fuzz --durations=0

test-faults: $(VENV)/ready  ## Full disks, failing calls, kills at every call, bad servers: every moment of every scenario
	PRIVSVM_FAULTS=all pytest tests/faults

kills: $(VENV)/ready  ## Kill 100 jobs, Snakemakes and DVCs of a small benchmark (KILLS=n chooses)
	PRIVSVM_KILLS=$(or $(KILLS),100) pytest tests/workflow/test_kills.py -k recover -n0 --capture=no --timeout=14400

wheel: $(VENV)/ready  ## Release a model from the wheel in clean environments: every Python found, oldest and newest versions
	python tests/wheel/check.py

coverage: $(VENV)/ready  ## Run all tests and write docs/coverage.md
	@mkdir -p .cache
	pytest --cov --cov-report=json:.cache/coverage.json
	python docs/write_coverage.py .cache/coverage.json

docs: $(VENV)/ready  ## Write what is generated from the sources, and build the site: site/index.html (VERSION=a tag, or all: site/<tag>)
ifeq ($(VERSION),)
	python docs/draw_architecture.py
	python docs/draw_methods.py
	python docs/write_glossary.py
	python docs/write_reproductions.py
	python docs/generate.py
	python docs/build_site.py
else
	python docs/build_site.py --version "$(VERSION)"
endif

status: $(VENV)/ready  ## Say what a run that is under way is doing
	@python stages/status.py

ui: $(VENV)/ready  ## Compare the curves in MLflow (http://127.0.0.1:5000)
	python stages/ui.py

plots: $(VENV)/ready  ## Draw the curves by dvc plots: dvc_plots/index.html, which needs no network
	@python stages/plots.py

# After `git checkout` or `dvc pull` the files are right and their times are not. Where DVC says that all is
# current, Snakemake is told so too.
sync: $(VENV)/ready  ## Bring data and models to the present commit
	@dvc checkout --quiet && dvc status --quiet \
		|| { echo "error: dvc.lock: the outputs are not those of this commit; see dvc status, then run dvc pull or dvc repro" >&2; exit 1; }
	snakemake --touch --forceall --cores 1 --quiet all -- versioned
	snakemake --cores $(CORES)

track: $(VENV)/ready  ## Log results that MLflow lacks, after its server failed
	snakemake --cores 1 -- reports/tracking.json
	snakemake --cores 1 --quiet all

bench: $(VENV)/ready  ## Time the solvers against named peers (OPACUS=yes: against Opacus too, with torch, some gigabytes)
	@uv pip install --quiet --python $(VENV)/bin/python --require-hashes -r bench/requirements.lock \
		|| echo "bench: the peers of bench/requirements.lock cannot be installed here; their columns will say so" >&2
	python bench/run.py $(if $(OPACUS),--opacus)

bench-rows: $(VENV)/ready  ## Measure memory, throughput and bits on rows beyond memory: docs/rows-beyond-memory.md (needs 25 GB of disk)
	python bench/out_of_core.py

firstfit: $(VENV)/ready  ## Check that first fits compile nothing after privsvm warm-up (two minutes)
	python bench/first_fit.py

utility: $(VENV)/ready  ## Measure accuracy beside other libraries on real sets: docs/utility.md (hours; resumable)
	python bench/utility/refit.py
	python bench/utility/run_ours.py
	python bench/utility/draws.py
	python bench/utility/repeats.py
	python bench/utility/variants.py
	python bench/utility/times.py
	python bench/utility/search.py
	python bench/utility/run_peers.py
	python bench/utility/page.py

audit: $(VENV)/ready  ## Audit the releases of all private methods with a million draws a cell: docs/auditing.md
	python bench/audit/run.py --draws $(or $(DRAWS),1000000)

audit-peers: $(VENV)/ready  ## Audit diffprivlib and SACRO-ML, each in an environment of its own: docs/auditing.md
	python bench/audit/run_peers.py

reproduce: $(VENV)/ready  ## Run the papers' experiments (EXPERIMENTS="..." or PAPER=, TABLE=, DATASETS= choose): reports/reproduce/index.html
ifneq ($(PAPER)$(DATASETS),)
	python -m reproduce $(PAPER)$(if $(TABLE),_$(TABLE)) $(if $(DATASETS),--datasets $(DATASETS))
	python -m reproduce.index
else
	snakemake -s reproduce/Snakefile --cores $(CORES) $(if $(EXPERIMENTS),--config experiments="$(EXPERIMENTS)")
endif

draws: $(VENV)/ready  ## Draw the distributions of printed numbers anew (PAPER= and DATASETS= choose; resumable, hours in all)
	python -m reproduce.draws $(PAPER) $(if $(DATASETS),--datasets $(DATASETS))

pages: $(VENV)/ready  ## Write the papers' pages from the committed tables, without data or training
	python -m reproduce --tables-only
	python -m reproduce.index

lint: $(VENV)/ready  ## Check formatting, style, types, layers, spelling, security, workflow
	ruff format --check .
	ruff check .
	mypy
	lint-imports --no-logo
	codespell
	bandit --quiet --configfile pyproject.toml --recursive lib stages reproduce bench docs examples
	python tests/advisories.py
	snakefmt --check Snakefile stages reproduce
	snakemake --lint
	snakemake -s reproduce/Snakefile --lint

lock: $(VENV)/ready  ## Resolve the newest allowed versions into requirements.lock
	uv pip compile pyproject.toml --universal --python-version 3.11 --extra workflow --extra sign --extra dev --extra docs --extra dask \
		--generate-hashes --no-emit-index-url --no-header --upgrade --quiet -o requirements.lock
	uv pip compile pyproject.toml --universal --python-version 3.11 --extra bench --constraints requirements.lock \
		--generate-hashes --no-emit-index-url --no-header --no-annotate --quiet -o bench/requirements.lock
	uv pip compile pyproject.toml --universal --python-version 3.11 --extra slurm --constraints requirements.lock \
		--generate-hashes --no-emit-index-url --no-header --no-annotate --quiet -o profiles/slurm/requirements.lock
	uv pip compile pyproject.toml tests/cluster/postgresql.in --universal --python-version 3.11 --extra workflow --extra dev --extra slurm --extra s3 \
		--generate-hashes --no-emit-index-url --no-header --no-annotate --upgrade --quiet -o tests/cluster/s3.lock
	echo 'moto[server]>=5.1' | uv pip compile - --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --no-annotate --upgrade --quiet -o tests/cluster/moto.lock

check: $(VENV)/ready  ## Check that the outputs of `make run` are there, sane and recorded
	python stages/check.py




clean:  ## Remove outputs that can be made again (not .venv, not DVC's cache)
	rm -rf .snakemake .cache logs dvc_plots site data/[!o]* reports/index.html reports/pages reports/assets reports/reproduce/*.html
