//! What a patch is made of.

use super::paths::{PathClass, classify};

/// What a patch does to a file. A binary file has one of these kinds too: see [`FileChange::binary`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ChangeKind {
    /// A new file.
    Add,
    /// A deleted file.
    Delete,
    /// Changed content.
    #[default]
    Modify,
    /// A new name, with or without changed content.
    Rename,
    /// A copy under another name.
    Copy,
    /// Only the mode changes.
    Mode,
}

impl ChangeKind {
    /// Lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Delete => "delete",
            Self::Modify => "modify",
            Self::Rename => "rename",
            Self::Copy => "copy",
            Self::Mode => "mode",
        }
    }
}

/// One half of a git binary patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinaryData {
    /// The whole content; its size in bytes.
    Literal(u64),
    /// A delta; the size of the delta in bytes (that of the content is not in the patch).
    Delta(u64),
}

/// A change without readable lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Binary {
    /// The data that makes the new content; `None` where the patch only says that the files differ.
    pub forward: Option<BinaryData>,
    /// The data that makes the old content again.
    pub reverse: Option<BinaryData>,
}

/// Side of a line in a hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LineKind {
    /// On both sides.
    Context,
    /// Only on the new side.
    Add,
    /// Only on the old side.
    Remove,
}

/// One line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Side.
    pub kind: LineKind,
    /// 1-based line number in the old file; `None` for an added line.
    pub old: Option<usize>,
    /// 1-based line number in the new file; `None` for a removed line.
    pub new: Option<usize>,
    /// Content without its marker and line end.
    pub text: String,
    /// The line ended in CR LF.
    pub crlf: bool,
    /// `\ No newline at end of file` follows.
    pub no_newline: bool,
}

/// A run of lines that stand together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hunk {
    /// First line in the old file, as the header says (0 for an empty side).
    pub old_start: usize,
    /// Lines of the old file, as the header says.
    pub old_len: usize,
    /// First line in the new file.
    pub new_start: usize,
    /// Lines of the new file, as the header says.
    pub new_len: usize,
    /// What stands after the second `@@`.
    pub section: String,
    /// The lines, as found (not as counted in the header).
    pub lines: Vec<Line>,
}

/// What happens to one file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileChange {
    /// Path before; `None` for a new file, and where no header names it.
    pub old_path: Option<String>,
    /// Path after; `None` for a deleted file, and where no header names it.
    pub new_path: Option<String>,
    /// What happens.
    pub kind: ChangeKind,
    /// Mode before, as written (`"100644"`).
    pub old_mode: Option<String>,
    /// Mode after.
    pub new_mode: Option<String>,
    /// Similarity index of a rename or copy, in percent.
    pub similarity: Option<u8>,
    /// Set for binary content.
    pub binary: Option<Binary>,
    /// The changed places.
    pub hunks: Vec<Hunk>,
}

impl FileChange {
    /// The path to call the file by: the new one, else the old one, else `(unnamed file)`.
    pub fn path(&self) -> &str {
        self.new_path.as_deref().or(self.old_path.as_deref()).unwrap_or("(unnamed file)")
    }

    /// One line saying what happens: `run.sh mode 644 -> 755`, `old.py -> new.py (100%)`, `a.py`.
    pub fn title(&self) -> String {
        let mut title = match (self.kind, &self.old_path, &self.new_path) {
            (ChangeKind::Rename | ChangeKind::Copy, Some(old), Some(new)) => {
                let similarity = self.similarity.map_or_else(String::new, |percent| format!(" ({percent}%)"));
                format!("{old} -> {new}{similarity}")
            }
            _ => self.path().to_owned(),
        };
        if let (Some(old), Some(new)) = (&self.old_mode, &self.new_mode)
            && old != new
        {
            title = format!("{title} mode {} -> {}", permissions(old), permissions(new));
        }
        title
    }

    /// Lines added and removed.
    pub fn stats(&self) -> (usize, usize) {
        let lines = self.hunks.iter().flat_map(|hunk| &hunk.lines);
        lines.fold((0, 0), |(added, removed), line| match line.kind {
            LineKind::Add => (added + 1, removed),
            LineKind::Remove => (added, removed + 1),
            LineKind::Context => (added, removed),
        })
    }

    /// What the file is for, judged by its path.
    pub fn class(&self) -> PathClass {
        let is_new = self.kind == ChangeKind::Add;
        let classes = [&self.new_path, &self.old_path].map(|path| path.as_ref().map(|path| classify(path, is_new)));
        let [new, old] = classes;
        // A test renamed to something else is still a test that was touched.
        if old == Some(PathClass::Test) { PathClass::Test } else { new.or(old).unwrap_or(PathClass::Source) }
    }
}

/// The part of a mode people know: `100644` is `644`.
fn permissions(mode: &str) -> &str {
    mode.strip_prefix("100").unwrap_or(mode)
}

/// Something odd, at a line of the patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// 1-based line.
    pub line: usize,
    /// One sentence.
    pub message: String,
}

/// What kind of candidate a patch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PatchState {
    /// It changes something.
    Diff,
    /// Nothing but blanks.
    Empty,
    /// Text in which no diff was found.
    NotADiff,
}

/// A patch as read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patch {
    /// The files, in the patch's order.
    pub files: Vec<FileChange>,
    /// What stands before the first header: a mail's head, or everything if no diff was found.
    pub preamble: String,
    /// What was odd.
    pub notes: Vec<Note>,
    /// The last line has no line end (of the patch itself, not of a patched file).
    pub no_final_newline: bool,
}

impl Patch {
    /// Is there a diff, nothing, or something else?
    pub fn state(&self) -> PatchState {
        match (self.files.is_empty(), self.preamble.trim().is_empty()) {
            (false, _) => PatchState::Diff,
            (true, true) => PatchState::Empty,
            (true, false) => PatchState::NotADiff,
        }
    }

    /// Is there nothing but blanks?
    pub fn is_empty(&self) -> bool {
        self.state() == PatchState::Empty
    }

    /// Lines added and removed.
    pub fn stats(&self) -> (usize, usize) {
        self.files.iter().map(FileChange::stats).fold((0, 0), |(a, r), (added, removed)| (a + added, r + removed))
    }

    /// Does it change, add, delete or rename a test?
    pub fn touches_tests(&self) -> bool {
        self.touches(PathClass::Test)
    }

    /// Does it touch a file of this class?
    pub fn touches(&self, class: PathClass) -> bool {
        self.files.iter().any(|file| file.class() == class)
    }
}
