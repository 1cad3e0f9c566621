//! Compares compiled functions, and the compilers that they name, with the compilers' objects.

use cyclescope_marker_designs::compiled_design::CompiledDesign;
use cyclescope_marker_designs::source::design::DesignLanguage;
use object::{Object, ObjectSection};
use std::collections::BTreeSet;

#[test]
fn objects_name_their_compiler() {
    let folder = env!("OUT_DIR");
    let files = match std::fs::read_dir(folder) {
        Ok(files) => files,
        Err(error) => {
            return cyclescope_skipped::report_skipped(format_args!("the build's folder {folder} is gone: {error}"));
        }
    };
    let paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    let designs = CompiledDesign::list_built();
    let (own, c): (Vec<_>, Vec<_>) =
        designs.into_iter().partition(|compiled| compiled.design.language == DesignLanguage::Rust);
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let program = object::File::parse(&*program).unwrap();
    let comment = program.section_by_name(".comment").expect("compilers leave their name in a program");
    let comment = String::from_utf8_lossy(comment.data().unwrap()).into_owned();
    for compiled in own {
        let version = compiled.compiler.split(' ').nth(1).expect("rustc has a version");
        assert!(comment.contains(&format!("rustc version {version}")), "{comment:?} is not of {version}");
    }
    for compiled in c {
        let end = format!("-{}.o", compiled.design.identifier());
        let path = paths.iter().find(|path| path.to_string_lossy().ends_with(&end));
        let bytes = std::fs::read(path.unwrap_or_else(|| panic!("there is no object {end}"))).unwrap();
        let object = object::File::parse(&*bytes).unwrap();
        let comment = object.section_by_name(".comment").expect("compilers leave their name in an object");
        let comment = String::from_utf8_lossy(comment.data().unwrap()).into_owned();
        // The version from the compiler's macro, and from the compiler's note in the object.
        let version = compiled.compiler.split(' ').find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        let version = version.expect("compilers have versions");
        let named = ["GCC", "clang"].iter().any(|name| comment.contains(name));
        assert!(named && comment.contains(version), "{end}: {comment:?} is not of {version}");
        for code in &compiled.codes {
            let name = compiled.section_of(code);
            let section = object.section_by_name(&name).unwrap_or_else(|| panic!("{end} has no {name}"));
            let data = section.data().unwrap();
            assert_eq!(data.len(), code.bytes.len(), "{name}");
            // All bytes except those that the linker filled in.
            let filled: BTreeSet<usize> =
                section.relocations().flat_map(|(at, _)| (at as usize).saturating_sub(3)..at as usize + 4).collect();
            let differs = (0..data.len()).find(|at| data[*at] != code.bytes[*at] && !filled.contains(at));
            assert_eq!(differs, None, "{name}");
        }
    }
}
