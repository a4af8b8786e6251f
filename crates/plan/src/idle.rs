//! Keys that are valid only with a scene, or with the value of another key. The tables' `where`
//! decides what a file may give, what it must give, and what a printed plan leaves out.

use crate::check::{find, property};
use crate::design_file::DesignName;
use crate::error::Problem;
use crate::resolve::Resolver;
use crate::scene::{SceneName, goes_with};
use crate::soundness::join;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

/// A condition on another key.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Condition {
    /// The other key: of the same table, or of another one with the path.
    key: String,
    is: Option<Vec<Json>>,
    is_not: Option<Vec<Json>>,
    is_given: Option<bool>,
    /// With `isGiven`: other keys that do as well.
    #[serde(default)]
    or_keys: Vec<String>,
}

fn conditions(schema: &Json) -> Vec<Condition> {
    let listed = schema.get("goesIf").cloned().unwrap_or(Json::Array(Vec::new()));
    serde_json::from_value(listed).expect("`goes!` writes conditions")
}

/// A value in a message.
fn label(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Condition {
    /// The reason why the condition fails, if it does. A key that is not given has its default; one
    /// whose default the schema does not know fails nothing.
    fn failure(&self, key: &str, given: Option<&Json>, default: Option<&Json>) -> Option<String> {
        let of = &self.key;
        match (self.is_given, given) {
            (Some(true), None) => return Some(format!("`{key}` is valid only with {}", self.keys())),
            (Some(false), Some(_)) => return Some(format!("`{key}` is not valid with `{of}`")),
            _ => {}
        }
        let value = given.or(default)?;
        let is = self.is.as_ref().filter(|words| !words.contains(value));
        let is_not = self.is_not.as_ref().filter(|words| words.contains(value));
        match (is, is_not) {
            (Some(_), _) | (_, Some(_)) if of == "design.name" => {
                Some(format!("`{key}` is not valid with the design {}", label(value)))
            }
            (Some(_), _) => Some(format!("`{key}` is valid only with {}, not with {}", self.wanted(), label(value))),
            (_, Some(_)) => Some(format!("`{key}` is not valid with {of} = {}", label(value))),
            (None, None) => None,
        }
    }

    /// The keys of which one must be given.
    fn keys(&self) -> String {
        let all = std::iter::once(&self.key).chain(&self.or_keys);
        all.map(|key| format!("`{key}`")).collect::<Vec<_>>().join(" or ")
    }

    /// The values that would do.
    fn wanted(&self) -> String {
        let words: Vec<String> = self.is.iter().flatten().map(label).collect();
        match &words[..] {
            [first @ .., last] if !first.is_empty() => format!("{} = {} or {last}", self.key, first.join(", ")),
            _ => format!("{} = {}", self.key, words.concat()),
        }
    }

    /// The same for a document.
    fn described(&self) -> String {
        let words = |words: &[Json]| words.iter().map(Json::to_string).collect::<Vec<_>>().join(" or ");
        match (&self.is, &self.is_not, self.is_given) {
            (Some(is), _, _) => format!("with `{} = {}`", self.key, words(is)),
            (_, Some(is_not), _) => format!("not with `{} = {}`", self.key, words(is_not)),
            (_, _, Some(false)) => format!("not with `{}`", self.key),
            _ => format!("with {}", self.keys()),
        }
    }
}

/// Condition of a key, for a document; `None` if it is always valid.
pub(crate) fn described(schema: &Json) -> Option<String> {
    let all: Vec<String> = conditions(schema).iter().map(Condition::described).collect();
    let (first, rest) = all.split_first()?;
    let begin = if first.starts_with("with") { "Only with" } else { "Not with" };
    let first = first.trim_start_matches("not ").trim_start_matches("with");
    Some(format!("{begin}{first}{}.", rest.iter().map(|more| format!(", {more}")).collect::<String>()))
}

/// A file as values, with its schema.
struct File<'a> {
    schema: &'a Json,
    whole: &'a Json,
    /// `None` for a file of no scene, such as that of a live target.
    scene: Option<SceneName>,
}

/// A table of it.
#[derive(Clone, Copy)]
struct Table<'a> {
    schema: &'a Json,
    values: &'a Map<String, Json>,
    path: &'a str,
}

