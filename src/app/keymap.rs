//! The key map: a TOML table from actions to keys. One table for dispatch, for the help and for the hints.

use std::collections::BTreeMap;

use super::View;
use super::action::{ACTIONS, Action, Context};
use super::key::KeyInput;

/// The keys built into the program.
const BUILTIN: &str = include_str!("../../assets/keys.toml");

/// Keys by action.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keymap {
    keys: BTreeMap<Action, Vec<KeyInput>>,
}

/// One row of the help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelpRow {
    /// Section it stands in.
    pub context: Context,
    /// The keys, as written: `"n"`, `"k  up"`.
    pub keys: String,
    /// What they do.
    pub help: &'static str,
}

impl Keymap {
    /// The built-in keys.
    ///
    /// # Errors
    /// One line if the built-in table is faulty: a defect that a test of this module finds first.
    pub fn builtin() -> Result<Self, String> {
        let mut map = Self::default();
        map.merge(BUILTIN, "assets/keys.toml")?;
        match ACTIONS.iter().find(|info| map.keys(info.action).is_empty()) {
            Some(info) => Err(format!("assets/keys.toml: [{}] {} has no key", info.context.name(), info.name)),
            None => Ok(map),
        }
    }

    /// The built-in keys with a person's own laid over them.
    ///
    /// # Errors
    /// One line naming `origin`, the section and the row, and what was expected: TOML that cannot be read, an unknown
    /// section, action or key, or one key for two actions.
    pub fn with_user(text: &str, origin: &str) -> Result<Self, String> {
        let mut map = Self::builtin()?;
        map.merge(text, origin)?;
        Ok(map)
    }

    /// What a key does on a screen.
    pub fn action(&self, view: View, key: KeyInput) -> Option<Action> {
        let here = Context::from(view);
        let usable = |action: &Action| matches!(action.info().context, c if c == here || c == Context::Global);
        self.keys.iter().find(|(action, keys)| usable(action) && keys.contains(&key)).map(|(action, _)| *action)
    }

    /// The keys of an action; empty if a person took them away.
    pub fn keys(&self, action: Action) -> &[KeyInput] {
        self.keys.get(&action).map_or(&[], Vec::as_slice)
    }

    /// The rows of the help for a screen: its own actions first, then those that work everywhere. Actions without
    /// a key are left out.
    pub fn help(&self, view: View) -> Vec<HelpRow> {
        let here = Context::from(view);
        let section = |context: Context| ACTIONS.iter().filter(move |info| info.context == context);
        let row = |info: &super::action::ActionInfo| {
            let keys: Vec<String> = self.keys(info.action).iter().map(ToString::to_string).collect();
            (!keys.is_empty()).then(|| HelpRow { context: info.context, keys: keys.join("  "), help: info.help })
        };
        section(here).chain(section(Context::Global)).filter_map(row).collect()
    }

    /// Key and word for the line of hints on a screen.
    pub fn hints(&self, view: View) -> Vec<(String, &'static str)> {
        let here = Context::from(view);
        let section = |context: Context| ACTIONS.iter().filter(move |info| info.context == context);
        let hint = |info: &super::action::ActionInfo| {
            let key = self.keys(info.action).first()?;
            (!info.hint.is_empty()).then(|| (key.to_string(), info.hint))
        };
        // The key that explains all others is never the one that does not fit.
        let first = std::iter::once(Action::Help.info());
        let others = section(here).chain(section(Context::Global)).filter(|info| info.action != Action::Help);
        first.chain(others).filter_map(hint).collect()
    }

    fn merge(&mut self, text: &str, origin: &str) -> Result<(), String> {
        let table: BTreeMap<String, BTreeMap<String, Vec<String>>> =
            toml::from_str(text).map_err(|e| format!("{origin}: {}", e.to_string().replace('\n', " ").trim()))?;
        for (section, rows) in &table {
            let context = Context::by_name(section).ok_or_else(|| {
                let names = Context::ALL.map(Context::name).join(", ");
                format!("{origin}: section [{section}] is unknown: expected one of {names}")
            })?;
            for (name, keys) in rows {
                let action = Action::by_name(context, name).ok_or_else(|| {
                    format!("{origin}: [{section}] {name} is not an action; press ? on the screen for their list")
                })?;
                let keys: Result<Vec<KeyInput>, String> = keys.iter().map(|k| k.parse()).collect();
                let keys = keys.map_err(|e| format!("{origin}: [{section}] {name}: {e}"))?;
                self.keys.insert(action, keys);
            }
        }
        self.check(origin)
    }

    /// One key for two actions on the same screen would make one of them unreachable.
    fn check(&self, origin: &str) -> Result<(), String> {
        let mut taken: BTreeMap<(Context, KeyInput), Action> = BTreeMap::new();
        for (&action, keys) in &self.keys {
            let contexts: Vec<Context> = match action.info().context {
                Context::Global => Context::ALL.to_vec(),
                one => vec![one],
            };
            for context in contexts {
                for &key in keys {
                    if let Some(other) = taken.insert((context, key), action)
                        && other != action
                    {
                        let (a, b) = (other.info(), action.info());
                        return Err(format!(
                            "{origin}: key {key} stands for both [{}] {} and [{}] {}: give each its own",
                            a.context.name(),
                            a.name,
                            b.context.name(),
                            b.name
                        ));
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_map_gives_every_action_a_key_without_conflict() {
        let map = Keymap::builtin().unwrap();
        for info in ACTIONS {
            let view = match info.context {
                Context::Global | Context::Board => View::Board,
                Context::Timeline => View::Timeline,
                Context::Compare => View::Compare,
                Context::Rank => View::Rank,
            };
            for &key in map.keys(info.action) {
                assert_eq!(map.action(view, key), Some(info.action), "{key} on {view:?}");
            }
            let keys = map.keys(info.action).iter().map(ToString::to_string).collect::<Vec<_>>().join("  ");
            assert!(map.help(view).iter().any(|r| r.keys == keys && r.help == info.help), "{} not in help", info.name);
        }
    }

    #[test]
    fn a_persons_rows_replace_the_built_in_ones() {
        let map = Keymap::with_user("[rank]\nveto = [\"v\"]\n[board]\nsort = []\n", "keys.toml").unwrap();
        assert_eq!(map.action(View::Rank, KeyInput::char('v')), Some(Action::Veto));
        assert_eq!(map.action(View::Rank, KeyInput::char('x')), None);
        assert_eq!(map.action(View::Board, KeyInput::char('s')), None);
        assert!(!map.help(View::Board).iter().any(|r| r.help == Action::Sort.info().help));
    }

    #[test]
    fn a_faulty_map_is_refused_in_one_line_that_says_where() {
        let cases = [
            ("[rank]\nveto = [\"u\"]\n", "key u stands for both [rank] veto and [rank] undo"),
            ("[rank]\nveto = [\"q\"]\n", "stands for both [global] close and [rank] veto"),
            ("[rank]\nvetoo = [\"v\"]\n", "[rank] vetoo is not an action"),
            ("[ranking]\nveto = [\"v\"]\n", "section [ranking] is unknown"),
            ("[rank]\nveto = [\"meta-v\"]\n", "[rank] veto: \"meta-v\" is not a key"),
            ("[rank\n", "mine.toml"),
        ];
        for (text, expected) in cases {
            let error = Keymap::with_user(text, "mine.toml").unwrap_err();
            assert!(error.contains(expected), "{error}");
            assert!(error.starts_with("mine.toml") && !error.contains('\n'), "{error}");
        }
    }
}
