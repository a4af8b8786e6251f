//! The scene of an experiment decides which tables and keys are valid. All others are refused, by
//! one list.

use crate::check::property;
use crate::design_file::DesignName;
use crate::document::Node;
use crate::error::Problem;
use crate::resolve::Resolver;
use crate::soundness::join;
use SceneName::{Devices, KeyValue, Messages, San, Volumes, Wear};
use serde_json::Value as Json;

/// The scene of a design, which decides the part of the program that reads the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SceneName {
    /// Messages between nodes around a switch.
    Messages,
    /// Volumes on storage servers.
    Volumes,
    /// Volumes that wear over years, without requests.
    Wear,
    /// Hosts and drives on a topology.
    San,
    /// The devices of a machine.
    Devices,
    /// A key-value store on a JBOF, or the JBOF without a store.
    KeyValue,
}

impl SceneName {
    /// The word for it in the schema and in the names of documents.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Messages => "messages",
            Volumes => "volumes",
            Wear => "wear",
            San => "san",
            Devices => "devices",
            KeyValue => "key-value",
        }
    }
}

impl DesignName {
    /// The scene of the design.
    pub(crate) fn scene(self) -> SceneName {
        match self {
            DesignName::Rackblox | DesignName::RackbloxSoftware | DesignName::Vdc => Volumes,
            DesignName::WearLevelling => Wear,
            DesignName::San | DesignName::SanPlain => San,
            DesignName::SDirect | DesignName::Linux | DesignName::Spdk | DesignName::TargetOffload => Devices,
            DesignName::Scalio
            | DesignName::Leed
            | DesignName::LeedDitto
            | DesignName::NvmeOf
            | DesignName::NvmeOfOffload => KeyValue,
            // EDM and its rivals.
            _ => Messages,
        }
    }
}

impl Resolver<'_> {
    /// Refuses keys without a meaning for the design; of a refused table, the table alone.
    pub(crate) fn refuse_what_means_nothing(&mut self, design: DesignName) {
        let mut strangers = Vec::new();
        find_strangers(self.schema, self.schema, self.document, "", design.scene(), &mut strangers);
        for path in strangers {
            let key = path.rsplit('.').next().unwrap_or(&path);
            let reason = format!("`{key}` is not valid with the design {}", design.word());
            // Whatever else is wrong with its table.
            self.soundness.mark(&path);
            self.problems.add(self.document.place_of(&path), &path, Problem::Conflict(reason));
        }
    }
}

/// Whether a schema goes with `scene`: with its table, unless it says more.
pub(crate) fn goes_with(schema: &Json, scene: SceneName) -> bool {
    let scenes = schema.get("goesWith").and_then(Json::as_array);
    scenes.is_none_or(|scenes| scenes.iter().any(|word| word == scene.word()))
}

/// Adds the paths below `path` that are not valid with `scene`.
fn find_strangers(root: &Json, schema: &Json, node: &Node, path: &str, scene: SceneName, out: &mut Vec<String>) {
    let entries = node.entries().iter().map(|entry| (entry.key.clone(), &entry.node));
    let items = node.items().iter().enumerate().map(|(index, item)| (index.to_string(), item));
    for (key, below) in entries.chain(items) {
        let Some(schema) = property(root, schema, &key) else { continue };
        let path = join(path, &key);
        if goes_with(schema, scene) {
            find_strangers(root, schema, below, &path, scene, out);
        } else {
            out.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::schema;

    /// Tables that every experiment may have, whatever it is about; a `design`'s own tables are
    /// checked with all points.
    const OF_ALL: [&str; 8] = ["title", "seed", "seeds", "files", "design", "record", "sweep", "scale"];

    #[test]
    fn every_table_of_an_experiment_says_what_it_goes_with() {
        for (key, schema) in schema()["properties"].as_object().expect("a table has keys") {
            assert_eq!(schema["goesWith"].is_null(), OF_ALL.contains(&key.as_str()), "{key}");
        }
    }

    #[test]
    fn a_key_goes_with_no_scene_that_its_table_does_not_go_with() {
        let root = schema();
        for (key, table) in root["properties"].as_object().expect("a table has keys") {
            let Some(of_table) = table["goesWith"].as_array() else { continue };
            for name in ["fabric", "flash", "io", "fault"].iter().filter(|name| *name == key) {
                let keys = property(&root, &root, name).map(|schema| property(&root, schema, "0").unwrap_or(schema));
                let keys = crate::check::follow(&root, keys.expect("it is a table"));
                for (key, schema) in keys["properties"].as_object().expect("a table has keys") {
                    let of_key = schema["goesWith"].as_array();
                    assert!(of_key.is_none_or(|of_key| of_key.len() < of_table.len()), "{name}.{key} says it again");
                    assert!(
                        of_key.is_none_or(|of_key| of_key.iter().all(|word| of_table.contains(word))),
                        "{name}.{key}"
                    );
                }
            }
        }
    }
}
