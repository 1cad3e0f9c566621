//! Reads a list of instructions to measure, from a CSV file.
//!
//! The header names the columns in any order and case:
//!
//! - `instruction`: a mnemonic, or the name in the instruction database.
//! - `sequence`: assembly that is measured as a unit, instead of an instruction.
//! - `operands`: as tables write them.
//! - `size`: bits of the largest register operand, or of the memory operand for forms without one.
//! - `isa`: CPUID features; a form needs at least one, and none of those prefixed with `!`.
//! - `immediate`: numbers. Each gets a row of its own.
//! - `measure`: `latency`, `throughput` or `both` (also if empty).
//! - `init`: assembly that runs before the measurement.
//!
//! Only `instruction` or `sequence` is required. Lines that begin with `#` are comments. A mnemonic
//! selects all encodings with these operands. `*`, or a size without operands, selects all operands
//! of the instruction.

use crate::forms::instruction_sequence::InstructionSequence;
use crate::forms::target_form::TargetForm;
use crate::isa_filter::IsaFilter;
use crate::selection::{full_name, list_forms};
use crate::tables::reference;
use cyclescope_code::asm::{self, CodeMode, Listing, nearest_words};
use cyclescope_measure::study::csv_list::{BadList, for_each_row};
use std::collections::{BTreeSet, HashMap};

const LIST_COLUMNS: [&str; 8] = ["instruction", "operands", "measure", "init", "size", "isa", "immediate", "sequence"];
/// Columns of which a list needs at least one.
const SUBJECT_COLUMNS: [&str; 2] = ["instruction", "sequence"];
/// Selects all operands of an instruction.
const ANY_OPERANDS: &str = "*";
/// Upper limit of forms listed in an error.
const LISTED_FORMS: usize = 8;

/// Parses the content of a list file.
pub fn read_list(content: &[u8], mode: CodeMode) -> Result<Vec<TargetForm>, BadList> {
    let known = list_forms(mode);
    let mut forms: Vec<TargetForm> = Vec::new();
    let mut seen: HashMap<String, u64> = HashMap::new();
    for_each_row(content, &LIST_COLUMNS, &SUBJECT_COLUMNS, |fields, line| {
        for target in read_subjects(fields, &known, mode)? {
            if let Some(earlier) = seen.insert(full_name(&target), line) {
                let message = format!("{} is already in line {earlier}", full_name(&target));
                let remedy = "name each form once per immediate; a row has one init code";
                return Err((message, remedy.to_string()));
            }
            forms.push(target);
        }
        Ok(())
    })?;
    if forms.is_empty() {
        let message = "the list has no instructions".to_string();
        return Err(BadList { line: None, message, remedy: "write one per line, below the column names".to_string() });
    }
    Ok(forms)
}

/// The forms that one line selects; otherwise what is wrong, and the remedy.
fn read_subjects(
    [instruction, operands, measure, init, size, isa, immediate, sequence]: [&str; LIST_COLUMNS.len()],
    known: &[TargetForm],
    mode: CodeMode,
) -> Result<Vec<TargetForm>, (String, String)> {
    let (latency, throughput) = match measure.to_lowercase().as_str() {
        "" | "both" => (true, true),
        "latency" => (true, false),
        "throughput" => (false, true),
        _ => {
            let remedy = "write latency, throughput or both, or leave it empty for both";
            return Err((format!("`{measure}` is not a quantity to measure"), remedy.to_string()));
        }
    };
    let init = assemble_column("init", init, mode)?;
    let asked = |target| TargetForm { latency, throughput, init: init.bytes().to_vec(), ..target };
    if !sequence.is_empty() {
        if [instruction, operands, size, isa, immediate].iter().any(|field| !field.is_empty()) {
            let remedy = "leave instruction, operands, size, isa and immediate empty with a sequence";
            return Err(("it has a sequence and an instruction".to_string(), remedy.to_string()));
        }
        let code = assemble_column("sequence", sequence, mode)?;
        let found = InstructionSequence::new(code.instructions())
            .map_err(|(message, remedy)| (format!("sequence: {message}"), remedy.to_string()))?;
        return Ok(TargetForm::from_sequence(found).into_iter().map(asked).collect());
    }
    let operands = if operands.is_empty() && !size.is_empty() { ANY_OPERANDS } else { operands };
    let found = find_forms(instruction, operands, known)?;
    let found = retain_isa(retain_size(found, size)?, isa)?;
    if found.is_empty() {
        let remedy = "leave size or isa empty, or name others";
        return Err((format!("{instruction} has no form of this size and instruction set"), remedy.to_string()));
    }
    Ok(apply_immediates(instruction, &found, immediate)?.into_iter().map(asked).collect())
}

