# make demo           install what is missing, build, and watch a video go from a folder to a receiver (DEMO=once: then stop)
# make build          the release program: .build/release/sluice
# make build-tests    the debug program and the tests, which every target below builds first
# make test           the quick tier: every unit test, some cases of the slow ones; of the end-to-end tests one upload to each kind of
#                     destination, six kills, power cuts, a reload, `--once` and an example of the API
# make test-full      every test with every case, 50 kills, 12 power cuts at random moments, 10 scenes of two links and a tunnel
# make test-long      the same with the slow tests, 1,000 kills, 200 cuts and 100 scenes
# make crash          the crash test alone: KILLS=50, SEED= to have a run again
# make campaign       kills and servers that refuse, forget and lie at the end, for every kind of destination: KILLS=50, SEED=, KIND=form for one of them
# make scenes         links and routes that come and go under changing rules, as root: SCENES=100, SEED= and SCENES=1 to have one again
# make fuzz           damaged input for every parser: ROUNDS=1000000 of the fast ones, SEED= and ROUNDS=1 for a round again
# make cuts           the power cuts alone, as root: CUTS=12, SEED= to have a run again
# make sanitize       the tests under the thread and the address sanitizer; sanitize-thread and sanitize-address alone
# make bench          figures, one line each: ONLY=core/ for some of them, ROUNDS=5, ROWS=1000000 of the backlog
# make lint           format, imports, forbidden words, scripts
# make install-deps   the Debian packages that building needs, and only those that are missing
# make clean          remove everything that was built

SHELL := /bin/bash
.PHONY: help demo build build-tests test test-full test-long crash campaign cuts scenes fuzz sanitize sanitize-thread sanitize-address bench lint install-deps install-test-deps clean
.DEFAULT_GOAL := help

KILLS ?= 50
CUTS ?= 12
SCENES ?= 10
ROUNDS ?= 1000000
SEED ?=
ONLY ?=
RECORDS ?=

# No warning stays, and no module imports what Package.swift does not say.
STRICT := -Xswiftc -warnings-as-errors --explicit-target-dependency-import-check error
# The Swift runtime goes into the program, which then needs only Debian's C libraries; -s leaves the symbols out, nothing is
# exported that nobody loads, and functions that are the same stand there once. lld comes with Swift and packs the million bytes of
# relocations, which glibc knows since 2.36 (Debian 12). All of them are done at the start, and their table is read-only from then on
# (-z now); no library is looked for beside the program (--disable-local-rpath). scripts/without-unwinding.ld says what else stays out.
RELEASE := -c release --static-swift-stdlib -Xswiftc -use-ld=lld -Xlinker -z -Xlinker pack-relative-relocs -Xlinker -s \
	-Xlinker --no-export-dynamic -Xlinker --icf=safe -Xlinker -z -Xlinker relro -Xlinker -z -Xlinker now --disable-local-rpath \
	-Xlinker --no-eh-frame-hdr -Xlinker $(CURDIR)/scripts/without-unwinding.ld $(STRICT)
# Optimized, a round of fuzzing or a million rows take a tenth of the time, and traps are the same. The tests reach inside all the same.
OPTIMIZED := -c release -Xswiftc -enable-testing --scratch-path .build-fuzz
# Two runs: the processes of the end-to-end tests would take the cores from tests that wait for a socket or a lock.
# The tests drive the debug program that is built with them, unless SLUICE_BINARY names another one.
RUN := swift test --skip-build
# All at once they would starve each other on two cores.
FEW := --experimental-maximum-parallelization-width 8
# Each of these has processes of its own, and all of them wait for one disk.
FEWER := --experimental-maximum-parallelization-width 6

# The end-to-end tests of the quick tier.
QUICK := S3Tests/killed._:behind OSSTests/killed.behind ApsaraTests/killed.behind FormTests/killed._:behind ArchiveTests/killed.behind \
	VimeoCrashTests/steps StepTests/goesOn CrashTests/ CutTests/behindSteps CutTests/atRandom ReloadTests/many OnceTests/again ExampleTests

# Says a command and runs it.
run = { printf '%s\n' '$(strip $(1))'; $(strip $(1)); }

# RECORDS= names a folder for what the runner writes of each run, for scripts/tally.
record = $(if $(RECORDS),--event-stream-output-path $(RECORDS)/$(1).jsonl)

help:
	@sed -n '/^# make/s/^# //p; /^$$/q' Makefile

demo:
	@printf '%s\n' $(if $(wildcard .build/release/sluice),'Builds what has changed since the last time first.',\
		'Builds first: 5 to 10 minutes on two cores, later only what has changed. The demo itself takes a few seconds.')
	@$(MAKE) --no-print-directory build
	@scripts/demo

