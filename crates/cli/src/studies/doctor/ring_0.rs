//! The section on the kernel module.

use crate::output::Failure;
use crate::output::page::Page;
use cyclescope::doctor::Diagnosis;
use cyclescope::machine::Machine;
use cyclescope::machine::fact::Fact;
use cyclescope::machine::kernel_module::{KernelModule, ModuleStudy, Right};

/// What code in ring 0 needs, and what of it is here.
pub fn section(page: &mut Page, machine: &Machine, diagnosis: &Diagnosis) -> Result<(), Failure> {
    let facts = &machine.kernel_module;
    page.section("Ring 0, by the kernel module")?;
    let alone = machine.topology.online.known().is_some_and(|cpus| cpus.len() == 1);
    match (&diagnosis.kernel_module, &facts.loaded) {
        (Fact::Known(module), _) => return loaded(page, module, facts, alone),
        (Fact::Unknown(why), Fact::Known(true)) => return page.row("module", &format!("loaded, but {why}")),
        (Fact::Unknown(_), Fact::Known(false)) => page.row("module", "not loaded")?,
        (_, Fact::Unknown(why)) => page.unknown("module", why)?,
    }
    if alone {
        page.row("endless code", ONE_CPU)?;
    }
    loadable(page, facts)
}

const ONE_CPU: &str = "refused without --force: with only one CPU, nothing can end it";
const NO_NMI: &str = "refused without --force: an NMI, which would end it, did not arrive";

fn loaded(page: &mut Page, module: &ModuleStudy, facts: &KernelModule, alone: bool) -> Result<(), Failure> {
    page.row("module", &format!("loaded, version {} of its interface", module.version))?;
    if !module.code {
        let why = facts.refused.known().cloned().flatten().unwrap_or_default();
        page.row("code", &format!("refused, markers alone run: {why}"))?;
    }
    page.row(
        "endless code",
        match (module.deadline, alone) {
            (true, _) => "ended by another CPU",
            (false, true) => ONE_CPU,
            (false, false) => NO_NMI,
        },
    )?;
    let ppm =
        module.tsc_ppm.map_or(String::new(), |ppm| format!("; {ppm:+.1} ppm from the rate measured here"));
    page.row("its TSC rate", &format!("{:.3} MHz, by the kernel{ppm}", module.tsc.megahertz()))?;
    page.row(
        "APERF",
        if module.aperf { "counted beside every measurement" } else { "the processor does not offer it" },
    )
}

fn loadable(page: &mut Page, facts: &KernelModule) -> Result<(), Failure> {
    match &facts.headers {
        Fact::Known(folder) => page.row("headers", folder)?,
        Fact::Unknown(why) => page.row("headers", &format!("none: {why}"))?,
    }
    page.fact("takes modules", &facts.closed, |closed| {
        if *closed { "not until the next boot" } else { "yes" }.to_string()
    })?;
    page.fact("signed only", &facts.signed_only, |only| if *only { "yes" } else { "no" }.to_string())?;
    page.fact("lockdown", &facts.lockdown, |how| how.clone().unwrap_or("none".to_string()))?;
    page.fact("may load it", &facts.may_load, |right| {
        match right {
            Right::Held => "yes",
            Right::AsRoot => "root may",
            Right::Never => "no: a container has removed CAP_SYS_MODULE",
        }
        .to_string()
    })?;
    for obstacle in facts.obstacles() {
        page.row("obstacle", &obstacle.text)?;
    }
    Ok(())
}
