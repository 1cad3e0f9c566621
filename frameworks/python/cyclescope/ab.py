"""Samples for `cyclescope ab`, which names a file by CYCLESCOPE_AB: a line of JSON is one of them (docs/reference.md, ab)."""

import json
import os

# Characters of a name that the protocol allows, and milliseconds where it asks for none.
LONGEST = 200
WISHED = 10.0


def wanted():
    return bool(os.environ.get("CYCLESCOPE_AB"))


def milliseconds():
    """How long each benchmark should be measured."""
    try:
        wish = float(os.environ["CYCLESCOPE_AB_MS"])
    except (KeyError, ValueError):
        wish = 0.0
    return wish if wish > 0 else WISHED


def write(name, iterations, cycles):
    """Writes a sample: the core cycles of all its iterations together."""
    line = json.dumps({"name": name[:LONGEST], "iterations": iterations, "cycles": cycles}, separators=(",", ":"))
    file = os.open(os.environ["CYCLESCOPE_AB"], os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, (line + "\n").encode())
    finally:
        os.close(file)
