//! Decides whether a reading shows the dependencies that a program should have.

use crate::ports::Port;
use crate::reader::{Edge, FAR, Reading};
use iced_x86::Mnemonic;
use std::collections::BTreeMap;

/// The least distance over which each pair of output and input is connected, without the chain's
/// own.
pub type Others = BTreeMap<(Port, Port), usize>;

/// Checks that the chain leads from each instance's output to the next one's input through all
/// links. Returns the distances of other dependencies.
pub fn chain(reading: &Reading, input: Port, output: Port, links: &[Mnemonic]) -> Result<Others, String> {
    let own = |edge: &&Edge| edge.input == input && edge.output == output;
    let path = |edge: &Edge| reading.paths.of(edge.path);
    for at in 1..reading.instances {
        let mut here = reading.edges.iter().filter(own).filter(|edge| edge.at == at);
        if !here.any(|edge| edge.distance == 1 && path(edge) == links) {
            return Err(format!("instance {at} does not wait for the previous one through {links:?}"));
        }
    }
    // A path that skips an instance or links is never the longest; any other might be.
    let detour = |edge: &&Edge| {
        path(edge).len() > edge.distance * links.len() || path(edge).iter().any(|step| !links.contains(step))
    };
    if let Some(edge) = reading.edges.iter().filter(own).find(detour) {
        return Err(format!("another path over {} instances: {:?}", edge.distance, path(edge)));
    }
    if reading.astray > 0 {
        return Err(format!("{} addresses lead astray", reading.astray));
    }
    Ok(others(reading, |edge| !own(&edge)))
}

/// The distances of dependencies in a program that should have none.
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
