# make demo           install missing packages, build, and run `sluice demo`: an upload that is cut and continues (KEEP=1: play on)
# make build          the release program: .build/release/sluice
# make deb            the Debian package: .build/packages/sluice_VERSION_ARCH.deb; ARCH=arm64 builds and packs it for arm64, as root
# make release        packages, tarballs, digests and a signed apt repository: .build/release-VERSION; KEY= names the GnuPG key
# make test-package   tries the Debian package on clean systems, its services in booted ones, the container image and the Ansible role,
#                     as root: SUITES="bookworm trixie" for the first two
# make build-tests    the debug program and the tests; the targets that run tests build these first
# make test           the quick tier: every unit test, with some cases of the slow ones; end-to-end: one upload to each kind of destination,
#                     a kill after each step, power cuts, a reload, `--once` and an example of the API
# make test-full      every test with every case, 50 kills, 12 power cuts at random moments, 10 scenes of two links and a tunnel
# make test-long      the same with the slow tests, 1,000 kills, 200 cuts and 100 scenes, test-package and test-web
# make test-web       the web page in a headless Chromium, with the built program
# make crash          only the crash test: KILLS=50, SEED= repeats a run
# make campaign       kills, and servers that refuse, forget and lie at the end, for every kind of destination: KILLS=50, SEED=, KIND=form for one of them
# make scenes         links and routes that come and go under changing rules, as root: SCENES=10, SEED= with SCENES=1 repeats a scene
# make fuzz           damaged input for every parser: ROUNDS=1000000 of the fast ones, SEED= with ROUNDS=1 repeats a round
# make cuts           only the power cuts, as root: CUTS=12, SEED= repeats a run
# make planted        plants faults in a copy of HEAD, one at a time, and checks that tests find each of them: FAULT=checkpoint for one
# make sanitize       the tests under the thread and the address sanitizer; sanitize-thread and sanitize-address run one of them
# make bench          benchmarks, one line per figure: ONLY=core/ selects some, ROUNDS=5, ROWS=1000000 of the backlog
# make man            the manual pages: .build/man/sluice.1 and sluice.yaml.5
# make lint           format, imports, forbidden words, structure, the list of tests, scripts
# make install-deps   the missing ones of the Debian packages that the build needs
# make clean          remove everything that was built

SHELL := /bin/bash
.PHONY: help demo build man check-deb check-release deb release test-package build-tests test test-full test-long test-web crash campaign cuts scenes fuzz planted sanitize sanitize-thread sanitize-address bench lint install-deps install-test-deps clean
.DEFAULT_GOAL := help

KILLS ?= 50
CUTS ?= 12
SCENES ?= 10
ROUNDS ?= 1000000
SEED ?=
ONLY ?=
RECORDS ?=
KEY ?=
SUITES ?=

# Warnings are errors, and a module may only import the modules that Package.swift gives it.
STRICT := -Xswiftc -warnings-as-errors --explicit-target-dependency-import-check error
# The Swift runtime is linked into the program, which then needs only Debian's C libraries. -s omits the symbols, --no-export-dynamic
# exports no symbols, and --icf=safe merges identical functions. lld comes with Swift and packs the million bytes of relocations; glibc
# supports that since 2.36 (Debian 12). -z now applies all of them at the start, and -z relro makes their table read-only afterwards.
# --disable-local-rpath keeps the program from searching for libraries beside itself. scripts/without-unwinding.ld omits more.
RELEASE := -c release --static-swift-stdlib -Xswiftc -use-ld=lld -Xlinker -z -Xlinker pack-relative-relocs -Xlinker -s \
	-Xlinker --no-export-dynamic -Xlinker --icf=safe -Xlinker -z -Xlinker relro -Xlinker -z -Xlinker now --disable-local-rpath \
	-Xlinker --no-eh-frame-hdr -Xlinker $(CURDIR)/scripts/without-unwinding.ld $(STRICT)
