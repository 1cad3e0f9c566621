//! Background load while programs ran: its effect on the width of the core, on rounds, and on CPU
//! time.

use cyclescope_core::error::RunError;
use cyclescope_core::machine::fact::{Fact, SystemFiles};
use cyclescope_core::machine::noise::NoiseCounts;
use cyclescope_measure::rounds::{LayoutReading, LayoutRounds};
use cyclescope_measure::ruler::LeastWidth;
use cyclescope_measure::ruler::{UnsharedWidth, WidthLearner};
use cyclescope_measure::sibling::{Retries, SiblingPolicy};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Ticks per second in `/proc/stat` (proc(5); USER_HZ is 100 on x86).
pub(super) const TICKS: f64 = 100.0;

/// Share of layouts with a busy sibling above which a test is measured again.
const SIGNIFICANT_SHARE: f64 = 0.1;
/// Unclear tests are measured once more. The sibling may have started or stopped meanwhile, and
/// then some curves miss its part of a structure. A burst may last for a whole step of a search.
pub(super) const RETRY_ONCE: SiblingPolicy = SiblingPolicy { retries: 1, ..SiblingPolicy::USUAL };
/// A test with a busy sibling is also measured once more, unless the sibling is busy most of the
/// time: then each thread may own half of a structure.
pub(super) const TEST_SIBLING_POLICY: SiblingPolicy = SiblingPolicy { resting_share: 0.5, ..RETRY_ONCE };

/// Background load that readings show.
#[derive(Debug, Default)]
pub(super) struct RunConditions {
    /// Additions per cycle in each layout, with their relative standard error.
    widths: Vec<(f64, f64)>,
    /// Additions per cycle in the layouts that results use.
    used: Vec<(f64, f64)>,
    /// Learns the width of an unshared core.
    usual: WidthLearner,
    /// Number of measured rounds, and of undisturbed ones.
    rounds: usize,
    undisturbed: usize,
}

impl RunConditions {
    /// Adds layouts of this many rounds each.
    pub(super) fn add_layouts(&mut self, layouts: &[LayoutRounds], rounds: u32) {
        for layout in layouts {
            self.rounds += rounds as usize;
            self.undisturbed += layout.further_durations().count();
            if let Some(reading) = layout.read() {
                self.widths.push((reading.width, reading.width_error));
                self.usual.learn(reading.width);
            }
        }
    }

    /// Adds the layouts of these readings, which a result uses.
    pub(super) fn add_used<'a>(&mut self, readings: impl IntoIterator<Item = &'a LayoutReading>) {
        self.used.extend(readings.into_iter().map(|reading| (reading.width, reading.width_error)));
    }

    /// The width of an unshared core, from all layouts so far. `known` is the least of its design.
    pub(super) fn quiet_width(&self, known: Option<LeastWidth>) -> UnsharedWidth {
        self.usual.unshared_width().unwrap_or_default().or_earlier(UnsharedWidth::from_widths([], known))
    }

    /// The share of layouts in which something else used the core, and their number. `known` is the
    /// least width of an unshared core of this design.
    pub(super) fn shared_layouts(&self, known: Option<LeastWidth>) -> Option<(f64, usize)> {
        (!self.widths.is_empty()).then(|| (self.shared_share(known), self.widths.len()))
    }

    /// The share of layouts in which something else used the core; 0 without layouts.
    pub(super) fn shared_share(&self, known: Option<LeastWidth>) -> f64 {
        self.busy_since(self.used.len(), known).of_all
    }

    /// Number of layouts that results use so far.
    pub(super) fn used_layouts(&self) -> usize {
        self.used.len()
    }

    /// The share of layouts with a busy sibling: of results from this layout on, and of all
    /// layouts. All layouts determine the best width.
    pub(super) fn busy_since(&self, from: usize, known: Option<LeastWidth>) -> BusyShare {
        let quiet = UnsharedWidth::from_widths(self.widths.iter().copied(), known);
        let share = |widths: &[(f64, f64)]| {
            let shared = widths.iter().filter(|(width, error)| !quiet.is_alone(*width, *error)).count();
            shared as f64 / widths.len().max(1) as f64
        };
        BusyShare { share: share(&self.used[from..]), of_all: share(&self.widths) }
    }

    /// The share of disturbed rounds, and their number.
    pub(super) fn disturbed_rounds(&self) -> Option<(f64, usize)> {
        (self.rounds > 0).then(|| (1.0 - self.undisturbed as f64 / self.rounds as f64, self.rounds))
    }
}

#[cfg(test)]
impl RunConditions {
    /// Layouts of these widths, all used by results, and these numbers of measured and undisturbed
    /// rounds.
    pub(super) fn showing(widths: &[f64], [rounds, undisturbed]: [usize; 2]) -> RunConditions {
        let widths: Vec<(f64, f64)> = widths.iter().map(|width| (*width, 0.01)).collect();
        RunConditions { used: widths.clone(), widths, rounds, undisturbed, ..RunConditions::default() }
    }
}

/// How much of the time something else used the core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BusyShare {
    /// Share of a measurement's layouts.
    pub share: f64,
    /// Share of all layouts so far.
    pub of_all: f64,
}

impl BusyShare {
    /// Whether it may have changed the result.
    pub(super) fn is_significant(&self) -> bool {
        self.share > SIGNIFICANT_SHARE
    }
}

/// Measures, and once more if the sibling was busy and a retry is left. Keeps the quieter
/// measurement.
pub(super) fn retry_if_shared<T, E>(
    mut retries: Retries,
    mut measure: impl FnMut() -> Result<(T, BusyShare), E>,
) -> Result<(T, BusyShare), E> {
    let first = measure()?;
    if !first.1.is_significant() || !retries.retry_if_shared(first.1.of_all) {
        return Ok(first);
    }
    let second = measure()?;
    Ok(if second.1.share < first.1.share { second } else { first })
}

