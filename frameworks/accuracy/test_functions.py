"""Twenty functions in pytest-benchmark, and what they take by another clock: the part of `check` for Python.

The variable REFERENCE_LIBRARY names reference.c as a library, and ACCURACY_REFERENCE the file for the references. ADDED_PERCENT makes
two of the functions longer.
"""

import ctypes
import hashlib
import json
import operator
import os
import re
import statistics
import zlib

import pytest

# Hundredths of the work of the functions that grow.
WORK = 100 + int(os.environ.get("ADDED_PERCENT", "0"))
NUMBERS = list(range(1000))
TEXT = "the quick brown fox jumps over the lazy dog " * 20
RECORD = {"name": "value", "numbers": NUMBERS[:50], "nested": {"one": 1.5, "two": None}}
PATTERN = re.compile(r"l(a+)zy")
# Windows of which the median counts, most attempts, the ticks of one, trials of its length, and the neighbouring readings of the core clock
# of which the median counts for a window: as in reference.c.
WINDOWS, ATTEMPTS, WINDOW_TICKS, TRIALS, NEIGHBOURS = 301, 20 * 301, 40_000, 5, 5


def fibonacci(number):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def count_down(number):
    while number:
        number -= 1


def raise_error():
    try:
        raise ValueError
    except ValueError:
        return None


FUNCTIONS = {
    "nothing": lambda: None,
    "squares_10": lambda: [x * x for x in range(10)],
    "squares_1000": lambda: [x * x for x in range(1000)],
    "sum_1000": lambda: sum(NUMBERS),
    "sorted_1000": lambda: sorted(NUMBERS, reverse=True),
    "fibonacci_5": lambda: fibonacci(5),
    "fibonacci_12": lambda: fibonacci(12),
    "count_down_100": lambda: count_down(100),
    "count_down_5000": lambda: count_down(50 * WORK),
    "sha256_64": lambda: hashlib.sha256(bytes(64)).digest(),
    "sha256_20000": lambda: hashlib.sha256(bytes(200 * WORK)).digest(),
    "crc32_900": lambda: zlib.crc32(b"text" * 225),
    "dumps": lambda: json.dumps(RECORD),
    "loads": lambda: json.loads('{"a": [1, 2, 3], "b": {"c": null, "d": "text"}}'),
    "split": lambda: TEXT.split(),
    "join": lambda: " ".join(["part"] * 100),
    "search": lambda: PATTERN.search(TEXT),
    "dictionary": lambda: {number: number for number in range(200)},
    "format": lambda: f"{3.14159:.3f} {42:>8} {'text'!r}",
    "error": raise_error,
}


class Reference:
    """Times functions by the loop of pytest-benchmark, and by another clock. It is called as a fixture is, since the place of the stack
    moves `sum` of a list by 7 %."""

    def __init__(self, library):
        self.library = ctypes.CDLL(library)
        self.library.read_ticks.restype = ctypes.c_uint64
        self.library.count_switches.restype = ctypes.c_long
        self.library.measure_cycles_per_tick.restype = ctypes.c_double

    def __call__(self, run):
        """The core cycles of a call, where `run` times a number of calls."""
        calls = 1
        while min(self.time_calls(run, calls) for _ in range(TRIALS)) < WINDOW_TICKS:
            calls *= 2
        ticks, clock = [], [self.library.measure_cycles_per_tick()]
        for _ in range(ATTEMPTS):
            switches = self.library.count_switches()
            taken = self.time_calls(run, calls)
            after = self.library.measure_cycles_per_tick()
            if self.library.count_switches() == switches:
                ticks.append(taken / calls)
                clock.append(after)
            if len(ticks) == WINDOWS:
                break
        near = [statistics.median(clock[n : n + NEIGHBOURS]) for n in range(len(clock) - NEIGHBOURS)]
        return statistics.median(map(operator.mul, ticks[NEIGHBOURS // 2 :], near)) if near else 0

    def time_calls(self, run, calls):
        return run(range(calls), timer=self.library.read_ticks)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(benchmark, name):
    def write_reference():
        if "ACCURACY_REFERENCE" in os.environ:
            cycles = Reference(os.environ["REFERENCE_LIBRARY"])(benchmark._make_runner(FUNCTIONS[name], (), {}))
            with open(os.environ["ACCURACY_REFERENCE"], "a") as file:
                print(name, f"{cycles:.3f}", file=file)

    write_reference()
    benchmark(FUNCTIONS[name])
    write_reference()
