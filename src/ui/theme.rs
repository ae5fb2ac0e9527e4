//! Colours by meaning. The only place that names a colour.
//!
//! Entries of the 256-colour table are used: every terminal in use knows them, true colour is not certain over SSH or
//! on a projector's machine. Without colours (`NO_COLOR`) meanings are carried by attributes, and always also by a
//! sign: a score has its bar, a drop its arrow, a diff line its plus or minus.

use ratatui::style::{Color, Modifier, Style};

use crate::app::doc::Tone;
use crate::app::highlight::SynClass;
use crate::app::{State, ThemeName};
use crate::text;

use super::palette;

/// A meaning that has a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Ordinary text.
    Text,
    /// Less important text.
    Dim,
    /// Titles, the current screen.
    Title,
    /// What is selected and has the focus.
    Selected,
    /// What is selected elsewhere.
    SelectedDim,
    /// Keys in hints and help.
    Key,
    /// The header and status bars.
    Bar,
    /// Lines between panes.
    Line,
    /// Something wrong.
    Error,
    /// Something to notice.
    Notice,
    /// A resolved attempt.
    Good,
    /// An unresolved attempt.
    Bad,
    /// A drop of the reward.
    Drop,
    /// The reward curve.
    Curve,
    /// A badge.
    Badge,
    /// The attempt that would be submitted.
    Chosen,
    /// A line that is being typed.
    Prompt,
}

impl Role {
    /// Every role, for tests.
    pub const ALL: [Self; 17] = [
        Self::Text,
        Self::Dim,
        Self::Title,
        Self::Selected,
        Self::SelectedDim,
        Self::Key,
        Self::Bar,
        Self::Line,
        Self::Error,
        Self::Notice,
        Self::Good,
        Self::Bad,
        Self::Drop,
        Self::Curve,
        Self::Badge,
        Self::Chosen,
        Self::Prompt,
    ];
}

/// A pair of colours: in the dark theme, in the light theme.
type Pair = (u8, u8);

const GROUND: Pair = (234, 231);
const TEXT: Pair = (252, 235);
const DIM: Pair = (246, 242);
const ACCENT: Pair = (117, 25);
const BAR_GROUND: Pair = (237, 253);
const SELECTED_GROUND: Pair = (24, 153);
const SELECTED_DIM_GROUND: Pair = (238, 252);
const RED: Pair = (210, 124);
const ORANGE: Pair = (215, 130);
const GREEN: Pair = (114, 22);
const YELLOW: Pair = (222, 94);
const LINE: Pair = (240, 249);
const ADDED_GROUND: Pair = (22, 194);
const REMOVED_GROUND: Pair = (52, 224);
/// The same two where the terminal knows true colour: the 256-colour table has no darker green and red.
const ADDED_TRUE: [Color; 2] = [Color::Rgb(22, 52, 32), Color::Rgb(218, 245, 221)];
const REMOVED_TRUE: [Color; 2] = [Color::Rgb(66, 26, 30), Color::Rgb(253, 226, 226)];

/// Ten steps from the low to the high end of the critic's scale: orange to blue-green, which people who do not tell
/// red from green can still tell apart.
const SCORES: [Pair; 10] =
    [(203, 124), (209, 130), (215, 130), (221, 94), (223, 94), (187, 58), (151, 65), (115, 29), (79, 30), (43, 23)];

/// The look of everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    name: ThemeName,
    no_color: bool,
    true_color: bool,
}

impl Theme {
    /// A theme of the 256-colour table, or without colours.
    pub fn new(name: ThemeName, no_color: bool) -> Self {
        Self { name, no_color, true_color: false }
    }

    /// The theme a state asks for.
    pub fn of(state: &State) -> Self {
        Self { name: state.theme, no_color: state.no_color, true_color: state.true_color && !state.no_color }
    }

    fn pick(self, pair: Pair) -> Color {
        match (self.no_color, self.name) {
            (true, _) => Color::Reset,
            (false, ThemeName::Dark) => Color::Indexed(pair.0),
            (false, ThemeName::Light) => Color::Indexed(pair.1),
        }
    }

    fn fg(self, pair: Pair) -> Style {
        Style::new().fg(self.pick(pair))
    }

    fn on(self, fg: Pair, bg: Pair) -> Style {
        self.fg(fg).bg(self.pick(bg))
    }

