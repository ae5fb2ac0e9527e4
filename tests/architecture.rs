//! Keeps the import rules of ARCHITECTURE.md true: reads `src/**` and fails on an import that is not in the table.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Everything below the two drivers.
const LIBRARY: &[&str] =
    &["text", "trajectory", "patch", "formats", "critic", "engine", "rank", "config", "export", "work", "app", "ui"];

/// Module, and the crate modules it may name. A module may always name itself.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("text", &[]),
    ("trajectory", &["patch"]),
    ("patch", &["text"]),
    ("formats", &["trajectory", "text"]),
    ("critic", &["trajectory"]),
    ("engine", &["critic", "trajectory"]),
    ("rank", &["trajectory", "critic", "patch"]),
    ("config", &[]),
    ("export", &["trajectory", "critic", "rank", "patch"]),
    ("work", &["formats", "critic", "trajectory", "text"]),
    ("app", &["trajectory", "critic", "rank", "patch", "config", "text"]),
    ("ui", &["app", "trajectory", "critic", "rank", "patch", "config", "text"]),
    ("term", LIBRARY),
    ("cli", LIBRARY),
    ("testing", &[]),
];

/// External crates that only some modules may name, and why.
const ONLY_IN: &[(&str, &[&str], &str)] = &[
    ("candle_core", &["engine"], "a score must not depend on which screen asked for it"),
    ("candle_nn", &["engine"], "as candle_core"),
    ("candle_transformers", &["engine"], "as candle_core"),
    ("tokenizers", &["engine"], "token positions are the engine's business"),
    ("gemm", &["engine"], "as candle_core"),
    ("safetensors", &["engine"], "as candle_core"),
    ("ratatui", &["ui", "term"], "state and ranking are tested without a terminal"),
    ("crossterm", &["term"], "keys are our own type everywhere else"),
    ("tokio", &["term"], "model code and headless commands are synchronous"),
    ("clap", &["cli"], "what was typed stays in cli"),
];

fn sources() -> Vec<PathBuf> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut found);
    found
}

/// Top module of a source file: `src/ui/board.rs` and `src/ui.rs` are both `ui`.
fn module(path: &Path) -> String {
    let below = path.strip_prefix(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    let first = below.components().next().unwrap().as_os_str().to_string_lossy().into_owned();
    first.trim_end_matches(".rs").to_owned()
}

/// The code of a file: comments dropped, and everything from the unit tests on, which may use any module. A file of
/// tests (`tests.rs`, `cases.rs`, `…_tests.rs`) has no code in this sense.
fn code(path: &Path) -> String {
    let name = path.file_stem().unwrap().to_string_lossy();
    let in_tests = path.components().any(|c| c.as_os_str() == "tests");
    if in_tests || name == "tests" || name == "cases" || name.ends_with("_tests") {
        return String::new();
    }
    let text = std::fs::read_to_string(path).unwrap();
    let tests = ["#[cfg(test)]\nmod ", "#[cfg(test)]\npub(super) mod "];
    let end = tests.iter().filter_map(|t| text.find(t)).min().unwrap_or(text.len());
    let text = &text[..end];
    text.lines().map(|l| l.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// Names that follow `crate::`, also in `use crate::{a::X, b};`.
fn imports(code: &str) -> Vec<String> {
    let word = |s: &str| s.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.push(word(rest));
            continue;
        };
        let (mut depth, mut start) = (1, 0);
        for (i, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                _ => {}
            }
            if depth == 0 || (depth == 1 && c == ',') {
                found.push(word(group[start..i].trim()));
                start = i + 1;
            }
            if depth == 0 {
                break;
            }
        }
    }
    found.retain(|name| !name.is_empty());
    found
}

#[test]
fn every_module_is_in_the_table_and_imports_only_what_it_may() {
    let table: BTreeMap<&str, &[&str]> = MAY_IMPORT.iter().copied().collect();
    let mut broken = Vec::new();
    for path in sources() {
        let name = module(&path);
        if name == "lib" || name == "main" {
            continue;
        }
        let Some(allowed) = table.get(name.as_str()) else {
            broken.push(format!("{}: module `{name}` is not in the table of tests/architecture.rs", path.display()));
            continue;
        };
        let may = |import: &str| import == name || allowed.contains(&import) || (name == "cli" && import == "term");
        for import in imports(&code(&path)) {
            if table.contains_key(import.as_str()) && !may(&import) {
                broken.push(format!("{}: `{name}` may not import `{import}`", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn crates_stay_in_their_modules() {
    let mut broken = Vec::new();
    for path in sources() {
        let name = module(&path);
        let code = code(&path);
        for (krate, allowed, why) in ONLY_IN {
            let named = code.contains(&format!("{krate}::")) || code.contains(&format!("use {krate};"));
            if named && name != "main" && !allowed.contains(&name.as_str()) {
                broken.push(format!("{}: `{krate}` belongs in {allowed:?}: {why}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn no_file_is_longer_than_800_lines() {
    let long: Vec<String> = sources()
        .iter()
        .map(|p| (p, std::fs::read_to_string(p).unwrap().lines().count()))
        .filter(|(_, lines)| *lines > 800)
        .map(|(p, lines)| format!("{}: {lines} lines", p.display()))
        .collect();
    assert!(long.is_empty(), "split these: {}", long.join("\n"));
}

#[test]
fn the_reader_of_imports_reads_groups() {
    let found = imports("use crate::{a::X, b::{C, D}, e};\nlet x = crate::f::g();");
    assert_eq!(found, ["a", "b", "e", "f"]);
}
