//! Rank and Compare: an order that can be changed and taken back, equal patches in one column.

use std::sync::Arc;

use trajscope::app::{Effect, Msg, State, ThemeName, View, update};

use super::fixture::{FIX, run, scored};
use super::shot::{press, render, text};

const SIZE: (u16, u16) = (120, 40);

fn rank() -> State {
    let mut state = scored(ThemeName::Dark, SIZE);
    press(&mut state, "j r");
    state
}

fn order(state: &State) -> Vec<&str> {
    let names = &state.data.issues[state.ranking.issue].attempts;
    state.ranking.ranking.rows.iter().map(|r| names[r.candidate.attempt].name.as_str()).collect()
}

#[test]
fn the_critics_order_comes_first_and_empty_patches_last() {
    let state = rank();
    assert_eq!(order(&state), ["run-3", "run-1", "run-2", "run-4"]);
    assert_eq!(state.ranking.ranking.chosen, Some(2));
}

#[test]
fn a_move_is_followed_undone_and_done_again() {
    let mut state = rank();
    press(&mut state, "J J");
    assert_eq!(order(&state), ["run-1", "run-2", "run-3", "run-4"]);
    assert_eq!(state.ranking.selected, 2, "the selection follows what is moved");
    assert!(state.ranking.unsaved);
    press(&mut state, "u");
    assert_eq!(order(&state), ["run-1", "run-3", "run-2", "run-4"]);
    press(&mut state, "u u");
    assert_eq!(order(&state), ["run-3", "run-1", "run-2", "run-4"]);
    assert!(state.message.clone().unwrap().text.contains("nothing to undo"));
    press(&mut state, "U ctrl-r");
    assert_eq!(order(&state), ["run-1", "run-2", "run-3", "run-4"]);
}

#[test]
fn a_veto_takes_a_reason_excludes_and_can_be_lifted() {
    let mut state = rank();
    press(&mut state, "x");
    for c in ["e", "d", "i", "t", "s", "space", "t", "e", "s", "t", "s"] {
        press(&mut state, c);
    }
    press(&mut state, "enter");
    assert_eq!(order(&state), ["run-1", "run-2", "run-4", "run-3"]);
    assert_eq!(state.ranking.ranking.chosen, Some(0));
    let shown = text(&render(&state, SIZE));
    assert!(shown.contains("vetoed: edits tests"), "{shown}");
    press(&mut state, "x");
    assert_eq!(order(&state)[0], "run-3", "pressed again it is allowed again");
    press(&mut state, "x esc");
    assert_eq!(order(&state)[0], "run-3", "escape forgets the veto");
}

#[test]
fn the_worth_of_both_orders_is_counted_over_labelled_issues_only() {
    let mut state = rank();
    let worth = &state.ranking.worth;
    assert_eq!((worth.manual.issues, worth.manual.unlabelled), (1, 1));
    assert_eq!((worth.critic.best_at_1, worth.manual.best_at_1), (Some(0.0), Some(0.0)));
    press(&mut state, "J");
    let worth = &state.ranking.worth;
    assert_eq!((worth.critic.best_at_1, worth.manual.best_at_1), (Some(0.0), Some(1.0)));
    let shown = text(&render(&state, SIZE));
    assert!(shown.contains("over 1 of 2 issues") && shown.contains("1 unlabelled"), "{shown}");
}

#[test]
fn moves_follow_their_attempts_when_more_files_are_joined() {
    let mut state = rank();
    press(&mut state, "x enter");
    let mut all = state.data.dataset.clone();
    all.trajectories.insert(0, Arc::new(run("run-0", "pantry__jar-17", Some(FIX), 8)));
    update(&mut state, Msg::Loaded(Box::new(all)));
    let last = state.ranking.ranking.rows.last().unwrap();
    let names = &state.data.issues[state.ranking.issue].attempts;
    assert_eq!(names[last.candidate.attempt].name, "run-3");
    assert_eq!(state.view, View::Rank);
}

