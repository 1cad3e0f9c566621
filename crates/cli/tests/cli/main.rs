//! `cyclescope` as its user sees it: what is printed where, with which exit code, and what stays behind.

mod ab;
mod around;
mod beside;
mod calls;
mod clock;
mod compare;
mod damage;
mod denied;
mod elf;
mod endings;
mod evaluate;
mod evidence;
mod fields;
mod functions;
mod hostile;
mod instr;
mod json;
mod marker;
mod points;
mod refusals;
mod resume;
mod snippets;
mod support;
mod uarch;
mod versus;
