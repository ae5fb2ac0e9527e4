//! Reads a unified or git diff, however damaged.

use super::header::{NEW, OLD, file_path, git_paths, hunk_header};
use super::model::{Binary, BinaryData, ChangeKind, FileChange, Hunk, Line, LineKind, Note, Patch};

/// Reads `patch`. Never fails: what is not a diff becomes [`Patch::preamble`] (before the first header) or a note.
pub fn parse(patch: &str) -> Patch {
    let mut lines: Vec<&str> = patch.split('\n').collect();
    let ends_in_newline = lines.last() == Some(&"");
    if ends_in_newline {
        lines.pop();
    }
    let mut parser = Parser { lines, ..Parser::default() };
    while let Some(line) = parser.line(0) {
        parser.header_line(line);
    }
    parser.close_file();
    let mut read = parser.patch;
    read.no_final_newline = !ends_in_newline && !patch.is_empty();
    read
}

#[derive(Default)]
struct Parser<'a> {
    lines: Vec<&'a str>,
    at: usize,
    patch: Patch,
    file: Option<Draft>,
    /// The last line (1-based) that belonged to nothing: a run of them gets one note.
    junk_line: usize,
}

/// A file whose header is still being read.
#[derive(Default)]
struct Draft {
    change: FileChange,
    /// `---` and `+++` were read.
    has_paths: bool,
    /// Something said that the file is new, deleted, renamed or copied.
    declared: Option<ChangeKind>,
}

