//! The experiments on simulated machines, whose truth is known.
