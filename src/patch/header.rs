//! The header lines of a diff: paths, quoting, hunk positions.

/// Undoes git's C-style quoting: `"a/t\303\251.py"`. Text without quotes comes back as it is.
pub(super) fn unquote(raw: &str) -> String {
    let Some(inner) = raw.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return raw.to_owned();
    };
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(first @ b'0'..=b'7') => {
                let mut value = u32::from(first - b'0');
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|b| (b'0'..=b'7').contains(b)) else { break };
                    value = value * 8 + u32::from(digit - b'0');
                }
                bytes.push(value as u8);
            }
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b'a') => bytes.push(7),
            Some(b'b') => bytes.push(8),
            Some(b'f') => bytes.push(12),
            Some(b'v') => bytes.push(11),
            Some(other) => bytes.push(other),
            None => bytes.push(b'\\'),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Path of a `--- ` or `+++ ` line, without its prefix; `None` for `/dev/null` and for nothing. A tab ends the path (git writes one
/// after a path with blanks, diff writes one before the time).
pub(super) fn file_path(raw: &str, prefix: &str) -> Option<String> {
    let raw = raw.trim_end_matches('\r');
    let raw = if raw.starts_with('"') { raw.trim_end() } else { raw.split('\t').next().unwrap_or(raw) };
    let path = unquote(raw);
    let stripped = path.strip_prefix(prefix).unwrap_or(&path);
    (path != "/dev/null" && !stripped.is_empty()).then(|| stripped.to_owned())
}

/// Prefix of the old side.
pub(super) const OLD: &str = "a/";
/// Prefix of the new side.
pub(super) const NEW: &str = "b/";

/// Old and new path of `diff --git OLD NEW`, where the line is unambiguous: quoted, or the same path on both sides.
/// Other lines name the paths of everything else (renames, edits).
pub(super) fn git_paths(raw: &str) -> Option<(String, String)> {
    let raw = raw.trim_end_matches('\r');
    if raw.starts_with('"') {
        let close = closing_quote(raw)?;
        let (old, new) = (raw.get(..=close)?, raw.get(close + 1..)?.trim_start());
        return Some((file_path(old, OLD)?, file_path(new, NEW)?));
    }
    let splits = raw.match_indices(' ').filter_map(|(at, _)| Some((raw.get(..at)?, raw.get(at + 1..)?)));
    let mut only = None;
    for (old, new) in splits.take(MAX_SPLITS) {
        let (old, new) = (file_path(old, OLD)?, file_path(new, NEW)?);
        if old == new {
            return Some((old, new));
        }
        only = if only.is_none() { Some((old, new)) } else { None };
    }
    // A single blank leaves one way to read the line.
    if raw.matches(' ').count() == 1 { only } else { None }
}

/// Paths have few blanks; a hostile header line must not cost the square of its length.
const MAX_SPLITS: usize = 64;

fn closing_quote(raw: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in raw.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at),
            _ => {}
        }
    }
    None
}

/// Numbers and rest of `@@ -1,2 +3,4 @@ section`. A missing count is 1.
pub(super) fn hunk_header(line: &str) -> Option<(usize, usize, usize, usize, &str)> {
    let rest = line.strip_prefix("@@ -")?;
    let (old, rest) = rest.split_once(" +")?;
    let (new, section) = rest.split_once(" @@")?;
    let range = |text: &str| {
        let (start, len) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.trim().parse().ok()?, len.trim().parse().ok()?))
    };
    let (old_start, old_len) = range(old)?;
    let (new_start, new_len) = range(new)?;
    Some((old_start, old_len, new_start, new_len, section.strip_prefix(' ').unwrap_or(section)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_paths() {
        assert_eq!(unquote(r#""t\303\251 \"x\"\t.py""#), "té \"x\"\t.py");
        assert_eq!(unquote("plain \\n"), "plain \\n");
        assert_eq!(unquote("\"end\\\""), "end\\");
        assert_eq!(git_paths(r#""a/\303\251.py" "b/\303\251.py""#), Some(("é.py".to_owned(), "é.py".to_owned())));
    }

    #[test]
    fn git_lines_that_can_and_cannot_be_read() {
        let same = |path: &str| Some((path.to_owned(), path.to_owned()));
        assert_eq!(git_paths("a/x b/y.py b/x b/y.py"), same("x b/y.py"));
        assert_eq!(git_paths("x.py x.py"), same("x.py"), "no prefix");
        assert_eq!(git_paths("a/x.py b/y.py"), Some(("x.py".to_owned(), "y.py".to_owned())));
        assert_eq!(git_paths("a/old name.py b/new name.py"), None);
        assert_eq!(git_paths("lonely"), None);
        assert_eq!(git_paths(&"x ".repeat(100_000)), None);
    }

    #[test]
    fn hunk_headers() {
        assert_eq!(hunk_header("@@ -1,2 +3,4 @@ def f():"), Some((1, 2, 3, 4, "def f():")));
        assert_eq!(hunk_header("@@ -0,0 +1 @@"), Some((0, 0, 1, 1, "")));
        for wrong in ["@@ -1 @@", "@@ -x +1 @@", "@@ ... @@", "@@ -1,99999999999999999999999 +1 @@", "@@@ -1 -1 +1 @@@"]
        {
            assert_eq!(hunk_header(wrong), None, "{wrong}");
        }
    }
}
