//! The rules of the structure: no circle of files, none of sibling rooms, no arrow up the order of
//! rooms.

use crate::arrows::Arrows;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Groups of at least two nodes, each reachable from every other.
fn circles(edges: &BTreeMap<PathBuf, BTreeSet<PathBuf>>) -> Vec<BTreeSet<PathBuf>> {
    let reach = |from: &PathBuf| {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            for next in edges.get(node).into_iter().flatten() {
                if reached.insert(next.clone()) {
                    open.push(next);
                }
            }
        }
        reached
    };
    let reached: BTreeMap<&PathBuf, BTreeSet<PathBuf>> = edges.keys().map(|node| (node, reach(node))).collect();
    let back = |from: &PathBuf, to: &PathBuf| reached.get(to).is_some_and(|set| set.contains(from));
    let groups: BTreeSet<BTreeSet<PathBuf>> = reached
        .iter()
        .map(|(node, set)| set.iter().filter(|other| back(node, other)).cloned().collect::<BTreeSet<_>>())
        .filter(|group| group.len() > 1)
        .collect();
    groups.into_iter().collect()
}

/// The arrows as nodes and edges. `node` names each file; arrows within a node are left out.
fn edges(arrows: &Arrows, node: &dyn Fn(&Path) -> Option<PathBuf>) -> BTreeMap<PathBuf, BTreeSet<PathBuf>> {
    let mut edges: BTreeMap<PathBuf, BTreeSet<PathBuf>> = BTreeMap::new();
    for (from, to) in arrows.iter().flat_map(|(from, all)| all.keys().map(move |to| (from, to))) {
        if let (Some(from), Some(to)) = (node(from), node(to))
            && from != to
        {
            edges.entry(from).or_default().insert(to);
        }
    }
    edges
}

/// One line for each arrow between two of these nodes, with the names it takes.
fn lines(arrows: &Arrows, group: &BTreeSet<PathBuf>, node: &dyn Fn(&Path) -> Option<PathBuf>) -> String {
    let mut text = String::new();
    for (from, all) in arrows {
        for (to, names) in all {
            let ends = (node(from), node(to));
            let inside = |end: &Option<PathBuf>| end.as_ref().is_some_and(|end| group.contains(end));
            if ends.0 != ends.1 && inside(&ends.0) && inside(&ends.1) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let _ = writeln!(text, "  {} -> {}: {}", from.display(), to.display(), names.join(", "));
            }
        }
    }
    text
}

/// Every circle of files, with the names that cause it.
pub fn circles_of_files(arrows: &Arrows) -> Vec<String> {
    let node = |file: &Path| Some(file.to_path_buf());
    let groups = circles(&edges(arrows, &node));
    groups.iter().map(|group| format!("a circle of {} files\n{}", group.len(), lines(arrows, group, &node))).collect()
}

/// Every circle of rooms below `root`: folders and files of one folder that use each other in a
/// loop.
pub fn circles_of_rooms(arrows: &Arrows, root: &Path) -> Vec<String> {
    let files: BTreeSet<&PathBuf> = arrows.iter().flat_map(|(from, all)| all.keys().chain([from])).collect();
    let folders = files.iter().flat_map(|file| file.ancestors().skip(1));
    let folders: BTreeSet<&Path> = folders.filter(|folder| folder.starts_with(root)).collect();
    let mut found = Vec::new();
    for folder in folders {
        let node = |file: &Path| room(folder, file);
        for group in circles(&edges(arrows, &node)) {
            let names: Vec<_> = group.iter().map(|room| room.display().to_string()).collect();
            let text = lines(arrows, &group, &node);
            found.push(format!("a circle of rooms in {}: {}\n{text}", folder.display(), names.join(", ")));
        }
    }
    found
}

/// The child of the folder that a file belongs to. `name.rs` next to `name/` is that folder's own
/// file.
fn room(folder: &Path, file: &Path) -> Option<PathBuf> {
    let inside = file.strip_prefix(folder).ok()?;
    let first = Path::new(inside.components().next()?.as_os_str());
    Some(first.with_extension(""))
}

/// Every arrow from a lower room to a higher one. `order` names the rooms of the folder `root` from
/// the bottom up; rooms of one line are on the same floor. A room that is not in the order is
/// reported too.
pub fn upward(arrows: &Arrows, root: &Path, order: &[&[&str]]) -> Vec<String> {
    let floor = |file: &Path| {
        let room = room(root, file)?;
        let name = room.display().to_string();
        Some((order.iter().position(|floor| floor.contains(&name.as_str())), name))
    };
    let mut found = BTreeSet::new();
    for (from, all) in arrows {
        for (to, names) in all {
            let (Some((below, lower)), Some((above, upper))) = (floor(from), floor(to)) else { continue };
            for (place, name) in [(below, &lower), (above, &upper)] {
                if place.is_none() {
                    found.insert(format!("the room {name} has no place in the order of rooms"));
                }
            }
            if above > below && below.is_some() {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                let (from, to, names) = (from.display(), to.display(), names.join(", "));
                found.insert(format!("an arrow up, from {lower} to {upper}\n  {from} -> {to}: {names}"));
            }
        }
    }
    found.into_iter().collect()
}
