//! Where things are on this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The program's folders. They may not exist yet: whoever writes makes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dirs {
    /// What the user writes: settings, critic profiles.
    pub config: PathBuf,
    /// What the program writes and would like to keep: the log.
    pub state: PathBuf,
    /// What may be deleted at any time.
    pub cache: PathBuf,
}

impl Dirs {
    /// The folders of this user by the conventions of the system. Each can be set by itself with
    /// `TRAJSCOPE_CONFIG_DIR`, `TRAJSCOPE_STATE_DIR` and `TRAJSCOPE_CACHE_DIR`. `None` if a folder is not set and the
    /// user has no home.
    pub fn find() -> Option<Self> {
        Self::from(|name| std::env::var_os(name), system_dirs().as_ref())
    }

    fn from(var: impl Fn(&str) -> Option<OsString>, system: Option<&Self>) -> Option<Self> {
        // An empty variable is an unset one.
        let set = |name: &str| var(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        Some(Self {
            config: set("TRAJSCOPE_CONFIG_DIR").or_else(|| system.map(|dirs| dirs.config.clone()))?,
            state: set("TRAJSCOPE_STATE_DIR").or_else(|| system.map(|dirs| dirs.state.clone()))?,
            cache: set("TRAJSCOPE_CACHE_DIR").or_else(|| system.map(|dirs| dirs.cache.clone()))?,
        })
    }

    /// The log of the terminal application.
    pub fn log_file(&self) -> PathBuf {
        self.state.join("trajscope.log")
    }

    /// The user's keys, laid over the built-in ones.
    pub fn keys_file(&self) -> PathBuf {
        self.config.join("keys.toml")
    }

    /// Scores kept from earlier runs.
    pub fn scores(&self) -> PathBuf {
        self.cache.join("scores")
    }

    /// Profiles of critics that the user wrote, one TOML file each.
    pub fn critics(&self) -> PathBuf {
        self.config.join("critics")
    }
}

fn system_dirs() -> Option<Dirs> {
    let dirs = directories::ProjectDirs::from("", "", "trajscope")?;
    let state = dirs.state_dir().unwrap_or_else(|| dirs.data_local_dir());
    let owned = Path::to_path_buf;
    Some(Dirs { config: owned(dirs.config_dir()), state: owned(state), cache: owned(dirs.cache_dir()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirs(at: &str) -> Dirs {
        let at = Path::new(at);
        Dirs { config: at.join("c"), state: at.join("s"), cache: at.join("x") }
    }

    #[test]
    fn each_folder_can_be_set_by_itself() {
        let var = |name: &str| (name == "TRAJSCOPE_STATE_DIR").then(|| OsString::from("/elsewhere"));
        let found = Dirs::from(var, Some(&dirs("/home"))).unwrap();
        assert_eq!(found, Dirs { state: "/elsewhere".into(), ..dirs("/home") });
        assert_eq!(found.log_file(), Path::new("/elsewhere/trajscope.log"));
        assert_eq!(found.critics(), Path::new("/home/c/critics"));
        assert_eq!(found.keys_file(), Path::new("/home/c/keys.toml"));
        assert_eq!(found.scores(), Path::new("/home/x/scores"));
    }

    #[test]
    fn an_empty_variable_is_unset() {
        assert_eq!(Dirs::from(|_| Some(OsString::new()), Some(&dirs("/home"))), Some(dirs("/home")));
        assert_eq!(Dirs::from(|_| None, None), None);
    }

    #[test]
    fn without_a_home_the_variables_are_enough() {
        let var = |name: &str| Some(OsString::from(format!("/{}", name.to_lowercase())));
        assert_eq!(Dirs::from(var, None).unwrap().cache, Path::new("/trajscope_cache_dir"));
    }
}
