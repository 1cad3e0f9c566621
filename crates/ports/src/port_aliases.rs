//! The published names of a result's ports.

use crate::port_notation::{NamedUops, read_port_labels, read_uops};
use crate::published_map::describe_published_ports;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The published names of a result's ports.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PortAliases {
    /// Ports whose names are known. Ports of one entry may have its names in any order.
    pub groups: Vec<AliasGroup>,
    /// Forms whose published ports fit no naming: all ports that are connected with theirs have no names.
    pub contradictions: Vec<AliasContradiction>,
    /// Published forms that counted: they are of a class with certain ports.
    pub used: usize,
    /// Published forms that the result lacks, or whose ports it does not know.
    pub unused: usize,
}

/// Ports, and as many published names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AliasGroup {
    /// Ports of the result.
    pub ports: Vec<String>,
    /// Published names.
    pub names: Vec<String>,
}

/// Forms that contradict the published map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AliasContradiction {
    /// The forms.
    pub forms: Vec<String>,
    /// In which way.
    pub why: String,
}

impl PortAliases {
    /// The published names of µops such as `1*A01+1*L0`. `None` if the names of a set are not known.
    pub fn describe_uops(&self, text: &str) -> Option<String> {
        let mut shares: BTreeMap<String, u64> = BTreeMap::new();
        for NamedUops { count, ports } in read_uops(text, read_port_labels)? {
            *shares.entry(self.name_set(&ports)?).or_default() += count;
        }
        Some(shares.iter().map(|(set, count)| format!("{count}*{set}")).collect::<Vec<String>>().join("+"))
    }

    /// The published names of a set of ports. `None` if they are not known.
    pub fn describe_set(&self, text: &str) -> Option<String> {
        self.name_set(&read_port_labels(text)?)
    }

    /// A set has names if it has all ports of each group that it has some of.
    fn name_set(&self, ports: &[String]) -> Option<String> {
        let touched = self.groups.iter().filter(|group| group.ports.iter().any(|port| ports.contains(port)));
        let groups: Vec<&AliasGroup> = touched.collect();
        let covered: usize = groups.iter().map(|group| group.ports.len()).sum();
        let is_whole =
            covered == ports.len() && groups.iter().flat_map(|group| &group.ports).all(|port| ports.contains(port));
        is_whole.then(|| describe_published_ports(groups.iter().flat_map(|group| &group.names).map(String::as_str)))
    }

    /// The name of one port, if it is certain.
    pub fn find_name(&self, port: &str) -> Option<&str> {
        let own = self.groups.iter().find(|group| group.ports.len() == 1 && group.ports[0] == port)?;
        own.names.first().map(String::as_str)
    }
}