impl<'a> Parser<'a> {
    /// The line `ahead` of the current one.
    fn line(&self, ahead: usize) -> Option<&'a str> {
        self.lines.get(self.at + ahead).copied()
    }

    fn note(&mut self, message: impl Into<String>) {
        self.patch.notes.push(Note { line: self.at + 1, message: message.into() });
    }

    fn header_line(&mut self, line: &'a str) {
        if let Some(rest) = line.strip_prefix("diff --git ") {
            self.open_git_file(rest);
        } else if self.is_path_pair(0) {
            self.path_pair();
        } else if let Some(header) = hunk_header(line.trim_end_matches('\r')) {
            self.hunk(header);
        } else if line.starts_with("GIT binary patch") {
            self.binary_patch();
        } else if self.file.is_some() {
            self.extended_header(line.trim_end_matches('\r'));
        } else {
            self.patch.preamble.push_str(line);
            self.patch.preamble.push('\n');
            self.at += 1;
        }
    }

    /// Do `--- ` and `+++ ` stand here, one after the other?
    fn is_path_pair(&self, ahead: usize) -> bool {
        self.line(ahead).is_some_and(|line| line.starts_with("--- "))
            && self.line(ahead + 1).is_some_and(|line| line.starts_with("+++ "))
    }

    fn open_git_file(&mut self, rest: &str) {
        self.close_file();
        let mut draft = Draft::default();
        if let Some((old, new)) = git_paths(rest) {
            if old != new {
                draft.declared = Some(ChangeKind::Rename);
            }
            draft.change.old_path = Some(old);
            draft.change.new_path = Some(new);
        }
        self.file = Some(draft);
        self.at += 1;
    }

    fn path_pair(&mut self) {
        let old = self.line(0).and_then(|line| line.strip_prefix("--- ")).unwrap_or_default();
        let new = self.line(1).and_then(|line| line.strip_prefix("+++ ")).unwrap_or_default();
        let full = self.file.as_ref().is_none_or(|draft| draft.has_paths || !draft.change.hunks.is_empty());
        if full {
            self.close_file();
        }
        let draft = self.file.get_or_insert_default();
        draft.has_paths = true;
        draft.change.old_path = file_path(old, OLD);
        draft.change.new_path = file_path(new, NEW);
        if !full && draft.declared == Some(ChangeKind::Rename) && draft.change.old_path == draft.change.new_path {
            draft.declared = None;
        }
        self.at += 2;
    }

    fn extended_header(&mut self, line: &str) {
        let mut known = true;
        if let Some(draft) = &mut self.file {
            let value = |key: &str| line.strip_prefix(key).map(str::trim);
            let path = |key: &str| line.strip_prefix(key).and_then(|raw| file_path(raw, ""));
            let change = &mut draft.change;
            if let Some(mode) = value("old mode ") {
                change.old_mode = Some(mode.to_owned());
            } else if let Some(mode) = value("new mode ") {
                change.new_mode = Some(mode.to_owned());
            } else if let Some(mode) = value("new file mode ") {
                change.new_mode = Some(mode.to_owned());
                draft.declared = Some(ChangeKind::Add);
            } else if let Some(mode) = value("deleted file mode ") {
                change.old_mode = Some(mode.to_owned());
                draft.declared = Some(ChangeKind::Delete);
            } else if let Some(percent) = value("similarity index ") {
                change.similarity = percent.trim_end_matches('%').parse().ok();
            } else if let Some(from) = path("rename from ") {
                (change.old_path, draft.declared) = (Some(from), Some(ChangeKind::Rename));
            } else if let Some(to) = path("rename to ") {
                (change.new_path, draft.declared) = (Some(to), Some(ChangeKind::Rename));
            } else if let Some(from) = path("copy from ") {
                (change.old_path, draft.declared) = (Some(from), Some(ChangeKind::Copy));
            } else if let Some(to) = path("copy to ") {
                (change.new_path, draft.declared) = (Some(to), Some(ChangeKind::Copy));
            } else if line.starts_with("Binary files ") && line.ends_with(" differ") {
                change.binary = Some(Binary::default());
            } else {
                known = line.starts_with("index ") || line.starts_with("dissimilarity index ");
            }
        }
        if !known {
            self.unknown_line(line);
        }
        self.at += 1;
    }

    /// A line that belongs to nothing. Blanks, a mail's signature and what follows it are usual.
    fn unknown_line(&mut self, line: &str) {
        if is_signature(line) {
            let starts_file = |ahead: &usize| {
                self.is_path_pair(*ahead) || self.line(*ahead).is_some_and(|line| line.starts_with("diff --git "))
            };
            let left = self.lines.len() - self.at;
            let next = (1..left).find(starts_file).unwrap_or(left);
            // The caller moves on by one.
            self.at += next - 1;
        } else if line.starts_with("@@") {
            self.note(format!("hunk header not understood, its lines are not shown: {}", shortened(line)));
        } else if !line.trim().is_empty() {
            if self.junk_line != self.at {
                self.note(format!("text that is no part of a diff: {}", shortened(line)));
            }
            self.junk_line = self.at + 1;
        }
    }

    fn binary_patch(&mut self) {
        self.at += 1;
        let mut halves = Vec::new();
        while let Some(line) = self.line(0) {
            let line = line.trim_end_matches('\r');
            let half = match line.split_once(' ') {
                Some(("literal", size)) => size.parse().ok().map(BinaryData::Literal),
                Some(("delta", size)) => size.parse().ok().map(BinaryData::Delta),
                _ => None,
            };
            if half.is_none() || halves.len() == 2 {
                break;
            }
            halves.extend(half);
            self.at += 1;
            // The data ends at a blank line.
            while let Some(data) = self.line(0) {
                if data.starts_with("diff --git ") {
                    break;
                }
                self.at += 1;
                if data.trim().is_empty() {
                    break;
                }
            }
        }
        let binary = Binary { forward: halves.first().copied(), reverse: halves.get(1).copied() };
        self.file.get_or_insert_default().change.binary = Some(binary);
    }

    fn hunk(&mut self, (old_start, old_len, new_start, new_len, section): (usize, usize, usize, usize, &str)) {
        if self.file.is_none() {
            self.note("hunk without a file header: the patch cannot be applied as it is");
        }
        let hunk = Hunk { old_start, old_len, new_start, new_len, section: section.to_owned(), lines: Vec::new() };
        let header_at = self.at;
        self.at += 1;
        let mut reader = HunkReader { hunk, old: 0, new: 0 };
        while let Some(line) = self.line(0) {
            if !self.belongs(&reader, line) || !reader.push(line) {
                break;
            }
            self.at += 1;
        }
        if (reader.old, reader.new) != (old_len, new_len) {
            let message = format!(
                "hunk has -{} +{} lines, its header says -{old_len} +{new_len}: git would refuse it",
                reader.old, reader.new
            );
            self.patch.notes.push(Note { line: header_at + 1, message });
        }
        self.file.get_or_insert_default().change.hunks.push(reader.hunk);
    }

    /// Is the current line part of the hunk being read?
    fn belongs(&self, reader: &HunkReader, line: &str) -> bool {
        let old_left = reader.hunk.old_len.saturating_sub(reader.old);
        let new_left = reader.hunk.new_len.saturating_sub(reader.new);
        let counted = old_left > 0 || new_left > 0;
        // Removed and added lines may look like the header of a next file. While the count holds they are lines;
        // with a wrong count only a header is followed by a hunk.
        if self.is_path_pair(0) && (old_left, new_left) != (1, 1) {
            let hunk_follows = self.line(2).is_some_and(|next| hunk_header(next.trim_end_matches('\r')).is_some());
            if hunk_follows || !counted {
                return false;
            }
        }
        if counted || line.starts_with('\\') {
            return true;
        }
        // Past the count: lines of a hunk whose header counts too few, but no signature and no blank line.
        let first = line.bytes().next();
        matches!(first, Some(b'+' | b'-' | b' ')) && !is_signature(line) && !line.trim().is_empty()
    }

    fn close_file(&mut self) {
        let Some(mut draft) = self.file.take() else { return };
        let change = &mut draft.change;
        let modes = change.old_mode.is_some() && change.new_mode.is_some();
        change.kind = match (draft.declared, draft.has_paths) {
            (Some(kind), _) => kind,
            (None, true) if change.old_path.is_none() && change.new_path.is_some() => ChangeKind::Add,
            (None, true) if change.new_path.is_none() && change.old_path.is_some() => ChangeKind::Delete,
            _ if modes && change.hunks.is_empty() && change.binary.is_none() => ChangeKind::Mode,
            _ => ChangeKind::Modify,
        };
        match change.kind {
            ChangeKind::Add => change.old_path = None,
            ChangeKind::Delete => change.new_path = None,
            _ => {}
        }
        self.patch.files.push(draft.change);
    }
}