    /// The ground everything is drawn on.
    pub fn ground(self) -> Style {
        self.on(TEXT, GROUND)
    }

    /// The look of a meaning.
    pub fn role(self, role: Role) -> Style {
        let bold = Modifier::BOLD;
        let reversed = |style: Style| if self.no_color { style.add_modifier(Modifier::REVERSED) } else { style };
        match role {
            Role::Text => self.fg(TEXT),
            Role::Dim => self.fg(DIM),
            Role::Title => self.fg(ACCENT).add_modifier(bold),
            Role::Selected => reversed(self.on(TEXT, SELECTED_GROUND)).add_modifier(bold),
            Role::SelectedDim if self.no_color => Style::new().add_modifier(Modifier::UNDERLINED),
            Role::SelectedDim => self.on(TEXT, SELECTED_DIM_GROUND),
            Role::Bar => reversed(self.on(TEXT, BAR_GROUND)),
            Role::Line => self.fg(LINE),
            Role::Error | Role::Drop => self.fg(RED).add_modifier(bold),
            Role::Notice | Role::Badge => self.fg(ORANGE),
            Role::Good => self.fg(GREEN),
            Role::Bad => self.fg(RED),
            Role::Key | Role::Curve => self.fg(ACCENT),
            Role::Chosen => self.fg(YELLOW).add_modifier(bold),
            Role::Prompt => self.on(TEXT, SELECTED_DIM_GROUND).add_modifier(bold),
        }
    }

    /// The colour of a step of the critic's scale, 0 to 9; `None` = unscored.
    pub fn score(self, bin: Option<u8>) -> Style {
        match bin.and_then(|b| SCORES.get(usize::from(b))) {
            Some(pair) => self.fg(*pair),
            None => self.role(Role::Dim),
        }
    }

    /// The look of a line of a document.
    pub fn tone(self, tone: Tone) -> Style {
        match tone {
            Tone::Plain | Tone::Context => self.fg(TEXT),
            Tone::Heading => self.fg(ACCENT).add_modifier(Modifier::BOLD),
            Tone::Note => self.fg(DIM).add_modifier(Modifier::ITALIC),
            Tone::Error => self.role(Role::Error),
            Tone::Thought => self.fg((250, 238)).add_modifier(Modifier::ITALIC),
            Tone::Command => self.fg((229, 18)),
            Tone::Added => self.changed(ADDED_GROUND, ADDED_TRUE),
            Tone::Removed => self.changed(REMOVED_GROUND, REMOVED_TRUE),
            Tone::Hunk => self.fg(ACCENT),
            Tone::File => self.on(ACCENT, BAR_GROUND).add_modifier(Modifier::BOLD),
            Tone::Mark => self.role(Role::Chosen).add_modifier(Modifier::REVERSED),
        }
    }

    fn changed(self, ground: Pair, [dark, light]: [Color; 2]) -> Style {
        match (self.true_color, self.name) {
            (false, _) => self.on(TEXT, ground),
            (true, ThemeName::Dark) => self.fg(TEXT).bg(dark),
            (true, ThemeName::Light) => self.fg(TEXT).bg(light),
        }
    }

    /// The colour of a syntax class; the ground is left as the diff has it.
    pub fn syntax(self, class: SynClass) -> Style {
        match class {
            SynClass::Comment => self.fg((249, 240)).add_modifier(Modifier::ITALIC),
            SynClass::String => self.fg((150, 22)),
            SynClass::Constant => self.fg((216, 88)),
            SynClass::Keyword => self.fg((176, 90)),
            SynClass::Operator => self.fg((250, 238)),
            SynClass::Function => self.fg((117, 25)),
            SynClass::Type => self.fg((222, 94)),
            SynClass::Variable => self.fg((252, 235)),
            SynClass::Punctuation => self.fg((248, 240)),
            SynClass::Tag => self.fg((110, 24)),
        }
    }

