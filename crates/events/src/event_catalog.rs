//! The events that have a name on a machine: perf's, those of its kernel's units, and short names of
//! its core.

use super::event_code::{EventCode, NamedEvent, event_type};
use super::event_field::{is_core_unit, parse_fields, parse_raw};
use super::event_refusal::{EventRefusal, RefusalCause};
use super::event_table::EventTable;
use super::generic_events::{find_generic, list_generic};
use cyclescope_code::asm::nearest_words;
use cyclescope_core::machine::Machine;
use std::cell::OnceCell;

const UNITS: &str = "/sys/bus/event_source/devices";

/// Finds events by name.
pub struct EventCatalog<'a> {
    machine: &'a Machine,
    core: Option<&'a str>,
    own: EventTable,
    /// The events of the kernel's units, listed on first use.
    of_units: OnceCell<Vec<CatalogEntry>>,
}

/// Splits `:u`, `:k` or `:uk` from a name: whether user code and the kernel count.
fn split_scope(name: &str) -> (&str, Option<(bool, bool)>) {
    match name.rsplit_once(':') {
        Some((bare, "u")) => (bare, Some((true, false))),
        Some((bare, "k")) => (bare, Some((false, true))),
        Some((bare, "uk" | "ku")) => (bare, Some((true, true))),
        _ => (name, None),
    }
}

/// An event of the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogEntry {
    /// Its name.
    pub name: String,
    /// The event.
    pub code: EventCode,
    /// Where the name and the encoding come from.
    pub source: String,
}

impl<'a> EventCatalog<'a> {
    /// The events of a machine, and those of a table of the user's, whose names come first.
    pub fn new(machine: &'a Machine, own: EventTable) -> EventCatalog<'a> {
        let core = machine.cpu.microarchitecture.known().map(|core| core.name);
        EventCatalog { machine, core, own, of_units: OnceCell::new() }
    }

    /// The events of another core, for tests and lists.
    pub fn of_core(machine: &'a Machine, core: &'a str) -> EventCatalog<'a> {
        EventCatalog { machine, core: Some(core), own: EventTable::default(), of_units: OnceCell::new() }
    }

    fn tables(&self) -> [&EventTable; 2] {
        [&self.own, EventTable::built_in()]
    }

    /// Whether `word/` begins an event of a unit, not a ratio.
    pub(crate) fn is_unit(&self, word: &str) -> bool {
        is_core_unit(word) || (!word.is_empty() && self.machine.files.path(&format!("{UNITS}/{word}/type")).exists())
    }

    /// The names in a set, those left out that this core lacks.
    pub(crate) fn find_set(&self, name: &str) -> Option<Vec<String>> {
        let set = self.tables().into_iter().find_map(|table| table.find_set(name))?;
        Some(
            set.iter()
                .filter(|name| self.find_known(split_scope(name).0).is_some_and(|code| code.is_ok()))
                .cloned()
                .collect(),
        )
    }

    /// The names of all sets.
    pub fn set_names(&self) -> Vec<&str> {
        self.tables().into_iter().flat_map(EventTable::set_names).collect()
    }

    /// Finds the event with a name: `instructions`, `uops`, `r02c2`, `cpu/event=0xc2,umask=2/`, each
    /// with `:u`, `:k` or `:uk` at its end.
    ///
    /// # Errors
    ///
    /// If no event has the name. The reason has the nearest names.
    pub fn find_event(&self, name: &str) -> Result<NamedEvent, EventRefusal> {
        let (bare, scope) = split_scope(name);
        let code = self.find_known(bare).unwrap_or_else(|| Err(self.unknown_name(bare)));
        let code = code.map_err(|refusal| refusal.of_event(name))?;
        let code = scope.map_or(code, |(user, kernel)| code.with_scope(user, kernel));
        Ok(NamedEvent { name: name.to_string(), code })
    }

    /// The event of a name or an encoding; `None` if it is neither.
    fn find_known(&self, name: &str) -> Option<Result<EventCode, EventRefusal>> {
        if let Some(entry) = self.own.find_entry(name, self.core) {
            return Some(self.parse_encoding(&entry.encoding));
        }
        if let Some(code) = find_generic(name) {
            return Some(Ok(code));
        }
        if let Some(entry) = EventTable::built_in().find_entry(name, self.core) {
            return Some(self.parse_encoding(&entry.encoding));
        }
        if name.contains('/') || parse_raw(name).is_some() {
            return Some(self.parse_encoding(name));
        }
        self.unit_events().iter().find(|entry| entry.name == name).map(|entry| Ok(entry.code))
    }

    /// Parses `rUUEE`, `unit/fields/`, `unit/name/`, or fields of the core.
    fn parse_encoding(&self, text: &str) -> Result<EventCode, EventRefusal> {
        let wrong = |why: String| {
            let remedy = "write it as r02c2 or cpu/event=0xc2,umask=0x02/";
            EventRefusal::new(RefusalCause::UnknownName, why, remedy)
        };
        if let Some(code) = parse_raw(text) {
            return Ok(code);
        }
        let files = &self.machine.files;
        let Some((unit, rest)) = text.split_once('/') else {
            return parse_fields(self.core_unit(), text, files).map_err(wrong);
        };
        let fields = rest.strip_suffix('/').ok_or_else(|| wrong(format!("{text} has no second /")))?;
        let alias = (!fields.contains('/'))
            .then(|| files.read_text(&format!("{UNITS}/{unit}/events/{fields}")).known().cloned())
            .flatten();
        parse_fields(unit, alias.as_deref().unwrap_or(fields).trim(), files).map_err(wrong)
    }

