//! Which tests answer each script of A. Fog's test programs.

use super::test_list::TESTS;
use cyclescope_measure::study::{SuiteCatalog, SuiteQuestion};

/// All scripts and their purposes, in the order of their manual: Test programs for measuring clock
/// cycles and performance monitoring (2024). Tests refer to them by name.
const SCRIPTS: &[(&str, &str)] = &[
    ("AVX_states", "switches between states of the vector registers"),
    ("branch", "prediction of branches"),
    ("cache_banks", "contention for the banks of a cache"),
    ("cache_latency", "latency of each level of cache"),
    ("cache_throughput", "throughput of each level of cache"),
    ("daxpy", "a vector times a number plus a vector"),
    ("decoder_throughput", "instructions that are decoded in a cycle"),
    ("decode_double", "decoding of what becomes several operations"),
    ("decode_nops", "decoding of no-operations by length"),
    ("decode_prefix", "decoding of several prefixes"),
    ("exec_domain", "delays between units of several kinds"),
    ("fused_branch", "branches that become one with an operation"),
    ("instruct_boundaries", "boundaries that an instruction cache marks"),
    ("jmp", "throughput of jumps"),
    ("length_chg_prefix", "prefixes that change a length"),
    ("loop_buffer", "the buffer of short loops"),
    ("loop_size", "loops by length"),
    ("memcpy", "ways to copy memory"),
    ("memory_mirror", "memory that is renamed as registers are"),
    ("mixed_throughput", "mixtures of several instructions"),
    ("mov_rename", "moves that renaming does"),
    ("out_of_order", "how far instructions overtake others"),
    ("partial_register_stall", "parts of registers and of flags"),
    ("read_write_bandwidth", "bandwidth of memory"),
    ("resource_sharing", "what several threads share"),
    ("returnstack", "size of the return stack"),
    ("stack_sync_uops", "reads of the stack pointer"),
    ("store_forwarding", "loads of what was just stored"),
    ("subnormal", "underflow, overflow and subnormal numbers"),
    ("taylor", "sums of a power series"),
    ("testmemcpyalign", "copies by alignment"),
    ("ucache_double_entries", "constants that take two entries"),
    ("ucache_misprediction", "mispredictions without decoded instructions"),
    ("ucache_size", "size of the cache of decoded instructions"),
    ("unaligned_mem", "loads and stores that are not aligned"),
    ("warmup_fp", "vector units that have to wake up"),
    ("xor", "operations of a register with itself"),
];

/// A list of instructions, or a script of such, and what measures the same.
struct ListedScript {
    name: &'static str,
    about: &'static str,
    /// Commands, or tests of this study.
    commands: &'static [&'static str],
}

