//! Everything a person can do, by name. The key map, the help and the tests walk this one table.

use super::View;

/// Where an action can be used; also the sections of the key map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Context {
    /// Everywhere.
    Global,
    /// On the Board.
    Board,
    /// On the Timeline.
    Timeline,
    /// On the Compare screen.
    Compare,
    /// On the Rank screen.
    Rank,
}

impl Context {
    /// All of them, in the order the help shows them.
    pub const ALL: [Self; 5] = [Self::Global, Self::Board, Self::Timeline, Self::Compare, Self::Rank];

    /// The section's name in the key map.
    pub fn name(self) -> &'static str {
        match self {
            Self::Global => "global",
            Self::Board => "board",
            Self::Timeline => "timeline",
            Self::Compare => "compare",
            Self::Rank => "rank",
        }
    }

    /// The section with that name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.name() == name)
    }
}

impl From<View> for Context {
    fn from(view: View) -> Self {
        match view {
            View::Board => Self::Board,
            View::Timeline => Self::Timeline,
            View::Compare => Self::Compare,
            View::Rank => Self::Rank,
        }
    }
}

/// One row of the table: an action, its name in the key map, its words in the help.
#[derive(Debug, Clone, Copy)]
pub struct ActionInfo {
    /// The action.
    pub action: Action,
    /// Where it can be used.
    pub context: Context,
    /// Name in the key map.
    pub name: &'static str,
    /// What it does, for the help.
    pub help: &'static str,
    /// One or two words for the line of hints at the bottom; empty = not hinted at.
    pub hint: &'static str,
}

/// Makes the enum and its table from one list, so that neither can lack an entry.
macro_rules! actions {
    ($($variant:ident, $context:ident, $name:literal, $help:literal, $hint:literal;)*) => {
        /// One thing a person can do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Action {
            $(#[doc = $help] $variant,)*
        }

        /// Every action, in the order the help shows them.
        pub static ACTIONS: &[ActionInfo] = &[
            $(ActionInfo {
                action: Action::$variant,
                context: Context::$context,
                name: $name,
                help: $help,
                hint: $hint,
            },)*
        ];
    };
}

