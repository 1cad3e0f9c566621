"""Adapts pytest-benchmark to the timer `core_cycles`: its unit, and samples under `cyclescope ab`."""

import pytest

from . import ab

# Core cycles per unit of `core_cycles`. pytest-benchmark takes the timer's unit for a second.
UNIT = 1e9
# Approximate units per millisecond: cores run at 1 to 5 GHz.
MILLISECOND = 3e-3
# Rounds in a run of `cyclescope ab`, which takes the lower quartile of 5 to 50.
ROUNDS = 20
# The option's value: the name as written, or the function's own name.
NAMES = ("cyclescope.core_cycles", "cyclescope._cyclescope.core_cycles")


def counts_cycles(config):
    return str(config.getoption("benchmark_timer", None)) in NAMES


class Table:
    @staticmethod
    def pytest_benchmark_scale_unit(config, unit, benchmarks, best, worst, sort):
        if not counts_cycles(config):
            return None
        # pytest-benchmark appends an "s". Operations are per billion core cycles.
        return ("core cycle", UNIT) if unit == "seconds" else ("", 1.0)


class Samples:
    """Writes each round of a benchmark as a sample. Names omit the folder, since OLD has a different one."""

    def __init__(self):
        self.names = {}

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_teardown(self, item):
        measured = getattr(getattr(item, "funcargs", {}).get("benchmark"), "stats", None)
        if not measured or not counts_cycles(item.config):
            return
        name = item.nodeid.rpartition("/")[2]
        number = self.names[name] = self.names.get(name, 0) + 1
        if number > 1:
            name += f"#{number}"
        for units in measured.stats.data:
            if units > 0:
                ab.write(name, measured.iterations, units * UNIT * measured.iterations)


# Runs before pytest-benchmark reads its options.
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    if not config.pluginmanager.hasplugin("benchmark"):
        return
    config.pluginmanager.register(Table, "cyclescope-table")
    if ab.wanted():
        config.option.benchmark_max_time = str(ab.milliseconds() * MILLISECOND)
        config.option.benchmark_min_time = str(ab.milliseconds() * MILLISECOND / ROUNDS)
        config.option.benchmark_min_rounds = 1
        config.pluginmanager.register(Samples(), "cyclescope-samples")
