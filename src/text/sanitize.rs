//! Foreign text made safe for a screen, with or without its colours.

use unicode_segmentation::UnicodeSegmentation as _;

use super::images::fold_images;
use super::scan::{Scanner, Token};
use super::style::{Color, Style, StyledLine};
use super::width::{display_width, grapheme_width};

/// Columns between tab stops, as terminals and the tools that print tabs assume.
pub const TAB_WIDTH: usize = 8;

/// `raw` as a screen may show it: no control characters but `\n`, tabs expanded to stops, what a carriage return
/// overwrote gone, escape sequences gone, hidden and reordering characters written out (`<U+202E>`), embedded
/// pictures folded to a placeholder.
pub fn sanitize(raw: &str) -> String {
    sanitize_with(raw, TAB_WIDTH)
}

/// [`sanitize`] with another distance of tab stops (at least 1 is used).
pub fn sanitize_with(raw: &str, tab_width: usize) -> String {
    if raw.bytes().all(|b| b == b'\n' || (b' '..=b'~').contains(&b)) && !raw.contains(";base64,") {
        return raw.to_owned();
    }
    let lines = lines_of(raw, tab_width);
    let mut safe = String::with_capacity(raw.len());
    for (i, line) in lines.iter().enumerate() {
        if i > 0 {
            safe.push('\n');
        }
        safe.push_str(&line.text);
    }
    safe
}