/// The lists of instructions and the older scripts for instructions, with the names of their files,
/// in the order of the same manual.
const LISTS: &[ListedScript] = &[
    ListedScript {
        name: "fvec1.csv",
        about: "moves of floating point vectors",
        commands: &[
            "cyclescope instr '*movap*' '*movup*' '*movlp*' '*movhp*' '*movhlps' '*movlhps' '*dup' '*movntp*' '*movmskp*' 'vbroadcast*' --mnemonic movss,vmovss,movsd,vmovsd",
        ],
    },
    ListedScript {
        name: "fvec2.csv",
        about: "permutations of floating point vectors",
        commands: &[
            "cyclescope instr '*shufp*' '*unpck*' '*blend*p*' 'vperm*p*' '*insertps' '*extractps' 'vinsertf*' 'vextractf*' 'vcompressp*' 'vexpandp*' 'vshuff*'",
        ],
    },
    ListedScript {
        name: "fvec3.csv",
        about: "conversions of floating point vectors",
        commands: &["cyclescope instr '*cvt*'"],
    },
    ListedScript {
        name: "fvec4.csv",
        about: "arithmetic of floating point vectors",
        commands: &[
            "cyclescope instr '*addp*' '*adds*' '*subp*' '*mulp*' '*divp*' '*maxp*' '*minp*' '*cmpp*' '*comis*' 'vfmadd*' 'vfmsub*' 'vfnm*' --mnemonic subss,vsubss,subsd,vsubsd,mulss,vmulss,mulsd,vmulsd,divss,vdivss,divsd,vdivsd",
        ],
    },
    ListedScript {
        name: "fvec5.csv",
        about: "mathematics of floating point vectors",
        commands: &[
            "cyclescope instr '*sqrt*' '*rcp*' '*round*' 'vrndscale*' 'vgetexp*' 'vgetmant*' 'vfixup*' 'vrange*' 'vreduce*' 'vscalef*' 'vfpclass*' '*dpp*'",
        ],
    },
    ListedScript {
        name: "fvec6.csv",
        about: "saving and restoring of vector states",
        commands: &["cyclescope instr 'fxsave*' 'fxrstor*' 'xsave*' 'xrstor*' '*ldmxcsr' '*stmxcsr' 'vzero*'"],
    },
    ListedScript {
        name: "ivec1.csv",
        about: "moves of integer vectors",
        commands: &["cyclescope instr '*movd*' '*movq*' '*lddqu' '*pmovmskb' '*movnt*' 'vpbroadcast*'"],
    },
    ListedScript {
        name: "ivec2.csv",
        about: "packing and unpacking of integer vectors",
        commands: &["cyclescope instr '*pack*' '*punpck*' '*pmovsx*' '*pmovzx*' 'vpmov*' '*palignr'"],
    },
    ListedScript {
        name: "ivec3.csv",
        about: "permutations of integer vectors",
        commands: &[
            "cyclescope instr '*pshuf*' 'vperm*' '*pblend*' '*pinsr*' '*pextr*' 'vinserti*' 'vextracti*' 'vpcompress*' 'vpexpand*' 'valign*' 'vshufi*'",
        ],
    },
    ListedScript {
        name: "ivec4.csv",
        about: "arithmetic of integer vectors",
        commands: &[
            "cyclescope instr '*padd*' '*psub*' '*pmul*' '*pmadd*' '*pavg*' '*pabs*' '*psign*' '*pmax*' '*pmin*' '*psadbw' '*phadd*' '*phsub*' '*pcmp*'",
        ],
    },
    ListedScript {
        name: "ivec5.csv",
        about: "logic and shifts of integer vectors",
        commands: &[
            "cyclescope instr '*pand*' 'por' 'vpor*' '*pxor*' '*psll*' '*psrl*' '*psra*' 'vprol*' 'vpror*' 'vptern*' '*ptest*'",
        ],
    },
    ListedScript {
        name: "gather.csv",
        about: "gathers and scatters",
        commands: &["cyclescope instr '*gather*' '*scatter*'"],
    },
    ListedScript {
        name: "int.csv",
        about: "common instructions of general registers",
        commands: &[
            "cyclescope instr --mnemonic mov,movsx,movsxd,movzx,lea,xchg,add,sub,adc,sbb,cmp,inc,dec,neg,and,or,xor,not,test,shl,shr,sar,rol,ror,bsf,bsr,bt,mul,imul,div,idiv",
        ],
    },
    ListedScript {
        name: "int_misc.csv",
        about: "later instructions of general registers",
        commands: &[
            "cyclescope instr --mnemonic andn,bextr,blsi,blsmsk,blsr,bzhi,lzcnt,tzcnt,popcnt,mulx,pdep,pext,rorx,sarx,shlx,shrx,adcx,adox,crc32,movbe,rdrand,rdseed,rdpid",
        ],
    },
    ListedScript {
        name: "maskinstr.csv",
        about: "instructions of mask registers",
        commands: &["cyclescope instr 'k*'"],
    },
    ListedScript {
        name: "misc512.csv",
        about: "extensions behind AVX-512",
        commands: &[
            "cyclescope instr --isa avx512_bf16,avx512_vnni,avx512_vbmi,avx512_vbmi2,avx512_bitalg,avx512_vpopcntdq,avx512_ifma,avx512_vp2intersect,gfni,vaes,vpclmulqdq",
        ],
    },
    ListedScript {
        name: "stringvec.csv",
        about: "string instructions of vectors",
        commands: &["cyclescope instr '*pcmpestr*' '*pcmpistr*'"],
    },
    ListedScript { name: "fp16.csv", about: "half precision", commands: &["cyclescope instr --isa avx512_fp16"] },
    ListedScript {
        name: "Int1.sh1",
        about: "instructions of general registers",
        commands: &[
            "cyclescope instr --mnemonic mov,movsx,movsxd,movzx,lea,xchg,add,sub,adc,sbb,cmp,inc,dec,neg,and,or,xor,not,test,shl,shr,sar,rol,ror,bsf,bsr,bt,mul,imul,div,idiv",
        ],
    },
    ListedScript {
        name: "pushpop.sh1",
        about: "pushes and pops",
        commands: &["cyclescope instr 'push*' 'pop r*' 'pop m*' 'popf*'"],
    },
    ListedScript {
        name: "shift.sh1",
        about: "shifts and rotations",
        commands: &["cyclescope instr --mnemonic shl,shr,sar,rol,ror,rcl,rcr,shld,shrd"],
    },
    ListedScript {
        name: "mul.sh1",
        about: "integer multiplications",
        commands: &["cyclescope instr --mnemonic mul,imul,mulx"],
    },
    ListedScript { name: "div.sh1", about: "integer divisions", commands: &["cyclescope instr --mnemonic div,idiv"] },
    ListedScript {
        name: "misc_int.sh1",
        about: "other integer instructions",
        commands: &[
            "cyclescope instr 'set*' 'cmov*' --mnemonic bswap,cbw,cwde,cdqe,cwd,cdq,cqo,clc,stc,cmc,cld,std,lahf,sahf,xadd,cmpxchg,cmpxchg8b,cmpxchg16b,cpuid,rdtsc,rdtscp,pause,xlatb,leave,enter",
        ],
    },
    ListedScript {
        name: "strings.sh1",
        about: "string instructions",
        commands: &[
            "cyclescope instr 'movsb*' 'stos*' 'lods*' 'scas*' 'cmpsb*' '*pcmpestr*' '*pcmpistr*' --mnemonic movsw,movsq,cmpsw,cmpsq",
        ],
    },
    ListedScript {
        name: "new_int_instr.sh1",
        about: "integer instructions of SSE4.2 and later",
        commands: &[
            "cyclescope instr --mnemonic popcnt,crc32,lzcnt,tzcnt,andn,bextr,blsi,blsmsk,blsr,bzhi,mulx,pdep,pext,rorx,sarx,shlx,shrx,adcx,adox,movbe,rdrand,rdseed",
        ],
    },
    ListedScript {
        name: "amd.sh1",
        about: "instructions of AMD alone",
        commands: &["cyclescope instr --isa sse4a,d3now,d3nowext,xop,fma4,tbm"],
    },
    ListedScript { name: "x87.sh1", about: "x87", commands: &["cyclescope instr 'f*' --isa fpu"] },
    ListedScript {
        name: "convers.sh1",
        about: "moves and conversions between kinds of registers",
        commands: &[
            "cyclescope instr 'cvt*' --mnemonic movd,movq,movmskps,movmskpd,pmovmskb,movq2dq,movdq2q,pinsrw,pextrw",
        ],
    },
    ListedScript {
        name: "convers2.sh1",
        about: "such moves and conversions of AVX",
        commands: &["cyclescope instr 'vcvt*' --mnemonic vmovd,vmovq,vmovmskps,vmovmskpd,vpmovmskb,vpinsrw,vpextrw"],
    },
    ListedScript { name: "ivec.sh1", about: "integer vectors", commands: &["cyclescope instr 'p*' 'movdq*'"] },
    ListedScript {
        name: "fvec.sh1",
        about: "floating point vectors",
        commands: &["cyclescope instr '*ps' '*pd' '*ss' 'vmulsd' 'vaddsd' 'mulsd' 'addsd'"],
    },
    ListedScript {
        name: "misc_vect.sh1",
        about: "other vector instructions",
        commands: &["cyclescope instr '*aes*' '*pclmul*' '*mpsadbw' '*phminposuw' '*ptest' '*maskmov*' 'vzero*'"],
    },
    ListedScript {
        name: "fma.sh1",
        about: "fused multiplications and additions",
        commands: &["cyclescope instr --isa fma,fma4"],
    },
    ListedScript { name: "avx2.sh1", about: "vectors of AVX2 and later", commands: &["cyclescope instr --isa avx2"] },
    ListedScript {
        name: "exec_domain.sh1",
        about: "delays between units of several kinds",
        commands: &["bypass_delay"],
    },
    ListedScript {
        name: "32bitinstr.sh1",
        about: "instructions outside of 64-bit mode, in which all code runs here: no answer",
        commands: &[],
    },
];

