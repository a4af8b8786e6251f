//! An experiment file as a tree in which every value knows where it was written.
//!
//! Sweeps, scales and settings from the command line replace values by key path before anything is
//! interpreted, so an error is reported at the position of the value.

use crate::error::{Place, Problem, Problems};
use serde_json::{Number, Value as Json};
use toml::de::{DeTable, DeValue};

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub place: Place,
    pub value: Value,
}

/// What was written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Boolean(bool),
    /// Legal TOML for which no key has a use: a date, or an integer beyond 64 bits.
    Useless {
        kind: &'static str,
        text: String,
    },
    Array(Vec<Node>),
    Table(Vec<Entry>),
}

/// A key with its value, in the order of the file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub key: String,
    pub key_place: Place,
    pub node: Node,
}

impl Node {
    /// Reads a whole file. Every syntax error is reported.
    pub(crate) fn parse(text: &str, problems: &mut Problems) -> Node {
        let (table, errors) = DeTable::parse_recoverable(text);
        let lines = Lines::new(text);
        for error in errors {
            let span = error.span().unwrap_or_default();
            let mut reason = error.message().trim().replace('\n', ", ");
            if reason == "duplicate key" {
                reason = format!("duplicate key `{}`", text.get(span.clone()).unwrap_or_default().trim());
            }
            problems.add(lines.place(span.start), "", Problem::Syntax { reason });
        }
        from_table(table.get_ref(), lines.place(table.span().start), &lines)
    }

    /// Reads one value of a setting from outside: TOML, or bare text for convenience (`25Gbps`).
    pub(crate) fn parse_setting(text: &str) -> Node {
        let lines = Lines::outside();
        let read = DeValue::parse(text.trim()).map(|value| from_value(value.get_ref(), Place::CommandLine, &lines));
        read.unwrap_or_else(|_| Node { place: Place::CommandLine, value: Value::Text(text.trim().into()) })
    }

    /// An empty table.
    pub(crate) fn empty(place: Place) -> Node {
        Node { place, value: Value::Table(Vec::new()) }
    }

    /// The entries of a table; none for anything else.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The items of an array; none for anything else.
    pub(crate) fn items(&self) -> &[Node] {
        match &self.value {
            Value::Array(items) => items,
            _ => &[],
        }
    }

    /// The text of a string.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A table's value by key, or an array's by index.
    pub(crate) fn child(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node),
            Value::Array(items) => key.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => None,
        }
    }

    /// The value at a key path such as `workload.mix.0.size`.
    pub(crate) fn at(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, key| node.child(key))
    }

    /// The position of `path`, or of the closest table around it.
    pub(crate) fn place_of(&self, path: &str) -> Place {
        let mut node = self;
        for key in path.split('.') {
            match node.child(key) {
                Some(child) => node = child,
                None => break,
            }
        }
        node.place
    }

    /// Puts `new` at a key path, in place of what stood there. Tables on the way are made.
    pub(crate) fn set(&mut self, path: &str, new: Node) {
        let Some((key, rest)) = path.split_once('.') else {
            let place = new.place;
            *self.child_or_new(path, place) = new;
            return;
        };
        self.child_or_new(key, new.place).set(rest, new);
    }

    fn child_or_new(&mut self, key: &str, place: Place) -> &mut Node {
        let index = key.parse::<usize>().ok().filter(|index| *index < self.items().len());
        if let (Some(index), true) = (index, matches!(self.value, Value::Array(_))) {
            let Value::Array(items) = &mut self.value else { unreachable!("it was an array just now") };
            return &mut items[index];
        }
        if !matches!(self.value, Value::Table(_)) {
            *self = Node::empty(place);
        }
        let Value::Table(entries) = &mut self.value else { unreachable!("it was made a table just now") };
        let found = entries.iter().position(|entry| entry.key == key).unwrap_or(entries.len());
        if found == entries.len() {
            entries.push(Entry { key: key.into(), key_place: place, node: Node::empty(place) });
        }
        &mut entries[found].node
    }

    /// Takes a key out of a table.
    pub(crate) fn remove(&mut self, key: &str) -> Option<Node> {
        let Value::Table(entries) = &mut self.value else { return None };
        let found = entries.iter().position(|entry| entry.key == key)?;
        Some(entries.remove(found).node)
    }

    /// Removes the value at a key path. Returns whether there was one.
    pub(crate) fn take_out(&mut self, path: &str) -> bool {
        let Some((key, rest)) = path.split_once('.') else { return self.remove(path).is_some() };
        let child = match &mut self.value {
            Value::Table(entries) => entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node),
            Value::Array(items) => key.parse::<usize>().ok().and_then(|index| items.get_mut(index)),
            _ => None,
        };
        child.is_some_and(|child| child.take_out(rest))
    }

    /// The same value for serde. What cannot be said in JSON (infinity, a date) becomes null; the
    /// check against the schema has refused it.
    pub(crate) fn to_json(&self) -> Json {
        match &self.value {
            Value::Text(text) => Json::String(text.clone()),
            Value::Integer(number) => Json::Number((*number).into()),
            Value::Float(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
            Value::Boolean(flag) => Json::Bool(*flag),
            Value::Useless { .. } => Json::Null,
            Value::Array(items) => Json::Array(items.iter().map(Node::to_json).collect()),
            Value::Table(entries) => {
                Json::Object(entries.iter().map(|entry| (entry.key.clone(), entry.node.to_json())).collect())
            }
        }
    }

    /// How the value is named in messages and labels: text without quotes, the rest as in TOML.
    pub(crate) fn label(&self) -> String {
        match &self.value {
            Value::Text(text) => text.clone(),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Boolean(flag) => flag.to_string(),
            Value::Useless { text, .. } => text.clone(),
            Value::Array(items) => {
                format!("[{}]", items.iter().map(Node::label).collect::<Vec<_>>().join(", "))
            }
            Value::Table(entries) => {
                let pair = |entry: &Entry| format!("{} = {}", entry.key, entry.node.label());
                format!("{{{}}}", entries.iter().map(pair).collect::<Vec<_>>().join(", "))
            }
        }
    }

    /// What the value is, for "got" in messages.
    pub(crate) fn kind(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("the text \"{text}\""),
            Value::Integer(_) | Value::Float(_) => format!("the bare number {}", self.label()),
            Value::Boolean(flag) => format!("`{flag}`"),
            Value::Useless { kind, text } => format!("{kind} {text}"),
            Value::Array(_) => "a list".into(),
            Value::Table(_) => "a table".into(),
        }
    }
}