    /// The unit of this machine's cores; of the larger ones if there are two kinds.
    fn core_unit(&self) -> &'static str {
        let hybrid = !self.machine.files.path(&format!("{UNITS}/cpu/type")).exists()
            && self.machine.files.path(&format!("{UNITS}/cpu_core/type")).exists();
        if hybrid { "cpu_core" } else { "cpu" }
    }

    /// The events that the kernel's units offer.
    fn unit_events(&self) -> &[CatalogEntry] {
        self.of_units.get_or_init(|| self.list_unit_events())
    }

    fn list_unit_events(&self) -> Vec<CatalogEntry> {
        let files = &self.machine.files;
        let list = |path: String| {
            let entries = std::fs::read_dir(files.path(&path)).into_iter().flatten().flatten();
            let mut names: Vec<String> =
                entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
            names.sort();
            names
        };
        let mut found = Vec::new();
        for unit in list(UNITS.to_string()) {
            // `NAME.scale` and `NAME.unit` describe the event NAME.
            for name in list(format!("{UNITS}/{unit}/events")).into_iter().filter(|name| !name.contains('.')) {
                if let Ok(code) = self.parse_encoding(&format!("{unit}/{name}/")) {
                    found.push(CatalogEntry { name, code, source: format!("{UNITS}/{unit}") });
                }
            }
        }
        found
    }

    /// All events: short names first, then perf's, then those of the kernel's units.
    pub fn list_events(&self) -> Vec<CatalogEntry> {
        let mut found: Vec<CatalogEntry> = Vec::new();
        for table in self.tables() {
            for entry in table.entries_of(self.core) {
                if let Ok(code) = self.parse_encoding(&entry.encoding) {
                    let (name, source) = (entry.name.clone(), entry.source.clone());
                    found.push(CatalogEntry { name, code, source });
                }
            }
        }
        found.extend(list_generic().map(|(name, code)| {
            let source = if code.unit == event_type::SOFTWARE { "the kernel" } else { "perf" };
            CatalogEntry { name, code, source: source.to_string() }
        }));
        for entry in self.unit_events() {
            if !found.iter().any(|known| known.name == entry.name) {
                found.push(entry.clone());
            }
        }
        found
    }

    fn unknown_name(&self, name: &str) -> EventRefusal {
        let cores = EventTable::built_in().cores_with(name);
        if !cores.is_empty() {
            let core = self.core.unwrap_or("this core");
            let why = format!("{core} has no event of this name; it is known for {}", cores.join(", "));
            let remedy = "name an event of this core: `cyclescope counters list`";
            return EventRefusal::new(RefusalCause::NotOnThisCore, why, remedy);
        }
        let known = self.list_events();
        let near = nearest_words(name, known.iter().map(|entry| entry.name.as_str()));
        let remedy = match near.is_empty() {
            true => "see `cyclescope counters list`".to_string(),
            false => format!("did you mean {}?", near.join(", ")),
        };
        EventRefusal::new(RefusalCause::UnknownName, "no event has this name", remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(catalog: &EventCatalog, name: &str) -> (u32, u64) {
        let event = catalog.find_event(name).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        (event.code.unit, event.code.config)
    }

    #[test]
    fn names_of_all_kinds_are_found() {
        let machine = Machine::detect();
        let catalog = EventCatalog::of_core(&machine, "Zen 4");
        for (name, code) in [
            ("cycles", (0, 0)),
            ("branch-misses", (0, 5)),
            ("page-faults", (1, 2)),
            ("L1-dcache-load-misses", (3, 0x1_0000)),
            ("dTLB-stores", (3, 0x103)),
            ("uops-retired", (4, 0xc1)),
            ("uops-microcode", (4, 0x1_0000_00c2)),
            ("r02c2", (4, 0x2c2)),
            ("cpu/event=0xaa,umask=0x02,cmask=3,inv/", (4, 0x0380_02aa)),
        ] {
            assert_eq!(config(&catalog, name), code, "{name}");
        }
        let scope = |name| catalog.find_event(name).map(|event| (event.code.user, event.code.kernel));
        assert_eq!(scope("instructions:k"), Ok((false, true)));
        assert_eq!(scope("context-switches"), Ok((true, true)));
    }

    #[test]
    fn an_unknown_name_has_near_ones() {
        let machine = Machine::detect();
        let catalog = EventCatalog::of_core(&machine, "Skylake");
        let refusal = |name: &str| catalog.find_event(name).expect_err("unknown");
        let unknown = refusal("instrutions");
        assert!(unknown.cause == RefusalCause::UnknownName && unknown.remedy.contains("instructions"), "{unknown:?}");
        assert_eq!(unknown.event, "instrutions");
        assert!(refusal("uop-cashe").remedy.contains("uop-cache"));
        let elsewhere = refusal("port23a");
        assert!(elsewhere.cause == RefusalCause::NotOnThisCore && elsewhere.why.contains("Golden Cove"));
        assert!(refusal("cpu/event=0x1000/").why.contains("does not fit"));
    }

    #[test]
    fn a_table_of_the_user_comes_first() {
        let machine = Machine::detect();
        let own =
            EventTable::parse("cycles | event=0x3c\nmine | cpu/event=0x12,umask=1/\nset own = mine cycles").unwrap();
        let catalog = EventCatalog::new(&machine, own);
        assert_eq!(config(&catalog, "cycles"), (4, 0x3c));
        assert_eq!(config(&catalog, "mine"), (4, 0x112));
        assert_eq!(catalog.find_set("own").unwrap(), ["mine", "cycles"]);
    }
}
