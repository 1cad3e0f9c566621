//! What the benchmarks measure is beside them.
