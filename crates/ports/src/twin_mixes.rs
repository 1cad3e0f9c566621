//! Twins: mixes in which a form is replaced by single instructions, one for each of its supposed µops.
//!
//! A core may run a mix slower than its best assignment to ports allows: it assigns µops badly, or they share
//! something else. If the twin of a mix is as slow, the supposed µops explain the form all the same.

use crate::class_findings::ClassFindings;
use crate::fitted_mix::FittedMix;
use crate::mix_source::MixSource;
use crate::port_labels::{PortBits, PortLabels};
use crate::union_bounds::{SLOT_SHARE, SLOW_SHARE};
use crate::uop_fit::UopCandidate;
use cyclescope_instr::mixes::mix::Mix;
use cyclescope_instr::mixes::mix_timer::{MixOutcome, MixTime};
use cyclescope_measure::study::StopReason;
use std::collections::{BTreeMap, HashMap, HashSet};

/// How often a twin is timed.
const TRIES: usize = 3;

/// A form whose mixes no µops explain.
pub(crate) struct OddForm {
    /// Its index among the forms.
    pub form: usize,
    /// Its supposed µops: see [`crate::uop_fit::list_candidates`].
    pub candidates: Vec<UopCandidate>,
}

/// The supposed µops of a form that twins explain.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExplainedForm {
    /// The form's index.
    pub form: usize,
    /// The lists of µops, all of the same length.
    pub solutions: Vec<Vec<PortBits>>,
    /// Mixes that are as slow as their twins.
    pub twins: usize,
}

/// What twins are built from.
pub(crate) struct TwinBuilder<'a> {
    /// The names of the forms of the source.
    pub names: BTreeMap<usize, &'a str>,
    pub findings: &'a ClassFindings,
    pub labels: &'a PortLabels,
    /// The mixes of each form beside classes.
    pub fitted: &'a [Vec<FittedMix>],
    pub width: f64,
}

impl TwinBuilder<'_> {
    /// Times the twins of odd forms. Returns those that these explain.
    ///
    /// # Errors
    ///
    /// Those of the source.
    pub(crate) fn explain_forms(
        &self,
        source: &mut dyn MixSource,
        odd: &[OddForm],
    ) -> Result<Vec<ExplainedForm>, StopReason> {
        let mut times: HashMap<Mix, MixTime> = HashMap::new();
        self.add_times(source, odd, &mut times, |_, _, _| true)?;
        // A twin that something disturbed would explain too much: what explains a mix is timed again.
        for _ in 1..TRIES {
            self.add_times(source, odd, &mut times, |fitted, known, twin| {
                known.is_some_and(|time| self.is_as_slow(fitted, twin, time))
            })?;
        }
        let find_time = |form: usize, uops: &[PortBits], at: usize| {
            let mix = self.build_twin(form, uops, at)?;
            let time = *times.get(&mix)?;
            Some((mix, time))
        };
        let explained = |OddForm { form, candidates }: &OddForm| {
            let holds = |candidate: &&UopCandidate| {
                candidate.unexplained.iter().all(|at| {
                    find_time(*form, &candidate.uops, *at)
                        .is_some_and(|(twin, time)| self.is_as_slow(&self.fitted[*form][*at], &twin, &time))
                })
            };
            // Lists of the likeliest length come first, and of these the ones that need the fewest twins.
            let first = candidates.iter().find(holds)?;
            let shape = |candidate: &UopCandidate| (candidate.uops.len(), candidate.unexplained.len());
            let alike = candidates.iter().filter(|candidate| shape(candidate) == shape(first));
            let solutions = alike.filter(holds).map(|candidate| candidate.uops.clone()).collect();
            Some(ExplainedForm { form: *form, solutions, twins: first.unexplained.len() })
        };
        Ok(odd.iter().filter_map(explained).collect())
    }

    /// Times those twins of odd forms that `is_asked` chooses, given the form's mix, what is known of the twin, and the
    /// twin. Keeps the fastest time of each.
    fn add_times(
        &self,
        source: &mut dyn MixSource,
        odd: &[OddForm],
        times: &mut HashMap<Mix, MixTime>,
        is_asked: impl Fn(&FittedMix, Option<&MixTime>, &Mix) -> bool,
    ) -> Result<(), StopReason> {
        let (mut asked, mut seen): (Vec<Mix>, HashSet<Mix>) = Default::default();
        for OddForm { form, candidates } in odd {
            for candidate in candidates {
                for at in &candidate.unexplained {
                    let Some(twin) = self.build_twin(*form, &candidate.uops, *at) else { continue };
                    if is_asked(&self.fitted[*form][*at], times.get(&twin), &twin) && seen.insert(twin.clone()) {
                        asked.push(twin);
                    }
                }
            }
        }
        for (twin, outcome) in asked.iter().zip(source.time_again(&asked)?) {
            let MixOutcome::Timed(time) = outcome else { continue };
            let known = times.entry(twin.clone()).or_insert(time);
            if time.cycles < known.cycles {
                *known = time;
            }
        }
        Ok(())
    }

    /// Whether a form's mix is no slower than its twin. A twin has a slot for each µop, and tells nothing if these
    /// limit it.
    fn is_as_slow(&self, fitted: &FittedMix, twin: &Mix, time: &MixTime) -> bool {
        let slots = twin.counts().iter().sum::<usize>() as f64 / self.width;
        slots * (1.0 + SLOT_SHARE) < fitted.time.cycles && fitted.time.low <= time.high * (1.0 + SLOW_SHARE)
    }

    /// The twin of a form's mix at this index. `None` if a µop has no class.
    fn build_twin(&self, form: usize, uops: &[PortBits], at: usize) -> Option<Mix> {
        let [blocker, own] = [0, 1].map(|part: usize| self.fitted[form][at].mix.parts.get(part).copied());
        let (blocker, own) = (blocker?, own?);
        let mut parts = BTreeMap::from([(blocker.form, blocker.count)]);
        for ports in uops {
            *parts.entry(self.find_single(own.form, *ports)?).or_insert(0) += own.count;
        }
        Some(Mix::new(parts))
    }

    /// The single instruction with these ports whose operands are most like the form's: loads of other sizes get
    /// into each other's way.
    fn find_single(&self, form: usize, ports: PortBits) -> Option<usize> {
        let class = (0..self.findings.classes.len()).find(|class| self.labels.list_ports(*class) == ports)?;
        let operands = |form: &usize| self.names.get(form).map_or(Vec::new(), |name| list_operands(name));
        let own = operands(&form);
        let likeness = |other: &usize| operands(other).iter().filter(|operand| own.contains(operand)).count();
        // The first of those that are alike.
        self.findings.classes[class].members.iter().copied().rev().max_by_key(likeness)
    }
}

/// The operands in a form's name, such as `xmm` and `m128`.
fn list_operands(name: &str) -> Vec<&str> {
    name.split_once(' ').map_or(Vec::new(), |(_, operands)| operands.split(", ").collect())
}
