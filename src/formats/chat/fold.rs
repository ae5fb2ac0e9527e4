//! Conversations that are written again and again, each time a little longer: read as the one they are.
//!
//! A model call's dump repeats everything said before it. What is shown is every message once, in order, with the
//! answers that were given; a message stands where it was first sent.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::trajectory::{Role, Step};

/// One conversation, put together from the prompts and answers of its calls.
#[derive(Default)]
pub struct Fold {
    steps: Vec<Step>,
    /// Keys of the last prompt.
    prompt: Vec<(u64, Role)>,
    /// How many of the last steps are the last answer.
    answer: usize,
    /// Keys of everything shown.
    shown: HashSet<u64>,
    /// Times earlier messages were no longer sent.
    cuts: usize,
}

impl Fold {
    /// Is this the prompt of a further call in the same conversation, that is, does it begin with the same task?
    pub fn fits(&self, prompt: &[Step]) -> bool {
        let common = self.common(prompt);
        prompt.iter().take(common).any(|s| s.role == Role::User)
    }

    /// The next call.
    pub fn add(&mut self, prompt: Vec<Step>, answer: Vec<Step>) {
        let keys: Vec<(u64, Role)> = prompt.iter().map(|s| (key(s), s.role)).collect();
        let known = self.prompt.len();
        if self.common(&prompt) >= known || self.masked(&keys) {
            let tail: Vec<Step> = prompt.into_iter().skip(known).collect();
            self.go_on(tail);
        } else {
            self.cut(prompt, &keys);
        }
        self.shown.extend(keys.iter().map(|(key, _)| *key));
        self.shown.extend(answer.iter().map(key));
        self.prompt = keys;
        self.answer = answer.len();
        self.steps.extend(answer);
    }

    /// All steps, and how often earlier messages were dropped on the way.
    pub fn finish(mut self) -> (Vec<Step>, usize) {
        super::name_tools(&mut self.steps);
        (self.steps, self.cuts)
    }

    /// Number of answers.
    pub fn actions(&self) -> usize {
        self.steps.iter().filter(|s| s.is_action()).count()
    }

    fn common(&self, prompt: &[Step]) -> usize {
        self.prompt.iter().zip(prompt).take_while(|((known, _), step)| *known == key(step)).count()
    }

    /// The same messages with old observations shortened, as some condensers do in place.
    fn masked(&self, keys: &[(u64, Role)]) -> bool {
        let same = |(old, new): (&(u64, Role), &(u64, Role))| old.1 == new.1 && (old.0 == new.0 || old.1 == Role::Tool);
        keys.len() >= self.prompt.len() && self.prompt.iter().zip(keys).all(same)
    }

    /// The prompt grew by `tail`, which begins with the last answer if that was taken up.
    fn go_on(&mut self, mut tail: Vec<Step>) {
        let from = self.steps.len().saturating_sub(self.answer);
        match tail.first_mut() {
            Some(first) if first.role == Role::Assistant && self.answer > 0 => {
                let answered = self.steps.get(from);
                first.cost = first.cost.or(answered.and_then(|s| s.cost));
                first.timestamp = first.timestamp.take().or_else(|| answered.and_then(|s| s.timestamp.clone()));
                self.steps.truncate(from);
            }
            // The same prompt once more: the answer before was thrown away.
            None => {
                for step in self.steps.iter_mut().skip(from).filter(|s| s.role == Role::Assistant) {
                    step.role = Role::Meta;
                    step.text = format!("an answer that was not used: {}", step.text);
                }
            }
            Some(_) => {}
        }
        self.steps.extend(tail);
    }

    /// Earlier messages are missing from the prompt.
    fn cut(&mut self, prompt: Vec<Step>, keys: &[(u64, Role)]) {
        let kept = keys.iter().filter(|known| self.prompt.contains(known)).count();
        let gone = self.prompt.len().saturating_sub(kept);
        self.cuts += 1;
        let raw = prompt.first().map(|s| s.raw.clone()).unwrap_or_default();
        let text = format!("the conversation was condensed: {gone} earlier messages are no longer sent to the model");
        self.steps.push(Step { raw, ..Step::new(Role::Meta, text) });
        let new = prompt.into_iter().zip(keys).filter(|(_, (key, _))| !self.shown.contains(key)).map(|(step, _)| step);
        let new: Vec<Step> = new.collect();
        self.steps.extend(new);
    }
}

