//! Micro-architectures by family and model: names, and the latency of `imul r64, r64`.
//!
//! The clock ruler compares a chain of `add r, r` with one of `imul r, r`. Their ratio is the only
//! figure it must know in advance. The ratio is omitted where published figures differ or are
//! missing. A wrong ratio makes the ruler reject good measurements; a missing one makes it accept
//! any whole number.
//!
//! Models: Linux `arch/x86/include/asm/intel-family.h`, `arch/x86/kernel/cpu/amd.c`; Intel SDM vol.
//! 4, table 2-1. Latencies: Agner Fog's instruction tables, uops.info, LLVM's scheduling models.

use serde::Serialize;

use super::cpuid_leaves::{CpuidLeaves, CpuidRegister};
use super::integer_adders::IntegerAdders;
use super::vendor::{CoreType, Vendor};

/// Names of one processor design.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Microarchitecture {
    /// Core name, such as `Golden Cove` or `Zen 4`.
    pub name: &'static str,
    /// Product line, such as `Sapphire Rapids`; equal to `name` if the two are not distinguished.
    pub product: &'static str,
    /// Latency of `imul r64, r64` in units of the latency of `add r64, r64`; `None` if uncertain.
    pub imul_latency: Option<u32>,
}

/// Features that distinguish designs (Intel SDM vol. 1, chapters 14 to 18; AMD APM vol. 3, appendix
/// D; Agner Fog's instruction tables). Hypervisors may report a different model but keep the
/// features of the real core. The model then says nothing about the core.
const DESIGN_FEATURES: &[DesignFeature] = &[
    design_feature("AVX2", (7, 0, CpuidRegister::Ebx, 5), AVX2),
    design_feature("AVX512F", (7, 0, CpuidRegister::Ebx, 16), AVX512F),
    design_feature("AVX-VNNI", (7, 1, CpuidRegister::Eax, 4), AVX_VNNI),
    design_feature("AVX512-FP16", (7, 0, CpuidRegister::Edx, 23), AMX),
    design_feature("AMX", (7, 0, CpuidRegister::Edx, 24), AMX),
];

/// A feature and the designs that have it.
struct DesignFeature {
    name: &'static str,
    /// Leaf, subleaf, register and bit of CPUID.
    bit: (u32, u32, CpuidRegister, u32),
    designs: &'static [&'static str],
}

const fn design_feature(
    name: &'static str,
    bit: (u32, u32, CpuidRegister, u32),
    designs: &'static [&'static str],
) -> DesignFeature {
    DesignFeature { name, bit, designs }
}

const AVX2: &[&str] = &[
    "Haswell",
    "Broadwell",
    "Skylake",
    "Palm Cove",
    "Sunny Cove",
    "Cypress Cove",
    "Willow Cove",
    "Golden Cove",
    "Raptor Cove",
    "Redwood Cove",
    "Lion Cove",
    "Cougar Cove",
    "Panther Cove",
    "Coyote Cove or Arctic Wolf",
    "Knights Landing",
    "Knights Mill",
    "Gracemont",
    "Crestmont",
    "Skymont",
    "Darkmont",
    "Excavator",
    "Zen",
    "Zen+",
    "Zen 2",
    "Zen 3",
    "Zen 4",
    "Zen 5",
    "Zen 6",
    "Dhyana",
    "LuJiaZui",
    "YongFeng",
];
const AVX512F: &[&str] = &[
    "Skylake",
    "Palm Cove",
    "Sunny Cove",
    "Cypress Cove",
    "Willow Cove",
    "Golden Cove",
    "Raptor Cove",
    "Redwood Cove",
    "Panther Cove",
    "Coyote Cove or Arctic Wolf",
    "Knights Landing",
    "Knights Mill",
    "Zen 4",
    "Zen 5",
    "Zen 6",
];
const AVX_VNNI: &[&str] = &[
    "Golden Cove",
    "Raptor Cove",
    "Redwood Cove",
    "Lion Cove",
    "Cougar Cove",
    "Panther Cove",
    "Coyote Cove or Arctic Wolf",
    "Gracemont",
    "Crestmont",
    "Skymont",
    "Darkmont",
    "Zen 5",
    "Zen 6",
];
const AMX: &[&str] = &["Golden Cove", "Raptor Cove", "Redwood Cove", "Panther Cove", "Coyote Cove or Arctic Wolf"];

