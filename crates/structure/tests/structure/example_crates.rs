//! Tests of the check itself, on small example crates with faults.

use crate::arrows::{Arrows, arrows};
use crate::claims::{Act, Claim, Places, Within, broken};
use crate::order::{circles_of_files, circles_of_rooms, upward};
use crate::source::Source;
use std::path::Path;

/// A crate of these files, which include `lib.rs`.
fn source(files: &[(&str, &str)]) -> Source {
    let read = |file: &Path| {
        files.iter().find(|(name, _)| Path::new("src").join(name) == file).map(|(_, text)| (*text).to_string())
    };
    let mut source = Source::default();
    source.read("planted", Path::new("src/lib.rs"), &read);
    source
}

/// The arrows of a crate of these files.
fn example_arrows(files: &[(&str, &str)]) -> Arrows {
    arrows(&source(files))
}

/// The names that one file takes from another.
fn names(arrows: &Arrows, from: &str, to: &str) -> Vec<String> {
    let all = arrows.get(&Path::new("src").join(from));
    let names = all.and_then(|all| all.get(&Path::new("src").join(to)));
    names.into_iter().flatten().cloned().collect()
}

const TWO: &str = "mod a; mod b;";

#[test]
fn a_circle_is_found_with_the_names_that_tie_it() {
    let arrows = example_arrows(&[
        ("lib.rs", TWO),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "pub struct B; pub fn back() { let _ = super::a::A::default(); }"),
    ]);
    let circles = circles_of_files(&arrows);
    assert_eq!(circles, ["a circle of 2 files\n  src/a.rs -> src/b.rs: B\n  src/b.rs -> src/a.rs: A\n"]);
}

#[test]
fn a_longer_circle_is_reported_once() {
    let arrows = example_arrows(&[
        ("lib.rs", "mod a; mod b; mod c; mod d;"),
        ("a.rs", "use crate::b::b; pub fn a() { b() }"),
        ("b.rs", "use crate::c::c; pub fn b() { c() }"),
        ("c.rs", "use crate::a::a; pub fn c() { a() }"),
        ("d.rs", "use crate::a::a; pub fn d() { a() }"),
    ]);
    let circles = circles_of_files(&arrows);
    assert_eq!(circles.len(), 1);
    assert!(!circles[0].contains("d.rs"), "{}", circles[0]);
}

#[test]
fn arrows_in_one_direction_are_not_a_circle() {
    let arrows =
        example_arrows(&[("lib.rs", TWO), ("a.rs", "use crate::b::B; pub struct A(B);"), ("b.rs", "pub struct B;")]);
    assert_eq!(names(&arrows, "a.rs", "b.rs"), ["B"]);
    assert!(circles_of_files(&arrows).is_empty());
}

#[test]
fn a_parent_and_a_child_that_use_each_other_are_a_circle() {
    let child = ("room/child.rs", "use super::Shared; pub fn of(_: &Shared) {}");
    let circle = example_arrows(&[
        ("lib.rs", "mod room;"),
        ("room/mod.rs", "mod child; pub struct Shared; pub fn run() { child::of(&Shared) }"),
        child,
    ]);
    assert_eq!(circles_of_files(&circle).len(), 1);
    // A module that only declares its child and re-exports its name does not use it.
    let face = example_arrows(&[
        ("lib.rs", "mod room;"),
        ("room/mod.rs", "mod child; pub use child::of; pub struct Shared;"),
        child,
    ]);
    assert!(circles_of_files(&face).is_empty());
}

#[test]
fn names_are_followed_to_the_file_that_defines_them() {
    let arrows = example_arrows(&[
        ("lib.rs", "pub mod user; mod room; pub mod other;"),
        ("user.rs", "use crate::room::{Thing as Other, inner}; pub fn f(_: Other) { inner::g() }"),
        ("room/mod.rs", "pub mod inner; pub use inner::Thing;"),
        ("room/inner.rs", "pub struct Thing; pub fn g() {}"),
        ("other.rs", "use crate::room::*; pub fn f(_: Thing) { assert!(inner::g() == ()); }"),
    ]);
    assert_eq!(names(&arrows, "user.rs", "room/inner.rs"), ["Thing", "g"]);
    assert_eq!(names(&arrows, "other.rs", "room/inner.rs"), ["Thing", "g"]);
    assert!(names(&arrows, "user.rs", "room/mod.rs").is_empty());
}

#[test]
fn a_method_apart_from_its_type_is_an_arrow_to_its_file() {
    let arrows = example_arrows(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", "pub struct A;"),
        ("b.rs", "use crate::a::A; impl A { pub fn apart(&self) {} fn hidden(&self) {} pub fn new() -> A { A } }"),
        ("c.rs", "use crate::a::A; pub fn f(a: &A) { a.apart(); a.hidden(); let _ = A::new(); }"),
    ]);
    assert_eq!(names(&arrows, "c.rs", "b.rs"), ["A", "apart"]);
}

