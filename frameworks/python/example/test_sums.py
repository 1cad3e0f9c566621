"""pytest --benchmark-timer=cyclescope.core_cycles: the table has core cycles. No line here is changed."""

import pytest


@pytest.mark.parametrize("number", [10000, 30000])
def test_sum(benchmark, number):
    benchmark(sum, range(number))
