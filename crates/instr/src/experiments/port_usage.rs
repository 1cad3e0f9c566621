//! The µops of a form and the ports that each may use, from counters of ports.

use serde::{Deserialize, Serialize};

/// µops that may use the same ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortShare {
    /// The names of the ports' counters.
    pub ports: Vec<String>,
    /// Number of µops.
    pub uops: u32,
}

/// The µops of a form by ports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PortUsage {
    /// µops that take a port: the sum of all counters in a program of the form alone.
    pub uops: Option<f64>,
    /// The ports of the µops, the fewest ports first. Empty if they are not certain.
    pub shares: Vec<PortShare>,
    /// Why the ports are not certain. Null if they are.
    #[serde(default)]
    pub why: Option<String>,
}

impl PortUsage {
    /// Ports that are not known, for this reason.
    pub(crate) fn unclear(uops: Option<f64>, why: impl Into<String>) -> PortUsage {
        PortUsage { uops, shares: Vec::new(), why: Some(why.into()) }
    }

    /// The ports as tables write them, such as `1*p01+1*p23`: `0` without µops, `?` if they are not
    /// certain.
    pub fn summarize(&self) -> String {
        if self.why.is_some() {
            return "?".to_string();
        }
        let short = |name: &String| name.strip_prefix("port").unwrap_or(name).to_string();
        let share = |share: &PortShare| {
            let ports: Vec<String> = share.ports.iter().map(short).collect();
            let separator = if ports.iter().any(|port| port.len() > 1) { "/" } else { "" };
            format!("{}*p{}", share.uops, ports.join(separator))
        };
        match self.shares.as_slice() {
            [] => "0".to_string(),
            shares => shares.iter().map(share).collect::<Vec<_>>().join("+"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_written_as_in_tables() {
        let share =
            |uops, ports: &[&str]| PortShare { ports: ports.iter().map(|port| port.to_string()).collect(), uops };
        let usage = |shares: Vec<PortShare>| PortUsage { uops: None, shares, why: None }.summarize();
        assert_eq!(usage(vec![share(1, &["port5"]), share(2, &["port0", "port1"])]), "1*p5+2*p01");
        assert_eq!(usage(vec![share(1, &["port0", "port23a"])]), "1*p0/23a");
        assert_eq!((usage(Vec::new()), PortUsage::unclear(Some(1.5), "noise").summarize()), ("0".into(), "?".into()));
    }
}
