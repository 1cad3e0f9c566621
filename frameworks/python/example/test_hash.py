"""pytest --benchmark-timer=cyclescope.core_cycles: the table has core cycles. The code needs no change."""

import hashlib

import pytest


@pytest.mark.parametrize("length", [20000, 60000])
def test_hash(benchmark, length):
    benchmark(hashlib.sha256, bytes(length))
