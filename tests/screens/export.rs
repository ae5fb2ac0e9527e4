//! Export and leaving: nothing is overwritten, nothing is lost without a question.

use std::path::Path;

use trajscope::app::prompt::{Prompt, Question};
use trajscope::app::{Effect, ExportEntry, Msg, State, ThemeName, update};

use super::fixture::{FIX, loaded, scored};
use super::shot::{press, render, text};

const SIZE: (u16, u16) = (100, 30);

fn ask() -> (State, Vec<Effect>) {
    let mut state = scored(ThemeName::Dark, SIZE);
    press(&mut state, "j r J e");
    assert!(text(&render(&state, SIZE)).contains("export 1 predictions to: predictions.jsonl"));
    press(&mut state, "ctrl-u o . j s o n l");
    let effects = press(&mut state, "enter");
    (state, effects)
}

fn export(effects: &[Effect]) -> (&Path, bool, &[ExportEntry]) {
    let [Effect::Export { path, overwrite, entries }] = effects else { panic!("{effects:?}") };
    (path, *overwrite, entries)
}

#[test]
fn the_chosen_patch_goes_out_byte_for_byte() {
    let mut state = scored(ThemeName::Dark, SIZE);
    // run-2 has the same patch as run-1, with CR LF line ends.
    press(&mut state, "j r x enter g x enter e");
    let effects = press(&mut state, "enter");
    let (path, overwrite, entries) = export(&effects);
    assert_eq!((path, overwrite), (Path::new("predictions.jsonl"), false));
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].instance_id, "pantry__jar-17");
    assert_eq!(entries[0].model, "larch-2");
    assert_eq!(&*entries[0].patch, FIX.replace('\n', "\r\n"));
}

#[test]
fn an_existing_file_is_replaced_only_after_a_yes() {
    let (mut state, effects) = ask();
    assert!(!export(&effects).1);
    let there = || Msg::ExportFailed { path: "o.jsonl".to_owned(), exists: true, error: "exists".to_owned() };
    assert!(update(&mut state, there()).is_empty());
    assert_eq!(state.prompt, Some(Prompt::Confirm(Question::Overwrite("o.jsonl".to_owned()))));
    assert!(press(&mut state, "enter").is_empty(), "anything but y is no");
    assert!(state.message.clone().unwrap().text.contains("left as it was"));
    update(&mut state, there());
    let effects = press(&mut state, "y");
    let (path, overwrite, _) = export(&effects);
    assert_eq!((path, overwrite), (Path::new("o.jsonl"), true));
}

#[test]
fn what_was_written_and_what_was_left_out_is_said() {
    let (mut state, _) = ask();
    assert!(state.ranking.unsaved);
    update(&mut state, Msg::ExportDone { path: "o.jsonl".to_owned(), written: 1 });
    let said = state.message.clone().unwrap().text;
    assert!(said.contains("1 predictions written to o.jsonl") && said.contains("1 issues without a choice"), "{said}");
    assert!(!state.ranking.unsaved);
}

#[test]
fn a_failed_export_is_said_and_nothing_counts_as_saved() {
    let (mut state, _) = ask();
    let error = "permission denied".to_owned();
    update(&mut state, Msg::ExportFailed { path: "o.jsonl".to_owned(), exists: false, error });
    let said = state.message.clone().unwrap();
    assert!(said.error && said.text.contains("permission denied") && said.text.contains("nothing was written"));
    assert!(state.ranking.unsaved);
}

#[test]
fn without_a_choice_there_is_nothing_to_export() {
    let (mut state, _) = loaded(ThemeName::Dark, SIZE);
    assert!(press(&mut state, "e").is_empty());
    assert_eq!(state.prompt, None);
    assert!(state.message.clone().unwrap().error);
}

#[test]
fn an_empty_path_writes_nothing() {
    let mut state = scored(ThemeName::Dark, SIZE);
    assert!(press(&mut state, "e ctrl-u enter").is_empty());
    assert!(state.message.clone().unwrap().text.contains("nothing was written"));
    assert!(press(&mut state, "e esc").is_empty());
}

#[test]
fn leaving_with_moves_that_were_not_exported_is_asked_about() {
    let mut state = scored(ThemeName::Dark, SIZE);
    press(&mut state, "j r J");
    assert!(press(&mut state, "Q").is_empty());
    assert!(text(&render(&state, SIZE)).contains("Leave and lose them? y/N"));
    assert!(press(&mut state, "n").is_empty());
    press(&mut state, "Q");
    assert!(matches!(press(&mut state, "y")[..], [Effect::Quit]));
    press(&mut state, "ctrl-c");
    assert!(matches!(press(&mut state, "ctrl-c")[..], [Effect::Quit]), "twice means it");
}

#[test]
fn without_moves_leaving_is_not_asked_about() {
    for keys in ["q", "Q", "ctrl-c", "2 Q", "? Q"] {
        let mut state = scored(ThemeName::Dark, SIZE);
        assert!(matches!(press(&mut state, keys).last(), Some(Effect::Quit)), "{keys}");
    }
}
