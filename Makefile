# The two commands of the README: `make quickstart` and `make test`. Everything lives in .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n 2
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: quickstart test test-all check dev evidence reports lock install clean

quickstart: $(STAMP)  ## build the sample suite end to end and show what came of it
	$(BIN)/mteblite quickstart

test: $(STAMP)        ## the tests, but for those of many minutes
	$(PYTEST) -m "not long"

test-all: $(STAMP)    ## every test: all tasks of the hub stand-in, ten kills, the simulator
	$(PYTEST)

check: $(STAMP)       ## format, lint, types, definitions
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	MTEBLITE_HOME=$$(mktemp -d) PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/dagster definitions validate -w workspace.yaml

dev: $(STAMP)         ## the Dagster UI and daemon
	$(BIN)/mteblite dev

evidence: $(STAMP)    ## print the figures of docs/validation.md; LONG=1 takes hours and needs ../shared
	$(BIN)/python benchmarks/study.py --home .mteblite --suite sample --draws 10 --calibrations linear,blup
	$(BIN)/python benchmarks/bench_pairs.py --home .mteblite --variants anchor/mean/anchorset
ifdef LONG
	$(BIN)/python benchmarks/study.py --draws 10 --zoos 2 --calibrations linear,blup
	$(BIN)/python benchmarks/real_zoo.py --home .mteblite-real --without mpnet,e5,minilm,paraphrase-l3
	$(BIN)/python benchmarks/study.py --home .mteblite-real --suite real --draws 20 --calibrations linear,blup
	$(BIN)/python benchmarks/bench_pairs.py --variants anchor/mean/anchorset --items 200 --folds 15
endif

reports: $(STAMP)     ## the dbt reports of the sample suite
	$(BIN)/mteblite report --suite sample

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "mteblite needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --constraint constraints.txt --editable '.[platform,sample,dev]'
	touch $@

lock:                 ## resolve again and write constraints.txt
	$(BIN)/python -m pip install -q --upgrade --editable '.[platform,sample,dev]'
	{ head -2 constraints.txt; $(BIN)/python -m pip freeze --exclude-editable \
		| sed 's/^torch==\([0-9.]*\).*/torch==\1/'; } > constraints.new && mv constraints.new constraints.txt

clean:                ## forget the environment and the home folder
	rm -rf $(VENV) .mteblite
