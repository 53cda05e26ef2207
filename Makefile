# Works with GNU make 3.81 (macOS) and later; no target needs root.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO_STAMP := $(VENV)/.demo
TOOLS := build/tools
# `make install PYTHON=/path/to/python` overrules the search.
PYTHON ?=

# A Python that may not keep what it has compiled takes three times as long to start, and the tests start thousands.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help install demo test test-trainers test-kubernetes trainers tools act minio lint docs bench bench-quick lock clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

install: $(STAMP) ## make .venv with everything pinned, and the project in it

# The candidates are run, not only looked up: a version manager may leave a
# python3.13 on the path that does nothing but complain.
define VIRTUAL_ENVIRONMENT
@python=""; \
	for candidate in $(PYTHON) python3.13 python3.12 python3.11 python3; do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    python="$$candidate"; break; \
	  fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "prime-train needs Python 3.11 or later; none of python3.13, python3.12, python3.11, python3 is." >&2; \
	  echo "Install one, or name it: make install PYTHON=/path/to/python" >&2; \
	  exit 1; \
	fi; \
	$(BIN)/python -m pip --version >/dev/null 2>&1 || "$$python" -m venv --clear $(VENV)
endef
PIP := $(BIN)/python -m pip install --disable-pip-version-check

# uv installs five times faster than pip; where it cannot reach a registry that pip is set up for, pip does it.
define UV_FIRST
@awk '/^uv==/ { on = 1 } on { print } on && !/\\$$/ { exit }' requirements/dev.txt > $(VENV)/uv.txt
@$(PIP) --quiet --require-hashes -r $(VENV)/uv.txt
endef
UV_INTO := $(BIN)/uv pip install --python $(BIN)/python --require-hashes

$(STAMP): pyproject.toml requirements/dev.txt
	$(VIRTUAL_ENVIRONMENT)
	@echo "installing what requirements/dev.txt pins, and prime-train, into $(VENV); the first time this takes half a minute or so"
	$(UV_FIRST)
	@$(UV_INTO) --compile-bytecode -r requirements/dev.txt || $(PIP) --require-hashes -r requirements/dev.txt
	@$(PIP) --quiet --no-deps --no-build-isolation --editable .
	@touch $(STAMP) $(DEMO_STAMP)

# What a user installs, and what builds the project: a third of what `make install` does, which adds the rest here.
DEMO_PINS := -r requirements/runtime.txt -r requirements/build.txt
$(DEMO_STAMP): pyproject.toml requirements/runtime.txt requirements/build.txt
	$(VIRTUAL_ENVIRONMENT)
	@echo "installing what the demo needs into $(VENV); the first time this takes some seconds"
	$(UV_FIRST)
	@$(UV_INTO) --quiet $(DEMO_PINS) || $(PIP) --quiet --require-hashes $(DEMO_PINS)
	@$(PIP) --quiet --no-deps --no-build-isolation --editable .
	@[ -e $(STAMP) ] || $(BIN)/python -m pip uninstall --quiet --yes uv
	@touch $(DEMO_STAMP)

demo: $(DEMO_STAMP) ## run the demo on this machine, without an account anywhere
	$(BIN)/prime-train demo

# The tests' modules are compiled beside the linters, once: each process of pytest would compile them all for itself.
ifdef T
test: install ## lint, then run the tests, or with T=PATH only those; with PRIME_TRAIN_TESTS_COMPLETE=1 all, and none may be skipped
	$(BIN)/python -m pytest $(T)