# An optimized build takes a tenth of the time for a round of fuzzing or a million rows, and traps in the same places. -enable-testing
# lets the tests use internal declarations in it.
OPTIMIZED := -c release -Xswiftc -enable-testing --scratch-path .build-fuzz
# Unit tests and end-to-end tests are separate runs: the processes of the latter would take the cores from unit tests that wait for a
# socket or a lock. The tests run the debug program that is built with them, unless SLUICE_BINARY names another one.
RUN := swift test --skip-build
# More tests in parallel would starve each other on two cores.
FEW := --experimental-maximum-parallelization-width 8
# Each end-to-end test starts processes, and all of them wait for one disk.
FEWER := --experimental-maximum-parallelization-width 6

# The end-to-end tests of the quick tier.
QUICK := S3Tests/killed._:behind OSSTests/killed.behind ApsaraTests/killed.behind FormTests/killed._:behind ArchiveTests/killed.behind \
	VimeoCrashTests/steps StepTests/goesOn CrashTests/ CutTests/behindSteps CutTests/atRandom ReloadTests/many OnceTests/again ExampleTests \
	NASToS3Tests/opens ResumableHTTPEndToEndTests/killed

# Prints a command and runs it.
run = { printf '%s\n' '$(strip $(1))'; $(strip $(1)); }

# RECORDS= names a folder for the test runner's records of each run, which scripts/tally reads.
record = $(if $(RECORDS),--event-stream-output-path $(RECORDS)/$(1).jsonl)

help:
	@sed -n '/^# make/s/^# //p; /^$$/q' Makefile

demo:
	@printf '%s\n' $(if $(wildcard .build/release/sluice),'Builds what has changed since the last time first.',\
		'Builds first: 5 to 10 minutes on two cores, later only what has changed. The demo itself takes a few seconds.')
	@$(MAKE) --no-print-directory build
	@.build/release/sluice demo $(if $(KEEP),--keep)

build: install-deps
	swift build $(RELEASE) --product sluice
	@scripts/check-binary .build/release/sluice

# With the flags of the program, so that its modules are not built twice. The date is that of the last commit, so that the same sources
# make the same pages.
man:
	@swift build $(RELEASE) --product Manual
	@.build/release/Manual .build/man "$$(git log -1 --format=%cs 2>/dev/null || date +%F)"
	@printf '%s\n' .build/man/sluice.1 .build/man/sluice.yaml.5

# Before the build, which takes minutes.
check-deb:
	@$(if $(filter-out arm64 $(shell dpkg --print-architecture),$(ARCH)),\
		printf 'make deb: `%s` is neither this machine nor arm64\n' '$(ARCH)' >&2; exit 64)
	@$(if $(filter arm64,$(ARCH)),scripts/cross-arm64 --check,scripts/make-deb --check)

check-release:
	@KEY='$(KEY)' scripts/make-release --check
	@$(if $(wildcard .build/arm64/sluice),scripts/cross-arm64 --check)

# The manual pages are the same for each architecture.
deb: check-deb $(if $(filter arm64,$(ARCH)),man,build man)
	@$(if $(filter arm64,$(ARCH)),scripts/cross-arm64 deb,scripts/make-deb)

# The package for arm64 is made again too if it was built here once.
release: check-release deb
	@$(if $(wildcard .build/arm64/sluice),scripts/cross-arm64 deb)
	@KEY='$(KEY)' scripts/make-release

test-package: deb
	@failed=; scripts/test-package $(SUITES) || failed=yes; scripts/test-booted $(SUITES) || failed=yes; \
	scripts/test-container || failed=yes; scripts/test-ansible || failed=yes; [[ ! $$failed ]]

