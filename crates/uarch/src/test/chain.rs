//! Chains of slow instructions that wait for each other, before fillers and behind them.

/// Links of the second chain, and of a first one of the same instruction. So many last longer than any core takes to fetch
/// the largest number of fillers.
pub(crate) const LINKS: usize = 20;
/// The chain before the fillers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    /// Its name.
    pub name: &'static str,
    /// A link, in legacy encoding and in VEX.
    pub link: [&'static str; 2],
    /// Number of links.
    pub links: usize,
    /// What runs once before all.
    pub init: &'static str,
}

/// Square roots in xmm0.
pub(crate) const SQRTSD: Head =
    Head { name: "sqrtsd", link: ["sqrtsd xmm0, xmm0", "vsqrtsd xmm0, xmm0, xmm0"], links: LINKS, init: "" };
/// Divisions in xmm0.
pub(crate) const DIVSD: Head =
    Head { name: "divsd", link: ["divsd xmm0, xmm15", "vdivsd xmm0, xmm0, xmm15"], links: LINKS, init: "" };
/// Square roots on the x87 stack.
pub(crate) const FSQRT: Head = Head { name: "fsqrt", link: ["fsqrt", "fsqrt"], links: LINKS, init: "fld1" };
/// Multiplications in rax, which last as long.
pub(crate) const IMUL: Head =
    Head { name: "imul", link: ["imul rax, rax", "imul rax, rax"], links: 4 * LINKS, init: "" };
/// Divisions of a large number by one in rax, few and slow. They take RCX and RDX too.
pub(crate) const DIV: Head = Head {
    name: "div",
    link: ["div rcx", "div rcx"],
    links: LINKS,
    init: "mov rax, -1; xor edx, edx; mov ecx, 1",
};
/// The same of signed numbers.
pub(crate) const IDIV: Head = Head {
    name: "idiv",
    link: ["idiv rcx", "idiv rcx"],
    links: LINKS,
    init: "mov rax, 0x7fffffffffffffff; xor edx, edx; mov ecx, 1",
};
/// The second chain.
pub(crate) const TAIL: [&str; 2] = ["sqrtsd xmm1, xmm1", "vsqrtsd xmm1, xmm1, xmm1"];
