//! The rights that the worker gives up for good before it runs foreign code.

use super::kernel::{
    AT_FDCWD, EINVAL, EPERM, O_WRONLY, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, PR_SET_NO_NEW_PRIVS, call,
};
use super::stub;
use core::ptr;

/// The user and group that own nothing (Linux, `highuid.h`).
const NOBODY: usize = 65534;
/// Bits of capabilities (Linux, `capability.h`): to signal other users' processes, to change the
/// group, to change the user.
const CAP_KILL: u32 = 1 << 5;
const CAP_SETGID: u32 = 1 << 6;
const CAP_SETUID: u32 = 1 << 7;
/// The number of the capability to change the root directory.
const CAP_SYS_CHROOT: usize = 18;
/// `_LINUX_CAPABILITY_VERSION_3`
const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// `struct __user_cap_header_struct`
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

/// `struct __user_cap_data_struct`
#[repr(C)]
#[derive(Clone, Copy)]
struct CapabilitySets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// The number of a failed system call, and its error number.
pub type RefusedCall = (i64, i32);

/// A system call, its arguments padded with zeros.
pub(super) unsafe fn call_kernel(number: i64, arguments: [usize; 4]) -> Result<isize, RefusedCall> {
    let [a, b, c, d] = arguments;
    // SAFETY: the callers below pass the arguments that the system call needs.
    match unsafe { stub::syscall(number, a, b, c, d, 0, 0) } {
        answer @ -4095..=-1 => Err((number, -answer as i32)),
        answer => Ok(answer),
    }
}

/// Makes the kernel end this process first if memory runs out, so that its caller can say so
/// (proc_pid_oom_score_adj(5)).
pub(super) unsafe fn offer_to_end() {
    let (name, most) = (c"/proc/self/oom_score_adj", c"1000");
    // SAFETY: both texts outlive the calls. The file is closed later with all others.
    unsafe {
        let opened = call_kernel(call::OPENAT, [AT_FDCWD, name.as_ptr() as usize, O_WRONLY, 0]);
        // Without /proc the kernel chooses by size.
        if let Ok(file) = opened {
            let _ = call_kernel(call::WRITE, [file as usize, most.as_ptr() as usize, most.count_bytes(), 0]);
        }
    }
}

/// Prevents programs that this process starts from gaining rights. A process without rights must do
/// this before it can set a filter.
pub(super) unsafe fn forbid_new_privileges() -> Result<(), RefusedCall> {
    // SAFETY: takes no pointers.
    unsafe { call_kernel(call::PRCTL, [PR_SET_NO_NEW_PRIVS, 1, 0, 0]) }.map(drop)
}

/// Becomes the user `nobody` if allowed, and gives up all capabilities.
///
/// A user namespace without that user refuses it, as does a system where the process could not end
/// one of another user. The process then keeps its user, without capabilities.
pub(super) unsafe fn drop_rights() -> Result<(), RefusedCall> {
    let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let none = CapabilitySets { effective: 0, permitted: 0, inheritable: 0 };
    let mut data = [none; 2];
    let head = ptr::from_ref(&header) as usize;
    // SAFETY: the structures live through the calls.
    unsafe {
        call_kernel(call::CAPGET, [head, data.as_mut_ptr() as usize, 0, 0])?;
        let wanted = CAP_KILL | CAP_SETGID | CAP_SETUID;
        if data[0].effective & wanted == wanted {
            tolerate_refusal(call_kernel(call::SETGROUPS, [0; 4]))?;
            tolerate_refusal(call_kernel(call::SETRESGID, [NOBODY, NOBODY, NOBODY, 0]))?;
            tolerate_refusal(call_kernel(call::SETRESUID, [NOBODY, NOBODY, NOBODY, 0]))?;
        }
        data = [none; 2];
        call_kernel(call::CAPSET, [head, data.as_ptr() as usize, 0, 0]).map(drop)
    }
}

