//! Instance ids that name the same instance in different spellings.
//!
//! A benchmark's own id, the id a report makes of it and the name of a folder are often not the same text:
//! `org/repo:pr-7` is `org__repo-7`, SWE-bench-Pro puts `instance_` before and a version behind, images write
//! `_1776_` for `__`, and Harbor lowers the case and cuts the name.

use std::collections::{BTreeMap, BTreeSet};

/// Length at which Harbor cuts a task's name for the folder of a trial.
const HARBOR: usize = 32;
/// Characters of a commit that R2E-Gym keeps in an id.
const R2E: usize = 12;

/// What all spellings of one instance id have in common; ids with the same key are the same instance.
pub fn key(id: &str) -> String {
    let id = id.trim().to_lowercase().replace("_1776_", "__");
    let id = id
        .rsplit_once("_final:")
        .filter(|(_, tail)| is_hex(tail))
        .map_or(id.clone(), |(image, tail)| format!("{}__{tail}", image.rsplit('/').next().unwrap_or(image)));
    let id = pull_request(&id).unwrap_or(id);
    let id = pro(&id).unwrap_or(&id);
    match id.split_once("__") {
        Some((repo, commit)) if commit.len() > R2E && is_hex(commit) => {
            format!("{repo}__{}", commit.get(..R2E).unwrap_or(commit))
        }
        _ => id.to_owned(),
    }
}

/// Is a folder of this name the one of an instance? It may be spelled differently, and AutoCodeRover puts a date
/// behind: `<id>_2024-04-06_13-30-51`.
pub fn is_folder_of(name: &str, id: &str) -> bool {
    if name == id {
        return true;
    }
    if name.len() < 4 || !name.contains("__") && !name.contains("_1776_") {
        return false;
    }
    key(undated(name)) == key(id)
}

fn undated(name: &str) -> &str {
    let date = |tail: &str| {
        let shape = tail.bytes().take(10).map(|b| if b.is_ascii_digit() { b'0' } else { b });
        shape.eq(*b"0000-00-00")
    };
    let cut = name.match_indices('_').find(|(at, _)| name.get(at + 1..).is_some_and(date));
    cut.and_then(|(at, _)| name.get(..at)).unwrap_or(name)
}

/// `org/repo:pr-7`, `org/repo#7` and `org/repo-7` as `org__repo-7`.
fn pull_request(id: &str) -> Option<String> {
    let (org, rest) = id.split_once('/').or_else(|| id.split_once("__"))?;
    let (repo, number) = rest
        .rsplit_once(":pr-")
        .or_else(|| rest.rsplit_once('#'))
        .or_else(|| if id.contains('/') { rest.rsplit_once('-') } else { None })?;
    let plain = |s: &str| !s.is_empty() && !s.contains('/');
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    if plain(org) && plain(repo) && digits { Some(format!("{org}__{repo}-{number}")) } else { None }
}

/// `instance_org__repo-<40 hex>-v<hex or nan>` without what stands around `org__repo-<40 hex>`.
fn pro(id: &str) -> Option<&str> {
    let bare = id.strip_prefix("instance_").unwrap_or(id);
    let end = bare.match_indices('-').map(|(at, _)| at + 41).find(|end| {
        bare.get(end - 40..*end).is_some_and(is_hex) && matches!(bare.get(*end..*end + 2), None | Some("-v"))
    })?;
    bare.get(..end)
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The one full key of which Harbor made this (lower-case) name: cut at the end, something put before it, or both.
/// Two that begin alike cannot be told apart once they are cut: then neither is meant.
fn full_of<'f>(name: &str, full: &'f BTreeSet<String>) -> Option<&'f String> {
    // A prefix ends in a separator; at least the organisation and a part of the repository must be left.
    let starts = name.match_indices(|c: char| !c.is_alphanumeric()).map(|(at, c)| at + c.len());
    let tails = std::iter::once(0).chain(starts).filter_map(|at| name.get(at..));
    let mut found = BTreeSet::new();
    for tail in tails.filter(|t| t.contains("__") && !t.starts_with('_')) {
        let begins = full.range(tail.to_owned()..).take_while(|key| key.starts_with(tail)).take(3);
        found.extend(begins.filter(|key| key.as_str() != name && (key.as_str() == tail || is_cut(name, tail, key))));
    }
    if found.len() == 1 { found.pop_first() } else { None }
}

/// Was the name cut where its tail ends in the full key? It is as long as Harbor leaves it, or shorter by the `_` and
/// `-` that went at its end.
fn is_cut(name: &str, tail: &str, full: &str) -> bool {
    let Some(gone) = HARBOR.checked_sub(name.len()).and_then(|n| full.get(tail.len()..tail.len() + n)) else {
        return false;
    };
    let rest = full.get(tail.len()..).unwrap_or_default();
    // `org__repo-1377` is no shortened `org__repo-13779`, but an issue of its own; behind a prefix it is one of Harbor's.
    let number = tail.len() == name.len() && ends_in_number(tail);
    let goes_on = number && rest.starts_with(|c: char| c.is_ascii_digit());
    !rest.is_empty() && !goes_on && gone.bytes().all(|b| matches!(b, b'_' | b'-'))
}