/// The scripts and lists, each with the tests or commands that answer it.
pub(super) const AGNER: SuiteCatalog = SuiteCatalog {
    name: "agner",
    entries: &{
        let mut entries = [SuiteQuestion { name: "", about: "", answers: &[] }; SCRIPTS.len() + LISTS.len()];
        let mut number = 0;
        while number < SCRIPTS.len() {
            let (name, about) = SCRIPTS[number];
            entries[number] = SuiteQuestion { name, about, answers: ANSWERS[number].0.split_at(ANSWERS[number].1).0 };
            number += 1;
        }
        let mut list = 0;
        while list < LISTS.len() {
            let ListedScript { name, about, commands: answers } = LISTS[list];
            entries[number + list] = SuiteQuestion { name, about, answers };
            list += 1;
        }
        entries
    },
};

/// Commands that answer scripts beside the tests of this study.
const COMMANDS: &[(&str, &str)] = &[
    (
        "memcpy",
        "cyclescope run --lib /lib/x86_64-linux-gnu/libc.so.6 --call 'memcpy(out, buffer, {N})' --buffer 64M --sweep 'N=1..64M*4' --quick",
    ),
    (
        "testmemcpyalign",
        "cyclescope run --lib /lib/x86_64-linux-gnu/libc.so.6 --call 'memcpy(out, buffer+{S}, 1024)' --sweep 'S=0..63' --quick",
    ),
    (
        "testmemcpyalign",
        "cyclescope run --lib /lib/x86_64-linux-gnu/libc.so.6 --call 'memcpy(out+{T}, buffer, 1024)' --sweep 'T=0..63' --quick",
    ),
];

