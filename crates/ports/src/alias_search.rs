//! Finds which published names the ports of a result have: by which classes use which ports.
//!
//! A naming gives each port a published name such that each class uses just the ports that are
//! published for its forms. It exists if, for each set of classes, as many ports are used by just these
//! classes here as there. Ports used by the same classes are alike: they may have their names in any
//! order.

use crate::classes_record::{ClassRecord, ClassesRecord};
use crate::port_aliases::{AliasContradiction, AliasGroup, PortAliases};
use crate::port_notation::read_port_labels;
use crate::ports_row::PortsRow;
use crate::published_map::{PublishedForm, PublishedMap};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Upper limit of contradictions that are listed of one part of the map.
const LISTED_MOST: usize = 12;

/// A class with published ports.
struct NamedClass {
    /// A form whose ports are published.
    form: String,
    own: BTreeSet<String>,
    published: BTreeSet<String>,
    contradiction: Option<AliasContradiction>,
}

impl PortAliases {
    /// Finds the names of the ports of these classes. The rows give the full names of forms.
    pub fn find(classes: &ClassesRecord, rows: &[PortsRow], published: &PublishedMap) -> PortAliases {
        let known = index_forms(classes, rows);
        let mut published_of: BTreeMap<usize, Vec<&PublishedForm>> = BTreeMap::new();
        for form in &published.forms {
            let class = known.get(&form.name.to_ascii_lowercase()).copied();
            let certain = class.filter(|class| has_certain_ports(&classes.classes[*class]));
            certain.into_iter().for_each(|class| published_of.entry(class).or_default().push(form));
        }
        let used = published_of.values().map(Vec::len).sum();
        let mut aliases = PortAliases { used, unused: published.forms.len() - used, ..PortAliases::default() };
        let named: Vec<NamedClass> =
            published_of.iter().filter_map(|(class, forms)| name_class(&classes.classes[*class], forms)).collect();
        for part in split_parts(&named) {
            let own: Vec<&NamedClass> = part.iter().map(|class| &named[*class]).collect();
            let contradictions = find_contradictions(&own);
            match contradictions.is_empty() {
                true => aliases.groups.extend(group_ports(&own)),
                false => aliases.contradictions.extend(contradictions),
            }
        }
        aliases
    }

    /// Enters the names into a row.
    pub fn name_row(&self, row: &mut PortsRow) {
        row.alias = row.ports.as_deref().and_then(|ports| self.describe_uops(ports));
        row.resources.iter_mut().for_each(|resource| resource.alias = self.describe_set(&resource.set));
    }

    /// Enters the names into the line of all classes.
    pub fn name_classes(self, classes: &mut ClassesRecord) {
        classes.classes.iter_mut().for_each(|class| class.alias = self.describe_set(&class.ports));
        classes.names = Some(self);
    }
}

/// The class of each form, by its name in texts and by its full name, in lower case.
fn index_forms(classes: &ClassesRecord, rows: &[PortsRow]) -> HashMap<String, usize> {
    const EVEX: &str = " (evex)";
    let texts = classes
        .classes
        .iter()
        .enumerate()
        .flat_map(|(class, record)| record.forms.iter().map(move |form| (form.to_ascii_lowercase(), class)));
    let texts: Vec<(String, usize)> = texts.collect();
    let mut known: HashMap<String, usize> = HashMap::new();
    // A name without encoding is that of the shorter one, if there is one.
    let plain = |(text, class): &(String, usize)| Some((text.strip_suffix(EVEX)?.to_string(), *class));
    // Of several forms with one name, the first one has it.
    known.extend(texts.iter().rev().filter_map(plain));
    known.extend(texts.into_iter().rev());
    for row in rows {
        let text = row.name().to_ascii_lowercase();
        let text = if row.encoding == "evex" { text + EVEX } else { text };
        let full = format!("{} {}", row.code, row.operands).trim_end().to_ascii_lowercase();
        if let Some(class) = known.get(&text).copied() {
            known.insert(full, class);
        }
    }
    known
}

fn has_certain_ports(class: &ClassRecord) -> bool {
    class.solutions == 1 && !class.ports.is_empty()
}

/// What is published for the forms of a class. `None` if the names of its ports can't be read.
fn name_class(class: &ClassRecord, forms: &[&PublishedForm]) -> Option<NamedClass> {
    let own: BTreeSet<String> = read_port_labels(&class.ports)?.into_iter().collect();
    let first = *forms.first()?;
    let set = |form: &PublishedForm| -> BTreeSet<String> {
        form.uops.iter().flat_map(|uops| uops.ports.iter().cloned()).collect()
    };
    let refuse = |forms: &[&PublishedForm], why: String| {
        Some(AliasContradiction { forms: forms.iter().map(|form| form.name.clone()).collect(), why })
    };
    let uops = |form: &PublishedForm| form.uops.iter().map(|uops| uops.count).sum::<u64>();
    let contradiction = if let Some(form) = forms.iter().find(|form| uops(form) != 1) {
        refuse(&[form], format!("{} µops are published, and time shows one", uops(form)))
    } else if let Some(other) = forms.iter().find(|form| set(form) != set(first)) {
        refuse(&[first, other], "time shows the same ports, and other ones are published".to_string())
    } else if set(first).len() != own.len() {
        refuse(&[first], format!("{} ports are published, and time shows {}", set(first).len(), own.len()))
    } else {
        None
    };
    let published = forms.iter().flat_map(|form| set(form)).collect();
    Some(NamedClass { form: first.name.clone(), own, published, contradiction })
}