/// Tolerates the errors of user namespaces that lack this user, or let nobody change groups.
fn tolerate_refusal(answer: Result<isize, RefusedCall>) -> Result<(), RefusedCall> {
    match answer {
        Ok(_) | Err((_, EPERM | EINVAL)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Bits of `handled_access_fs` in each version of Landlock, from the first one on (Linux,
/// `landlock.h`).
const FILE_RIGHTS: [u32; 5] = [13, 14, 15, 15, 16];
/// The version that added the two bits of `handled_access_net`, and the one that added the two of
/// `scoped`.
const NETWORK_VERSION: usize = 4;
const SCOPES_VERSION: usize = 6;

/// `struct landlock_ruleset_attr`
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LandlockRuleset {
    files: u64,
    network: u64,
    scoped: u64,
}

impl LandlockRuleset {
    /// Everything that this version can forbid.
    fn for_version(version: usize) -> LandlockRuleset {
        let last = FILE_RIGHTS.len() - 1;
        let index = if version > last { last } else { version.saturating_sub(1) };
        let two = |since| if version >= since { 3 } else { 0 };
        // SAFETY: at most the last index, see above.
        let bits = unsafe { *FILE_RIGHTS.get_unchecked(index) };
        LandlockRuleset { files: (1 << bits) - 1, network: two(NETWORK_VERSION), scoped: two(SCOPES_VERSION) }
    }

    /// Bytes of the structure in this version.
    fn struct_bytes(version: usize) -> usize {
        8 * (1 + usize::from(version >= NETWORK_VERSION) + usize::from(version >= SCOPES_VERSION))
    }
}

/// Forbids all files, connections and signals to others with Landlock, if the kernel has it. It is
/// a second barrier: the filter already forbids the system calls that would need them.
pub(super) unsafe fn restrict_with_landlock() -> Result<(), RefusedCall> {
    const ASK_VERSION: usize = 1;
    // SAFETY: the structure lives through the call; descriptors are closed later with all others.
    unsafe {
        let version = call_kernel(call::LANDLOCK_CREATE_RULESET, [0, 0, ASK_VERSION, 0])? as usize;
        let rules = LandlockRuleset::for_version(version);
        let address = ptr::from_ref(&rules) as usize;
        let bytes = LandlockRuleset::struct_bytes(version);
        let rules = call_kernel(call::LANDLOCK_CREATE_RULESET, [address, bytes, 0, 0])?;
        call_kernel(call::LANDLOCK_RESTRICT_SELF, [rules as usize, 0, 0, 0]).map(drop)
    }
}

/// Makes a folder without files the root of all names, for good. Landlock leaves some calls on names
/// alone, such as those that change a file's rights.
///
/// The folder lists the open files of this process, which has none afterwards. Nothing can be created
/// in it, and it needs no removal.
pub(super) unsafe fn enter_empty_root() -> Result<(), RefusedCall> {
    let (folder, top) = (c"/proc/self/fdinfo", c"/");
    // SAFETY: both texts outlive the calls.
    unsafe {
        call_kernel(call::CHROOT, [folder.as_ptr() as usize, 0, 0, 0])?;
        call_kernel(call::CHDIR, [top.as_ptr() as usize, 0, 0, 0]).map(drop)
    }
}

/// Keeps the right to change the root directory when this process runs the worker's executable. In
/// a new user namespace it would lose it, because it is not root there (capabilities(7)).
///
/// # Safety
///
/// Only in a new worker.
pub unsafe fn keep_root_change() -> Result<(), RefusedCall> {
    let header = CapabilityHeader { version: CAPABILITY_VERSION, pid: 0 };
    let mut data = [CapabilitySets { effective: 0, permitted: 0, inheritable: 0 }; 2];
    let head = ptr::from_ref(&header) as usize;
    // SAFETY: the structures live through the calls.
    unsafe {
        call_kernel(call::CAPGET, [head, data.as_mut_ptr() as usize, 0, 0])?;
        data[0].inheritable |= 1 << CAP_SYS_CHROOT;
        call_kernel(call::CAPSET, [head, data.as_ptr() as usize, 0, 0])?;
        call_kernel(call::PRCTL, [PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_CHROOT, 0]).map(drop)
    }
}

/// Reverts a C library's registration with rseq(2): otherwise the kernel keeps writing there.
pub(super) unsafe fn unregister_rseq(address: usize, bytes: usize) {
    const UNREGISTER: usize = 1;
    /// The signature of C libraries on x86 (glibc, `sys/rseq.h`).
    const SIGNATURE: usize = 0x5305_3053;
    if address != 0 {
        // SAFETY: changes the kernel's behaviour for this thread. It refuses an unregistered
        // address.
        let _ = unsafe { call_kernel(call::RSEQ, [address, bytes, UNREGISTER, SIGNATURE]) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_of_landlock_gets_only_its_own_bits() {
        let bits = |version| {
            let LandlockRuleset { files, network, scoped } = LandlockRuleset::for_version(version);
            (files.count_ones(), network, scoped, LandlockRuleset::struct_bytes(version))
        };
        assert_eq!(bits(1), (13, 0, 0, 8));
        assert_eq!(bits(3), (15, 0, 0, 8));
        assert_eq!(bits(4), (15, 3, 0, 16));
        assert_eq!(bits(5), (16, 3, 0, 16));
        assert_eq!(bits(6), (16, 3, 3, 24));
        assert_eq!(bits(9), bits(6), "later versions know all of it");
    }

    #[test]
    fn landlock_keeps_a_process_from_every_file() {
        // SAFETY: the child only makes system calls, and ends.
        unsafe {
            if call_kernel(call::LANDLOCK_CREATE_RULESET, [0, 0, 1, 0]).is_err() {
                // A kernel without Landlock: nothing to test.
                return;
            }
            let child = libc::fork();
            if child == 0 {
                let before = libc::open(c"/proc/self/status".as_ptr(), libc::O_RDONLY) >= 0;
                let locked = forbid_new_privileges().is_ok();
                let _ = restrict_with_landlock();
                let after = libc::open(c"/proc/self/status".as_ptr(), libc::O_RDONLY) >= 0;
                libc::_exit(if before && locked && !after { 0 } else { 1 });
            }
            let mut status = 0;
            assert!(child > 0 && libc::waitpid(child, &raw mut status, 0) == child && status == 0);
        }
    }

    #[test]
    fn refusals_of_user_namespaces_are_tolerated() {
        assert_eq!(tolerate_refusal(Err((1, EPERM))), Ok(()));
        assert_eq!(tolerate_refusal(Err((1, EINVAL))), Ok(()));
        assert_eq!(tolerate_refusal(Err((1, 11))), Err((1, 11)));
    }
}
