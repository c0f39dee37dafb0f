# make demo   builds and shows two runs with increasing tokens
# make test   the whole suite, against a real etcd
# See README.md for the others.

PREFIX  ?= /usr/local
DESTDIR ?=
CARGO   ?= cargo

TARGET   := $(or $(CARGO_TARGET_DIR),target)
BINARY   := $(TARGET)/release/fenced
SERVERS  := $(CURDIR)/target/test-servers
SOURCES  := Cargo.toml Cargo.lock $(shell find src -name '*.rs')

bindir   := $(DESTDIR)$(PREFIX)/bin
mandir   := $(DESTDIR)$(PREFIX)/share/man/man1
bashdir  := $(DESTDIR)$(PREFIX)/share/bash-completion/completions
zshdir   := $(DESTDIR)$(PREFIX)/share/zsh/site-functions
fishdir  := $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d

.PHONY: build demo test soak mutants lint bench lab generate install uninstall setup setup-test clean

build: $(BINARY)

$(BINARY): $(SOURCES)
	@scripts/setup-build.sh
	$(CARGO) build --release --locked
	@touch $@

# What the build needs beside Rust and a C compiler.
setup:
	@scripts/setup-build.sh

# The servers that the tests start, unpacked and not installed, and the programs that they run.
setup-test: setup
	@scripts/setup-test.sh $(SERVERS)
	@scripts/setup-resources.sh $(SERVERS)/resources

demo: $(BINARY)
	@scripts/demo.sh $(BINARY)

# A server that cannot be had here (another Debian, another processor) leaves its variable empty.
WITH_SERVERS = FENCED_TEST_ETCD_34=$$(ls $(SERVERS)/3.4/etcd || :) FENCED_TEST_ETCD_35=$$(ls $(SERVERS)/3.5/etcd || :)
RIG          = $(WITH_SERVERS) $(CARGO) test --locked --test rig

test: setup-test
	$(WITH_SERVERS) FENCED_TEST_TOOLS=$$(ls -d $(SERVERS)/tools || :) \
	    FENCED_TEST_RESOURCES=$(SERVERS)/resources FENCED_WALK_STEPS=1000000 $(CARGO) test --locked --no-fail-fast
	$(RIG) -- --test-threads 6

# Random faults for so long; each schedule's seed is printed, and what came of it.
MINUTES ?= 60
soak: setup-test
	RIG_SECONDS=$$(($(MINUTES) * 60)) $(RIG) soak -- --nocapture

# One fault after the other is built into a copy, to see that it is found. MUTANTS=N: only so many, drawn by lot.
mutants: setup-test
	$(WITH_SERVERS) scripts/mutants.sh

lint: setup
	@scripts/lint.sh

# The table of BENCHMARKS.md, in some ten minutes. REST: seconds of a holder at rest; WAITERS: the longest queue.
REST    ?= 60
WAITERS ?= 1000

bench: $(BINARY) setup-test
	$(CARGO) build --release --locked --example bench-floor
	@python3 -B benches --fenced $(BINARY) --floor $(TARGET)/release/examples/bench-floor --etcd $(SERVERS)/3.4 \
	    --rest $(REST) --waiters $(WAITERS)

# No lock, a Redis lock, etcdctl lock and fenced beside each other, into RELIABILITY.md; the logs stay in target/lab.
lab: $(BINARY) setup-test
	@scripts/setup-lab.sh $(SERVERS)
	@python3 -B scripts/lab $(BINARY) $(SERVERS) $(CURDIR)/target/lab RELIABILITY.md $(ROWS)

# man/ and completions/, from the definition of the command line.
generate: setup
	FENCED_REGENERATE=1 $(CARGO) test --locked --test generated

install: $(BINARY)
	install -d $(bindir) $(mandir) $(bashdir) $(zshdir) $(fishdir)
	install -m 755 $(BINARY) $(bindir)/fenced
	install -m 644 man/*.1 $(mandir)
	install -m 644 completions/fenced.bash $(bashdir)/fenced
	install -m 644 completions/_fenced $(zshdir)/_fenced
	install -m 644 completions/fenced.fish $(fishdir)/fenced.fish

uninstall:
	rm -f $(bindir)/fenced $(addprefix $(mandir)/,$(notdir $(wildcard man/*.1)))
	rm -f $(bashdir)/fenced $(zshdir)/_fenced $(fishdir)/fenced.fish

clean:
	$(CARGO) clean
