//! How the screen is divided, in columns and rows. Shared by `update` (how far is a page?) and by the drawing, and
//! free of any terminal library.

/// A rectangle of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Area {
    /// Left column.
    pub x: u16,
    /// Top row.
    pub y: u16,
    /// Columns.
    pub w: u16,
    /// Rows.
    pub h: u16,
}

impl Area {
    /// An area.
    pub fn new(x: u16, y: u16, w: u16, h: u16) -> Self {
        Self { x, y, w, h }
    }

    /// Nothing to draw in.
    pub fn is_empty(self) -> bool {
        self.w == 0 || self.h == 0
    }

    /// The `rows` at the top, and what is below.
    pub fn split_top(self, rows: u16) -> (Self, Self) {
        let rows = rows.min(self.h);
        (Self { h: rows, ..self }, Self { y: self.y + rows, h: self.h - rows, ..self })
    }

    /// What is above, and the `rows` at the bottom.
    pub fn split_bottom(self, rows: u16) -> (Self, Self) {
        self.split_top(self.h - rows.min(self.h))
    }

    /// The `columns` at the left, and what is to the right.
    pub fn split_left(self, columns: u16) -> (Self, Self) {
        let columns = columns.min(self.w);
        (Self { w: columns, ..self }, Self { x: self.x + columns, w: self.w - columns, ..self })
    }
}

/// The frame around every view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Screen {
    /// Names of the views, and where one is.
    pub header: Area,
    /// The view.
    pub body: Area,
    /// Keys that are useful here; absent on small screens.
    pub hints: Area,
    /// Critic, progress; gives way to messages and prompts.
    pub status: Area,
}

/// Divides the whole screen.
pub fn screen((w, h): (u16, u16)) -> Screen {
    let whole = Area::new(0, 0, w, h);
    let (header, rest) = whole.split_top(u16::from(h >= 3));
    let (rest, status) = rest.split_bottom(u16::from(h >= 2));
    let (body, hints) = rest.split_bottom(u16::from(h >= 16));
    Screen { header, body, hints, status }
}

/// The panes of the Timeline; any may be empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimelinePanes {
    /// The reward curve.
    pub chart: Area,
    /// The list of actions.
    pub list: Area,
    /// The row of tabs.
    pub tabs: Area,
    /// The reward of the selected action, in words.
    pub reward: Area,
    /// The text of the tab.
    pub detail: Area,
}

/// Screens narrower than this show the list or the detail, not both.
const TWO_PANES: u16 = 70;

/// What decides how the Timeline is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimelineShape {
    /// The detail has the focus.
    pub in_detail: bool,
    /// The detail has the whole screen.
    pub zoomed: bool,
    /// There is no reward and none will come: no room is given to a curve.
    pub without_rewards: bool,
}

/// Divides the Timeline.
pub fn timeline(body: Area, shape: TimelineShape) -> TimelinePanes {
    if shape.zoomed {
        return right_pane(body);
    }
    let chart_rows = match body.h {
        0..=5 => 0,
        _ if shape.without_rewards => 2,
        6..=11 => 2,
        12..=17 => 5,
        18..=29 => 8,
        _ => (body.h * 3 / 10).clamp(9, 16),
    };
    let (chart, rest) = body.split_top(chart_rows);
    if body.w < TWO_PANES {
        return if shape.in_detail {
            TimelinePanes { chart, ..right_pane(rest) }
        } else {
            TimelinePanes { chart, list: rest, ..TimelinePanes::default() }
        };
    }
    let list_columns = (body.w * 9 / 20).clamp(36, 76);
    let (list, right) = rest.split_left(list_columns);
    let (_line, right) = right.split_left(1);
    TimelinePanes { chart, list, ..right_pane(right) }
}

/// Tabs, reward and detail one below the other.
fn right_pane(area: Area) -> TimelinePanes {
    let (tabs, rest) = area.split_top(1);
    let (reward, detail) = rest.split_top(u16::from(area.h >= 8));
    TimelinePanes { tabs, reward, detail, ..TimelinePanes::default() }
}

/// The panes of Compare.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ComparePanes {
    /// Which candidate touches which file; may be empty.
    pub matrix: Area,
    /// Head and diff of each column on the screen.
    pub columns: Vec<(Area, Area)>,
}

/// Rows of a column's head.
const COLUMN_HEAD: u16 = 3;

/// How many candidates stand side by side in so many columns.
pub fn compare_columns(width: u16) -> usize {
    match width {
        0..=59 => 1,
        60..=109 => 2,
        110..=159 => 3,
        _ => 4,
    }
}

