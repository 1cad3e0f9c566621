"""What pytest-benchmark has to know where its timer is `core_cycles`: the unit, and that `cyclescope ab` runs it."""

import pytest

from . import ab

# Core cycles in what `core_cycles` counts: pytest-benchmark takes the timer's unit for a second.
UNIT = 1e9
# Such units in a millisecond, about: it need not be more exact. Cores run at 1 to 5 GHz.
MILLISECOND = 3e-3
# Rounds of a run of `cyclescope ab`: it takes the lower quartile of 5 to 50.
ROUNDS = 20
# The option's value is a name: what was written, or the one that the function has.
NAMES = ("cyclescope.core_cycles", "cyclescope._cyclescope.core_cycles")


def counts_cycles(config):
    return str(config.getoption("benchmark_timer", None)) in NAMES


class Table:
    @staticmethod
    def pytest_benchmark_scale_unit(config, unit, benchmarks, best, worst, sort):
        if not counts_cycles(config):
            return None
        # An "s" is put behind it. Operations are those of a billion core cycles.
        return ("core cycle", UNIT) if unit == "seconds" else ("", 1.0)


class Samples:
    """Each round of a benchmark is a sample. Benchmarks have the file's name, and not its folder, for that of OLD is another."""

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


# Before pytest-benchmark reads its options.
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
