//! What tests take values apart and change them with, as `serde_json` has it.

use std::ops::{Index, IndexMut};

use super::{Map, Value};

/// What a missing member is.
static NULL: Value<'static> = Value::Null;

impl<'a> Value<'a> {
    /// The members of an object, to be changed.
    pub fn as_object_mut(&mut self) -> Option<&mut Map<'a>> {
        if let Self::Object(members) = self { Some(members) } else { None }
    }
}

impl<'a> Index<&str> for Value<'a> {
    type Output = Self;

    fn index(&self, key: &str) -> &Value<'a> {
        self.get(key).unwrap_or(&NULL)
    }
}

impl IndexMut<&str> for Value<'_> {
    fn index_mut(&mut self, key: &str) -> &mut Self {
        if self.is_null() {
            *self = Self::Object(Map::new());
        }
        self.as_object_mut().unwrap().get_or_insert(key, Value::Null).unwrap()
    }
}

impl<'a> Index<usize> for Value<'a> {
    type Output = Self;

    fn index(&self, at: usize) -> &Value<'a> {
        self.as_array().and_then(|items| items.get(at)).unwrap_or(&NULL)
    }
}

impl IndexMut<usize> for Value<'_> {
    fn index_mut(&mut self, at: usize) -> &mut Self {
        let Self::Array(items) = self else { panic!("{self} is no list") };
        &mut items[at]
    }
}
