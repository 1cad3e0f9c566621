//! The environment of a program whose CPU time is measured.
//!
//! [`CommandExt::exec`] of a command with [`Command::env`] makes the environment in the new process,
//! whose CPU time then has a tenth of a millisecond more.

use std::ffi::{CString, OsString, c_char};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

unsafe extern "C" {
    /// The environment that `execvp` passes on (environ(7)).
    static mut environ: *const *const c_char;
}

/// Environment variables as `environ` has them.
struct ChildEnvironment {
    /// The variables, and null.
    pointers: Vec<*const c_char>,
    _variables: Vec<CString>,
}

// SAFETY: the pointers are those of its own strings, which never change.
unsafe impl Send for ChildEnvironment {}
// SAFETY: as above.
unsafe impl Sync for ChildEnvironment {}

impl ChildEnvironment {
    /// This process's environment with changes.
    fn new(changes: &[(&str, Option<OsString>)]) -> io::Result<ChildEnvironment> {
        let kept = std::env::vars_os().filter(|(name, _)| changes.iter().all(|(changed, _)| name != changed));
        let set = changes.iter().filter_map(|(name, value)| Some((OsString::from(name), value.clone()?)));
        let join = |(name, value): (OsString, OsString)| {
            CString::new([name.into_vec(), b"=".to_vec(), value.into_vec()].concat())
        };
        let variables = kept.chain(set).map(join).collect::<Result<Vec<_>, _>>()?;
        let pointers = variables.iter().map(|variable| variable.as_ptr()).chain([ptr::null()]).collect();
        Ok(ChildEnvironment { pointers, _variables: variables })
    }

    /// Makes it the environment of this process. It must outlive the process.
    unsafe fn install(&self) {
        // SAFETY: the new process has one thread.
        unsafe { environ = self.pointers.as_ptr() };
    }
}

/// Gives a command the environment of this process with changes; `None` removes a variable. The
/// command must not use [`Command::env`].
///
/// # Errors
///
/// If a value has a NUL.
pub fn set_environment(command: &mut Command, changes: &[(&str, Option<OsString>)]) -> io::Result<()> {
    let environment = ChildEnvironment::new(changes)?;
    let install = move || {
        // SAFETY: the command owns the environment, and exec or `_exit` ends the process.
        unsafe { environment.install() };
        Ok(())
    };
    // SAFETY: `install` sets a pointer.
    unsafe { command.pre_exec(install) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_gets_this_environment_with_the_changes() {
        let mut command = Command::new("env");
        let changes = [("CYCLESCOPE_TEST", Some(OsString::from("a b"))), ("HOME", None)];
        set_environment(&mut command, &changes).expect("no NUL");
        let printed = command.output().expect("it is installed").stdout;
        let mut printed: Vec<_> = printed.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        let kept = std::env::vars_os().filter(|(name, _)| name != "HOME");
        let lines = kept.map(|(name, value)| [name.into_vec(), value.into_vec()].join(&b'='));
        let text = lines.chain([b"CYCLESCOPE_TEST=a b".to_vec()]).collect::<Vec<_>>().join(&b'\n');
        let mut expected: Vec<_> = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).collect();
        printed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(printed, expected);
        assert!(set_environment(&mut command, &[("CYCLESCOPE_TEST", Some("a\0b".into()))]).is_err());
    }
}