/// `raw` as one safe line, for titles and table cells: line ends and runs of blanks become one space.
pub fn one_line(raw: &str) -> String {
    let mut line = String::new();
    for word in sanitize(raw).split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// The lines of `raw`, as [`sanitize`] makes them, with the styles its SGR sequences ask for. A style runs on over
/// line ends and stops with the text.
pub fn ansi_spans(raw: &str) -> Vec<StyledLine> {
    lines_of(raw, TAB_WIDTH)
}

fn lines_of(raw: &str, tab_width: usize) -> Vec<StyledLine> {
    let raw = fold_images(raw);
    let mut style = Style::default();
    let tab_width = tab_width.max(1);
    raw.split('\n').map(|line| read_line(line.trim_end_matches('\r'), tab_width, &mut style)).collect()
}

fn read_line(raw: &str, tab_width: usize, style: &mut Style) -> StyledLine {
    // Only a line that moves its cursor back needs cells; nearly none does.
    let moves_back = raw.contains('\r') || Scanner::new(raw).any(|token| matches!(token, Token::Erase(_)));
    if moves_back { overwritten_line(raw, tab_width, style) } else { forward_line(raw, tab_width, style) }
}

fn forward_line(raw: &str, tab_width: usize, style: &mut Style) -> StyledLine {
    let mut line = StyledLine::default();
    let (mut column, mut measured) = (0, 0);
    for token in Scanner::new(raw) {
        match token {
            Token::Text(text) => line.push(text, *style),
            Token::Hidden(c) => line.push(&written_out(c), *style),
            Token::Sgr(parameters) => select(style, parameters),
            Token::Tab => {
                column += display_width(line.text.get(measured..).unwrap_or_default());
                let blanks = tab_width - column % tab_width;
                line.push(&" ".repeat(blanks), *style);
                column += blanks;
                measured = line.text.len();
            }
            Token::Return | Token::Erase(_) | Token::Dropped => {}
        }
    }
    line
}

/// One column of a line that is being overwritten. The second column of a wide character is an empty cell.
#[derive(Clone, Default)]
struct Cell {
    text: String,
    style: Style,
}

#[derive(Default)]
struct Cells {
    row: Vec<Cell>,
    cursor: usize,
    /// What stands here is erased as soon as the cursor goes back to overwrite it.
    doomed: bool,
}

impl Cells {
    fn write(&mut self, text: &str, style: Style) {
        for grapheme in text.graphemes(true) {
            match grapheme_width(grapheme) {
                0 => self.attach(grapheme),
                width => {
                    self.put(Cell { text: grapheme.to_owned(), style });
                    for _ in 1..width {
                        self.put(Cell { text: String::new(), style });
                    }
                }
            }
        }
    }

    /// A mark without a column of its own joins the character before it.
    fn attach(&mut self, mark: &str) {
        let before = self.row.iter_mut().take(self.cursor).rev().find(|cell| !cell.text.is_empty());
        if let Some(cell) = before {
            cell.text.push_str(mark);
        }
    }

    fn put(&mut self, cell: Cell) {
        self.fill_to(self.cursor);
        // Half a wide character cannot stay: the other half becomes a blank.
        if !cell.text.is_empty() {
            self.blank_left_half();
        }
        let follows = self.cursor + 1;
        match self.row.get_mut(self.cursor) {
            Some(old) => *old = cell,
            None => self.row.push(cell),
        }
        if let Some(next) = self.row.get_mut(follows).filter(|next| next.text.is_empty()) {
            " ".clone_into(&mut next.text);
        }
        self.cursor = follows;
    }

    fn blank_left_half(&mut self) {
        if self.row.get(self.cursor).is_none_or(|old| !old.text.is_empty()) {
            return;
        }
        if let Some(left) = self.cursor.checked_sub(1).and_then(|left| self.row.get_mut(left)) {
            " ".clone_into(&mut left.text);
        }
    }

    fn fill_to(&mut self, column: usize) {
        let blank = || Cell { text: " ".to_owned(), style: Style::default() };
        while self.row.len() < column {
            self.row.push(blank());
        }
    }

    fn erase(&mut self, parameter: &str) {
        match parameter {
            "" | "0" => self.row.truncate(self.cursor),
            // A terminal would show nothing of the line. In a log it was written to be read: it goes only where
            // something is written over it, as progress bars do.
            "1" | "2" if self.cursor == 0 => self.row.clear(),
            "1" | "2" => self.doomed = true,
            _ => {}
        }
    }

    fn back(&mut self) {
        if std::mem::take(&mut self.doomed) {
            self.row.clear();
        }
        self.cursor = 0;
    }
}

fn overwritten_line(raw: &str, tab_width: usize, style: &mut Style) -> StyledLine {
    let mut cells = Cells::default();
    for token in Scanner::new(raw) {
        match token {
            Token::Text(text) => cells.write(text, *style),
            Token::Hidden(c) => cells.write(&written_out(c), *style),
            Token::Sgr(parameters) => select(style, parameters),
            Token::Tab => {
                cells.cursor += tab_width - cells.cursor % tab_width;
                cells.fill_to(cells.cursor);
            }
            Token::Return => cells.back(),
            Token::Erase(parameter) => cells.erase(parameter),
            Token::Dropped => {}
        }
    }
    let mut line = StyledLine::default();
    for cell in cells.row {
        line.push(&cell.text, cell.style);
    }
    line
}

fn written_out(c: char) -> String {
    format!("<U+{:04X}>", u32::from(c))
}

/// Applies the parameters of one SGR sequence. Unknown ones are skipped.
fn select(style: &mut Style, parameters: &str) {
    let mut groups = parameters.split(';');
    while let Some(group) = groups.next() {
        let mut sub = group.split(':');
        let code = number(sub.next());
        match code {
            38 | 48 => {
                let color = if group.contains(':') { colon_color(group) } else { semicolon_color(&mut groups) };
                if let Some(color) = color {
                    *(if code == 38 { &mut style.fg } else { &mut style.bg }) = color;
                }
            }
            4 => style.underline = sub.next() != Some("0"),
            _ => attribute(style, code),
        }
    }
}

fn attribute(style: &mut Style, code: u16) {
    match code {
        0 => *style = Style::default(),
        1 => style.bold = true,
        2 => style.dim = true,
        3 => style.italic = true,
        7 => style.reverse = true,
        9 => style.strike = true,
        21 => style.underline = true,
        22 => (style.bold, style.dim) = (false, false),
        23 => style.italic = false,
        24 => style.underline = false,
        27 => style.reverse = false,
        29 => style.strike = false,
        30..=37 => style.fg = Color::Named((code - 30) as u8),
        39 => style.fg = Color::Default,
        40..=47 => style.bg = Color::Named((code - 40) as u8),
        49 => style.bg = Color::Default,
        90..=97 => style.fg = Color::Named((code - 90 + 8) as u8),
        100..=107 => style.bg = Color::Named((code - 100 + 8) as u8),
        _ => {}
    }
}

/// A missing or empty parameter is 0; a silly one is an unknown code.
fn number(parameter: Option<&str>) -> u16 {
    parameter.filter(|p| !p.is_empty()).map_or(0, |p| p.parse().unwrap_or(u16::MAX))
}

/// `38;5;N` and `38;2;R;G;B`, after the 38.
fn semicolon_color<'a>(groups: &mut impl Iterator<Item = &'a str>) -> Option<Color> {
    let mut byte = || u8::try_from(number(groups.next())).ok();
    match byte()? {
        5 => byte().map(indexed),
        2 => Some(Color::Rgb(byte()?, byte()?, byte()?)),
        _ => None,
    }
}

/// `38:5:N`, `38:2:R:G:B` and `38:2:SPACE:R:G:B`.
fn colon_color(group: &str) -> Option<Color> {
    let parts: Vec<u16> = group.split(':').map(|part| number(Some(part))).collect();
    let byte = |value: u16| u8::try_from(value).ok();
    match *parts.as_slice() {
        [_, 5, index] => byte(index).map(indexed),
        [_, 2, r, g, b] | [_, 2, _, r, g, b, ..] => Some(Color::Rgb(byte(r)?, byte(g)?, byte(b)?)),
        _ => None,
    }
}

