# Two commands do everything on a fresh machine: make demo, make test.
PYTHON ?= python3
CONSTRAINTS ?= constraints.txt
BIN := .venv/bin
READY := .venv/ready

.PHONY: demo test test-slow storm bench docs tables clean

demo: $(READY)
	$(BIN)/splagger sweep --envs t-ls-demo --methods splagger rnn --rates 1e-3 --seeds 3 --out runs/demo
	$(BIN)/splagger plot runs/demo -o runs/demo/curves.png

test: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	sh .ci/browser
	@# While pyright uses one core, another compiles all modules, which each test process would otherwise do.
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1 & \
	$(BIN)/pyright --pythonpath $(BIN)/python; status=$$?; wait; exit $$status
	@# Compiled programs are kept for the next time, which then takes a fifth less.
	JAX_COMPILATION_CACHE_DIR=$(CURDIR)/.jax-cache PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

test-slow: $(READY)
	$(BIN)/python -m pytest -m slow

storm: $(READY)
	$(BIN)/python -m tests.storm

bench: $(READY)
	$(BIN)/python -m benchmarks.parts
	$(BIN)/python -m benchmarks.mujoco
	$(BIN)/python -m benchmarks.player
	$(BIN)/splagger bench t-ls splagger

tables: $(READY)
	$(BIN)/python -m docs.tables

docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

.venv/docs: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) --editable ".[docs]"
	touch $@

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) --editable ".[dev]"
	touch $@

clean:
	rm -rf .venv .jax-cache build site *.egg-info
