//! Prints what two forms share.

use crate::output::page::{TextPage, new_table, print_table};
use crate::output::report_words::format_quantity;
use crate::output::{Failure, Output};
use cyclescope::study::ports::pair_record::{PairFormRecord, PairRecord};
use cyclescope::study::ports::pair_share::PairShare;

/// Prints the answer, both forms and their mixes.
pub fn print_pair(pair: &PairRecord, output: &mut Output) -> Result<(), Failure> {
    let mut page = TextPage::new(output);
    page.begin_section(&format!("Ports that both use: {}", describe_share(pair)))?;
    for form in &pair.forms {
        page.print_row(&form.name(), &describe_form(form))?;
    }
    page.print_row("why", &pair.why)?;
    if pair.mixes.is_empty() {
        return Ok(());
    }
    page.begin_section("Mixes, in core cycles")?;
    let mut table = new_table(&["copies", "together", "slower alone", "slots", "worst order", "best order"]);
    for mix in &pair.mixes {
        let [one, other] = mix.copies;
        table.add_row([
            format!("{one} + {other}"),
            format_quantity(&mix.cycles),
            format!("{:.2}", mix.alone),
            mix.slots.map_or("-".to_string(), |slots| format!("{slots:.2}")),
            format!("{:.2}", mix.worst),
            mix.order.clone(),
        ]);
    }
    print_table(&mut page, &table)
}

fn describe_share(pair: &PairRecord) -> String {
    match pair.share {
        PairShare::Disjoint => "none".to_string(),
        PairShare::Overlap if pair.union.is_none() => "they get into each other's way".to_string(),
        PairShare::Overlap => "some".to_string(),
        PairShare::Contained => "all of one of them".to_string(),
        PairShare::Equal => "all".to_string(),
        PairShare::Untold => "time can't tell".to_string(),
    }
}

fn describe_form(form: &PairFormRecord) -> String {
    if let Some(reason) = &form.reason {
        return reason.clone();
    }
    let ports = match form.ports {
        Some(1) => ", 1 port".to_string(),
        Some(ports) => format!(", {ports} ports"),
        None => String::new(),
    };
    format!("{} core cycles alone, slots {}{ports}", format_quantity(&form.cycles), form.slots)
}
