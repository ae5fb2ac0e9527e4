//! Fenced blocks.

/// A fenced block that is closed.
struct Fence<'a> {
    language: &'a str,
    body: &'a str,
}

/// The last fenced block of any language.
pub fn last_fence(text: &str) -> Option<&str> {
    fences(text).last().map(|f| f.body)
}

/// The last fenced block that is meant for a shell.
pub fn last_shell(text: &str) -> Option<&str> {
    fences(text).into_iter().rev().find(|f| is_shell(f.language)).map(|f| f.body)
}

fn is_shell(language: &str) -> bool {
    matches!(language, "bash" | "sh" | "shell" | "zsh" | "console" | "mswea_bash_command" | "execute_bash")
}

/// Fenced blocks; one that is not closed does not count.
fn fences(text: &str) -> Vec<Fence<'_>> {
    let mut found = Vec::new();
    let mut open: Option<(&str, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if let Some(language) = trimmed.strip_prefix("```") {
            open = match open {
                Some((opened, start)) if language.is_empty() => {
                    let body = text.get(start..at).unwrap_or_default();
                    found.push(Fence { language: opened, body: body.strip_suffix('\n').unwrap_or(body) });
                    None
                }
                // A fence with a language inside an open one belongs to the body.
                Some(open) => Some(open),
                None => Some((language, at + line.len())),
            };
        }
        at += line.len();
    }
    found
}
