//! Reading a profile and refusing a wrong one: TOML with its lines, the suffix file, the checks TOML cannot make.

use std::fmt;
use std::path::Path;
use std::sync::LazyLock;

use super::{Profile, RenderKind};
use crate::critic::render::{self, CHATML_END};

/// The key a profile is refused for, and why.
type Refusal = (&'static str, String);

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
    ("assets/critics/openhands-32b.toml", include_str!("../../../assets/critics/openhands-32b.toml")),
    ("assets/critic-mini/profile.toml", include_str!("../../../assets/critic-mini/profile.toml")),
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
    /// `suffix_file`, which only [`Profile::read`] can follow.
    pub fn parse(toml: &str, origin: &str) -> Result<Self, ProfileError> {
        Self::from_toml(toml, origin, None)
    }

    /// Reads a profile from a file; `suffix_file` is looked for beside it.
    ///
    /// # Errors
    /// Those of [`Profile::parse`], and a file that cannot be read.
    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        let origin = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::from_toml(&text, &origin, path.parent()),
            Err(e) => {
                Err(ProfileError { origin, line: None, message: format!("cannot be read: {e}; give a TOML file") })
            }
        }
    }

    fn from_toml(toml: &str, origin: &str, folder: Option<&Path>) -> Result<Self, ProfileError> {
        let fail = |line, message| ProfileError { origin: origin.to_owned(), line, message };
        let mut profile: Self = ::toml::from_str(toml).map_err(|e| {
            let line = e.span().map(|span| line_of(toml, span.start));
            fail(line, one_line(e.message()))
        })?;
        profile
            .read_suffix(folder)
            .and_then(|()| profile.check())
            .map_err(|(key, message)| fail(line_of_key(toml, key), message))?;
        Ok(profile)
    }

    /// Replaces `suffix_file` by the text of that file.
    fn read_suffix(&mut self, folder: Option<&Path>) -> Result<(), Refusal> {
        let Some(options) = &mut self.render.chatml else { return Ok(()) };
        let Some(file) = options.tools.suffix_file.take() else {
            let message = "render.chatml.tools: expected suffix (text) or suffix_file (name of a file)";
            return if options.tools.suffix.is_empty() { Err(("open", message.to_owned())) } else { Ok(()) };
        };
        if !options.tools.suffix.is_empty() {
            return Err(("suffix_file", "suffix and suffix_file are both given: remove one".to_owned()));
        }
        let Some(folder) = folder else {
            return Err(("suffix_file", format!("suffix_file {file:?}: only a profile on disk can name a file")));
        };
        options.tools.suffix = std::fs::read_to_string(folder.join(&file))
            .map_err(|e| ("suffix_file", format!("suffix_file {file:?} beside the profile: {e}")))?;
        Ok(())
    }

    /// A text that differs whenever the profile or the renderers differ: part of a critic's fingerprint.
    pub fn fingerprint_text(&self) -> String {
        format!("render {}\n{self:?}", render::VERSION)
    }

    /// One line on whose words and which scale: `CriticInfo::note`.
    pub fn note(&self) -> String {
        format!("{}; {}; {}", self.render.wording.describe(), self.activation.describe(), self.scale.note)
    }

    /// What TOML's types cannot say. The error names the key it is about.
    fn check(&self) -> Result<(), Refusal> {
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
        self.check_head()?;
        self.check_render()
    }

    /// Answers must differ, and the one that is read must be among them.
    fn check_head(&self) -> Result<(), Refusal> {
        let answers = &self.head.tokens;
        let texts: Vec<&String> = answers.iter().flat_map(super::Answer::spellings).collect();
        if answers.iter().any(|a| a.spellings().is_empty()) || texts.iter().any(|text| text.is_empty()) {
            return Err(("tokens", "head.tokens: an answer is empty: expected the text of one token".to_owned()));
        }
        if let Some(twice) = texts.iter().enumerate().find(|(i, text)| texts[..*i].contains(text)) {
            return Err(("tokens", format!("head.tokens: {:?} is there twice: every answer has its own", twice.1)));
        }
        if !answers.is_empty() && self.head.index >= answers.len() {
            let (index, count) = (self.head.index, answers.len());
            return Err(("index", format!("head.index {index}: head.tokens has {count} answers, counted from 0")));
        }
        Ok(())
    }

    /// The options of the renderer named, and of no other, must be there.
    fn check_render(&self) -> Result<(), Refusal> {
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

/// TOML's messages may have several lines and name Rust's types.
fn one_line(message: &str) -> String {
    let line = message.split('\n').map(str::trim).filter(|l| !l.is_empty()).collect::<Vec<_>>().join("; ");
    line.replace("expected usize", "expected a whole number")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENHANDS: &str = BUILTIN[0].1;

    /// The error of the OpenHands profile with one text replaced.
    fn error(from: &str, to: &str) -> String {
        assert!(OPENHANDS.contains(from), "{from}");
        Profile::parse(&OPENHANDS.replacen(from, to, 1), "my.toml").unwrap_err().to_string()
    }

    #[test]
    fn every_builtin_profile_parses_under_its_own_id() {
        for (origin, text) in BUILTIN {
            let profile = Profile::parse(text, origin).unwrap();
            assert_eq!(Profile::by_id(&profile.id), Some(&profile), "{origin}");
            // The embedded critic's profile lies with its weights, as in any model folder.
            let own = format!("assets/critics/{}.toml", profile.id);
            assert_eq!(origin, if profile.id == "mini" { "assets/critic-mini/profile.toml" } else { &own });
            let again: Profile = toml::from_str(&toml::to_string(&profile).unwrap()).unwrap();
            assert_eq!(again, profile, "written and read again");
        }
        assert_eq!(Profile::builtin().len(), BUILTIN.len());
        assert_eq!(Profile::by_id("no-such"), None);
    }

    #[test]
    fn every_kind_has_a_builtin_profile() {
        for kind in RenderKind::ALL {
            let name = serde_json::to_string(&kind).unwrap();
            assert_eq!(name, format!("{:?}", kind.name()));
            assert!(Profile::builtin().iter().any(|p| p.render.kind == kind), "{name}");
        }
    }

    #[test]
    fn a_wrong_key_or_value_is_named_with_its_line_and_what_is_expected() {
        let unknown = error("gamma = 0.99", "gama = 0.99");
        let line = OPENHANDS.lines().position(|l| l.starts_with("gamma")).unwrap() + 1;
        assert!(unknown.starts_with(&format!("my.toml:{line}: critic profile: unknown field `gama`")), "{unknown}");
        assert!(unknown.contains("`gamma`") && unknown.contains("assets/critics/README.md"), "{unknown}");
        assert!(!unknown.contains('\n'), "{unknown}");
        for (from, to, expected) in [
            ("activation = \"identity\"", "activation = \"relu\"", "unknown variant `relu`, expected one of"),
            ("max_tokens = 32768", "max_tokens = 0", "expected at least 1"),
            (
                "max_tokens = 32768",
                "max_tokens = -1",
                "my.toml:8: critic profile: invalid value: integer `-1`, expected a whole number",
            ),
            ("max_tokens = 32768\n", "", "missing field `max_tokens`"),
            ("drop_threshold = 0.1", "drop_threshold = 0", "drop_threshold 0: expected above 0"),
            ("drop_threshold = 0.1", "drop_threshold = nan", "expected above 0"),
            ("range = [0.0, 1.0]", "range = [1.0, 0.0]", "low < high"),
            ("gamma = 0.99", "gamma = 1.5", "at most 1"),
            ("id = \"openhands-32b\"", "id = \"Open Hands\"", "my.toml:3: critic profile: id \"Open Hands\""),
            ("token = \"<|im_end|>\"", "token = \"</s>\"", "closes turns with \"<|im_end|>\""),
            ("kind = \"chatml-openhands\"", "kind = \"compact\"", "[render.chatml] is for another kind"),
            ("[render]", "[render", "my.toml:12: critic profile: unclosed table"),
            ("suffix = \"\"\"", "suffix_file = \"a.md\"\nno_more = \"\"\"", "unknown field `no_more`"),
        ] {
            let message = error(from, to);
            assert!(message.contains(expected), "{from} -> {to}: {message}");
            assert!(!message.contains('\n'), "{message}");
        }
    }

    #[test]
    fn the_answers_of_a_language_model_are_texts_or_lists_of_spellings() {
        let with = |head: &str| Profile::parse(&OPENHANDS.replacen("[head]\nindex = 0", head, 1), "my.toml");
        assert!(OPENHANDS.contains("[head]\nindex = 0"));
        let profile = with("[head]\ntokens = [[\"YES\", \" yes\"], \"NO\"]").unwrap();
        let spellings: Vec<_> = profile.head.tokens.iter().map(super::super::Answer::spellings).collect();
        assert_eq!(spellings, [&["YES".to_owned(), " yes".to_owned()][..], &["NO".to_owned()]]);
        assert_eq!(profile.head.index, 0);
        assert_eq!(with(&toml::to_string(&toml::toml! { head = { index = 0 } }).unwrap()).unwrap().head.tokens, []);
        let again: Profile = toml::from_str(&toml::to_string(&profile).unwrap()).unwrap();
        assert_eq!(again, profile);
        for (head, part) in [
            ("[head]\ntokens = [\"YES\", \"\"]", "my.toml:"),
            ("[head]\ntokens = [[]]", "an answer is empty: expected the text of one token"),
            ("[head]\ntokens = [\"A\", [\"B\", \"A\"]]", "\"A\" is there twice"),
            ("[head]\nindex = 2\ntokens = [\"A\", \"B\"]", "head.index 2: head.tokens has 2 answers"),
            ("[head]\ntokens = [1]", "my.toml:79: critic profile: expected a text, or a list of texts"),
        ] {
            let said = with(head).unwrap_err().to_string();
            assert!(said.contains(part) && !said.contains('\n'), "{head}: {said}");
        }
    }

    #[test]
    fn the_suffix_may_stand_in_a_file_beside_the_profile() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        let mut profile = Profile::by_id("openhands-32b").unwrap().clone();
        let options = profile.render.chatml.as_mut().unwrap();
        options.tools.suffix.clear();
        options.tools.suffix_file = Some("tools.md".to_owned());
        let text = toml::to_string(&profile).unwrap();
        std::fs::write(&path, &text).unwrap();

        let missing = Profile::read(&path).unwrap_err();
        assert!(missing.message.contains("suffix_file \"tools.md\" beside the profile"), "{missing}");
        assert!(missing.line.is_some());
        assert!(Profile::parse(&text, "mine.toml").is_err());

        std::fs::write(folder.path().join("tools.md"), "TOOLS {functions}").unwrap();
        let read = Profile::read(&path).unwrap();
        assert_eq!(read.render.chatml.as_ref().unwrap().tools.suffix, "TOOLS {functions}");
        assert_ne!(read.fingerprint_text(), profile.fingerprint_text());
        let unreadable = Profile::read(&folder.path().join("none.toml")).unwrap_err().to_string();
        assert!(unreadable.contains("none.toml: critic profile: cannot be read"), "{unreadable}");
    }
}
