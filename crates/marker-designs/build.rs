//! Compiles the markers: those in C with the C compiler, those in Rust as part of the library.

// The library uses more of this module.
#[allow(dead_code)]
#[path = "src/source/mod.rs"]
mod source;

use source::design::DesignLanguage;
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: &str = "src/source";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={FOLDER}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    let mut build = cc::Build::new();
    build.opt_level(2).debug(false).warnings(false);
    // The unlikely path must stay with its function, as in kernel modules.
    build.flag("-fno-reorder-blocks-and-partition");
    build.file(format!("{FOLDER}/probes.c"));
    // Declarations, and the addresses of the tables.
    let (mut text, mut tables) = (String::new(), String::new());
    for design in source::design::ALL.iter().filter(|design| design.package.is_none()) {
        let identifier = design.identifier();
        match design.language {
            DesignLanguage::C => {
                let unit = source::c::write_unit(design, design.guards(), source::context::ALL);
                let file = out.join(format!("{identifier}.c"));
                write(&file, &unit);
                build.file(file);
                let symbol = source::c::table_symbol(design);
                let name = symbol.to_uppercase();
                text.push_str(&format!(
                    "unsafe extern \"C\" {{\n    #[link_name = \"{symbol}\"]\n    static {name}: RawDesign;\n}}\n"
                ));
                tables.push_str(&format!("    &raw const {name},\n"));
            }
            DesignLanguage::Rust => {
                text.push_str(&source::rust::write_module(design, source::context::ALL, &rust_compiler()));
                tables.push_str(&format!("    (&raw const marker_{identifier}::TABLE).cast(),\n"));
            }
        }
    }
    text.push_str(&format!(
        "\n/// The designs that the build compiled.\nconst BUILT: &[*const RawDesign] = &[\n{tables}];\n"
    ));
    write(&out.join("designs.rs"), &text);
    build.compile("cyclescope_markers");
}

fn write(file: &Path, text: &str) {
    std::fs::write(file, text).expect("the build's folder can be written to");
}

/// Version of the Rust compiler, and its optimisation level for this library.
fn rust_compiler() -> String {
    let read_variable = |variable| std::env::var(variable).expect("cargo sets it");
    let output = Command::new(read_variable("RUSTC")).arg("-V").output().expect("the compiler runs");
    let version = String::from_utf8(output.stdout).expect("a version is text");
    format!("{}, opt-level {}", version.trim(), read_variable("OPT_LEVEL"))
}