fn indexed(index: u8) -> Color {
    if index < 16 { Color::Named(index) } else { Color::Indexed(index) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(raw: &str) -> Vec<String> {
        ansi_spans(raw).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn line_ends_of_every_system_are_one() {
        assert_eq!(sanitize("a\r\nb\r\r\nc\n"), "a\nb\nc\n");
        assert_eq!(sanitize(""), "");
        assert_eq!(texts(""), [""]);
    }

    #[test]
    fn a_carriage_return_overwrites() {
        assert_eq!(sanitize("10%\r 50%\r100%"), "100%");
        assert_eq!(sanitize("old text\rNEW"), "NEW text");
        assert_eq!(sanitize("downloading\r\u{1b}[Kdone"), "done");
        assert_eq!(sanitize("abc\u{1b}[2K\rX"), "X");
        assert_eq!(sanitize("old\r\u{1b}[2KX"), "X");
        assert_eq!(sanitize("FAILED\u{1b}[2K\u{1b}[1A end"), "FAILED end", "nothing is written over it");
        assert_eq!(sanitize("abc\r\tx"), "abc     x");
    }

    #[test]
    fn overwriting_half_a_wide_character_leaves_a_blank() {
        assert_eq!(sanitize("日本\ra"), "a 本");
        assert_eq!(sanitize("日本\r a"), " a本");
        assert_eq!(sanitize("ab\r日"), "日");
        assert_eq!(sanitize("a日\r日"), "日 ");
    }

    #[test]
    fn hidden_characters_are_written_out() {
        assert_eq!(sanitize("a\u{202e}b\u{200b}"), "a<U+202E>b<U+200B>");
        assert_eq!(sanitize("👩\u{200d}🔬"), "👩\u{200d}🔬", "joiners stay");
    }

    #[test]
    fn tab_stops_count_columns_not_bytes() {
        assert_eq!(sanitize("é\tx"), "é       x");
        assert_eq!(sanitize("日\tx"), "日      x");
        assert_eq!(sanitize_with("a\tb\tc", 4), "a   b   c");
        assert_eq!(sanitize_with("a\tb", 0), "a b");
    }

    #[test]
    fn one_line_has_no_line_ends() {
        assert_eq!(one_line("  a\tb\n\n c \r\n"), "a b c");
        assert_eq!(one_line("\n"), "");
    }

    #[test]
    fn sgr_of_every_kind() {
        let style = |parameters: &str| {
            let mut style = Style::default();
            select(&mut style, parameters);
            style
        };
        let fg = |fg| Style { fg, ..Style::default() };
        assert_eq!(style("38;5;208"), fg(Color::Indexed(208)));
        assert_eq!(style("38;5;9"), fg(Color::Named(9)));
        assert_eq!(style("38;2;1;2;3"), fg(Color::Rgb(1, 2, 3)));
        assert_eq!(style("38:2::1:2:3"), fg(Color::Rgb(1, 2, 3)));
        assert_eq!(style("38:2:1:2:3"), fg(Color::Rgb(1, 2, 3)));
        assert_eq!(style("38:5:20"), fg(Color::Indexed(20)));
        assert_eq!(style("97;40"), Style { bg: Color::Named(0), ..fg(Color::Named(15)) });
        assert_eq!(style("1;3;4;9;31;0"), Style::default());
        assert_eq!(style("1;"), Style::default(), "an empty parameter is 0");
        assert_eq!(style("38;5;999;1"), Style { bold: true, ..Style::default() });
        assert_eq!(style("38"), Style::default());
        assert_eq!(style("4:3;4:0"), Style::default());
        assert_eq!(style("99999999;1"), Style { bold: true, ..Style::default() });
    }

    #[test]
    fn a_style_runs_on_over_lines_and_ends_with_the_text() {
        let lines = ansi_spans("\u{1b}[31mred\nstill\u{1b}[0m not");
        assert_eq!(lines.iter().map(|l| l.spans.len()).collect::<Vec<_>>(), [1, 1]);
        assert_eq!(lines[1].spans[0].range, 0..5);
        assert!(ansi_spans("next")[0].spans.is_empty());
    }

    proptest! {
        #[test]
        fn nothing_dangerous_is_left(raw in "(?s).{0,80}", tail in "[\u{1b}\u{9b}\u{9d}\\[\\]0-9;:mK\r\t\n日\u{301}\u{200d}a ]{0,60}") {
            let raw = raw + &tail;
            let safe = sanitize(&raw);
            prop_assert!(safe.chars().all(|c| c == '\n' || !c.is_control()));
            prop_assert!(!safe.chars().any(crate::text::scan::is_hidden));
            prop_assert_eq!(sanitize(&safe), safe.clone(), "a second pass changes nothing");
            prop_assert_eq!(texts(&raw).join("\n"), safe);
            prop_assert!(!one_line(&raw).contains('\n'));
        }

        #[test]
        fn spans_are_ordered_and_inside(raw in "[\u{1b}\\[0-9;m\r\ta日é\n]{0,80}") {
            for line in ansi_spans(&raw) {
                let mut at = 0;
                for span in &line.spans {
                    prop_assert!(span.range.start >= at && span.range.end > span.range.start);
                    prop_assert!(line.text.get(span.range.clone()).is_some());
                    at = span.range.end;
                }
                let pieces: String = line.pieces(0..line.text.len()).iter().map(|(text, _)| *text).collect();
                prop_assert_eq!(pieces, line.text);
            }
        }
    }
}
