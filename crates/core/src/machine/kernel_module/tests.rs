use super::*;
use std::path::PathBuf;

/// A folder that replaces `/`, removed when dropped.
struct Tree(PathBuf);

impl Tree {
    fn new(name: &str, files: &[(&str, &str)]) -> Tree {
        let root = std::env::temp_dir().join(format!("cyclescope-module-{name}-{}", std::process::id()));
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Tree(root)
    }

    fn detect(&self) -> KernelModule {
        KernelModule::detect(&SystemFiles::rooted_at(&self.0), "6.1.0-1")
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const ROOT: (&str, &str) = ("proc/self/status", "CapEff:\t000001ffffffffff\nCapBnd:\t000001ffffffffff\n");
const USER: (&str, &str) = ("proc/self/status", "CapEff:\t0000000000000000\nCapBnd:\t000001ffffffffff\n");
const CONTAINER: (&str, &str) = ("proc/self/status", "CapEff:\t00000000a80425fb\nCapBnd:\t00000000a80425fb\n");
const OPEN: (&str, &str) = ("proc/sys/kernel/modules_disabled", "0\n");
const HEADERS: (&str, &str) = ("lib/modules/6.1.0-1/build/Makefile", "");
const UNLOCKED: (&str, &str) = ("sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
const UNSIGNED: (&str, &str) = ("sys/module/module/parameters/sig_enforce", "N\n");

#[test]
fn a_machine_that_can_load_the_module_has_no_obstacle() {
    for (name, rights, right) in [("root", ROOT, CapabilityRight::Held), ("user", USER, CapabilityRight::AsRoot)] {
        let found = Tree::new(name, &[rights, OPEN, HEADERS, UNLOCKED, UNSIGNED]).detect();
        assert_eq!(found.loaded, Fact::Known(false));
        assert_eq!(found.headers, Fact::Known("/lib/modules/6.1.0-1/build".to_string()));
        assert_eq!((&found.may_load, &found.may_use), (&Fact::Known(right), &Fact::Known(right)));
        assert_eq!((found.lockdown.clone(), found.signed_only.clone()), (Fact::Known(None), Fact::Known(false)));
        assert_eq!(found.list_obstacles(), []);
    }
}

/// Obstacles on a machine with one changed file.
fn obstacles(name: &str, other: (&str, &str)) -> Vec<ModuleObstacle> {
    let mut files = vec![ROOT, OPEN, HEADERS, UNLOCKED, UNSIGNED];
    files.retain(|(path, _)| *path != other.0);
    files.push(other);
    Tree::new(name, &files).detect().list_obstacles()
}

#[test]
fn every_obstacle_is_named() {
    let cpu = |flags: &str| format!("processor\t: 0\nflags\t\t: fpu {flags} lm\nbugs\t\t: fred\n\n");
    let (fred, tdx, sev) = (cpu("fred"), cpu("hypervisor tdx_guest"), cpu("hypervisor sev_es"));
    let cases = [
        (("proc/sys/kernel/modules_disabled", "1"), "until the next boot"),
        (("sys/kernel/security/lockdown", "none [integrity] confidentiality"), "locked down (integrity)"),
        (CONTAINER, "load it on the host"),
        (("sys/hypervisor/guest_type", "PV\n"), "Xen PV"),
        (("proc/cpuinfo", &fred), "fred=off"),
        (("proc/cpuinfo", &tdx), "TDX"),
        (("proc/cpuinfo", &sev), "SEV-ES"),
    ];
    for (index, (other, words)) in cases.into_iter().enumerate() {
        let found = obstacles(&format!("case{index}"), other);
        assert_eq!(found.len(), 1, "{other:?}: {found:?}");
        assert!(found[0].text.contains(words) && found[0].remedy.is_none(), "{found:?}");
    }
    let signed = obstacles("signed", ("sys/module/module/parameters/sig_enforce", "Y\n"));
    assert!(signed[0].remedy.as_ref().unwrap().contains("sign-file"), "{signed:?}");
}

#[test]
fn harmless_flags_are_no_obstacle() {
    let host = "flags\t\t: fpu svm sev sev_es sev_snp lm\n\n";
    let guest = "flags\t\t: fpu hypervisor lm\n\n";
    for (name, other) in [
        ("host", ("proc/cpuinfo", host)),
        ("guest", ("proc/cpuinfo", guest)),
        ("hvm", ("sys/hypervisor/guest_type", "HVM\n")),
    ] {
        assert_eq!(obstacles(name, other), [], "{name}");
    }
}

#[test]
fn missing_headers_give_a_remedy_and_missing_files_a_reason() {
    let found = Tree::new("headers", &[ROOT, OPEN, UNLOCKED, UNSIGNED]).detect().list_obstacles();
    assert!(found.len() == 1 && found[0].remedy.as_ref().unwrap().contains("linux-headers"), "{found:?}");
    let nothing = KernelModule::detect(&SystemFiles::rooted_at("/nonexistent"), "6.1.0-1");
    assert!(nothing.loaded.why().is_some() && nothing.may_load.why().is_some());
    assert!(nothing.list_obstacles()[0].text.contains("modules_disabled does not exist"));
}

#[test]
fn a_loaded_module_reports_its_reason() {
    const LOADED: &str = "sys/module/cyclescope/parameters/refused";
    for (index, (text, refused)) in
        [("\n", None), ("(null)\n", None), ("a reason\n", Some("a reason"))].into_iter().enumerate()
    {
        let found = Tree::new(&format!("loaded{index}"), &[ROOT, (LOADED, text)]).detect();
        assert_eq!(found.loaded, Fact::Known(true));
        assert_eq!(found.refused, Fact::Known(refused.map(str::to_string)));
    }
}
