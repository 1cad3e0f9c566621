//! Advice about a snippet that is not steady, in the words of the command: with its own texts and
//! their variables, and in its syntax.
//!
//! The check gives advice about machine code, in Intel syntax, such as `--init 'mov ecx, 4096; mov
//! r8, rbp' --setup 'mov ecx, 4096; mov rdi, r8'`. Only registers and numbers are operands of the
//! instructions that it adds. What it says about the state quotes an instruction of the snippet, and
//! names registers, such as RCX.

use cyclescope_code::asm::{Listing, format_instruction};
use cyclescope_code::snippet::Snippet;
use cyclescope_core::error::{Error, RunError};
use serde::{Deserialize, Serialize};

/// The texts of a command that advice repeats.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdviceTexts {
    /// The init code, with `{N}` where the command has it.
    pub init: String,
    /// The code before each copy, likewise.
    pub setup: String,
    /// Whether the texts are in AT&T syntax.
    pub is_att: bool,
}

/// What precedes code in advice, up to the code.
const INIT: &str = "--init '";
const SETUP: &str = "--setup '";
const ADDITION: &str = "add '";

impl AdviceTexts {
    /// The texts of a snippet, if those of the command are not known.
    fn from_snippet(snippet: &Snippet) -> AdviceTexts {
        let setup = snippet.setup().map_or(String::new(), |setup| setup.text.clone());
        AdviceTexts { init: Listing::from_code(snippet.init(), snippet.mode()).text(), setup, is_att: false }
    }

    /// Rewrites advice about a snippet of the command. Advised code comes before the setup of the
    /// command, since it sets what that may use.
    fn adapt(&self, advice: &str, snippet: &Snippet) -> String {
        let own = Listing::from_code(snippet.init(), snippet.mode()).instructions().len();
        let advice = replace_code(&self.describe(advice, snippet), INIT, |code| {
            let added: Vec<String> = code.split("; ").skip(own).map(|one| self.translate(one)).collect();
            join_statements(list_statements(&self.init).map(str::to_string).chain(added))
        });
        let advice = replace_code(&advice, SETUP, |code| {
            let restored =
                code.split("; ").map(|one| self.find_variable_statement(one).unwrap_or_else(|| self.translate(one)));
            join_statements(restored.chain(list_statements(&self.setup).map(str::to_string)))
        });
        replace_code(&advice, ADDITION, |code| join_statements(code.split("; ").map(|one| self.translate(one))))
    }

    /// Puts quoted instructions and names of registers into the syntax of the command.
    fn describe(&self, text: &str, snippet: &Snippet) -> String {
        if !self.is_att {
            return text.to_string();
        }
        let listed: Vec<String> =
            Listing::from_code(snippet.code(), snippet.mode()).instructions().iter().map(format_instruction).collect();
        let given = list_statements(snippet.text()).map(|one| one.rsplit(':').next().unwrap_or(one).trim());
        let given: Vec<&str> = given.filter(|statement| !statement.is_empty()).collect();
        let quote = |code: &str| match listed.iter().position(|one| *one == code) {
            Some(number) if given.len() == listed.len() => given[number].to_string(),
            _ if code.contains('[') => code.to_string(),
            _ => self.translate(code),
        };
        let parts = text.split('`').enumerate().map(|(number, part)| match number % 2 {
            1 => format!("`{}`", quote(part)),
            _ => part.split_inclusive(|one: char| !one.is_ascii_alphanumeric()).map(translate_name).collect(),
        });
        parts.collect()
    }

    /// The init code's statement with a variable that sets the register of `mov register, number`.
    fn find_variable_statement(&self, advised: &str) -> Option<String> {
        let (register, number) = advised.strip_prefix("mov ")?.split_once(", ")?;
        number.parse::<u64>().ok()?;
        let names = list_register_names(register);
        let sets = |statement: &&str| {
            let mut words = statement.split(|one: char| !one.is_ascii_alphanumeric());
            statement.contains('{') && words.any(|word| names.iter().any(|name| name.eq_ignore_ascii_case(word)))
        };
        list_statements(&self.init).find(sets).map(str::to_string)
    }

    /// Puts an advised statement into the syntax of the command.
    fn translate(&self, statement: &str) -> String {
        let Some((name, operands)) = statement.split_once(' ').filter(|_| self.is_att) else {
            return statement.to_string();
        };
        let operand = |text: &str| match text.strip_prefix("st") {
            Some(number) => format!("%st({number})"),
            None if text.starts_with(|one: char| one.is_ascii_digit()) => format!("${text}"),
            None => format!("%{text}"),
        };
        let operands: Vec<String> = operands.rsplit(", ").map(operand).collect();
        format!("{name} {}", operands.join(", "))
    }
}

/// Puts the name of a register, with what follows, into AT&T syntax. Other words stay.
fn translate_name(word: &str) -> String {
    let name = word.trim_end_matches(|one: char| !one.is_ascii_alphanumeric());
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    let is_numbered = ["XMM", "YMM", "ZMM", "R", "K"].iter().any(|kind| name.strip_prefix(kind).is_some_and(is_number));
    match is_numbered || ["RAX", "RBX", "RCX", "RDX", "RSI", "RDI", "RBP", "RSP"].contains(&name) {
        true => format!("%{}", word.to_lowercase()),
        false => word.to_string(),
    }
}

/// The statements of a text.
fn list_statements(text: &str) -> impl Iterator<Item = &str> {
    text.split([';', '\n']).map(str::trim).filter(|statement| !statement.is_empty())
}

fn join_statements(statements: impl Iterator<Item = String>) -> String {
    statements.collect::<Vec<String>>().join("; ")
}

