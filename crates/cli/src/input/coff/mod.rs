//! Object files of Windows (COFF): their sections in memory, at any address, without a linker.

mod image;
mod layout;
mod symbols;
#[cfg(test)]
mod tests;

pub use image::ImageRefusal;
pub use layout::CoffObject;
