//! The parameters of the simulated core.

use super::dispatch::SimulatedDispatch;
use super::port_map::SimulatedPortMap;
use super::ports::{PortCounts, PortSets};
use super::regime::SimulatedRegime;
use cyclescope_core::random::Random;
use iced_x86::Register;

/// A simulated core: a few figures, and a seed that determines the figures of every instruction
/// form.
///
/// Operands have the names of instruction tables: `op1` to `op5`, `flags`, `mask`, `mem_addr`,
/// `mem_data`, and implied registers in lower case (`rax`).
#[derive(Debug, Clone, PartialEq)]
pub struct CoreModel {
    /// Seed of the figures of all instructions.
    pub seed: u64,
    /// Slots that issue per cycle; more than there are integer ports.
    pub width: u32,
    /// Largest number of µops between the oldest unfinished and the youngest issued one.
    pub window: u32,
    /// Ports for integer work; each of them can add.
    pub integer_ports: u32,
    /// Ports for vector, mask and x87 work.
    pub vector_ports: u32,
    /// Ports for loads.
    pub load_ports: u32,
    /// Ports for stores.
    pub store_ports: u32,
    /// Latency of `imul r64, r64`.
    pub imul_latency: u32,
    /// From an address to a general register.
    pub load_latency: u32,
    /// Additional latency of vector loads.
    pub vector_load_extra: u32,
    /// From a store's data until it can be forwarded; vectors take one cycle more.
    pub store_latency: u32,
    /// From then to the loaded value.
    pub forward_latency: u32,
    /// The same if the load covers more than one store wrote.
    pub blocked_latency: u32,
    /// From a store's data to a load through the same base register, if the machine renames memory.
    /// Only for 4 or 8 bytes in general registers.
    pub renamed_latency: Option<u32>,
    /// Whether it renames memory through any base register, if a load finds its data the same
    /// number of stores back as before. Otherwise only through the store's own base register.
    pub renames_any_base: bool,
    /// From the first part of a cache line that is stored past the caches until the next line can
    /// be sent, if stores to one line are combined.
    pub combining_latency: Option<u32>,
    /// Whether RSP moves without a µop.
    pub stack_engine: bool,
    /// Whether shifts and rotations by CL read the flags that they write.
    pub shifts_merge_flags: bool,
    /// Whether `mov r32, r32` is eliminated.
    pub eliminates_32: bool,
    /// Whether `mov r64, r64` is eliminated.
    pub eliminates_64: bool,
    /// Whether moves of xmm, ymm and zmm registers are eliminated.
    pub eliminates_vectors: [bool; 3],
    /// Whether zero idioms need no port. Otherwise they are ordinary instructions.
    pub knows_zero_idioms: bool,
    /// Whether the µops of loads and stores share dispatch slots with those that compute.
    pub fuses_memory: bool,
    /// Instructions with more slots than this are dispatched in groups of their own, if the machine
    /// has microcode.
    pub microcode_above: Option<u32>,
    /// Duration of LFENCE and similar instructions.
    pub serialize_latency: u32,
    /// Latencies that grow when many instructions wait, if the machine has this.
    pub regime: Option<SimulatedRegime>,
    /// Additional half cycles of a vector instruction that waits for two or more results when it
    /// issues. With an odd number, every second result has one cycle more.
    pub second_wait_half_cycles: u32,
    /// Every n-th form costs more with some immediates; `None`: no form does.
    pub special_constants: Option<u32>,
    /// Scheduling modes of loops, if the machine has them.
    pub dispatch: Option<SimulatedDispatch>,
    /// The ports of all instructions. Otherwise the numbers of ports and the seed determine them, and
    /// every µop takes the first port that is free.
    pub port_map: Option<SimulatedPortMap>,
}

impl CoreModel {
    /// The simulated core of a seed.
    pub fn from_seed(seed: u64) -> CoreModel {
        let mut random = Random::new(seed);
        let mut between = |least: u32, most: u32| least + random.below((most - least + 1) as usize) as u32;
        let integer_ports = between(3, 5);
        let mut model = CoreModel {
            seed,
            width: between(integer_ports + 1, 8),
            window: 512,
            integer_ports,
            vector_ports: between(2, 3),
            load_ports: between(2, 3),
            store_ports: between(1, 2),
            imul_latency: 3,
            load_latency: between(4, 5),
            vector_load_extra: between(1, 3),
            store_latency: between(1, 2),
            forward_latency: between(3, 5),
            blocked_latency: between(10, 18),
            renamed_latency: None,
            renames_any_base: false,
            combining_latency: None,
            stack_engine: false,
            shifts_merge_flags: false,
            eliminates_32: false,
            eliminates_64: false,
            eliminates_vectors: [false; 3],
            knows_zero_idioms: true,
            fuses_memory: false,
            microcode_above: None,
            serialize_latency: between(8, 30),
            regime: None,
            second_wait_half_cycles: 0,
            special_constants: None,
            dispatch: None,
            port_map: None,
        };
        model.renamed_latency = [None, Some(0), Some(1)][random.below(3)];
        model.stack_engine = random.happens(0.8);
        model.shifts_merge_flags = random.happens(0.5);
        model.eliminates_32 = random.happens(0.7);
        model.eliminates_64 = random.happens(0.7);
        model.eliminates_vectors = [(); 3].map(|()| random.happens(0.7));
        model
    }

    /// The simulated core of a seed with these ports, and a window that holds a whole loop.
    ///
    /// # Panics
    ///
    /// If the map can't be simulated.
    pub fn with_port_map(seed: u64, map: SimulatedPortMap) -> CoreModel {
        assert!(map.is_possible(), "a port map must have ports for everything");
        CoreModel { width: map.width, window: 512, port_map: Some(map), ..CoreModel::from_seed(seed) }
    }

    pub(super) fn port_sets(&self) -> PortSets {
        if let Some(map) = &self.port_map {
            return PortSets::from_map(map);
        }
        PortSets::new(PortCounts {
            integer: self.integer_ports,
            vector: self.vector_ports,
            load: self.load_ports,
            store: self.store_ports,
        })
    }

    /// Whether moves to a register of this kind are eliminated.
    pub(super) fn eliminates_move_to(&self, register: Register) -> bool {
        let [xmm, ymm, zmm] = self.eliminates_vectors;
        match register {
            r if r.is_gpr32() => self.eliminates_32,
            r if r.is_gpr64() => self.eliminates_64,
            r if r.is_xmm() => xmm,
            r if r.is_ymm() => ymm,
            r if r.is_zmm() => zmm,
            _ => false,
        }
    }
}
