//! Syntax classes of source lines: what a piece of a diff is, not which colour it gets.
//!
//! The only module that knows syntect. Work is bounded: see [`Budget`]. What lies beyond the bounds stays plain and the
//! budget says why.

use std::ops::Range;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use syntect::parsing::{ParseState, Scope, ScopeStack, ScopeStackOp, SyntaxReference, SyntaxSet};

/// What a piece of source text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// A comment.
    Comment,
    /// A string or character literal.
    String,
    /// A number, another constant, an escape inside a string.
    Constant,
    /// A keyword or storage modifier.
    Keyword,
    /// An operator.
    Operator,
    /// The name of a function where it is defined or called.
    Function,
    /// A type or class name.
    Type,
    /// A variable or parameter name.
    Variable,
    /// A bracket, comma or other mark.
    Punctuation,
    /// A tag or attribute of a markup language, a heading.
    Tag,
}

/// Side of a diff that a line belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    /// Both files.
    Both,
    /// The old file only.
    Old,
    /// The new file only.
    New,
}

/// One line to classify, without line end.
#[derive(Debug, Clone, Copy)]
pub struct SourceLine<'a> {
    /// Its side: the two files are parsed apart, so that a removed quote does not colour what was added.
    pub side: Side,
    /// Its text.
    pub text: &'a str,
}

/// Byte ranges of one line, ascending, not overlapping; gaps are plain.
pub type Classes = Vec<(Range<usize>, Class)>;

/// Most bytes of one request.
const MAX_BYTES: usize = 512 * 1024;
/// Most lines of one request.
const MAX_LINES: usize = 10_000;
/// Longest line, in bytes: beyond it is data, not source.
const MAX_LINE: usize = 16 * 1024;
/// Most time for one request: grammars backtrack on hostile text.
const MAX_TIME: Duration = Duration::from_secs(5);

/// What one request may cost, and what it did not get for it.
#[derive(Debug, Clone)]
pub struct Budget {
    bytes: usize,
    lines: usize,
    until: Instant,
    limit: Option<String>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { bytes: MAX_BYTES, lines: MAX_LINES, until: Instant::now() + MAX_TIME, limit: None }
    }
}

impl Budget {
    /// The limit that was reached, as a sentence for a person; `None` if all was classified.
    pub fn limit(&self) -> Option<&str> {
        self.limit.as_deref()
    }

    fn spend(&mut self, line: &str) -> bool {
        let reached = if line.len() > self.bytes {
            Some(format!("syntax colours end here: limit of {} KiB", MAX_BYTES / 1024))
        } else if self.lines == 0 {
            Some(format!("syntax colours end here: limit of {MAX_LINES} lines"))
        } else if Instant::now() > self.until {
            Some(format!("syntax colours end here: limit of {} s", MAX_TIME.as_secs()))
        } else {
            None
        };
        if reached.is_some() {
            (self.bytes, self.lines) = (0, 0);
            self.limit = self.limit.take().or(reached);
            return false;
        }
        self.bytes -= line.len();
        self.lines -= 1;
        true
    }
}

/// The grammars.
pub struct Highlighter {
    syntaxes: SyntaxSet,
}

impl Default for Highlighter {
    fn default() -> Self {
        Self { syntaxes: two_face::syntax::extra_newlines() }
    }
}

impl Highlighter {
    /// Classes of the lines of one hunk of the file `path`: one entry a line, in order. The hunk is parsed as one
    /// block, so a string or comment that runs over lines is seen as one if it starts inside.
    pub fn hunk(&self, path: &str, lines: &[SourceLine<'_>], budget: &mut Budget) -> Vec<Classes> {
        let first = lines.first().map_or("", |line| line.text);
        let Some(syntax) = self.syntax(path, first) else {
            return vec![Classes::new(); lines.len()];
        };
        let mut sides = Sides { old: Parser::new(syntax), new: Parser::new(syntax) };
        lines.iter().map(|line| sides.line(line, &self.syntaxes, budget)).collect()
    }

    fn syntax(&self, path: &str, first_line: &str) -> Option<&SyntaxReference> {
        let path = Path::new(path);
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        // Grammars list whole names (`Makefile`) among the extensions.
        let by_name = [name, extension].into_iter().find_map(|token| self.syntaxes.find_syntax_by_extension(token));
        by_name.or_else(|| self.syntaxes.find_syntax_by_first_line(first_line)).filter(|s| s.name != "Plain Text")
    }
}

#[derive(Clone, PartialEq)]
struct Parser {
    state: ParseState,
    scopes: ScopeStack,
}

struct Sides {
    old: Parser,
    new: Parser,
}

impl Sides {
    fn line(&mut self, line: &SourceLine<'_>, syntaxes: &SyntaxSet, budget: &mut Budget) -> Classes {
        if line.text.len() > MAX_LINE || !budget.spend(line.text) {
            return Classes::new();
        }
        match line.side {
            Side::Old => self.old.line(line.text, syntaxes),
            Side::New => self.new.line(line.text, syntaxes),
            Side::Both if self.old == self.new => {
                let classes = self.new.line(line.text, syntaxes);
                self.old.clone_from(&self.new);
                classes
            }
            Side::Both => {
                self.old.line(line.text, syntaxes);
                self.new.line(line.text, syntaxes)
            }
        }
    }
}

impl Parser {
    fn new(syntax: &SyntaxReference) -> Self {
        Self { state: ParseState::new(syntax), scopes: ScopeStack::new() }
    }

