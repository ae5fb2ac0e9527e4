//! Pictures inside text: base64 data URIs, folded to a short placeholder.

use std::borrow::Cow;

/// Shorter payloads are left alone: they are as likely an example in prose as a picture.
const MIN_PAYLOAD: usize = 64;

/// `raw` with every long `data:<type>;base64,<payload>` replaced by `[image png, 3.5 kB]` (the size is that of the
/// decoded bytes).
pub fn fold_images(raw: &str) -> Cow<'_, str> {
    const MARK: &str = ";base64,";
    if !raw.contains(MARK) {
        return Cow::Borrowed(raw);
    }
    let mut folded = String::new();
    let (mut kept, mut from) = (0, 0);
    while let Some(found) = raw.get(from..).and_then(|rest| rest.find(MARK)) {
        let mark = from + found;
        let payload_at = mark + MARK.len();
        from = payload_at;
        let before = raw.get(kept..mark).unwrap_or_default();
        let Some((scheme, media)) = media_type(before) else { continue };
        let payload = raw.get(payload_at..).unwrap_or_default();
        let len = payload.bytes().take_while(|b| b.is_ascii_alphanumeric() || b"+/=-_".contains(b)).count();
        if len < MIN_PAYLOAD {
            continue;
        }
        folded.push_str(before.get(..scheme).unwrap_or_default());
        let padding = payload.bytes().take(len).rev().take_while(|b| *b == b'=').count();
        folded.push_str(&placeholder(media, (len - padding) * 3 / 4));
        kept = payload_at + len;
        from = kept;
    }
    folded.push_str(raw.get(kept..).unwrap_or_default());
    Cow::Owned(folded)
}

/// The media type that ends `before`, and where its `data:` starts.
fn media_type(before: &str) -> Option<(usize, &str)> {
    let is_type = |c: char| c.is_ascii_alphanumeric() || "/+-.;=".contains(c);
    let start = before.rfind(|c| !is_type(c))?;
    let scheme = before.get(..=start)?.strip_suffix("data:")?.len();
    Some((scheme, before.get(start + 1..)?))
}

fn placeholder(media: &str, bytes: usize) -> String {
    let media = media.split(';').next().unwrap_or(media);
    let (kind, sub) = media.split_once('/').unwrap_or(("data", media));
    let kind = if kind == "application" || kind.is_empty() { "data" } else { kind };
    let sub = if sub.is_empty() { String::new() } else { format!(" {sub}") };
    format!("[{kind}{sub}, {}]", human_size(bytes))
}

fn human_size(bytes: usize) -> String {
    match bytes {
        0..1000 => format!("{bytes} B"),
        1000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn long_payloads_are_folded() {
        let payload = "QUJD".repeat(1000);
        let raw = format!("a (data:image/png;base64,{payload}) b data:application/pdf;base64,{payload}== c");
        assert_eq!(fold_images(&raw), "a ([image png, 3.0 kB]) b [data pdf, 3.0 kB] c");
    }

    #[test]
    fn prose_about_data_uris_stays() {
        for raw in ["data:image/png;base64,AAAA", ";base64,", "x;base64,QQ", "no picture"] {
            assert_eq!(fold_images(raw), raw);
        }
        let not_a_uri = format!("{};base64,{}", "x".repeat(10), "A".repeat(100));
        assert_eq!(fold_images(&not_a_uri), not_a_uri);
    }

    proptest! {
        #[test]
        fn never_panics(raw in "(data:|image/|;base64,|AAAA|é|\n|=){0,60}") {
            let folded = fold_images(&raw);
            prop_assert!(folded.len() <= raw.len() + 40);
        }
    }
}
