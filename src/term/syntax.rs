//! The highlight worker: syntax classes for the diffs on the screen.

use tokio::sync::mpsc::Sender;

use crate::app::Msg;
use crate::app::highlight::{HighlightHunk, HighlightRequest, HighlightedRow, Side, SynClass};
use crate::work::LatestThread;
use crate::work::highlight::{self, Budget, Class, Highlighter, SourceLine};

/// Rows are sent on in parts of this many, so that the top of a long diff has its colours first.
const PART: usize = 400;

/// Starts the worker. It answers with [`Msg::Highlighted`].
pub(super) fn spawn(send: Sender<Msg>) -> std::io::Result<LatestThread<Vec<HighlightRequest>>> {
    // Unpacking the grammars takes a moment; nobody needs them before the first diff.
    let mut highlighter = None;
    LatestThread::spawn("highlight", move |requests: Vec<HighlightRequest>, newer: &dyn Fn() -> bool| {
        let highlighter = highlighter.get_or_insert_with(Highlighter::default);
        for request in &requests {
            let stop = |msg| newer() || send.blocking_send(msg).is_err();
            if answer(highlighter, request, &stop) {
                return;
            }
        }
    })
}

/// Classifies one diff and hands the rows to `send` in parts, until that wants no more; then the result is `true`.
fn answer(highlighter: &Highlighter, request: &HighlightRequest, send: &dyn Fn(Msg) -> bool) -> bool {
    let mut budget = Budget::default();
    let mut rows = Vec::new();
    let part = |rows: Vec<HighlightedRow>| Msg::Highlighted { id: request.id.clone(), rows };
    for hunk in &request.hunks {
        rows.extend(hunk_rows(highlighter, hunk, &mut budget));
        if rows.len() >= PART && send(part(std::mem::take(&mut rows))) {
            return true;
        }
    }
    if send(part(rows)) {
        return true;
    }
    budget.limit().is_some_and(|limit| send(Msg::Note(limit.to_owned())))
}

fn hunk_rows(highlighter: &Highlighter, hunk: &HighlightHunk, budget: &mut Budget) -> Vec<HighlightedRow> {
    let side = |side| match side {
        Side::Both => highlight::Side::Both,
        Side::Old => highlight::Side::Old,
        Side::New => highlight::Side::New,
    };
    let lines: Vec<_> = hunk.lines.iter().map(|line| SourceLine { side: side(line.side), text: &line.text }).collect();
    let classes = highlighter.hunk(&hunk.path, &lines, budget);
    let row = |(line, classes): (&crate::app::highlight::HighlightLine, highlight::Classes)| HighlightedRow {
        row: line.row,
        spans: classes.into_iter().map(|(range, class)| (range, syn_class(class))).collect(),
    };
    hunk.lines.iter().zip(classes).map(row).collect()
}

fn syn_class(class: Class) -> SynClass {
    match class {
        Class::Comment => SynClass::Comment,
        Class::String => SynClass::String,
        Class::Constant => SynClass::Constant,
        Class::Keyword => SynClass::Keyword,
        Class::Operator => SynClass::Operator,
        Class::Function => SynClass::Function,
        Class::Type => SynClass::Type,
        Class::Variable => SynClass::Variable,
        Class::Punctuation => SynClass::Punctuation,
        Class::Tag => SynClass::Tag,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::app::highlight::HighlightLine;

    fn request(lines: usize) -> HighlightRequest {
        let line = |row| HighlightLine { row, side: Side::New, text: "return 1".to_owned() };
        let hunk = |first: usize| HighlightHunk {
            path: "a.py".to_owned(),
            lines: (first..(first + 100).min(lines)).map(line).collect(),
        };
        HighlightRequest { id: "abc".to_owned(), hunks: (0..lines).step_by(100).map(hunk).collect() }
    }

    #[test]
    fn rows_come_back_in_parts_under_their_own_numbers() {
        let sent = RefCell::new(Vec::new());
        let stopped = answer(&Highlighter::default(), &request(1000), &|msg| {
            sent.borrow_mut().push(msg);
            false
        });
        assert!(!stopped);
        let mut seen = Vec::new();
        let parts = sent.into_inner();
        assert_eq!(parts.len(), 3);
        for part in parts {
            let Msg::Highlighted { id, rows } = part else { panic!("{part:?}") };
            assert_eq!(id, "abc");
            assert!(rows.iter().all(|row| row.spans[0] == (0..6, SynClass::Keyword)));
            seen.extend(rows.into_iter().map(|row| row.row));
        }
        assert_eq!(seen, (0..1000).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_not_wanted_any_more_stops() {
        let sent = RefCell::new(0);
        assert!(answer(&Highlighter::default(), &request(1000), &|_| {
            *sent.borrow_mut() += 1;
            true
        }));
        assert_eq!(sent.into_inner(), 1);
    }

    #[test]
    fn a_limit_is_told() {
        let sent = RefCell::new(Vec::new());
        answer(&Highlighter::default(), &request(10_001), &|msg| {
            sent.borrow_mut().push(msg);
            false
        });
        assert!(matches!(sent.into_inner().last(), Some(Msg::Note(note)) if note.contains("10000 lines")));
    }
}
