//! Quantiles of the normal distribution and of Student's t distribution.

use statrs::distribution::{ContinuousCDF, Normal};
use std::f64::consts::PI;

/// Degrees of freedom above which Fisher's expansion around the normal quantile is exact to 1e-10.
const NEARLY_NORMAL: f64 = 1e5;

/// The standard normal quantile.
///
/// # Panics
///
/// Panics unless `p` lies inside (0, 1).
pub fn normal_quantile(p: f64) -> f64 {
    assert!(p > 0.0 && p < 1.0, "no quantile {p} of the normal distribution");
    Normal::standard().inverse_cdf(p)
}

fn evaluate_polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// Quantile of Student's t distribution. The degrees of freedom may be any number from 1 on, also a
/// fraction. Relative accuracy is better than 1e-9.
///
/// Newton's method on ln t, against the logarithm of the tail (or of the central part if `p` is
/// near 1/2). Both are concave in ln t, so it converges from any start.
///
/// # Panics
///
/// Panics unless `p` lies inside (0, 1), or with less than one degree of freedom.
pub fn t_quantile(p: f64, freedom: f64) -> f64 {
    assert!(p > 0.0 && p < 1.0, "no quantile {p} of Student's distribution");
    assert!(freedom >= 1.0, "{freedom} degrees of freedom");
    if p == 0.5 {
        return 0.0;
    }
    if freedom >= NEARLY_NORMAL {
        return fisher_expansion(normal_quantile(p), freedom);
    }
    // Each is exact where it is used.
    let (tail, central) = (p.min(1.0 - p), (p - 0.5).abs());
    let student = StudentDistribution::new(freedom);
    let mut log_t = normal_quantile(p).abs().ln();
    for _ in 0..100 {
        let t = log_t.exp();
        let step = if tail < 0.25 {
            let log_tail = student.log_tail(t);
            (log_tail - tail.ln()) * (log_tail - log_t - student.log_density(t)).exp()
        } else {
            let log_central = student.log_central(t);
            (central.ln() - log_central) * (log_central - log_t - student.log_density(t)).exp()
        };
        log_t += step;
        if step.abs() < 1e-14 {
            break;
        }
    }
    log_t.exp().copysign(p - 0.5)
}

/// R. A. Fisher's expansion of t around the normal quantile z: Abramowitz and Stegun, 26.7.5.
fn fisher_expansion(z: f64, freedom: f64) -> f64 {
    let s = z * z;
    let terms = [
        z,
        z * evaluate_polynomial(&[1.0, 1.0], s) / 4.0,
        z * evaluate_polynomial(&[3.0, 16.0, 5.0], s) / 96.0,
        z * evaluate_polynomial(&[-15.0, 17.0, 19.0, 3.0], s) / 384.0,
        z * evaluate_polynomial(&[-945.0, -1920.0, 1482.0, 776.0, 79.0], s) / 92_160.0,
    ];
    evaluate_polynomial(&terms, 1.0 / freedom)
}

/// Student's t distribution for positive t, in logarithms.
struct StudentDistribution {
    freedom: f64,
    /// ln Γ((ν+1)/2) / (Γ(ν/2) √π)
    log_norm: f64,
}

impl StudentDistribution {
    fn new(freedom: f64) -> StudentDistribution {
        StudentDistribution { freedom, log_norm: (gamma_ratio(freedom / 2.0) / PI.sqrt()).ln() }
    }

    /// ln (1 + t²/ν)
    fn log_spread(&self, t: f64) -> f64 {
        let r = t / self.freedom.sqrt();
        if r < 1e8 { (r * r).ln_1p() } else { 2.0 * r.ln() }
    }

    fn log_density(&self, t: f64) -> f64 {
        let power = (self.freedom + 1.0) / 2.0;
        self.log_norm - self.freedom.ln() / 2.0 - power * self.log_spread(t)
    }

    /// ln P(T > t)
    fn log_tail(&self, t: f64) -> f64 {
        if self.tail_converges(t) { self.tail_by_fraction(t) } else { (0.5 - self.central_by_fraction(t).exp()).ln() }
    }

    /// ln P(0 < T < t)
    fn log_central(&self, t: f64) -> f64 {
        if self.tail_converges(t) { (0.5 - self.tail_by_fraction(t).exp()).ln() } else { self.central_by_fraction(t) }
    }

    /// Whether the continued fraction of the tail converges fast. That of I_x(a, b) does below x =
    /// (a+1)/(a+b+2), that of its complement above (DLMF 8.17(v)).
    fn tail_converges(&self, t: f64) -> bool {
        let a = self.freedom / 2.0;
        (-self.log_spread(t)).exp() < (a + 1.0) / (a + 2.5)
    }

    /// The tail is I_y(ν/2, 1/2) / 2 with y = ν/(ν+t²): DLMF 8.17.
    fn tail_by_fraction(&self, t: f64) -> f64 {
        let a = self.freedom / 2.0;
        let y = (-self.log_spread(t)).exp();
        self.log_prefix(t) - (2.0 * a).ln() + beta_fraction(a, 0.5, y).ln()
    }

    /// The central part is I_x(1/2, ν/2) / 2 with x = t²/(ν+t²).
    fn central_by_fraction(&self, t: f64) -> f64 {
        let x = t * t / (self.freedom + t * t);
        self.log_prefix(t) + beta_fraction(0.5, self.freedom / 2.0, x).ln()
    }

