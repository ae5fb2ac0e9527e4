//! Filling `{places}` of a profile's texts, once: what is filled in is never looked at again.

/// `template` with every `{name}` of `places` replaced. Braces that do not enclose the name of a place are copied.
pub(super) fn fill(template: &str, places: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        let place = places.iter().find_map(|(name, value)| {
            let after = from.strip_prefix('{')?.strip_prefix(name)?.strip_prefix('}')?;
            Some((*value, after))
        });
        if let Some((value, after)) = place {
            out.push_str(value);
            rest = after;
        } else {
            out.push('{');
            rest = from.strip_prefix('{').unwrap_or_default();
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn fills_places_once_and_copies_other_braces() {
        assert_eq!(fill("a {x} {y} {z} {", &[("x", "{y}"), ("y", "1")]), "a {y} 1 {z} {");
        assert_eq!(fill("{{x}}", &[("x", "v")]), "{v}");
        assert_eq!(fill("", &[("x", "v")]), "");
    }
}
