# Each target installs what it needs on first use; the machine needs only Python 3.11 or later.

PYTHON ?=
BIN    := .venv/bin
STAMP  := .venv/.installed

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-slow bench evaluation lock clean
.DELETE_ON_ERROR:

demo: $(STAMP)          ## run ids demo
	$(BIN)/ids demo

test: $(STAMP)          ## lint, types, import rules, and the fast tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m "not slow" --durations=10

test-slow: $(STAMP)     ## the slow tests: evaluation, kill -9, cluster, Connect, Kafka, S3, no Java
	$(BIN)/python -m pytest -q -m slow --durations=10

bench: $(STAMP)         ## measure the README's table again; QUICK=1 and TAXI=path as below
	rm -rf bench-report/records
	$(BIN)/python -m evaluation run --bench --out bench-report $(if $(QUICK),--quick) $(if $(TAXI),--taxi $(TAXI))

evaluation: $(STAMP)    ## run the evaluation, 40 minutes; QUICK=1: 5 minutes, TAXI=path: taxi trips
	$(BIN)/python -m evaluation run --out evaluation-report $(if $(QUICK),--quick) $(if $(TAXI),--taxi $(TAXI))

lock:                   ## pin the dependencies and all extras; UPGRADE=--upgrade for newer versions
	PYTHON="$(PYTHON)" .ci/venv .lock-venv
	.lock-venv/bin/python -m pip install --quiet uv
	.lock-venv/bin/uv pip compile --quiet --universal --all-extras --generate-hashes --no-header \
	    --no-emit-index-url --no-emit-find-links $(UPGRADE) -o requirements.lock pyproject.toml
	rm -rf .lock-venv

clean:                  ## remove everything that make has created
	rm -rf .venv .lock-venv build dist src/*.egg-info
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests evaluation -name __pycache__ -type d -prune -exec rm -rf {} +

# Written last, so that an interrupted installation is repeated.
$(STAMP): requirements.lock pyproject.toml
	PYTHON="$(PYTHON)" .ci/venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	touch $@
