//! The section on the kernel module.

use crate::output::Failure;
use crate::output::page::TextPage;
use cyclescope::doctor::Diagnosis;
use cyclescope::machine::Machine;
use cyclescope::machine::fact::Fact;
use cyclescope::machine::kernel_module::{CapabilityRight, KernelModule, ModuleStudy};

/// Prints what code in ring 0 needs, and which of it is present.
pub fn print_kernel_module(page: &mut TextPage, machine: &Machine, diagnosis: &Diagnosis) -> Result<(), Failure> {
    let facts = &machine.kernel_module;
    page.begin_section("Ring 0, by the kernel module")?;
    let alone = machine.topology.online.known().is_some_and(|cpus| cpus.len() == 1);
    match (&diagnosis.kernel_module, &facts.loaded) {
        (Fact::Known(module), _) => return print_loaded_module(page, module, facts, alone),
        (Fact::Unknown(why), Fact::Known(true)) => {
            return page.print_row("module", &format!("loaded, but {why}"));
        }
        (Fact::Unknown(_), Fact::Known(false)) => page.print_row("module", "not loaded")?,
        (_, Fact::Unknown(why)) => page.print_unknown("module", why)?,
    }
    if alone {
        page.print_row("endless code", REFUSED_ONE_CPU)?;
    }
    print_load_obstacles(page, facts)
}

const REFUSED_ONE_CPU: &str = "rejected without --force: with only one CPU, nothing can stop it";
const REFUSED_NO_NMI: &str = "rejected without --force: the NMI that would stop it did not arrive";

fn print_loaded_module(
    page: &mut TextPage,
    module: &ModuleStudy,
    facts: &KernelModule,
    alone: bool,
) -> Result<(), Failure> {
    page.print_row("module", &format!("loaded, version {} of its interface", module.version))?;
    if !module.code {
        let why = facts.refused.known().cloned().flatten().unwrap_or_default();
        page.print_row("code", &format!("rejected, only markers run: {why}"))?;
    }
    page.print_row(
        "endless code",
        match (module.deadline, alone) {
            (true, _) => "stopped by another CPU",
            (false, true) => REFUSED_ONE_CPU,
            (false, false) => REFUSED_NO_NMI,
        },
    )?;
    let ppm = module.tsc_ppm.map_or(String::new(), |ppm| format!("; {ppm:+.1} ppm from the rate measured here"));
    page.print_row("its TSC rate", &format!("{:.3} MHz, by the kernel{ppm}", module.tsc.to_megahertz()))?;
    page.print_row(
        "APERF",
        if module.aperf { "counted with every measurement" } else { "the processor does not offer it" },
    )
}

fn print_load_obstacles(page: &mut TextPage, facts: &KernelModule) -> Result<(), Failure> {
    match &facts.headers {
        Fact::Known(folder) => page.print_row("headers", folder)?,
        Fact::Unknown(why) => page.print_row("headers", &format!("none: {why}"))?,
    }
    page.print_fact("takes modules", &facts.closed, |closed| {
        if *closed { "not until the next boot" } else { "yes" }.to_string()
    })?;
    page.print_fact("signed only", &facts.signed_only, |only| if *only { "yes" } else { "no" }.to_string())?;
    page.print_fact("lockdown", &facts.lockdown, |how| how.clone().unwrap_or("none".to_string()))?;
    page.print_fact("may load it", &facts.may_load, |right| {
        match right {
            CapabilityRight::Held => "yes",
            CapabilityRight::AsRoot => "root may",
            CapabilityRight::Never => "no: a container has removed CAP_SYS_MODULE",
        }
        .to_string()
    })?;
    for obstacle in facts.list_obstacles() {
        page.print_row("obstacle", &obstacle.text)?;
    }
    Ok(())
}