fn from_table(table: &DeTable<'_>, place: Place, lines: &Lines<'_>) -> Node {
    let mut in_order: Vec<_> = table.iter().collect();
    in_order.sort_by_key(|(key, _)| key.span().start);
    let entry = |(key, value): &(&toml::Spanned<_>, &toml::Spanned<DeValue<'_>>)| {
        let key: &toml::Spanned<std::borrow::Cow<'_, str>> = key;
        let key_place = lines.place(key.span().start);
        // The position of a table is that of its name; of a value, its first character.
        let inner = if value.get_ref().is_table() { key_place } else { lines.place(value.span().start) };
        Entry { key: key.get_ref().to_string(), key_place, node: from_value(value.get_ref(), inner, lines) }
    };
    Node { place, value: Value::Table(in_order.iter().map(entry).collect()) }
}

fn from_value(value: &DeValue<'_>, place: Place, lines: &Lines<'_>) -> Node {
    let value = match value {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Boolean(flag) => Value::Boolean(*flag),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).map_or_else(
            |_| Value::Useless { kind: "the integer beyond 64 bits", text: number.to_string() },
            Value::Integer,
        ),
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Datetime(date) => Value::Useless { kind: "the date", text: date.to_string() },
        DeValue::Array(items) => Value::Array(
            items.iter().map(|item| from_value(item.get_ref(), lines.place(item.span().start), lines)).collect(),
        ),
        DeValue::Table(table) => return from_table(table, place, lines),
    };
    Node { place, value }
}

/// Byte offsets to lines and columns.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Lines<'a> {
        let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Lines { text, starts: std::iter::once(0).chain(after_breaks).collect() }
    }
    fn outside() -> Lines<'static> {
        Lines { text: "", starts: Vec::new() }
    }
    fn place(&self, offset: usize) -> Place {
        if self.starts.is_empty() {
            return Place::CommandLine;
        }
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts[line.saturating_sub(1)];
        let column = self.text.get(start..offset).map_or(1, |before| before.chars().count() + 1);
        Place::File { line, column }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Node {
        let mut problems = Problems::new("", None);
        let node = Node::parse(text, &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        node
    }

    #[test]
    fn every_value_knows_its_line_and_column() {
        let node = read("a = 1\n[b]\nc = [\"\u{e4}\", 2.5] # two\nd.e = true\n");
        let place = |path: &str| node.place_of(path);
        assert_eq!(place("a"), Place::File { line: 1, column: 5 });
        assert_eq!(place("b"), Place::File { line: 2, column: 2 });
        assert_eq!(place("b.c.1"), Place::File { line: 3, column: 11 });
        assert_eq!(place("b.d.e"), Place::File { line: 4, column: 7 });
        assert_eq!(place("b.missing"), place("b"));
    }

    #[test]
    fn entries_stand_in_the_order_of_the_file() {
        let node = read("z = 1\nb = 2\na = 3\n");
        let keys: Vec<&str> = node.entries().iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["z", "b", "a"]);
    }

    #[test]
    fn setting_replaces_makes_tables_and_reaches_into_lists() {
        let mut node = read("a = 1\nlist = [{ x = 1 }, { x = 2 }]\n");
        node.set("a", Node::parse_setting("7"));
        node.set("new.table.key", Node::parse_setting("10ns"));
        node.set("list.1.x", Node::parse_setting("5"));
        let expected = serde_json::json!({
            "a": 7, "list": [{ "x": 1 }, { "x": 5 }], "new": { "table": { "key": "10ns" } }
        });
        assert_eq!(node.to_json(), expected);
        assert_eq!(node.place_of("list.1.x"), Place::CommandLine);
    }

    #[test]
    fn what_toml_allows_and_no_key_takes_is_kept_as_such() {
        let node = read("a = 99999999999999999999\nb = 2024-01-01\nc = 0xff\n");
        assert!(matches!(node.at("a").unwrap().value, Value::Useless { .. }));
        assert_eq!(node.at("b").unwrap().kind(), "the date 2024-01-01");
        assert_eq!(node.at("c").unwrap().value, Value::Integer(255));
    }
}
