//! Keys: every action does something somewhere, and nothing that is pressed or pasted can do harm.

use proptest::prelude::*;
use trajscope::app::{ACTIONS, Context, Effect, Msg, State, ThemeName, View, update};

use super::fixture::{half_scored, scored};
use super::shot::{press, render};

const SIZE: (u16, u16) = (80, 24);

/// States in which actions of a screen have something to do: at the start, in the middle, at the end of things.
fn states(context: Context) -> Vec<State> {
    let at = |keys: &str| {
        let mut state = scored(ThemeName::Dark, SIZE);
        press(&mut state, keys);
        state
    };
    let keys: &[&str] = match context {
        Context::Global => {
            &["", "j", "j j z G", "j enter", "j enter G", "j enter tab", "j c l", "j r", "j enter l", "?"]
        }
        Context::Board => &["", "j", "j space"],
        Context::Timeline => &["j enter", "j enter G", "j enter l l l l l", "j enter L", "j enter o"],
        Context::Compare => &["j c", "c", "j c ] n", "c L ] ]"],
        Context::Rank => &["j r j", "r", "j r J u", "j r j x enter"],
    };
    keys.iter().map(|k| at(k)).collect()
}

#[test]
fn every_action_is_handled_on_its_screen() {
    for info in ACTIONS {
        let changes = |mut state: State| {
            let before = format!("{state:?}");
            let key = state.keymap.keys(info.action)[0];
            let effects = update(&mut state, Msg::Key(key));
            !effects.is_empty() || format!("{state:?}") != before
        };
        let works = states(info.context).into_iter().any(changes);
        assert!(works, "[{}] {} does nothing in any of the states tried", info.context.name(), info.name);
    }
}

#[test]
fn the_number_keys_and_the_letters_lead_to_every_screen_and_back() {
    let mut state = scored(ThemeName::Dark, SIZE);
    for (keys, view) in [
        ("2", View::Timeline),
        ("3", View::Compare),
        ("4", View::Rank),
        ("1", View::Board),
        ("j enter", View::Timeline),
        ("c", View::Compare),
        ("r", View::Rank),
        ("q", View::Compare),
        ("esc", View::Timeline),
        ("backspace", View::Board),
        ("esc", View::Board),
    ] {
        press(&mut state, keys);
        assert_eq!(state.view, view, "after {keys}");
    }
    assert!(matches!(press(&mut state, "q")[..], [Effect::Quit]));
}

#[test]
fn help_names_the_keys_of_the_screen_and_closes_again() {
    for (keys, word) in [("", "sort by the next column"), ("2", "next drop"), ("3", "next hunk"), ("4", "never submit")]
    {
        let mut state = scored(ThemeName::Dark, (120, 60));
        press(&mut state, keys);
        press(&mut state, "?");
        let shown = super::shot::text(&render(&state, (120, 60)));
        assert!(shown.contains(word), "{word} not in the help after {keys:?}:\n{shown}");
        press(&mut state, "?");
        assert_eq!(state.overlay, None);
    }
}

#[test]
fn an_overlay_scrolls_to_its_end_and_no_further() {
    let mut state = scored(ThemeName::Dark, SIZE);
    press(&mut state, "? G");
    let end = state.overlay.unwrap().first;
    assert!(end > 0);
    press(&mut state, "j j pagedown");
    assert_eq!(state.overlay.unwrap().first, end);
    press(&mut state, "g k");
    assert_eq!(state.overlay.unwrap().first, 0);
    press(&mut state, "F");
    assert_eq!(state.overlay.unwrap().kind, trajscope::app::OverlayKind::Files);
    assert!(press(&mut state, "esc").is_empty());
    assert_eq!(state.overlay, None);
}

#[test]
fn a_pasted_text_enters_prompts_only() {
    let mut state = scored(ThemeName::Dark, SIZE);
    update(&mut state, Msg::Paste("q".to_owned()));
    assert_eq!(state.board.filter, "");
    press(&mut state, "/");
    update(&mut state, Msg::Paste("jar".to_owned()));
    assert_eq!(state.board.filter, "jar");
    assert_eq!(state.board.issues().len(), 1);
}

#[test]
fn a_message_of_the_driver_is_shown_until_the_next_key() {
    let mut state = scored(ThemeName::Dark, SIZE);
    assert!(update(&mut state, Msg::Note("keys.toml: \u{1b}[31mbad".to_owned())).is_empty());
    let shown = super::shot::text(&render(&state, SIZE));
    assert!(shown.contains("keys.toml: bad"), "{shown}");
    press(&mut state, "j");
    assert_eq!(state.message, None);
}

fn any_key() -> impl Strategy<Value = String> {
    let named =
        ["enter", "esc", "tab", "backtab", "space", "up", "down", "pageup", "pagedown", "home", "end", "ctrl-r"];
    prop_oneof!["[a-zA-Z0-9/?\\[\\]]".prop_map(|c| c), proptest::sample::select(named.to_vec()).prop_map(str::to_owned),]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_keys_and_sizes_panics(
        keys in proptest::collection::vec(any_key(), 0..40),
        sizes in proptest::collection::vec((0_u16..130, 0_u16..45), 1..4),
        half: bool,
    ) {
        let mut state = if half { half_scored(ThemeName::Light, SIZE) } else { scored(ThemeName::Light, SIZE) };
        for (i, key) in keys.iter().enumerate() {
            let (w, h) = sizes[i % sizes.len()];
            update(&mut state, Msg::Resize(w, h));
            press(&mut state, key);
            render(&state, (w, h));
        }
    }
}
