//! Calls of functions of odd signatures: they get the right arguments, or are refused with their
//! signature.
//!
//! The functions are compiled once and loaded into the test. The code of a call runs as it would in
//! a measurement, and the function notes what it got.

use crate::args::{CallArgs, CallTarget, TemplateValue};
use crate::input::call_parameters::{CallParameters, CallRequest, FunctionInstance};
use crate::input::debug_info;
use crate::input::empty_function::EmptyFunctions;
use crate::input::function_symbol::{self, CallbackSymbol, NameMatch};
use cyclescope::asm::CodeMode;
use cyclescope::program::memory::AreaFill;
use cyclescope::record::SerializedBy;
use std::ffi::{CStr, CString};
use std::path::Path;
use std::process::Command;

const SOURCE: &str = include_str!("functions.cpp");

/// Calls, and what the function notes.
const PASSED: &[(&str, &str)] = &[
    ("int_one(-5)", "-5"),
    ("long_six(1, -2, 3, 0x7fffffffffffffff, 5, 6)", "1 -2 3 9223372036854775807 5 6"),
    ("long_eight(1, 2, 3, 4, 5, 6, 7, -8)", "1 2 3 4 5 6 7 -8"),
    ("small(-1, -2, -3, 255, 65535, 4294967295, true)", "-1 -2 -3 255 65535 4294967295 yes"),
    ("small(-128, 0x7fff, INT_MIN, 0b11, 1_000, UINT32_MAX, 0)", "-128 32767 -2147483648 3 1000 4294967295 no"),
    ("long_six(1e3, -2.0, 1M, LONG_MAX, 0o17, 1'000)", "1000 -2 1048576 9223372036854775807 15 1000"),
    ("float_one(1e-40)", "9.99995e-41f"),
    ("double_one(3)", "3"),
    ("float_one(0.5)", "0.5f"),
    ("float_one(-2.5f)", "-2.5f"),
    ("double_ten(1, 2, 3, 4, 5, 6, 7, 8, 9.5, 1e100)", "1 2 3 4 5 6 7 8 9.5 1e+100"),
    ("mixed(1, 0.5, 0.25, 7, 1e10, out+8)", "1 0.5 0.25f 7 1e+10 second+8"),
    ("scaled(buffer, 0.5)", "buffer+0 0.5f"),
    ("counted(buffer+16, 4096)", "buffer+16 4096"),
    ("long_double(-1.5)", "-1.5L"),
    ("long_double(1e300)", "1e+300L"),
    ("long_doubles(1, 2.5, 3, 4.5, 5)", "1 2.5L 3 4.5L 5"),
    ("after_seven(1, 2, 3, 4, 5, 6, 7, 8.5)", "7 8.5L"),
    ("wide(-2)", "ffffffffffffffff fffffffffffffffe"),
    ("wide(0x112345678aabbccdd00000000)", "112345678 aabbccdd00000000"),
    ("wide_split(1, 2, 3, 4, 5, 6, 7)", "1 5 0 6 7"),
    ("two({1, -2})", "1 -2"),
    ("floats({1, 2}, 3)", "1f 2f 3f"),
    ("floats3({1, 2, 3}, 4)", "1f 2f 3f 4f"),
    ("long_and_double({1, 2.5}, 3, 4)", "1 2.5 3 4"),
    ("double_and_long({1.5, 2}, 3, 4)", "1.5 2 3 4"),
    ("char_and_float({-1, 2.5}, 3)", "-1 2.5f 3"),
    ("three(1, {2, 3, 4}, 5)", "1 2 3 4 5"),
    ("ints({{1, 2, 3}})", "1 2 3"),
    ("nested({{1, 2}, {3, 4}})", "1 2 3f 4f"),
    ("packed({1, 2}, 3)", "1 2 3"),
    ("packed_wide(1, 2, 3, 4, 5, 6, 7, {8, 9})", "7 0 8 9"),
    ("aligned(1, {2, 3}, 4)", "1 2 3 4"),
    ("aligned_on_stack(1, 2, 3, 4, 5, 6, 7, {8, 9})", "7 8 9"),
    ("extended(1, {2.5})", "1 2.5L"),
    ("empty(1, {}, 2)", "1 2"),
    ("derived({{1}, 2.5})", "1 2.5f"),
    ("split(1, 2, 3, 4, 5, {6, 7.5}, {{8, 9, 10}}, 11)", "5 6 7.5 10 11"),
    ("no_vectors_left(1, 2, 3, 4, 5, 6, 7, {8, 9, 10}, 11)", "7 8f 9f 10f 11"),
    ("either({-5})", "-5"),
    ("plain(2, -1)", "2 -1"),
    ("plain(Two_, Small::A)", "2 -1"),
    ("plain(b=A, a=One)", "1 -1"),
    ("complex_double({1, 2}, 3)", "1 2 3"),
    ("complex_float({1, 2})", "1f 2f"),
    ("text(\"a b\", 'c', \"\\x64\")", "a b 99 d"),
    ("copy(out, buffer, size)", "second+0 buffer+0 1048576"),
    ("copy(out:64+8, buffer:4096, size/8)", "second+8 buffer+0 512"),
    ("references(buffer+4, out)", "buffer+4 second+0"),
    ("compared(buffer, NULL)", "buffer+0 null"),
    ("compared(buffer, &order)", "buffer+0 compares"),
    ("compared(buffer, order)", "buffer+0 compares"),
    ("comparison({1, &order}, 2)", "1 compares 2"),
    ("nothing()", "called"),
    ("variadic(3, 1.5f, 7, buffer)", "3 1.5 7 buffer+0"),
    ("variadic_text(3, \"abc\")", "3 abc"),
    ("big_result(5, 0.5)", "5 0.5"),
    ("two_result(5)", "5"),
    ("floats_result(5)", "5"),
    ("long_double_result(1.5, 3)", "1.5L 3"),
    ("extended_result(3)", "3"),
    ("vector_result(3)", "3"),
    ("double_result(3)", "3"),
    ("many_bits_result(3)", "3"),
    ("string_result(3)", "3"),
    ("view({5, \"hello there\"})", "hello"),
    ("defaulted({3})", "3"),
    ("moved({3})", "3"),
    ("fixed(out)", "second+0"),
    ("odd::Foo::method(buffer, 3)", "buffer+0 3"),
    ("Foo::method(3)", "buffer+0 3"),
    ("shared(3)", "3"),
    ("odd::over(double)(3)", "3"),
    ("generic<float>(0.5)", "0.5f"),
    ("_ZN3odd7genericIiEEvT_(-3)", "-3"),
    ("hidden(buffer, 3)", "buffer+0 3"),
    ("hidden(n=3, p=out)", "second+0 3"),
];

