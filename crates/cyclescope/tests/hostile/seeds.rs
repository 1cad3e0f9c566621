//! Valid inputs: small evidence of each study, lists, tables and snippets.

use super::dossier::{self, Directory};
use cyclescope::asm::CodeMode;
use cyclescope::clock::Clock;
use cyclescope::error::Error;
use cyclescope::executor::user::UserOptions;
use cyclescope::executor::{DEFAULT_OFFER, Executor, ExecutorOpener, OpenOptions};
use cyclescope::machine::Machine;
use cyclescope::measure::{Plan, Precision};
use cyclescope::record::ErrorRecord;
use cyclescope::result::answers::MachineAnswers;
use cyclescope::result::container::{EvidenceContainer, EvidenceOrigin, EvidenceRecorder, to_json_value};
use cyclescope::run::RunRequest;
use cyclescope::snippet::Snippet;
use cyclescope::study::evaluate::plan::{EvaluatePlan, ExperimentTimes, split_candidates};
use cyclescope::study::evaluate::{EvaluateStudy, ensemble_reader::SamplingSize};
use cyclescope::study::instr::mixes::mix_timer::MixEffort;
use cyclescope::study::instr::plan::{InstrOptions, InstrPlan};
use cyclescope::study::instr::selection::{FormCriteria, list_forms};
use cyclescope::study::instr::{InstrStudy, ResumedSurvey, experiments::survey_effort::SurveyEffort};
use cyclescope::study::marker::bench::SelectedBench;
use cyclescope::study::marker::compiled_design::{CompiledDesign, ProbeSet};
use cyclescope::study::marker::user::UserBench;
use cyclescope::study::marker::{MarkerPlan, MarkerStudy};
use cyclescope::study::points::{self, PointLabel, PointsStudy};
use cyclescope::study::ports::ports_plan::{PortsPlan, PortsQuestion};
use cyclescope::study::ports::{PortsStudy, ResumedPorts};
use cyclescope::study::run::RunStudy;
use cyclescope::study::{self, GenericSession, StopReason, Study};
use cyclescope_sim::{CoreModel, Scenario, SimulatedCore, SimulatedExecutor};
use serde_json::{Value, json};
use std::rc::Rc;
use std::time::Duration;

