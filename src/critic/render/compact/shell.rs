//! Shell commands (and the commands of agents that look like them) reduced to a kind and a file.

use super::call::Kind;

/// What a command line does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// The weightiest thing one of its parts does.
    pub kind: Kind,
    /// The first file name in it (for a redirection: the file written).
    pub path: Option<String>,
    /// It reads a part of a file.
    pub partial: bool,
}

/// File name endings that make a word a path.
const ENDINGS: [&str; 34] = [
    "py", "pyi", "js", "jsx", "mjs", "ts", "tsx", "java", "kt", "c", "h", "cpp", "hpp", "cc", "go", "rs", "rb", "php",
    "vue", "css", "scss", "html", "md", "rst", "txt", "json", "toml", "cfg", "ini", "yml", "yaml", "xml", "sh", "lock",
];

/// Ending of a path, lower-case, if it is a known one.
pub fn ending(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let (stem, end) = name.rsplit_once('.')?;
    if stem.is_empty() {
        return None;
    }
    ENDINGS.iter().find(|e| e.eq_ignore_ascii_case(end)).copied()
}

/// The first word that looks like a file.
pub fn find_path(text: &str) -> Option<String> {
    let head: String = text.chars().take(2000).collect();
    head.split(|c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | ')' | ',' | ';' | '=' | '<' | '>'))
        .map(|word| word.split("::").next().unwrap_or(word).split('#').next().unwrap_or(word))
        .map(|word| word.trim_matches([':', '[', ']', '{', '}', '\\']))
        .find(|word| ending(word).is_some() && !word.starts_with("http") && !word.starts_with('*'))
        .map(str::to_owned)
}

/// Reduces a command line.
pub fn classify(command: &str) -> Command {
    let (line, heredoc) = without_heredoc(command);
    let written = redirection(&line);
    let mut kind = None;
    for part in line.split(['\n', ';', '|', '&']) {
        let found = part_kind(part.trim(), heredoc);
        kind = match (kind, found) {
            (None, found) => found,
            (Some(old), Some(new)) if weight(new) > weight(old) => Some(new),
            (old, _) => old,
        };
    }
    if line.contains("COMPLETE_TASK_AND_SUBMIT") {
        kind = Some(Kind::Submit);
    } else if written.as_deref().is_some_and(|p| !p.starts_with("/dev/"))
        && matches!(kind, None | Some(Kind::View | Kind::Other | Kind::Talk))
    {
        kind = Some(Kind::Create);
    }
    let kind = kind.unwrap_or(Kind::Other);
    let path = if kind == Kind::Create { written } else { None }.or_else(|| find_path(&line));
    let partial = ["sed -n", "head", "tail", "grep"].iter().any(|w| line.contains(w));
    Command { kind, path, partial }
}

/// The command without the bodies of its here-documents, and whether it had one.
fn without_heredoc(command: &str) -> (String, bool) {
    let mut kept = String::new();
    let mut until: Option<String> = None;
    let mut any = false;
    for line in command.lines() {
        if let Some(end) = &until {
            if line.trim() == end.as_str() {
                until = None;
            }
            continue;
        }
        kept.push_str(line);
        kept.push('\n');
        // SWE-agent's `edit 1:2` ends with its own word.
        let edit = line.split_whitespace().next() == Some("edit") && command.contains("end_of_edit");
        if edit {
            until = Some("end_of_edit".to_owned());
            any = true;
        } else if let Some((_, rest)) = line.split_once("<<")
            && !rest.starts_with('<')
        {
            let word = rest.trim_start_matches('-').trim_start();
            let word = word.split(|c: char| c.is_whitespace() || matches!(c, '>' | '|' | ')' | ';')).next();
            let word = word.unwrap_or("").trim_matches(['\'', '"']).to_owned();
            if !word.is_empty() {
                until = Some(word);
                any = true;
            }
        }
    }
    (kept, any)
}

