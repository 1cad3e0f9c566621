"""pytest --benchmark-timer=cyclescope.core_cycles: the table has core cycles. No line here is changed."""

import hashlib

import pytest


@pytest.mark.parametrize("length", [20000, 60000])
def test_hash(benchmark, length):
    benchmark(hashlib.sha256, bytes(length))