impl Microarchitecture {
    /// A feature that CPUID reports although this design never had it.
    pub(crate) fn find_impossible_feature(&self, leaves: &CpuidLeaves) -> Option<&'static str> {
        let announced = |(leaf, subleaf, register, bit)| leaves.has_bit(leaf, subleaf, register, bit);
        let is_impossible = |feature: &&DesignFeature| announced(feature.bit) && !feature.designs.contains(&self.name);
        DESIGN_FEATURES.iter().find(is_impossible).map(|feature| feature.name)
    }

    /// The integer adders; `None` if uncertain.
    pub fn adders(&self) -> Option<IntegerAdders> {
        IntegerAdders::of_design(self.name)
    }
}

struct DesignRow {
    vendor: Vendor,
    family: u32,
    /// First and last model.
    models: (u32, u32),
    /// First and last stepping.
    steppings: (u32, u32),
    /// Core type that the row applies to; `None` for any.
    core: Option<CoreType>,
    design: Microarchitecture,
}

const fn design_row(
    vendor: Vendor,
    family: u32,
    models: (u32, u32),
    name: &'static str,
    product: &'static str,
    imul: u32,
) -> DesignRow {
    let imul_latency = if imul == 0 { None } else { Some(imul) };
    let design = Microarchitecture { name, product, imul_latency };
    DesignRow { vendor, family, models, steppings: (0, 15), core: None, design }
}

const fn intel_row(model: u32, name: &'static str, product: &'static str, imul: u32) -> DesignRow {
    design_row(Vendor::Intel, 6, (model, model), name, product, imul)
}

const fn performance_row(model: u32, name: &'static str, product: &'static str, imul: u32) -> DesignRow {
    DesignRow { core: Some(CoreType::Performance), ..intel_row(model, name, product, imul) }
}

const fn efficient_row(model: u32, name: &'static str, product: &'static str, imul: u32) -> DesignRow {
    DesignRow { core: Some(CoreType::Efficient), ..intel_row(model, name, product, imul) }
}

const fn amd_row(
    family: u32,
    first: u32,
    last: u32,
    name: &'static str,
    product: &'static str,
    imul: u32,
) -> DesignRow {
    design_row(Vendor::Amd, family, (first, last), name, product, imul)
}

const fn with_steppings(first: u32, last: u32, row: DesignRow) -> DesignRow {
    DesignRow { steppings: (first, last), ..row }
}

