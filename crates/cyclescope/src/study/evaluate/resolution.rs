//! The smallest difference that a method can tell.