else
test: install
	@$(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1 & $(MAKE) --no-print-directory lint; code=$$?; wait; exit $$code
	$(BIN)/python -m pytest -n 7 --dist worksteal $(if $(PRIME_TRAIN_TESTS_COMPLETE),,-m "not exhaustive")
endif

# Six gigabytes, most of them the CUDA libraries without which torch of PyPI cannot be loaded; a minute, if they come fast.
trainers: $(TOOLS)/trainers/.installed $(TOOLS)/trainers-rl/.installed ## what `make test-trainers` needs: six gigabytes

test-trainers: install trainers ## train with the real libraries that the kinds of trainers are for, on the CPU
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations 10 tests/trainers_real $(if $(PRIME_TRAIN_TESTS_QUICK),-m "not exhaustive")

# The programs of a Kubernetes cluster: three are built from Kubernetes' own Go module, once; etcd comes from the system's packages.
KUBERNETES := kube-apiserver kube-controller-manager kube-scheduler
test-kubernetes: install $(TOOLS)/kubernetes/.installed ## test with the real control plane of Kubernetes; it is built once, in about ten minutes
	@command -v etcd >/dev/null || echo "there is no etcd: on Debian and Ubuntu, apt-get install etcd-server" >&2
	$(BIN)/python -m pytest -n 2 --dist loadfile -rs --durations 10 tests/kubernetes

# Without Go the tests are skipped, and say so. Go writes the hashes of all modules to go.sum, in an order that never changes; the hash of
# that file is pinned.
CONTROL_PLANE := tests/kubernetes/control_plane
$(TOOLS)/kubernetes/.installed: $(CONTROL_PLANE)/go.mod $(CONTROL_PLANE)/go.sum.sha256
	@mkdir -p $(@D)
	@if ! command -v go >/dev/null; then echo "Kubernetes is built with Go, and there is none" >&2; exit 0; fi; \
	version=$$(awk '$$2 == "k8s.io/kubernetes" { print $$3 }' $(CONTROL_PLANE)/go.mod); \
	out=$$(cd $(@D) && pwd); \
	echo "building Kubernetes $$version; the first time this takes about ten minutes and 5 GB of Go's build cache"; \
	rm -rf "$$out/module" && cp -r $(CONTROL_PLANE) "$$out/module" && cd "$$out/module" || exit 1; \
	GOFLAGS=-mod=mod go list -deps $(KUBERNETES:%=k8s.io/kubernetes/cmd/%) >/dev/null || exit 1; \
	sha256sum -c go.sum.sha256 || { echo "a module of Kubernetes differs from the one that was pinned" >&2; exit 1; }; \
	for name in $(KUBERNETES); do \
	  echo "building $$name"; \
	  (CGO_ENABLED=0 GOFLAGS=-mod=readonly go build -o "$$out/$$name" \
	    -ldflags "-X k8s.io/component-base/version.gitVersion=$$version" "k8s.io/kubernetes/cmd/$$name") || exit 1; \
	done; \
	touch "$$out/.installed"

# Programs of others that the fakes, servers and exports of the tests are held against. Without them those tests are skipped, and say so.
ENVIRONMENTS := prime-cli runpod vastai kubernetes-client skypilot dstack sam docs
act_MODULE := github.com/nektos/act@v0.2.87
minio_MODULE := github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c
tools: act minio $(ENVIRONMENTS:%=$(TOOLS)/%/.installed) ## what some tests need besides .venv: clients of providers, SkyPilot, dstack, SAM, Zensical, act, MinIO

act minio:
	@command -v $@ >/dev/null || [ -x "$(HOME)/go/bin/$@" ] || { \
	  command -v go >/dev/null || { echo "$@ is built with Go, and there is none" >&2; exit 1; }; \
	  echo "building $@, which may take some minutes"; GOBIN="$(HOME)/go/bin" go install $($@_MODULE); }

# An environment of its own for each: they pin what the project and the others must not. Without pip it is made in no time.
$(TOOLS)/%/.installed: requirements/%.txt | install
	@echo "installing what requirements/$*.txt pins into $(TOOLS)/$*"
	@$(BIN)/python -m venv --clear --without-pip $(TOOLS)/$*
	@$(BIN)/uv pip install --quiet --python $(TOOLS)/$*/bin/python --require-hashes -r requirements/$*.txt
	@touch $@

# Above the environment of the other libraries, of which some versions do not suit them.
$(TOOLS)/trainers-rl/.installed: requirements/trainers-rl.txt $(TOOLS)/trainers/.installed | install
	@echo "installing what requirements/trainers-rl.txt pins into $(TOOLS)/trainers-rl"
	@$(BIN)/python -m venv --clear --without-pip $(TOOLS)/trainers-rl
	@below=$$($(TOOLS)/trainers/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') && \
	  echo "$$below" > $$($(TOOLS)/trainers-rl/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/below.pth
	@$(BIN)/uv pip install --quiet --python $(TOOLS)/trainers-rl/bin/python --no-deps --require-hashes -r requirements/trainers-rl.txt
	@touch $@

lint: install ## ruff (rules and format) and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Links and anchors without a target end it.
docs: install $(TOOLS)/docs/.installed ## build the site of the documentation into build/docs/site
	$(BIN)/python -m docs.site.build --generator $(TOOLS)/docs/bin/zensical

bench: install ## measure; slow, and no part of the tests
	PYTHONPATH=. $(BIN)/python tests/benchmarks/run.py

bench-quick: install ## measure the control plane in a minute: coarse figures, which show that the benchmarks work
	PYTHONPATH=. $(BIN)/python tests/benchmarks/run.py --quick --only heartbeats sweep dynamo lambda_cold lambda_warm

# uv writes one file for all platforms; it is fetched for this and thrown away.
UV := build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links
lock: install ## write requirements/*.txt anew from pyproject.toml and *.in
	$(BIN)/python -m venv --clear build/lock
	build/lock/bin/pip install --quiet --disable-pip-version-check uv
	$(UV) pyproject.toml --extra github --extra slack --extra wandb --extra charts --extra dev -o requirements/dev.txt
	$(UV) pyproject.toml --extra github --extra slack -c requirements/dev.txt -o requirements/runtime.txt
	$(UV) pyproject.toml --extra github --extra slack --extra wandb -c requirements/dev.txt -o requirements/watcher.txt
	$(UV) requirements/build.in -c requirements/dev.txt -o requirements/build.txt
	$(UV) requirements/lambdas.in -c requirements/dev.txt -o lambdas/prime_lambdas/requirements.txt
	$(UV) requirements/bench.in -o requirements/bench.txt
	$(UV) requirements/prime-cli.in -o requirements/prime-cli.txt
	$(UV) requirements/runpod.in -o requirements/runpod.txt
	$(UV) requirements/vastai.in -o requirements/vastai.txt
	$(UV) requirements/kubernetes-client.in -o requirements/kubernetes-client.txt
	$(UV) requirements/skypilot.in -o requirements/skypilot.txt
	$(UV) requirements/dstack.in -o requirements/dstack.txt
	$(UV) requirements/sam.in -o requirements/sam.txt
	$(UV) requirements/docs.in -o requirements/docs.txt
	$(UV) requirements/trainers.in -o requirements/trainers.txt
	$(UV) --no-deps requirements/trainers-rl.in -o requirements/trainers-rl.txt
	rm -rf build/lock

clean: ## remove .venv, caches and build products
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
