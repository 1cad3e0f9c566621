//! The commands, and how each presents its result.

mod ab;
mod all;
mod clocks;
mod commands;
mod compare;
mod counters;
mod dispatch;
mod doctor;
mod evaluate;
mod generic_study;
mod instr;
mod line_view;
mod manual;
mod marker;
mod points;
mod replay;
mod report;
mod run;
mod show;
mod uarch;

pub use dispatch::run_command;

#[cfg(test)]
pub use {instr::check_resumed_file, points::check_resumed_points, uarch::simulated_lines as simulated_uarch_lines};