#[test]
fn the_patch_of_the_selected_attempt_is_below_and_scrolls() {
    let mut state = rank();
    update(&mut state, Msg::Resize(80, 20));
    let shown = text(&render(&state, (80, 20)));
    assert!(shown.contains("patch of run-3") && shown.contains("class Lid:"), "{shown}");
    press(&mut state, "pagedown");
    assert_ne!(state.ranking.scroll, Default::default());
    press(&mut state, "pageup pageup");
    assert_eq!(state.ranking.scroll, Default::default());
    press(&mut state, "pagedown j");
    assert_eq!(state.ranking.scroll, Default::default(), "another patch starts at its top");
    assert!(text(&render(&state, (80, 20))).contains("class Jar:"));
}

fn compare() -> State {
    let mut state = scored(ThemeName::Dark, SIZE);
    press(&mut state, "j c");
    state
}

#[test]
fn equal_patches_are_one_column_whatever_their_line_ends() {
    let state = compare();
    let columns: Vec<Vec<usize>> = state.compare.columns.iter().map(|c| c.attempts.clone()).collect();
    assert_eq!(columns, [vec![2], vec![0, 1], vec![3]]);
    let shown = text(&render(&state, SIZE));
    assert!(shown.contains("×2: run-1, run-2"), "{shown}");
    assert!(shown.contains("the patch is empty"), "{shown}");
}

#[test]
fn all_diffs_are_sent_to_be_highlighted_at_once() {
    let mut state = scored(ThemeName::Dark, SIZE);
    let effects = press(&mut state, "j c");
    let [Effect::Highlight(requests)] = &effects[..] else { panic!("{effects:?}") };
    assert_eq!(requests.len(), 2, "the empty patch has nothing to highlight");
}

#[test]
fn columns_jump_to_the_same_file_together() {
    let mut state = compare();
    press(&mut state, "]");
    assert!(state.message.clone().unwrap().text.contains("file 1 of 3: pantry/jar.py (touched by 2 of 4)"));
    press(&mut state, "] ]");
    let column = &state.compare.columns[0];
    let diff = state.diffs.get(&column.diff).unwrap();
    assert_eq!(Some(column.scroll.line), diff.line_of_file("tests/test_jar.py"));
    press(&mut state, "[");
    let shown = state.message.clone().unwrap().text;
    assert!(shown.contains("pantry/lid.py"), "{shown}");
}

#[test]
fn columns_scroll_together_until_told_otherwise() {
    let mut state = compare();
    update(&mut state, Msg::Resize(120, 14));
    press(&mut state, "j j");
    assert!(state.compare.columns[0].scroll.line == 2 && state.compare.columns[1].scroll.line == 2);
    press(&mut state, "b k");
    assert!(state.compare.columns[0].scroll.line == 1 && state.compare.columns[1].scroll.line == 2);
    press(&mut state, "l n");
    let hunk = state.diffs.get(&state.compare.columns[1].diff).unwrap().hunks[0];
    assert!(hunk <= 2, "there is none below");
    press(&mut state, "N");
    assert_eq!(state.compare.columns[1].scroll.line, hunk);
    press(&mut state, "b g");
    assert!(state.compare.columns.iter().all(|c| c.scroll == Default::default()));
}

#[test]
fn the_next_issue_is_the_next_one_of_the_board() {
    let mut state = scored(ThemeName::Dark, SIZE);
    press(&mut state, "c");
    assert_eq!(state.compare.issue, 0);
    press(&mut state, "L");
    assert_eq!(state.compare.issue, 1);
    press(&mut state, "L");
    assert!(state.message.clone().unwrap().text.contains("last issue"));
    press(&mut state, "r H");
    assert_eq!((state.view, state.ranking.issue), (View::Rank, 0));
    press(&mut state, "1");
    assert_eq!(state.board.row().unwrap().issue(), 0, "the Board follows");
}
