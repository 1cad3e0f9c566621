//! Handwritten functions, one for each shape of a compiled marker; then all compiled ones.

use super::*;
use crate::compiled_design::CompiledDesign;
use crate::compiled_design::PatchSite;
use cyclescope_code::asm;
use cyclescope_code::asm::CodeMode;

const START: u64 = 0x40_0000;
/// A loop without a marker, as compiled.
const BASE: &str = "test rdi, rdi; jle out; xor eax, eax; nop word ptr [rax+rax+0x1000]
    top: add rax, 1; cmp rdi, rax; jne top
    out: ret";

fn assembled(text: &str) -> Vec<u8> {
    asm::parse_assembly(text).unwrap_or_else(|error| panic!("{error}: {text}")).bytes().to_vec()
}

/// Compares a base and a site, given as text. `sites` lists the places to patch and their targets,
/// as offsets.
fn compared(base: &str, site: &str, enabling: Enabling, sites: &[(usize, usize)]) -> MarkerAnatomy {
    let (base, site) = (assembled(base), assembled(site));
    let sites: Vec<PatchSite> =
        sites.iter().map(|(place, to)| PatchSite { place: *place, target: START + *to as u64 }).collect();
    let function = |bytes, sites| FunctionCode { mode: CodeMode::default(), start: START, bytes, entry: 0, sites };
    let anatomy = compare_functions(function(&base, &[]), function(&site, &sites), enabling, &|_| None);
    let sum: usize = anatomy.assembly.iter().map(AssemblyLine::len).sum();
    assert_eq!(sum, site.len());
    anatomy
}

/// The mnemonics of lines that satisfy a condition.
fn mnemonics(anatomy: &MarkerAnatomy, wanted: impl Fn(&AssemblyLine) -> bool) -> String {
    let lines = anatomy.assembly.iter().filter(|line| wanted(line));
    let words: Vec<&str> = lines.filter_map(|line| line.text.split(' ').next()).collect();
    words.join(" ")
}

fn own(anatomy: &MarkerAnatomy) -> String {
    mnemonics(anatomy, |line| line.site && line.path == CodePath::Likely)
}

fn unlikely(anatomy: &MarkerAnatomy) -> String {
    mnemonics(anatomy, |line| line.path == CodePath::Unlikely)
}

const VARIABLE: Enabling = Enabling::Variable(1);

#[test]
fn likely_bytes_are_counted_as_in_the_document_on_linux_kernel_markers() {
    let base = "push rbp; mov rbp, rsp; sub rsp, 16; mov eax, -1; leave; ret";
    for (load, enabling, bytes) in
        [("mov al, 0", Enabling::Immediate, 6), ("movzx eax, byte ptr [rip+0x1020]", VARIABLE, 11)]
    {
        let site = format!(
            "push rbp; mov rbp, rsp; sub rsp, 16; {load}; test al, al; jne on
            back: mov eax, -1; leave; ret
            on: mov eax, 1; call qword ptr [0x9000]; mov edx, 0; mov esi, 1; lea rdi, [rip+0x500]
            call qword ptr [0x9010]; mov eax, 1; call qword ptr [0x9000]; jmp back"
        );
        let it = compared(base, &site, enabling, &[]);
        assert_eq!(it.likely_bytes, bytes);
        assert_eq!(unlikely(&it), "mov call mov mov lea call mov call jmp");
        let from = it.assembly.iter().find(|line| line.path == CodePath::Unlikely).unwrap().offset;
        assert_eq!(it.unlikely_bytes, assembled(&site).len() - from);
        assert_eq!((it.function_likely_bytes, it.function_unlikely_bytes as usize), (bytes as i64, it.unlikely_bytes));
        assert_eq!(it.gates, [8 + bytes - 2]);
    }
}

