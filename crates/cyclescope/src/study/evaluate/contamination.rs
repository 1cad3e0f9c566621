//! What neighbouring code does to a reading.
