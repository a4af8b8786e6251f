//! The pages of docs/reference with every key of a file, generated from the schema: a page for each
//! scene, one for what all experiments have, one for each file of a live role.

use crate::check::follow;
use crate::design_file::DesignName;
use crate::idle::described;
use crate::scene::{SceneName, goes_with};
use serde_json::{Map, Value as Json};
use std::fmt::Write;

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The name of its file, without `.md`.
    pub name: String,
    /// What it says, in Markdown.
    pub text: String,
}

/// Each scene, with its description and its page.
const SCENES: [(SceneName, &str, &str); 6] = [
    (SceneName::Messages, "messages between nodes around a switch", "[edm](../concepts/edm.md)"),
    (SceneName::Volumes, "volumes on storage servers", "[volumes](volumes.md)"),
    (SceneName::San, "hosts and drives on a network", "[SAN](san-plans.md)"),
    (SceneName::Wear, "drives that wear over years", "[wear levelling](../concepts/wear-levelling.md)"),
    (SceneName::Devices, "the devices of a machine", "[S-Direct](../concepts/s-direct.md)"),
    (SceneName::KeyValue, "a key-value store on a JBOF", "[key-value stores](key-value.md)"),
];

/// The source of a page.
const MADE: &str = "Made from the schema that checks files, by `BLESS=1 cargo test -p plan --test plan reference`.";

/// A file of a live role.
struct Live {
    /// The name of its page.
    page: &'static str,
    /// What it is about.
    what: &'static str,
    /// The page that explains it.
    explained: &'static str,
    schema: fn() -> Json,
}

const LIVE: [Live; 4] = [
    Live { page: "target-keys", what: "live target", explained: "target", schema: crate::target::schema },
    Live { page: "kv-keys", what: "key-value store", explained: "kv", schema: crate::kv::schema },
    Live { page: "jbof-keys", what: "JBOF of a key-value store", explained: "kv", schema: crate::jbof::schema },
    Live { page: "rack-keys", what: "live rack", explained: "rack", schema: crate::rack::schema },
];

/// Every page.
pub fn pages() -> Vec<Page> {
    let experiment = crate::schema();
    let mut pages = vec![common_page(&experiment)];
    pages.extend(SCENES.iter().map(|scene| scene_page(&experiment, *scene)));
    pages.extend(LIVE.iter().map(live_page));
    pages
}

/// The keys of the file of a live role.
fn live_page(live: &Live) -> Page {
    let Live { page, what, explained, schema } = live;
    let root = schema();
    let mut text =
        format!("# Every key of the {what}\n\n{MADE}\nWhat the keys do together: [the {what}]({explained}.md).\n");
    Section { root: &root, scene: None }.write("", &root, &mut text);
    Page { name: (*page).into(), text }
}

/// The keys of every experiment.
fn common_page(root: &Json) -> Page {
    let mut text = format!(
        "# Keys of every experiment\n\n{MADE}\nRules that hold for the whole file: [experiment files](../guide/experiment-files.md).\n\
         The other keys depend on what the design is about, which `design.name` names:\n\n| designs | keys |\n| --- | --- |\n"
    );
    for (scene, what, _) in SCENES {
        let designs = designs(root, scene).join("`, `");
        writeln!(text, "| `{designs}` | [{what}]({}.md) |", page_name(scene)).expect("a text takes all");
    }
    let section = Section { root, scene: None };
    let of_all = |key: &str, schema: &Json| schema.get("goesWith").is_none() && key != "design";
    let mut whole = root.clone();
    let keys = whole["properties"].as_object_mut().expect("a file has keys");
    keys.retain(|key, schema| of_all(key, schema));
    section.write("", &whole, &mut text);
    Page { name: "keys".into(), text }
}

fn scene_page(root: &Json, (scene, what, where_): (SceneName, &str, &str)) -> Page {
    let designs = designs(root, scene).join("`, `");
    let mut text = format!(
        "# Keys of experiments about {what}\n\n{MADE}\nFor the designs `{designs}`; what the keys do together: {where_}.\n\
         Keys of every experiment are [in a list of their own](keys.md).\n"
    );
    let section = Section { root, scene: Some(scene) };
    for (key, schema) in properties(root, root) {
        // The others' designs have no parameters there.
        let is_own = schema.get("goesWith").is_some() || key == "design" && scene == SceneName::Messages;
        if is_own && goes_with(schema, scene) {
            section.below(key, schema, &mut text);
        }
    }
    Page { name: page_name(scene), text }
}

fn page_name(scene: SceneName) -> String {
    format!("keys-{}", scene.word())
}

/// The words of a scene's designs.
fn designs(root: &Json, scene: SceneName) -> Vec<String> {
    let all = words(&root["$defs"]["DesignName"]).into_iter().map(|(word, _)| word);
    let is_of = |word: &String| {
        serde_json::from_value::<DesignName>(word.as_str().into()).is_ok_and(|design| design.scene() == scene)
    };
    all.filter(is_of).collect()
}

/// Allowed words of a value, each with its meaning.
fn words(schema: &Json) -> Vec<(String, String)> {
    let text = |value: &Json, key| value[key].as_str().map(str::to_owned).unwrap_or_default();
    let choices = schema["oneOf"].as_array().map_or(&[][..], Vec::as_slice);
    choices.iter().map(|choice| (text(choice, "const"), text(choice, "description"))).collect()
}

/// The keys of a table.
fn properties<'a>(root: &'a Json, schema: &'a Json) -> &'a Map<String, Json> {
    follow(root, schema)["properties"].as_object().expect("a table has keys")
}