    fn line(&mut self, text: &str, syntaxes: &SyntaxSet) -> Classes {
        let ops = match self.state.parse_line(&format!("{text}\n"), syntaxes) {
            Ok(ops) => ops,
            Err(error) => {
                tracing::debug!("a line stays without syntax colours: {error}");
                return Classes::new();
            }
        };
        let mut classes = Classes::new();
        let mut from = 0;
        for (at, op) in ops {
            self.add(&mut classes, from..at.min(text.len()));
            from = at.min(text.len());
            self.apply(&op);
        }
        self.add(&mut classes, from..text.len());
        classes
    }

    fn apply(&mut self, op: &ScopeStackOp) {
        if let Err(error) = self.scopes.apply(op) {
            tracing::debug!("a grammar left its scopes in disorder: {error}");
        }
    }

    fn add(&self, classes: &mut Classes, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let Some(class) = self.scopes.as_slice().iter().rev().find_map(|scope| class_of(*scope)) else {
            return;
        };
        match classes.last_mut() {
            Some((last, same)) if last.end == range.start && *same == class => last.end = range.end,
            _ => classes.push((range, class)),
        }
    }
}

/// Scope names by the conventions of TextMate grammars, the more special first; `None` defers to the scope around.
const SELECTORS: [(&str, Option<Class>); 34] = [
    ("comment", Some(Class::Comment)),
    ("punctuation.definition.comment", Some(Class::Comment)),
    ("punctuation.definition.string", Some(Class::String)),
    ("punctuation.definition.tag", Some(Class::Tag)),
    ("punctuation.definition.heading", Some(Class::Tag)),
    ("punctuation.definition.variable", Some(Class::Variable)),
    ("punctuation.definition", None),
    ("punctuation", Some(Class::Punctuation)),
    ("constant.character.escape", Some(Class::Constant)),
    ("constant", Some(Class::Constant)),
    ("string.unquoted", None),
    ("string", Some(Class::String)),
    ("keyword.operator.word", Some(Class::Keyword)),
    ("keyword.operator", Some(Class::Operator)),
    ("keyword", Some(Class::Keyword)),
    ("storage", Some(Class::Keyword)),
    ("entity.name.function", Some(Class::Function)),
    ("entity.name.method", Some(Class::Function)),
    ("support.function", Some(Class::Function)),
    ("variable.function", Some(Class::Function)),
    ("variable.annotation", Some(Class::Function)),
    ("entity.name.tag", Some(Class::Tag)),
    ("entity.name.section", Some(Class::Tag)),
    ("entity.other.attribute-name", Some(Class::Tag)),
    ("entity.other.inherited-class", Some(Class::Type)),
    ("entity.name", Some(Class::Type)),
    ("support.type", Some(Class::Type)),
    ("support.class", Some(Class::Type)),
    ("support.constant", Some(Class::Constant)),
    ("variable.language", Some(Class::Constant)),
    ("variable.parameter", Some(Class::Variable)),
    ("variable.other.member", Some(Class::Variable)),
    ("markup.heading", Some(Class::Tag)),
    ("markup.raw", Some(Class::String)),
];

static COMPILED: LazyLock<Vec<(Scope, Option<Class>)>> = LazyLock::new(|| {
    let compile = |(name, class): &(&str, Option<Class>)| Some((Scope::new(name).ok()?, *class));
    SELECTORS.iter().filter_map(compile).collect()
});

fn class_of(scope: Scope) -> Option<Class> {
    COMPILED.iter().find(|(selector, _)| selector.is_prefix_of(scope)).and_then(|(_, class)| *class)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(text: &str) -> SourceLine<'_> {
        SourceLine { side: Side::Both, text }
    }