#[test]
fn a_loops_guard_is_not_a_gate_and_prologues_count_in_the_difference() {
    let site = "test rdi, rdi; jle out; push rbp; mov rbp, rdi; push rbx; xor ebx, ebx; sub rsp, 8
        top: movzx eax, byte ptr [rip+0x1000]; test al, al; jne on
        back: add rbx, 1; cmp rbp, rbx; jne top
        add rsp, 8; pop rbx; pop rbp; ret
        nop dword ptr [rax+rax]
        on: mov rcx, qword ptr [rip+0x2000]; test ecx, ecx; jne nested
        joined: mov esi, 1; call qword ptr [rip+0x1100]; jmp back
        nop dword ptr [rax+rax]
        out: ret
        nested: add rcx, 1; jmp joined";
    let it = compared(BASE, site, VARIABLE, &[]);
    assert_eq!(own(&it), "movzx test jne");
    assert_eq!(unlikely(&it), "mov test jne mov call jmp add jmp");
    assert_eq!(mnemonics(&it, |line| line.path == CodePath::Padding), "nop nop");
    // The base's alignment does not count. push, mov, push, sub, add, pop, pop and a second return
    // do.
    assert_eq!(it.function_likely_bytes, it.likely_bytes as i64 + 1 + 3 + 1 + 4 + 4 + 1 + 1 + 1);
    assert_eq!(it.function_unlikely_bytes, it.unlikely_bytes as i64);
}

#[test]
fn several_tests_in_a_row_are_one_gate_and_unlikely_code() {
    let site = "push rbx; mov rbx, rdi; test rdi, rdi; je out
        top: mov rax, qword ptr [rip+0x1000]; cmp qword ptr [rax], 4; ja level
        back: dec rbx; jne top
        out: pop rbx; ret
        level: movzx eax, byte ptr [rip+0x1010]; test al, al; je back
        cmp al, 2; jne known; call qword ptr [0x9020]; test al, al; je back
        known: lea rdi, [rip+0x1020]; call qword ptr [0x9030]; jmp back";
    let base = "test rdi, rdi; je out; top: dec rdi; jne top; out: ret";
    let it = compared(base, site, VARIABLE, &[]);
    assert_eq!(own(&it), "mov cmp ja");
    assert_eq!(it.gates.len(), 1);
    assert_eq!(unlikely(&it), "movzx test je cmp jne call test je lea call jmp");
}

#[test]
fn calls_of_the_base_are_not_the_markers() {
    let base = "push rbx; mov rbx, rdi; test rdi, rdi; jle out
        top: mov edx, 4096; call qword ptr [0x9000]; dec rbx; jne top
        out: pop rbx; ret";
    // The loop jumps over the marker's code inside it, and the loop may call the same probe.
    for probe in ["qword ptr [0x9000]", "qword ptr [0x9010]", "rbp", "qword ptr [rbp+8]"] {
        let site = format!(
            "push rbx; mov rbx, rdi; test rdi, rdi; jle out
            top: mov edx, 4096; call qword ptr [0x9000]; cmp byte ptr [rip+0x2000], 0; je skip
            mov esi, 1; call {probe}
            skip: dec rbx; jne top
            out: pop rbx; ret"
        );
        let it = compared(base, &site, VARIABLE, &[]);
        assert_eq!((own(&it).as_str(), unlikely(&it).as_str()), ("cmp je", "mov call"), "{probe}");
        assert_eq!(it.function_likely_bytes, it.likely_bytes as i64);
    }
}

#[test]
fn a_prologue_in_the_unlikely_path_is_unlikely() {
    let site = "movzx eax, byte ptr [rip+0x1000]; test al, al; jne on
        back: xor eax, eax; ret
        on: push rbx; sub rsp, 16; mov rbx, rdi; call qword ptr [0x9000]; add rsp, 16; pop rbx; xor eax, eax; ret";
    let it = compared("xor eax, eax; ret", site, VARIABLE, &[]);
    assert_eq!(own(&it), "movzx test jne");
    assert_eq!(unlikely(&it), "push sub mov call add pop xor ret");
    assert_eq!(it.function_likely_bytes, 11);
}

#[test]
fn a_duplicated_loop_has_its_gate_before_it() {
    let site = "test rdi, rdi; jle out; cmp byte ptr [rip+0x1000], 0; jne on; xor eax, eax
        top: add rax, 1; cmp rdi, rax; jne top
        out: ret
        on: push rbx; mov rbx, rdi; again: call qword ptr [0x9000]; dec rbx; jne again; pop rbx; ret";
    let it = compared(BASE, site, VARIABLE, &[]);
    assert_eq!(own(&it), "cmp jne");
    assert_eq!(unlikely(&it), "push mov call dec jne pop ret");
}

