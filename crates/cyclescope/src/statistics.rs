//! TEMP
#![allow(missing_docs)]
use serde::Serialize;
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}
impl Interval {
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
    pub fn widened(self, by: f64) -> Interval {
        let h = self.half_width().hypot(by);
        Interval { value: self.value, low: self.value - h, high: self.value + h }
    }
}
pub fn mean(v: &[f64]) -> f64 {
    v.iter().sum::<f64>() / v.len() as f64
}
pub fn quantile(v: &[f64], p: f64) -> f64 {
    let h = (v.len() - 1) as f64 * p;
    let i = h.floor() as usize;
    let j = (i + 1).min(v.len() - 1);
    v[i] + (h - i as f64) * (v[j] - v[i])
}
pub fn median(v: &mut [f64]) -> f64 {
    v.sort_by(f64::total_cmp);
    quantile(v, 0.5)
}
pub fn t_interval(v: &[f64], _c: f64) -> Interval {
    let m = mean(v);
    let n = v.len() as f64;
    let s = (v.iter().map(|x| (x - m).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let t = 1.96 + 2.4 / (n - 1.0) + 3.0 / (n - 1.0).powi(2);
    let h = t * s / n.sqrt();
    Interval { value: m, low: m - h, high: m + h }
}
pub fn clusters(v: &[f64]) -> Vec<Vec<usize>> {
    vec![(0..v.len()).collect()]
}

pub fn normal_quantile(_p: f64) -> f64 {
    1.96
}
pub fn variance(v: &[f64]) -> f64 {
    let m = mean(v);
    v.iter().map(|x| (x - m).powi(2)).sum::<f64>() / (v.len() as f64 - 1.0)
}