/// The first matching row decides. An `imul` of 0 means uncertain.
const DESIGN_TABLE: &[DesignRow] = &[
    // Intel Core
    intel_row(0x0F, "Core", "Merom", 5),
    intel_row(0x16, "Core", "Merom", 5),
    intel_row(0x17, "Penryn", "Penryn", 5),
    intel_row(0x1D, "Penryn", "Dunnington", 5),
    intel_row(0x1A, "Nehalem", "Nehalem", 3),
    intel_row(0x1E, "Nehalem", "Nehalem", 3),
    intel_row(0x1F, "Nehalem", "Nehalem", 3),
    intel_row(0x2E, "Nehalem", "Nehalem-EX", 3),
    intel_row(0x25, "Westmere", "Westmere", 3),
    intel_row(0x2C, "Westmere", "Westmere", 3),
    intel_row(0x2F, "Westmere", "Westmere-EX", 3),
    intel_row(0x2A, "Sandy Bridge", "Sandy Bridge", 3),
    intel_row(0x2D, "Sandy Bridge", "Sandy Bridge-E", 3),
    intel_row(0x3A, "Ivy Bridge", "Ivy Bridge", 3),
    intel_row(0x3E, "Ivy Bridge", "Ivy Bridge-E", 3),
    intel_row(0x3C, "Haswell", "Haswell", 3),
    intel_row(0x3F, "Haswell", "Haswell-E", 3),
    intel_row(0x45, "Haswell", "Haswell", 3),
    intel_row(0x46, "Haswell", "Haswell", 3),
    intel_row(0x3D, "Broadwell", "Broadwell", 3),
    intel_row(0x47, "Broadwell", "Broadwell", 3),
    intel_row(0x4F, "Broadwell", "Broadwell-E", 3),
    intel_row(0x56, "Broadwell", "Broadwell-DE", 3),
    intel_row(0x4E, "Skylake", "Skylake", 3),
    intel_row(0x5E, "Skylake", "Skylake", 3),
    with_steppings(0, 4, intel_row(0x55, "Skylake", "Skylake server", 3)),
    with_steppings(5, 7, intel_row(0x55, "Skylake", "Cascade Lake", 3)),
    with_steppings(8, 15, intel_row(0x55, "Skylake", "Cooper Lake", 3)),
    with_steppings(0, 9, intel_row(0x8E, "Skylake", "Kaby Lake", 3)),
    with_steppings(10, 15, intel_row(0x8E, "Skylake", "Coffee, Whiskey or Comet Lake", 3)),
    with_steppings(0, 9, intel_row(0x9E, "Skylake", "Kaby Lake", 3)),
    with_steppings(10, 15, intel_row(0x9E, "Skylake", "Coffee Lake", 3)),
    intel_row(0xA5, "Skylake", "Comet Lake", 3),
    intel_row(0xA6, "Skylake", "Comet Lake", 3),
    intel_row(0x66, "Palm Cove", "Cannon Lake", 3),
    intel_row(0x7D, "Sunny Cove", "Ice Lake", 3),
    intel_row(0x7E, "Sunny Cove", "Ice Lake", 3),
    intel_row(0x9D, "Sunny Cove", "Ice Lake NNP-I", 3),
    intel_row(0x6A, "Sunny Cove", "Ice Lake server", 3),
    intel_row(0x6C, "Sunny Cove", "Ice Lake-D", 3),
    intel_row(0xA7, "Cypress Cove", "Rocket Lake", 3),
    intel_row(0x8C, "Willow Cove", "Tiger Lake", 3),
    intel_row(0x8D, "Willow Cove", "Tiger Lake", 3),
    performance_row(0x8A, "Sunny Cove", "Lakefield", 3),
    efficient_row(0x8A, "Tremont", "Lakefield", 0),
    performance_row(0x97, "Golden Cove", "Alder Lake", 3),
    efficient_row(0x97, "Gracemont", "Alder Lake", 0),
    performance_row(0x9A, "Golden Cove", "Alder Lake", 3),
    efficient_row(0x9A, "Gracemont", "Alder Lake", 0),
    intel_row(0xBE, "Gracemont", "Alder Lake-N", 0),
    performance_row(0xB7, "Raptor Cove", "Raptor Lake", 3),
    efficient_row(0xB7, "Gracemont", "Raptor Lake", 0),
    performance_row(0xBA, "Raptor Cove", "Raptor Lake", 3),
    efficient_row(0xBA, "Gracemont", "Raptor Lake", 0),
    performance_row(0xBF, "Raptor Cove", "Raptor Lake", 3),
    efficient_row(0xBF, "Gracemont", "Raptor Lake", 0),
    intel_row(0xD7, "Raptor Cove", "Bartlett Lake", 3),
    performance_row(0xAA, "Redwood Cove", "Meteor Lake", 3),
    efficient_row(0xAA, "Crestmont", "Meteor Lake", 0),
    performance_row(0xAC, "Redwood Cove", "Meteor Lake", 3),
    efficient_row(0xAC, "Crestmont", "Meteor Lake", 0),
    performance_row(0xB5, "Redwood Cove", "Arrow Lake-U", 3),
    efficient_row(0xB5, "Crestmont", "Arrow Lake-U", 0),
    performance_row(0xC5, "Lion Cove", "Arrow Lake-H", 0),
    efficient_row(0xC5, "Skymont", "Arrow Lake-H", 0),
    performance_row(0xC6, "Lion Cove", "Arrow Lake", 0),
    efficient_row(0xC6, "Skymont", "Arrow Lake", 0),
    performance_row(0xBD, "Lion Cove", "Lunar Lake", 0),
    efficient_row(0xBD, "Skymont", "Lunar Lake", 0),
    performance_row(0xCC, "Cougar Cove", "Panther Lake", 0),
    efficient_row(0xCC, "Darkmont", "Panther Lake", 0),
    performance_row(0xD5, "Cougar Cove", "Wildcat Lake", 0),
    efficient_row(0xD5, "Darkmont", "Wildcat Lake", 0),
    intel_row(0x8F, "Golden Cove", "Sapphire Rapids", 3),
    intel_row(0xCF, "Raptor Cove", "Emerald Rapids", 3),
    intel_row(0xAD, "Redwood Cove", "Granite Rapids", 3),
    intel_row(0xAE, "Redwood Cove", "Granite Rapids-D", 3),
    design_row(Vendor::Intel, 19, (0x01, 0x01), "Panther Cove", "Diamond Rapids", 0),
    design_row(Vendor::Intel, 18, (0x01, 0x03), "Coyote Cove or Arctic Wolf", "Nova Lake", 0),
    // Intel Atom and Xeon Phi
    intel_row(0x1C, "Bonnell", "Bonnell", 0),
    intel_row(0x26, "Bonnell", "Bonnell", 0),
    intel_row(0x27, "Saltwell", "Saltwell", 0),
    intel_row(0x35, "Saltwell", "Saltwell", 0),
    intel_row(0x36, "Saltwell", "Saltwell", 0),
    intel_row(0x37, "Silvermont", "Bay Trail", 5),
    intel_row(0x4A, "Silvermont", "Merrifield", 5),
    intel_row(0x4D, "Silvermont", "Avoton", 5),
    intel_row(0x5A, "Silvermont", "Moorefield", 5),
    intel_row(0x5D, "Silvermont", "SoFIA", 5),
    intel_row(0x4C, "Airmont", "Cherry Trail", 5),
    intel_row(0x75, "Airmont", "Airmont NP", 5),
    intel_row(0x57, "Knights Landing", "Knights Landing", 0),
    intel_row(0x85, "Knights Mill", "Knights Mill", 0),
    intel_row(0x5C, "Goldmont", "Apollo Lake", 5),
    intel_row(0x5F, "Goldmont", "Denverton", 5),
    intel_row(0x7A, "Goldmont Plus", "Gemini Lake", 5),
    intel_row(0x86, "Tremont", "Jacobsville", 0),
    intel_row(0x96, "Tremont", "Elkhart Lake", 0),
    intel_row(0x9C, "Tremont", "Jasper Lake", 0),
    intel_row(0xAF, "Crestmont", "Sierra Forest", 0),
    intel_row(0xB6, "Crestmont", "Grand Ridge", 0),
    intel_row(0xDD, "Darkmont", "Clearwater Forest", 0),
    design_row(Vendor::Intel, 15, (0, 0xFF), "NetBurst", "Pentium 4", 0),
    // AMD
    amd_row(0x0F, 0x00, 0xFF, "K8", "K8", 4),
    amd_row(0x10, 0x00, 0xFF, "K10", "K10", 4),
    amd_row(0x11, 0x00, 0xFF, "K8", "Griffin", 4),
    amd_row(0x12, 0x00, 0xFF, "K10", "Llano", 4),
    amd_row(0x14, 0x00, 0xFF, "Bobcat", "Bobcat", 0),
    amd_row(0x15, 0x02, 0x02, "Piledriver", "Vishera", 6),
    amd_row(0x15, 0x00, 0x0F, "Bulldozer", "Bulldozer", 6),
    amd_row(0x15, 0x10, 0x1F, "Piledriver", "Trinity", 6),
    amd_row(0x15, 0x30, 0x3F, "Steamroller", "Kaveri", 6),
    amd_row(0x15, 0x60, 0x7F, "Excavator", "Carrizo", 6),
    amd_row(0x16, 0x00, 0xFF, "Jaguar", "Jaguar or Puma", 6),
    amd_row(0x17, 0x08, 0x08, "Zen+", "Pinnacle Ridge", 0),
    amd_row(0x17, 0x18, 0x18, "Zen+", "Picasso", 0),
    amd_row(0x17, 0x00, 0x2F, "Zen", "Naples, Summit or Raven Ridge", 0),
    amd_row(0x17, 0x30, 0x3F, "Zen 2", "Rome", 3),
    amd_row(0x17, 0x40, 0xAF, "Zen 2", "Matisse, Renoir, Van Gogh or Mendocino", 3),
    amd_row(0x19, 0x00, 0x0F, "Zen 3", "Milan", 3),
    amd_row(0x19, 0x10, 0x1F, "Zen 4", "Genoa", 3),
    amd_row(0x19, 0x20, 0x3F, "Zen 3", "Vermeer", 3),
    amd_row(0x19, 0x40, 0x4F, "Zen 3", "Rembrandt", 3),
    amd_row(0x19, 0x50, 0x5F, "Zen 3", "Cezanne", 3),
    amd_row(0x19, 0x60, 0x6F, "Zen 4", "Raphael", 3),
    amd_row(0x19, 0x70, 0x7F, "Zen 4", "Phoenix", 3),
    amd_row(0x19, 0xA0, 0xAF, "Zen 4", "Bergamo or Siena", 3),
    amd_row(0x1A, 0x00, 0x0F, "Zen 5", "Turin", 3),
    amd_row(0x1A, 0x10, 0x1F, "Zen 5", "Turin Dense", 3),
    amd_row(0x1A, 0x20, 0x2F, "Zen 5", "Strix Point", 3),
    amd_row(0x1A, 0x40, 0x4F, "Zen 5", "Granite Ridge", 3),
    amd_row(0x1A, 0x60, 0x6F, "Zen 5", "Krackan Point", 3),
    amd_row(0x1A, 0x70, 0x7F, "Zen 5", "Strix Halo", 3),
    amd_row(0x1A, 0x50, 0x5F, "Zen 6", "Venice", 0),
    amd_row(0x1A, 0x80, 0xAF, "Zen 6", "Zen 6", 0),
    amd_row(0x1A, 0xC0, 0xCF, "Zen 6", "Zen 6", 0),
    design_row(Vendor::Hygon, 0x18, (0, 0xFF), "Dhyana", "Dhyana", 0),
    // VIA, Centaur, Zhaoxin
    design_row(Vendor::Zhaoxin, 6, (0x0F, 0x0F), "Isaiah", "VIA Nano", 0),
    design_row(Vendor::Zhaoxin, 6, (0x19, 0x19), "ZhangJiang", "ZX-C", 0),
    design_row(Vendor::Zhaoxin, 7, (0x1B, 0x1B), "WuDaoKou", "KX-5000", 0),
    design_row(Vendor::Zhaoxin, 7, (0x3B, 0x3B), "LuJiaZui", "KX-6000", 0),
    design_row(Vendor::Zhaoxin, 7, (0x5B, 0x5B), "YongFeng", "KX-7000", 0),
];