#[test]
fn a_duplicated_test_has_two_gates() {
    // The first iteration was peeled off the loop. Both copies share the marker's code.
    let site = "test rdi, rdi; jle out; push rbx; mov rbx, rdi
        cmp byte ptr [rip+0x1000], 0; jne on
        back: dec rbx; je done
        top: cmp byte ptr [rip+0x1000], 0; je back
        on: mov rax, qword ptr [rip+0x2000]; xor edx, edx; call rax; jmp back
        done: pop rbx
        out: ret";
    let it = compared(BASE, site, VARIABLE, &[]);
    assert_eq!((own(&it).as_str(), unlikely(&it).as_str()), ("cmp jne cmp je", "mov xor call jmp"));
    assert_eq!(it.gates.len(), 2);
    assert_eq!(it.function_unlikely_bytes, it.unlikely_bytes as i64);
}

#[test]
fn a_duplicated_gate_precedes_the_guards_own_call() {
    let site = "test rdi, rdi; jle out; push rbx; mov rbx, rdi
        cmp byte ptr [rip+0x1000], 0; jne on
        back: dec rbx; je done
        cmp byte ptr [rip+0x1000], 0; je back
        on: inc dword ptr [rip+0x3000]; call rax; dec dword ptr [rip+0x3000]; jne back
        call qword ptr [0x9000]; jmp back
        done: pop rbx
        out: ret";
    let it = compared(BASE, site, VARIABLE, &[]);
    assert_eq!((own(&it).as_str(), it.gates.len()), ("cmp jne cmp je", 2));
    assert_eq!(unlikely(&it), "inc call dec jne call jmp");
}

#[test]
fn without_a_gate_nothing_is_unlikely() {
    // Each iteration makes the call: the loop's guard is not its gate.
    let site = "test rdi, rdi; jle out; push rbx; mov rbx, rdi
        top: call qword ptr [0x9000]; dec rbx; jne top; pop rbx
        out: ret";
    let it = compared(BASE, site, VARIABLE, &[]);
    assert_eq!((it.gates.len(), it.likely_bytes, it.unlikely_bytes), (0, 0, 0), "{it:?}");
}

#[test]
fn a_static_keys_jump_is_the_gate() {
    for nop in ["xchg ax, ax", "nop dword ptr [rax+rax+1]"] {
        let site = |nop| {
            format!(
                "test rdi, rdi; jle out; push rbx; mov rbx, rdi; xor esi, esi
                top: {nop}; back: dec rbx; jne top
                pop rbx; ret
                on: lea rdi, [rip+0x1000]; call qword ptr [0x9000]; jmp back
                out: ret"
            )
        };
        let (place, text) = (3 + 2 + 1 + 3 + 2, site(nop));
        let bytes = assembled(&text);
        let on = bytes.windows(3).position(|bytes| bytes == [0x48, 0x8d, 0x3d]).unwrap();
        let it = compared(BASE, &text, Enabling::Jump, &[(place, on)]);
        assert_eq!(it.likely_bytes, if nop.starts_with('x') { 2 } else { 5 });
        assert_eq!(it.gates, [place]);
        assert_eq!(unlikely(&it), "lea call jmp");
        let near = &it.assembly.iter().find(|line| line.text.starts_with("jle")).unwrap().text;
        assert_eq!(*near, format!("jle +{:#x}", bytes.len() - 1));
    }
}

#[test]
fn a_tracers_nop_is_likely_and_alignment_is_not_a_site() {
    let site = "test rdi, rdi; jle out; xor eax, eax; nop word ptr [rax+rax]; nop; nop dword ptr [rax]
        top: nop; add rax, 1; cmp rdi, rax; jne top
        out: ret";
    let it = compared(BASE, site, Enabling::Tracer, &[]);
    assert_eq!((it.likely_bytes, it.unlikely_bytes, it.function_likely_bytes), (1, 0, 1), "{it:?}");
    let known = compared(BASE, site, Enabling::Tracer, &[(0x10, 0)]);
    assert_eq!((known.likely_bytes, known.assembly[6].site), (1, true));
}

