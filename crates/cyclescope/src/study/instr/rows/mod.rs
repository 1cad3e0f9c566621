//! A form's row: made of its readings, explained, and kept in a file.

pub mod analysis;
pub mod explanation;
pub mod extremes;
pub mod row;
pub mod table;
