"""Names the unit in the table of pytest-benchmark, which takes the timer's unit for a second; and writes samples for `cyclescope ab`."""

import pytest

from . import samples

# Core cycles in what `core_cycles` counts.
UNIT = 1e9
# The option's value is a name: what was written, or the one that the function has.
NAMES = ("cyclescope.core_cycles", "cyclescope._cyclescope.core_cycles")


def counts(config):
    return str(config.getoption("benchmark_timer", None)) in NAMES


class Table:
    @staticmethod
    def pytest_benchmark_scale_unit(config, unit, benchmarks, best, worst, sort):
        if not counts(config):
            return None
        # An "s" is put behind it. Operations are those of a billion core cycles.
        return ("core cycle", UNIT) if unit == "seconds" else ("", 1.0)


class Samples:
    """Where `cyclescope ab` runs the program."""

    @staticmethod
    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(session):
        for benchmark in session.config._benchmarksession.benchmarks:
            stats = benchmark.stats
            samples.write(samples.lines(benchmark.fullname, benchmark.iterations, stats.data, UNIT))


# Before pytest-benchmark reads its options.
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    if config.pluginmanager.hasplugin("benchmark"):
        config.pluginmanager.register(Table, "cyclescope-table")
        if samples.wanted() and counts(config):
            samples.shorten(config.option)
            config.pluginmanager.register(Samples, "cyclescope-samples")
