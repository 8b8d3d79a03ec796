# SPDX-License-Identifier: GPL-3.0-or-later
# make demo: see it work. make test: all tests. make install: binary, configuration, manuals, unit.

CARGO ?= cargo
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
DESTDIR ?=
TARGET := $(or $(CARGO_TARGET_DIR),target)
PROGRAM := $(TARGET)/release/bulkmark

.PHONY: all build demo test lint study fuzz bench install clean

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
	$(CARGO) clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps

# The paper's study with few rounds: all of its means must agree with ours within the error of so many rounds.
study: build
	$(PROGRAM) simulate --experiment all --rounds 50 --compare

# Seconds for each of the targets; see fuzz/README.md.
FUZZ_SECONDS ?= 10

fuzz:
	fuzz/run $(FUZZ_SECONDS)

bench:
	$(CARGO) bench --locked --bench signature
	$(CARGO) bench --locked --bench milter
	$(CARGO) bench --locked --bench accuracy
	$(CARGO) bench --locked --bench delta
	benches/postfix/run

# Not after `build`, since root may have no Rust.
install:
	@test -x $(PROGRAM) || { echo "there is no $(PROGRAM): run make build first" >&2; exit 1; }
	install -D -m 0755 $(PROGRAM) $(DESTDIR)$(PREFIX)/bin/bulkmark
	test -e $(DESTDIR)$(SYSCONFDIR)/bulkmark/milter.toml || \
		install -D -m 0644 conf/milter.toml $(DESTDIR)$(SYSCONFDIR)/bulkmark/milter.toml
	for page in man/*; do \
		install -D -m 0644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/}; done
	install -D -m 0644 packaging/sysusers.d/bulkmark.conf $(DESTDIR)/usr/lib/sysusers.d/bulkmark.conf
	install -d $(DESTDIR)$(SYSCONFDIR)/systemd/system
	sed 's|/usr/bin/bulkmark|$(PREFIX)/bin/bulkmark|' systemd/bulkmark-milter.service \
		> $(DESTDIR)$(SYSCONFDIR)/systemd/system/bulkmark-milter.service

clean:
	$(CARGO) clean