/// What makes a message the same in two dumps: white space around it and the form of its arguments do not count.
fn key(step: &Step) -> u64 {
    let mut hasher = DefaultHasher::new();
    step.role.hash(&mut hasher);
    step.text.trim().hash(&mut hasher);
    for call in &step.calls {
        call.name.hash(&mut hasher);
        match serde_json::from_str::<serde_json::Value>(&call.arguments) {
            Ok(value) => value.to_string().hash(&mut hasher),
            Err(_) => call.arguments.hash(&mut hasher),
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(texts: &[(Role, &str)]) -> Vec<Step> {
        texts.iter().map(|(role, text)| Step::new(*role, *text)).collect()
    }

    fn texts(fold: Fold) -> Vec<(Role, String)> {
        fold.finish().0.into_iter().map(|s| (s.role, s.text)).collect()
    }

    const HEAD: [(Role, &str); 2] = [(Role::System, "S"), (Role::User, "TASK")];

    fn with(more: &[(Role, &str)]) -> Vec<Step> {
        said(&[HEAD.as_slice(), more].concat())
    }

    #[test]
    fn every_message_and_answer_is_there_once() {
        use Role::{Assistant, Tool};
        let mut fold = Fold::default();
        let mut first = said(&[(Assistant, "one\n")]);
        first[0].cost = Some(0.5);
        fold.add(with(&[]), first);
        fold.add(with(&[(Assistant, "one"), (Tool, "out")]), said(&[(Assistant, "two")]));
        assert!(fold.fits(&with(&[])) && !fold.fits(&said(&[(Role::System, "S"), (Role::User, "OTHER")])));
        assert_eq!(fold.actions(), 2);
        let (steps, cuts) = fold.finish();
        let seen: Vec<&str> = steps.iter().map(|s| s.text.as_str()).collect();
        assert_eq!(seen, ["S", "TASK", "one", "out", "two"]);
        assert_eq!((steps[2].cost, cuts), (Some(0.5), 0), "the cost came with the answer");
    }

    #[test]
    fn answers_that_were_not_taken_up_stay() {
        use Role::{Assistant, Meta, User};
        let mut fold = Fold::default();
        fold.add(with(&[]), said(&[(Assistant, "thrown away")]));
        fold.add(with(&[]), said(&[(Assistant, "bad call")]));
        fold.add(with(&[(User, "your call was bad")]), said(&[(Assistant, "good")]));
        let seen = texts(fold);
        let seen: Vec<(Role, &str)> = seen.iter().map(|(r, t)| (*r, t.as_str())).skip(2).collect();
        let expected = [
            (Meta, "an answer that was not used: thrown away"),
            (Assistant, "bad call"),
            (User, "your call was bad"),
            (Assistant, "good"),
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_a_condenser_dropped_is_still_shown() {
        use Role::{Assistant, Tool, User};
        let mut fold = Fold::default();
        fold.add(with(&[]), said(&[(Assistant, "a1")]));
        fold.add(with(&[(Assistant, "a1"), (Tool, "long")]), said(&[(Assistant, "a2")]));
        // Masked in place: nothing new.
        fold.add(
            with(&[(Assistant, "a1"), (Tool, "<gone>"), (Assistant, "a2"), (Tool, "t2")]),
            said(&[(Assistant, "a3")]),
        );
        fold.add(with(&[(User, "SUMMARY"), (Assistant, "a3"), (Tool, "t3")]), said(&[(Assistant, "a4")]));
        let (steps, cuts) = fold.finish();
        let seen: Vec<&str> = steps.iter().map(|s| s.text.as_str()).collect();
        let note = "the conversation was condensed: 4 earlier messages are no longer sent to the model";
        assert_eq!(seen, ["S", "TASK", "a1", "long", "a2", "t2", "a3", note, "SUMMARY", "t3", "a4"]);
        assert_eq!(cuts, 1);
    }
}
