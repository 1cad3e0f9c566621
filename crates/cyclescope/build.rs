//! Compiles the markers of `study::marker` with the C compiler.

#[allow(dead_code)]
#[path = "src/study/marker/source/mod.rs"]
mod source;

use std::path::PathBuf;

const FOLDER: &str = "src/study/marker/source";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={FOLDER}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo names it"));
    let mut build = cc::Build::new();
    build.opt_level(2).debug(false).warnings(false);
    // The unlikely path shall stay with its function, as it does in a module of the kernel's.
    build.flag("-fno-reorder-blocks-and-partition");
    build.file(format!("{FOLDER}/probes.c"));
    let mut list = String::from("unsafe extern \"C\" {\n");
    let mut all = String::new();
    for design in source::design::ALL {
        let text = source::c::unit(design, source::guard::ALL, source::context::ALL);
        let file = out.join(format!("{}.c", design.identifier()));
        std::fs::write(&file, text).expect("the build's folder can be written to");
        build.file(file);
        let symbol = format!("cyclescope_marker_{}", design.identifier());
        list.push_str(&format!(
            "    #[link_name = \"{symbol}\"]\n    static {}: RawDesign;\n",
            symbol.to_uppercase()
        ));
        all.push_str(&format!("    &raw const {},\n", symbol.to_uppercase()));
    }
    list.push_str("}\n\n/// The designs that the build compiled.\n");
    list.push_str(&format!("const BUILT: &[*const RawDesign] = &[\n{all}];\n"));
    std::fs::write(out.join("designs.rs"), list).expect("the build's folder can be written to");
    build.compile("cyclescope_markers");
}
