//! Short names of attempts, made from what differs between them.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Attempt, runs};

/// Longest name in characters.
const LONGEST: usize = 24;
/// Endings of file names that say nothing about an attempt.
const ENDINGS: [&str; 9] =
    [".traj.json", ".traj", ".jsonl.gz", ".jsonl", ".json", ".pred", ".gz", ".trajectory", ".output"];

/// Gives every attempt of an issue a name of its own.
pub fn give(attempts: &mut [Attempt], instance: Option<&str>) {
    let mut names = by_path(attempts, instance);
    let mut same: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (i, name) in names.iter().enumerate() {
        same.entry(name.clone()).or_default().push(i);
    }
    for group in same.values().filter(|g| g.len() > 1) {
        tell_apart(attempts, group, &mut names);
    }
    let mut names = shortened(&names);
    number_repeated(&mut names);
    for (attempt, name) in attempts.iter_mut().zip(names) {
        attempt.name = name;
    }
}

/// The parts of each path that differ; without the levels that name the instance.
fn by_path(attempts: &[Attempt], instance: Option<&str>) -> Vec<String> {
    let paths: Vec<Vec<String>> = attempts.iter().map(|a| parts(a, instance)).collect();
    let shortest = paths.iter().map(Vec::len).min().unwrap_or(0);
    let same_at = |i: usize, back: bool| {
        let at = |p: &Vec<String>| p.get(if back { p.len() - 1 - i } else { i }).cloned();
        paths.windows(2).all(|w| matches!(w, [a, b] if at(a) == at(b)))
    };
    let front = (0..shortest).take_while(|i| same_at(*i, false)).count();
    let back = (0..shortest - front).take_while(|i| same_at(*i, true)).count();
    if let [attempt] = attempts {
        return vec![alone(attempt, instance)];
    }
    paths.iter().map(|p| p.get(front..p.len() - back).unwrap_or_default().join("/")).collect()
}

/// The only attempt is named by its run.
fn alone(attempt: &Attempt, instance: Option<&str>) -> String {
    let own = attempt.trajectory.as_ref().and_then(|t| t.attempt.clone());
    let candidate = attempt.prediction.as_ref().and_then(|p| p.candidate.clone());
    let dir = attempt.path().map(|p| runs::run_dir(p, instance));
    let run = dir.and_then(|d| Some(d.file_name()?.to_string_lossy().into_owned()));
    own.or(candidate).or(run).unwrap_or_else(|| "1".to_owned())
}

fn parts(attempt: &Attempt, instance: Option<&str>) -> Vec<String> {
    let Some(path) = attempt.path() else {
        return Vec::new();
    };
    let mut parts: Vec<String> = path.iter().map(|c| c.to_string_lossy().into_owned()).collect();
    if let Some(file) = parts.last_mut() {
        while let Some(stem) = ENDINGS.iter().find_map(|e| file.strip_suffix(e)) {
            *file = stem.to_owned();
        }
    }
    let file = parts.len().saturating_sub(1);
    let mut at = 0;
    parts.retain(|p| {
        at += 1;
        Some(p.as_str()) != instance && !p.is_empty() && (at > file || !runs::is_companion(p))
    });
    if attempt.trajectory.is_none() && parts.last().is_none_or(|last| Some(last.as_str()) == folder(path)) {
        parts.push("prediction".to_owned());
    }
    parts
}

/// The folder of the run, as it stands in the path.
fn folder(path: &Path) -> Option<&str> {
    path.parent()?.parent()?.file_name()?.to_str()
}

/// Names of attempts that stand in the same file: by run id, candidate, or record.
fn tell_apart(attempts: &[Attempt], group: &[usize], names: &mut [String]) {
    let given = |i: &usize| {
        let attempt = attempts.get(*i)?;
        let of_run = attempt.trajectory.as_ref().and_then(|t| t.attempt.clone());
        of_run.or_else(|| attempt.prediction.as_ref()?.candidate.clone())
    };
    let own: Vec<Option<String>> = group.iter().map(given).collect();
    let shared = shortened(&own.iter().map(|o| o.clone().unwrap_or_default()).collect::<Vec<_>>());
    for (n, ((i, own), short)) in group.iter().zip(&own).zip(shared).enumerate() {
        let record = attempts.get(*i).map_or(n, Attempt::record);
        let tail = if own.is_some() && !short.is_empty() { short } else { format!("#{}", record + 1) };
        if let Some(name) = names.get_mut(*i) {
            *name = if name.is_empty() { tail } else { format!("{name} {tail}") };
        }
    }
}

