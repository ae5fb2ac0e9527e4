//! A profile says everything a number of a critic depends on besides the weights: which text is rendered, where in
//! it a value is read, what is done to the value, and what it means. Profiles are TOML (`assets/critics/README.md`).

mod read;
mod rules;

pub use read::ProfileError;
pub use rules::{Activation, Aggregate, CutPolicy};

use serde::{Deserialize, Serialize};

use super::render::{ChatMlOptions, CompactOptions};

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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// 0-based index of the output (row of `score.weight`).
    #[serde(default)]
    pub index: usize,
    /// Of a language model: the answers whose probabilities as the next token are the outputs, as logarithms (so
    /// that `softmax` is the share of one answer among them). Empty for every other model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tokens: Vec<Answer>,
}

/// An answer of a language model: one text, or several spellings whose probabilities are added. Each must be one token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a text, or a list of texts, for every answer")]
pub enum Answer {
    /// `"YES"`
    One(String),
    /// `["YES", "Yes"]`
    Spellings(Vec<String>),
}

impl Answer {
    /// Its spellings.
    pub fn spellings(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Spellings(texts) => texts,
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
