# The project's verbs. `make test` is all that a change must pass.

CARGO ?= cargo
TARGET = $(or $(CARGO_TARGET_DIR),target)
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)

.PHONY: all build run test test-rest lint test-windows test-frameworks fuzz check test-kernel test-kernel-newer test-kernel-long module dkms-tree bench install package deb wheel image clean

all: build

build:
	$(CARGO) build --release

run:
	$(CARGO) run -- run "mulsd xmm0, xmm1"

# The test programs of every crate and all that is built with other tools, beside each other; what takes turns with cargo's lock is one
# command. Where a part can't be had (77), the reason is printed and the rest counts.
test:
	.ci/test "kernel/test/judge-test && kernel/test/run stable" "$(MAKE) --no-print-directory lint test-rest" frameworks/test crates/cli/tests/page/run

# Documentation's tests, and what is built in other ways than the workspace.
test-rest:
	$(CARGO) test --workspace --profile tests --doc
	$(CARGO) test --profile tests -p cyclescope-clock --no-default-features
	crates/clock/tests/windows/run || test $$? = 77
	crates/cli/tests/windows/run || test $$? = 77

# A million changed inputs of each reader of files; READER names one, INPUTS another number.
# FIELD_INPUTS change single fields of real files, whose result is printed in every form, or parts of
# evidence; RUNS go to the real program. Then each system call and allocation is refused with every
# error. Then libFuzzer's targets, for FUZZ_SECONDS in all.
INPUTS ?= 1000000
FIELD_INPUTS ?= 100000
RUNS ?= 100
FUZZ_SECONDS ?= 60
FUZZ = CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS=true CYCLESCOPE_FUZZ_CORPUS=$(abspath $(TARGET))/fuzz/corpus CARGO_TARGET_DIR=$(TARGET)/fuzz
FUZZ_ARGS = --nocapture --test-threads 1
fuzz:
	$(FUZZ) CYCLESCOPE_FUZZ_INPUTS=$(INPUTS) \
		$(CARGO) test --release -p cyclescope --test hostile -- $(FUZZ_ARGS) --skip any_resealed $(READER)
	$(FUZZ) CYCLESCOPE_FUZZ_INPUTS=$(INPUTS) \
		$(CARGO) test --release -p cyclescope-cli --bins -- $(FUZZ_ARGS) --skip any_fields $(or $(READER),any_)
	$(FUZZ) CYCLESCOPE_FUZZ_INPUTS=$(FIELD_INPUTS) \
		$(CARGO) test --release -p cyclescope-cli --bins -- $(FUZZ_ARGS) $(or $(READER),any_fields)
	$(FUZZ) CYCLESCOPE_FUZZ_INPUTS=$(FIELD_INPUTS) \
		$(CARGO) test --release -p cyclescope --test hostile -- $(FUZZ_ARGS) $(or $(READER),any_resealed)
	CYCLESCOPE_FUZZ_RUNS=$(RUNS) \
		$(CARGO) test --release -p cyclescope-cli --test cli -- $(FUZZ_ARGS) $(or $(READER),hostile_fields_reach)
	test -n "$(READER)" || $(CARGO) test --release -p cyclescope-cli --test denials -- --ignored --nocapture --test-threads 1
	CARGO_TARGET_DIR=$(abspath $(TARGET))/fuzz fuzz/run $(FUZZ_SECONDS) || test $$? = 77

# The clock crate and the command line as Windows programs, under Wine.
test-windows:
	crates/clock/tests/windows/run
	crates/cli/tests/windows/run

# The examples of Criterion, divan, Google Benchmark and Python.
test-frameworks:
	frameworks/test

# In the kernel that the distribution installs, and in the newest that it has. Needs no root: packages are unpacked, not
# installed. ARGS names suites.
test-kernel:
	kernel/test/run stable $(ARGS)

test-kernel-newer:
	kernel/test/run newer $(ARGS)

# Every machine, those that take too long for every day too, in every kernel that `kernel/test/packages` lists; two of them are
# built here first. Hours: before a release. KERNELS names some, and one that can't be had is told and left out.
KERNELS ?= stable newer rt debug cfi
test-kernel-long:
	failed=; for kernel in $(KERNELS); do \
		kernel/test/run --long $$kernel $(ARGS) || test $$? = 77 || failed="$$failed $$kernel"; \
	done; test -z "$$failed" || { echo "failed in:$$failed" >&2; exit 1; }

# target/module/kernel/cyclescope.ko, for the running kernel or for the headers in KDIR.
KDIR ?= /lib/modules/$(shell uname -r)/build
module:
	kernel/build $(KDIR) $(TARGET)/module

# A source tree for `dkms add`.
dkms-tree:
	rm -rf $(TARGET)/cyclescope-$(VERSION)
	mkdir -p $(TARGET)/cyclescope-$(VERSION)/kernel
	sed 's/@VERSION@/$(VERSION)/' kernel/dkms.conf > $(TARGET)/cyclescope-$(VERSION)/dkms.conf
	cp -r kernel/Kbuild kernel/Makefile kernel/*.[chS] kernel/markers $(TARGET)/cyclescope-$(VERSION)/kernel
	cp -r uapi $(TARGET)/cyclescope-$(VERSION)

# Format, lints, documentation, structure.
check: lint
	$(CARGO) test --profile tests --quiet --workspace --test structure

# The first three; structure is among all tests.
lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --profile tests -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --profile tests --workspace --no-deps --document-private-items --quiet

# The figures that matter, measured here and now and printed; ARGS=--list shows the sections, --full is the long
# proof.
bench:
	$(CARGO) build --release -p cyclescope-cli -p cyclescope-bench
	$(CARGO) build --release -p cyclescope-clock --example truth
	$(CARGO) run --release -p cyclescope-bench -- $(ARGS)

# The command, its man pages and completions. DESTDIR precedes PREFIX, for packagers.
PREFIX ?= $(HOME)/.local
install:
	$(CARGO) install --locked --no-track --force --path crates/cli --root "$(DESTDIR)$(PREFIX)"
	"$(DESTDIR)$(PREFIX)/bin/cyclescope" manual "$(DESTDIR)$(PREFIX)/share"

# Each crate as it would be published, and the command built and installed from these packages alone.
package:
	.ci/package

# target/debian/cyclescope_*.deb, by cargo-deb.
deb: manual
	$(CARGO) deb --package cyclescope-cli --no-build --no-strip --locked

# target/wheels/cyclescope_cli-*.whl, by maturin.
wheel:
	maturin build --release --manifest-path crates/cli/Cargo.toml --out $(TARGET)/wheels

# The image cyclescope, by docker or podman.
image:
	docker build --tag cyclescope .

# Man pages and completions beside the built command.
.PHONY: manual
manual:
	$(CARGO) build --release --locked
	$(TARGET)/release/cyclescope manual $(TARGET)/release/share

clean:
	$(CARGO) clean
