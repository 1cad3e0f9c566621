//! Labels for the places that branches of a listing lead to.

use super::instruction_text::{instruction_of, is_branch_name};
use super::listing_line::{CodeLine, take_address};
use super::machine_code::{PlacedCode, refuse_call, refuse_target};
use super::text_words::{first_word, is_name_character};
use crate::asm::registers::find_register;
use cyclescope_core::error::BadSnippet;
use std::collections::BTreeSet;

/// The places that branches lead to, by address or by the listing's own labels.
pub(super) struct PlaceLabels {
    /// Places that an instruction is at, or that follow the last one.
    places: BTreeSet<u64>,
    /// Places that a branch leads to.
    targets: BTreeSet<u64>,
    has_addresses: bool,
    /// Labels on lines of their own.
    names: BTreeSet<String>,
    /// Names of places that a branch leads to, as in `jle <L0>`.
    named: BTreeSet<String>,
}

impl PlaceLabels {
    /// `end` is what follows the code.
    pub(super) fn new(code: &[PlacedCode], end: Option<&PlacedCode>) -> PlaceLabels {
        let has_addresses = code.iter().all(|placed| placed.code.address.is_some());
        let place = |code: &CodeLine| match has_addresses {
            true => code.address,
            false => code.label.and_then(take_address).map(|(address, _)| address),
        };
        let places = code.iter().chain(end).filter_map(|placed| place(&placed.code)).collect();
        let names = code.iter().filter_map(|placed| placed.code.text.strip_suffix(':')).map(str::to_string);
        let is_address = |name: &str| take_address(name).is_some_and(|(_, rest)| rest.is_empty());
        let labels: BTreeSet<&str> = code.iter().chain(end).filter_map(|placed| placed.code.label).collect();
        let named = code.iter().filter_map(|placed| named_target(instruction_of(placed.code.text)));
        let named = named.map(|(name, _)| name).filter(|name| labels.contains(name) && !is_address(name));
        let named = named.map(str::to_string).collect();
        let mut found = PlaceLabels { places, targets: BTreeSet::new(), has_addresses, names: names.collect(), named };
        let target = |placed: &PlacedCode| Some(found.target_of(instruction_of(placed.code.text))?.0);
        found.targets = code.iter().filter_map(target).collect();
        found
    }

    /// The address that a direct branch leads to, and the text before it. Disassemblers name places
    /// by their addresses: `loc_401136`, `LAB_00401136`.
    fn target_of<'t>(&self, text: &'t str) -> Option<(u64, &'t str)> {
        branch_target(text).or_else(|| {
            let (name, before) = named_target(text)?;
            let (address, rest) = take_address(name.rsplit(['_', '.', '!']).next()?)?;
            (rest.is_empty() && self.places.contains(&address) && !self.names.contains(name))
                .then_some((address, before))
        })
    }

    /// Whether a branch names a label that the text lacks.
    fn is_unknown_name(&self, text: &str) -> bool {
        let operand = text.split_whitespace().last().unwrap_or_default();
        let is_name = operand.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '.' | '_'))
            && operand.chars().all(is_name_character);
        is_name && find_register(operand).is_none() && !self.names.contains(operand)
    }

    /// The label of an instruction, if a branch leads to it.
    pub(super) fn label_of(&self, code: &CodeLine) -> Option<String> {
        let place =
            if self.has_addresses { code.address } else { code.label.and_then(take_address).map(|place| place.0) };
        let place = place.filter(|place| self.targets.contains(place)).map(name_place);
        let named = code.label.filter(|name| self.named.contains(*name)).map(name_label);
        match (place, named) {
            (Some(place), Some(named)) => Some(format!("{place}: {named}")),
            (place, named) => place.or(named),
        }
    }

    /// The text of an instruction with a label as its target.
    pub(super) fn rewrite_target(&self, placed: &PlacedCode) -> Result<String, BadSnippet> {
        let full = placed.full_text();
        let text = instruction_of(&full);
        if let Some((name, before)) = named_target(text).filter(|(name, _)| self.named.contains(*name)) {
            return Ok(format!("{before}{}", name_label(name)));
        }
        let Some((target, before)) = self.target_of(text) else {
            let is_direct = is_branch_name(&first_word(text)) && (text.contains('<') || self.is_unknown_name(text));
            return match is_direct {
                true if first_word(text).starts_with("call") => Err(refuse_call(placed.at(), text)),
                true => Err(placed.at().error_expecting(
                    format!("`{text}` leads to a place that the text doesn't show"),
                    "paste the text with its addresses, bytes or labels, or leave this line out",
                )),
                false => Ok(text.to_string()),
            };
        };
        if first_word(text).starts_with("call") {
            return Err(refuse_call(placed.at(), text));
        }
        if self.places.contains(&target) {
            return Ok(format!("{before}{}", name_place(target)));
        }
        let inside = self.places.first().is_some_and(|first| *first < target)
            && self.places.last().is_some_and(|last| target < *last);
        Err(refuse_target(placed.at(), text, inside))
    }
}

/// Name of the label at an address. It is as long as the address with its `0x` at most.
fn name_place(address: u64) -> String {
    format!("L{address:x}")
}

/// Label for a place that the listing names.
fn name_label(name: &str) -> String {
    format!("P_{name}")
}

/// The name that a direct branch leads to, without its brackets, and the text before it.
fn named_target(text: &str) -> Option<(&str, &str)> {
    let operand = text.split_whitespace().last().filter(|_| is_branch_name(&first_word(text)))?;
    let before = &text[..text.rfind(operand)?];
    let name = operand.strip_prefix('<').and_then(|name| name.strip_suffix('>')).unwrap_or(operand);
    let is_name = !name.is_empty() && name.chars().all(is_name_character) && find_register(name).is_none();
    (is_name && !before.trim().is_empty()).then_some((name, before.strip_suffix("short ").unwrap_or(before)))
}

/// The address that a direct branch leads to, and the text before it.
fn branch_target(text: &str) -> Option<(u64, &str)> {
    let mut start = 0;
    loop {
        let rest = &text[start..];
        let word_start = start + rest.len() - rest.trim_start().len();
        let word_end = text[word_start..].find(char::is_whitespace).map(|end| word_start + end)?;
        let word = text[word_start..word_end].to_ascii_lowercase();
        if is_branch_name(&word) {
            start = word_end;
            break;
        }
        if !matches!(word.as_str(), "bnd" | "notrack" | "cs" | "ds") {
            return None;
        }
        start = word_end;
    }
    let mut operand_start = start + text[start..].len() - text[start..].trim_start().len();
    for keyword in ["short ", "near ", "SHORT ", "NEAR "] {
        if text[operand_start..].starts_with(keyword) {
            operand_start += keyword.len();
        }
    }
    let (address, after) = take_address(&text[operand_start..])?;
    // MASM's mark of hexadecimal numbers.
    let after = after.strip_prefix(['h', 'H']).unwrap_or(after).trim_start();
    let is_whole =
        after.is_empty() || after.starts_with(['<', '#']) || ["//", "->"].iter().any(|mark| after.starts_with(mark));
    is_whole.then(|| (address, &text[..operand_start]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_hexadecimal_addresses() {
        assert_eq!(branch_target("jle    30 <sum+0x30>"), Some((0x30, "jle    ")));
        assert_eq!(branch_target("bnd jmp 0x401136"), Some((0x40_1136, "bnd jmp ")));
        for text in ["jmp *%rax", "jmp rax", "jne .L3", "mov $0x30,%eax", "call *0x8(%rax)", "ret"] {
            assert_eq!(branch_target(text), None, "{text}");
        }
    }
}
