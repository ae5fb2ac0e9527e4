//! The whole way through every screen on real runs: nothing panics, nothing waits, nothing unsafe is drawn.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use trajscope::app::{Effect, Keymap, Msg, State, ThemeName, update};
use trajscope::critic::Scores;
use trajscope::formats;
use trajscope::testing::shared;

use super::fixture::{critic, score};
use super::shot::{press, render};

const SIZE: (u16, u16) = (120, 40);

/// Far above what a key and its frame cost; some texts here are of several megabytes.
const LIMIT: Duration = Duration::from_millis(1500);

fn open(folder: PathBuf) -> State {
    let mut state = State::new(Keymap::builtin().unwrap(), ThemeName::Dark, false);
    update(&mut state, Msg::Resize(SIZE.0, SIZE.1));
    let dataset = formats::load(&[folder], &|_| {});
    update(&mut state, Msg::Loaded(Box::new(dataset)));
    for effect in update(&mut state, Msg::CriticReady(Box::new(critic()))) {
        let Effect::Score { key, generation, trajectory, .. } = effect else { continue };
        let n = trajectory.n_actions();
        let actions: Vec<_> = (0..n).map(|a| score(a, Some((a as f64 * 0.7).sin().abs()))).collect();
        let score = actions.last().and_then(|a| a.reward);
        update(
            &mut state,
            Msg::Done { key, generation, scores: Box::new(Scores { actions, score, ..Scores::default() }) },
        );
    }
    state
}

#[test]
fn every_corpus_folder_can_be_walked_through() {
    let Some(shared) = shared() else { return };
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(shared.join("corpus")).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
    folders.push(shared.join("cases"));
    folders.sort();
    let mut slowest = (Duration::ZERO, String::new());
    for folder in folders {
        let mut state = open(folder.clone());
        let issues = state.board.rows.len();
        // Enough of them to meet every shape, in a time a test may take.
        for issue in (0..issues).step_by(issues.div_ceil(12).max(1)) {
            state.board.selected = issue;
            let keys = "enter a o p i R tab G g z z G n N d e E L o H c ] ] n l j G r j J u x esc 1 z";
            for key in keys.split(' ') {
                let start = Instant::now();
                press(&mut state, key);
                let buffer = render(&state, SIZE);
                let took = start.elapsed();
                if took > slowest.0 {
                    slowest = (took, format!("{key} at issue {issue} of {}", folder.display()));
                }
                let bad = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
                let unsafe_cell = buffer.content().iter().find(|c| c.symbol().chars().any(bad));
                assert!(unsafe_cell.is_none(), "{unsafe_cell:?} after {key} at issue {issue} of {}", folder.display());
            }
            press(&mut state, "z");
        }
        println!("{}: {issues} issues, {} files not understood", folder.display(), state.data.not_understood());
    }
    println!("slowest key and frame: {:?}, {}", slowest.0, slowest.1);
    assert!(slowest.0 < LIMIT, "{slowest:?}");
}
