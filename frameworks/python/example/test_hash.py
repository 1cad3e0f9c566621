"""The table has core cycles. The code needs no change:

pip install ./frameworks/python pytest-benchmark
pytest --benchmark-timer=cyclescope.core_cycles
"""

import hashlib

import pytest


@pytest.mark.parametrize("length", [20000, 60000])
def test_hash(benchmark, length):
    benchmark(hashlib.sha256, bytes(length))