    /// ln x^(1/2) y^(ν/2) / B(1/2, ν/2)
    fn log_prefix(&self, t: f64) -> f64 {
        let log_y = -self.log_spread(t);
        let log_x = 2.0 * (t / self.freedom.sqrt()).ln() + log_y;
        self.log_norm + log_x / 2.0 + self.freedom / 2.0 * log_y
    }
}

/// Γ(a + 1/2) / Γ(a): recurrence up to a large a, then the expansion of DLMF 5.11.13.
fn gamma_ratio(a: f64) -> f64 {
    let (mut a, mut factor) = (a, 1.0);
    while a < 20.0 {
        factor *= a / (a + 0.5);
        a += 1.0;
    }
    // ln(ratio / √a) = −1/8a + 1/192a³ − 1/640a⁵ + 17/14336a⁷ − …; the next term is below 1e-14
    // here.
    let inverse = 1.0 / a;
    let series = evaluate_polynomial(&[-1.0 / 8.0, 1.0 / 192.0, -1.0 / 640.0, 17.0 / 14_336.0], inverse * inverse);
    factor * a.sqrt() * (series * inverse).exp()
}

/// Continued fraction of the incomplete beta function (DLMF 8.17.22). Evaluated from the front by
/// Lentz's method as modified by Thompson and Barnett, Journal of Computational Physics 64 (1986).
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let nonzero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..10_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for coefficient in [even, odd] {
            d = 1.0 / nonzero(1.0 + coefficient * d);
            c = nonzero(1.0 + coefficient / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-16 {
            break;
        }
    }
    fraction
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use statrs::distribution::StudentsT;

    fn is_close(value: f64, truth: f64, accuracy: f64) -> bool {
        (value - truth).abs() <= accuracy * truth.abs()
    }

    #[test]
    fn quantiles_match_published_tables() {
        // Values printed by R's qt().
        for (p, freedom, t) in [
            (0.975, 1.0, 12.706_204_736_174_7),
            (0.975, 2.0, 4.302_652_729_749_46),
            (0.95, 7.0, 1.894_578_605_090_01),
            (0.975, 7.0, 2.364_624_251_592_78),
            (0.995, 10.0, 3.169_272_672_616_95),
            (0.975, 30.0, 2.042_272_456_301_24),
        ] {
            assert!(is_close(t_quantile(p, freedom), t, 1e-12), "{} for {t}", t_quantile(p, freedom));
        }
        assert!(is_close(normal_quantile(0.975), 1.959_963_984_540_054, 1e-15));
    }

    #[test]
    fn quantiles_match_closed_forms() {
        for exponent in 1..=60 {
            for p in [0.5f64.powi(exponent), 0.5 - 0.5f64.powi(exponent + 1), 0.3f64.powi(exponent)] {
                // With one degree of freedom this is the Cauchy distribution; with two the quantile
                // is algebraic.
                let cauchy = if p < 0.25 { -1.0 / (PI * p).tan() } else { (PI * (p - 0.5)).tan() };
                let two = (2.0 * p - 1.0) / (2.0 * p * (1.0 - p)).sqrt();
                assert!(is_close(t_quantile(p, 1.0), cauchy, 1e-12), "{p}");
                assert!(is_close(t_quantile(p, 2.0), two, 1e-12), "{p}");
            }
        }
    }

    #[test]
    fn both_methods_agree_at_the_switch() {
        for p in [1e-12, 1e-5, 0.025, 0.2, 0.4, 0.499_999] {
            let (below, above) = (t_quantile(p, NEARLY_NORMAL * (1.0 - 1e-15)), t_quantile(p, NEARLY_NORMAL));
            assert!(is_close(below, above, 1e-10), "{below} {above}");
        }
        assert!(is_close(t_quantile(0.01, f64::INFINITY), normal_quantile(0.01), 1e-15));
    }

    #[test]
    #[should_panic(expected = "quantile 1")]
    fn the_quantile_of_one_is_rejected() {
        t_quantile(1.0, 5.0);
    }

    proptest! {
        #[test]
        fn normal_quantiles_match_statrs(log_p in -30.0..-0.7f64) {
            let p = log_p.exp();
            let normal = Normal::new(0.0, 1.0).expect("a distribution");
            prop_assert!(is_close(normal.cdf(normal_quantile(p)), p, 1e-9));
            prop_assert_eq!(normal_quantile(0.25), -normal_quantile(0.75));
        }

        #[test]
        fn t_quantiles_match_statrs(log_p in -20.0..-0.7f64, log_freedom in 0.0..8f64) {
            let (p, freedom) = (log_p.exp(), log_freedom.exp());
            let student = StudentsT::new(0.0, 1.0, freedom).expect("a distribution");
            let t = t_quantile(p, freedom);
            prop_assert!(is_close(student.cdf(t), p, 1e-9), "{} for {p}", student.cdf(t));
        }

        #[test]
        fn t_quantiles_are_odd_and_increasing(p in 0.001..0.499f64, freedom in 1.0..300f64) {
            let t = t_quantile(p, freedom);
            prop_assert!(is_close(t_quantile(1.0 - p, freedom), -t, 1e-10));
            prop_assert!(t < t_quantile(p + 0.001, freedom));
            prop_assert!(t < t_quantile(p, freedom + 0.5), "tails grow lighter");
        }
    }
}