#[test]
fn tests_may_use_anything() {
    let arrows = example_arrows(&[
        ("lib.rs", TWO),
        ("a.rs", "use crate::b::B; pub struct A(B);"),
        ("b.rs", "pub struct B; #[cfg(test)] mod tests { use crate::a::A; fn f(_: A) {} }"),
    ]);
    assert!(circles_of_files(&arrows).is_empty());
}

#[test]
fn rooms_in_a_circle_are_found_even_if_no_files_are() {
    let arrows = example_arrows(&[
        ("lib.rs", "mod one; mod two;"),
        ("one/mod.rs", "pub mod low; mod high;"),
        ("one/low.rs", "pub struct Low;"),
        ("one/high.rs", "use crate::two::middle::Middle; pub struct High(Middle);"),
        ("two/mod.rs", "pub mod middle;"),
        ("two/middle.rs", "use crate::one::low::Low; pub struct Middle(Low);"),
    ]);
    assert!(circles_of_files(&arrows).is_empty());
    let circles = circles_of_rooms(&arrows, Path::new("src"));
    assert_eq!(circles.len(), 1);
    assert!(circles[0].starts_with("a circle of rooms in src: one, two\n"), "{}", circles[0]);
}

#[test]
fn only_upward_arrows_are_reported() {
    let arrows = example_arrows(&[
        ("lib.rs", "mod ground; mod roof;"),
        ("ground.rs", "use crate::roof::Roof; pub struct Ground(Roof);"),
        ("roof.rs", "pub struct Roof;"),
    ]);
    let found = upward(&arrows, Path::new("src"), &[&["ground"], &["roof"]]);
    assert_eq!(found, ["an arrow up, from ground to roof\n  src/ground.rs -> src/roof.rs: Roof"]);
    assert!(upward(&arrows, Path::new("src"), &[&["roof"], &["ground"]]).is_empty());
    let unplaced = upward(&arrows, Path::new("src"), &[&["roof"]]);
    assert_eq!(unplaced, ["the room ground has no place in the order of rooms"]);
}

/// Two studies, one of which breaks every rule.
const HOUSE: &[(&str, &str)] = &[
    ("lib.rs", "mod executor; mod runner; mod study;"),
    ("executor/mod.rs", "pub mod user; pub struct Batch { pub rounds: u32 } impl Batch { pub fn pause(&self) {} }"),
    ("executor/user.rs", "pub struct User;"),
    (
        "runner.rs",
        "use crate::executor::Batch; pub fn run() { let batch = Batch { rounds: 1 }; batch.pause(); }
         #[cfg(test)] mod tests { fn f() { println!(\"a test may\") } }",
    ),
    ("study/mod.rs", "mod good; mod bad;"),
    ("study/good.rs", "pub fn f() { crate::runner::run() }"),
    (
        "study/bad.rs",
        "use crate::executor::{Batch, user::User};
         pub fn f(_: User) { assert!(Batch { rounds: 2 }.rounds == 2); Batch { rounds: 3 }.pause(); print!(\"\") }",
    ),
];

/// Violations of a claim in this crate.
fn faults(act: Act, within: Places, by: Places) -> Vec<String> {
    let source = source(HOUSE);
    let claim = Claim { text: "planted", act, within: Within::These(within), by };
    let within: Vec<String> = within.iter().map(|place| place.to_string()).collect();
    broken(&source, &arrows(&source), Path::new("src"), &claim, &within)
}

#[test]
fn a_false_claim_is_found_with_file_and_name() {
    let runner: Places = &["runner.rs"];
    assert_eq!(faults(Act::Builds("Batch"), &[], runner), ["  study/bad.rs: Batch"]);
    assert_eq!(faults(Act::Calls("pause"), &[], runner), ["  study/bad.rs: pause"]);
    assert_eq!(faults(Act::Invokes(&["print", "println"]), &[], &[]), ["  study/bad.rs: print"]);
    let named = faults(Act::Names("executor/mod.rs", "Batch"), &[], runner);
    assert_eq!(named, ["  study/bad.rs: Batch of executor/mod.rs"]);
    let used = faults(Act::Uses(&["executor/user.rs"]), &["study/"], &[]);
    assert_eq!(used, ["  study/bad.rs: User of executor/user.rs"]);
}

#[test]
fn a_true_claim_passes_and_an_unneeded_exception_is_reported() {
    assert!(faults(Act::Builds("Batch"), &[], &["runner.rs", "study/"]).is_empty());
    assert!(faults(Act::Builds("Batch"), &["study/good.rs"], &[]).is_empty());
    let unneeded = faults(Act::Builds("Batch"), &[], &["runner.rs", "study/bad.rs", "study/good.rs"]);
    assert_eq!(unneeded, ["  study/good.rs: an exception that nothing needs"]);
}