/// The kernel's counters at one moment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct KernelCounts {
    /// Ticks that the hypervisor gave to other guests.
    steal: Fact<u64>,
    /// Times that the control group's quota stopped this process.
    throttled: Fact<u64>,
}

impl KernelCounts {
    /// Reads the present counters of a CPU.
    pub(super) fn read_now(cpu: u32) -> Result<KernelCounts, RunError> {
        let NoiseCounts { steal, throttled, .. } = NoiseCounts::read(&SystemFiles::system(), cpu);
        Ok(KernelCounts { steal, throttled })
    }

    /// The share of the time since an earlier moment that the hypervisor gave to other guests.
    pub(super) fn stolen_share(&self, earlier: &KernelCounts, time: Duration) -> Fact<f64> {
        let ticks = count_since(&self.steal, &earlier.steal);
        ticks.map(|ticks| (ticks as f64 / TICKS / time.as_secs_f64().max(1.0 / TICKS)).min(1.0))
    }

    /// Number of stops by the quota since an earlier moment.
    pub(super) fn throttled_stops(&self, earlier: &KernelCounts) -> Fact<u64> {
        count_since(&self.throttled, &earlier.throttled)
    }
}

/// The increase of a counter. Counters may go back a little; that counts as zero.
fn count_since(later: &Fact<u64>, earlier: &Fact<u64>) -> Fact<u64> {
    later.clone().and_then(|later| earlier.clone().map(|earlier| later.saturating_sub(earlier)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(steal: Fact<u64>) -> KernelCounts {
        KernelCounts { steal, throttled: Fact::unknown("no control group") }
    }

    #[test]
    fn narrower_layouts_count_as_shared() {
        let mut widths = vec![(4.1, 0.01); 30];
        widths.extend([(2.1, 0.01); 10]);
        let conditions = RunConditions { widths, rounds: 480, undisturbed: 456, ..RunConditions::default() };
        assert_eq!(conditions.shared_layouts(None), Some((0.25, 40)));
        let (disturbed, rounds) = conditions.disturbed_rounds().unwrap();
        assert!((disturbed - 0.05).abs() < 1e-9 && rounds == 480);
        let nothing = RunConditions::default();
        assert_eq!((nothing.shared_layouts(None), nothing.disturbed_rounds()), (None, None));
    }

    #[test]
    fn a_permanently_shared_core_is_detected_from_its_known_width() {
        let conditions = RunConditions { widths: vec![(2.1, 0.01); 10], ..RunConditions::default() };
        assert_eq!(conditions.shared_layouts(None).map(|(share, _)| share), Some(0.0));
        assert_eq!(conditions.shared_layouts(Some(LeastWidth { least: 3.36 })).map(|(share, _)| share), Some(1.0));
    }

    #[test]
    fn a_measurement_with_a_busy_sibling_is_repeated() {
        let measure = |shares: [f64; 2], of_all: f64| {
            let mut times = 0;
            let found = retry_if_shared(TEST_SIBLING_POLICY.start_retries(), || {
                times += 1;
                Ok::<_, ()>((times, BusyShare { share: shares[times - 1], of_all }))
            });
            (found.unwrap().0, times)
        };
        assert_eq!(measure([0.02, 0.0], 0.02), (1, 1));
        assert_eq!(measure([0.6, 0.0], 0.1), (2, 2));
        assert_eq!(measure([0.6, 0.9], 0.1), (1, 2));
        assert_eq!(measure([0.9, 0.0], 0.8), (1, 1), "it is busy all the time");
    }

    #[test]
    fn a_test_is_compared_with_the_best_width_of_all() {
        let widths = [vec![(4.1, 0.01); 30], vec![(2.1, 0.01); 10]].concat();
        let conditions = RunConditions { used: widths.clone(), widths, ..RunConditions::default() };
        assert_eq!(conditions.busy_since(30, None), BusyShare { share: 1.0, of_all: 0.25 });
        assert_eq!(conditions.busy_since(20, None).share, 0.5);
        assert_eq!(conditions.busy_since(40, None).share, 0.0, "nothing was measured");
    }

    #[test]
    fn dropped_layouts_change_nothing() {
        let widths = [vec![(4.1, 0.01); 35], vec![(2.1, 0.01); 5]].concat();
        let used = widths[..35].to_vec();
        let conditions = RunConditions { widths, used, ..RunConditions::default() };
        assert_eq!(conditions.busy_since(30, None), BusyShare { share: 0.0, of_all: 0.125 });
        assert_eq!(conditions.shared_layouts(None), Some((0.125, 40)), "the environment has them");
    }

    #[test]
    fn stolen_time_is_a_share() {
        let [before, after] = [40, 65].map(|ticks| counted(Fact::Known(ticks)));
        assert_eq!(after.stolen_share(&before, Duration::from_secs(1)), Fact::Known(0.25));
        assert_eq!(before.stolen_share(&after, Duration::from_secs(1)), Fact::Known(0.0));
        let hidden = counted(Fact::unknown("hidden"));
        assert_eq!(after.stolen_share(&hidden, Duration::from_secs(1)).why(), Some("hidden"));
        assert!(after.throttled_stops(&before).why().is_some());
    }

    #[test]
    fn the_first_layouts_are_compared_with_the_width_of_the_design() {
        let alone = |known| RunConditions::default().quiet_width(known).is_alone(2.1, 0.0);
        assert_eq!([None, Some(LeastWidth { least: 3.36 })].map(alone), [true, false]);
    }
}
