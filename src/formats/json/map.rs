//! The members of a JSON object, in the order of the text.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::value::Value;

/// Objects with more members than this are looked up by halving, smaller ones by going through them.
const SMALL: usize = 16;

/// A key and its value.
pub type Member<'a> = (Cow<'a, str>, Value<'a>);

/// The members of an object. Of members with the same key the last value counts, at the place of the first.
#[derive(Debug, Clone, Default)]
pub struct Map<'a> {
    members: Vec<Member<'a>>,
    /// Where the members of a large object stand, by their keys; none for small ones and once something was changed.
    sorted: Option<Box<Sorted>>,
}

/// Places of members, in order of the keys.
#[derive(Debug, Clone)]
struct Sorted(Vec<u32>);

impl<'a> Map<'a> {
    /// No members.
    pub fn new() -> Self {
        Self::default()
    }

    /// An object with these members.
    pub fn of(members: Vec<Member<'a>>) -> Self {
        if members.len() <= SMALL {
            let twice = (1..members.len()).any(|at| {
                let (before, rest) = members.split_at(at);
                rest.first().is_some_and(|(key, _)| before.iter().any(|(known, _)| known == key))
            });
            return if twice { members.into_iter().collect() } else { Self { members, sorted: None } };
        }
        let order = order(&members);
        let key = |at: Option<&u32>| members.get(*at? as usize).map(|(key, _)| key);
        if (1..order.len()).all(|i| key(order.get(i - 1)) != key(order.get(i))) {
            return Self { members, sorted: Some(Box::new(Sorted(order))) };
        }
        let members = once(members, &order);
        let sorted = Some(Box::new(Sorted(self::order(&members))));
        Self { members, sorted }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.members.get(self.place(key)?).map(|(_, value)| value)
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value<'a>> {
        let at = self.place(key)?;
        self.members.get_mut(at).map(|(_, value)| value)
    }

    /// The value of a key, which is put there if it is missing.
    pub fn get_or_insert(&mut self, key: &str, value: Value<'a>) -> Option<&mut Value<'a>> {
        if self.place(key).is_none() {
            self.insert(key.to_owned(), value);
        }
        self.get_mut(key)
    }

    /// Is there such a key?
    pub fn contains_key(&self, key: &str) -> bool {
        self.place(key).is_some()
    }

    /// Sets a member: in place if the key is there, else behind the others. Returns the value it had.
    pub fn insert(&mut self, key: impl Into<Cow<'a, str>>, value: Value<'a>) -> Option<Value<'a>> {
        let key = key.into();
        if let Some(known) = self.get_mut(&key) {
            return Some(std::mem::replace(known, value));
        }
        self.sorted = None;
        self.members.push((key, value));
        None
    }

    /// Takes a member out; the last one moves to its place, as in `serde_json`.
    pub fn remove(&mut self, key: &str) -> Option<Value<'a>> {
        let at = self.place(key)?;
        self.sorted = None;
        Some(self.members.swap_remove(at).1)
    }

    /// Takes a member out; those behind it move up.
    pub fn shift_remove(&mut self, key: &str) -> Option<Value<'a>> {
        let at = self.place(key)?;
        self.sorted = None;
        Some(self.members.remove(at).1)
    }

    /// Moves the members of another object behind these.
    pub fn append(&mut self, other: &mut Self) {
        self.extend(std::mem::take(other).members);
    }

    /// Number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Keys and values in order.
    pub fn iter(&self) -> Iter<'_, 'a> {
        self.members.iter().map(|(key, value)| (key, value))
    }

    /// Keys in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator + Clone {
        self.members.iter().map(|(key, _)| &**key)
    }

    /// Values in order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value<'a>> + ExactSizeIterator + Clone {
        self.members.iter().map(|(_, value)| value)
    }

    /// The same members with texts of their own.
    pub fn into_owned(self) -> Map<'static> {
        let owned = |(key, value): Member<'a>| (Cow::Owned(key.into_owned()), value.into_owned());
        Map { members: self.members.into_iter().map(owned).collect(), sorted: self.sorted }
    }

    fn place(&self, key: &str) -> Option<usize> {
        let Some(sorted) = &self.sorted else {
            // Most keys already differ in their length or beginning.
            let first = key.as_bytes().first();
            let same = |known: &str| known.len() == key.len() && known.as_bytes().first() == first && known == key;
            return self.members.iter().position(|(known, _)| same(known));
        };
        let known = |at: &u32| self.members.get(*at as usize).map(|(key, _)| rank(key));
        let found = sorted.0.binary_search_by(|at| known(at).cmp(&Some(rank(key)))).ok()?;
        sorted.0.get(found).map(|at| *at as usize)
    }
}

/// Keys of different lengths are told apart without looking at them.
fn rank(key: &str) -> (usize, &str) {
    (key.len(), key)
}

/// Places of the members by their keys; the same key in order of the text.
fn order(members: &[Member<'_>]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..members.len() as u32).collect();
    order.sort_by_key(|at| members.get(*at as usize).map(|(key, _)| rank(key)));
    order
}

/// The last value of every key, at the place of its first.
fn once<'a>(members: Vec<Member<'a>>, order: &[u32]) -> Vec<Member<'a>> {
    let key = |at: u32| members.get(at as usize).map(|(key, _)| key);
    // Where the value of each member comes from; none for those that are repeated later.
    let mut from: Vec<Option<u32>> = vec![None; members.len()];
    for same in order.chunk_by(|a, b| key(*a) == key(*b)) {
        if let (Some(first), Some(last)) = (same.first(), same.last())
            && let Some(slot) = from.get_mut(*first as usize)
        {
            *slot = Some(*last);
        }
    }
    let mut members: Vec<Option<Member<'a>>> = members.into_iter().map(Some).collect();
    let mut kept = Vec::with_capacity(members.len());
    for (at, last) in from.into_iter().enumerate() {
        let Some(last) = last else { continue };
        let value = members.get_mut(last as usize).and_then(|m| m.as_mut()).map(|m| std::mem::take(&mut m.1));
        let key = members.get_mut(at).and_then(Option::take).map(|m| m.0);
        kept.extend(key.zip(value));
    }
    kept
}