/// Names, values of --arg, and what the function notes.
const PASSED_AFTER_BUFFER: &[(&str, &str, &str)] = &[
    ("counted", "5", "buffer+0 5"),
    ("counted", "n=5", "buffer+0 5"),
    ("counted", "p=@buffer:4096+8, n=size", "buffer+8 4096"),
    ("counted", "out, 7", "second+0 7"),
    ("scaled", "0.5", "buffer+0 0.5f"),
    ("int_one", "7", "7"),
    ("copy", "buffer+8, 5", "buffer+0 buffer+8 5"),
    ("copy", "n=5", "buffer+0 buffer+0 5"),
    ("copy", "out, buffer, 5", "second+0 buffer+0 5"),
    ("odd::Foo::method(int)", "3", "buffer+0 3"),
    ("nothing", "", "called"),
];

/// Calls that are refused, and a part of the reason.
const REFUSED: &[(&str, &str)] = &[
    ("int_one", "`int a` needs a value"),
    ("counted", "`int n` needs a value"),
    ("counted(buffer)", "`int n` needs a value"),
    ("counted(buffer, 1, 2)", "2 has no parameter"),
    ("counted(5, 5)", "5 can't be `char *p`"),
    ("int_one(buffer)", "buffer can't be `int a`"),
    ("int_one(0.5)", "0.5 can't be `int a`"),
    ("int_one(5000000000)", "5000000000 is outside -2147483648 to 2147483647; the function is"),
    ("int_one(0xffffffff)", "outside -2147483648 to 2147483647; -1 has the same bits"),
    ("int_one(-2147483649)", "outside"),
    ("int_one(1e10)", "outside"),
    ("plain(Three, A)", "Three can't be `Plain a`: the values are One, Two_; the function is"),
    ("int_one(RED)", "RED can't be `int a`: the type has no named values"),
    ("double_one(RED)", "RED can't be `double a`"),
    ("counted(buffr, 5)", "buffr can't be `char *p`: a pointer is `buffer`"),
    ("two({1, RED})", "no named values"),
    ("variadic(0, RED)", "RED can't be a further argument"),
    ("plain(1, 300)", "300 is outside -128 to 127; the function is"),
    ("plain(-1, 1)", "-1 is outside 0 to 4294967295; 4294967295 has the same bits"),
    ("small(128, 0, 0, 0, 0, 0, 0)", "128 is outside -128 to 127; -128 has the same bits"),
    ("small(0, -32769, 0, 0, 0, 0, 0)", "outside -32768 to 32767"),
    ("small(0, 0, 0, 256, 0, 0, 0)", "256 is outside 0 to 255; the function is"),
    ("small(0, 0, 0, -1, 0, 0, 0)", "-1 is outside 0 to 255; 255 has the same bits"),
    ("small(0, 0, 0, 0, size, 0, 0)", "1048576 is outside 0 to 65535"),
    ("small(0, 0, 0, 0, 0, -1, 0)", "-1 is outside 0 to 4294967295"),
    ("small(0, 0, 0, 0, 0, 0, 2)", "2 is outside 0 to 1; the function is"),
    ("packed({200, 1}, 3)", "200 is outside -128 to 127"),
    ("copy(out, buffer, -1)", "18446744073709551615 has the same bits"),
    ("long_six(18446744073709551615, 0, 0, 0, 0, 0)", "-1 has the same bits"),
    ("variadic(0, 18446744073709551616)", "outside -9223372036854775808 to 18446744073709551615"),
    ("double_one(9007199254740993)", "rounds 9007199254740993 to 9007199254740992"),
    ("float_one(16777217)", "rounds 16777217 to 16777216"),
    ("float_one(1e39)", "outside -3.4028235e38 to 3.4028235e38"),
    ("float_one(1e-46)", "nearer to 0"),
    ("two(1, 2)", "has no parameter"),
    ("two({1})", "the structure has 2 members"),
    ("two(5)", "list of its members"),
    ("scaled(\"text\", 0.5)", "array of `char`"),
    ("compared(buffer, out)", "is the name of one, such as &compare"),
    ("compared(buffer, 5)", "is the name of one, such as &compare"),
    ("compared(buffer, &no_such_function)", "no function of this name"),
    ("counted(&order, 5)", "&order can't be `char *p`: it is no pointer to a function"),
    ("int_one(&order)", "&order can't be `int a`"),
    ("compared", "needs a value"),
    ("hidden(m=3)", "no parameter `m`"),
    ("hidden(n=3, n=4)", "`n` has two values"),
    ("vector(1)", "a vector of 16 bytes"),
    ("quad(1)", "can't be passed"),
    ("bits({1, 2})", "bit fields"),
    ("bits_result(1)", "it returns a type with bit fields"),
    ("long_double_complex({1, 2})", "can't be passed"),
    ("extended_on_stack(1, 2, 3, 4, 5, 6, 7, {8})", "depends on whether its type is packed"),
    ("over_aligned({1})", "aligned to 64 bytes"),
    ("string(\"x\")", "passed by its address"),
    ("owner({buffer})", "passed by its address"),
    ("copied({1})", "passed by its address"),
    ("fixed_value({1})", "passed by its address"),
    ("polymorphic({1})", "`Virtual v` can't be passed"),
    ("holder({{1}, 2})", "passed by its address"),
    ("member(1)", "a pointer to a member"),
];

