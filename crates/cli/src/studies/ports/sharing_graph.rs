//! Draws the classes of a result, and which of them share ports.

use cyclescope::plot::{BoxLink, LinkedBox, LinkedBoxes};
use cyclescope::study::ports::classes_record::{ClassRecord, ClassShare, ClassesRecord};
use cyclescope::study::ports::union_bounds::UnionStanding;

/// The picture of these classes.
pub fn draw_sharing(classes: &ClassesRecord, machine: &str) -> LinkedBoxes {
    let shares: Vec<&ClassShare> = classes.shares.iter().filter(|share| is_drawn(share, classes)).collect();
    let groups = list_groups(classes.classes.len(), &shares);
    let order: Vec<usize> = groups.iter().flatten().copied().collect();
    let place = |class: usize| order.iter().position(|own| *own == class).expect("each class is in a group");
    let boxes = groups.iter().enumerate().flat_map(|(group, own)| own.iter().map(move |class| (group, *class)));
    let link = |share: &&ClassShare| {
        let [one, other] = [share.classes[0], share.classes[1]];
        let is_told = share.standing == UnionStanding::Fits && share.low == share.high;
        let sum = classes.classes[one].count.saturating_add(classes.classes[other].count);
        let weight = if is_told { sum.saturating_sub(share.high) } else { 1 };
        BoxLink { from: place(one), to: place(other), weight, dashed: !is_told }
    };
    LinkedBoxes {
        title: "Classes of one µop, and which share ports".to_string(),
        note: format!("{machine}, {:.2} slots per core cycle", classes.width),
        key: "a curve joins classes that share ports: the more, the thicker. dashed: how many is not known. \
              each part of the map has its own colour"
            .to_string(),
        boxes: boxes.map(|(group, class)| draw_class(&classes.classes[class], group)).collect(),
        links: shares.iter().map(link).collect(),
    }
}

/// Whether two classes seem to share ports.
fn is_drawn(share: &ClassShare, classes: &ClassesRecord) -> bool {
    let known = share.classes.len() == 2 && share.classes.iter().all(|class| *class < classes.classes.len());
    known && matches!(share.standing, UnionStanding::Fits | UnionStanding::Misassigned)
}

/// The classes that are connected by shared ports, the largest group first.
fn list_groups(classes: usize, shares: &[&ClassShare]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = (0..classes).map(|class| vec![class]).collect();
    for share in shares {
        let (joined, others): (Vec<_>, Vec<_>) =
            groups.into_iter().partition(|group| share.classes.iter().any(|class| group.contains(class)));
        groups = others;
        groups.push(joined.concat());
    }
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups.sort_by_key(|group| (std::cmp::Reverse(group.len()), group[0]));
    groups
}

fn draw_class(class: &ClassRecord, group: usize) -> LinkedBox {
    let name = match (class.ports.is_empty(), &class.alias) {
        (true, _) => "names unknown".to_string(),
        (false, None) => class.ports.clone(),
        (false, Some(alias)) => format!("{} = {alias}", class.ports),
    };
    let count = |count: usize, what: &str| if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") };
    let figure = format!("{}, {}", count(class.count as usize, "port"), count(class.forms.len(), "form"));
    // Several encodings of a form have one name.
    let mut forms: Vec<&str> = class.forms.iter().map(String::as_str).collect();
    forms.dedup();
    let text = forms.into_iter().take(2).collect::<Vec<_>>().join("; ");
    LinkedBox { name, figure, text, group }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(ports: &str, count: u32, alias: Option<&str>) -> ClassRecord {
        let forms = vec![format!("form of {ports}"), "other r64".to_string()];
        ClassRecord { ports: ports.to_string(), count, forms, solutions: 1, alias: alias.map(str::to_string) }
    }

    fn share(classes: [usize; 2], (low, high): (u32, u32), standing: UnionStanding) -> ClassShare {
        ClassShare { classes: classes.to_vec(), low, high, standing, mix: None }
    }

    #[test]
    fn classes_that_share_ports_are_joined() {
        use UnionStanding::{Fits, Hidden, Misassigned, NoPort};
        let classes = ClassesRecord {
            classes: vec![
                class("L01", 2, None),
                class("A0123", 4, Some("p0156")),
                class("", 1, None),
                class("A1", 1, None),
            ],
            shares: vec![
                share([1, 3], (4, 4), Fits),
                share([1, 2], (4, 4), Misassigned),
                share([0, 1], (6, 6), Hidden),
                share([0, 3], (3, 3), NoPort),
                share([2, 9], (3, 3), Fits),
            ],
            ..ClassesRecord::default()
        };
        let drawn = draw_sharing(&classes, "a machine");
        let boxes: Vec<(&str, usize)> = drawn.boxes.iter().map(|own| (own.name.as_str(), own.group)).collect();
        assert_eq!(boxes, [("A0123 = p0156", 0), ("names unknown", 0), ("A1", 0), ("L01", 1)]);
        let links: Vec<_> = drawn.links.iter().map(|link| (link.from, link.to, link.weight, link.dashed)).collect();
        assert_eq!(links, [(0, 2, 1, false), (0, 1, 1, true)]);
        assert_eq!(drawn.boxes[3].figure, "2 ports, 2 forms");
    }
}
