"""Measures what x86 code costs in true core cycles, and provides a timer that counts them.

`run` measures a snippet of assembly, as the command `cyclescope run` does. `core_cycles` is a clock of the thread that reads it.
"""

from ._cyclescope import BadSnippet, Caveat, Cost, Error, RunError, Unavailable, core_cycles, run

__all__ = ["BadSnippet", "Caveat", "Cost", "Error", "RunError", "Unavailable", "core_cycles", "run"]