/// The file a `>` or `>>` writes.
fn redirection(line: &str) -> Option<String> {
    let at = line.find("> ").or_else(|| line.find('>'))?;
    let before = line.get(..at).unwrap_or("");
    if before.ends_with(['2', '-', '=', '&']) {
        return None;
    }
    let rest = line.get(at..).unwrap_or("").trim_start_matches('>').trim_start();
    let word = rest.split(|c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|')).next()?;
    (!word.is_empty()).then(|| word.trim_matches(['\'', '"']).to_owned())
}

/// Which of two kinds in one command line names the whole.
fn weight(kind: Kind) -> u8 {
    match kind {
        Kind::Submit => 12,
        Kind::Reject => 11,
        Kind::Edit => 10,
        Kind::Create => 9,
        Kind::Test => 8,
        Kind::Run => 7,
        Kind::Undo => 6,
        Kind::Delete => 5,
        Kind::Install => 4,
        Kind::Git => 3,
        Kind::Search => 2,
        Kind::View => 1,
        Kind::Talk | Kind::Think | Kind::Plan | Kind::Other => 0,
    }
}

/// Kind of one simple command.
fn part_kind(part: &str, heredoc: bool) -> Option<Kind> {
    let mut words = part.split_whitespace().skip_while(|w| {
        w.contains('=') && !w.starts_with('-')
            || matches!(*w, "sudo" | "time" | "timeout" | "xargs" | "env" | "then")
            || w.chars().all(|c| c.is_ascii_digit())
    });
    let program = words.next()?;
    let rest: Vec<&str> = words.collect();
    let has = |w: &str| rest.contains(&w);
    let program = program.rsplit('/').next().unwrap_or(program);
    if is_test(part, program, &rest) {
        return Some(Kind::Test);
    }
    Some(match program {
        "submit" | "exit" | "finish" => Kind::Submit,
        // What SWE-agent writes in the agent's place when a budget ran out.
        "exit_cost" | "exit_context" | "exit_format" | "exit_error" => Kind::Reject,
        "edit" | "insert" | "append" | "apply_patch" | "patch" | "str_replace_editor" => Kind::Edit,
        "sed" | "perl" if rest.iter().any(|w| w.starts_with("-i") || *w == "-pi") => Kind::Edit,
        "sed" | "cat" | "head" | "tail" | "nl" | "less" | "more" | "open" | "goto" | "scroll_down" | "scroll_up"
        | "awk" | "wc" | "od" | "hexdump" | "xxd" => Kind::View,
        "tee" | "create" | "touch" | "cp" | "mv" => Kind::Create,
        "grep" | "egrep" | "rg" | "ag" | "ack" | "find" | "ls" | "tree" | "search_file" | "search_dir"
        | "find_file" | "which" | "locate" => Kind::Search,
        "git" if has("checkout") || has("stash") || has("reset") || has("restore") || has("revert") => Kind::Undo,
        "git" if has("grep") => Kind::Search,
        "git" if has("apply") => Kind::Edit,
        "git" => Kind::Git,
        "rm" => Kind::Delete,
        "pip" | "pip3" | "apt" | "apt-get" | "conda" | "npm" | "yarn" | "pnpm" | "poetry" | "uv" => Kind::Install,
        "python" | "python3" | "python2" | "ipython" if has("pip") => Kind::Install,
        "python" | "python3" | "python2" | "ipython" | "node" | "java" | "ruby" | "go" | "cargo" | "npx" | "tsc"
        | "make" | "mvn" | "mvnw" | "gradle" | "gradlew" | "bash" | "sh" | "javac" | "bazel" | "ts-node" => Kind::Run,
        _ if matches!(ending(program), Some("sh" | "py")) => Kind::Run,
        "echo" | "printf" | "cd" | "export" | "source" | "true" | "pwd" | "sleep" | "set" | "EOF" => return None,
        _ if heredoc => return None,
        _ => Kind::Other,
    })
}

/// Does a simple command run tests?
fn is_test(part: &str, program: &str, rest: &[&str]) -> bool {
    const RUNNERS: [&str; 9] = ["pytest", "py.test", "tox", "nosetests", "jest", "mocha", "karma", "vitest", "ctest"];
    if RUNNERS.contains(&program) || matches!(program, "runtests.py" | "runtests" | "test.sh") {
        return true;
    }
    let mentions = |w: &str| rest.contains(&w);
    let runner = rest.iter().take(4).any(|w| {
        let last = w.rsplit('/').next().unwrap_or(w);
        RUNNERS.contains(&last) || matches!(last, "unittest" | "runtests.py" | "runtests")
    });
    match program {
        "python" | "python3" | "python2" | "conda" | "coverage" | "npx" | "node" | "poetry" | "uv" => {
            runner || part.contains("manage.py test") || part.contains("bin/test") || part.contains("setup.py test")
        }
        "test" => part.contains("bin/test"),
        "manage.py" => mentions("test"),
        "npm" | "yarn" | "pnpm" | "mvn" | "mvnw" | "gradle" | "gradlew" | "bazel" | "go" | "cargo" | "make"
        | "rake" => {
            mentions("test")
                || mentions("t")
                || mentions("verify")
                || part.contains("test:")
                || part.contains(" -Dtest")
        }
        _ => false,
    }
}
