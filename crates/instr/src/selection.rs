//! Selects the forms that a survey measures.
//!
//! A filter is a glob (`*`, `?`). It is compared with the mnemonic and with the name in the
//! instruction database, each with and without operands. Filters and mnemonics form a union. CPUID
//! features then restrict it. A criterion that matches nothing is an error: it is probably
//! misspelt.

use crate::forms::target_form::TargetForm;
use crate::isa_filter::IsaFilter;
use crate::tables::reference;
use cyclescope_code::asm::{CodeMode, forms, nearest_words};
use cyclescope_measure::study::glob::matches_glob;
use std::collections::BTreeSet;

/// The criteria of a selection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FormCriteria {
    /// Globs, in any case.
    pub filters: Vec<String>,
    /// Whole mnemonics.
    pub mnemonics: Vec<String>,
    /// CPUID features: a form needs at least one of them, and none of those prefixed with `!`.
    pub isa: Vec<String>,
}

/// The criterion that matches nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnmatchedCriterion {
    /// A filter, and similar names.
    Filter(String, Vec<String>),
    /// A mnemonic, and similar names.
    Mnemonic(String, Vec<String>),
    /// A CPUID feature that no form needs, and similar names.
    Isa(String, Vec<String>),
    /// Each criterion matches some form, but no form matches all of them.
    Together,
}

/// All forms of a mode, for both latency and throughput.
pub fn list_forms(mode: CodeMode) -> Vec<TargetForm> {
    forms::all_forms_of(mode).map(TargetForm::from).collect()
}

/// The unique name of a form and its immediate: `Add_rm64_r64 r64, r64`, `Shl_rm64_imm8 r64, 0x5`.
/// A sequence is named by its assembly.
pub fn full_name(target: &TargetForm) -> String {
    format!("{} {}", target.code(), target.operands()).trim_end().to_string()
}

impl FormCriteria {
    /// Selects matching forms, in their given order.
    pub fn select(&self, forms: Vec<TargetForm>) -> Result<Vec<TargetForm>, UnmatchedCriterion> {
        let filters: Vec<String> = self.filters.iter().map(|filter| normalize_filter(filter)).collect();
        let mnemonics: Vec<String> = self.mnemonics.iter().map(|name| reference::spell_mnemonic(name)).collect();
        let isa = IsaFilter::new(self.isa.iter().map(String::as_str))
            .map_err(|(name, near)| UnmatchedCriterion::Isa(name, near))?;
        let (mut hit_filters, mut hit_mnemonics) = (vec![false; filters.len()], vec![false; mnemonics.len()]);
        let mut known: BTreeSet<String> = BTreeSet::new();
        let mut chosen = Vec::new();
        // The full name of a form without operands is its code's name. It selects that form only,
        // without the REP variants.
        let full: BTreeSet<String> = forms.iter().map(|form| full_name(form).to_lowercase()).collect();
        for form in forms {
            let names = FormNames::from_form(&form);
            let mut matched = filters.is_empty() && mnemonics.is_empty();
            for (filter, hit) in filters.iter().zip(&mut hit_filters) {
                let matches = match full.contains(filter) {
                    true => full_name(&form).to_lowercase() == *filter,
                    false => names.list_names().iter().any(|name| matches_glob(filter, name)),
                };
                (*hit, matched) = (*hit || matches, matched || matches);
            }
            for (mnemonic, hit) in mnemonics.iter().zip(&mut hit_mnemonics) {
                let matches = *mnemonic == names.mnemonic;
                (*hit, matched) = (*hit || matches, matched || matches);
            }
            let allowed = isa.allows_form(&form);
            known.insert(names.mnemonic);
            known.insert(names.code);
            if matched && allowed {
                chosen.push(form);
            }
        }
        let near = |word: &str| suggest_names(word, known.iter().map(String::as_str));
        if let Some(index) = hit_filters.iter().position(|hit| !hit) {
            return Err(UnmatchedCriterion::Filter(self.filters[index].clone(), near(&filters[index])));
        }
        if let Some(index) = hit_mnemonics.iter().position(|hit| !hit) {
            return Err(UnmatchedCriterion::Mnemonic(self.mnemonics[index].clone(), near(&mnemonics[index])));
        }
        if chosen.is_empty() { Err(UnmatchedCriterion::Together) } else { Ok(chosen) }
    }
}

/// Known names similar to the first word of the text.
fn suggest_names<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let word = text.split(' ').next().unwrap_or_default();
    nearest_words(word, known).into_iter().map(str::to_string).collect()
}

/// Names of a form that a filter can match, in lower case.
struct FormNames {
    mnemonic: String,
    code: String,
    /// Operands of the general form, then those with the requested immediate.
    operands: [String; 2],
}