/// The largest number of tests that answer one script.
const MOST_ANSWERS: usize = 8;
/// The tests that answer each script, and their number.
static ANSWERS: [([&str; MOST_ANSWERS], usize); SCRIPTS.len()] = {
    let mut all = [([""; MOST_ANSWERS], 0); SCRIPTS.len()];
    let mut command = 0;
    while command < COMMANDS.len() {
        let (script, text) = COMMANDS[command];
        let (tests, count) = &mut all[find_script(script)];
        tests[*count] = text;
        *count += 1;
        command += 1;
    }
    let mut test = 0;
    while test < TESTS.len() {
        let mut answer = 0;
        while answer < TESTS[test].answers.len() {
            let (tests, count) = &mut all[find_script(TESTS[test].answers[answer])];
            tests[*count] = TESTS[test].name;
            *count += 1;
            answer += 1;
        }
        test += 1;
    }
    all
};

/// The index of a script in the list. Compilation fails if a test names an unknown script.
const fn find_script(name: &str) -> usize {
    let mut number = 0;
    while !is_same(SCRIPTS[number].0.as_bytes(), name.as_bytes()) {
        number += 1;
    }
    number
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut place = 0;
    while place < one.len() && place < other.len() && one[place] == other[place] {
        place += 1;
    }
    place == one.len() && place == other.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_has_an_answer() {
        assert_eq!((SCRIPTS.len(), AGNER.entries.len()), (37, 37 + 18 + 19));
        for (number, SuiteQuestion { name, about, answers }) in AGNER.entries.iter().enumerate() {
            assert!(AGNER.entries[..number].iter().all(|other| other.name != *name), "{name} twice");
            // 32-bit code does not run here, as its text says.
            assert!((!answers.is_empty() || about.contains("no answer")) && !about.is_empty(), "{name}");
            let known =
                |answer: &&str| answer.starts_with("cyclescope ") || TESTS.iter().any(|test| test.name == *answer);
            assert!(answers.iter().all(known), "{name}: {answers:?}");
        }
    }

    #[test]
    fn lists_of_instructions_are_answered_by_commands() {
        for (suffix, number) in [(".csv", 18), (".sh1", 19)] {
            assert_eq!(LISTS.iter().filter(|list| list.name.ends_with(suffix)).count(), number);
        }
    }
}