/// The names of a general register with 32 bits in all its widths, except those of bytes.
fn list_register_names(register: &str) -> [String; 3] {
    match register.strip_prefix('e') {
        Some(low) => [format!("r{low}"), register.to_string(), low.to_string()],
        None => {
            let whole = register.trim_end_matches('d');
            [whole.to_string(), register.to_string(), format!("{whole}w")]
        }
    }
}

/// Replaces the code that follows `before`, up to the next quote.
fn replace_code(advice: &str, before: &str, replace: impl Fn(&str) -> String) -> String {
    let code = advice.find(before).and_then(|at| {
        let start = at + before.len();
        advice[start..].find('\'').map(|length| start..start + length)
    });
    match code {
        Some(code) => [&advice[..code.start], &replace(&advice[code.clone()]), &advice[code.end..]].concat(),
        None => advice.to_string(),
    }
}

/// Puts advice about a snippet into the words of its command, if they are known.
pub(super) fn adapt_advice(advice: &str, snippet: &Snippet, texts: Option<&AdviceTexts>) -> String {
    match texts {
        Some(texts) => texts.adapt(advice, snippet),
        None => AdviceTexts::from_snippet(snippet).adapt(advice, snippet),
    }
}

/// Does the same for the remedy of an error.
pub(super) fn adapt_advice_of_error(error: Error, snippet: &Snippet, texts: Option<&AdviceTexts>) -> Error {
    match error {
        Error::Run(RunError::Unsteady { error, state, remedy }) => {
            let [state, remedy] = [state, remedy].map(|text| adapt_advice(&text, snippet, texts));
            Error::Run(RunError::Unsteady { error, state, remedy })
        }
        error => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::asm::parse_assembly;
    use cyclescope_code::snippet::SnippetSetup;

    fn snippet(init: &str, setup: &str) -> Snippet {
        let assemble = |text: &str| parse_assembly(text).unwrap().bytes().to_vec();
        let setup = SnippetSetup { code: assemble(setup), text: setup.to_string() };
        Snippet::new(vec![0x90], assemble(init), "nop").with_setup(Some(setup))
    }

    fn texts(init: &str, setup: &str, is_att: bool) -> AdviceTexts {
        AdviceTexts { init: init.to_string(), setup: setup.to_string(), is_att }
    }

    #[test]
    fn advised_setup_keeps_the_given_one() {
        let snippet = snippet("mov ecx, 7", "mov rsi, rbp");
        let advice = "restore it with --init 'mov ecx, 7; mov r8, rbp' --setup 'mov ecx, 7', or not";
        let expected = "restore it with --init 'mov ecx, 7; mov r8, rbp' --setup 'mov ecx, 7; mov rsi, rbp', or not";
        assert_eq!(adapt_advice(advice, &snippet, None), expected);
        assert_eq!(adapt_advice("load them again", &snippet, None), "load them again");
    }

    #[test]
    fn variables_of_the_command_stay() {
        let snippet = snippet("mov ecx, 3; mov edx, 5", "");
        let given = texts("mov rcx, {D}; mov edx, 5", "", false);
        let advice = "with --init 'mov ecx, 3; mov edx, 5; mov r8, rdi' --setup 'mov ecx, 3; mov edx, 5; mov rdi, r8'";
        let expected =
            "with --init 'mov rcx, {D}; mov edx, 5; mov r8, rdi' --setup 'mov rcx, {D}; mov edx, 5; mov rdi, r8'";
        assert_eq!(adapt_advice(advice, &snippet, Some(&given)), expected);
    }

    #[test]
    fn states_are_described_in_the_syntax_of_the_command() {
        let assemble = |text: &str| parse_assembly(text).unwrap().bytes().to_vec();
        let code = assemble("mov rax, [r14]; div rcx");
        let snippet = Snippet::new(code, Vec::new(), "1: mov (%r14), %rax\n div %rcx");
        let describe = |text: &str| adapt_advice(text, &snippet, Some(&texts("", "", true)));
        assert_eq!(describe("`div rcx`: RAX and XMM7 stay"), "`div %rcx`: %rax and %xmm7 stay");
        let load = format_instruction(&parse_assembly("mov rax, [r14]").unwrap().instructions()[0]);
        assert_eq!(describe(&format!("`{load}` reads R14, K1")), "`mov (%r14), %rax` reads %r14, %k1");
        assert_eq!(adapt_advice("`div rcx`: RAX stays", &snippet, None), "`div rcx`: RAX stays");
        // What the text lacks is translated as far as it has only registers.
        assert_eq!(
            describe("`idiv rsi` or `add rax, [rsi]`, `jne` at +0x1"),
            "`idiv %rsi` or `add rax, [rsi]`, `jne` at +0x1"
        );
    }

    #[test]
    fn advice_is_in_the_syntax_of_the_command() {
        let snippet = snippet("mov r9d, 3", "");
        let given = texts("mov ${D/8}, %r9d", "nop", true);
        let advice = "with --init 'mov r9d, 3; mov r8, rdi' --setup 'mov r9d, 3; mov eax, 7; mov rdi, r8'";
        let expected = "with --init 'mov ${D/8}, %r9d; mov %rdi, %r8' --setup 'mov ${D/8}, %r9d; mov $7, %eax; mov %r8, %rdi; nop'";
        assert_eq!(adapt_advice(advice, &snippet, Some(&given)), expected);
        let popped = adapt_advice("add 'fstp st0; fld1' to the snippet", &snippet, Some(&given));
        assert_eq!(popped, "add 'fstp %st(0); fld1' to the snippet");
    }
}