/// The classes in parts that share no port with others, neither here nor as published.
fn split_parts(classes: &[NamedClass]) -> Vec<Vec<usize>> {
    let shares = |one: &NamedClass, other: &NamedClass| {
        !one.own.is_disjoint(&other.own) || !one.published.is_disjoint(&other.published)
    };
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for (class, record) in classes.iter().enumerate() {
        let (joined, others): (Vec<_>, Vec<_>) =
            parts.into_iter().partition(|part| part.iter().any(|other| shares(record, &classes[*other])));
        parts = others;
        parts.push(joined.into_iter().flatten().chain([class]).collect());
    }
    parts.iter_mut().for_each(|part| part.sort_unstable());
    parts.sort();
    parts
}

/// The forms that leave no naming: the fewest together that do.
fn find_contradictions(classes: &[&NamedClass]) -> Vec<AliasContradiction> {
    let mut found: Vec<AliasContradiction> = classes.iter().filter_map(|class| class.contradiction.clone()).collect();
    let count = classes.len();
    let pairs = (0..count).flat_map(|one| (one + 1..count).map(move |other| vec![one, other]));
    let triples = (0..count).flat_map(|one| {
        (one + 1..count).flat_map(move |other| (other + 1..count).map(move |third| vec![one, other, third]))
    });
    if found.is_empty() {
        found.extend(pairs.filter_map(|chosen| compare_common(classes, &chosen)).take(LISTED_MOST));
    }
    if found.is_empty() {
        found.extend(triples.filter_map(|chosen| compare_common(classes, &chosen)).take(LISTED_MOST));
    }
    if found.is_empty() && count_users(classes, |class| &class.own) != count_users(classes, |class| &class.published) {
        let why = "together, no naming of ports fits what is published for them".to_string();
        found.push(AliasContradiction { forms: classes.iter().map(|class| class.form.clone()).collect(), why });
    }
    found
}

/// Whether these classes have as many ports in common as is published.
fn compare_common(classes: &[&NamedClass], chosen: &[usize]) -> Option<AliasContradiction> {
    let common = |ports: fn(&NamedClass) -> &BTreeSet<String>| {
        let first = ports(classes[chosen[0]]).iter();
        first.filter(|port| chosen.iter().all(|class| ports(classes[*class]).contains(*port))).count()
    };
    let (own, published) = (common(|class| &class.own), common(|class| &class.published));
    let words = |count: usize| if count == 1 { "1 port".to_string() } else { format!("{count} ports") };
    (own != published).then(|| AliasContradiction {
        forms: chosen.iter().map(|class| classes[*class].form.clone()).collect(),
        why: format!("{} in common published, and time shows {own}", words(published)),
    })
}

/// The ports with the same users among the classes.
fn list_users(
    classes: &[&NamedClass],
    ports: fn(&NamedClass) -> &BTreeSet<String>,
) -> BTreeMap<Vec<usize>, Vec<String>> {
    let all: BTreeSet<&String> = classes.iter().flat_map(|class| ports(class)).collect();
    let mut groups: BTreeMap<Vec<usize>, Vec<String>> = BTreeMap::new();
    for port in all {
        let users = (0..classes.len()).filter(|class| ports(classes[*class]).contains(port)).collect();
        groups.entry(users).or_default().push(port.clone());
    }
    groups
}

fn count_users(classes: &[&NamedClass], ports: fn(&NamedClass) -> &BTreeSet<String>) -> Vec<(Vec<usize>, usize)> {
    list_users(classes, ports).into_iter().map(|(users, ports)| (users, ports.len())).collect()
}