    /// The classified words of one hunk, line by line.
    fn words<'a>(path: &str, lines: &[SourceLine<'a>]) -> Vec<Vec<(&'a str, Class)>> {
        let found = Highlighter::default().hunk(path, lines, &mut Budget::default());
        assert_eq!(found.len(), lines.len());
        let of_line = |(line, classes): (&SourceLine<'a>, &Classes)| {
            classes.iter().map(|(range, class)| (&line.text[range.clone()], *class)).collect()
        };
        lines.iter().zip(&found).map(of_line).collect()
    }

    #[test]
    fn every_selector_is_a_scope() {
        assert_eq!(COMPILED.len(), SELECTORS.len());
    }

    #[test]
    fn python_is_told_apart() {
        let found = words("pkg/calc.py", &[both("def half(n):  # why"), both("    return 'x' + 2")]);
        assert!(found[0].contains(&("def", Class::Keyword)), "{found:?}");
        assert!(found[0].contains(&("half", Class::Function)), "{found:?}");
        assert!(found[0].contains(&("# why", Class::Comment)), "{found:?}");
        assert!(found[1].contains(&("return", Class::Keyword)), "{found:?}");
        assert!(found[1].contains(&("'x'", Class::String)), "{found:?}");
        assert!(found[1].contains(&("2", Class::Constant)), "{found:?}");
    }

    #[test]
    fn many_languages_by_name() {
        for (path, line, word, class) in [
            ("a.rs", "fn main() {}", "fn", Class::Keyword),
            ("a.go", "func main() {}", "func", Class::Keyword),
            ("a.ts", "const x = 1;", "const", Class::Keyword),
            ("a.js", "return 1", "return", Class::Keyword),
            ("A.java", "return 1;", "return", Class::Keyword),
            ("a.c", "return 1;", "return", Class::Keyword),
            ("a.rb", "return 1", "return", Class::Keyword),
            ("Dockerfile", "FROM x", "FROM", Class::Keyword),
            ("a.toml", "x = 1", "1", Class::Constant),
            ("a.html", "<b>x</b>", "<b>", Class::Tag),
        ] {
            let found = words(path, &[both(line)]);
            assert!(found[0].contains(&(word, class)), "{path}: {found:?}");
        }
        assert!(words("x.unknown-thing", &[both("return 1")])[0].is_empty());
        assert!(words("", &[both("")])[0].is_empty());
        assert!(!words("script", &[both("#!/usr/bin/env python3"), both("return 1")])[1].is_empty());
    }

    #[test]
    fn the_two_sides_are_parsed_apart() {
        let lines = [
            SourceLine { side: Side::Old, text: "s = '''open" },
            SourceLine { side: Side::New, text: "s = 1" },
            both("return 1"),
        ];
        let found = words("a.py", &lines);
        assert!(found[2].contains(&("return", Class::Keyword)), "the new side never opened the string: {found:?}");
        let lines = [both("s = '''open"), both("return 1"), both("'''"), both("return 1")];
        let found = words("a.py", &lines);
        assert_eq!(found[1], [("return 1", Class::String)]);
        assert!(found[3].contains(&("return", Class::Keyword)));
    }

    #[test]
    fn ranges_are_ordered_and_on_characters() {
        for text in ["x = '日本' + \"é\" # ü", "\u{301}'", "print(f'{x:日}')", "'''"] {
            let found = Highlighter::default().hunk("a.py", &[both(text)], &mut Budget::default());
            let mut at = 0;
            for (range, _) in &found[0] {
                assert!(range.start >= at && range.end > range.start && text.get(range.clone()).is_some());
                at = range.end;
            }
        }
    }

    #[test]
    fn limits_are_kept_and_named() {
        let highlighter = Highlighter::default();
        let long = format!("x = '{}'", "a".repeat(MAX_LINE));
        let mut budget = Budget::default();
        let found = highlighter.hunk("a.py", &[both(&long), both("return 1")], &mut budget);
        assert!(found[0].is_empty() && !found[1].is_empty() && budget.limit().is_none());

        let mut budget = Budget { lines: 2, ..Budget::default() };
        let found = highlighter.hunk("a.py", &[both("return 1"); 4], &mut budget);
        assert_eq!(found.iter().map(Vec::is_empty).collect::<Vec<_>>(), [false, false, true, true]);
        assert!(budget.limit().unwrap().contains("10000 lines"));

        let mut budget = Budget { bytes: 10, ..Budget::default() };
        highlighter.hunk("a.py", &[both("return 1"); 4], &mut budget);
        assert!(budget.limit().unwrap().contains("512 KiB"));

        let mut budget = Budget { until: Instant::now().checked_sub(MAX_TIME).unwrap(), ..Budget::default() };
        let found = highlighter.hunk("a.py", &[both("return 1")], &mut budget);
        assert!(found[0].is_empty() && budget.limit().unwrap().contains("5 s"));
    }
}