/// The library in this process.
struct LoadedFunctions {
    image: Vec<u8>,
    handle: *mut libc::c_void,
}

/// Bytes of the buffer and of the second memory of a test.
const BYTES: usize = 1 << 20;

impl LoadedFunctions {
    /// Compiles and loads the functions; `None` without a compiler.
    fn compile(folder: &Path) -> Option<LoadedFunctions> {
        let [source, library] = ["functions.cpp", "functions.so"].map(|name| folder.join(name));
        std::fs::write(&source, SOURCE).expect("a file");
        let words = ["-std=c++17", "-O1", "-g", "-fPIC", "-shared", "-w"];
        let built = Command::new("c++").args(words).arg("-o").arg(&library).arg(&source).output();
        let built = match built {
            Ok(built) => built,
            Err(error) => {
                cyclescope_skipped::report_skipped(format_args!("c++: {error}"));
                return None;
            }
        };
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let image = std::fs::read(&library).expect("a file");
        let path = CString::new(library.to_str().expect("text")).expect("a path");
        // SAFETY: the library is the test's own.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        assert!(!handle.is_null());
        Some(LoadedFunctions { image, handle })
    }

    /// The address of a variable.
    fn variable(&self, name: &CStr) -> *mut u8 {
        // SAFETY: the library is loaded, and the name ends with NUL.
        let address = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        assert!(!address.is_null(), "{name:?}");
        address.cast()
    }