actions! {
    Up, Global, "up", "one row up", "";
    Down, Global, "down", "one row down", "";
    Left, Global, "left", "to the left; Timeline: previous action; Board: fold", "";
    Right, Global, "right", "to the right; Timeline: next action; Board: unfold", "";
    PageUp, Global, "page-up", "one page up", "";
    PageDown, Global, "page-down", "one page down", "";
    Top, Global, "top", "to the first row", "";
    Bottom, Global, "bottom", "to the last row", "";
    Open, Global, "open", "open the Timeline of what is selected (Board: of the best attempt)", "timeline";
    Back, Global, "back", "back one screen; never leaves the program", "";
    Close, Global, "close", "back one screen; on the Board: leave the program", "back";
    Quit, Global, "quit", "leave the program", "";
    Help, Global, "help", "this list of keys", "keys";
    Files, Global, "files", "files read, files not understood and why", "files";
    ViewBoard, Global, "view-board", "go to the Board", "";
    ViewTimeline, Global, "view-timeline", "go to the Timeline", "";
    ViewCompare, Global, "view-compare", "go to Compare", "";
    ViewRank, Global, "view-rank", "go to Rank", "";
    Theme, Global, "theme", "switch between the dark and the light theme", "";

    Sort, Board, "sort", "sort by the next column", "sort";
    SortReverse, Board, "sort-reverse", "turn the order round", "";
    Filter, Board, "filter", "show only issues that contain these words", "filter";
    Fold, Board, "fold", "show or hide the attempts of an issue", "attempts";
    FoldAll, Board, "fold-all", "show or hide the attempts of all issues", "";
    PatchesOnly, Board, "patches-only", "show or hide issues with candidate patches but no run", "";
    BoardCompare, Board, "compare", "compare the candidates of the issue", "compare";
    BoardRank, Board, "rank", "rank the attempts at the issue", "rank";
    BoardExport, Board, "export", "export the chosen patch of every issue as predictions", "";

    NextDrop, Timeline, "next-drop", "to the next drop of the reward", "next drop";
    PreviousDrop, Timeline, "previous-drop", "to the previous drop", "";
    LargestDrop, Timeline, "largest-drop", "to the largest drop", "largest";
    NextError, Timeline, "next-error", "to the next action whose observation is an error", "";
    PreviousError, Timeline, "previous-error", "to the previous error", "";
    PreviousAttempt, Timeline, "previous-attempt", "to the previous attempt (run)", "";
    NextAttempt, Timeline, "next-attempt", "to the next attempt (run)", "run";
    Focus, Timeline, "focus", "j and k move in the list, or scroll the detail", "list/detail";
    NextTab, Timeline, "next-tab", "next tab of the detail", "tab";
    PreviousTab, Timeline, "previous-tab", "previous tab of the detail", "";
    TabAction, Timeline, "tab-action", "detail: what the agent wrote and did", "";
    TabObservation, Timeline, "tab-observation", "detail: what the environment answered", "";
    TabPatch, Timeline, "tab-patch", "detail: the attempt's candidate patch", "";
    TabInput, Timeline, "tab-input", "detail: exactly what the critic read, and the token of the value", "critic's input";
    TabRun, Timeline, "tab-run", "detail: the run, its task, its file and every remark", "";
    TabRaw, Timeline, "tab-raw", "detail: the raw records of the action and its observations", "";
    Zoom, Timeline, "zoom", "the detail alone on the whole screen", "zoom";
    TimelineCompare, Timeline, "compare", "compare the candidates of the issue", "compare";
    TimelineRank, Timeline, "rank", "rank the attempts at the issue", "rank";

    NextFile, Compare, "next-file", "all columns to the next file", "file";
    PreviousFile, Compare, "previous-file", "all columns to the previous file", "";
    NextHunk, Compare, "next-hunk", "the selected column to its next hunk", "hunk";
    PreviousHunk, Compare, "previous-hunk", "the selected column to its previous hunk", "";
    ScrollTogether, Compare, "scroll-together", "scroll all columns together, or only the selected one", "together";
    Matrix, Compare, "matrix", "show or hide which candidate touches which file", "files";
    ComparePreviousIssue, Compare, "previous-issue", "to the previous issue", "";
    CompareNextIssue, Compare, "next-issue", "to the next issue", "issue";
    CompareRank, Compare, "rank", "rank the attempts at the issue", "rank";

    MoveUp, Rank, "move-up", "move the attempt one place up", "move";
    MoveDown, Rank, "move-down", "move the attempt one place down", "";
    Veto, Rank, "veto", "never submit this attempt (asks why), or allow it again", "veto";
    Undo, Rank, "undo", "undo the last move or veto on this issue", "undo";
    Redo, Rank, "redo", "do it again", "";
    Export, Rank, "export", "export the chosen patch of every issue as predictions", "export";
    RankPreviousIssue, Rank, "previous-issue", "to the previous issue", "";
    RankNextIssue, Rank, "next-issue", "to the next issue", "issue";
    RankCompare, Rank, "compare", "compare the candidates of the issue", "compare";
}

impl Action {
    /// Its row of the table.
    pub fn info(self) -> &'static ActionInfo {
        // The table is made from the same list as the enum, in the same order.
        &ACTIONS[self as usize]
    }

    /// The action of that name in that section of the key map.
    pub fn by_name(context: Context, name: &str) -> Option<Self> {
        ACTIONS.iter().find(|i| i.context == context && i.name == name).map(|i| i.action)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_finds_its_own_row_by_number_and_by_name() {
        for info in ACTIONS {
            assert_eq!(info.action.info().action, info.action);
            assert_eq!(Action::by_name(info.context, info.name), Some(info.action), "{}", info.name);
            assert!(!info.help.is_empty(), "{} has no words in the help", info.name);
        }
    }

    #[test]
    fn every_context_has_a_name_that_reads_back() {
        for context in Context::ALL {
            assert_eq!(Context::by_name(context.name()), Some(context));
            assert!(ACTIONS.iter().any(|i| i.context == context));
        }
    }
}
