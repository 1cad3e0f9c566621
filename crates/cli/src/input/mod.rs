//! What can be measured: assembly, machine code, functions of libraries, and regions of functions and
//! executables.

mod argument_binding;
mod assembler;
mod assembly_source;
#[cfg(unix)]
mod c_library;
// On Windows nothing calls functions yet.
#[cfg_attr(windows, allow(dead_code))]
mod call_code;
mod call_encoding;
#[cfg_attr(windows, allow(dead_code))]
pub mod call_parameters;
mod calling_convention;
#[cfg_attr(windows, path = "windows/capture.rs")]
mod capture;
pub mod compiler;
pub mod debug_info;
pub mod elf;
mod elf_file;
mod empty_function;
pub mod event_request;
#[cfg_attr(windows, path = "windows/function.rs")]
pub mod function;
#[cfg_attr(windows, path = "windows/function_fault.rs")]
pub mod function_fault;
mod function_memory;
#[cfg_attr(windows, allow(dead_code))]
mod function_symbol;
mod library;
pub mod load_snippet;
pub mod mix_source;
mod narrow_call_code;
mod narrow_constructors;
mod narrow_image;
mod narrow_library;
mod narrow_memory;
mod object_code;
#[cfg(all(test, unix))]
mod odd_signatures;
mod region;
mod signature;
pub mod source;
pub mod target;
mod value_encoding;
pub mod variants;