    /// The address to which the library's addresses are relative.
    fn load_base(&self) -> u64 {
        let image = function_symbol::find_function(&self.image, "nothing", NameMatch::Linker);
        let own = image.unwrap().expect("a function").address.expect("an address");
        self.variable(c"nothing") as u64 - own
    }

    /// Makes a call as in a measurement and returns what the function noted.
    fn call(&self, text: &str, args: &CallArgs) -> Result<String, String> {
        let target = CallTarget::new(text);
        let find = |name: &str, worst| function_symbol::find_function(&self.image, name, worst);
        let whole = find(&target.text, NameMatch::Demangled).map_err(|failure| failure.text().to_string())?;
        let arguments = target.arguments.clone().filter(|_| whole.is_none()).transpose()?;
        let found = whole.map_or_else(|| find(&target.name, NameMatch::End), |whole| Ok(Some(whole)));
        let symbol = found.map_err(|failure| failure.text().to_string())?.ok_or("no such function")?;
        let address = symbol.address.expect("an address");
        let types = debug_info::read_types(&self.image, Path::new("functions.so"), address, &symbol.display);
        let signature = types.signature().expect("a signature");
        let values = arguments.iter().flatten().flat_map(|argument| argument.value.named_functions());
        let callbacks: Vec<CallbackSymbol> = values
            .filter_map(|value| {
                let name = value.to_string();
                let symbol = find(name.trim_start_matches('&'), NameMatch::End).ok()??;
                Some(CallbackSymbol { value: value.clone(), symbol })
            })
            .collect();
        let request = CallRequest {
            name: &symbol.display,
            args,
            arguments: arguments.as_deref(),
            types: &types,
            setup: None,
            callbacks: &callbacks,
        };
        let refused = |failure: crate::output::Failure| {
            assert!(failure.text().contains(&signature.text), "{}", failure.text());
            failure.text().to_string()
        };
        let parameters = CallParameters::new(&[request], CodeMode::Bits64, 1).map_err(refused)?;
        let empty = EmptyFunctions::nowhere(CodeMode::Bits64);
        let load_base = self.load_base();
        let callbacks = callbacks.iter().map(|callback| load_base + callback.symbol.address.expect("an address"));
        let callbacks = callbacks.collect();
        let instance = FunctionInstance { function: load_base + address, setup: None, callbacks, empty };
        let waits = match parameters.serialized {
            None => vec![None, Some(SerializedBy::Fence), Some(SerializedBy::Result)],
            given => vec![given],
        };
        let mut noted: Vec<String> = waits
            .into_iter()
            .map(|serialized| {
                let subject = parameters.build_subject(0, std::slice::from_ref(&instance), text, serialized);
                let snippet = &subject.instances[0];
                self.run(snippet.init(), snippet.code(), &parameters)
            })
            .collect();
        noted.dedup();
        assert_eq!(noted.len(), 1, "{text}: {noted:?}");
        Ok(noted.remove(0))
    }