/// The ports of classes that contradict nothing, with their names.
fn group_ports(classes: &[&NamedClass]) -> Vec<AliasGroup> {
    let own = list_users(classes, |class| &class.own);
    let mut published = list_users(classes, |class| &class.published);
    let group = |(users, ports): (Vec<usize>, Vec<String>)| {
        let names = published.remove(&users)?;
        Some(AliasGroup { ports, names })
    };
    let mut groups: Vec<AliasGroup> = own.into_iter().filter_map(group).collect();
    groups.sort_by(|one, other| one.ports.cmp(&other.ports));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build_classes(classes: &[(&str, &[&str])]) -> ClassesRecord {
        let class = |(ports, forms): &(&str, &[&str])| ClassRecord {
            ports: ports.to_string(),
            count: ports.chars().filter(|c| c.is_ascii_digit()).count() as u32,
            forms: forms.iter().map(|form| form.to_string()).collect(),
            solutions: 1,
            alias: None,
        };
        ClassesRecord { classes: classes.iter().map(class).collect(), width: 6.0, ..ClassesRecord::default() }
    }

    fn find(classes: &[(&str, &[&str])], published: &str) -> PortAliases {
        PortAliases::find(&build_classes(classes), &[], &PublishedMap::read(published).unwrap())
    }

    /// Four ALUs of which one multiplies and two shift; two adders and two multipliers of vectors, and a
    /// shuffle on one of each.
    const CORE: [(&str, &[&str]); 6] = [
        ("A012P0", &["andn", "lea"]),
        ("P0", &["imul"]),
        ("A0P0", &["rorx"]),
        ("V01", &["vaddps"]),
        ("V23", &["vmulps"]),
        ("V12", &["vpshufb"]),
    ];
    const PUBLISHED: &str = "andn: 1*ALU0123\nimul: 1*ALU1\nrorx: 1*ALU12\nvaddps: 1*FP23\nvmulps: 1*FP01\n\
                             vpshufb: 1*FP12\nother: 1*LD0\n";

    #[test]
    fn ports_have_the_name_that_fits_all_classes() {
        let aliases = find(&CORE, PUBLISHED);
        assert!(aliases.contradictions.is_empty(), "{aliases:?}");
        assert_eq!((aliases.used, aliases.unused), (6, 1));
        let names = ["P0", "A0", "V0", "V1", "V2", "V3"].map(|port| aliases.find_name(port).unwrap_or("-"));
        assert_eq!(names, ["ALU1", "ALU2", "FP3", "FP2", "FP1", "FP0"]);
        // Two ALUs are alike: each may be either, and only both together have names.
        assert_eq!(aliases.find_name("A1"), None);
        assert_eq!(aliases.describe_set("A12").as_deref(), Some("ALU03"));
        assert_eq!(aliases.describe_set("A01"), None);
        assert_eq!(aliases.describe_uops("2*V12+1*A012P0").as_deref(), Some("1*ALU0123+2*FP12"));
        assert_eq!(aliases.describe_uops("1*L0"), None);
    }

    #[test]
    fn a_contradiction_names_its_forms_and_takes_names_away() {
        let shifted = PUBLISHED.replace("rorx: 1*ALU12", "rorx: 1*ALU23");
        let aliases = find(&CORE, &shifted);
        let found: Vec<&[String]> = aliases.contradictions.iter().map(|one| &one.forms[..]).collect();
        assert_eq!(found, [["imul".to_string(), "rorx".to_string()]]);
        assert!(aliases.contradictions[0].why.starts_with("0 ports in common published, and time shows 1"));
        assert_eq!((aliases.find_name("P0"), aliases.find_name("V1")), (None, Some("FP2")), "vectors are apart");
        for (line, other, words) in [
            ("imul: 1*ALU1", "imul: 1*ALU12", "2 ports are published, and time shows 1"),
            ("imul: 1*ALU1", "imul: 2*ALU1", "2 µops are published"),
            ("imul: 1*ALU1", "imul: 1*ALU1\nlea: 1*ALU0145", "time shows the same ports"),
        ] {
            let aliases = find(&CORE, &PUBLISHED.replace(line, other));
            let [contradiction] = &aliases.contradictions[..] else { panic!("{other}: {aliases:?}") };
            assert!(contradiction.why.contains(words), "{contradiction:?}");
        }
    }

    #[test]
    fn three_forms_may_contradict_together() {
        // A triangle of ports here, a star as published.
        let triangle: [(&str, &[&str]); 3] = [("A01", &["a"]), ("A12", &["b"]), ("A02", &["c"])];
        let aliases = find(&triangle, "a: 1*p01\nb: 1*p02\nc: 1*p03\n");
        assert_eq!(aliases.contradictions.len(), 1);
        assert_eq!(aliases.contradictions[0].forms, ["a", "b", "c"]);
        assert!(aliases.groups.is_empty());
        let fits = find(&triangle, "a: 1*p57\nb: 1*p79\nc: 1*p59\n");
        let names = ["A0", "A1", "A2"].map(|port| fits.find_name(port).unwrap_or("-"));
        assert_eq!(names, ["p5", "p7", "p9"]);
    }

    #[test]
    fn uncertain_classes_do_not_count() {
        let mut classes = build_classes(&CORE);
        classes.classes[2].solutions = 2;
        let map = PublishedMap::read(&PUBLISHED.replace("rorx: 1*ALU12", "rorx: 1*ALU23")).unwrap();
        let aliases = PortAliases::find(&classes, &[], &map);
        assert!(aliases.contradictions.is_empty() && aliases.used == 5, "{aliases:?}");
        aliases.name_classes(&mut classes);
        assert_eq!(classes.classes[0].alias.as_deref(), Some("ALU0123"));
        assert_eq!(classes.classes[2].alias, None, "it has one of three ports that are alike");
    }
}
