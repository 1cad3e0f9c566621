//! Functions of C and C++ code: compiled or loaded, called by a snippet, the cost of the call excluded.

use crate::args::RunArgs;
use crate::failure::Failure;
use cyclescope::error::Unavailable;
use cyclescope::record::{ErrorRecord, exit};
use cyclescope::snippet::Snippet;
use std::ffi::{CStr, CString, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A function in a library that this process has loaded, and so every process forked from it has.
pub struct Function {
    address: u64,
    text: String,
    /// The compiled library's file, removed when it is no longer needed.
    _folder: Option<TempDir>,
}

/// The name of a compiled function that is called where none is named.
const DEFAULT_NAME: &str = "f";

impl Function {
    /// The function that the arguments ask for, if they ask for one. Its library's constructors run now.
    pub fn load(args: &RunArgs) -> Result<Option<Function>, Failure> {
        let name = args.call.as_deref().unwrap_or(DEFAULT_NAME);
        let (library, source, folder) = match (&args.source.c, &args.source.lib) {
            (Some(source), _) => {
                let folder = tempfile::tempdir().map_err(|error| {
                    Failure::internal(format!("making a temporary folder failed: {error}"))
                })?;
                (compile(source, args.cflags.as_deref(), folder.path())?, source, Some(folder))
            }
            (None, Some(library)) => (library.clone(), library, None),
            (None, None) => return Ok(None),
        };
        let address = find(&library, name)?;
        let text = format!("{name} of {}", source.display());
        Ok(Some(Function { address, text, _folder: folder }))
    }

    /// A snippet that calls the function with a pointer to a memory area.
    pub fn snippet(&self) -> Snippet {
        call(self.address, &self.text)
    }

    /// A snippet that calls a function that does nothing, in the same way.
    pub fn empty_snippet(&self) -> Snippet {
        call(empty as *const () as u64, "an empty function")
    }
}

/// What the cost of a call is measured with: `ret`.
#[unsafe(naked)]
extern "C" fn empty() {
    std::arch::naked_asm!("ret")
}

/// ```text
/// mov rbx, r14           ; init: R14 points into a memory area; RBX and R12 outlive a call
/// mov r12, address
/// mov rdi, rbx           ; each copy
/// call r12
/// ```
fn call(address: u64, text: &str) -> Snippet {
    let mut init = vec![0x4c, 0x89, 0xf3, 0x49, 0xbc];
    init.extend(address.to_le_bytes());
    Snippet::new(vec![0x48, 0x89, 0xdf, 0x41, 0xff, 0xd4], init, text)
}

fn compile(source: &Path, flags: Option<&str>, folder: &Path) -> Result<PathBuf, Failure> {
    if let Err(error) = std::fs::metadata(source) {
        return Err(Failure::usage(format!("opening {} failed: {error}", source.display()), None));
    }
    let plus_plus =
        source.extension().is_some_and(|end| ["cc", "cpp", "cxx", "C"].iter().any(|cpp| end == *cpp));
    let (variable, default) = if plus_plus { ("CXX", "c++") } else { ("CC", "cc") };
    let compiler = std::env::var_os(variable).filter(|name| !name.is_empty());
    let compiler = compiler.unwrap_or_else(|| OsString::from(default));
    let flags = shlex::split(flags.unwrap_or_default())
        .ok_or_else(|| Failure::usage("--cflags has an unclosed quote", None))?;
    let library = folder.join("function.so");
    let result = Command::new(&compiler)
        .args(["-O2", "-fPIC", "-shared"])
        .args(flags)
        .arg("-o")
        .arg(&library)
        .arg(source)
        .output()
        .map_err(|error| missing(&compiler.to_string_lossy(), variable, &error))?;
    if result.status.success() {
        return Ok(library);
    }
    let said = String::from_utf8_lossy(&result.stderr);
    Err(Failure::usage(format!("{} failed:\n{}", compiler.to_string_lossy(), said.trim_end()), None))
}

fn missing(compiler: &str, variable: &str, error: &std::io::Error) -> Failure {
    Failure::from(Unavailable {
        what: format!("compiler {compiler}"),
        why: error.to_string(),
        remedy: format!("install gcc or clang, or name a compiler in ${variable}"),
    })
}

/// Loads a library and finds a function in it.
fn find(library: &Path, name: &str) -> Result<u64, Failure> {
    // A bare name would be looked for in the system's folders instead of here.
    let path = std::path::absolute(library).unwrap_or_else(|_| library.to_path_buf());
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| bad_name(library))?;
    let symbol = CString::new(name).map_err(|_| bad_name(library))?;
    // SAFETY: both are NUL-terminated strings. The library's constructors run, in this process, which
    // `isolated` has made for that; it stays loaded as long as the process lives.
    let address = unsafe {
        let handle = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if handle.is_null() { None } else { Some(libc::dlsym(handle, symbol.as_ptr())) }
    };
    match address {
        Some(address) if !address.is_null() => Ok(address as u64),
        Some(_) => {
            let remedy = "name another with --call; in C++ declare the function extern \"C\"";
            Err(Failure::usage(format!("{} has no function {name}", library.display()), Some(remedy)))
        }
        None => Err(Failure::usage(format!("the library can't be loaded: {}", linker_error()), None)),
    }
}

fn bad_name(library: &Path) -> Failure {
    Failure::usage(format!("{} or its function has a NUL byte in its name", library.display()), None)
}

fn linker_error() -> String {
    // SAFETY: dlerror returns null or a string that lives until the thread's next call of it.
    unsafe {
        let text = libc::dlerror();
        if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() }
    }
}

/// Does something in a process of its own and returns its exit code: a library's constructors may crash.
pub fn isolated(work: impl FnOnce() -> u8) -> Result<u8, Failure> {
    // SAFETY: this process has one thread, so that the child may do all that this one may.
    match unsafe { libc::fork() } {
        -1 => Err(Failure::internal(format!("fork failed: {}", std::io::Error::last_os_error()))),
        0 => {
            // SAFETY: takes no pointers; the child must not outlive this process.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            std::process::exit(work().into());
        }
        child => wait(child),
    }
}

fn wait(child: libc::pid_t) -> Result<u8, Failure> {
    let mut status = 0;
    // SAFETY: fills the status of a child of this process.
    while unsafe { libc::waitpid(child, &mut status, 0) } == -1 {
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(Failure::internal(format!("waiting for the library's process failed: {error}")));
        }
    }
    if libc::WIFEXITED(status) {
        return Ok(libc::WEXITSTATUS(status) as u8);
    }
    Err(Failure::Error(Box::new(ErrorRecord {
        code: "fault",
        exit: exit::FAULT,
        text: format!("loading the library ended with signal {}", libc::WTERMSIG(status)),
        remedy: Some("look at the library's constructors".to_string()),
        ..ErrorRecord::default()
    })))
}