/// Finds the design of a processor. `core` decides on hybrid processors; `None` if CPUID 1Ah is
/// absent.
pub(crate) fn find_microarchitecture(
    vendor: Vendor,
    family: u32,
    model: u32,
    stepping: u32,
    core: Option<CoreType>,
) -> Option<Microarchitecture> {
    let fits = |row: &&DesignRow| {
        row.vendor == vendor
            && row.family == family
            && (row.models.0..=row.models.1).contains(&model)
            && (row.steppings.0..=row.steppings.1).contains(&stepping)
            && (row.core.is_none() || row.core == core)
    };
    DESIGN_TABLE.iter().find(fits).map(|row| row.design)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(vendor: Vendor, family: u32, model: u32, stepping: u32, core: Option<CoreType>) -> &'static str {
        find_microarchitecture(vendor, family, model, stepping, core).map_or("unknown", |found| found.product)
    }

    #[test]
    fn models_map_to_their_names() {
        assert_eq!(name(Vendor::Intel, 6, 0xCF, 2, None), "Emerald Rapids");
        assert_eq!(name(Vendor::Intel, 6, 0x55, 7, None), "Cascade Lake");
        assert_eq!(name(Vendor::Amd, 0x19, 0x11, 1, None), "Genoa");
        assert_eq!(name(Vendor::Amd, 0x15, 0x02, 0, None), "Vishera");
        assert_eq!(name(Vendor::Amd, 0x19, 0xFE, 0, None), "unknown");
        assert_eq!(name(Vendor::Intel, 6, 0xFF, 0, None), "unknown");
    }

    #[test]
    fn designs_named_by_features_are_in_the_table() {
        for feature in DESIGN_FEATURES {
            for design in feature.designs {
                assert!(DESIGN_TABLE.iter().any(|row| row.design.name == *design), "{}: {design}", feature.name);
            }
        }
    }

    #[test]
    fn hybrid_processors_need_the_core_type() {
        let core = |core| find_microarchitecture(Vendor::Intel, 6, 0x97, 2, core).map(|found| found.name);
        assert_eq!(core(Some(CoreType::Performance)), Some("Golden Cove"));
        assert_eq!(core(Some(CoreType::Efficient)), Some("Gracemont"));
        assert_eq!(core(None), None);
    }

    #[test]
    fn ranges_are_ordered_and_latencies_plausible() {
        for row in DESIGN_TABLE {
            assert!(row.models.0 <= row.models.1 && row.steppings.0 <= row.steppings.1, "{}", row.design.product);
            assert!(row.design.imul_latency.is_none_or(|latency| (3..=6).contains(&latency)), "{}", row.design.product);
        }
    }
}
