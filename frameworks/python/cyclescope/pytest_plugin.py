"""Names the unit in the table of pytest-benchmark: it takes the timer's unit for a second."""

# Core cycles in what `core_cycles` counts.
UNIT = 1e9
# The option's value is a name: what was written, or the one that the function has.
NAMES = ("cyclescope.core_cycles", "cyclescope._cyclescope.core_cycles")


class Table:
    @staticmethod
    def pytest_benchmark_scale_unit(config, unit, benchmarks, best, worst, sort):
        if str(config.getoption("benchmark_timer", None)) not in NAMES:
            return None
        # An "s" is put behind it. Operations are those of a billion core cycles.
        return ("core cycle", UNIT) if unit == "seconds" else ("", 1.0)


def pytest_configure(config):
    if config.pluginmanager.hasplugin("benchmark"):
        config.pluginmanager.register(Table, "cyclescope-table")
