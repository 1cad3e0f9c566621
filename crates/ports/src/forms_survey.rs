//! The ports of each form: classes first, then the forms of several µops beside them.

use crate::class_findings::{ClassFindings, SharingComponent};
use crate::class_survey::{CandidateForm, read_ports, survey_classes};
use crate::deciding_mix::MixLimits;
use crate::fitted_mix::FittedMix;
use crate::mix_source::{MixSource, list_times, time_singles};
use crate::port_labels::{PortBits, PortLabels, best_cycles};
use crate::twin_mixes::{ExplainedForm, OddForm, TwinBuilder};
use crate::union_bounds::{SLOW_SHARE, cut_interval, find_usual_error};
use crate::uop_fit::{BLOCKED_CYCLES, BlockedMix, UopFit, count_copies, fit_uops, list_candidates};
use cyclescope_instr::experiments::slot_judgement::SlotVerdict;
use cyclescope_instr::mixes::mix::Mix;
use cyclescope_instr::mixes::mix_timer::{MixOutcome, MixTime};
use cyclescope_instr::rows::dispatch_slots::DispatchSlots;
use cyclescope_measure::study::StopReason;

/// Forms of more slots or core cycles are not mixed with classes.
const SLOTS_MOST: f64 = 4.0;
const CYCLES_MOST: f64 = 14.0;
/// Repeats of a form alone whose rate is no whole number.
const ALONE_REPEATS: usize = 2;

/// A form before its mixes.
#[derive(Debug, Clone, PartialEq)]
pub struct SurveyedForm {
    /// Its name in texts.
    pub name: String,
    /// Its index among the forms of the source, or why it can't be mixed.
    pub place: Result<usize, String>,
    /// Its slots, if they were counted.
    pub slots: Option<DispatchSlots>,
    /// The letter of its ports.
    pub unit: char,
    /// Core cycles of a copy in the fastest program of `instr`, if known.
    pub rthroughput: Option<f64>,
    /// Registers and flags through which its copies depend on each other.
    pub chains: Vec<String>,
    /// Whether it computes with a memory operand: one slot may hold two µops.
    pub is_compound: bool,
    /// Whether it reads memory.
    pub reads_memory: bool,
    /// Whether it is one of the reference forms, which represent their class in mixes.
    pub is_reference: bool,
}

/// What the mixes say.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SurveyedPorts {
    /// The classes and their mixes. Members are indices among the forms of the source.
    pub findings: ClassFindings,
    /// The names of ports.
    pub labels: PortLabels,
    /// Core cycles of each form alone.
    pub(crate) alone: Vec<Option<MixTime>>,
    /// The class of each form.
    pub(crate) classes: Vec<Option<usize>>,
    /// The µops of the forms without class.
    pub(crate) fits: Vec<Option<UopFit>>,
    /// The mixes that these follow from.
    pub(crate) fitted_mixes: Vec<Vec<FittedMix>>,
    pub(crate) width: f64,
}

/// A form whose µops are sought.
struct OpenForm {
    /// Its index among the forms, and among those of the source.
    form: usize,
    place: usize,
    slots: f64,
    /// Core cycles alone.
    cycles: f64,
    /// The form alone, then beside classes.
    mixes: Vec<BlockedMix>,
    /// The ports that a µop may have.
    sets: Vec<PortBits>,
    /// Mixes beside classes that were asked for. Some may have no time.
    asked: usize,
}

/// The asked form and class, each by its index, and their mix: as a fit sees it, and whole.
type TimedBesideClass = ((usize, usize), BlockedMix, FittedMix);

impl OpenForm {
    fn sort_sets(&mut self) {
        self.sets.sort_unstable();
        self.sets.dedup();
    }

    fn fit(&self, width: f64) -> UopFit {
        let missing = self.asked - (self.mixes.len() - 1);
        UopFit { missing, ..fit_uops(&self.mixes, &self.sets, self.slots, width) }
    }
}

impl SurveyedForm {
    pub(crate) fn count_slots(&self) -> Option<f64> {
        let slots = self.slots.as_ref()?;
        slots.whole.filter(|_| slots.verdict == SlotVerdict::Exact).map(|whole| whole as f64)
    }
}

