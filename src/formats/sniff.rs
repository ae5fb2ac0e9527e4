//! What a format's recogniser gets to see.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::Path;

use super::bytes::lossy;
use super::document::{Document, Shape};
use super::json::{Map, Value};

/// Elements of a list looked at to recognise a format.
const HEAD_ELEMENTS: usize = 60;
/// Bytes of a text looked at to recognise it.
const HEAD_TEXT: usize = 256 << 10;

/// How sure a recogniser is. The highest wins; among equals the first in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// Fits, as many things would.
    Possible,
    /// The key set fits and nothing known shares it.
    Likely,
    /// The file says so itself, or the key set is unmistakable.
    Certain,
}

impl Confidence {
    /// Its word in the list of files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Certain => "certain",
        }
    }
}

/// A recogniser's yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// How sure.
    pub confidence: Confidence,
    /// What it saw, in one clause.
    pub reason: Cow<'static, str>,
}

impl Match {
    /// A match, as recognisers return it.
    pub fn some(confidence: Confidence, reason: impl Into<Cow<'static, str>>) -> Option<Self> {
        Some(Self { confidence, reason: reason.into() })
    }
}

/// Outer form as recognisers ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// One JSON object.
    Object,
    /// One JSON list.
    List,
    /// JSON lines.
    Lines,
    /// Something else.
    Other,
}

/// A document seen by its keys: never by its extension.
#[derive(Debug)]
pub struct Sniff<'a> {
    /// The file; its name may break ties but never decides.
    pub path: &'a Path,
    /// Outer form.
    pub form: Form,
    /// The first values: the object, the list's first elements, or the first records of JSON lines.
    pub rows: Vec<&'a Value<'a>>,
    /// Union of the keys of those that are objects.
    keys: BTreeSet<&'a str>,
    /// The document, for what is no JSON.
    document: &'a Document<'a>,
    /// Its beginning as text, once somebody asked for it.
    text: OnceCell<String>,
}

impl<'a> Sniff<'a> {
    /// Looks at a document.
    pub fn new(path: &'a Path, document: &'a Document<'a>) -> Self {
        let (form, rows): (Form, Vec<&Value>) = match &document.shape {
            Shape::Value(value) => match value.as_ref() {
                Value::Array(items) => (Form::List, items.iter().take(HEAD_ELEMENTS).collect()),
                value => (Form::Object, vec![value]),
            },
            Shape::Lines(_) => (Form::Lines, document.head.iter().map(|row| &row.value).collect()),
            Shape::Other(_) => (Form::Other, Vec::new()),
        };
        let keys = rows.iter().filter_map(|v| v.as_object()).flat_map(Map::keys).collect();
        Self { path, form, rows, keys, document, text: OnceCell::new() }
    }

    /// The one object, if the document is one.
    pub fn object(&self) -> Option<&'a Map<'a>> {
        let value = *self.rows.first()?;
        if self.form == Form::Object { value.as_object() } else { None }
    }

    /// Does any of the first rows have this key?
    pub fn has(&self, key: &str) -> bool {
        self.keys.contains(key)
    }

    /// Do the first rows have all of these keys between them?
    pub fn has_all(&self, keys: &[&str]) -> bool {
        keys.iter().all(|k| self.has(k))
    }

    /// The first row's value of `key`, if it has it, else that of the first row that does.
    pub fn first(&self, key: &str) -> Option<&'a Value<'a>> {
        self.rows.iter().find_map(|row| row.get(key))
    }

    /// Is it JSON lines or a list of objects (or one object, which may be JSON lines of one)?
    pub fn is_rows(&self) -> bool {
        self.form != Form::Other && self.rows.first().is_some_and(|v| v.is_object())
    }

    /// The beginning of a document that is no JSON (a byte order mark left out); `None` for JSON.
    pub fn text(&self) -> Option<&str> {
        if self.form != Form::Other {
            return None;
        }
        // Every format of plain text asks for it.
        Some(self.text.get_or_init(|| {
            let bytes = self.document.beginning(HEAD_TEXT);
            let text = bytes.strip_prefix(b"\xEF\xBB\xBF".as_slice()).unwrap_or(&bytes);
            lossy(text).into_owned()
        }))
    }

    /// Keys seen, for the reason given when nothing fits.
    pub fn describe(&self) -> String {
        let what = match self.form {
            Form::Object => "a JSON object",
            Form::List => "a JSON list",
            Form::Lines => "JSON lines",
            Form::Other => "no JSON",
        };
        if self.keys.is_empty() {
            return format!("{what} without named members");
        }
        let mut shown: Vec<String> = self.keys.iter().take(8).map(|k| clip(k)).collect();
        if self.keys.len() > shown.len() {
            shown.push(format!("… {} more", self.keys.len() - shown.len()));
        }
        format!("{what} with keys {}", shown.join(", "))
    }
}

fn clip(key: &str) -> String {
    let mut short: String = key.chars().filter(|c| !c.is_control()).take(32).collect();
    if key.chars().count() > 32 {
        short.push('…');
    }
    short
}
