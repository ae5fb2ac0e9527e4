//! What the colours of a terminal look like as red, green and blue: for contrast and for pictures.

use ratatui::style::Color;

/// The sixteen named colours as most terminals show them.
const NAMED: [(u8, u8, u8); 16] = [
    (0, 0, 0),
    (205, 49, 49),
    (13, 188, 121),
    (229, 229, 16),
    (36, 114, 200),
    (188, 63, 188),
    (17, 168, 205),
    (229, 229, 229),
    (102, 102, 102),
    (241, 76, 76),
    (35, 209, 139),
    (245, 245, 67),
    (59, 142, 234),
    (214, 112, 214),
    (41, 184, 219),
    (255, 255, 255),
];

/// Red, green, blue of a colour; `None` for the terminal's own.
pub fn rgb(color: Color) -> Option<(u8, u8, u8)> {
    let named = |n: u8| NAMED[usize::from(n)];
    Some(match color {
        Color::Reset => return None,
        Color::Rgb(r, g, b) => (r, g, b),
        Color::Indexed(n) => indexed(n),
        Color::Black => named(0),
        Color::Red => named(1),
        Color::Green => named(2),
        Color::Yellow => named(3),
        Color::Blue => named(4),
        Color::Magenta => named(5),
        Color::Cyan => named(6),
        Color::Gray => named(7),
        Color::DarkGray => named(8),
        Color::LightRed => named(9),
        Color::LightGreen => named(10),
        Color::LightYellow => named(11),
        Color::LightBlue => named(12),
        Color::LightMagenta => named(13),
        Color::LightCyan => named(14),
        Color::White => named(15),
    })
}

/// The 256-colour table: 16 named, a cube of 6×6×6, 24 greys.
fn indexed(n: u8) -> (u8, u8, u8) {
    match n {
        0..=15 => NAMED[usize::from(n)],
        16..=231 => {
            let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
            let n = n - 16;
            (level(n / 36), level(n / 6 % 6), level(n % 6))
        }
        232..=255 => {
            let grey = 8 + 10 * (n - 232);
            (grey, grey, grey)
        }
    }
}

/// Relative luminance of a colour, 0 (black) to 1 (white), by the definition of WCAG 2.
fn luminance((r, g, b): (u8, u8, u8)) -> f64 {
    let linear = |c: u8| {
        let c = f64::from(c) / 255.0;
        if c <= 0.03928 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
}

/// Contrast of two colours, 1 (none) to 21, by the definition of WCAG 2. The terminal's own colours are taken to be
/// readable on each other.
pub fn contrast(a: Color, b: Color) -> f64 {
    let (Some(a), Some(b)) = (rgb(a), rgb(b)) else {
        return 21.0;
    };
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

/// Is black the better text colour on it?
pub fn is_light(color: Color) -> bool {
    rgb(color).is_some_and(|c| luminance(c) > 0.18)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_its_known_corners() {
        assert_eq!(rgb(Color::Indexed(16)), Some((0, 0, 0)));
        assert_eq!(rgb(Color::Indexed(231)), Some((255, 255, 255)));
        assert_eq!(rgb(Color::Indexed(196)), Some((255, 0, 0)));
        assert_eq!(rgb(Color::Indexed(244)), Some((128, 128, 128)));
        assert_eq!(rgb(Color::Reset), None);
        assert_eq!(rgb(Color::White), rgb(Color::Indexed(15)));
    }

    #[test]
    fn contrast_is_symmetric_and_between_1_and_21() {
        let (black, white) = (Color::Indexed(16), Color::Indexed(231));
        assert!((contrast(black, white) - 21.0).abs() < 1e-9);
        assert!((contrast(white, black) - 21.0).abs() < 1e-9);
        assert!((contrast(white, white) - 1.0).abs() < 1e-9);
        assert!(is_light(white) && !is_light(black));
    }
}