/// Measures the ports of these forms on a core with this many slots per cycle.
///
/// # Errors
///
/// Those of the source.
pub fn survey_forms(
    source: &mut dyn MixSource,
    forms: &[SurveyedForm],
    width: f64,
) -> Result<SurveyedPorts, StopReason> {
    let places: Vec<usize> = forms.iter().filter_map(|form| form.place.as_ref().ok().copied()).collect();
    let mut times = time_alone(source, &places, width)?.into_iter();
    // A form that reads its destination may be faster in a program that is made for it.
    let reach = |form: &SurveyedForm, time: MixTime| match form.rthroughput {
        Some(cycles) if cycles < time.low => {
            let scale = cycles / time.cycles;
            MixTime { cycles, low: time.low * scale, high: time.high * scale, ..time }
        }
        _ => time,
    };
    let time = |form: &SurveyedForm| {
        form.place.as_ref().ok().and_then(|_| times.next().flatten()).map(|time| reach(form, time))
    };
    let alone: Vec<Option<MixTime>> = forms.iter().map(time).collect();
    // The first form of a class is in all its mixes. One that also loads would seem to share the ports of loads.
    let mut ordered: Vec<(&SurveyedForm, &Option<MixTime>)> = forms.iter().zip(&alone).collect();
    ordered.sort_by_key(|(form, _)| (!form.is_reference, form.reads_memory));
    let candidate = |(form, alone): (&SurveyedForm, &Option<MixTime>)| {
        let is_simple = form.count_slots() == Some(1.0) && form.chains.is_empty() && !form.is_compound;
        let ports = read_ports(alone.as_ref()?.cycles, width).filter(|_| is_simple)?;
        Some(CandidateForm { form: *form.place.as_ref().ok()?, ports })
    };
    let candidates: Vec<CandidateForm> = ordered.into_iter().filter_map(candidate).collect();
    let findings = survey_classes(source, &candidates, width)?;
    let class_of = |form: &SurveyedForm| {
        let place = form.place.as_ref().ok()?;
        findings.classes.iter().position(|class| class.members.contains(place))
    };
    let classes: Vec<Option<usize>> = forms.iter().map(class_of).collect();
    let first_of = |class: usize| classes.iter().position(|own| *own == Some(class));
    let units: Vec<char> =
        (0..findings.classes.len()).map(|class| first_of(class).map_or('P', |form| forms[form].unit)).collect();
    let labels = PortLabels::new(&findings, &units);
    let fits = vec![None; forms.len()];
    let fitted_mixes = vec![Vec::new(); forms.len()];
    let mut survey = SurveyedPorts { findings, labels, alone, classes, fits, fitted_mixes, width };
    survey.fit_forms(source, forms)?;
    Ok(survey)
}

impl SurveyedPorts {
    /// Finds the µops of the forms without class.
    fn fit_forms(&mut self, source: &mut dyn MixSource, forms: &[SurveyedForm]) -> Result<(), StopReason> {
        let mut open = self.list_open_forms(forms);
        self.time_beside_classes(source, &mut open)?;
        self.repeat_odd_mixes(source, &mut open)?;
        for own in &open {
            self.fits[own.form] = Some(own.fit(self.width));
        }
        self.explain_by_twins(source, forms, &open)?;
        self.check_beside_odd_classes(source, &open)
    }

    /// The forms without class that may have few µops.
    fn list_open_forms(&self, forms: &[SurveyedForm]) -> Vec<OpenForm> {
        let usual_error = find_fit_error(&self.alone.iter().flatten().copied().collect::<Vec<MixTime>>());
        let unsorted = (0..forms.len()).filter(|form| self.classes[*form].is_none() && forms[*form].chains.is_empty());
        let open = |form: usize| {
            let time = self.alone[form].as_ref()?;
            let (slots, place) = (forms[form].count_slots()?, *forms[form].place.as_ref().ok()?);
            let (low, high) = cut_interval(time, usual_error);
            let alone = BlockedMix { blocked: 0, blockers: 0.0, copies: 1.0, low, high };
            let open =
                OpenForm { form, place, slots, cycles: time.cycles, mixes: vec![alone], sets: Vec::new(), asked: 0 };
            (slots <= SLOTS_MOST && time.cycles <= CYCLES_MOST).then_some(open)
        };
        unsorted.filter_map(open).collect()
    }

