//! `ports`: µops, ports and what instructions share, from time alone.
//!
//! A core runs a mix of independent instructions no faster than the best assignment of their µops
//! to ports allows. So the times of mixes bound how many ports some instructions use together.
//!
//! - [`class_set`], [`port_map`]: the ports of classes of instructions.
//! - [`union_bounds`]: what the times of mixes say about a union of classes.
//! - [`map_search`]: the maps that agree with all bounds.

#![warn(unreachable_pub)]

pub mod class_set;
pub mod map_search;
pub mod port_map;
pub mod union_bounds;
