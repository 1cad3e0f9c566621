//! Studies through the library's front page: on a simulated core, from evidence, and of many points.

mod aperf;
mod calls;
mod points;
mod replay;
