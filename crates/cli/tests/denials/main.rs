//! The program where the system refuses one thing: each of its system calls in turn, those of its
//! worker and of the programs that it starts, and memory.
//!
//! Whatever is refused, the program reports it with a remedy and a documented exit code, or it
//! measures right without it; it ends in time, and leaves no process and no temporary file. The
//! calls are those that the commands make on this machine, so no list of them can be outdated.

mod allocations;
mod commands;
mod denied_calls;
mod launcher;
mod verdict;