struct HunkReader {
    hunk: Hunk,
    /// Lines of each side so far.
    old: usize,
    new: usize,
}

impl HunkReader {
    /// Takes a line; `false` if it cannot be one of a hunk.
    fn push(&mut self, line: &str) -> bool {
        let (line, crlf) = line.strip_suffix('\r').map_or((line, false), |line| (line, true));
        let mut chars = line.chars();
        let (kind, text) = match chars.next() {
            Some('+') => (LineKind::Add, chars.as_str()),
            Some('-') => (LineKind::Remove, chars.as_str()),
            Some(' ') => (LineKind::Context, chars.as_str()),
            // Editors and chat models strip the blank of an empty context line; git takes it too.
            None => (LineKind::Context, ""),
            Some('\\') => {
                if let Some(last) = self.hunk.lines.last_mut() {
                    last.no_newline = true;
                }
                return true;
            }
            Some(_) => return false,
        };
        let number = |start: usize, count: usize| start.saturating_add(count);
        let old = (kind != LineKind::Add).then(|| number(self.hunk.old_start, self.old));
        let new = (kind != LineKind::Remove).then(|| number(self.hunk.new_start, self.new));
        self.old += usize::from(old.is_some());
        self.new += usize::from(new.is_some());
        self.hunk.lines.push(Line { kind, old, new, text: text.to_owned(), crlf, no_newline: false });
        true
    }
}

/// The head of a line, for a note.
fn shortened(line: &str) -> String {
    crate::text::truncate(&crate::text::one_line(line), 60).into_owned()
}

