"""Adapts pytest-benchmark to the timer `core_cycles`: its unit, its rounds, and samples under `cyclescope ab`."""

import os
import random

import pytest

from . import ab, core_cycles

# Core cycles per unit of `core_cycles`. pytest-benchmark takes the timer's unit for a second.
UNIT = 1e9
# Approximate units per millisecond: cores run at 1 to 5 GHz.
MILLISECOND = 3e-3
# Least length of a round: a tenth of a millisecond. The two readings around it disturb the caches, which costs some hundred cycles.
# pytest-benchmark's own rounds are 5000 cycles long.
ROUND = 3e-4
# Sessions in a run of `cyclescope ab`, each with its data at other addresses, which move a benchmark by some per cent. The start of
# pytest takes longer than all of them.
SESSIONS = 5
# Times as long as `cyclescope ab` suggests, in all sessions: still less than the start of pytest and of the sessions.
LONGER = 10
# Rounds in a session of `cyclescope ab`, which takes the lower quartile of 5 to 50.
ROUNDS = 20
# Most objects, and most bytes of one, by which a session moves the heap.
MOST_OBJECTS, MOST_BYTES = 5000, 512
OPTION = "--benchmark-min-time"
WARMUP = "--benchmark-warmup"
# One round more at each length while pytest-benchmark searches the number of iterations, which takes the quicker of the two. A first call
# may take longer than a round, to compile or import; all rounds would then have one iteration, with the cold caches after a reading.
WARMUP_OPTIONS = [f"{WARMUP}=on", f"{WARMUP}-iterations=1"]
# Whether the user chose the length of rounds, and the warm-up.
CHOSEN = pytest.StashKey()
CHOSEN_WARMUP = pytest.StashKey()
# What moves the heap.
MOVED = pytest.StashKey()
# The option's value: the name as written, or the function's own name.
NAMES = ("cyclescope.core_cycles", "cyclescope._cyclescope.core_cycles")


def has_cycle_timer(options):
    """Whether benchmarks without their own timer count core cycles, by pytest's options."""
    return str(getattr(options, "benchmark_timer", None)) in NAMES


def counts_cycles(benchmark):
    """Whether a benchmark of a table counted core cycles. A table knows the timers' names."""
    return benchmark["options"]["timer"] == core_cycles.__name__


class Table:
    @staticmethod
    def pytest_benchmark_scale_unit(config, unit, benchmarks, best, worst, sort):
        if not all(counts_cycles(benchmark) for benchmark in benchmarks):
            return None
        # pytest-benchmark appends an "s". Operations are per billion core cycles.
        return ("core cycle", UNIT) if unit == "seconds" else ("", 1.0)

    @staticmethod
    @pytest.hookimpl(hookwrapper=True)
    def pytest_benchmark_group_stats(config, benchmarks, group_by):
        """Gives core cycles and seconds tables of their own: a table has one unit."""
        outcome = yield
        groups = []
        for name, group in outcome.get_result():
            parts = [[one for one in group if counts_cycles(one) == cycles] for cycles in (True, False)]
            groups += [(name, part) for part in parts if part]
        outcome.force_result(groups)


class Samples:
    """Writes each round of a benchmark as a sample. Names omit the folder, since OLD has a different one."""

    def __init__(self):
        self.names = {}

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item):
        measured = getattr(getattr(item, "funcargs", {}).get("benchmark"), "stats", None)
        if not measured:
            return
        if measured.options["timer"] is not core_cycles:
            item.warn(pytest.PytestWarning(f"cyclescope ab does not compare {item.nodeid}: its timer counts no core cycles"))
            return
        name = item.nodeid.rpartition("/")[2]
        number = self.names[name] = self.names.get(name, 0) + 1
        if number > 1:
            name += f"#{number}"
        for units in measured.stats.data:
            if units > 0:
                ab.write(name, measured.iterations, units * UNIT * measured.iterations)


def pytest_load_initial_conftests(early_config, parser, args):
    early_config.stash[CHOSEN] = any(arg.startswith(OPTION) for arg in args)
    early_config.stash[CHOSEN_WARMUP] = any(arg.startswith(WARMUP) for arg in args)
    if has_cycle_timer(early_config.known_args_namespace):
        if not early_config.stash[CHOSEN_WARMUP]:
            args[:0] = WARMUP_OPTIONS
        # At the front, so that the user's own option wins.
        args.insert(0, f"{OPTION}={ROUND}")


def pytest_collection_modifyitems(config, items):
    """Gives tests whose own timer counts core cycles the same rounds and warm-up."""
    for item in items:
        marker = item.get_closest_marker("benchmark")
        if not marker or marker.kwargs.get("timer") is not core_cycles:
            continue
        if not config.stash.get(CHOSEN, True):
            marker.kwargs.setdefault("min_time", ROUND)
        if not config.stash.get(CHOSEN_WARMUP, True) and "warmup" not in marker.kwargs:
            marker.kwargs.update(warmup=True, warmup_iterations=1)


def fork_session():
    """Runs a session in a child: returns whether this is the child, and in the parent the child's exit code."""
    child = os.fork()
    return (True, 0) if child == 0 else (False, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


# Runs before the session begins, which imports the tests.
@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    if not ab.wanted() or not config.pluginmanager.hasplugin("benchmark"):
        return None
    # Calibrates the clock once for all.
    core_cycles()
    for _ in range(SESSIONS - 1):
        is_child, code = fork_session()
        if is_child:
            break
        if code:
            return code
    chance = random.SystemRandom()
    # Kept by the configuration for as long as it lives.
    config.stash[MOVED] = [bytearray(chance.randrange(MOST_BYTES)) for _ in range(chance.randrange(MOST_OBJECTS))]
    return None


# Runs before pytest-benchmark reads its options.
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    if not config.pluginmanager.hasplugin("benchmark"):
        return
    config.pluginmanager.register(Table, "cyclescope-table")
    if ab.wanted():
        units = ab.milliseconds() * MILLISECOND * LONGER / SESSIONS
        config.option.benchmark_max_time = str(units)
        config.option.benchmark_min_time = str(units / ROUNDS)
        config.option.benchmark_min_rounds = 1
        config.pluginmanager.register(Samples(), "cyclescope-samples")
