//! The commands, and how each presents its result.

#[cfg(unix)]
mod ab;
#[cfg(unix)]
mod all;
mod clocks;
mod commands;
mod compare;
#[cfg(unix)]
mod counters;
mod dispatch;
mod doctor;
mod evaluate;
mod generic_study;
mod instr;
#[cfg(windows)]
#[path = "windows/lacking.rs"]
mod lacking;
mod line_view;
mod manual;
#[cfg(unix)]
mod marker;
mod points;
mod ports;
mod replay;
mod report;
mod run;
mod show;
mod uarch;

pub use dispatch::run_command;
#[cfg(windows)]
use lacking::{ab, all, counters, marker};

#[cfg(test)]
pub use {instr::check_resumed_file, points::check_resumed_points, uarch::simulated_lines as simulated_uarch_lines};
