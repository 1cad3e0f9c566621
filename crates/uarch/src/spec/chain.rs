//! Chains of slow instructions before and behind the fillers. Each instruction waits for the one
//! before.

/// Links of the second chain, and of a first one of the same instruction. They last longer than any
/// core takes to fetch the largest number of fillers.
pub(crate) const CHAIN_LINKS: usize = 20;
/// The chain before the fillers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FirstChain {
    /// The instruction's name.
    pub name: &'static str,
    /// A link, in legacy encoding and in VEX.
    pub link: [&'static str; 2],
    /// Number of links.
    pub link_count: usize,
    /// Untimed setup.
    pub init: &'static str,
}

/// Square roots in xmm0.
pub(crate) const SQRTSD: FirstChain = FirstChain {
    name: "sqrtsd",
    link: ["sqrtsd xmm0, xmm0", "vsqrtsd xmm0, xmm0, xmm0"],
    link_count: CHAIN_LINKS,
    init: "",
};
/// Divisions in xmm0.
pub(crate) const DIVSD: FirstChain = FirstChain {
    name: "divsd",
    link: ["divsd xmm0, xmm15", "vdivsd xmm0, xmm0, xmm15"],
    link_count: CHAIN_LINKS,
    init: "",
};
/// Square roots on the x87 stack.
pub(crate) const FSQRT: FirstChain =
    FirstChain { name: "fsqrt", link: ["fsqrt", "fsqrt"], link_count: CHAIN_LINKS, init: "fld1" };
/// Multiplications in rax, enough of them to last as long.
pub(crate) const IMUL: FirstChain =
    FirstChain { name: "imul", link: ["imul rax, rax", "imul rax, rax"], link_count: 4 * CHAIN_LINKS, init: "" };
/// Divisions of a large number by one in rax, few and slow. They take RCX and RDX too.
pub(crate) const DIV: FirstChain = FirstChain {
    name: "div",
    link: ["div rcx", "div rcx"],
    link_count: CHAIN_LINKS,
    init: "mov rax, -1; xor edx, edx; mov ecx, 1",
};
/// Signed divisions of the largest number by one.
pub(crate) const IDIV: FirstChain = FirstChain {
    name: "idiv",
    link: ["idiv rcx", "idiv rcx"],
    link_count: CHAIN_LINKS,
    init: "mov rax, 0x7fffffffffffffff; xor edx, edx; mov ecx, 1",
};
/// A link of the second chain, in legacy encoding and in VEX.
pub(crate) const SECOND_CHAIN_LINK: [&str; 2] = ["sqrtsd xmm1, xmm1", "vsqrtsd xmm1, xmm1, xmm1"];