impl FormNames {
    fn from_form(target: &TargetForm) -> FormNames {
        let general = TargetForm { constant: None, ..target.clone() };
        let operands = [general.operands(), target.operands()].map(|operands| operands.to_lowercase());
        FormNames { mnemonic: target.mnemonic(), code: target.code().to_lowercase(), operands }
    }

    fn list_names(&self) -> [String; 6] {
        let [form, asked] = &self.operands;
        let with = |name: &str, operands: &str| format!("{name} {operands}").trim_end().to_string();
        let (mnemonic, code) = (&self.mnemonic, &self.code);
        [
            mnemonic.clone(),
            with(mnemonic, form),
            with(mnemonic, asked),
            code.clone(),
            with(code, form),
            with(code, asked),
        ]
    }
}

/// A filter in lower case, spaced as in tables: one space after the name and after each comma.
fn normalize_filter(filter: &str) -> String {
    let parts = filter.split(',').map(|part| part.split_whitespace().collect::<Vec<_>>().join(" "));
    parts.collect::<Vec<_>>().join(", ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(filters: &[&str], mnemonics: &[&str], isa: &[&str]) -> Result<Vec<TargetForm>, UnmatchedCriterion> {
        let own = |words: &[&str]| words.iter().map(|word| word.to_string()).collect();
        FormCriteria { filters: own(filters), mnemonics: own(mnemonics), isa: own(isa) }
            .select(list_forms(CodeMode::default()))
    }

    fn names(forms: &[TargetForm]) -> Vec<String> {
        forms.iter().map(full_name).collect()
    }

    #[test]
    fn filters_match_mnemonics_operands_and_codes() {
        let expected = ["Add_rm64_r64 r64, r64", "Add_r64_rm64 r64, r64"];
        assert_eq!(names(&select(&["ADD  r64,r64"], &[], &[]).unwrap()), expected);
        assert_eq!(names(&select(&["add_*64 R64, r64"], &[], &[]).unwrap()), expected);
        let by_code = select(&["Add_r64_rm64"], &[], &[]).unwrap();
        assert_eq!(names(&by_code), ["Add_r64_rm64 r64, r64", "Add_r64_rm64 r64, m64"]);
        let plain = select(&["add"], &[], &[]).unwrap();
        assert!(plain.iter().all(|target| target.form.mnemonic() == "add") && plain.len() > 20);
        assert_eq!(plain, select(&[], &["add"], &[]).unwrap());
        let both = select(&["add"], &["sub"], &[]).unwrap();
        assert_eq!(both.len(), plain.len() + select(&["sub"], &[], &[]).unwrap().len());
    }

    #[test]
    fn every_form_is_selected_by_its_full_name_alone() {
        let all = list_forms(CodeMode::default());
        for target in all.iter().step_by(499).chain(all.iter().filter(|target| target.form.mnemonic() == "lea")) {
            let found = select(&[&full_name(target)], &[], &[]).unwrap();
            assert_eq!(names(&found), [full_name(target)]);
        }
    }

    #[test]
    fn features_restrict_a_selection() {
        let found = select(&["vpaddb"], &[], &["avx512bw"]).unwrap();
        assert!(!found.is_empty() && found.iter().all(|target| target.form.encoding() == "evex"));
        assert!(found.len() < select(&["vpaddb"], &[], &[]).unwrap().len());
        assert_eq!(select(&["add"], &[], &["avx512bw"]), Err(UnmatchedCriterion::Together));
        let without = select(&["vpaddb"], &[], &["!avx512bw"]).unwrap();
        assert!(!without.is_empty() && without.iter().all(|target| target.form.encoding() == "vex"));
        let both = select(&["vpaddb"], &[], &["AVX2", "! AVX512F", "avx512vl", "!avx512bw"]).unwrap();
        assert!(!both.is_empty() && both.len() < without.len());
    }

    #[test]
    fn an_unmatched_criterion_comes_with_similar_names() {
        let near = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        let Err(UnmatchedCriterion::Filter(text, found)) = select(&["add", "imull r64"], &[], &[]) else { panic!() };
        assert_eq!((text.as_str(), found.contains(&"imul".to_string())), ("imull r64", true));
        let Err(UnmatchedCriterion::Isa(_, found)) = select(&["add"], &[], &["avx512bv"]) else { panic!() };
        assert!(found.contains(&"avx512bw".to_string()), "{found:?}");
        assert!(matches!(
            select(&["add"], &[], &["!avx512bv"]),
            Err(UnmatchedCriterion::Isa(name, _)) if name == "!avx512bv"
        ));
        assert_eq!(select(&["zzzzz*"], &[], &[]), Err(UnmatchedCriterion::Filter("zzzzz*".to_string(), near(&[]))));
        assert!(matches!(select(&[], &["vpad"], &[]), Err(UnmatchedCriterion::Mnemonic(..))));
    }
}
