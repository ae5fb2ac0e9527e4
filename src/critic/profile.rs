//! A profile says everything a number of a critic depends on besides the weights: which text is rendered, where in
//! it a value is read, what is done to the value, and what it means. Profiles are TOML (`assets/critics/README.md`).

use std::fmt;
use std::path::Path;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::render::{CHATML_END, ChatMlOptions, CompactOptions};

/// How a critic is read. See `assets/critics/README.md` for every key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Name used on the command line and in JSON: lower-case letters, digits, `-` and `.`.
    pub id: String,
    /// Name for a person.
    pub name: String,
    /// Which critic it is for and where its facts come from: a sentence or two.
    pub description: String,
    /// What is done to the head's raw output.
    #[serde(default)]
    pub activation: Activation,
    /// How the rewards of the actions become the trajectory's score.
    #[serde(default)]
    pub aggregate: Aggregate,
    /// Most tokens the critic may read at once.
    pub max_tokens: usize,
    /// What is done with a trajectory that is longer.
    #[serde(default)]
    pub cut: CutPolicy,
    /// A fall between neighbouring rewards at least this large counts as a drop unless the user says otherwise.
    pub drop_threshold: f64,
    /// The text.
    pub render: Render,
    /// The place of the values in it.
    pub positions: Positions,
    /// The output of the head that is read.
    #[serde(default)]
    pub head: Head,
    /// The meaning of the number.
    pub scale: Scale,
}

/// `[render]`: the text a critic gets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Render {
    /// Which renderer.
    pub kind: RenderKind,
    /// What the critic reads, one sentence for the screen.
    pub reads: String,
    /// Whose words the fixed parts of the text are.
    pub wording: Wording,
    /// Options of `kind = "chatml-openhands"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chatml: Option<ChatMlOptions>,
    /// Options of `kind = "compact"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compact: Option<CompactOptions>,
}

/// The renderers there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RenderKind {
    /// Qwen2.5's chat template over OpenHands' textual form of tool calls: the whole trajectory, word for word.
    ChatmlOpenhands,
    /// A few lines an action, cut to fit a small critic.
    Compact,
}

impl RenderKind {
    /// Every renderer.
    pub const ALL: [Self; 2] = [Self::ChatmlOpenhands, Self::Compact];

    /// The name in a profile.
    pub fn name(self) -> &'static str {
        match self {
            Self::ChatmlOpenhands => "chatml-openhands",
            Self::Compact => "compact",
        }
    }
}

/// Whose words the fixed parts of the rendered text are (a critic trained on other words may score differently).
#[derive(Default, Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wording {
    /// Written for trajscope after the structure of the text the critic was trained with.
    #[default]
    Own,
    /// The text of the critic's authors, imported by the user.
    Authors,
    /// The text this very critic was trained with.
    Trained,
}

impl Wording {
    /// For the screen, after "made with".
    pub fn describe(self) -> &'static str {
        match self {
            Self::Own => "own wording of the tool text",
            Self::Authors => "the authors' tool text",
            Self::Trained => "the text it was trained with",
        }
    }
}

/// `[positions]`: where values are read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Positions {
    /// The token that closes every action in the rendered text; the value is read there. It must be one token of
    /// the critic's tokenizer.
    pub token: String,
    /// Where that is, in words for the screen.
    pub note: String,
}

/// `[head]`: which of the head's outputs is the reward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// 0-based index of the output (row of `score.weight`).
    pub index: usize,
}

/// What is done to the head's raw output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activation {
    /// Nothing: the number is the regression's output and may leave its nominal range.
    #[default]
    Identity,
    /// The logistic function of the output.
    Sigmoid,
    /// The share of the output among all outputs of the head.
    Softmax,
}

impl Activation {
    /// The value of output `index` among the head's raw `outputs`; `None` if there is no such output or the result
    /// is not a finite number.
    pub fn apply(self, outputs: &[f64], index: usize) -> Option<f64> {
        let raw = *outputs.get(index)?;
        let value = match self {
            Self::Identity => raw,
            Self::Sigmoid => 1.0 / (1.0 + (-raw).exp()),
            Self::Softmax => {
                let max = outputs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                (raw - max).exp() / outputs.iter().map(|x| (x - max).exp()).sum::<f64>()
            }
        };
        (raw.is_finite() && value.is_finite()).then_some(value)
    }

    /// One or two words for the screen.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Identity => "raw output",
            Self::Sigmoid => "sigmoid of the output",
            Self::Softmax => "softmax over the outputs",
        }
    }
}

/// How the rewards of the actions become the trajectory's score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregate {
    /// The last action's reward. If that one is unscored, so is the trajectory.
    #[default]
    Last,
    /// The mean of the rewards there are.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

impl Aggregate {
    /// The trajectory's score in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Last => "the last action's reward",
            Self::Mean => "the mean of the rewards",
            Self::Min => "the smallest reward",
            Self::Max => "the largest reward",
        }
    }
}

/// What is done with a trajectory longer than `max_tokens`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutPolicy {
    /// Actions of the prefix that fits are scored exactly; for the later ones the pinned segments stay and the
    /// oldest exchanges are dropped whole until the rest fits.
    #[default]
    OldestTurns,
    /// Only the prefix that fits is read; later actions stay unscored.
    Prefix,
}

impl CutPolicy {
    /// The policy in words, for the note on a cut.
    pub fn describe(self) -> &'static str {
        match self {
            Self::OldestTurns => "the oldest exchanges are left out, system prompt and task stay",
            Self::Prefix => "only the beginning is read, later actions stay unscored",
        }
    }
}

