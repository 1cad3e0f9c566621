"""Writes samples for `cyclescope ab` to the file named by CYCLESCOPE_AB, one per line of JSON (docs/reference.md, ab)."""

import json
import os

# Most characters of a name in the protocol, and milliseconds if none are requested.
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
