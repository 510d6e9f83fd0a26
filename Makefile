# The verbs of this repository, the same for people and CI. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PY := .venv/bin/python
export PIP_DISABLE_PIP_VERSION_CHECK = 1

help: ## list the verbs
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# Everything comes from the lock, hashes checked; the project itself is built by the locked hatchling. grafana-client's HTTP
# library would replace urllib3 for everybody in the environment: its own switch keeps the two apart, and needs its source.
.venv/.ready: requirements.lock pyproject.toml hatch_build.py
	@command -v python3 >/dev/null || { echo "setup: python3 (3.11 or newer) is missing"; exit 2; }
	python3 -m venv .venv
	URLLIB3_NO_OVERRIDE=1 $(PY) -m pip install --quiet --require-hashes --no-binary urllib3-future -r requirements.lock
	$(PY) -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# Prometheus and Alertmanager: from PATH, else unpacked from Debian's packages into .tools (no daemon, no root needed).
# Where they cannot be had, the service, the rows, trace and triage still work: inferdeck doctor says what is missing.
.tools/.ready: .venv/.ready
	@mkdir -p .tools
	$(PY) -m inferdeck.tool_install .tools $(if $(filter true,$(CI)),,|| echo "setup: going on without Prometheus and Alertmanager")
	@touch $@

# The recorder's compiled request path. Anew after an edit of what it is made of (it is never loaded for other sources);
# where there is no C compiler everything works interpreted: inferdeck doctor says what that costs.
.venv/.core: .venv/.ready hatch_build.py probes/_core_c.h probes/_core.pyx $(wildcard probes/*.pxi probes/*.py)
	$(PY) hatch_build.py $(if $(filter true,$(CI)),,|| true)
	@touch $@

setup: .venv/.ready .venv/.core .tools/.ready ## make .venv from the lock, fetch Prometheus and Alertmanager

# Jaeger, compiled once from its Go module: about seven minutes of CPU and 121 MB. `inferdeck up` starts it where it is there.
jaeger: .venv/.ready ## compile Jaeger into .tools/bin, for `inferdeck up` and `inferdeck bench trace` (needs Go)
	$(PY) -m inferdeck.stack.jaeger_build .tools

demo: setup ## cause a real failure, see it alerted, named and traced (under 3 minutes)
	.venv/bin/inferdeck demo

check: setup ## lint, format, types, import borders, generated files, catalogue, runbooks; changes nothing
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	$(PY) -m pytest -q tests/test_layers.py
	.venv/bin/inferdeck check

test: setup ## all tests, the real stack included; those of the recorder on both of its cores
	$(PY) -m pytest
	INFERDECK_CORE=interpreted $(PY) -m pytest -q tests/probes

quick: setup ## tests that start no real stack
	$(PY) -m pytest -m "not real"

bench: setup ## what the instruments cost, beside the usual packages, kept in docs/ (10 minutes; exit 1 when the gate is missed)
	@mkdir -p docs/img
	set -o pipefail; .venv/bin/inferdeck --json bench overhead --plot docs/img/overhead.svg | tee docs/overhead.json | $(PY) -m inferdeck.bench.report

# Exit 1 of the drill is a miss, which the page shows; 2 leaves nothing to show.
scoreboard: setup ## every failure and its healthy twin caused three times, scored, written to docs/scoreboard.md (hours)
	.venv/bin/inferdeck --json drill --all --mixed --packed --runs 3 | $(PY) -m inferdeck.drill.scoreboard

generate: setup ## write the generated files anew (rules, Alertmanager, promtool tests, tables)
	.venv/bin/inferdeck build

golden: setup ## refresh golden files; read the diff before you commit
	INFERDECK_UPDATE_GOLDEN=1 $(PY) -m pytest -m "not real"

# What goes into images is a part of the one lock, which constrains it.
COMPILE = uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --python-version 3.11
IMAGE = $(COMPILE) --no-annotate --no-header -c requirements.lock

lock: .venv/.ready ## resolve requirements.lock and the images' parts of it anew (needs uv)
	$(COMPILE) --all-extras pyproject.toml -o requirements.lock
	$(IMAGE) --extra console --extra grafana pyproject.toml -o docker/requirements-console.lock
	$(IMAGE) --extra service --extra triton pyproject.toml -o docker/requirements-service.lock
	$(IMAGE) --extra train pyproject.toml -o docker/requirements-train.lock
	$(COMPILE) --no-deps --no-annotate --no-header service/triton/requirements.in -o service/triton/requirements.lock
	printf 'cython\nhatchling\n' | $(IMAGE) - -o docker/requirements-build.lock

clean: ## remove what was built here
	rm -rf .venv .tools build dist probes/_core-* .pytest_cache .mypy_cache .ruff_cache .hypothesis

.PHONY: help setup jaeger demo check test quick bench scoreboard generate golden lock clean