# The software of others is made during the build. Without it only the tests that need it are skipped, with the command that makes it.
build-tests: install-test-deps
	@mkdir -p .build; scripts/test-tools >.build/test-tools.log 2>&1 & tools=$$!; began=$$SECONDS; \
	$(call run,swift build --build-tests $(STRICT)) || { wait $$tools; exit 1; }; \
	wait $$tools || cat .build/test-tools.log; \
	printf 'The build of the tests took %d s.\n' $$((SECONDS - began))

# Both runs, whatever the result of the first; fails if one of them failed. With SLUICE_TIER=quick, `Tier` selects a few cases of each
# slow test.
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

# Simulations of hundreds of days run in the optimized build: in a debug build they take hours and keep the cores from all other tests.
test-long: build-tests
	@failed=; \
	$(call run,SLOW_TESTS=1 $(RUN) $(FEW) --skip EndToEndTests --skip ScaleTests --skip PlanAgreementTests) || \
		failed='the unit tests'; \
	$(call run,swift build --build-tests $(OPTIMIZED) && SLOW_TESTS=1 SLUICE_CASES=100000 swift test --skip-build \
		$(OPTIMIZED) --filter 'ScaleTests|PlanAgreementTests|ConditionPropertyTests|LimitPropertyTests') || failed="$${failed:+$$failed and }the tests of scale"; \
	$(call run,SLOW_TESTS=1 SLUICE_KILLS=1000 SLUICE_CUTS=200 SLUICE_SCENES=100 $(RUN) $(FEWER) \
		--filter EndToEndTests) || failed="$${failed:+$$failed and }the end-to-end tests"; \
	$(MAKE) test-package || failed="$${failed:+$$failed and }the tests of the package"; \
	$(MAKE) test-web || failed="$${failed:+$$failed and }the tests of the web page"; \
	if [[ $$failed ]]; then printf 'make test-long: failed: %s\n' "$$failed"; exit 1; fi

# The web page in a real browser.
test-web: build
	@scripts/test-web

crash: build-tests
	$(if $(SEED),SLUICE_SEED=$(SEED)) SLUICE_KILLS=$(KILLS) $(RUN) --filter CrashTests

campaign: build-tests
	$(if $(SEED),SLUICE_SEED=$(SEED)) $(if $(KIND),SLUICE_KIND=$(KIND)) SLOW_TESTS=1 SLUICE_KILLS=$(KILLS) $(RUN) \
		--filter CampaignTests

cuts: build-tests
	$(if $(SEED),SLUICE_SEED=$(SEED)) SLUICE_CUTS=$(CUTS) $(RUN) --filter CutTests

scenes: build-tests
	$(if $(SEED),SLUICE_SEED=$(SEED)) SLUICE_SCENES=$(SCENES) $(RUN) --filter NetworkModelTests

# A fuzz target prints the seed of a round that fails. After a trap the seed is in .build-fuzz/traces.
fuzz: install-test-deps
	swift build --build-tests $(OPTIMIZED)
	@rm -rf .build-fuzz/traces && mkdir -p .build-fuzz/traces
	$(if $(SEED),SLUICE_SEED=$(SEED)) SLUICE_FUZZ=$(ROUNDS) SLUICE_FUZZ_TRACE=$(CURDIR)/.build-fuzz/traces \
		swift test --skip-build $(OPTIMIZED) --filter 'FuzzTests' || { grep -H . .build-fuzz/traces/*; exit 1; }

planted: install-test-deps
	@scripts/planted-faults $(if $(FAULT),'$(FAULT)')

sanitize: sanitize-thread sanitize-address

# Each sanitizer has a build of its own and runs one test at a time: in parallel they would starve each other into their time limits.
# Every process of a run, including the daemons and receivers of the end-to-end tests, writes the sanitizer's findings into reports/,
# also if the test kills the process afterwards. Any file there fails the run.
sanitize-thread: install-test-deps
	@scripts/sanitize thread

sanitize-address: install-test-deps
	@scripts/sanitize address

# Builds the program as well, because most benchmarks measure it.
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
