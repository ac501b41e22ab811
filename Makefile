# On a machine with Python 3.11+ and nothing else, each target does its own set-up, once.

PYTHON ?=
BIN    := .venv/bin
STAMP  := .venv/.installed

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test test-slow bench evaluation lock clean
.DELETE_ON_ERROR:

demo: $(STAMP)          ## the paper's story, no arguments
	$(BIN)/ids demo

test: $(STAMP)          ## everything that guards the product
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -n 2 --dist loadgroup -m "not slow" --durations=10

test-slow: $(STAMP)     ## the rest: the evaluation, kill -9, a cluster, Connect, Kafka, S3, no Java
	$(BIN)/python -m pytest -q -m slow --durations=10

bench: $(STAMP)         ## what README's table is made of, measured anew; QUICK=1, TAXI=path as below
	rm -rf bench-report/records
	$(BIN)/python -m evaluation run --bench --out bench-report $(if $(QUICK),--quick) $(if $(TAXI),--taxi $(TAXI))

evaluation: $(STAMP)    ## the paper's evaluation, 40 minutes; QUICK=1 for five, TAXI=path for trips
	$(BIN)/python -m evaluation run --out evaluation-report $(if $(QUICK),--quick) $(if $(TAXI),--taxi $(TAXI))

lock:                   ## pin what pyproject.toml asks for; UPGRADE=--upgrade for newer versions
	PYTHON="$(PYTHON)" .ci/venv .lock-venv
	.lock-venv/bin/python -m pip install --quiet uv
	.lock-venv/bin/uv pip compile --quiet --universal --all-extras --generate-hashes --no-header \
	    --no-emit-index-url --no-emit-find-links $(UPGRADE) -o requirements.lock pyproject.toml
	rm -rf .lock-venv

clean:                  ## back to a fresh clone
	rm -rf .venv .lock-venv build dist src/*.egg-info
	rm -rf .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests evaluation -name __pycache__ -type d -prune -exec rm -rf {} +

# Written last, so that a set-up cut short is begun again.
$(STAMP): requirements.lock pyproject.toml
	PYTHON="$(PYTHON)" .ci/venv .venv
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	touch $@