    /// A style that a text asked for by its own escape sequences, changed where it could not be read on this ground.
    pub fn ansi(self, style: text::Style) -> Style {
        let mut out = Style::new();
        let set = [
            (style.bold, Modifier::BOLD),
            (style.dim, Modifier::DIM),
            (style.italic, Modifier::ITALIC),
            (style.underline, Modifier::UNDERLINED),
            (style.reverse, Modifier::REVERSED),
            (style.strike, Modifier::CROSSED_OUT),
        ];
        for (_, modifier) in set.into_iter().filter(|(on, _)| *on) {
            out = out.add_modifier(modifier);
        }
        if self.no_color {
            return out;
        }
        let bg = ansi_color(style.bg);
        let ground = bg.or(Some(self.pick(GROUND)));
        if let Some(bg) = bg {
            out = out.bg(bg);
        }
        let own = ansi_color(style.fg).unwrap_or(self.pick(TEXT));
        let readable = ground.is_none_or(|g| palette::contrast(own, g) >= LEAST_CONTRAST);
        let white_or_black =
            || if bg.is_some_and(palette::is_light) { Color::Indexed(16) } else { Color::Indexed(231) };
        let fallback = if bg.is_some() { white_or_black() } else { self.pick(TEXT) };
        out.fg(if readable { own } else { fallback })
    }
}

/// Less than this and a text is replaced by one that can be read (4.5 is what guidelines ask of body text; texts
/// choose dim greys on purpose, and those stay).
const LEAST_CONTRAST: f64 = 2.5;

fn ansi_color(color: text::Color) -> Option<Color> {
    match color {
        text::Color::Default => None,
        text::Color::Named(n) | text::Color::Indexed(n) => Some(Color::Indexed(n)),
        text::Color::Rgb(r, g, b) => Some(Color::Rgb(r, g, b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEMES: [ThemeName; 2] = [ThemeName::Dark, ThemeName::Light];

    #[test]
    fn every_meaning_can_be_read_in_both_themes() {
        for name in THEMES {
            let theme = Theme::new(name, false);
            let ground = theme.ground();
            let roles = Role::ALL.into_iter().filter(|r| *r != Role::Line).map(|r| theme.role(r));
            let tones = Tone::ALL.into_iter().map(|t| theme.tone(t));
            let scores = (0..10).map(|b| theme.score(Some(b)));
            for style in roles.chain(tones).chain(scores) {
                let style = ground.patch(style);
                let contrast = palette::contrast(style.fg.unwrap(), style.bg.unwrap());
                assert!(contrast >= 4.0, "{name:?} {style:?} has contrast {contrast:.1}");
            }
        }
    }

    #[test]
    fn syntax_classes_can_be_read_on_every_ground_of_a_diff() {
        for (name, true_color) in THEMES.into_iter().flat_map(|n| [(n, false), (n, true)]) {
            let theme = Theme { name, no_color: false, true_color };
            for tone in [Tone::Context, Tone::Added, Tone::Removed] {
                for class in SynClass::ALL {
                    let style = theme.ground().patch(theme.tone(tone)).patch(theme.syntax(class));
                    let contrast = palette::contrast(style.fg.unwrap(), style.bg.unwrap());
                    assert!(contrast >= 3.0, "{name:?} {tone:?} {class:?} has contrast {contrast:.1}");
                }
            }
        }
    }

    #[test]
    fn what_a_program_printed_stays_readable_on_either_ground() {
        for name in THEMES {
            let theme = Theme::new(name, false);
            let colors = (0..=255).map(text::Color::Indexed).chain([text::Color::Rgb(250, 250, 250)]);
            for fg in colors {
                for bg in [text::Color::Default, text::Color::Named(7), text::Color::Named(4)] {
                    let style = theme.ground().patch(theme.ansi(text::Style { fg, bg, ..text::Style::default() }));
                    let contrast = palette::contrast(style.fg.unwrap(), style.bg.unwrap());
                    assert!(contrast >= LEAST_CONTRAST, "{name:?} {fg:?} on {bg:?}: {contrast:.1}");
                }
            }
        }
    }

    #[test]
    fn without_colours_nothing_has_one() {
        let theme = Theme::new(ThemeName::Dark, true);
        let red = text::Style { fg: text::Color::Named(1), bold: true, ..text::Style::default() };
        let roles = Role::ALL.into_iter().map(|r| theme.role(r));
        let tones = Tone::ALL.into_iter().map(|t| theme.tone(t));
        let others = [theme.ground(), theme.score(Some(3)), theme.ansi(red)];
        for style in roles.chain(tones).chain(others) {
            for color in [style.fg, style.bg].into_iter().flatten() {
                assert_eq!(color, Color::Reset);
            }
        }
        assert!(theme.ansi(red).add_modifier.contains(Modifier::BOLD));
    }
}