impl File<'_> {
    /// The reason why a key with this schema is not valid in its table, if it is not.
    fn idle(&self, table: Table<'_>, key: &str, schema: &Json) -> Option<String> {
        conditions(schema).iter().find_map(|condition| {
            let (given, default, _) = self.other(table, condition);
            condition.failure(key, given, default)
        })
    }

    /// The value of the other key of a condition, its default where the schema has it, and whether
    /// it is valid in the scene.
    fn other<'b>(&'b self, table: Table<'b>, condition: &Condition) -> (Option<&'b Json>, Option<&'b Json>, bool) {
        let of = condition.key.as_str();
        let value = |key: &str| if key.contains('.') { at(self.whole, key) } else { table.values.get(key) };
        let given = value(of).or_else(|| condition.or_keys.iter().find_map(|key| value(key)));
        let schema = match of.contains('.') {
            true => find(self.schema, of).ok(),
            false => property(self.schema, table.schema, of),
        };
        let varies = self.resolved(table.schema).get("defaultsVary").is_some();
        let default = schema.and_then(|schema| schema.get("default")).filter(|_| !varies);
        (given, default, schema.is_none_or(|schema| self.goes(schema)))
    }

    /// Whether an absent key is required. No key is required for an unknown value.
    fn is_missed(&self, table: Table<'_>, key: &str, schema: &Json) -> bool {
        let is_known = |condition: &Condition| {
            let (given, default, goes) = self.other(table, condition);
            !goes || given.or(default).is_some() || condition.is_given.is_some()
        };
        is_needed(schema, self.scene)
            && self.goes(schema)
            && conditions(schema).iter().all(is_known)
            && self.idle(table, key, schema).is_none()
    }

    /// Whether a key with this schema is valid in the scene.
    fn goes(&self, schema: &Json) -> bool {
        self.scene.is_none_or(|scene| goes_with(schema, scene))
    }

    fn resolved<'b>(&'b self, schema: &'b Json) -> &'b Json {
        crate::check::follow(self.schema, schema)
    }

    /// Shows every table, with its path.
    fn each_table(&self, schema: &Json, value: &Json, path: &str, visit: &mut dyn FnMut(Table<'_>)) {
        if let Some(values) = value.as_object() {
            visit(Table { schema, values, path });
        }
        let entries = value.as_object().into_iter().flatten().map(|(key, value)| (key.clone(), value));
        let items = value.as_array().into_iter().flatten().enumerate().map(|(index, value)| (index.to_string(), value));
        for (key, value) in entries.chain(items) {
            if let Some(schema) = property(self.schema, schema, &key) {
                self.each_table(schema, value, &join(path, &key), visit);
            }
        }
    }

    /// All errors: keys that are not valid, with the reason, and tables with missing keys.
    fn problems(&self) -> Vec<(String, Problem)> {
        let mut found = Vec::new();
        self.each_table(self.schema, self.whole, "", &mut |table| {
            for (key, _) in table.values {
                let schema = property(self.schema, table.schema, key);
                let schema = schema.filter(|schema| self.goes(schema));
                if let Some(reason) = schema.and_then(|schema| self.idle(table, key, schema)) {
                    found.push((join(table.path, key), Problem::Conflict(reason)));
                }
            }
            let keys = self.resolved(table.schema).get("properties").and_then(Json::as_object);
            for (key, schema) in keys.into_iter().flatten() {
                if !table.values.contains_key(key) && self.is_missed(table, key, schema) {
                    found.push((table.path.to_owned(), Problem::missing(key, &self.why_needed(table, schema))));
                }
            }
        });
        found
    }

    /// The reason of a requirement: the design, the value of another key, or the meaning.
    fn why_needed(&self, table: Table<'_>, schema: &Json) -> String {
        // Files of live roles name no design.
        let design = at(self.whole, "design.name").filter(|_| table.path.is_empty());
        if let Some(design) = design {
            return format!("the design {} needs it", label(design));
        }
        let meaning = schema.get("description").and_then(Json::as_str).unwrap_or_default().replace('\n', " ");
        let for_value =
            conditions(schema).into_iter().filter(|condition| condition.is.is_some()).find_map(|condition| {
                let (given, default, goes) = self.other(table, &condition);
                given.or(default).filter(|_| goes).map(|value| format!("{} = {} needs it", condition.key, label(value)))
            });
        for_value.unwrap_or(meaning)
    }
}