/// Divides Compare among `candidates`, with a matrix of `files` rows if it is wanted.
pub fn compare(body: Area, candidates: usize, files: Option<usize>) -> ComparePanes {
    let wanted = files.filter(|n| *n > 0).map_or(0, |n| u16::try_from(n).unwrap_or(u16::MAX - 2) + 2);
    let matrix_rows = if body.h >= 14 { wanted.min(body.h / 3) } else { 0 };
    let (matrix, rest) = body.split_top(matrix_rows);
    let shown = compare_columns(body.w).min(candidates) as u16;
    let mut columns = Vec::new();
    let mut left = rest;
    for i in 0..shown {
        let parts = shown - i;
        // One column of cells stays free between two candidates.
        let width = (left.w + 1) / parts;
        let (cell, after) = left.split_left(width.saturating_sub(u16::from(parts > 1)));
        left = after.split_left(u16::from(parts > 1)).1;
        let head = if cell.h > COLUMN_HEAD + 2 { COLUMN_HEAD } else { 1 };
        columns.push(cell.split_top(head));
    }
    ComparePanes { matrix, columns }
}

/// The panes of Rank; all but the table may be empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RankPanes {
    /// The order, with a head.
    pub table: Area,
    /// The patch of the selected attempt, with a head.
    pub patch: Area,
    /// What the order is worth.
    pub worth: Area,
}

/// Divides Rank for so many attempts.
pub fn rank(body: Area, attempts: usize) -> RankPanes {
    let (left, worth) = if body.w >= 150 {
        let (left, right) = body.split_left(body.w - 46);
        (left, right.split_left(1).1)
    } else {
        let worth_rows = match body.h {
            0..=7 => 0,
            8..=15 => 3,
            16..=24 => 6,
            _ => 7,
        };
        body.split_bottom(worth_rows)
    };
    let wanted = u16::try_from(attempts).unwrap_or(u16::MAX - 1) + 1;
    let table_rows = wanted.min((left.h / 2).max(4));
    let (table, patch) = if left.h >= table_rows + 5 { left.split_top(table_rows) } else { (left, Area::default()) };
    RankPanes { table, patch, worth }
}

/// The box of an overlay in the middle of the screen, and the text in it.
pub fn overlay((w, h): (u16, u16)) -> (Area, Area) {
    let margin_x = if w >= 60 { w / 12 } else { 0 };
    let margin_y = if h >= 16 { h / 12 } else { 0 };
    let outer = Area::new(margin_x, margin_y, w - 2 * margin_x, h - 2 * margin_y);
    let inner = Area::new(
        outer.x + u16::from(outer.w > 2) * 2,
        outer.y + u16::from(outer.h > 2),
        outer.w.saturating_sub(4),
        outer.h.saturating_sub(2),
    );
    (outer, inner)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn within(outer: Area, inner: Area) -> bool {
        inner.is_empty()
            || (inner.x >= outer.x
                && inner.y >= outer.y
                && inner.x + inner.w <= outer.x + outer.w
                && inner.y + inner.h <= outer.y + outer.h)
    }

    proptest! {
        #[test]
        fn every_pane_lies_within_the_screen(
            w in 0_u16..300, h in 0_u16..120, detail: bool, zoom: bool, n in 0_usize..9, files in 0_usize..40,
        ) {
            let whole = Area::new(0, 0, w, h);
            let s = screen((w, h));
            for area in [s.header, s.body, s.hints, s.status] {
                prop_assert!(within(whole, area), "{area:?}");
            }
            prop_assert_eq!(s.header.h + s.body.h + s.hints.h + s.status.h, h);
            let shape = TimelineShape { in_detail: detail, zoomed: zoom, without_rewards: files % 2 == 0 };
            let t = timeline(s.body, shape);
            let c = compare(s.body, n, Some(files));
            let r = rank(s.body, n);
            let (outer, inner) = overlay((w, h));
            prop_assert!(within(whole, outer) && within(outer, inner));
            let columns = c.columns.iter().flat_map(|(a, b)| [*a, *b]);
            for area in [t.chart, t.list, t.tabs, t.reward, t.detail, c.matrix, r.table, r.patch, r.worth].into_iter().chain(columns) {
                prop_assert!(within(s.body, area), "{area:?} not in {:?}", s.body);
            }
        }
    }

    #[test]
    fn the_usual_sizes_have_room_for_text() {
        for size in [(80, 24), (120, 40), (40, 10), (200, 60)] {
            let body = screen(size).body;
            let shape = |in_detail| TimelineShape { in_detail, ..TimelineShape::default() };
            assert!(timeline(body, shape(true)).detail.h >= 5, "{size:?}");
            assert!(timeline(body, shape(false)).list.h >= 5, "{size:?}");
            assert!(compare(body, 3, None).columns.iter().all(|(_, diff)| diff.w >= 36 && diff.h >= 4), "{size:?}");
        }
    }
}
