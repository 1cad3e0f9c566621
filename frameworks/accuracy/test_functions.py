"""Twenty functions in pytest-benchmark, and what they take in an own loop of this program: the part of `check` for Python.

The variable REFERENCE_LIBRARY names reference.c as a library, and ACCURACY_REFERENCE the file for the references. ADDED_PERCENT makes
two of the functions longer.
"""

import ctypes
import hashlib
import json
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
# Windows of which the median counts, most attempts, the ticks of one, and the share by which the core clock may change in one:
# as in reference.c.
WINDOWS, ATTEMPTS, WINDOW_TICKS, STEADY = 61, 20 * 61, 500_000, 0.01


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


@pytest.fixture(scope="session")
def reference():
    """The library, or None if no reference is wanted."""
    if "ACCURACY_REFERENCE" not in os.environ:
        return None
    library = ctypes.CDLL(os.environ["REFERENCE_LIBRARY"])
    library.read_ticks.restype = ctypes.c_uint64
    library.measure_cycles_per_tick.restype = ctypes.c_double
    return library


def time_calls(library, function, calls, args=(), kwargs={}):
    """The ticks of calls as pytest-benchmark makes them."""
    start = library.read_ticks()
    for _ in range(calls):
        function(*args, **kwargs)
    return library.read_ticks() - start


def measure(library, function):
    """The core cycles of a call."""
    calls = 1
    while time_calls(library, function, calls) < WINDOW_TICKS:
        calls *= 2
    cycles, before = [], library.measure_cycles_per_tick()
    for _ in range(ATTEMPTS):
        ticks = time_calls(library, function, calls)
        after = library.measure_cycles_per_tick()
        if abs(after / before - 1) < STEADY:
            cycles.append(ticks / calls * (before + after) / 2)
        before = after
        if len(cycles) == WINDOWS:
            break
    return statistics.median(cycles)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function(benchmark, reference, name):
    benchmark(FUNCTIONS[name])
    if reference:
        with open(os.environ["ACCURACY_REFERENCE"], "a") as file:
            print(name, f"{measure(reference, FUNCTIONS[name]):.3f}", file=file)
