//! Each timing method of this CPU.

use cyclescope_clock::{Calibration, Counts, Feature, Pair, Scale, pairs};

fn readings_go_on<P: Pair>() {
    if let Err(missing) = P::check() {
        cyclescope_skipped::report_left_out(format_args!("{}: {missing}", P::NAME));
        return;
    }
    let mut differ = false;
    for _ in 0..100 {
        let (start, end) = (P::start(), P::end());
        assert!(end >= start && end - start < 1 << 40, "{}: {start} to {end}", P::NAME);
        differ |= end > start;
    }
    assert!(differ, "{}", P::NAME);
}

#[test]
fn every_pair_reads_a_clock_that_goes_on() {
    use pairs::*;
    readings_go_on::<CpuidRdtsc>();
    readings_go_on::<CpuidRdtscCpuid>();
    readings_go_on::<CpuidRdtscRdtscp>();
    readings_go_on::<CpuidRdtscRdtscpCpuid>();
    readings_go_on::<LfenceRdtsc>();
    readings_go_on::<LfenceRdtscLfence>();
    readings_go_on::<LfenceRdtscRdtscpLfence>();
    readings_go_on::<MfenceLfenceRdtsc>();
    readings_go_on::<MfenceRdtscpLfence>();
    readings_go_on::<Rdtsc>();
    readings_go_on::<Rdtscp>();
    readings_go_on::<RdtscpCpuid>();
    readings_go_on::<RdtscpLfence>();
    readings_go_on::<SerializeRdtsc>();
    #[cfg(target_os = "linux")]
    readings_go_on::<ClockGettime>();
}

/// That CPUID shows RDPRU does not mean that the system lets a program use it.
#[test]
fn what_a_method_needs_and_counts_is_data() {
    use pairs::*;
    assert_eq!((Rdpru::NEEDS, Rdpru::COUNTS), (&[Feature::Rdpru][..], Counts::CoreCycles));
    assert_eq!((RdtscpLfence::NEEDS, RdtscpLfence::NAME), (&[Feature::Rdtscp][..], "rdtscp-lfence"));
    assert!(Rdtsc::NEEDS.is_empty() && Rdtsc::COUNTS == Counts::TscTicks);
}

#[test]
fn a_calibration_knows_what_a_fenced_pair_takes() {
    type Clock = pairs::LfenceRdtscLfence;
    let found = Calibration::measure::<Clock>();
    let [least, most] = found.between;
    assert!(least <= found.pair && found.pair <= most && least <= found.empty && found.empty <= most, "{found:?}");
    assert!(found.step.0 >= 1.0 && found.scale.cycles > 0.0, "{found:?}");
    if found.waits && found.rulers_agree {
        let ratio = found.empty.0 / found.pair.0;
        assert!(found.pair.0 > 1.0 && (0.3..3.0).contains(&ratio), "{found:?}");
    }
    let now = Scale::read::<Clock>(&found);
    assert!(now.cycles > 0.0 && now.spread >= 0.0, "{now:?}");
}