    /// Runs a call nine times, more than the x87 stack has room for, and returns what the last one
    /// noted.
    fn run(&self, init: &[u8], code: &[u8], parameters: &CallParameters) -> String {
        let mut buffer = vec![0u128; BYTES / 16];
        let mut second = vec![0u8; BYTES + 4096];
        if let [_, _, area] = parameters.program_memory().areas.as_slice()
            && let AreaFill::Image(bytes) = &area.fill
        {
            second[..bytes.len()].copy_from_slice(bytes);
        }
        // push rbx; push rbp; push r12 to r15; mov r15, rsp; and rsp, -16; mov r14, rdi; mov rbx, rsi
        let begin = [
            0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57, 0x49, 0x89, 0xe7, 0x48, 0x83, 0xe4, 0xf0, 0x49,
            0x89, 0xfe, 0x48, 0x89, 0xf3,
        ];
        // mov rsp, r15; pop r15 to r12; pop rbp; pop rbx; ret
        let end = [0x4c, 0x89, 0xfc, 0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3];
        let program = [&begin[..], init, code, &end].concat();
        const CODE_BYTES: usize = 1 << 14;
        assert!(program.len() <= CODE_BYTES);
        // SAFETY: the mapping is new and holds the program, which follows the calling convention.
        // The three variables are those of the library.
        unsafe {
            let (write, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let pages = libc::mmap(std::ptr::null_mut(), CODE_BYTES, write, flags, -1, 0);
            assert_ne!(pages, libc::MAP_FAILED);
            pages.cast::<u8>().copy_from_nonoverlapping(program.as_ptr(), program.len());
            assert_eq!(libc::mprotect(pages, CODE_BYTES, libc::PROT_READ | libc::PROT_EXEC), 0);
            let run: extern "C" fn(*mut u128, *mut u8) = std::mem::transmute(pages);
            self.variable(c"buffer_start").cast::<*mut u8>().write(buffer.as_mut_ptr().cast());
            self.variable(c"second_start").cast::<*mut u8>().write(second.as_mut_ptr());
            for _ in 0..9 {
                self.variable(c"noted").write(0);
                run(buffer.as_mut_ptr(), second.as_mut_ptr());
            }
            libc::munmap(pages, CODE_BYTES);
            CStr::from_ptr(self.variable(c"noted").cast()).to_str().expect("text").to_string()
        }
    }
}

fn default_args() -> CallArgs {
    CallArgs { serialize: None, setup: None, values: Vec::new(), buffer: None, contents: None, stack: None }
}

#[test]
fn functions_get_their_arguments_or_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(functions) = LoadedFunctions::compile(folder.path()) else { return };
    for (call, noted) in PASSED {
        assert_eq!(functions.call(call, &default_args()).as_deref(), Ok(*noted), "{call}");
    }
    for (name, values, noted) in PASSED_AFTER_BUFFER {
        let values = CallTarget::new(&format!("f({values})")).arguments.expect("a list").expect("values");
        let values = values.into_iter().map(TemplateValue::Value).collect();
        let args = CallArgs { values, ..default_args() };
        assert_eq!(functions.call(name, &args).as_deref(), Ok(*noted), "{name}");
    }
    for (call, reason) in REFUSED {
        let refused = functions.call(call, &default_args()).expect_err(call);
        assert!(refused.contains(reason), "{call}: {refused}");
    }
    let ambiguous = functions.call("over(5)", &default_args()).expect_err("two functions");
    assert!(ambiguous.contains("odd::over(double); odd::over(int)"), "{ambiguous}");
}