/// `[scale]`: what the number means.
#[derive(Default, Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    /// The nominal range `[low, high]`, used for colours and charts only; rewards are never clamped to it.
    pub range: [f64; 2],
    /// Remark on the range.
    pub note: String,
    /// Discount of the training target (`r_t = γ·r_{t+1}`); absent if the critic was not trained that way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// What a number means, one sentence for the screen.
    pub meaning: String,
}

/// Why a profile cannot be used: one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ProfileError {
    /// File (or other origin) of the profile.
    pub origin: String,
    /// 1-based line, if known.
    pub line: Option<usize>,
    /// What was found and what was expected.
    pub message: String,
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": critic profile: {} (keys: assets/critics/README.md)", self.message)
    }
}

/// The profiles that are built in: origin and text.
const BUILTIN: [(&str, &str); 2] = [
    ("assets/critics/openhands-32b.toml", include_str!("../../assets/critics/openhands-32b.toml")),
    ("assets/critics/mini.toml", include_str!("../../assets/critics/mini.toml")),
];

/// A built-in profile that does not parse is a defect of this program, so a test and not the user meets the error.
static PARSED: LazyLock<Vec<Profile>> =
    LazyLock::new(|| BUILTIN.iter().filter_map(|(origin, text)| Profile::parse(text, origin).ok()).collect());

impl Profile {
    /// The profiles shipped in the binary: the OpenHands critic's first, then the embedded critic's.
    pub fn builtin() -> &'static [Self] {
        &PARSED
    }

    /// The built-in profile of that id.
    pub fn by_id(id: &str) -> Option<&'static Self> {
        Self::builtin().iter().find(|p| p.id == id)
    }

    /// Reads a profile from TOML. `origin` is the name shown in errors, usually the file's path.
    ///
    /// # Errors
    /// A syntax error, an unknown or missing key, a value out of its range: with the line where TOML tells it.
    pub fn parse(toml: &str, origin: &str) -> Result<Self, ProfileError> {
        let fail = |line, message| ProfileError { origin: origin.to_owned(), line, message };
        let profile: Self = ::toml::from_str(toml).map_err(|e| {
            let line = e.span().map(|span| line_of(toml, span.start));
            fail(line, one_line(e.message()))
        })?;
        profile.check().map_err(|(key, message)| fail(line_of_key(toml, key), message))?;
        Ok(profile)
    }

    /// Reads a profile from a file.
    ///
    /// # Errors
    /// Those of [`Profile::parse`], and the file cannot be read.
    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        let origin = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, &origin),
            Err(e) => {
                Err(ProfileError { origin, line: None, message: format!("cannot be read: {e}; give a TOML file") })
            }
        }
    }

    /// A text that differs whenever the profile or the renderers differ: part of a critic's fingerprint.
    pub fn fingerprint_text(&self) -> String {
        format!("render {}\n{self:?}", super::render::VERSION)
    }

    /// One line on whose words and which scale: `CriticInfo::note`.
    pub fn note(&self) -> String {
        format!("{}; {}; {}", self.render.wording.describe(), self.activation.describe(), self.scale.note)
    }

    /// What TOML's types cannot say. The error names the key it is about.
    fn check(&self) -> Result<(), (&'static str, String)> {
        let id_ok = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
        if self.id.is_empty() || !self.id.chars().all(id_ok) {
            return Err(("id", format!("id {:?}: expected lower-case letters, digits, '-' and '.'", self.id)));
        }
        if self.max_tokens == 0 {
            return Err(("max_tokens", "max_tokens is 0: expected at least 1".to_owned()));
        }
        if !(self.drop_threshold.is_finite() && self.drop_threshold > 0.0) {
            return Err(("drop_threshold", format!("drop_threshold {}: expected above 0", self.drop_threshold)));
        }
        if self.positions.token.is_empty() {
            return Err(("token", "positions.token is empty: expected the token that closes an action".to_owned()));
        }
        let [low, high] = self.scale.range;
        if !(low.is_finite() && high.is_finite() && low < high) {
            return Err(("range", format!("scale.range [{low}, {high}]: expected [low, high] with low < high")));
        }
        if let Some(gamma) = self.scale.gamma
            && !(gamma > 0.0 && gamma <= 1.0)
        {
            return Err(("gamma", format!("scale.gamma {gamma}: expected above 0 and at most 1")));
        }
        self.check_render()
    }

    /// The options of the renderer named, and of no other, must be there.
    fn check_render(&self) -> Result<(), (&'static str, String)> {
        let given = [
            (RenderKind::ChatmlOpenhands, "chatml", self.render.chatml.is_some()),
            (RenderKind::Compact, "compact", self.render.compact.is_some()),
        ];
        for (kind, table, is_given) in given {
            if is_given != (kind == self.render.kind) {
                let what = if is_given { "is for another kind: remove it" } else { "is missing: add it" };
                let chosen = self.render.kind.name();
                return Err(("kind", format!("render.kind is {chosen:?} and the table [render.{table}] {what}")));
            }
        }
        if self.render.kind == RenderKind::ChatmlOpenhands && self.positions.token != CHATML_END {
            let token = &self.positions.token;
            return Err((
                "token",
                format!("positions.token {token:?}: this render.kind closes turns with {CHATML_END:?}"),
            ));
        }
        Ok(())
    }
}

/// 1-based line of a byte offset.
fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|b| *b == b'\n').count() + 1
}

/// 1-based line of the first `key = …`.
fn line_of_key(text: &str, key: &str) -> Option<usize> {
    let is_it = |line: &str| line.trim_start().strip_prefix(key).is_some_and(|r| r.trim_start().starts_with('='));
    text.lines().position(is_it).map(|i| i + 1)
}

/// TOML's messages may have several lines.
fn one_line(message: &str) -> String {
    message.split('\n').map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join("; ")
}
