# `make help` lists the targets. DEMO_ARGS, VMS_ARGS, TEST_ARGS, BENCH_ARGS, SOAK_ARGS, HOSTILE_ARGS and IMAGES are passed on.
DEMO_ARGS ?=
VMS_ARGS ?=
SOAK_ARGS ?=
HOSTILE_ARGS ?=
TEST_ARGS ?=
BENCH_ARGS ?= --vcpus 256
IMAGES ?= small python
PREFIX ?= /usr/local/lib/dasec
BIN := .venv/bin

.PHONY: help dev test test-guests lint demo bench docs clean install load services images chaos soak hostile deb testbed-quick experiments-quick vms-quick scx-stress scx-cookies scx-selftests churn
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

dev: ## Python environment in .venv, package installed editable with all tools
	@tools/setup python

test: ## all tests without guests; as root also those that touch this kernel (TEST_ARGS="-k period")
	@tools/setup
	tools/run-tests cheap host alone -- $(TEST_ARGS)

test-guests: ## tests with QEMU guests, libvirtd, kernels and images that we build (TEST_ARGS="-k testbed")
	@tools/setup
	tools/run-tests guests -- $(TEST_ARGS)

lint: ## formats and mends what can be mended, then all linters
	@tools/setup python
	$(BIN)/ruff format
	$(BIN)/ruff check --fix
	$(BIN)/python -m pytest -q tests/linters

demo: ## the main job on this machine, as root; under five minutes (DEMO_ARGS="--seconds 5")
	@tools/setup
	$(BIN)/dasec demo $(DEMO_ARGS)

experiments-quick: ## every application that can run here, every policy, as root; under 15 minutes
	@tools/setup
	$(BIN)/python -m experiments run experiments/studies/apps/quick.toml --anyway --out results/experiments-quick

vms-quick: ## three KVM guests of our own: plain host, critical, oracle; as root, five minutes (VMS_ARGS="--set libvirt=true")
	@tools/setup python
	rm -rf build/vms-quick
	$(BIN)/python -m experiments run experiments/studies/bare/quick.toml --out build/vms-quick $(VMS_ARGS)

bench: ## what a control period costs (BENCH_ARGS="--vcpus 1024 --json")
	@tools/setup python
	$(BIN)/dasec bench overhead $(BENCH_ARGS)

docs: ## checks README and docs: commands, links, exit statuses
	@tools/setup python
	$(BIN)/python -m pytest -q tests/docs

load: ## the native load tool in experiments/load/build
	$(MAKE) -C experiments/load

services: ## our web services in Go and Java in experiments/services/build
	$(MAKE) -C experiments/services go java

images: ## guest images for libvirt and QEMU (IMAGES="small python")
	@tools/setup python
	$(BIN)/python vm-images/build.py $(IMAGES)

soak: ## churn, kills, reloads for half an hour (root; SOAK_ARGS="--minutes 5"), report in build/soak
	@tools/setup
	$(BIN)/python -m tests.soak $(SOAK_ARGS)

scx-stress: ## ten minutes of stress for our sched_ext scheduler in guests of 2 to 64 CPUs (SCX_STRESS_ARGS="--minutes 1 --cpus 8")
	@tools/setup
	$(BIN)/python -m tests.vm.scx_stress $(SCX_STRESS_ARGS)

scx-cookies: ## core scheduling beside our sched_ext scheduler in a guest (builds a kernel, once; SCX_COOKIES_ARGS="--seconds 2")
	@tools/setup python
	$(BIN)/python -m tests.vm.scx_cookies $(SCX_COOKIES_ARGS)

scx-selftests: ## the kernel's own selftests of sched_ext in a guest (clang-19; a minute to build, once)
	@tools/setup python
	$(BIN)/python -m tests.vm.scx_selftests

hostile: ## ten minutes beside a user who means harm (root; HOSTILE_ARGS="--minutes 2")
	@tools/setup
	$(BIN)/python -m tests.hostile $(HOSTILE_ARGS)

testbed-quick: ## the machine of many CPUs: is it as it should be, does it repeat (experiments/studies/testbed)
	@tools/setup
	rm -rf build/testbed-quick
	$(BIN)/python -m experiments.studies.testbed quick --out build/testbed-quick

chaos: ## the long run of kills and damaged journals (root)
	@tools/setup
	$(BIN)/python -m pytest --run-slow -m slow tests/chaos tests/protocol tests/unit/safety/test_damage.py $(TEST_ARGS)

churn: ## 250 starts and stops on each of four container engines beside the daemon (root, cgroup v1; DASEC_CHURN_ROUNDS=20)
	@tools/setup python
	$(BIN)/python -m pytest -q --run-slow tests/host/engines/test_churn.py $(TEST_ARGS)

install: ## dasec for all users: an environment in PREFIX, the command in /usr/local/bin (root)
	rm -rf build/lib # setuptools would install what lies there from an older build
	python3 -m venv $(PREFIX)
	$(PREFIX)/bin/python -m pip --disable-pip-version-check install .
	ln -sfn $(PREFIX)/bin/dasec /usr/local/bin/dasec

deb: ## a package for Debian 12 and 13 in dist
	@tools/setup python
	packaging/deb/build

clean: ## removes what the other targets made, the environment too
	-$(MAKE) -C experiments/load clean
	rm -rf .venv build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage htmlcov
	find daemon tests tools experiments -name __pycache__ -prune -exec rm -rf {} +
