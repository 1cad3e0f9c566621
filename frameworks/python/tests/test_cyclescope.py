"""Tests the installed wheel: compares figures with chains of known length and with each other."""

import hashlib
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import cyclescope
from cyclescope import ab, pytest_plugin

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


def test_two_readings_around_nothing_take_nothing():
    medians = []
    while not medians or medians[-1] >= 100:
        # A reading takes some hundred cycles, and its call by the interpreter as many. Both take longer
        # beside a busy sibling, so they are measured by a new thread, just before.
        assert len(medians) < 20, medians
        time.sleep(0.05 * len(medians))
        with ThreadPoolExecutor(1) as thread:
            medians.append(1e9 * thread.submit(median_of_nothing).result())


def median_of_nothing():
    return sorted(cycles_of_nothing() for _ in range(1001))[500]


def cycles_of_nothing():
    start = cyclescope.core_cycles()
    return cyclescope.core_cycles() - start


BENCHMARKS = """
import time
import pytest

def nothing():
    pass

def test_ours(benchmark):
    benchmark(nothing)

@pytest.mark.benchmark(timer=time.perf_counter)
def test_theirs(benchmark):
    benchmark(nothing)
"""


@pytest.fixture
def benchmarks(tmp_path):
    """Runs the benchmarks above: returns their options and statistics by name, and what pytest prints."""
    (tmp_path / "test_both.py").write_text(BENCHMARKS)

    def run(*options, **variables):
        stored = tmp_path / "stored.json"
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--benchmark-timer=cyclescope.core_cycles"]
        command += ["--benchmark-max-time=0.05", f"--benchmark-json={stored}", *options, "test_both.py"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("CYCLESCOPE", "PYTEST"))}
        said = subprocess.run(command, cwd=tmp_path, env={**environment, **variables}, capture_output=True, text=True)
        assert said.returncode == 0, said.stdout + said.stderr
        return {row["name"]: row for row in json.loads(stored.read_text())["benchmarks"]}, said.stdout

    return run


def test_a_short_function_takes_as_long_as_in_a_loop(benchmarks):
    rows, _ = benchmarks()

    def nothing():
        pass

    # The call of pytest-benchmark.
    def loop(args=(), kwargs={}):
        for _ in range(10000):
            nothing(*args, **kwargs)

    each = sorted(cycles(loop) for _ in range(21))[10] / 10000
    # With rounds of 5000 cycles and without the clock's own, the reading was four times as high.
    assert 0.6 < rows["test_ours"]["stats"]["median"] / each < 1.6


def test_a_timer_of_a_test_has_its_own_unit(benchmarks):
    _, said = benchmarks()
    tables = said.split("Name (time in ")[1:]
    assert len(tables) == 2, said
    for table in tables:
        assert table.startswith("core cycles") == ("test_ours" in table) != ("test_theirs" in table), said


def test_the_users_length_of_rounds_wins(benchmarks):
    assert benchmarks()[0]["test_ours"]["options"]["min_time"] == 3e-4
    assert benchmarks("--benchmark-min-time=0.000005")[0]["test_ours"]["options"]["min_time"] == 5e-6


SLOW_AT_FIRST = """
import hashlib
import cyclescope
import pytest

remaining = []

def work():
    if remaining:
        hashlib.sha256(bytes(remaining.pop()))

def test_by_option(benchmark):
    remaining.append(20_000_000)
    benchmark(work)

@pytest.mark.benchmark(timer=cyclescope.core_cycles)
def test_by_marker(benchmark):
    remaining.append(20_000_000)
    benchmark(work)
"""


def test_a_slow_first_call_does_not_set_the_rounds(benchmarks, tmp_path):
    (tmp_path / "test_both.py").write_text(SLOW_AT_FIRST)
    rows, _ = benchmarks()
    # With one iteration, the reading of a short function is that of cold caches.
    assert {name: row["stats"]["iterations"] > 10 for name, row in rows.items()} == {"test_by_option": True, "test_by_marker": True}
    # The user's own choice wins.
    rows, _ = benchmarks("--benchmark-warmup=off")
    assert {row["stats"]["iterations"] for row in rows.values()} == {1}


def test_ab_gets_core_cycles_only_and_hears_of_the_rest(benchmarks, tmp_path):
    samples = tmp_path / "samples"
    samples.touch()
    _, said = benchmarks(CYCLESCOPE_AB=str(samples), CYCLESCOPE_AB_MS="1")
    names = {json.loads(line)["name"] for line in samples.read_text().splitlines()}
    assert names == {"test_both.py::test_ours"}
    assert "does not compare test_both.py::test_theirs" in said
    # Each session has its own report.
    assert said.count("2 passed") == pytest_plugin.SESSIONS, said


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