/// Parses the assembly of a column.
fn assemble_column(column: &str, text: &str, mode: CodeMode) -> Result<Listing, (String, String)> {
    asm::parse_for_mode(text, mode, None).map_err(|error| {
        let expected = error.expected.map_or(String::new(), |expected| format!("; {expected}"));
        let message = format!("{column}, column {}: {}", error.column, error.message);
        (message, format!("write Intel syntax{expected}"))
    })
}

/// Combines each form with each immediate that it can encode. Without immediates, the forms stay
/// unchanged.
fn apply_immediates(
    instruction: &str,
    forms: &[&TargetForm],
    immediates: &str,
) -> Result<Vec<TargetForm>, (String, String)> {
    if immediates.is_empty() {
        return Ok(forms.iter().map(|target| (*target).clone()).collect());
    }
    let mut found = Vec::new();
    for text in immediates.split_whitespace() {
        let Some(value) = parse_number(text) else {
            let remedy = "write a number like 5, -1 or 0x1b; separate several by spaces";
            return Err((format!("`{text}` is not a 64-bit number"), remedy.to_string()));
        };
        let before = found.len();
        found.extend(forms.iter().filter_map(|target| target.with_immediate(value)));
        if found.len() == before {
            let remedy = "leave immediate empty, or name a form whose code can hold it";
            return Err((
                format!("{instruction} has no form that can encode the immediate {text}"),
                remedy.to_string(),
            ));
        }
    }
    Ok(found)
}

/// Parses a decimal or hexadecimal number. Values from 2⁶³ on wrap to the number with the same
/// bits.
fn parse_number(text: &str) -> Option<i64> {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let digits = digits.to_lowercase();
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse::<u64>(),
    };
    let value = value.ok()?;
    if negative { 0i64.checked_sub_unsigned(value) } else { Some(value as i64) }
}

/// Keeps the forms of this size in bits. An empty size keeps all.
fn retain_size<'a>(mut forms: Vec<&'a TargetForm>, size: &str) -> Result<Vec<&'a TargetForm>, (String, String)> {
    const SIZES: [usize; 8] = [8, 16, 32, 64, 80, 128, 256, 512];
    if size.is_empty() {
        return Ok(forms);
    }
    let Some(bits) = size.parse().ok().filter(|bits| SIZES.contains(bits)) else {
        let text = SIZES.map(|bits| bits.to_string()).join(", ");
        return Err((format!("`{size}` is not the size of a register"), format!("write bits: one of {text}")));
    };
    forms.retain(|target| target.form.register_bits() == Some(bits));
    Ok(forms)
}

/// Keeps the forms that these instruction sets allow.
fn retain_isa<'a>(mut forms: Vec<&'a TargetForm>, isa: &str) -> Result<Vec<&'a TargetForm>, (String, String)> {
    let names = isa.split([' ', ',', '+']).filter(|name| !name.is_empty());
    let isa = IsaFilter::new(names).map_err(|(name, near)| {
        let remedy = match near.first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`cyclescope instr --all --list` shows all features".to_string(),
        };
        (format!("there is no CPUID feature `{name}`"), remedy)
    })?;
    forms.retain(|target| isa.allows_form(target));
    Ok(forms)
}

