//! The process in which measured code runs: its protocol, its own code and its executable.
//!
//! A worker gives up its rights, then runs the commands in shared memory until it is killed. It is
//! a separate executable of a few kilobytes without a C library ([`image`]), so that measured code
//! finds nothing of the measuring program. If code calls functions of that program's libraries, the
//! same executable is mapped into a copy of that program.
//!
//! This crate is compiled twice: as a library of the measuring program, which uses the protocol,
//! and by its build script as the executable.

#![no_std]

pub mod area;
pub mod caller_tie;
pub mod command;
pub mod context;
pub mod counter;
pub mod ending;
pub mod event_reading;
pub mod faults;
#[cfg(all(unix, not(image)))]
pub mod image;
pub mod interruption;
pub mod kernel;
pub mod memory;
pub mod rights;
pub mod sandbox;
pub mod serve;
pub mod setup;
pub mod stub;
#[cfg_attr(windows, path = "windows/system.rs")]
pub mod system;
pub mod view;
