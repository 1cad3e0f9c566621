//! What a reading must show for a program to mean what it says.

use crate::ports::Port;
use crate::reader::{Edge, FAR, Reading};
use iced_x86::Mnemonic;
use std::collections::BTreeMap;

/// The least distance over which each pair of an output and an input is connected, beside the chain's own.
pub type Others = BTreeMap<(Port, Port), usize>;

/// The chain goes from each instance's output to the next one's input through all links; or why it is none. Answers how
/// near other dependencies are.
pub fn chain(reading: &Reading, input: Port, output: Port, links: &[Mnemonic]) -> Result<Others, String> {
    let own = |edge: &&Edge| edge.input == input && edge.output == output;
    let path = |edge: &Edge| reading.paths.of(edge.path);
    for at in 1..reading.instances {
        let mut here = reading.edges.iter().filter(own).filter(|edge| edge.at == at);
        if !here.any(|edge| edge.distance == 1 && path(edge) == links) {
            return Err(format!("instance {at} does not wait for the one before by {links:?}"));
        }
    }
    // A way past an instance, or by fewer links, is never the longest; any other might be.
    let detour = |edge: &&Edge| {
        path(edge).len() > edge.distance * links.len() || path(edge).iter().any(|step| !links.contains(step))
    };
    if let Some(edge) = reading.edges.iter().filter(own).find(detour) {
        return Err(format!("another way of {} instances: {:?}", edge.distance, path(edge)));
    }
    if reading.astray > 0 {
        return Err(format!("{} addresses lead astray", reading.astray));
    }
    Ok(others(reading, |edge| !own(&edge)))
}

/// How near the dependencies of a program are that should have none.
pub fn independent(reading: &Reading) -> Result<Others, String> {
    if reading.astray > 0 {
        return Err(format!("{} addresses lead astray", reading.astray));
    }
    Ok(others(reading, |_| true))
}

fn others(reading: &Reading, wanted: impl Fn(&Edge) -> bool) -> Others {
    let mut others = Others::new();
    for edge in reading.edges.iter().filter(|edge| wanted(edge)) {
        let least = others.entry((edge.output, edge.input)).or_insert(FAR);
        *least = edge.distance.min(*least);
    }
    others
}
