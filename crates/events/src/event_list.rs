//! What a user asks to be counted: events, sets of events, and ratios, separated by commas.

use super::event_catalog::EventCatalog;
use super::event_code::NamedEvent;
use super::event_refusal::{EventRefusal, RefusalCause};
use serde::{Deserialize, Serialize};

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CounterColumn {
    /// The event with this index.
    Event(usize),
    /// The first event divided by the second, by index.
    Ratio(usize, usize),
}

/// Events to count, and the columns that they make.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterRequest {
    /// The events, each once.
    pub events: Vec<NamedEvent>,
    /// The columns, each with its name.
    pub columns: Vec<(String, CounterColumn)>,
    /// The columns that count the µops of ports: those of the set `ports`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<usize>,
}

impl CounterRequest {
    /// Parses a list such as `@default,port0,uops/cycles`.
    ///
    /// # Errors
    ///
    /// If no event or set has one of the names.
    pub fn parse(text: &str, catalog: &EventCatalog) -> Result<CounterRequest, EventRefusal> {
        let mut request = CounterRequest::default();
        for item in split_list(text, catalog) {
            match item.strip_prefix('@') {
                Some(set) => {
                    let names = catalog.find_set(set).ok_or_else(|| unknown_set(set, catalog))?;
                    names.iter().try_for_each(|name| request.add_column(name, catalog))?;
                }
                None => request.add_column(&item, catalog)?,
            }
        }
        let ports = catalog.find_set("ports").unwrap_or_default();
        let is_port = |column: &usize| ports.contains(&request.columns[*column].0);
        request.ports = (0..request.columns.len()).filter(is_port).collect();
        Ok(request)
    }

    /// The request for the ports alone. `None` without any.
    pub fn select_ports(&self) -> Option<CounterRequest> {
        let columns = self.ports.iter().filter_map(|column| self.columns.get(*column));
        let events = columns.filter_map(|(name, column)| match *column {
            CounterColumn::Event(event) => Some(NamedEvent { name: name.clone(), ..self.events[event].clone() }),
            CounterColumn::Ratio(..) => None,
        });
        let events: Vec<NamedEvent> = events.collect();
        let columns = events.iter().enumerate().map(|(at, event)| (event.name.clone(), CounterColumn::Event(at)));
        let (columns, ports) = (columns.collect(), (0..events.len()).collect());
        (!events.is_empty()).then_some(CounterRequest { events, columns, ports })
    }

    /// Whether each column has its events.
    pub fn is_sound(&self) -> bool {
        self.ports.iter().all(|port| *port < self.columns.len())
            && self.columns.iter().all(|(_, column)| match *column {
                CounterColumn::Event(event) => event < self.events.len(),
                CounterColumn::Ratio(above, below) => above.max(below) < self.events.len(),
            })
    }

    fn add_column(&mut self, name: &str, catalog: &EventCatalog) -> Result<(), EventRefusal> {
        if self.columns.iter().any(|(known, _)| known == name) {
            return Ok(());
        }
        let column = match name.split_once('/') {
            Some((above, below)) if !name.ends_with('/') && !catalog.is_unit(above) => {
                CounterColumn::Ratio(self.add_event(above, catalog)?, self.add_event(below, catalog)?)
            }
            _ => CounterColumn::Event(self.add_event(name, catalog)?),
        };
        self.columns.push((name.to_string(), column));
        Ok(())
    }

    /// The index of an event.
    fn add_event(&mut self, name: &str, catalog: &EventCatalog) -> Result<usize, EventRefusal> {
        let event = catalog.find_event(name)?;
        let known = self.events.iter().position(|known| known.code == event.code);
        Ok(known.unwrap_or_else(|| {
            self.events.push(event);
            self.events.len() - 1
        }))
    }
}

/// Splits at commas, except those between the slashes of a unit.
fn split_list(text: &str, catalog: &EventCatalog) -> Vec<String> {
    let (mut items, mut item, mut inside) = (Vec::new(), String::new(), false);
    for character in text.chars() {
        match character {
            ',' if !inside => items.push(std::mem::take(&mut item)),
            '/' => {
                inside = !inside && catalog.is_unit(item.trim());
                item.push('/');
            }
            other => item.push(other),
        }
    }
    items.push(item);
    items.into_iter().map(|item| item.trim().to_string()).filter(|item| !item.is_empty()).collect()
}

fn unknown_set(set: &str, catalog: &EventCatalog) -> EventRefusal {
    let known: Vec<String> = catalog.set_names().into_iter().map(|name| format!("@{name}")).collect();
    let remedy = format!("the sets are {}", known.join(", "));
    EventRefusal::new(RefusalCause::UnknownName, "no set has this name", remedy).of_event(&format!("@{set}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_core::machine::Machine;

    #[test]
    fn lists_have_events_sets_and_ratios() {
        let machine = Machine::detect();
        let catalog = EventCatalog::of_core(&machine, "Zen 4");
        let request = |text: &str| CounterRequest::parse(text, &catalog);
        let found = request("uops/cycles, instructions,cpu/event=0xc1,umask=0/,cycles").unwrap();
        let names: Vec<&str> = found.columns.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["uops/cycles", "instructions", "cpu/event=0xc1,umask=0/", "cycles"]);
        assert_eq!(found.columns[0].1, CounterColumn::Ratio(0, 1));
        assert_eq!(found.columns[3].1, CounterColumn::Event(1));
        assert_eq!(found.events.len(), 4);
        // This core has no counters of ports.
        assert_eq!(request("@ports").unwrap(), CounterRequest::default());
        assert_eq!(request("@default").unwrap().events.len(), 4);
        assert!(request("@port").expect_err("unknown").remedy.contains("@ports"));
        assert!(request("uops/cycels").expect_err("unknown").remedy.contains("cycles"));
    }

    #[test]
    fn ports_are_told_from_other_events() {
        let machine = Machine::detect();
        let catalog = EventCatalog::of_core(&machine, "Skylake");
        let request = CounterRequest::parse("uops,@ports,port0/cycles", &catalog).unwrap();
        assert_eq!(request.ports, (1..=8).collect::<Vec<usize>>());
        let ports = request.select_ports().unwrap();
        let names: Vec<&str> = ports.columns.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["port0", "port1", "port2", "port3", "port4", "port5", "port6", "port7"]);
        assert!(ports.is_sound() && ports.events.len() == 8);
        let without = CounterRequest::parse("uops,instructions", &catalog).unwrap();
        assert_eq!(without.select_ports(), None);
        assert!(!CounterRequest { ports: vec![10], ..request }.is_sound());
    }
}