/// Without what all begin and end with, up to a word boundary, and clipped in the middle.
fn shortened(names: &[String]) -> Vec<String> {
    let Some(first) = names.first() else {
        return Vec::new();
    };
    if names.iter().all(|n| n == first) {
        return names.iter().map(|n| clip(n)).collect();
    }
    let mut front = first.len();
    let mut back = first.len();
    for name in names {
        let same = |(a, b): &(char, char)| a == b;
        front = front.min(first.chars().zip(name.chars()).take_while(same).map(|(a, _)| a.len_utf8()).sum());
        back = back.min(first.chars().rev().zip(name.chars().rev()).take_while(same).map(|(a, _)| a.len_utf8()).sum());
    }
    let front = boundary(first, front, names);
    names.iter().map(|name| clip(without(name, front, back))).collect()
}

/// The common beginning cut back to the end of a word; further back where only digits would stay.
fn boundary(first: &str, common: usize, names: &[String]) -> usize {
    let head = first.get(..common).unwrap_or_default();
    let starts = |text: &str| text.rfind(|c: char| !c.is_alphanumeric()).map_or(0, |at| at + 1);
    let mut cut = starts(head);
    let digits_only =
        |cut: usize| names.iter().any(|n| n.get(cut..).unwrap_or_default().chars().all(|c| !c.is_alphabetic()));
    while cut > 0 && digits_only(cut) {
        let end = head.get(..cut).unwrap_or_default().trim_end_matches(|c: char| !c.is_alphanumeric()).len();
        cut = starts(head.get(..end).unwrap_or_default());
        if common - cut > 12 {
            return starts(head);
        }
    }
    cut
}

fn without(name: &str, front: usize, back: usize) -> &str {
    // The common end is cut only behind a word, and never into the beginning.
    let tail_start = name.len().saturating_sub(back);
    let tail = name.get(tail_start..).unwrap_or_default();
    let cut = tail.find(|c: char| !c.is_alphanumeric()).map_or(name.len(), |at| tail_start + at);
    let short = name.get(front..cut.max(front)).unwrap_or(name);
    if short.is_empty() { name.get(front..).filter(|s| !s.is_empty()).unwrap_or(name) } else { short }
}

fn clip(name: &str) -> String {
    let n = name.chars().count();
    if n <= LONGEST {
        return name.to_owned();
    }
    let head: String = name.chars().take(LONGEST / 2 - 1).collect();
    let tail: String = name.chars().skip(n - LONGEST / 2).collect();
    format!("{head}…{tail}")
}

/// Whatever is still the same gets a number; an empty name becomes one.
fn number_repeated(names: &mut [String]) {
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    for name in names.iter() {
        *taken.entry(name.clone()).or_default() += 1;
    }
    let mut used: BTreeMap<String, usize> = BTreeMap::new();
    for i in 0..names.len() {
        let Some(name) = names.get(i).cloned() else {
            continue;
        };
        if taken.get(&name).copied().unwrap_or(0) < 2 && !name.is_empty() {
            continue;
        }
        let mut n = used.get(&name).copied().unwrap_or(0);
        let fresh = loop {
            n += 1;
            let fresh = if name.is_empty() { n.to_string() } else { format!("{name} {n}") };
            if !names.contains(&fresh) {
                break fresh;
            }
        };
        used.insert(name, n);
        if let Some(slot) = names.get_mut(i) {
            *slot = fresh;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(names: &[&str]) -> Vec<String> {
        shortened(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn names_keep_what_differs() {
        assert_eq!(short(&["acr-cost_2_1", "acr-cost_2_2"]), ["cost_2_1", "cost_2_2"]);
        let models = short(&[
            "20240825_SWE-agent_deepseek-coder",
            "20240825_SWE-agent_gpt-4o",
            "20240825_SWE-agent_gpt-4o-mini",
        ]);
        assert_eq!(models, ["deepseek-coder", "gpt-4o", "gpt-4o-mini"]);
        assert_eq!(short(&["deep_chat_dev", "deep_chat_dev_rerun"]), ["dev", "dev_rerun"]);
        assert_eq!(short(&["run1", "run2"]), ["run1", "run2"]);
        assert_eq!(short(&["a-final", "b-final"]), ["a", "b"]);
        let long = short(&["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaX", "b"]);
        assert_eq!(long[0].chars().count(), LONGEST);
    }

    #[test]
    fn repeated_and_empty_names_are_numbered() {
        let mut names = ["", "", "a", "a", "a 1", "b"].map(str::to_owned);
        number_repeated(&mut names);
        assert_eq!(names, ["1", "2", "a 2", "a 3", "a 1", "b"]);
    }

    proptest::proptest! {
        #[test]
        fn names_are_unique_whatever_they_are(names in proptest::collection::vec("[ab12_é.-]{0,30}", 1..6)) {
            let mut short = shortened(&names);
            number_repeated(&mut short);
            let unique: std::collections::BTreeSet<&String> = short.iter().collect();
            proptest::prop_assert_eq!(unique.len(), short.len());
            proptest::prop_assert!(short.iter().all(|n| !n.is_empty()));
        }
    }
}
