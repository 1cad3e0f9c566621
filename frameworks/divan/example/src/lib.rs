//! Empty: the benchmark file contains the measured code.