build: install-deps
	swift build $(RELEASE) --product sluice
	@scripts/check-binary .build/release/sluice

build-tests: install-test-deps
	@began=$$SECONDS; $(call run,swift build --build-tests $(STRICT)) && printf 'The build of the tests took %d s.\n' $$((SECONDS - began))

# Both runs, whatever the first says; it fails if one of them has failed. `Tier` has a few cases of each slow test here.
test: build-tests
	@failed=; \
	$(call run,SLUICE_TIER=quick $(RUN) $(FEW) $(call record,unit) --skip EndToEndTests --skip ScaleTests) \
		|| failed='the unit tests'; \
	$(call run,SLUICE_TIER=quick SLUICE_KILLS=6 SLUICE_CUTS=1 $(RUN) $(FEWER) $(call record,end-to-end) \
		$(foreach test,$(QUICK),--filter EndToEndTests.$(test))) \
		|| failed="$${failed:+$$failed and }the end-to-end tests"; \
	if [[ $$failed ]]; then printf 'make test: failed: %s\n' "$$failed"; exit 1; fi

test-full: build-tests
	@failed=; \
	$(call run,$(RUN) $(FEW) $(call record,unit-full) --skip EndToEndTests) || failed='the unit tests'; \
	$(call run,SLUICE_KILLS=$(KILLS) SLUICE_CUTS=$(CUTS) SLUICE_SCENES=$(SCENES) $(RUN) $(FEWER) \
		$(call record,end-to-end-full) --filter EndToEndTests) || failed="$${failed:+$$failed and }the end-to-end tests"; \
	if [[ $$failed ]]; then printf 'make test-full: failed: %s\n' "$$failed"; exit 1; fi

test-long: build-tests
	@failed=; \
	$(call run,SLOW_TESTS=1 $(RUN) $(FEW) --skip EndToEndTests --skip ScaleTests) || failed='the unit tests'; \
	$(call run,swift build --build-tests $(OPTIMIZED) && SLOW_TESTS=1 swift test --skip-build $(OPTIMIZED) \
		--filter ScaleTests) || failed="$${failed:+$$failed and }the tests of scale"; \
	$(call run,SLOW_TESTS=1 SLUICE_KILLS=1000 SLUICE_CUTS=200 SLUICE_SCENES=100 $(RUN) $(FEWER) \
		--filter EndToEndTests) || failed="$${failed:+$$failed and }the end-to-end tests"; \
	if [[ $$failed ]]; then printf 'make test-long: failed: %s\n' "$$failed"; exit 1; fi

crash: build-tests
	$(if $(SEED),SLUICE_SEED=$(SEED)) SLUICE_KILLS=$(KILLS) $(RUN) --filter CrashTests

campaign: build-tests
	$(if $(SEED),SLUICE_SEED=$(SEED)) $(if $(KIND),SLUICE_KIND=$(KIND)) SLOW_TESTS=1 SLUICE_KILLS=$(KILLS) $(RUN) \
		--filter CampaignTests

cuts: build-tests
	$(if $(SEED),SLUICE_SEED=$(SEED)) SLUICE_CUTS=$(CUTS) $(RUN) --filter CutTests

scenes: build-tests
	$(if $(SEED),SLUICE_SEED=$(SEED)) SLUICE_SCENES=$(SCENES) $(RUN) --filter NetworkModelTests

# Each target prints the seed of its round when something does not hold; what traps leaves it in .build-fuzz/traces.
fuzz: install-test-deps
	swift build --build-tests $(OPTIMIZED)
	@rm -rf .build-fuzz/traces && mkdir -p .build-fuzz/traces
	$(if $(SEED),SLUICE_SEED=$(SEED)) SLUICE_FUZZ=$(ROUNDS) SLUICE_FUZZ_TRACE=$(CURDIR)/.build-fuzz/traces \
		swift test --skip-build $(OPTIMIZED) --filter 'FuzzTests' || { grep -H . .build-fuzz/traces/*; exit 1; }

sanitize: sanitize-thread sanitize-address

# Each has a build of its own. One test at a time: side by side they would starve each other into their time limits.
# Every process of a run, the daemons and receivers of the end-to-end tests too, writes what the sanitizer finds into
# reports/: one that is killed afterwards has told all the same, and any file there fails the run.
sanitize-thread: install-test-deps
	@scripts/sanitize thread

sanitize-address: install-test-deps
	@scripts/sanitize address

# The program too: most marks are taken of it.
bench: build
	@swift build $(RELEASE) --product Benchmarks
	@.build/release/Benchmarks $(ONLY)

lint:
	@scripts/lint

install-deps:
	@scripts/install-deps

install-test-deps:
	@scripts/install-deps --tests

clean:
	rm -rf .build .build-fuzz .build-thread .build-address
