//! Comparing candidate patches: which are the same change, which touch the same files.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use super::model::{FileChange, Line, LineKind, Patch, PatchState};
use super::parse::parse;

/// SHA-256 of the exact bytes, in lower-case hex.
pub fn sha256(patch: &str) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(patch.as_bytes()) {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// A form of `patch` that is equal for patches that make the same change. Left out: line ends, blanks around the
/// patch, index lines, how many context lines there are, section names, order of files, mail heads. Kept: which files
/// change how, and every added and removed line with its number. What is not a diff comes back trimmed.
pub fn normalize(patch: &str) -> String {
    canonical(&parse(patch), &str::to_owned)
}

/// How like two patches are, the closest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Likeness {
    /// The same bytes.
    Identical,
    /// The same change, written differently: see [`normalize`].
    Equivalent,
    /// The same but for blanks inside or at the end of lines, and blank lines. Indentation counts as a difference.
    BlanksOnly,
}

impl Likeness {
    /// A word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Identical => "identical",
            Self::Equivalent => "equivalent",
            Self::BlanksOnly => "differs in blanks only",
        }
    }
}

/// How like `a` and `b` are; `None` if they are different changes.
pub fn likeness(a: &str, b: &str) -> Option<Likeness> {
    Keys::of(a).likeness(&Keys::of(b))
}

/// Where a candidate belongs among those it is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Twin {
    /// Index of the first candidate of the group: the same for all its members.
    pub group: usize,
    /// How like this one is to that first candidate (identical for the first itself).
    pub likeness: Likeness,
}

/// Groups candidate patches: one entry a candidate, in order. Candidates without a patch (`None`, or nothing but
/// blanks) belong to no group: they are no change that could be the same. A candidate alone in its group is not a twin.
pub fn twins(patches: &[Option<&str>]) -> Vec<Option<Twin>> {
    let mut firsts: Vec<(usize, Keys)> = Vec::new();
    let mut found = Vec::with_capacity(patches.len());
    for (at, patch) in patches.iter().enumerate() {
        let Some(patch) = patch.filter(|patch| !patch.trim().is_empty()) else {
            found.push(None);
            continue;
        };
        let keys = Keys::of(patch);
        let known = firsts
            .iter()
            .find_map(|(group, first)| first.likeness(&keys).map(|likeness| Twin { group: *group, likeness }));
        found.push(Some(known.unwrap_or(Twin { group: at, likeness: Likeness::Identical })));
        if known.is_none() {
            firsts.push((at, keys));
        }
    }
    found
}

/// What patches are compared by.
struct Keys {
    exact: String,
    change: String,
    blanks: String,
}

impl Keys {
    fn of(patch: &str) -> Self {
        let parsed = parse(patch);
        let hashed = |text: String| sha256(&text);
        Self {
            exact: sha256(patch),
            change: hashed(canonical(&parsed, &str::to_owned)),
            blanks: hashed(canonical_without_blanks(&parsed)),
        }
    }

    fn likeness(&self, other: &Self) -> Option<Likeness> {
        if self.exact == other.exact {
            Some(Likeness::Identical)
        } else if self.change == other.change {
            Some(Likeness::Equivalent)
        } else {
            (self.blanks == other.blanks).then_some(Likeness::BlanksOnly)
        }
    }
}

fn file_key(file: &FileChange) -> (&str, Option<&str>) {
    (file.path(), file.old_path.as_deref())
}

fn sorted_files(patch: &Patch) -> Vec<&FileChange> {
    let mut files: Vec<_> = patch.files.iter().collect();
    files.sort_by(|a, b| file_key(a).cmp(&file_key(b)));
    files
}

fn file_line(file: &FileChange) -> String {
    format!(
        "{} {:?} -> {:?} mode {:?} -> {:?} binary {:?}\n",
        file.kind.name(),
        file.old_path,
        file.new_path,
        file.old_mode,
        file.new_mode,
        file.binary
    )
}

fn changed(file: &FileChange) -> impl Iterator<Item = &Line> {
    file.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind != LineKind::Context)
}

fn canonical(patch: &Patch, content: &dyn Fn(&str) -> String) -> String {
    if patch.state() != PatchState::Diff {
        return patch.preamble.replace('\r', "").trim().to_owned();
    }
    let mut text = String::new();
    for file in sorted_files(patch) {
        text.push_str(&file_line(file));
        for line in changed(file) {
            let (sign, number) = if line.kind == LineKind::Add { ('+', line.new) } else { ('-', line.old) };
            let end = if line.no_newline { "\\" } else { "" };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{sign}{} {}{end}", number.unwrap_or(0), content(&line.text));
        }
    }
    text
}

