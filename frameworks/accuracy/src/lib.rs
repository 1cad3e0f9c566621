//! Twenty functions of known time, from `functions.c`, and their reference.

use std::ffi::{CStr, c_char};

#[repr(C)]
struct RawFunction {
    name: *const c_char,
    run: extern "C" fn(u64) -> u64,
}

// SAFETY: the names are constant texts.
unsafe impl Sync for RawFunction {}

#[link(name = "functions", kind = "static")]
unsafe extern "C" {
    #[link_name = "timed_functions"]
    static FUNCTIONS: [RawFunction; 20];
    fn prepare_functions();
    fn write_reference(run: extern "C" fn(u64) -> u64);
    fn write_alone_reference(run: extern "C" fn(u64) -> u64);
}

/// A function and its name.
#[derive(Clone, Copy)]
pub struct TimedFunction {
    /// Its name.
    pub name: &'static str,
    /// Its code, whose result may be the next argument.
    pub run: extern "C" fn(u64) -> u64,
}

impl TimedFunction {
    /// Writes what a call takes in this program, if the variable `ACCURACY_REFERENCE` names a file.
    pub fn write_reference(self) {
        // SAFETY: one thread calls it, after the functions were prepared.
        unsafe { write_reference(self.run) };
    }

    /// The same of a call that overlaps with no other code.
    pub fn write_alone_reference(self) {
        // SAFETY: as above.
        unsafe { write_alone_reference(self.run) };
    }
}

impl std::fmt::Debug for TimedFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All functions, ready to run.
pub fn timed_functions() -> Vec<TimedFunction> {
    // SAFETY: the function only writes data of its own file, and the list is constant.
    let functions = unsafe {
        prepare_functions();
        &FUNCTIONS
    };
    let function = |RawFunction { name, run }: &'static RawFunction| {
        // SAFETY: the names end with a zero, and live as long as the program.
        let name = unsafe { CStr::from_ptr(*name) };
        TimedFunction { name: name.to_str().unwrap_or("?"), run: *run }
    };
    functions.iter().map(function).collect()
}
