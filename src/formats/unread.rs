//! Formats that are known by sight and not read yet: naming them is worth more than "unknown".

use super::sniff::Sniff;

/// A format by the keys that give it away: all of them, between the first rows.
struct Sight {
    name: &'static str,
    keys: &'static [&'static str],
}

/// In order: the first whose keys are all there.
const SIGHTS: &[Sight] = &[
    Sight { name: "an OpenTelemetry trace", keys: &["resourceSpans"] },
    Sight { name: "a list of traces", keys: &["traces"] },
];

/// What the document looks like, if it is known by sight.
pub fn name(sniff: &Sniff<'_>) -> Option<&'static str> {
    SIGHTS.iter().find(|s| sniff.has_all(s.keys)).map(|s| s.name)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Document;
    use super::super::load::load_bytes;
    use super::*;

    #[test]
    fn every_sight_is_reached_and_named_in_the_reason() {
        for sight in SIGHTS {
            let members: Vec<String> = sight.keys.iter().map(|k| format!("\"{k}\":1")).collect();
            let text = format!("{{{}}}", members.join(","));
            let document = Document::read(text.as_bytes());
            assert_eq!(name(&Sniff::new(Path::new("x"), &document)), Some(sight.name));
            let file = load_bytes(Path::new("x"), text.clone().into_bytes());
            assert_eq!(file.report.format, None, "{text}");
            assert!(file.report.reason.contains(sight.name), "{}", file.report.reason);
        }
    }
}
