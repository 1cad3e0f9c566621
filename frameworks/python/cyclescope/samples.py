"""Samples for `cyclescope ab`: docs/reference.md, section ab, has the protocol."""

import json
import os

# As the crate cyclescope-clock has it.
FILE = "CYCLESCOPE_AB"
WISH = "CYCLESCOPE_AB_MS"
WISHED = 10.0
# Core cycles in a millisecond of a core of 3 GHz, in the unit of the timer.
MILLISECOND = 3e-3
# The protocol asks for 5 to 50 samples, and refuses 100 000 in a run: rounds of some microseconds are put together.
ROUNDS = 5
SAMPLES = 50


def wanted():
    """Whether `cyclescope ab` runs this program."""
    return bool(os.environ.get(FILE))


def shorten(options):
    """Lets pytest-benchmark measure as shortly as is wished, in the options that it has read."""
    try:
        wish = float(os.environ.get(WISH, ""))
    except ValueError:
        wish = WISHED
    options.benchmark_max_time = f"{MILLISECOND * wish:f}"
    options.benchmark_min_rounds = ROUNDS
    options.benchmark_disable_gc = True


def lines(name, iterations, rounds, unit):
    """A line for each of some rounds, whose figures are for an iteration. Of what takes no longer than the readings nothing is known."""
    together = -(-len(rounds) // SAMPLES) or 1
    for first in range(0, len(rounds), together):
        some = rounds[first : first + together]
        cycles = sum(some) * iterations * unit
        if cycles > 0:
            sample = {"name": name, "iterations": iterations * len(some), "cycles": cycles}
            yield json.dumps(sample, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def write(all_lines):
    """Each line with one call of the system."""
    file = os.open(os.environ[FILE], os.O_WRONLY | os.O_APPEND)
    try:
        for line in all_lines:
            while line:
                line = line[os.write(file, line) :]
    finally:
        os.close(file)
