# `make demo` and `make test` set up everything they need first; see README.md.
# VENV=folder puts the environment elsewhere; PYTHON37=path names the Python 3.7; ARGS="..." goes to pytest.
VENV ?= .venv
VENV_TFFREE ?= $(VENV)-tffree
PYTHON37 ?=
export PYTHON37
MAKEFLAGS += --no-print-directory
PY = $(VENV)/bin/python
DEMO_FLAGS = --enable_autofuse=true;--autofuse_enable_pass=reduce,concat,slice;

.PHONY: help setup demo test fuzz docs lint bench measure exhaustive clean distclean

help:
	@echo "make demo   set up, fuse the public example, show and check what came of it"
	@echo "make test   set up, run all tests"
	@echo "make fuzz   random graphs of all families against TensorFlow; ARGS=\"--graphs 1000 --target host\""
	@echo "make docs   write the generated documents again"
	@echo "make lint   line lengths, syntax and unused names"
	@echo "make bench  set up, measure beside XLA and others for docs/performance.md; ARGS=--quick tries it out"
	@echo "make measure  set up, the other measurements of bench/; ARGS names some"
	@echo "make exhaustive  set up, all float32 values through the vector math (an hour of two cores)"
	@echo "make clean  remove build products;  make distclean: the environments too"

setup:
	@sh scripts/setup.sh "$(VENV)"

demo: setup
	@AUTOFUSE_FLAGS="$(DEMO_FLAGS)" "$(PY)" examples/show.py

test: setup
	@sh scripts/test.sh "$(VENV)" "$(VENV_TFFREE)" $(ARGS)

fuzz: setup
	@"$(PY)" -W ignore -m tests.fuzz $(ARGS)

docs: setup
	@"$(PY)" -m tf_autofuse docs --write

lint: setup
	@"$(PY)" scripts/lint.py

bench: setup
	@"$(PY)" -m pip install --quiet --disable-pip-version-check -c constraints.txt -r requirements-bench.txt
	@"$(PY)" -m bench.suite --write $(ARGS)

measure: setup
	@"$(PY)" -m bench $(ARGS)

exhaustive: setup
	@"$(PY)" -m bench.exhaustive $(ARGS)

clean:
	rm -rf build dist *.egg-info tf_autofuse/frontend/_native*.so .pytest_cache .hypothesis
	find . -path './.venv*' -prune -o -name __pycache__ -type d -exec rm -rf {} +

distclean: clean
	rm -rf "$(VENV)" "$(VENV_TFFREE)"
