//! What this project asks of the operating system, behind one interface.
//!
//! Each system has a folder with the same modules and the same functions. Code above this crate
//! names no system. What a system lacks is an error with its number, or an unknown value.

#![warn(unreachable_pub)]

pub mod file_facts;

#[cfg(unix)]
mod linux;
#[cfg(unix)]
pub use linux::*;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::*;