    /// Times each form beside the largest class of each component, then beside all classes of those that slow it
    /// down.
    fn time_beside_classes(&mut self, source: &mut dyn MixSource, open: &mut [OpenForm]) -> Result<(), StopReason> {
        let pooled = self.list_pooled();
        let first: Vec<(usize, usize)> =
            (0..open.len()).flat_map(|at| pooled.iter().map(move |class| (at, *class))).collect();
        let mut then = Vec::new();
        for ((at, class), mix, fitted) in self.time_blocked(source, open, &first)? {
            let is_slow = mix.low > fitted.limits.free_cycles() * (1.0 + SLOW_SHARE / 2.0);
            self.add_mix(&mut open[at], mix, fitted);
            if is_slow {
                let component = self.findings.find_component(class).expect("each class has one");
                let mapped = || component.classes.list_classes().filter(|class| !component.odd.contains(*class));
                open[at].sets.extend(mapped().map(|class| self.labels.list_ports(class)));
                then.extend(mapped().filter(|other| *other != class).map(|other| (at, other)));
            }
        }
        for ((at, _), mix, fitted) in self.time_blocked(source, open, &then)? {
            self.add_mix(&mut open[at], mix, fitted);
        }
        first.iter().chain(&then).for_each(|(at, _)| open[*at].asked += 1);
        open.iter_mut().for_each(OpenForm::sort_sets);
        Ok(())
    }

    /// Times all mixes of forms that no µops explain again: something may have disturbed them. The fastest try
    /// counts.
    fn repeat_odd_mixes(&mut self, source: &mut dyn MixSource, open: &mut [OpenForm]) -> Result<(), StopReason> {
        let class_of =
            |ports: PortBits| (0..self.findings.classes.len()).find(|class| self.labels.list_ports(*class) == ports);
        let odd = (0..open.len()).filter(|at| open[*at].fit(self.width).solutions.is_empty());
        let classes = |at: usize| open[at].mixes[1..].iter().filter_map(move |mix| Some((at, class_of(mix.blocked)?)));
        let asked: Vec<(usize, usize)> = odd.flat_map(classes).collect();
        for ((at, _), mix, fitted) in self.time_blocked(source, open, &asked)? {
            let all = &mut self.fitted_mixes[open[at].form];
            let Some(place) = all.iter().position(|known| known.mix == fitted.mix) else { continue };
            if fitted.time.cycles < all[place].time.cycles {
                // The first one is the form alone.
                (all[place], open[at].mixes[place + 1]) = (fitted, mix);
            }
        }
        Ok(())
    }

    /// Explains forms by twins that no µops explain.
    fn explain_by_twins(
        &mut self,
        source: &mut dyn MixSource,
        forms: &[SurveyedForm],
        open: &[OpenForm],
    ) -> Result<(), StopReason> {
        let is_odd = |own: &&OpenForm| self.fits[own.form].as_ref().is_some_and(|fit| fit.solutions.is_empty());
        let candidates = |own: &OpenForm| list_candidates(&own.mixes, &own.sets, own.slots, self.width);
        let odd: Vec<OddForm> =
            open.iter().filter(is_odd).map(|own| OddForm { form: own.form, candidates: candidates(own) }).collect();
        let SurveyedPorts { findings, labels, fitted_mixes, width, .. } = &*self;
        let names = forms.iter().filter_map(|form| Some((*form.place.as_ref().ok()?, form.name.as_str()))).collect();
        let twins = TwinBuilder { names, findings, labels, fitted: fitted_mixes, width: *width };
        for ExplainedForm { form, solutions, twins } in twins.explain_forms(source, &odd)? {
            if let Some(fit) = &mut self.fits[form] {
                (fit.solutions, fit.twins) = (solutions, twins);
            }
        }
        Ok(())
    }