#[test]
fn a_semaphore_gates_code_without_calls() {
    let site = "test rdi, rdi; jle out; push rbx; xor eax, eax; lea rcx, [rip+0x1000]
        top: movzx edx, word ptr [rcx]; test dx, dx; jne on
        back: add rax, 1; cmp rdi, rax; jne top
        pop rbx
        out: ret
        on: nop; jmp back";
    let it = compared(BASE, site, Enabling::Variable(2), &[]);
    assert_eq!((own(&it).as_str(), unlikely(&it).as_str()), ("movzx test jne", "nop jmp"));
    let inline = "test rdi, rdi; jle out; xor eax, eax
        top: cmp word ptr [rip+0x1000], 0; je back; nop
        back: add rax, 1; cmp rdi, rax; jne top
        out: ret";
    let it = compared(BASE, inline, Enabling::Variable(2), &[]);
    assert_eq!((own(&it).as_str(), unlikely(&it).as_str()), ("cmp je", "nop"));
}

#[test]
fn cold_code_of_the_base_is_not_the_markers() {
    let base = "test rdi, rdi; je null; back: mov eax, dword ptr [rdi]; ret; null: lea rdi, [rip+0x1000]; jmp back";
    let site = "test rdi, rdi; je null; back: cmp word ptr [rip+0x2000], 0; jne on
        joined: mov eax, dword ptr [rdi]; ret
        null: lea rdi, [rip+0x1000]; jmp back
        on: nop; jmp joined";
    let it = compared(base, site, Enabling::Variable(2), &[]);
    assert_eq!((own(&it).as_str(), unlikely(&it).as_str()), ("cmp jne", "nop jmp"));
}

#[test]
fn the_entry_nop_is_the_only_code_of_the_site() {
    let text = |nop: &str| {
        format!(
            "push rbx; mov rbx, rdi; top: call traced; dec rbx; jne top; pop rbx; ret
            nop dword ptr [rax]
            traced: {nop} ret"
        )
    };
    for nop in ["nop; nop; nop; nop; nop;", "nop dword ptr [rax+rax+1];"] {
        let text_of_site = text(nop);
        let place = assembled(&text_of_site).len() - 6;
        let it = compared(&text(""), &text_of_site, Enabling::Entry, &[(place, 0x10_0000)]);
        let counts = (it.likely_bytes, it.unlikely_bytes, it.function_likely_bytes, it.function_unlikely_bytes);
        assert_eq!(counts, (5, 0, 5, 0));
        assert_eq!(it.gates, [place]);
    }
}

#[test]
fn an_indirect_call_includes_only_its_own_arguments() {
    let body = "mov rsi, r12; mov rdi, r13; mov ecx, 512; rep movsq";
    let base = format!("top: {body}; dec rbx; jne top; ret");
    let site = format!(
        "top: {body}; xor edx, edx; dec rbx; mov esi, 1; lea rdi, [rip+0x100]; xor eax, eax
        call qword ptr [0x9000]; test rbx, rbx; jne top; ret"
    );
    let it = compared(&base, &site, Enabling::Probe, &[]);
    assert_eq!((own(&it).as_str(), it.unlikely_bytes), ("xor mov lea xor call", 0));
    // The marker causes the test of the counter, but the test is not part of the call.
    assert_eq!(it.function_likely_bytes, it.likely_bytes as i64 + 3);
}

#[test]
fn cache_lines_are_those_that_contain_instructions() {
    let base = "xor eax, eax; ret";
    let long = "nop dword ptr [rax+rax]; ".repeat(12);
    let site = format!(
        "cmp byte ptr [rip+0x1000], 0; jne on; back: xor eax, eax; ret
        {long} on: call qword ptr [0x9000]; jmp back"
    );
    let it = compared(base, &site, VARIABLE, &[]);
    let lines = |base, likely, both| CacheLines { base, likely, both };
    assert_eq!(it.cache_lines(0), lines(1, 1, 2));
    assert_eq!(it.cache_lines(60), lines(1, 2, 3));
    assert_eq!(it.cache_lines(62), lines(2, 2, 3));
    assert_eq!(it.cache_lines(64), it.cache_lines(0));
}

