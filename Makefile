# SPDX-License-Identifier: GPL-3.0-or-later
# make demo: see it work. make test: all tests. make install: binary, configuration, manuals, unit.

CARGO ?= cargo
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
DESTDIR ?=
TARGET := $(or $(CARGO_TARGET_DIR),target)
PROGRAM := $(TARGET)/release/bulkmark

.PHONY: all build demo test lint study exactness fuzz bench bench-filter bench-instructions install clean

all: build

build:
	$(CARGO) build --release --locked

demo: build
	tests/demo

# What the tests need besides Rust (Postfix, miltertest, ...) is installed by apt when it is missing.
test:
	tests/mta/install
	$(CARGO) test --locked

lint:
	$(CARGO) fmt --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) fmt --manifest-path benches/speed/Cargo.toml --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps

# The paper's study with few rounds: all of its means must agree with ours within the error of so many rounds.
study: build
	$(PROGRAM) simulate --experiment all --rounds 50 --compare

# Three servers and six milters under kill -9 and bad connections: every count must be exact. Prints what was done.
exactness:
	BULKMARK_REPORTS=200000 BULKMARK_KILLS=50 BULKMARK_KILL_PAUSE=1000 \
		$(CARGO) test --locked --release --test exactness -- --nocapture

# Seconds for each of the targets; see fuzz/README.md.
FUZZ_SECONDS ?= 10

fuzz:
	fuzz/run $(FUZZ_SECONDS)

bench:
	$(CARGO) bench --locked --bench signature
	$(CARGO) bench --locked --bench milter
	$(CARGO) bench --locked --bench server
	$(CARGO) bench --locked --bench accuracy
	$(CARGO) bench --locked --bench delta
	$(MAKE) bench-filter
	benches/postfix/run

# The filter's speed, in a package of its own beside hashbrown; and its instruction counts with valgrind, whose runner must
# be of the same version as gungraun.
GUNGRAUN := 0.20.0
SPEED := --locked --manifest-path benches/speed/Cargo.toml --target-dir $(abspath $(TARGET))/speed
TOOLS := $(abspath $(TARGET))/tools

bench-filter:
	$(CARGO) bench $(SPEED) --bench filter

bench-instructions:
	@if ! command -v valgrind >/dev/null; then \
		echo "bench-instructions: skipped, there is no valgrind (apt-get install valgrind)" >&2; exit 0; fi; \
	runner=$(TOOLS)/bin/gungraun-runner; \
	if ! $$runner --version 2>/dev/null | grep -qF " $(GUNGRAUN)"; then \
		echo "bench-instructions: installing gungraun-runner $(GUNGRAUN) in $(TOOLS)" >&2; \
		$(CARGO) install --locked --version $(GUNGRAUN) --root $(TOOLS) gungraun-runner || exit 1; fi; \
	GUNGRAUN_RUNNER=$$runner $(CARGO) bench $(SPEED) --bench instructions

# Not after `build`, since root may have no Rust.
install:
	@test -x $(PROGRAM) || { echo "there is no $(PROGRAM): run make build first" >&2; exit 1; }
	install -D -m 0755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/bulkmark
	for file in milter.toml server.toml; do \
		test -e $(DESTDIR)$(SYSCONFDIR)/bulkmark/$$file || \
		install -D -m 0644 conf/$$file $(DESTDIR)$(SYSCONFDIR)/bulkmark/$$file; done
	for page in man/*; do \
		install -D -m 0644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/}; done
	install -D -m 0644 packaging/sysusers.d/bulkmark.conf $(DESTDIR)/usr/lib/sysusers.d/bulkmark.conf
	install -d $(DESTDIR)$(SYSCONFDIR)/systemd/system
	sed 's|/usr/bin/bulkmark|$(PREFIX)/bin/bulkmark|' systemd/bulkmark-milter.service \
		> $(DESTDIR)$(SYSCONFDIR)/systemd/system/bulkmark-milter.service

clean:
	$(CARGO) clean