/// Writes tables, with the keys that go with a scene.
struct Section<'a> {
    root: &'a Json,
    scene: Option<SceneName>,
}

impl Section<'_> {
    /// The table called `name`, and behind it the tables inside.
    fn write(&self, name: &str, schema: &Json, text: &mut String) {
        let schema = follow(self.root, schema);
        let title = if name.is_empty() { "The file".to_owned() } else { format!("`{name}`") };
        let description = schema["description"].as_str().unwrap_or_default();
        write!(
            text,
            "\n## {title}\n\n{description}\n\n| key | values | default | meaning |\n| --- | --- | --- | --- |\n"
        )
        .expect("a text takes all");
        let keys = || properties(self.root, schema).iter().filter(|(_, schema)| self.is_shown(schema));
        let needed: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        keys().for_each(|(key, schema)| *text += &self.row(key, schema, needed.contains(&key.as_str())));
        let inside = name.trim_matches(['[', ']']);
        for (key, schema) in keys() {
            let path = if inside.is_empty() { key.clone() } else { format!("{inside}.{key}") };
            self.below(&path, schema, text);
        }
    }

    /// The table at `path`, if there is one.
    fn below(&self, path: &str, schema: &Json, text: &mut String) {
        let schema = follow(self.root, schema);
        let table = schema["anyOf"].as_array().and_then(|all| all.iter().find(|one| self.is_table(one)));
        if self.is_table(&schema["items"]) {
            self.write(&format!("[[{path}]]"), &schema["items"], text);
        } else if let Some(table) = table.or_else(|| self.is_table(schema).then_some(schema)) {
            self.write(&format!("[{path}]"), table, text);
        }
    }

    fn is_shown(&self, schema: &Json) -> bool {
        self.scene.is_none_or(|scene| goes_with(schema, scene))
    }

    fn is_table(&self, schema: &Json) -> bool {
        follow(self.root, schema)["properties"].is_object()
    }

    fn row(&self, key: &str, schema: &Json, is_needed: bool) -> String {
        let mut meaning = schema["description"].as_str().unwrap_or_default().to_owned();
        for (word, what) in words(follow(self.root, schema)) {
            write!(meaning, " `{word}`: {what}").expect("a text takes all");
        }
        let default = match schema.get("default") {
            Some(default) => format!("`{default}`"),
            None if is_needed || schema.get("needed").is_some() => "needed".into(),
            None => String::new(),
        };
        if let Some(when) = described(schema) {
            write!(meaning, " {when}").expect("a text takes all");
        }
        let meaning = meaning.replace('\n', " ").replace('|', "\\|");
        format!("| `{key}` | {} | {default} | {meaning} |\n", self.values(schema))
    }

    /// Allowed values of a key.
    fn values(&self, schema: &Json) -> String {
        let schema = follow(self.root, schema);
        let words = words(schema);
        if !words.is_empty() {
            return words.iter().map(|(word, _)| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ");
        }
        if let Some(branches) = schema["anyOf"].as_array() {
            return branches.iter().map(|branch| self.values(branch)).collect::<Vec<_>>().join(" or ");
        }
        if let Some(only) = schema["enum"].as_array() {
            return only.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        }
        match schema["type"].as_str().unwrap_or_default() {
            "array" if self.is_table(&schema["items"]) => "tables, below".into(),
            "array" => self.list(schema),
            "object" if self.is_table(schema) => "table, below".into(),
            "object" => "key paths with values".into(),
            "integer" => ranged("whole number", schema, ""),
            "number" => ranged("number", schema, ""),
            "string" => match schema["examples"][0].as_str() {
                Some(example) if schema.get("formatMaximum").or_else(|| schema.get("formatMinimum")).is_none() => {
                    format!("{} such as `\"{example}\"`", schema["format"].as_str().unwrap_or("text"))
                }
                _ => ranged(schema["format"].as_str().unwrap_or("text"), schema, "format"),
            },
            other => other.into(),
        }
    }

    fn list(&self, schema: &Json) -> String {
        match schema["prefixItems"].as_array() {
            Some(parts) => {
                let parts: Vec<String> = parts.iter().map(|part| self.values(part)).collect();
                format!("[{}]", parts.join(", "))
            }
            None => format!("list of {}", self.values(&schema["items"])),
        }
    }
}

/// A kind of value with its bounds, whose names begin with `prefix`.
fn ranged(kind: &str, schema: &Json, prefix: &str) -> String {
    let bound = |name: &str| {
        let name = if prefix.is_empty() {
            name.to_owned()
        } else {
            format!("{prefix}{}{}", name[..1].to_uppercase(), &name[1..])
        };
        match schema.get(&name)? {
            Json::String(text) => Some(text.clone()),
            // A bound that the type has by itself says nothing.
            number if number.as_f64() == Some(0.0) && name == "minimum" && schema.get("maximum").is_none() => None,
            number => Some(number.to_string()),
        }
    };
    match (bound("exclusiveMinimum"), bound("minimum"), bound("maximum")) {
        (Some(above), _, Some(most)) => format!("{kind} above {above}, up to {most}"),
        (Some(above), _, None) => format!("{kind} above {above}"),
        (None, Some(least), Some(most)) => format!("{kind}, {least} to {most}"),
        (None, Some(least), None) => format!("{kind}, {least} or more"),
        (None, None, Some(most)) => format!("{kind} up to {most}"),
        (None, None, None) => kind.into(),
    }
}
