//! `cyclescope` as its user sees it: output, exit codes, and what stays behind.

mod ab;
mod background_load;
mod calls;
mod clock;
mod compare;
mod damaged_evidence;
mod elf;
mod evaluate;
mod evidence;
mod fields;
mod functions;
mod hostile_inputs;
mod instr;
mod json;
mod marker;
mod points;
mod refusals;
mod resume;
mod snippets;
mod steadiness;
mod support;
mod system_denials;
mod termination;
mod uarch;
mod user_loops;
mod versus;
