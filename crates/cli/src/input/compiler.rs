//! The C and C++ compilers that an option or the environment names.

use crate::output::Failure;
use crate::process::external_tool;
use cyclescope::asm::CodeMode;
use cyclescope::error::Unavailable;
use cyclescope::input::{self, InputKind};
use std::path::Path;
use std::process::Command;

/// A compiler's name and the flags that always follow it.
pub struct Compiler {
    /// What names the compiler: an option, or a variable of the environment.
    named_by: &'static str,
    words: Vec<String>,
}

impl Compiler {
    /// The C compiler.
    pub fn c_compiler() -> Compiler {
        Compiler::from_variable("CC", "cc")
    }

    /// The C++ compiler.
    pub fn cxx_compiler() -> Compiler {
        Compiler::from_variable("CXX", "c++")
    }

    /// The compiler that `--cc` names.
    pub fn from_option(text: &str) -> Result<Compiler, Failure> {
        let words = shlex::split(text).filter(|words| !words.is_empty());
        let remedy = "write its name and its flags, as in --cc 'gcc -m64'";
        let words = words.ok_or_else(|| Failure::usage(format!("--cc '{text}' names no compiler"), Some(remedy)))?;
        Ok(Compiler { named_by: "--cc", words })
    }

    fn from_variable(variable: &'static str, default: &str) -> Compiler {
        let words = std::env::var(variable).ok().and_then(|words| shlex::split(&words)).unwrap_or_default();
        let words = if words.is_empty() { vec![default.to_string()] } else { words };
        Compiler { named_by: variable, words }
    }

    /// Whether the compiler is clang, according to its `--version`.
    pub fn is_clang(&self) -> bool {
        let (name, first) = self.words.split_first().expect("a compiler has a name");
        let mut command = Command::new(name);
        command.args(first).arg("--version");
        let said = external_tool::run_tool(command, &format!("compiler {name}"), "");
        said.is_ok_and(|said| String::from_utf8_lossy(&said).contains("clang"))
    }

    /// The compiler's own library for code of a mode that is linked without the system's: divisions of
    /// 64 bits, for example. `None` if it is not installed.
    pub fn runtime_library(&self, mode: CodeMode) -> Option<String> {
        if mode == CodeMode::Bits64 {
            return None;
        }
        let (name, first) = self.words.split_first().expect("a compiler has a name");
        let mut command = Command::new(name);
        command.args(first).args(["-m32", "-print-libgcc-file-name"]);
        let said = external_tool::run_tool(command, &format!("compiler {name}"), "").ok()?;
        let path = String::from_utf8_lossy(&said).trim().to_string();
        Path::new(&path).is_file().then_some(path)
    }

    /// Compiles or links a file of this kind, and links these libraries. The error holds the
    /// compiler's messages, or why it couldn't run.
    pub fn compile(
        &self,
        source: &Path,
        kind: InputKind,
        flags: &[String],
        output: &Path,
        libraries: &[&str],
    ) -> Result<(), Failure> {
        require_readable(source, kind)?;
        let (name, first) = self.words.split_first().expect("a compiler has a name");
        let mut command = Command::new(name);
        command.args(first);
        // A file name with a leading dash would look like an option.
        let source = if source.is_absolute() { source.to_path_buf() } else { Path::new(".").join(source) };
        command.args(flags).arg("-o").arg(output).arg(source).args(libraries);
        let remedy = match self.named_by {
            "--cc" => format!("install {name}, or name another compiler with --cc"),
            variable => format!("install gcc or clang, or name a compiler in ${variable}"),
        };
        external_tool::run_tool(command, &format!("compiler {name}"), &remedy).map(drop)
    }
}

/// Flags for a library of code of a mode. 32-bit code is linked without the system's libraries, which
/// this process could not load, and does not check its stack through variables of a thread.
pub fn mode_flags(mode: CodeMode) -> &'static [&'static str] {
    match mode {
        CodeMode::Bits64 => &[],
        CodeMode::Bits32 => &["-m32", "-nostdlib", "-fno-stack-protector", "-Wl,-Bsymbolic", "-Wl,-z,notext"],
    }
}

/// What compilers say if they, or the C library's headers, are for 64-bit code alone.
const WIDE_ALONE: [&str; 7] = [
    "stubs-32.h",
    "bits/libc-header-start.h",
    "bits/c++config.h",
    "skipping incompatible",
    "'-m32'",
    "32-bit mode not compiled in",
    "elf_i386",
];

/// The failure of a compiler or linker, with what helps if it has nothing for 32-bit code.
pub fn explain_mode(failure: Failure, mode: CodeMode) -> Failure {
    let is_of_mode = mode == CodeMode::Bits32 && WIDE_ALONE.iter().any(|said| failure.text().contains(said));
    if is_of_mode {
        return Failure::from(Unavailable {
            what: "a compiler for 32-bit code".to_string(),
            why: failure.text().to_string(),
            remedy: "install one with its headers (Debian: gcc-multilib and g++-multilib), name one with --cc, or use \
                     no headers of the C library: --cflags -ffreestanding"
                .to_string(),
        });
    }
    let checks_stack = mode == CodeMode::Bits32 && failure.text().contains("__stack_chk_fail");
    match checks_stack {
        true => failure.with_remedy("compile the file with -fno-stack-protector: 32-bit code has no thread here"),
        false => failure,
    }
}

/// These flags, followed by the words of `--cflags`.
pub fn join_flags(first: &[&str], more: Option<&str>) -> Result<Vec<String>, Failure> {
    let more =
        shlex::split(more.unwrap_or_default()).ok_or_else(|| Failure::usage("--cflags has an unclosed quote", None))?;
    if let Some(response) = more.iter().find(|word| word.starts_with('@') || word.contains(",@")) {
        let text = format!("--cflags contains `{response}`, a file with further flags, which a result couldn't name");
        return Err(Failure::usage(text, Some("write its flags into --cflags, as in --cflags \"$(cat FILE)\"")));
    }
    Ok(first.iter().map(|flag| flag.to_string()).chain(more).collect())
}

/// Fails if a compiler couldn't read the file or would read it without end.
pub fn require_readable(source: &Path, kind: InputKind) -> Result<(), Failure> {
    let remedy = "name an existing regular file that you may read";
    input::open_input(source, kind).map(drop).map_err(|bad| Failure::from_input(&bad, remedy))
}
