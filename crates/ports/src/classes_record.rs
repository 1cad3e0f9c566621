//! The last line, of kind `ports.classes`: all classes, and which of them share ports.

use crate::class_set::ClassSet;
use crate::deciding_mix::{DecidingMix, FormNames};
use crate::forms_survey::SurveyedPorts;
use crate::port_aliases::PortAliases;
use crate::union_bounds::{UnionBounds, UnionStanding};
use serde::{Deserialize, Serialize};

/// All classes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ClassesRecord {
    /// Slots per core cycle.
    pub width: f64,
    /// Number of timed mixes of several classes.
    pub mixes: usize,
    /// Whether the core steers µops to ports with less work, wherever that can be seen.
    pub steered: bool,
    /// The classes.
    pub classes: Vec<ClassRecord>,
    /// Pairs of classes that share ports, or another resource.
    pub shares: Vec<ClassShare>,
    /// Pairs of classes that share no port, as fast mixes prove.
    #[serde(default)]
    pub free: Vec<ClassShare>,
    /// The published names of ports; only with a published map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub names: Option<PortAliases>,
}

/// Forms of one µop with the same ports.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassRecord {
    /// The names of its ports. Empty if no map explains all mixes.
    pub ports: String,
    /// Number of ports.
    pub count: u32,
    /// Its forms, the one that was mixed first.
    pub forms: Vec<String>,
    /// Number of answers.
    pub solutions: usize,
    /// The published names of its ports, if a published map was given and decides them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
}

/// What two classes share.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClassShare {
    /// The indices of both classes.
    pub classes: Vec<usize>,
    /// Lower bound of the ports that both use together.
    pub low: u32,
    /// Upper bound.
    pub high: u32,
    /// How well it is known.
    pub standing: UnionStanding,
    /// The mix that decided it.
    #[serde(default)]
    pub mix: Option<DecidingMix>,
}

impl ClassesRecord {
    pub(crate) fn new(ports: &SurveyedPorts, names: &[FormNames], width: f64) -> ClassesRecord {
        let findings = &ports.findings;
        let class = |class: usize| {
            let own = &findings.classes[class];
            let component = findings.find_component(class);
            ClassRecord {
                ports: ports.labels.describe(ports.labels.list_ports(class)),
                count: own.ports,
                forms: own.members.iter().map(|form| names[*form].text.clone()).collect(),
                solutions: component.map_or(0, |component| component.list_own_sets(class).len()),
                alias: None,
            }
        };
        let is_pair = |classes: ClassSet| classes.count_classes() == 2;
        let pairs = findings.bounds.iter().filter(|bounds| is_pair(bounds.classes));
        let (free, shares): (Vec<&UnionBounds>, Vec<&UnionBounds>) =
            pairs.partition(|bounds| bounds.standing == UnionStanding::Free);
        let share = |bounds: &UnionBounds| ClassShare {
            classes: bounds.classes.list_classes().collect(),
            low: bounds.lower,
            high: bounds.upper,
            standing: bounds.standing,
            mix: ports.list_union_mixes(bounds, names).pop(),
        };
        ClassesRecord {
            width,
            mixes: findings.mixes.len(),
            steered: findings
                .components
                .iter()
                .all(|component| component.steered || component.classes.count_classes() == 1),
            classes: (0..findings.classes.len()).map(class).collect(),
            shares: shares.into_iter().map(share).collect(),
            free: free.into_iter().map(share).collect(),
            names: None,
        }
    }
}
