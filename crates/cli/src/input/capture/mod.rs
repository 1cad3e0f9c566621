//! Takes a region between two addresses of an executable from a real run of it.
//!
//! The executable runs under ptrace until it arrives at the region's first address. From there, it
//! runs instruction by instruction to the region's end. That pass shows which pages the region
//! touches, and which bytes have to be restored before the region can run once more. The registers
//! and these pages, at the same addresses, become a program's memory and the call of a trampoline.
//!
//! Limits: the region makes no system call and ends within a number of instructions. It always runs
//! with the same data. The pages are small ones.

mod captured_region;
mod executable_file;
mod page_log;
mod process_map;
mod region_pages;
mod region_pass;
mod stopped_task;
mod task_registers;
mod traced_process;
mod trampoline;
mod xsave_image;

pub use captured_region::CapturedRegion;
