"""Twenty functions for pytest-benchmark, each with its cycles by a loop of its own and the system's clock.

RULER names the library that is built from ruler.c. Each test appends a line to the file that
READINGS names: its name, the true core cycles of a call, and those that the timer of
pytest-benchmark reads.
"""

import ctypes
import hashlib
import json
import os
import re
import time

import pytest

# Nanoseconds of a window, about, and number of windows.
WINDOW, WINDOWS = 300_000, 101
# Blocks of a thousand multiplications before and after a window, and the share by which they may differ.
BLOCKS, MOVED = 100, 0.01

ruler = ctypes.CDLL(os.environ["RULER"])
for chain in (ruler.add_up, ruler.multiply):
    chain.argtypes, chain.restype = [ctypes.c_uint64], ctypes.c_uint64

NUMBERS = [number * 7919 % 1000 for number in range(1000)]
WORDS = ["word%d" % number for number in range(100)]
LOOKUP = {word: number for number, word in enumerate(WORDS)}
TEXT = " ".join(WORDS)
PATTERN = re.compile(r"(word\d+ )+word99")


class Point:
    def __init__(self):
        self.x = 1

    def move(self):
        self.x ^= 1
        return self.x


POINT = Point()


def fibonacci(number):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def count_up():
    total = 0.0
    for number in range(100):
        total += number * 0.5
    return total


def catch():
    try:
        raise ValueError
    except ValueError:
        return 1


def build_table():
    table = {}
    for word in WORDS:
        table[word] = len(table)
    return table


def move_often():
    for _ in range(50):
        POINT.move()


FUNCTIONS = {
    "nothing": lambda: None,
    "lookup": lambda: LOOKUP["word42"],
    "move": POINT.move,
    "catch": catch,
    "squares of 10": lambda: [x * x for x in range(10)],
    "squares of 1000": lambda: [x * x for x in range(1000)],
    "sum of 1000": lambda: sum(range(1000)),
    "count to 100": count_up,
    "build table": build_table,
    "join": lambda: ",".join(WORDS),
    "split": TEXT.split,
    "sort 1000": lambda: sorted(NUMBERS),
    "dump": lambda: json.dumps(WORDS),
    "load": lambda: json.loads("[1, 2, 3, 4.5]"),
    "hash 1000": lambda: hashlib.sha256(bytes(1000)).digest(),
    "hash 20000": lambda: hashlib.sha256(bytes(20000)).digest(),
    "match": lambda: PATTERN.match(TEXT),
    "power": lambda: pow(3, 1000, 10**60 + 7),
    "fibonacci 10": lambda: fibonacci(10),
    "move 50 times": move_often,
}


def loop_of(function, *args, **kwargs):
    """A function that runs a number of calls, in a loop like that of pytest-benchmark, and returns their nanoseconds."""

    def run_loop(times):
        started = time.perf_counter_ns()
        for _ in range(times):
            function(*args, **kwargs)
        return time.perf_counter_ns() - started

    return run_loop


def run(chain, blocks):
    """Nanoseconds of a chain, and of the clock and the call."""
    started = time.perf_counter_ns()
    chain(blocks)
    return time.perf_counter_ns() - started


# The quickest call of a short chain: longer ones are compared with it, without the clock and the call.
SHORT = {chain.__name__: min(run(chain, 1) for _ in range(1000)) for chain in (ruler.add_up, ruler.multiply)}


def nanoseconds(chain):
    """Nanoseconds of a link of a chain."""
    return (run(chain, BLOCKS + 1) - SHORT[chain.__name__]) / (1000 * BLOCKS)


# Core cycles of a multiplication. Chains that nothing disturbs are the quickest.
LATENCY = round(min(nanoseconds(ruler.multiply) for _ in range(100)) / min(nanoseconds(ruler.add_up) for _ in range(100)))


def rule():
    """Nanoseconds of a core cycle."""
    return nanoseconds(ruler.multiply) / LATENCY


def true_cycles(function):
    """Core cycles of a call: the median over windows in which the core's clock is steady."""
    run_loop, times = loop_of(function), 1
    while run_loop(times) < WINDOW / 2:
        times *= 2
    cycles, before = [], rule()
    for _ in range(100 * WINDOWS):
        taken = run_loop(times)
        after = rule()
        if abs(after / before - 1) < MOVED:
            cycles.append(2 * taken / times / (before + after))
        before = after
        if len(cycles) == WINDOWS:
            break
    return sorted(cycles)[len(cycles) // 2]


@pytest.mark.parametrize("name", FUNCTIONS)
def test(benchmark, name):
    function = FUNCTIONS[name]
    before = true_cycles(function)
    benchmark(function)
    after = true_cycles(function)
    reading = {"way": "pytest-benchmark", "name": name, "truth": (before + after) / 2, "read": 1e9 * benchmark.stats.stats.median}
    with open(os.environ["READINGS"], "a") as file:
        file.write(json.dumps(reading) + "\n")