fn find_forms<'a>(
    instruction: &str,
    operands: &str,
    known: &'a [TargetForm],
) -> Result<Vec<&'a TargetForm>, (String, String)> {
    if instruction.is_empty() {
        return Err(("the instruction is empty".to_string(), "name one".to_string()));
    }
    let mnemonic = reference::spell_mnemonic(instruction);
    let code = |target: &TargetForm| format!("{:?}", target.form.code).to_lowercase();
    let named: Vec<&TargetForm> = known
        .iter()
        .filter(|target| target.form.mnemonic() == mnemonic || code(target) == instruction.to_lowercase())
        .collect();
    if named.is_empty() {
        let words: BTreeSet<String> = known.iter().flat_map(|target| [target.form.mnemonic(), code(target)]).collect();
        let near = nearest_words(&mnemonic, words.iter().map(String::as_str));
        let remedy = match near.first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`cyclescope instr --all --list` shows all".to_string(),
        };
        return Err((format!("there is no instruction `{instruction}`"), remedy));
    }
    if operands == ANY_OPERANDS {
        return Ok(named);
    }
    let spell = |operands: &str| reference::spell_form(&mnemonic, operands).1;
    let asked = spell(operands);
    let spelt = |target: &&TargetForm| spell(&target.form.describe_operands());
    let found: Vec<&TargetForm> = named.iter().copied().filter(|target| spelt(target) == asked).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let mut forms: Vec<String> = Vec::new();
    for written in named.iter().map(|target| target.form.describe_operands()) {
        if !forms.contains(&written) {
            forms.push(written);
        }
    }
    let more = if forms.len() > LISTED_FORMS { " or others" } else { "" };
    forms.truncate(LISTED_FORMS);
    let has = if operands.is_empty() { "needs operands".to_string() } else { format!("has no form `{operands}`") };
    Err((format!("{instruction} {has}"), format!("it takes {}{more}", forms.join(" | "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_come_in_any_order() {
        let text = "\u{feff}Init,OPERANDS,instruction,measure\r\n# a comment\r\n\
                    \"xor edx, edx; mov eax, 7\",R32,div,Throughput\r\n\
                    ,\"reg64,reg64\",Add_r64_rm64,\r\n,,nop,latency\r\n";
        let found = read_list(text.as_bytes(), CodeMode::default()).unwrap();
        let names: Vec<String> = found.iter().map(full_name).collect();
        assert_eq!(names[..2], ["Div_rm32 r32", "Add_r64_rm64 r64, r64"]);
        let quantities: Vec<(bool, bool)> = found.iter().map(|target| (target.latency, target.throughput)).collect();
        assert_eq!(quantities[..3], [(false, true), (true, true), (true, false)]);
        assert_eq!((found[0].init.is_empty(), found[1].init.is_empty()), (false, true));
    }

    #[test]
    fn a_mnemonic_selects_all_encodings() {
        let found = read_list(b"instruction,operands\nvaddps,\"xmm, xmm, xmm\"\n", CodeMode::default()).unwrap();
        let encodings: Vec<&str> = found.iter().map(|target| target.form.encoding()).collect();
        assert_eq!(encodings, ["vex", "evex"]);
    }

    #[test]
    fn size_and_isa_restrict_the_forms_of_a_line() {
        let names = |text: &str| -> Vec<String> {
            read_list(text.as_bytes(), CodeMode::default()).unwrap().iter().map(full_name).collect()
        };
        let sized = names("instruction,operands,size\nadd,,16\n");
        assert!(sized.contains(&"Add_r16_rm16 r16, m16".to_string()) && sized.len() > 4, "{sized:?}");
        assert!(sized.iter().all(|name| name.contains("16")), "{sized:?}");
        assert!(names("instruction,operands\nadd,*\n").len() > sized.len());
        let wide = names("instruction,size,isa\nvaddps,256,!avx512vl\n");
        assert!(!wide.is_empty() && wide.iter().all(|name| name.starts_with("VEX_Vaddps_ymm")), "{wide:?}");
        assert_eq!(names("instruction,operands,isa\nvaddps,\"xmm,xmm,xmm\",avx512f !avx\n").len(), 1);
    }

    #[test]
    fn a_form_is_measured_once_per_immediate() {
        let names = |text: &str| -> Vec<String> {
            read_list(text.as_bytes(), CodeMode::default()).unwrap().iter().map(full_name).collect()
        };
        let text = "instruction,operands,immediate\nshl,\"r64, imm8\",\nshl,\"r64, imm8\",1 0X20\n\
                    Shl_rm64_imm8,\"r64, imm8\",-1\n";
        let rows = ["imm8", "0x1", "0x20", "-0x1"].map(|immediate| format!("Shl_rm64_imm8 r64, {immediate}"));
        assert_eq!(names(text), rows);
        // `*` selects only the forms that have an immediate.
        let all = names("instruction,operands,immediate\nadd,*,0x1234\n");
        assert!(all.len() > 4 && all.iter().all(|name| name.ends_with(", 0x1234")), "{all:?}");
        assert!(!all.iter().any(|name| name.contains("imm8")), "{all:?}");
    }

    #[test]
    fn a_line_may_have_a_sequence() {
        let text =
            "sequence,measure,init,instruction\n\"popcnt RAX,rbx; add rax, 1\",latency,\"mov ebx, 3\",\n,,,nop\n";
        let found = read_list(text.as_bytes(), CodeMode::default()).unwrap();
        assert_eq!(full_name(&found[0]), "popcnt rax, rbx; add rax, 1");
        assert_eq!((found[0].throughput, found[0].init.is_empty(), found[0].encoding()), (false, false, "sequence"));
        assert!(found.len() > 1 && found[1].sequence.is_none());
        assert!(read_list(b"sequence\nnop\n", CodeMode::default()).is_ok());
    }

    #[test]
    fn errors_name_the_line_and_a_remedy() {
        let cases = [
            ("instruction,operand\n", Some(1), "did you mean `operands`"),
            ("operands\nr64\n", Some(1), "name the columns"),
            ("instruction,init,init\n", Some(1), "leave one"),
            ("instruction\n", None, "one per line"),
            ("instruction\nnop\n\nimull\n", Some(4), "did you mean"),
            ("instruction,operands\nadd,\"r64, r65\"\n", Some(2), "it takes "),
            ("instruction\nadd\n", Some(2), "it takes "),
            ("instruction,measure\nnop,speed\n", Some(2), "latency, throughput or both"),
            ("instruction,size\nadd,65\n", Some(2), "one of 8, 16"),
            ("instruction,size\nadd,512\n", Some(2), "leave size"),
            ("instruction,operands,isa\nadd,*,avx512bv\n", Some(2), "avx512bw"),
            ("instruction,operands,immediate\nshl,\"r64, imm8\",300\n", Some(2), "can hold it"),
            ("instruction,operands,immediate\nadd,\"r64, imm8\",255\n", Some(2), "can hold it"),
            ("instruction,operands,immediate\nadd,\"r64, r64\",1\n", Some(2), "leave immediate empty"),
            ("instruction,operands,immediate\nint,imm8,3\n", Some(2), "leave immediate empty"),
            ("instruction,operands,immediate\nshl,\"r64, imm8\",one\n", Some(2), "0x1b"),
            ("instruction,operands,immediate\nshl,\"r64, imm8\",1\nshl,\"r64, imm8\",2 0x1\n", Some(3), "once"),
            ("instruction,init\nnop,mov raxx\n", Some(2), "Intel syntax"),
            ("sequence\nmov raxx\n", Some(2), "Intel syntax"),
            ("sequence\nnop; jmp $+2\n", Some(2), "branches"),
            ("sequence,size\nnop,64\n", Some(2), "with a sequence"),
            ("sequence\nnop; nop\nNOP;nop\n", Some(3), "once"),
            ("instruction,operands\nadd,\"r64, r64\"\n# again\nAdd_r64_rm64,\"r64, r64\"\n", Some(4), "once"),
            ("instruction,operands\nadd,r64, r64\n", Some(2), "double quotes"),
            ("instruction\n,\n", Some(2), ""),
        ];
        for (text, line, remedy) in cases {
            let error = read_list(text.as_bytes(), CodeMode::default()).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.remedy.contains(remedy), "{text}: {error:?}");
        }
    }
}
