//! Machine code with a known cost in core cycles: the chains of the ruler. A simulated machine
//! recognises the ruler by them.

/// `add eax, eax`. Register operands, because some cores fold the addition of an immediate at
/// rename.
pub const ADD: &[u8] = &[0x01, 0xc0];

/// `imul rax, rax`. 64 bits wide, because some cores multiply 32 bits faster and the published
/// latencies are for 64.
pub const IMUL: &[u8] = &[0x48, 0x0f, 0xaf, 0xc0];

/// The same chain in 32-bit code, which has no wider multiplication: `imul eax, eax`.
pub const IMUL_32: &[u8] = &[0x0f, 0xaf, 0xc0];

/// Six independent additions:
/// `add eax, ecx; add edx, ecx; add ebx, ecx; add ebp, ecx; add esi, ecx; add edi, ecx`.
pub const SENTINEL: &[u8] = &[0x01, 0xc8, 0x01, 0xca, 0x01, 0xcb, 0x01, 0xcd, 0x01, 0xce, 0x01, 0xcf];

/// Additions in one copy of [`SENTINEL`].
pub const SENTINEL_ADDS: usize = 6;

/// Links in the short and in the long loop body of the `imul` chain.
pub const IMUL_LINKS: [usize; 2] = [4, 14];
