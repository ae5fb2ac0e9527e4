//! Every screen at three sizes, in both themes: the text, and a map of the styles, as snapshots.

mod screens {
    pub mod fixture;
    pub mod shot;
}

use screens::fixture;
use screens::shot::{press, render, text};
use trajscope::app::ThemeName;

#[test]
fn look() {
    for size in [(80, 24), (120, 40), (40, 10)] {
        for keys in ["z", "j enter n n", "j enter n o", "j enter tab i", "j c", "j r", "j r j x x y enter", "j e"] {
            let mut state = fixture::scored(ThemeName::Dark, size);
            press(&mut state, keys);
            println!("--- {size:?} {keys}");
            println!("{}", text(&render(&state, size)));
        }
    }
}