#[test]
fn outside_addresses_have_a_name_or_none() {
    let site =
        "cmp byte ptr [rip+0x1000], 0; jne on; back: lea rax, [rip-0x10]; ret; on: call qword ptr [0x9000]; jmp back";
    let (base, site) = (assembled("ret"), assembled(site));
    let function = |start, bytes| FunctionCode { mode: CodeMode::default(), start, bytes, entry: 0, sites: &[] };
    let at = |start: u64| {
        let names = move |address| (address == start + 7 + 0x1000).then(|| "flag".to_string());
        compare_functions(function(start, &base), function(start, &site), VARIABLE, &names)
    };
    let it = at(START);
    assert_eq!(it, at(START + 0x1234_5670));
    let texts: Vec<&str> = it.assembly.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(
        texts,
        ["cmp byte ptr [flag], 0", "jne +0x11", "lea rax, [+0x0]", "ret", "call qword ptr [elsewhere]", "jmp +0x9"]
    );
    let json = serde_json::to_string(&it).unwrap();
    assert_eq!(serde_json::from_str::<MarkerAnatomy>(&json).unwrap(), it);
}

#[test]
fn the_compiled_markers_match_their_designs() {
    for compiled in CompiledDesign::list_built() {
        let (design, names) = (compiled.design, name_addresses(&compiled));
        if cfg!(debug_assertions) && ["log", "tracing"].contains(&design.name) {
            // rustc moves unlikely code out of line only when it optimizes.
            cyclescope_skipped::report_skipped(format_args!("{} in an unoptimized build", design.name));
            continue;
        }
        for code in compiled.codes.iter().filter(|code| code.guard.is_some()) {
            let base = compiled.find_function(&code.context, None).unwrap();
            let it = compare_functions(base, code, design.enabling, &names);
            let place = format!("{} {:?} {}", design.name, code.guard, code.context);
            let sum: usize = it.assembly.iter().map(AssemblyLine::len).sum();
            assert_eq!(sum, code.bytes.len(), "{place}");
            assert_eq!(it.unlikely_bytes as i64, it.function_unlikely_bytes, "{place}");
            if design.enabling == Enabling::Never {
                assert_eq!(
                    (it.function_likely_bytes > 0, it.function_unlikely_bytes),
                    (!design.site.is_empty(), 0),
                    "{place}"
                );
                continue;
            }
            assert!(it.likely_bytes > 0 && it.function_likely_bytes >= it.likely_bytes as i64, "{place} {it:?}");
            let lines = |wanted: &dyn Fn(&AssemblyLine) -> bool| it.assembly.iter().filter(|line| wanted(line)).count();
            let calls = lines(&|line| line.path == CodePath::Unlikely && line.text.starts_with("call "));
            let back = lines(&|line| line.path == CodePath::Unlikely && line.text.starts_with("jmp"));
            match design.name {
                "flag" | "immediate" | "immediate-32" | "immediate-movzx" => {
                    let words = own(&it);
                    let first = if design.name == "flag" { ["movzx", "cmp"] } else { ["mov", "mov"] };
                    assert!(first.iter().any(|word| words.starts_with(word)), "{place}: {words}");
                    assert_eq!((calls, it.gates.len(), back > 0), (1, 1, true), "{place}");
                }
                "static-key-2" | "static-key-5" => {
                    assert_eq!(it.likely_bytes.to_string(), &design.name[11..], "{place}");
                    assert_eq!((calls, it.gates.as_slice()), (1, &[code.sites[0].place][..]), "{place}");
                }
                "usdt" => assert_eq!((it.likely_bytes, it.unlikely_bytes), (1, 0), "{place} {it:?}"),
                "usdt-semaphore" => assert_eq!(unlikely(&it), "nop jmp", "{place}"),
                "function-entry" => assert_eq!((it.likely_bytes, it.unlikely_bytes), (5, 0), "{place}"),
                "indirect-call" => {
                    assert_eq!(it.unlikely_bytes, 0, "{place}");
                    assert!(own(&it).ends_with("call"), "{place}: {}", own(&it));
                }
                "log" | "tracing" => {
                    assert!(own(&it).contains("cmp"), "{place}: {}", own(&it));
                    assert_eq!((it.gates.len(), calls > 0, back > 0), (1, true, true), "{place}");
                }
                other => panic!("{other} has no line here"),
            }
        }
    }
}
