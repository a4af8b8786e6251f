//! One copy of the code for all instances of a module.
//!
//! Verilator writes the functions of a module that is not inlined once for each instance. They are
//! the same but for the names of temporaries, where nothing that is connected to an instance is
//! written into its code (`shared.vlt`). Then all call those of the first instance: a cycle has less
//! code to read.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

const BEGIN: &str = "\nVL_INLINE_OPT void ";
const END: &str = "\n}\n";

/// Where a function is.
struct Place {
    file: usize,
    range: Range<usize>,
}

/// Takes the functions of all but the first instance out of these files, and returns the lines that
/// call those of the first instead. Of a class whose functions differ in anything, none is taken.
pub fn share(texts: &mut [String]) -> String {
    let places = places_of(texts);
    let text_of = |name: &String| places.get(name).map(|place| &texts[place.file][place.range.clone()]);
    let mut pairs: BTreeMap<&str, Option<Vec<(&String, String)>>> = BTreeMap::new();
    for name in places.keys() {
        let Some(first) = first_of(name).filter(|first| first != name) else { continue };
        let of_class = pairs.entry(class_of(name)).or_insert_with(|| Some(Vec::new()));
        let are_same = match (text_of(name), text_of(&first)) {
            (Some(one), Some(other)) => are_alike(&nameless(one, name), &nameless(other, &first)),
            _ => false,
        };
        match of_class {
            Some(found) if are_same => found.push((name, first)),
            _ => *of_class = None,
        }
    }
    let pairs: Vec<(&String, String)> = pairs.into_values().flatten().flatten().collect();
    let lines = pairs.iter().map(|(name, first)| format!("#define {name} {first}\n")).collect();
    let mut changes: Vec<(usize, Range<usize>, String)> = Vec::new();
    for (name, first) in &pairs {
        changes.push((places[*name].file, places[*name].range.clone(), String::new()));
        // The first one may be that of several.
        let (Place { file, range }, path) = (&places[first], path_of(first));
        let text = texts[*file][range.clone()].replace(&path, &path.replacen("[0]", "[any]", 1));
        changes.push((*file, range.clone(), text));
    }
    changes.sort_by_key(|(file, range, _)| (*file, range.start));
    changes.dedup_by_key(|(file, range, _)| (*file, range.start));
    for (file, range, text) in changes.into_iter().rev() {
        texts[file].replace_range(range, &text);
    }
    lines
}

/// All functions that run each cycle.
fn places_of(texts: &[String]) -> BTreeMap<String, Place> {
    let mut places = BTreeMap::new();
    for (file, text) in texts.iter().enumerate() {
        for (begin, _) in text.match_indices(BEGIN) {
            let name = text[begin + BEGIN.len()..].split('(').next().unwrap_or_default();
            if let Some(length) = text[begin..].find(END) {
                places.insert(name.to_string(), Place { file, range: begin + 1..begin + length + END.len() });
            }
        }
    }
    places
}

fn class_of(name: &str) -> &str {
    name.split("___").next().unwrap_or_default()
}

/// The name for the first of the instances, where a name has the number of one.
fn first_of(name: &str) -> Option<String> {
    let (before, rest) = name.split_once("__BRA__")?;
    let (_, after) = rest.split_once("__KET__")?;
    Some(format!("{before}__BRA__0__KET__{after}"))
}

/// The instance in messages, of the name of its function.
fn path_of(name: &str) -> String {
    let path = name.split_once("TOP__").map_or("", |(_, path)| path);
    let path = path.rsplit_once("__").map_or(path, |(path, _)| path);
    path.replace("__BRA__", "[").replace("__KET__", "]").replace("__DOT__", ".")
}

/// A function without its own name, and without that of its instance.
fn nameless(text: &str, name: &str) -> String {
    text.replace(name, "").replace(&path_of(name), "")
}

/// Whether two texts are the same but for white space and for the names of temporaries.
pub fn are_alike(one: &str, other: &str) -> bool {
    let (mut there, mut back) = (HashMap::new(), HashMap::new());
    let (mut ours, mut theirs) = (tokens(one), tokens(other));
    loop {
        match (ours.next(), theirs.next()) {
            (None, None) => return true,
            (Some(one), Some(other)) if is_temporary(one) && is_temporary(other) => {
                if *there.entry(one).or_insert(other) != other || *back.entry(other).or_insert(one) != one {
                    return false;
                }
            }
            (Some(one), Some(other)) if one == other => {}
            _ => return false,
        }
    }
}

/// Whether a name is one of those that Verilator numbers: of no signal.
fn is_temporary(name: &str) -> bool {
    ["__Vfunc_", "__Vlabel", "__Vtemp_", "__Vdly"].iter().any(|begin| name.starts_with(begin))
        || name.contains("__Vlvbound_")
}

/// Names and numbers as they are, and all other characters one by one.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start();
        let length = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
        let length = length.max(rest.chars().next()?.len_utf8());
        let (token, after) = rest.split_at(length);
        rest = after;
        Some(token)
    })
}