/// Where the signature of a mail begins, behind its patch.
fn is_signature(line: &str) -> bool {
    matches!(line.trim_end_matches('\r'), "-- " | "--")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::patch::PatchState;

    #[test]
    fn a_mails_signature_is_no_line_of_the_patch_whatever_its_line_ends() {
        let text = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n-- \n2.40.1\n";
        assert_eq!(parse(text).stats(), (1, 1));
        assert_eq!(parse(&text.replace('\n', "\r\n")).stats(), (1, 1), "found by fuzzing");
    }

    #[test]
    fn text_that_is_no_diff() {
        let patch = parse("not a diff at all");
        assert_eq!(patch.state(), PatchState::NotADiff);
        assert_eq!(patch.preamble, "not a diff at all\n");
        assert!(patch.no_final_newline);
        for blank in ["", "\n", " \r\n\n"] {
            assert!(parse(blank).is_empty(), "{blank:?}");
        }
    }

    #[test]
    fn plain_unified_diffs_without_git_lines() {
        let patch = parse(
            "--- a.c\t2020-01-01\n+++ a.c\t2020-01-02\n@@ -1 +1 @@\n-x\n+y\n--- b.c\n+++ b.c\n@@ -1 +1 @@\n-1\n+2\n",
        );
        let paths: Vec<_> = patch.files.iter().map(FileChange::path).collect();
        assert_eq!(paths, ["a.c", "b.c"]);
        assert_eq!(patch.stats(), (2, 2));
        assert!(patch.notes.is_empty(), "{:?}", patch.notes);
    }

    #[test]
    fn wrong_counts_are_read_and_noted() {
        let short = parse("--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n a\n-b\n+c\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-1\n+2\n");
        assert_eq!(short.files.len(), 2);
        assert_eq!(short.notes.len(), 1);
        assert_eq!(short.notes[0].line, 3);
        assert!(short.notes[0].message.contains("header says -9 +9"), "{:?}", short.notes);
        let long = parse("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-b\n+c\n+d\n e\n");
        assert_eq!(long.stats(), (2, 1));
        assert_eq!(long.notes.len(), 1);
    }

    #[test]
    fn a_patch_cut_off_in_the_middle() {
        let patch = parse("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n a\n-b");
        assert_eq!(patch.stats(), (0, 1));
        assert_eq!(patch.notes.len(), 1);
        let header_only = parse("diff --git a/x b/x\n--- a/x");
        assert_eq!(header_only.files[0].path(), "x");
    }

    #[test]
    fn line_numbers_of_both_sides() {
        let patch = parse("--- a/x\n+++ b/x\n@@ -10,3 +20,3 @@ fn f()\n a\n-b\n+c\n d\n");
        let numbers: Vec<_> = patch.files[0].hunks[0].lines.iter().map(|line| (line.old, line.new)).collect();
        assert_eq!(numbers, [(Some(10), Some(20)), (Some(11), None), (None, Some(21)), (Some(12), Some(22))]);
        assert_eq!(patch.files[0].hunks[0].section, "fn f()");
    }

    #[test]
    fn copies_and_quoted_renames() {
        let patch = parse(
            "diff --git a/a.py b/b.py\nsimilarity index 95%\ncopy from a.py\ncopy to b.py\n\
             diff --git \"a/\\303\\251.py\" b/e.py\nsimilarity index 100%\nrename from \"\\303\\251.py\"\nrename to e.py\n",
        );
        assert_eq!(patch.files[0].kind, ChangeKind::Copy);
        assert_eq!(patch.files[1].title(), "é.py -> e.py (100%)");
    }

    #[test]
    fn junk_between_files_is_noted_once() {
        let patch = parse("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\nOutput:\nDone.\nok\n");
        assert_eq!(patch.stats(), (1, 1));
        assert_eq!(patch.notes.len(), 1);
        assert_eq!(patch.notes[0].line, 7);
    }

    #[test]
    fn unreadable_hunk_headers_are_noted() {
        let patch = parse("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ somewhere @@\n-a\n+b\n");
        assert!(patch.notes[0].message.contains("not understood"), "{:?}", patch.notes);
    }

    #[test]
    fn a_header_cut_before_its_path_names_no_file() {
        // Found by proptest below.
        let patch = parse("diff --git -- \n");
        assert!(patch.files.iter().all(|f| !f.path().is_empty()), "{:?}", patch.files);
    }

    proptest! {
        #[test]
        fn never_panics(text in "(?s).{0,200}") {
            parse(&text);
        }

        #[test]
        fn never_panics_on_parts_of_diffs(parts in prop::collection::vec(prop::sample::select(vec![
            "diff --git a/x b/x\n", "diff --git ", "--- a/x\n", "+++ b/x\n", "--- ", "+++ /dev/null\n", "@@ -1 +1 @@\n",
            "@@ -1,2 +18446744073709551615,3 @@ f\n", "@@ -18446744073709551615 +1 @@\n", "-a\n", "+b\n", " c\n", "\n", "\r\n",
            "\\ No newline at end of file\n", "GIT binary patch\n", "literal 4\n", "delta 1\n", "zcm\n", "-- \n", "--\n",
            "rename from é\n", "Binary files a/x and b/x differ\n", "old mode 100644\n", "new mode 100755\n", "\"a/\\", "@@",
        ]), 0..24)) {
            let text = parts.concat();
            let patch = parse(&text);
            let (added, removed) = patch.stats();
            let lines = text.lines().count();
            prop_assert!(added + removed <= lines);
            for file in &patch.files {
                prop_assert!(!file.path().is_empty() || file.title().is_empty());
                file.class();
            }
            prop_assert!(patch.notes.iter().all(|note| note.line <= lines.max(1)));
        }
    }
}