/// The valid inputs of a reader.
pub fn inputs_of(name: &str) -> Vec<Vec<u8>> {
    if let Some(study) = name.strip_prefix("evidence_") {
        return evidence_bytes(study).into_iter().collect();
    }
    let texts: &[&str] = match name {
        "assembly" => &ASSEMBLY,
        "events" => &EVENTS,
        "forms" => &FORMS,
        "pasted" => &PASTED,
        "port_names" => &PORT_NAMES,
        "ports" => &[dossier::PORTS],
        "published" => &PUBLISHED,
        "results" => &[dossier::RESULTS],
        "samples" => &[SAMPLES],
        "snippets" => &SNIPPETS,
        "session" => return vec![dossier::session().to_string().into_bytes()],
        _ => {
            dossier::set_good(&read_evidence(&run()));
            let file = if name == "manifest" { "manifest.json" } else { "readings.gz" };
            return vec![dossier::good(file)];
        }
    };
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

const ASSEMBLY: [&str; 5] = [
    "mulsd xmm0, xmm1; add rax, [rbx + 8*rcx - 0x10]\n1: dec ecx; jnz 1b",
    "vaddps zmm1{k1}{z}, zmm2, zmm3, {rn-sae}; vpgatherdd xmm0{k1}, [rax + xmm1*4]",
    "addl $1, 8(%rax,%rbx,2); movq %rax, %xmm0; lock xaddq %rcx, (%rdi)",
    ".byte 0x0f, 0x0b; mov rax, 0x1122334455667788; lea r8, [rip + 1f]; 1: nop",
    "48 0f af c0 c5 f8 77 62 f1 7c 48 58 c1",
];
const EVENTS: [&str; 2] = [
    "design core = Zen 4, Zen 5\ncore | uops | event=0xaa,umask=7,cmask=2,inv,edge | a manual\nset two = uops cycles:uk r02c2\n",
    "mine | cpu/event=0x1c2/ # mine\nmine2 | r5301c2\nset all = mine mine2 page-faults uops/cycles\n",
];
const FORMS: [&str; 2] = [
    "instruction,operands,measure,init,size,isa,immediate,sequence\nadd,\"r64, r64\",both,,,,,\nvpaddd,*,latency,,256,,,\n\
     shl,\"r64, imm8\",,,,,1 5 0x1f,\n,,,\"xor eax, eax\",,,,\"imul rax, rax; add rax, 1\"\n",
    "Instruction\nimul\n# a comment\nvaddps\n",
];
pub const PORT_NAMES: [&str; 2] = [
    "# a core\nandn r64, r64, r64: 1*p0156\nimul r64, r64: 1*p1\nadd r64, m64: 1*p0156B+1*p23A\n",
    "VEX_Vaddps_xmm_xmm_xmmm128 xmm, xmm, xmm: 1*FP23\npopcnt r64, r64: 2*ALU03/AGU1 # two\n",
];
const PUBLISHED: [&str; 2] = [
    "mnemonic,operands,rthroughput_cycles,latency_cycles,from,to\nadd,\"r64, r64\",0.25,1,op1,op1\nnop,,<=0.2,,,\n\
     div,r64,14-18,3.5,,\n",
    "mnemonic,operands,encoding,code,latency_cycles\nadd,\"r64, r64\",legacy,,1\n",
];
const SAMPLES: &str = r#"{"name":"a","iterations":10,"ticks":100,"rulers":[1.4,1.6]}
{"name":"b c/µ","iterations":1,"cycles":7.5}
{"name":"a","iterations":1000,"ticks":123456789,"rulers":[1.25],"more":{"x":null}}
"#;
const SNIPPETS: [&str; 2] = [
    "# three\nadd rax, rbx\n\n  imul rax, rax; nop\n",
    "name,snippet,init,hex\nsum,\"add rax, rbx\",\"mov ebx, 1\",\n# none\n,,,90\n",
];

/// Measures and writes evidence of the study of this name; `None` if this machine can't.
pub fn record_evidence(study: &str) -> Option<Directory> {
    match study {
        "evaluate" => evaluate(),
        "instr" => Some(instr()),
        "marker" => marker(),
        "points" => Some(points()),
        "ports" => Some(ports()),
        "run" => Some(run()),
        "uarch" => Some(uarch()),
        _ => None,
    }
}

/// The evidence as one value, in JSON.
fn evidence_bytes(study: &str) -> Option<Vec<u8>> {
    Some(read_evidence(&record_evidence(study)?).to_string().into_bytes())
}

fn read_evidence(directory: &Directory) -> Value {
    dossier::from_container(&EvidenceContainer::open(&directory.0).expect("whole evidence"))
}

/// Measures and writes evidence; `None` if this machine can't.
fn recorded(study: &mut dyn Study) -> Option<Directory> {
    let directory = Directory::new();
    let origin = EvidenceOrigin {
        study: study.name().to_string(),
        repro: "cyclescope".to_string(),
        machine: json!({ "cpu": {} }),
    };
    let evidence = Rc::new(EvidenceRecorder::create(&directory.0, origin).expect("there is room"));
    let plan = study.plan().expect("plain data");
    evidence.write_with(|writer| writer.set_facts(&plan));
    let mut records = Vec::new();
    match study.measure(&MachineAnswers::recording_to(evidence.clone()), &mut records) {
        Ok(()) => {}
        Err(StopReason::Failed(why)) => {
            cyclescope_skipped::report_left_out(format_args!("evidence of {}: {why}", study.name()));
            return None;
        }
        Err(StopReason::Requested) => unreachable!("nobody asked"),
    }
    for record in &records {
        evidence.write_with(|writer| writer.add_result_line(&record.line));
    }
    evidence.finish().expect("there is room");
    let container = EvidenceContainer::open(&directory.0).expect("whole evidence");
    cyclescope::study::replay_evidence(&container).expect("it is the same again");
    Some(directory)
}

fn plan() -> Plan {
    Plan { rounds: 4, layouts: 2, layouts_most: 4, budget: Duration::from_millis(1), ..Plan::simulated() }
}

fn simulated() -> ExecutorOpener {
    Box::new(|| Ok::<Box<dyn Executor>, Error>(Box::new(SimulatedExecutor::new(Scenario::default(), 11))))
}

fn run_study() -> RunStudy {
    let snippet = Snippet::new(vec![0x48, 0x0f, 0xaf, 0xc0], vec![0x31, 0xc0], "imul rax, rax");
    let (plan, asked) = (plan(), Precision { cycles: 1.0, share: 1.0, cap: None });
    RunStudy::new(&snippet.into(), plan, asked, &Machine::detect(), "cyclescope run".to_string(), simulated())
}

fn run() -> Directory {
    recorded(&mut run_study()).expect("a simulated machine measures")
}

fn points() -> Directory {
    let session: points::PointsSession = serde_json::from_value(json!({
        "version": "0", "command": ["cyclescope", "run", "--sweep", "N=1,2", "nop"], "seed": 3, "points": 2, "identity": "0",
    }))
    .expect("a session");
    let label = |value| PointLabel::Value { variable: "N".to_string(), value };
    let courses = vec![(label(1), Ok(Box::new(run_study()))), (label(2), Err(serde_json::Map::new()))];
    let explain = |_: &RunStudy, error: Error| ErrorRecord::from(&error);
    let kept = points::ResumedPoints::default();
    let mut study = PointsStudy::new(session, courses, json!({ "cpu": {} }), simulated(), explain, kept);
    recorded(&mut study).expect("a simulated machine measures")
}

fn uarch() -> Directory {
    let info = cyclescope::study::find_study("uarch").and_then(|study| study.generic).expect("a study without a front");
    let machine = Machine::detect();
    // Few counts of the caches, since each changed input computes all again.
    let subjects = vec!["stores_in_flight", "data_caches"];
    let (plan, open, memory) = (plan(), simulated(), 16 << 10);
    let kept = Vec::new();
    let selected =
        study::StudySelection { subjects, plan, open, machine: &machine, memory, counters: None, complete_lines: kept };
    recorded((info.select)(selected).as_mut()).expect("a simulated machine measures")
}

/// A cheap survey of a form.
const EFFORT: SurveyEffort = SurveyEffort {
    passes: 1,
    layouts: 2,
    rounds: 1,
    recipes: 2,
    cycles: 300.0,
    decoders: false,
    regimes: false,
    constants: false,
    slots: false,
    wait: Duration::ZERO,
};

fn instr() -> Directory {
    let session = serde_json::from_value(dossier::session()["survey"].clone()).expect("a session");
    let list = b"instruction,operands,measure\nadd,\"r64, r64\",throughput\n";
    let forms = cyclescope::study::instr::form_list::read_list(list, CodeMode::default()).expect("a list");
    let how = InstrOptions { plan: plan(), effort: EFFORT, repro_options: String::new(), counters: None };
    let plan = InstrPlan::new(how, session, &Machine::detect(), &forms);
    let open: ExecutorOpener = Box::new(|| Ok(Box::new(SimulatedCore::new(CoreModel::from_seed(1), 1))));
    let machine = json!({ "cpu": {} });
    let mut study =
        InstrStudy::new(plan, forms, machine, "cyclescope instr".to_string(), open, ResumedSurvey::default());
    recorded(&mut study).expect("a simulated machine measures")
}

fn ports() -> Directory {
    let subjects = ["Popcnt_r64_rm64 r64, r64", "Paddd_xmm_xmmm128 xmm, xmm"].map(str::to_string);
    let criteria = FormCriteria { filters: subjects.to_vec(), ..FormCriteria::default() };
    let forms = criteria.select(list_forms(CodeMode::Bits64)).expect("they exist");
    let session = GenericSession {
        version: "0".to_string(),
        seed: 1,
        quick: true,
        clock: "rdtscp".to_string(),
        executor: "simulated".to_string(),
        cpu: 0,
        subjects: subjects.to_vec(),
        counters: None,
    };
    let mut plan = PortsPlan::new(plan(), PortsQuestion::Pair, session, String::new(), &Machine::detect());
    plan.effort =
        MixEffort { orders: 1, first_layouts: 1, layouts: 2, rounds: 1, cycles: 300.0, wait: Duration::ZERO, tries: 0 };
    plan.slot_effort = SurveyEffort { slots: true, ..EFFORT };
    let open: ExecutorOpener = Box::new(|| Ok(Box::new(SimulatedCore::new(CoreModel::from_seed(1), 1))));
    let machine = json!({ "cpu": {} });
    let mut study =
        PortsStudy::new(plan, forms, machine, "cyclescope ports".to_string(), open, ResumedPorts::default());
    recorded(&mut study).expect("a simulated machine measures")
}

fn evaluate() -> Option<Directory> {
    let machine = Machine::detect();
    let clock = [Clock::find_named("rdtscp-lfence").expect("a timing method")];
    let (candidates, not_run) =
        split_candidates(clock, CodeMode::default(), &machine, &[(DEFAULT_OFFER.capabilities)(&machine)]);
    let ms = Duration::from_millis;
    let times = ExperimentTimes {
        contamination: ms(5),
        resolution: ms(20),
        watch: ms(5),
        synchrony: ms(5),
        ..ExperimentTimes::QUICK
    };
    let plan = EvaluatePlan {
        candidates,
        not_run,
        mode: CodeMode::default(),
        size: SamplingSize { ensembles: 3, samples: 200 },
        budget: Duration::from_secs(3),
        slow: None,
        times,
        resolution_samples: None,
        seed: 1,
        series: true,
        counters: None,
    };
    recorded(&mut EvaluateStudy::new(machine, plan, OpenOptions::default(), "cyclescope evaluate".to_string()))
}

fn marker() -> Option<Directory> {
    let machine = Machine::detect();
    let request = RunRequest { quick: true, seed: 8, ..RunRequest::default() };
    let plan = request.make_plan(&(DEFAULT_OFFER.capabilities)(&machine), &machine).ok()?;
    let mut designs = CompiledDesign::list_built();
    designs.retain(|compiled| compiled.design.name == "flag");
    let options = UserOptions { cpu: machine.target_cpu() as usize, own_code: true, ..UserOptions::default() };
    let caches = &machine.topology.caches;
    let made = UserBench::new(
        &options,
        plan.clock,
        plan.step,
        (&designs, ProbeSet::read_built()),
        &["empty"],
        caches,
        plan.seed,
    );
    let (bench, _) = made.map_err(|why| cyclescope_skipped::report_left_out(format_args!("markers: {why}"))).ok()?;
    let bench = Box::new(SelectedBench::new(bench, |case| case.context == "empty"));
    let open = DEFAULT_OFFER.make_opener(&machine, OpenOptions::default());
    let plan = MarkerPlan {
        mode: CodeMode::default(),
        executor: "user".to_string(),
        plan,
        quick: true,
        contexts: 1,
        emulated: false,
        cpu: 0,
        cpu_model: "a processor".to_string(),
        skipped: Vec::new(),
        counters: None,
    };
    let facts = to_json_value(&machine).expect("plain data");
    recorded(&mut MarkerStudy::new(plan, facts, "cyclescope marker".to_string(), bench, open))
}

/// Texts of other programs.
const PASTED: [&str; 5] = [
    "0000000000001139 <sum>:\n    1139:\t31 c0                \txor    %eax,%eax\n    113b:\tc3                   \tret\n",
    "Dump of assembler code for function f:\n=> 0x0000000000001170 <+0>:\tadd    rax,0x8\nEnd of assembler dump.\n",
    "\t.type\tf, @function\nf:\n\t.cfi_startproc\n\taddq $1, %rax # one\n\tjne f\n\tret\n",
    "# LLVM-MCA-BEGIN a\nmov eax, 1 ; a comment\n# LLVM-MCA-END a\n# LLVM-EXEGESIS-DEFREG XMM1 42\n",
    "hex,cycles\n4801c0,1.00\n",
];
