"""Tests the installed wheel: compares figures with chains of known length and with each other."""

import hashlib
import json
import time

import pytest

import cyclescope
from cyclescope import ab

# Caveats of a busy machine, which say themselves that the number may be wrong.
BUSY = {"noisy", "interval_not_reached", "sibling_busy", "not_repeatable", "migrated"}


def test_a_chain_of_additions_takes_a_cycle_each():
    cost = cyclescope.run("add rax, rax")
    if any(caveat.code in BUSY for caveat in cost.caveats) or cost.value is None:
        pytest.skip(repr(cost))
    assert cost.low <= cost.value <= cost.high
    assert abs(cost.value - 1) < 0.05, cost
    assert "core cycles" in repr(cost) and cost.snippet == "add rax, rax"


def test_a_failure_is_an_exception_with_its_remedy():
    with pytest.raises(cyclescope.BadSnippet, match="column 10") as bad:
        cyclescope.run("imul rax,", quick=True)
    assert "operand" in bad.value.remedy
    with pytest.raises(cyclescope.RunError, match="SIGSEGV") as fault:
        cyclescope.run("mov rax, [0]", quick=True)
    assert "R14" in fault.value.remedy and fault.value.remedy in str(fault.value)
    assert issubclass(cyclescope.Unavailable, cyclescope.Error)


def test_the_clock_never_goes_back():
    readings = [cyclescope.core_cycles() for _ in range(20000)]
    assert all(before <= after for before, after in zip(readings, readings[1:]))
    assert readings[-1] > readings[0]


def cycles(call):
    start = cyclescope.core_cycles()
    call()
    return cyclescope.core_cycles() - start


def test_three_times_the_work_takes_three_times_the_cycles():
    # A hash takes equally long for each byte. The calls alternate, so that background load slows
    # both.
    short, long = bytes(20000), bytes(60000)
    ratios = [cycles(lambda: hashlib.sha256(long)) / cycles(lambda: hashlib.sha256(short)) for _ in range(101)]
    assert 2.7 < sorted(ratios)[50] < 3.3


def test_a_sleeping_thread_takes_no_cycles():
    def spin():
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            pass

    slept, spun = (sorted(cycles(call) for _ in range(5))[2] for call in (lambda: time.sleep(0.05), spin))
    assert slept < 0.5 * spun


def test_samples_are_lines_of_json(tmp_path, monkeypatch):
    file = tmp_path / "samples"
    monkeypatch.delenv("CYCLESCOPE_AB", raising=False)
    assert not ab.wanted()
    file.touch()
    monkeypatch.setenv("CYCLESCOPE_AB", str(file))
    monkeypatch.setenv("CYCLESCOPE_AB_MS", "2.5")
    assert ab.wanted() and ab.milliseconds() == 2.5
    ab.write('a "b"\n' + 300 * "c", 10, 1234.5)
    ab.write("d", 1, 2.0)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[0] == {"name": 'a "b"\n' + 194 * "c", "iterations": 10, "cycles": 1234.5}
    assert lines[1] == {"name": "d", "iterations": 1, "cycles": 2.0}
