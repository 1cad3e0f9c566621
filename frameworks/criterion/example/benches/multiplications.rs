//! Chains of 50 and of 150 multiplications, in core cycles.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use cyclescope_criterion::CoreCycles; // the second line of three

fn chains(criterion: &mut Criterion<CoreCycles>) {
    let mut group = criterion.benchmark_group("multiplications");
    for number in [50, 150] {
        group.throughput(Throughput::Elements(number));
        group.bench_with_input(BenchmarkId::from_parameter(number), &number, |bencher, number| {
            let mut value = 3;
            bencher.iter(|| {
                value = cyclescope_criterion_example::multiplications(*number, value);
                value
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(CoreCycles::new()); // the third
    targets = chains
}
criterion_main!(benches);
