# make help lists the targets. The scripts that a target calls install the programs and packages that it needs.
# ARGS are arguments for the program of a target that measures: make bench-overhead ARGS="-b 6 -n 2".

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules

MODULE  := github.com/touchstone-bench/touchstone
# git shortens a commit by the number of objects in a clone, unless it gets a length.
VERSION := $(or $(shell git describe --tags --always --dirty --abbrev=12 2>/dev/null),dev)
# Without -buildvcs=false go build fails in a clone that git refuses to read, such as another user's.
VCS     := $(if $(shell git rev-parse HEAD 2>/dev/null),,-buildvcs=false)
ARCH    := $(shell go env GOARCH 2>/dev/null)
BIN     := bin/touchstone
PROBES  := amd64 arm64 riscv64

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# --- Build ------------------------------------------------------------------------------

.PHONY: build
build: ## Build bin/touchstone
	CGO_ENABLED=0 go build $(VCS) -trimpath -ldflags '-s -w -X $(MODULE)/internal/cli.version=$(VERSION)' -o $(BIN) ./cmd/touchstone

.PHONY: probes
probes: ## After a change of probe/ or linpack/, build them for all architectures, with cross compilers
	scripts/setup.sh build cross
	scripts/build-probe.sh $(PROBES)

.PHONY: bpf
bpf: ## After a change of internal/trace/kernel, build the programs of the tracer, with clang 14 of Debian 12
	scripts/setup.sh bpf
	go generate ./internal/trace
	cd internal/trace && sha256sum kernel/* *_bpfel.* >bpf.sum

# --- Release ----------------------------------------------------------------------------

.PHONY: dist
dist: ## Build archives, packages, the container image, bills of materials and checksums for all architectures in dist/
	VERSION='$(VERSION)' scripts/dist.sh $(or $(ARGS),$(PROBES))

.PHONY: release
release: ## Build, check and sign the release of the tag at HEAD; with PUBLISH=1 also publish it
	scripts/release.sh $(ARGS)

# --- Measure ----------------------------------------------------------------------------

.PHONY: demo
demo: ## Set up, build, measure the runtimes found and write out/report.html; as root
	@scripts/demo.sh $(ARGS)

.PHONY: bench-overhead
bench-overhead: build ## Measure what Touchstone itself adds to a measurement; as root
	scripts/bench-overhead.sh $(ARGS)

.PHONY: bench-million
bench-million: build ## Measure the report of a run of 10^6 samples: time, memory, page
	go run ./scripts/million $(ARGS) bin/touchstone

.PHONY: bench-page
bench-page: ## Measure the page of 20 targets and 40 benchmarks in Chromium: opening, reaction to the controls
	go test -trimpath -vet=off -run '^$$' -bench Page -benchtime 7x -timeout 30m $(ARGS) ./test/browser

# --- Test -------------------------------------------------------------------------------

# With -trimpath a fresh clone uses the objects that another clone has built.

.PHONY: test
test: ## Set up, and test a change: lint, pure tests, real runtimes, a virtual machine; as root
	scripts/test.sh

.PHONY: test-all
test-all: ## Set up, and run every test, with the race detector, fuzzing and the whole lab; as root, for a night
	scripts/test.sh -all

.PHONY: test-lab
test-lab: ## Boot virtual machines with cgroup v2 and with ARM, and test in them; as root
	scripts/test-lab.sh

# The packages with attacks on Touchstone, which the campaign runs on a host of its own.
ATTACKS := ./internal/engine/native ./internal/peer ./internal/store ./internal/turn

.PHONY: chaos-programs
chaos-programs: build ## Build the programs of the adversarial campaign in bin/chaos
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -o bin/chaos/wrapper ./test/chaos/wrapper
	CGO_ENABLED=0 go test -c -trimpath -vet=off -ldflags='-s -w' -o bin/chaos/ $(ATTACKS)
	ln -f bin/touchstone bin/chaos/touchstone

.PHONY: chaos
chaos: ## Run the adversarial campaign and write the table of docs/reliability.md; as root, in about an hour
	scripts/chaos.sh

# Packages whose tests need root and real parts: to link their programs takes as long as many tests.
REAL := $(addprefix $(MODULE)/,internal/bench/pods $(addprefix test/,browser chaos cluster dist fleet install outage))

# A file system in memory for the programs and files of tests, if programs can run there. Tests make and delete thousands of files, whose inodes ext4
# then searches: without it they take a fifth longer.
MEMORY = $(shell [ -w /dev/shm ] && findmnt -n -o OPTIONS -T /dev/shm | grep -qv noexec && [ $$(df --output=avail /dev/shm | tail -1) -gt 2000000 ] && echo /dev/shm || echo "$${TMPDIR:-/tmp}")

# Most of its time links programs. A higher GOGC saves a ninth of it, for a tenth more memory.
.PHONY: test-quick
test-quick: ## Run the tests that need no runtime and no root
	CGO_ENABLED=0 GOGC=400 TMPDIR=$(MEMORY) go test -short -p 3 -trimpath -vet=off -ldflags='-s -w' $$(go list ./... | grep -vxF $(addprefix -e ,$(REAL)))

.PHONY: race
race: ## Run the short tests of all packages with the race detector
	CGO_ENABLED=1 go test -short -trimpath -race ./...

.PHONY: fuzz
fuzz: ## Run every fuzz test for FUZZTIME (5s)
	scripts/fuzz.sh

.PHONY: bench-stats
bench-stats: export TOUCHSTONE_FULL := 1
bench-stats: ## Simulate the statistics: false alarms, coverage and power
	{ go test -count=1 -v -timeout 60m -run 'Coverage|FalseAlarms|Power|Level|ErrorRate|Sharpen|Sequential|Agrees' ./internal/stats -reports 2000; \
	go test -count=1 -v -timeout 60m ./internal/stats/tail -series 1000; \
	go test -count=1 -v -run TestFalseAlarmsOfHealthyFleets ./internal/report/fleet; \
	go test -count=1 -v -run TestScorecardRarelyErrsAtTheGoal ./internal/report; } \
		| sed -n 's/^ *[a-z_]*_test.go:[0-9]*: //p; /^ *\(--- FAIL\|FAIL\|ok\)/p'

.PHONY: bench
bench: ## Run the Go benchmarks
	go test -run '^$$' -bench . -benchmem $(ARGS) ./...

# Each clone has its own cache. A shared one contains paths of other clones, and the exclusions do not match them.
lint: export GOLANGCI_LINT_CACHE := $(CURDIR)/bin/lint
lint cross: export GOFLAGS := -trimpath
lint cross: export CGO_ENABLED := 0

.PHONY: lint
lint: ## Check style, layers, the clock rule, names and the prose
	path=$$(scripts/tools.sh golangci-lint) && "$$path/golangci-lint" run --allow-parallel-runners ./...
	go test ./internal/docgen -run 'TestProse|Names'

.PHONY: cross
cross: ## Check the types of all code, including tests, for the other architectures
	go run ./scripts/cross $(filter-out $(ARCH),$(PROBES))

.PHONY: fmt
fmt: ## Format the code
	path=$$(scripts/tools.sh golangci-lint) && "$$path/golangci-lint" fmt ./...

.PHONY: gen
gen: ## Write the generated files: docs/cli, the tables of docs/benchmarks, docs/invariants.md, the schemas, and the component of GitLab
	go test ./internal/docgen -count=1 -update
	go test ./internal/plan -count=1 -run TestSchemaIsCurrent -update
	go test ./internal/setup -count=1 -run TestShimIsCurrent -update
	go test ./internal/syscalls -count=1 -run TestTableIsCurrent -update
	go test ./test/ci -count=1 -run TestComponentIsCurrent -update

.PHONY: pins
pins: ## Write the digests of the workload image, after a change of its build; needs mmdebstrap and a Debian mirror
	go test ./internal/image/debian -count=1 -run TestPins -update


.PHONY: clean
clean: ## Remove built programs and results
	rm -rf bin dist out