    /// Times forms with one solution beside classes without a map. Their ports are unknown, so a slow mix says only
    /// that the form uses more than its solution says.
    fn check_beside_odd_classes(&mut self, source: &mut dyn MixSource, open: &[OpenForm]) -> Result<(), StopReason> {
        let odd: Vec<usize> =
            self.findings.components.iter().flat_map(|component| component.odd.list_classes()).collect();
        let is_single = |at: &usize| self.fits[open[*at].form].as_ref().is_some_and(|fit| fit.solutions.len() == 1);
        let asked: Vec<(usize, usize)> =
            (0..open.len()).filter(is_single).flat_map(|at| odd.iter().map(move |class| (at, *class))).collect();
        for ((at, _), mix, fitted) in self.time_blocked(source, open, &asked)? {
            let Some(fit) = &mut self.fits[open[at].form] else { continue };
            let own: Vec<(PortBits, f64)> = fit.solutions.iter().flatten().map(|ports| (*ports, mix.copies)).collect();
            let free = best_cycles(&own).max(fitted.limits.free_cycles());
            fit.is_slow_beside_odd |= mix.low > free * (1.0 + SLOW_SHARE);
        }
        Ok(())
    }

    fn add_mix(&mut self, own: &mut OpenForm, mix: BlockedMix, fitted: FittedMix) {
        own.mixes.push(mix);
        self.fitted_mixes[own.form].push(fitted);
    }

    /// The class with the most ports of each component that has a map.
    fn list_pooled(&self) -> Vec<usize> {
        let components = self.findings.components.iter().filter(|component| !component.solutions.maps.is_empty());
        let ports = |class: &usize| self.findings.classes[*class].ports;
        let largest = |component: &SharingComponent| {
            component.classes.list_classes().filter(|class| !component.odd.contains(*class)).max_by_key(ports)
        };
        components.filter_map(largest).collect()
    }

    /// Times forms beside classes, each by its index. Mixes without a time are left out.
    fn time_blocked(
        &self,
        source: &mut dyn MixSource,
        open: &[OpenForm],
        asked: &[(usize, usize)],
    ) -> Result<Vec<TimedBesideClass>, StopReason> {
        let counts: Vec<(usize, usize)> = asked
            .iter()
            .map(|(at, class)| {
                let ports = self.findings.classes[*class].ports;
                let OpenForm { slots, cycles, .. } = open[*at];
                (ports as usize * BLOCKED_CYCLES, count_copies(ports, slots, cycles, self.width))
            })
            .collect();
        let mixes: Vec<Mix> = asked
            .iter()
            .zip(&counts)
            .map(|((at, class), (blockers, copies))| {
                Mix::new([(self.findings.classes[*class].members[0], *blockers), (open[*at].place, *copies)])
            })
            .collect();
        let outcomes = source.time_again(&mixes)?;
        let usual_error = find_fit_error(&list_times(&outcomes));
        let all = asked.iter().zip(counts).zip(mixes).zip(outcomes);
        let timed = all.filter_map(|(((asked, (blockers, copies)), mix), outcome)| {
            let MixOutcome::Timed(time) = outcome else { return None };
            let blocked = self.labels.list_ports(asked.1);
            let (blockers, copies) = (blockers as f64, copies as f64);
            let OpenForm { slots, cycles, .. } = open[asked.0];
            let limits = MixLimits {
                alone: (copies * cycles).max(BLOCKED_CYCLES as f64),
                slots: (blockers + copies * slots) / self.width,
            };
            let fitted = FittedMix { mix, time, blocked, limits };
            let (low, high) = cut_interval(&time, usual_error);
            Some((*asked, BlockedMix { blocked, blockers, copies, low, high }, fitted))
        });
        Ok(timed.collect())
    }
}

/// Core cycles of each form alone. One whose rate is no whole number may be disturbed: it is timed again, and the
/// fastest try counts.
fn time_alone(source: &mut dyn MixSource, forms: &[usize], width: f64) -> Result<Vec<Option<MixTime>>, StopReason> {
    let mut times = time_singles(source, forms)?;
    for _ in 0..ALONE_REPEATS {
        let is_open = |at: &usize| times[*at].is_some_and(|time| read_ports(time.cycles, width).is_none());
        let open: Vec<usize> = (0..forms.len()).filter(is_open).collect();
        let places: Vec<usize> = open.iter().map(|at| forms[*at]).collect();
        for (at, time) in open.into_iter().zip(time_singles(source, &places)?) {
            let tries = times[at].into_iter().chain(time);
            times[at] = tries.min_by(|one, other| one.cycles.total_cmp(&other.cycles));
        }
    }
    Ok(times)
}

/// The usual error of times, and at most half of what makes a mix slow: wider intervals explain everything.
fn find_fit_error(times: &[MixTime]) -> f64 {
    find_usual_error(times).min(SLOW_SHARE / 2.0)
}
