//! Every screen at three sizes: its text, and its styles in the dark and in the light theme.

use trajscope::app::{Keymap, Msg, State, ThemeName, update};

use super::fixture::{half_scored, loaded, scored};
use super::shot::{press, render, styles, text};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (40, 10)];

/// One snapshot a size: the text once (themes do not change it), the styles of both themes.
fn snapshot(name: &str, make: impl Fn(ThemeName, (u16, u16)) -> State, keys: &str) {
    for size in SIZES {
        let mut shots = Vec::new();
        for theme in [ThemeName::Dark, ThemeName::Light] {
            let mut state = make(theme, size);
            press(&mut state, keys);
            shots.push(render(&state, size));
        }
        let (dark, light) = (text(&shots[0]), text(&shots[1]));
        assert_eq!(dark, light, "a theme changes looks, never text");
        let whole = format!("{dark}\n\n== dark\n{}\n\n== light\n{}", styles(&shots[0]), styles(&shots[1]));
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), whole);
    }
}

#[test]
fn board() {
    snapshot("board", scored, "");
    snapshot("board_unfolded", scored, "j space j j");
    snapshot("board_half", half_scored, "j space");
    snapshot("board_filter", scored, "/ j a r");
}

#[test]
fn board_before_anything_is_there() {
    let start = |theme, size: (u16, u16)| {
        let mut state = State::new(Keymap::builtin().unwrap(), theme, false);
        update(&mut state, Msg::Resize(size.0, size.1));
        state
    };
    snapshot("start", start, "");
}

#[test]
fn timeline() {
    snapshot("timeline_action", scored, "j enter n");
    snapshot("timeline_observation", scored, "j enter e o");
    snapshot("timeline_patch", scored, "j enter p tab");
    snapshot("timeline_input", scored, "j enter n i tab");
    snapshot("timeline_run", scored, "j enter R tab z");
    snapshot("timeline_half", half_scored, "j enter n");
    snapshot("timeline_unscored", |theme, size| loaded(theme, size).0, "j enter");
}

#[test]
fn compare() {
    snapshot("compare", scored, "j c");
    snapshot("compare_file", scored, "j c l ] ]");
    snapshot("compare_half", half_scored, "j c");
}

#[test]
fn rank() {
    snapshot("rank", scored, "j r");
    snapshot("rank_by_hand", scored, "j r J x t e s t s enter");
    snapshot("rank_half", half_scored, "j r");
    snapshot("rank_prompt", scored, "j r x");
    snapshot("export_prompt", scored, "j r e");
}

#[test]
fn overlays() {
    snapshot("help", scored, "j enter ?");
    snapshot("files", scored, "F");
}

/// With `TRAJSCOPE_PICTURES=folder` the screens are also written there as SVG, to be looked at.
#[test]
fn every_screen_is_a_picture() {
    let folder = std::env::var_os("TRAJSCOPE_PICTURES").map(std::path::PathBuf::from);
    for (name, keys) in [
        ("board", "z"),
        ("timeline", "j enter n"),
        ("input", "j enter n i tab"),
        ("patch", "j enter p tab"),
        ("compare", "j c"),
        ("rank", "j r J"),
        ("help", "?"),
    ] {
        for theme in [ThemeName::Dark, ThemeName::Light] {
            let mut state = scored(theme, (120, 34));
            press(&mut state, keys);
            let svg = trajscope::ui::svg::render(&render(&state, (120, 34)));
            assert!(svg.matches("<text").count() > 30, "{name} is nearly empty");
            assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
            if let Some(folder) = &folder {
                std::fs::write(folder.join(format!("{name}-{theme:?}.svg")), svg).unwrap();
            }
        }
    }
}

#[test]
fn without_colours() {
    let plain = |theme, size| State { no_color: true, ..scored(theme, size) };
    snapshot("no_color_timeline", plain, "j enter n");
    snapshot("no_color_compare", plain, "j c");
}
