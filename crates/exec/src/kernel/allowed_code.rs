//! Caches which code may run: a survey runs each of its programs in many batches, and its rulers in
//! all.

use super::refusal::{JudgedCode, RefusalRules, judge_code};
use cyclescope_code::program::Program;
use cyclescope_core::error::RunError;
use std::collections::HashSet;

/// Largest number of cached pieces of code: those of several batches.
const MAX_CACHED: usize = 512;

/// Pieces of allowed code. Whole pieces are compared, not hashes, so that two are never confused.
#[derive(Debug, Default)]
pub(super) struct AllowedCodeCache {
    allowed: HashSet<Vec<u8>>,
}

impl AllowedCodeCache {
    /// Whether a program may run.
    pub(crate) fn check_program(&mut self, program: &Program, rules: RefusalRules) -> Result<(), RunError> {
        let code = JudgedCode::from(program);
        let key = build_cache_key(&code, rules);
        if self.allowed.contains(&key) {
            return Ok(());
        }
        judge_code(code, rules).map_err(|refusal| refusal.into_error())?;
        if self.allowed.len() == MAX_CACHED {
            self.allowed.clear();
        }
        self.allowed.insert(key);
        Ok(())
    }
}

/// All inputs of the check. Their lengths are included, so that different inputs have different
/// keys.
fn build_cache_key(code: &JudgedCode, rules: RefusalRules) -> Vec<u8> {
    let JudgedCode { init, snippet, copies, looped, following } = *code;
    let counter = looped.and_then(|looped| looped.counter()).map_or(u8::MAX, |counter| counter.number() as u8);
    let mut key = vec![counter, u8::from(rules.lone_cpu)];
    for number in [copies, init.len(), snippet.len()] {
        key.extend(number.to_le_bytes());
    }
    [init, snippet, following].into_iter().for_each(|part| key.extend(part));
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use cyclescope_code::clock::Clock;
    use cyclescope_code::program::ProgramRecipe;

    fn program(init: &[u8], snippet: &[u8]) -> Program {
        let clock = Clock::find_named("rdtscp-lfence").unwrap();
        ProgramRecipe { init, snippet, copies: 4, ..ProgramRecipe::empty(clock) }.build()
    }

    #[test]
    fn only_allowed_code_is_cached() {
        let mut judgement = AllowedCodeCache::default();
        let mut may_run = |init: &[u8], snippet: &[u8]| {
            judgement.check_program(&program(init, snippet), RefusalRules::default()).is_ok()
        };
        // `mov eax, cr0` and `mov cr0, eax`, then HLT; each twice, because the second check uses
        // the cache.
        let (read, write, halt) = ([0x0f, 0x20, 0xc0], [0x0f, 0x22, 0xc0], [0xf4]);
        for _ in 0..2 {
            assert!(may_run(&read, &write));
            assert!(!may_run(&[], &write) && !may_run(&[], &halt));
            assert!(may_run(&[], &[0x90]));
        }
        assert!(!may_run(&[], &[read, write].concat()[3..]));
    }

    #[test]
    fn memory_is_bounded() {
        let mut judgement = AllowedCodeCache::default();
        for number in 0..=MAX_CACHED as u32 {
            let snippet = [vec![0xb8], number.to_le_bytes().to_vec()].concat();
            assert!(judgement.check_program(&program(&[], &snippet), RefusalRules::default()).is_ok());
        }
        assert_eq!(judgement.allowed.len(), 1);
    }
}
