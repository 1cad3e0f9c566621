//! Asks the kernel module what it can do on this machine.

use cyclescope_core::machine::fact::Fact;
use cyclescope_core::machine::kernel_module::ModuleStudy;
use cyclescope_core::machine::tsc_study::TscStudy;
use cyclescope_core::unit::Hertz;
use cyclescope_exec::kernel::ModuleDevice;

/// Opens the module's device; nothing runs in ring 0.
pub(super) fn examine_module(study: Option<&TscStudy>) -> Fact<ModuleStudy> {
    let module = match ModuleDevice::open() {
        Ok(module) => module,
        Err(refused) => return Fact::unknown(refused.why),
    };
    let tsc = Hertz(1e3 * f64::from(module.tsc_khz()));
    Fact::Known(ModuleStudy {
        version: module.version(),
        code: module.runs_code(),
        deadline: module.has_deadline(),
        aperf: module.has_aperf(),
        tsc,
        tsc_ppm: study.map(|study| tsc.ppm_above(study.calibration.hertz)),
    })
}