fn ends_in_number(text: &str) -> bool {
    text.rsplit_once('-').is_some_and(|(_, n)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// Which spelling stands for each key, and which keys are short forms of others.
#[derive(Debug, Default)]
pub struct Ids {
    /// Every spelling by key.
    spellings: BTreeMap<String, BTreeSet<String>>,
    /// The full key of a shortened one.
    full: BTreeMap<String, String>,
}

impl Ids {
    /// Of all ids of a data set: any of them may be shortened, and stands for the one full id that it begins.
    pub fn new<'a>(all: impl Iterator<Item = &'a str>) -> Self {
        let mut ids = Self::default();
        let named: BTreeSet<&str> = all.collect();
        for id in named {
            ids.spellings.entry(key(id)).or_default().insert(id.to_owned());
        }
        let keys: BTreeSet<String> = ids.spellings.keys().cloned().collect();
        for name in &keys {
            if let Some(only) = full_of(name, &keys) {
                ids.full.insert(name.clone(), only.clone());
            }
        }
        ids
    }

    /// The spelling that stands for the instance this id names: the fullest one, as `org__repo-7` before
    /// `org/repo:pr-7`, and with its capitals.
    pub fn name(&self, id: &str) -> String {
        let key = key(id);
        let key = self.full.get(&key).unwrap_or(&key);
        let best = self.spellings.get(key).and_then(|all| {
            all.iter().max_by_key(|s| (!s.contains('/'), s.len(), s.bytes().any(|b| b.is_ascii_uppercase())))
        });
        best.cloned().unwrap_or_else(|| id.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_instance_have_one_key() {
        for id in ["org/repo:pr-7", "org__repo-7", "Org__Repo-7", "org/repo#7", "org_1776_repo-7", "org__repo:pr-7"] {
            assert_eq!(key(id), "org__repo-7", "{id}");
        }
        let hex = "04998908ba6721d64eba79ae3b65a351dcfbc5b5";
        for id in [format!("instance_NodeBB__NodeBB-{hex}-vnan"), format!("NodeBB__NodeBB-{hex}")] {
            assert_eq!(key(&id), format!("nodebb__nodebb-{hex}"));
        }
        assert_eq!(key(&format!("namanjain12/sympy_final:{hex}")), "sympy__04998908ba67");
        assert_eq!(key("sympy__04998908ba67"), "sympy__04998908ba67");
        for other in ["org__repo-71", "org__repo.abcdef12.pr_7", "a/b/c:pr-7", "7", "", "runs/my-notes"] {
            assert_ne!(key(other), "org__repo-7", "{other}");
        }
        assert_eq!(key("pydantic__pydantic.acb0f10f.pr_8316"), "pydantic__pydantic.acb0f10f.pr_8316");
    }

    #[test]
    fn harbor_names_are_found_again() {
        let is_short_of = |name: &str, full: &str| full_of(name, &[full.to_owned()].into()).is_some();
        let full = "scikit-learn__scikit-learn-13779";
        assert_eq!(full.len(), HARBOR);
        assert!(is_short_of("swebench-verified__scikit-learn__scikit-learn-13779", full), "a prefix, not cut");
        assert!(is_short_of("swebench-scikit-learn__scikit-le", full), "a prefix, cut");
        assert!(is_short_of("pydantic__pydantic.acb0f10f.pr_8", "pydantic__pydantic.acb0f10f.pr_8316"), "cut");
        assert!(
            is_short_of("pydantic__pydantic.acb0f10f12.pr", "pydantic__pydantic.acb0f10f12.pr_8316"),
            "cut before `_`"
        );
        assert!(!is_short_of("scikit-learn__scikit-learn-1377", "scikit-learn__scikit-learn-13779"), "another issue");
        assert!(!is_short_of("scikit-learn__scikit-learn-13779", "scikit-learn__scikit-learn-137790"), "another issue");
        assert!(!is_short_of("astropy__astropy-1", "astropy__astropy-12907"), "too short to have been cut");
        assert!(!is_short_of("astropy-1", "astropy__astropy-1"));
    }

    #[test]
    fn folders_are_known_with_a_date_and_in_other_spellings() {
        for name in ["o__r-1", "o__r-1_2024-04-06_13-30-51", "O__R-1", "o_1776_r-1"] {
            assert!(is_folder_of(name, "o__r-1"), "{name}");
        }
        for name in ["o__r-12", "runs", "o__r-1_x", ""] {
            assert!(!is_folder_of(name, "o__r-1"), "{name}");
        }
    }

    #[test]
    fn two_that_begin_alike_are_not_guessed() {
        let full = ["pydantic__pydantic.acb0f10f.pr_8316", "pydantic__pydantic.acb0f10f.pr_8320"];
        let name = "pydantic__pydantic.acb0f10f.pr_8";
        let both = Ids::new([name].into_iter().chain(full));
        assert_eq!(both.name(name), name);
        let one = Ids::new([name, full[0]].into_iter());
        assert_eq!(one.name(name), full[0]);
    }

    #[test]
    fn the_fullest_spelling_stands_for_all() {
        let ids = Ids::new(["fasterxml__core-1", "FasterXML/core:pr-1", "FasterXML__core-1"].into_iter());
        for id in ["FasterXML/core:pr-1", "fasterxml__core-1", "FasterXML__core-1"] {
            assert_eq!(ids.name(id), "FasterXML__core-1");
        }
        assert_eq!(ids.name("unheard"), "unheard");
    }

    proptest::proptest! {
        #[test]
        fn a_key_is_its_own_key(id in "[A-Za-z0-9_./:#-]{0,60}") {
            let once = key(&id);
            proptest::prop_assert_eq!(key(&once), once);
        }
    }
}