/// Without line numbers (blank lines shift them) and blank lines, runs of blanks after the indentation as one.
fn canonical_without_blanks(patch: &Patch) -> String {
    if patch.state() != PatchState::Diff {
        return patch.preamble.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    let mut text = String::new();
    for file in sorted_files(patch) {
        text.push_str(&file_line(file));
        for line in changed(file).filter(|line| !line.text.trim().is_empty()) {
            let sign = if line.kind == LineKind::Add { '+' } else { '-' };
            let body = line.text.trim_start();
            let indentation = line.text.get(..line.text.len() - body.len()).unwrap_or_default();
            let words = body.split_whitespace().collect::<Vec<_>>().join(" ");
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{sign}{indentation}{words}");
        }
    }
    text
}

/// A file and who changes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileUse {
    /// The path as [`FileChange::path`] gives it.
    pub path: String,
    /// Indices of the candidates that change it, ascending.
    pub candidates: Vec<usize>,
}

/// Every file that any of the candidates changes, those of most candidates first, then by path.
pub fn overlap(patches: &[&Patch]) -> Vec<FileUse> {
    let mut uses: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (candidate, patch) in patches.iter().enumerate() {
        for file in &patch.files {
            let users = uses.entry(file.path()).or_default();
            if users.last() != Some(&candidate) {
                users.push(candidate);
            }
        }
    }
    let mut uses: Vec<_> =
        uses.into_iter().map(|(path, candidates)| FileUse { path: path.to_owned(), candidates }).collect();
    uses.sort_by(|a, b| b.candidates.len().cmp(&a.candidates.len()).then_with(|| a.path.cmp(&b.path)));
    uses
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIX: &str = "diff --git a/c.py b/c.py\nindex 1..2 100644\n--- a/c.py\n+++ b/c.py\n@@ -1,3 +1,3 @@ def f\n a\n-b = 1\n+b = 2\n d\n";

    #[test]
    fn the_hash_is_of_the_exact_bytes() {
        assert_eq!(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
        assert_eq!(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_ne!(sha256("a\n"), sha256("a\r\n"));
    }

    #[test]
    fn the_same_change_written_differently() {
        let less_context = "--- a/c.py\n+++ b/c.py\n@@ -2 +2 @@\n-b = 1\n+b = 2\n";
        let crlf = FIX.replace('\n', "\r\n");
        let framed = format!("\n\n{FIX}\n\n");
        for other in [less_context, crlf.as_str(), framed.as_str()] {
            assert_eq!(likeness(FIX, other), Some(Likeness::Equivalent), "{other}");
            assert_eq!(normalize(FIX), normalize(other));
        }
        assert_eq!(likeness(FIX, FIX), Some(Likeness::Identical));
    }

    #[test]
    fn different_changes() {
        assert_eq!(likeness(FIX, &FIX.replace("b = 2", "b = 3")), None);
        assert_eq!(likeness(FIX, &FIX.replace("c.py", "d.py")), None);
        let elsewhere = FIX.replace("@@ -1,3 +1,3 @@", "@@ -7,3 +7,3 @@");
        assert_ne!(normalize(FIX), normalize(&elsewhere));
        let indented = FIX.replace("+b = 2", "+  b = 2");
        assert_eq!(likeness(FIX, &indented), None, "indentation is meaning in Python");
        assert_eq!(likeness(FIX, &FIX.replace("b = 2", "b =  2 ")), Some(Likeness::BlanksOnly));
        assert_ne!(normalize(FIX), normalize(&format!("{FIX}\\ No newline at end of file\n").replace(" d\n", "")));
    }

    #[test]
    fn order_of_files_does_not_matter() {
        let other = FIX.replace("c.py", "z.py");
        assert_eq!(likeness(&format!("{FIX}{other}"), &format!("{other}{FIX}")), Some(Likeness::Equivalent));
    }

    #[test]
    fn blank_candidates_are_nobodys_twin() {
        let found = twins(&[None, Some(""), Some(" \n"), Some(""), Some("text"), Some("text\n")]);
        assert_eq!(&found[..4], [None; 4]);
        assert_eq!(found[4], Some(Twin { group: 4, likeness: Likeness::Identical }));
        assert_eq!(found[5], Some(Twin { group: 4, likeness: Likeness::Equivalent }));
    }

    #[test]
    fn files_of_most_candidates_come_first() {
        let (a, b) = (parse(FIX), parse(&format!("{FIX}{}", FIX.replace("c.py", "a.py"))));
        let found = overlap(&[&a, &b, &Patch::default()]);
        let found: Vec<_> = found.iter().map(|file| (file.path.as_str(), file.candidates.as_slice())).collect();
        assert_eq!(found, [("c.py", [0, 1].as_slice()), ("a.py", [1].as_slice())]);
    }
}
