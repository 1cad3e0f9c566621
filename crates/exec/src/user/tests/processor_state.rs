//! What of the processor's state outlives a call, and what code finds in it.

use super::super::setup;
use super::{one_worker, run, spawn};
use crate::Sample;
use cyclescope_core::error::RunError;
use cyclescope_core::machine::features::allows_fsgsbase;

/// Runs one snippet, then another in the same worker.
fn run_after(first: &[u8], second: &[u8]) -> Result<Vec<Sample>, RunError> {
    let mut user = one_worker(false);
    run(&mut user, first).expect("the first snippet ends");
    run(&mut user, second)
}

#[track_caller]
fn assert_cleared(dirty: &[u8], detect: &[u8]) {
    let seen = run(&mut spawn(), &[dirty, detect].concat());
    assert!(matches!(seen, Err(RunError::Fault { signal: "SIGILL", .. })), "not seen: {seen:?}");
    assert_eq!(run_after(dirty, detect).map(|samples| samples.len()), Ok(1));
}

#[test]
fn flags_do_not_outlive_a_call() {
    for flag in [1u32 << 18, 1 << 14, 1 << 10] {
        let flag = flag.to_le_bytes();
        // pushfq; or dword [rsp], flag; popfq
        let dirty = [&[0x9c, 0x81, 0x0c, 0x24][..], &flag, &[0x9d]].concat();
        // pushfq; pop rax; test eax, flag; jz +2; ud2
        let detect = [&[0x9c, 0x58, 0xa9][..], &flag, &[0x74, 0x02, 0x0f, 0x0b]].concat();
        assert_cleared(&dirty, &detect);
    }
}

#[test]
fn segment_bases_do_not_outlive_a_call() {
    if !allows_fsgsbase() {
        cyclescope_skipped::report_skipped("user code cannot set segment bases here");
        return;
    }
    for (write, read) in [(0xd0, 0xc0), (0xd8, 0xc8)] {
        // mov eax, 0x12345678; wrfsbase rax (or wrgsbase)
        let dirty = [0xb8, 0x78, 0x56, 0x34, 0x12, 0xf3, 0x48, 0x0f, 0xae, write];
        // rdfsbase rax (or rdgsbase); cmp eax, 0x12345678; jne +2; ud2
        let detect = [0xf3, 0x48, 0x0f, 0xae, read, 0x3d, 0x78, 0x56, 0x34, 0x12, 0x75, 0x02, 0x0f, 0x0b];
        assert_cleared(&dirty, &detect);
    }
}

#[test]
fn upper_vector_parts_do_not_outlive_a_call() {
    if !std::is_x86_feature_detected!("avx2") {
        cyclescope_skipped::report_skipped("no AVX2");
        return;
    }
    // vpcmpeqd ymm0, ymm0, ymm0
    let dirty = [0xc5, 0xfd, 0x76, 0xc0];
    // vextractf128 xmm1, ymm0, 1; vptest xmm1, xmm1; jz +2; ud2
    let detect = [0xc4, 0xe3, 0x7d, 0x19, 0xc1, 0x01, 0xc4, 0xe2, 0x79, 0x17, 0xc9, 0x74, 0x02, 0x0f, 0x0b];
    assert_cleared(&dirty, &detect);
}

#[test]
fn fs_points_to_what_compilers_expect() {
    // mov rax, fs:[0]; mov rcx, fs:[0x28]; cmp [rax], rax; je +2; ud2
    let guard = [0x64, 0x48, 0x8b, 0x0c, 0x25, 0x28, 0, 0, 0];
    let own = [0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0];
    let snippet = [&guard[..], &own, &[0x48, 0x39, 0x00, 0x74, 0x02, 0x0f, 0x0b]].concat();
    for functions in [false, true] {
        assert_eq!(run(&mut one_worker(functions), &snippet).map(|samples| samples.len()), Ok(1));
    }
}

#[test]
fn the_kernel_writes_nothing_for_the_c_library_in_a_copy() {
    let Some(offset) = setup::rseq_offset() else {
        return cyclescope_skipped::report_skipped("the C library registers nothing with rseq");
    };
    // mov eax, fs:[offset + 4] (`cpu_id`, the CPU's number while registered); inc eax; jz +2; ud2
    let at = (offset as i32 + 4).to_le_bytes();
    let snippet = [&[0x64, 0x8b, 0x04, 0x25][..], &at, &[0xff, 0xc0, 0x74, 0x02, 0x0f, 0x0b]].concat();
    assert_eq!(run(&mut one_worker(true), &snippet).map(|samples| samples.len()), Ok(1));
}
