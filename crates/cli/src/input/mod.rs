//! What can be measured: assembly, machine code, functions of libraries, and regions of functions and
//! executables.

mod argument_binding;
mod assembler;
mod assembly_source;
#[cfg(unix)]
mod c_library;
mod call_addresses;
mod call_code;
mod call_encoding;
pub mod call_parameters;
mod calling_convention;
#[cfg_attr(windows, path = "windows/capture.rs")]
mod capture;
// Only Windows calls their functions.
#[cfg_attr(unix, allow(dead_code, unused_imports))]
mod coff;
pub mod compiler;
pub mod debug_info;
// Windows links no libraries.
#[cfg_attr(windows, allow(dead_code))]
pub mod elf;
mod elf_file;
mod empty_function;
pub mod event_request;
pub mod function;
#[cfg_attr(windows, path = "windows/function_fault.rs")]
pub mod function_fault;
mod function_memory;
mod function_symbol;
mod library;
#[cfg_attr(windows, path = "windows/library_loader.rs")]
pub mod library_loader;
pub mod load_snippet;
mod loaded_code;
mod mix_ports;
pub mod mix_source;
mod narrow_call_code;
#[cfg(unix)]
mod narrow_constructors;
#[cfg(unix)]
mod narrow_image;
#[cfg(unix)]
mod narrow_library;
mod object_code;
#[cfg(all(test, unix))]
mod odd_signatures;
mod region;
mod signature;
pub mod slot_table;
pub mod source;
mod symbol_list;
pub mod target;
mod value_encoding;
pub mod variants;
