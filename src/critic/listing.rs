//! The profiles as `trajscope critics` lists them: everything needed to explain a number.

use super::Profile;

/// One profile, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Id for the command line.
    pub id: String,
    /// Name.
    pub name: String,
    /// Which critic it is for.
    pub description: String,
    /// What the critic reads.
    pub reads: String,
    /// Where values are read.
    pub positions: String,
    /// What is done to the head's output, what the number means, its range and discount.
    pub scale: String,
    /// How the trajectory's score is made.
    pub aggregate: String,
    /// Whose words the rendered text uses.
    pub wording: String,
    /// Most tokens read at once, and what is done with more.
    pub max_tokens: usize,
    /// What is done with a longer trajectory.
    pub cut: String,
    /// Smallest fall that is a drop.
    pub drop_threshold: String,
}

impl Listing {
    /// What `profile` says, in words.
    pub fn of(profile: &Profile) -> Self {
        let scale = &profile.scale;
        let discount = scale.gamma.map_or_else(String::new, |gamma| format!("; discount γ = {gamma}"));
        let activation = profile.activation.describe();
        Self {
            id: profile.id.clone(),
            name: profile.name.clone(),
            description: profile.description.clone(),
            reads: profile.render.reads.clone(),
            positions: profile.positions.note.clone(),
            scale: format!("{} ({activation}; {}{discount})", scale.meaning, scale.note),
            aggregate: profile.aggregate.describe().to_owned(),
            wording: profile.render.wording.describe().to_owned(),
            max_tokens: profile.max_tokens,
            cut: profile.cut.describe().to_owned(),
            drop_threshold: profile.drop_threshold.to_string(),
        }
    }

    /// Every built-in profile.
    pub fn builtin() -> Vec<Self> {
        Profile::builtin().iter().map(Self::of).collect()
    }

    /// Label and text of every line but id and name, in the order to show them.
    pub fn rows(&self) -> [(&'static str, String); 9] {
        [
            ("for", self.description.clone()),
            ("reads", self.reads.clone()),
            ("value", self.positions.clone()),
            ("scale", self.scale.clone()),
            ("score", self.aggregate.clone()),
            ("wording", self.wording.clone()),
            ("at most", format!("{} tokens", self.max_tokens)),
            ("longer", self.cut.clone()),
            ("drop", format!("a fall of {} or more", self.drop_threshold)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_builtin_profile_explains_its_number() {
        let all = Listing::builtin();
        assert_eq!(all.len(), Profile::builtin().len());
        for listing in all {
            for (label, text) in listing.rows() {
                assert!(!text.trim().is_empty(), "{}: {label} is empty", listing.id);
                assert!(!text.contains('\n'), "{}: {label} has more than one line", listing.id);
            }
        }
    }

    #[test]
    fn the_openhands_critic_is_told_apart_from_its_authors_text() {
        let listing = Listing::of(Profile::by_id("openhands-32b").unwrap());
        assert_eq!(listing.wording, "own wording of the tool text");
        assert_eq!(listing.max_tokens, 32_768);
        assert!(listing.scale.contains("γ = 0.99"), "{}", listing.scale);
    }
}
