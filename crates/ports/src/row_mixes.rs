//! The mixes that decided what a row says.
//!
//! Of a class, these are the mixes with each other class: the fastest one proves, and the slowest one
//! suggests. Of another form, these are its mixes beside classes.

use crate::class_findings::{ClassMix, ComparedForm};
use crate::class_set::ClassSet;
use crate::deciding_mix::{DecidingMix, FormNames, MixEvidence, MixLimits};
use crate::fitted_mix::FittedMix;
use crate::forms_survey::SurveyedPorts;
use crate::port_labels::best_cycles;
use crate::union_bounds::{SLOW_SHARE, UnionBounds, UnionStanding};
use crate::uop_fit::UopFit;

/// Upper limit of mixes of a row.
const MIXES_MOST: usize = 80;

impl SurveyedPorts {
    /// The mixes that decided the row of a form. `place` is its index among the forms of the source.
    pub(crate) fn list_row_mixes(&self, form: usize, place: usize, names: &[FormNames]) -> Vec<DecidingMix> {
        let mut mixes = match (self.classes[form], &self.fits[form]) {
            (Some(class), _) => self.list_class_mixes(class, place, names),
            (None, Some(fit)) => {
                self.fitted_mixes[form].iter().map(|mix| self.describe_fitted(mix, fit, names)).collect()
            }
            (None, None) => Vec::new(),
        };
        mixes.truncate(MIXES_MOST);
        mixes
    }

    fn list_class_mixes(&self, class: usize, place: usize, names: &[FormNames]) -> Vec<DecidingMix> {
        let own = self.findings.comparisons.iter().filter(|compared| compared.form == place);
        let ports = self.findings.classes[class].ports;
        let compare = |compared: &ComparedForm| {
            let counts = compared.mix.counts().into_iter().map(|count| count as f64);
            let limits = MixLimits {
                alone: counts.clone().fold(0.0, f64::max) / f64::from(ports),
                slots: counts.sum::<f64>() / self.width,
            };
            let shows = (MixEvidence::Suggests, format!("both use the same {ports} ports"));
            DecidingMix::new(&compared.mix, &compared.time, limits, names, shows)
        };
        // Pairs first, then triples.
        let bounds = self.findings.bounds.iter().filter(|bounds| bounds.classes.contains(class));
        let bounds = bounds.filter(|bounds| bounds.classes.count_classes() == 2 || bounds.is_shared());
        own.map(compare).chain(bounds.flat_map(|bounds| self.list_union_mixes(bounds, names))).collect()
    }

    /// The mix of these classes that takes longest for what they would take without shared ports, by the fastest try
    /// of each.
    pub(crate) fn find_slowest_mix(&self, classes: ClassSet) -> Option<&ClassMix> {
        let slowness = |mix: &&ClassMix| mix.time.low / self.limit_class_mix(mix).free_cycles();
        let own = self.findings.list_fastest_mixes(classes);
        own.max_by(|one, other| slowness(one).total_cmp(&slowness(other)))
    }

    /// The mixes that decided a union of classes: the fastest one if it proves something, then the
    /// slowest one if it suggests something.
    pub(crate) fn list_union_mixes(&self, bounds: &UnionBounds, names: &[FormNames]) -> Vec<DecidingMix> {
        let UnionBounds { lower, upper, standing, .. } = *bounds;
        let own = || self.findings.list_fastest_mixes(bounds.classes);
        let rate = |mix: &&ClassMix| mix.mix.counts().iter().sum::<usize>() as f64 / mix.time.high;
        let fastest = own().max_by(|one, other| rate(one).total_cmp(&rate(other)));
        let slowest = self.find_slowest_mix(bounds.classes);
        let most_own = bounds.classes.list_classes().map(|class| self.findings.classes[class].ports).max().unwrap_or(0);
        let proves = |shows: String| (MixEvidence::Proves, shows);
        let suggests = |shows: String| (MixEvidence::Suggests, shows);
        let at_least = (lower > most_own).then(|| proves(format!("they use at least {lower} ports together")));
        let (fast, slow) = match standing {
            UnionStanding::Free => (Some(proves(format!("they share no port: {lower} together"))), None),
            UnionStanding::NoPort => (
                Some(proves(format!("they share no port: {lower} together"))),
                Some(suggests("they share something that is no port".to_string())),
            ),
            UnionStanding::Fits => (at_least, Some(suggests(format!("they use at most {upper} ports together")))),
            UnionStanding::Misassigned => (
                at_least,
                Some(suggests("they share something, but no number of ports explains all mixes".to_string())),
            ),
            UnionStanding::Unclear => {
                (at_least, Some((MixEvidence::Untold, "it is slow, as are mixes that share no port".to_string())))
            }
            UnionStanding::Hidden => {
                (Some((MixEvidence::Untold, "the slots allow no more: they may share a port".to_string())), None)
            }
        };
        let describe = |(mix, shows): (&ClassMix, _)| {
            DecidingMix::new(&mix.mix, &mix.time, self.limit_class_mix(mix), names, shows)
        };
        [fastest.zip(fast), slowest.zip(slow)].into_iter().flatten().map(describe).collect()
    }

    fn limit_class_mix(&self, mix: &ClassMix) -> MixLimits {
        let alone = mix.counts.iter().map(|(class, count)| count / f64::from(self.findings.classes[*class].ports));
        let uops: f64 = mix.counts.iter().map(|(_, count)| count).sum();
        MixLimits { alone: alone.fold(0.0, f64::max), slots: uops / self.width }
    }

    /// A mix of a form beside a class.
    fn describe_fitted(&self, fitted: &FittedMix, fit: &UopFit, names: &[FormNames]) -> DecidingMix {
        let FittedMix { mix, time, blocked, limits } = fitted;
        let class = self.labels.describe(*blocked);
        let is_slow = time.low > limits.free_cycles() * (1.0 + SLOW_SHARE / 2.0);
        let (evidence, mut shows) = match is_slow {
            true => (MixEvidence::Suggests, format!("it uses some of {class}")),
            false => (MixEvidence::Proves, format!("it leaves enough of {class}")),
        };
        if let Some(uops) = fit.solutions.first().filter(|uops| !uops.is_empty()) {
            let counts = mix.counts();
            let own = uops.iter().map(|ports| (*ports, counts[1] as f64));
            let all: Vec<_> = own.chain([(*blocked, counts[0] as f64)]).collect();
            let best = best_cycles(&all).max(limits.slots);
            shows.push_str(&format!("; {} allows {best:.2}", self.labels.describe_uops(uops)));
        }
        DecidingMix::new(mix, time, *limits, names, (evidence, shows))
    }
}