/// The order does not matter, as in `serde_json`.
impl PartialEq for Map<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

impl Serialize for Map<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter())
    }
}

impl<'a, K: Into<Cow<'a, str>>> Extend<(K, Value<'a>)> for Map<'a> {
    fn extend<I: IntoIterator<Item = (K, Value<'a>)>>(&mut self, members: I) {
        for (key, value) in members {
            self.insert(key, value);
        }
    }
}

impl<'a, K: Into<Cow<'a, str>>> FromIterator<(K, Value<'a>)> for Map<'a> {
    fn from_iter<I: IntoIterator<Item = (K, Value<'a>)>>(members: I) -> Self {
        let mut map = Self::new();
        map.extend(members);
        map
    }
}

impl<'a> IntoIterator for Map<'a> {
    type Item = Member<'a>;
    type IntoIter = std::vec::IntoIter<Member<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.members.into_iter()
    }
}

/// Keys and values in order.
pub type Iter<'m, 'a> =
    std::iter::Map<std::slice::Iter<'m, Member<'a>>, fn(&'m Member<'a>) -> (&'m str, &'m Value<'a>)>;

impl<'m, 'a> IntoIterator for &'m Map<'a> {
    type Item = (&'m str, &'m Value<'a>);
    type IntoIter = Iter<'m, 'a>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// A change of an object, for both kinds of it.
    #[derive(Debug, Clone)]
    enum Change {
        Insert(String, u32),
        Remove(String),
        ShiftRemove(String),
        GetOrInsert(String, u32),
        Append(Vec<(String, u32)>),
    }

    fn change() -> impl Strategy<Value = Change> {
        let key = || "[ab]{0,4}";
        prop_oneof![
            4 => (key(), any::<u32>()).prop_map(|(k, n)| Change::Insert(k, n)),
            1 => key().prop_map(Change::Remove),
            1 => key().prop_map(Change::ShiftRemove),
            2 => (key(), any::<u32>()).prop_map(|(k, n)| Change::GetOrInsert(k, n)),
            1 => prop::collection::vec((key(), any::<u32>()), 0..20).prop_map(Change::Append),
        ]
    }

    fn number(n: u32) -> Value<'static> {
        Value::from(i64::from(n))
    }

    fn apply(change: Change, ours: &mut Map<'_>, theirs: &mut serde_json::Map<String, serde_json::Value>) {
        match change {
            Change::Insert(key, n) => {
                let (before, known) = (ours.insert(key.clone(), number(n)), theirs.insert(key, json!(n)));
                assert_eq!(before, known.map(Value::from));
            }
            Change::Remove(key) => assert_eq!(ours.remove(&key), theirs.remove(&key).map(Value::from)),
            Change::ShiftRemove(key) => {
                assert_eq!(ours.shift_remove(&key), theirs.shift_remove(&key).map(Value::from));
            }
            Change::GetOrInsert(key, n) => {
                let held = ours.get_or_insert(&key, number(n)).unwrap();
                assert_eq!(*held, Value::from(theirs.entry(key).or_insert_with(|| json!(n)).clone()));
            }
            Change::Append(members) => {
                let mut more: Map<'_> = members.iter().map(|(k, n)| (k.clone(), number(*n))).collect();
                ours.append(&mut more);
                assert!(more.is_empty());
                theirs.extend(members.into_iter().map(|(k, n)| (k, json!(n))));
            }
        }
    }

    proptest! {
        #[test]
        fn changes_do_what_they_do_in_serde_json(
            text in prop::collection::vec(("[ab]{0,4}", any::<u32>()), 0..40), changes in prop::collection::vec(change(), 0..12)
        ) {
            let mut theirs: serde_json::Map<_, _> = text.iter().map(|(k, n)| (k.clone(), json!(n))).collect();
            let mut ours = Map::of(text.into_iter().map(|(k, n)| (Cow::Owned(k), number(n))).collect());
            for change in changes {
                apply(change, &mut ours, &mut theirs);
                prop_assert_eq!(serde_json::to_string(&ours).unwrap(), serde_json::to_string(&theirs).unwrap());
                prop_assert_eq!(ours.len(), theirs.len());
                for (key, value) in &ours {
                    prop_assert_eq!(ours.get(key), Some(value));
                    prop_assert!(theirs.contains_key(key));
                }
                prop_assert!(!ours.contains_key("c") && ours.get("aaaaa").is_none());
            }
        }
    }

    #[test]
    fn the_order_of_the_members_does_not_make_objects_differ() {
        let of = |keys: &[&'static str]| Map::of(keys.iter().map(|k| (Cow::Borrowed(*k), Value::from(*k))).collect());
        assert_eq!(of(&["a", "b"]), of(&["b", "a"]));
        assert_ne!(of(&["a", "b"]), of(&["a"]));
        assert_ne!(of(&["a"]), of(&["b"]));
        assert_eq!(of(&["b", "a"]).keys().collect::<Vec<_>>(), ["b", "a"]);
        assert_eq!(of(&["b"]).into_owned(), of(&["b"]));
    }
}
