//! Tests each timing method of this CPU.

use cyclescope_clock::{Calibration, Counts, Feature, Pair, Scale, pairs};

fn readings_advance<P: Pair>() {
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
fn every_pair_reads_an_advancing_clock() {
    use pairs::*;
    readings_advance::<CpuidRdtsc>();
    readings_advance::<CpuidRdtscCpuid>();
    readings_advance::<CpuidRdtscRdtscp>();
    readings_advance::<CpuidRdtscRdtscpCpuid>();
    readings_advance::<LfenceRdtsc>();
    readings_advance::<LfenceRdtscLfence>();
    readings_advance::<LfenceRdtscRdtscpLfence>();
    readings_advance::<MfenceLfenceRdtsc>();
    readings_advance::<MfenceRdtscpLfence>();
    readings_advance::<Rdtsc>();
    readings_advance::<Rdtscp>();
    readings_advance::<RdtscpCpuid>();
    readings_advance::<RdtscpLfence>();
    readings_advance::<SerializeRdtsc>();
    #[cfg(target_os = "linux")]
    readings_advance::<ClockGettime>();
}

/// CPUID may report RDPRU although the system does not let a program use it.
#[test]
fn requirements_and_units_of_a_method_are_constants() {
    use pairs::*;
    assert_eq!((Rdpru::NEEDS, Rdpru::COUNTS), (&[Feature::Rdpru][..], Counts::CoreCycles));
    assert_eq!((RdtscpLfence::NEEDS, RdtscpLfence::NAME), (&[Feature::Rdtscp][..], "rdtscp-lfence"));
    assert!(Rdtsc::NEEDS.is_empty() && Rdtsc::COUNTS == Counts::TscTicks);
}

#[test]
fn a_calibration_measures_a_fenced_pair() {
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