fn is_needed(schema: &Json, scene: Option<SceneName>) -> bool {
    match schema.get("needed") {
        Some(Json::Array(scenes)) => scenes.iter().any(|word| scene.is_some_and(|scene| word == scene.word())),
        needed => needed.is_some(),
    }
}

fn at<'a>(value: &'a Json, path: &str) -> Option<&'a Json> {
    path.split('.').try_fold(value, |value, key| value.get(key))
}

/// All keys of a file that are not valid beside the others, and tables with missing keys.
pub(crate) fn idle_keys(schema: &Json, whole: &Json, scene: Option<SceneName>) -> Vec<(String, Problem)> {
    File { schema, whole, scene }.problems()
}

impl Resolver<'_> {
    /// Refuses keys that are not valid beside the others, and reports missing ones. `known` are
    /// values of keys, or of a whole table's, that are no defaults of the schema.
    pub(crate) fn refuse_idle_keys(&mut self, design: DesignName, known: &[(&str, Json)]) {
        let mut whole = self.document.to_json();
        known.iter().for_each(|(path, value)| fill(&mut whole, path, value));
        for (key, problem) in idle_keys(self.schema, &whole, Some(design.scene())) {
            if !key.is_empty() && self.document.at(&key).is_none() {
                continue;
            }
            if let Problem::Missing { wanted, .. } = &problem {
                let path = join(&key, wanted);
                if self.soundness.is_missed(&path) {
                    continue;
                }
                self.soundness.mark(&path);
            }
            self.report(&key, problem);
        }
    }
}

/// Adds absent keys.
fn fill(file: &mut Json, path: &str, value: &Json) {
    let (mut table, mut rest) = (file, path);
    while let Some((name, below)) = rest.split_once('.') {
        let Some(keys) = table.as_object_mut() else { return };
        table = keys.entry(name).or_insert_with(|| Json::Object(Map::new()));
        rest = below;
    }
    let Some(keys) = table.as_object_mut() else { return };
    add(keys.entry(rest).or_insert(Json::Null), value);
}

fn add(given: &mut Json, value: &Json) {
    match (given, value) {
        (Json::Object(given), Json::Object(value)) => {
            for (key, value) in value {
                add(given.entry(key).or_insert(Json::Null), value);
            }
        }
        (given @ Json::Null, value) => given.clone_from(value),
        _ => {}
    }
}

/// Removes keys of a whole file that are not valid in it.
pub(crate) fn forget_idle_keys(schema: &Json, whole: &mut Json, scene: Option<SceneName>) {
    let mut idle = Vec::new();
    let file = File { schema, whole, scene };
    file.each_table(schema, whole, "", &mut |table| {
        for (key, _) in table.values {
            let Some(schema) = property(schema, table.schema, key) else { continue };
            if !file.goes(schema) || file.idle(table, key, schema).is_some() {
                idle.push((pointer(table.path), key.clone()));
            }
        }
    });
    for (table, key) in idle {
        // A table that went before has taken its keys with it.
        if let Some(Json::Object(keys)) = whole.pointer_mut(&table) {
            keys.remove(&key);
        }
    }
}

/// Gives renamed keys of a whole file their first names.
pub(crate) fn with_first_names(schema: &Json, whole: &mut Json) {
    let mut renamed = Vec::new();
    let file = File { schema, whole, scene: None };
    file.each_table(schema, whole, "", &mut |table| {
        for (key, _) in table.values {
            let schema = property(schema, table.schema, key);
            if let Some(first) = schema.and_then(|schema| schema.get("was")?.as_str()) {
                renamed.push((pointer(table.path), key.clone(), first.to_owned()));
            }
        }
    });
    // Inner ones first: their tables still have the names by which they were found.
    for (table, key, first) in renamed.into_iter().rev() {
        if let Some(Json::Object(keys)) = whole.pointer_mut(&table) {
            let value = keys.remove(&key).expect("it was found there");
            keys.insert(first, value);
        }
    }
}

fn pointer(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("/{}", path.replace('.', "/")) }
}
