# The project's verbs. `make test` is all that a change must pass.

CARGO ?= cargo

.PHONY: all build run test check bench install clean

all: build

build:
	$(CARGO) build --release

run:
	$(CARGO) run --release -- run "imul rax, rax"

# Format, lints, then unit, integration and documentation tests of every crate.
test: check
	$(CARGO) test --workspace --release

check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --release -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --document-private-items --quiet

# The figures that matter, measured here and now and printed; ARGS=--list shows the sections, --full is the long
# proof.
bench:
	$(CARGO) build --release -p cyclescope-cli -p cyclescope-bench
	$(CARGO) run --release -p cyclescope-bench -- $(ARGS)

install:
	$(CARGO) install --path crates/cyclescope-cli

clean:
	$(CARGO) clean
