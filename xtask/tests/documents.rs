//! The documents keep up with the project: their links lead somewhere, their experiments are experiments.

use std::path::{Path, PathBuf};

use spec::NoFiles;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Every Markdown file with its text, but for what cargo and runs produce and what others wrote.
fn documents() -> Vec<(PathBuf, String)> {
    let mut folders = vec![root()];
    let mut documents = Vec::new();
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy();
            if path.is_dir() && !name.starts_with('.') && !["out", "target", "vendor"].contains(&&*name) {
                folders.push(path);
            } else if name.ends_with(".md") {
                let text = std::fs::read_to_string(&path).unwrap();
                documents.push((path, text));
            }
        }
    }
    documents.sort();
    documents
}

/// What stands between `](` and `)`, without the web and without places inside a document.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
    targets.filter(|target| !target.is_empty() && !target.contains("://") && !target.contains(char::is_whitespace))
}

/// The TOML blocks that are whole experiments: they start with a title.
fn experiments(text: &str) -> impl Iterator<Item = &str> {
    let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.filter(|block| block.starts_with("title"))
}

#[test]
fn every_link_leads_to_a_file() {
    let documents = documents();
    let linked = documents.iter().flat_map(|(path, text)| links(text).map(move |link| (path, link)));
    let broken: Vec<_> = linked.filter(|(path, link)| !path.parent().unwrap().join(link).exists()).collect();
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(documents.iter().any(|(_, text)| links(text).next().is_some()), "no link was found at all");
}

#[test]
fn every_experiment_in_the_guide_is_one_without_warnings() {
    let mut found = 0;
    for (path, text) in documents() {
        for experiment in experiments(&text) {
            let name = path.display().to_string();
            let parsed = spec::parse(&name, experiment, &NoFiles, &[]).unwrap_or_else(|errors| panic!("{errors}"));
            let warnings: Vec<_> = parsed.points(None).into_iter().flat_map(|point| point.plan.warnings).collect();
            assert!(warnings.is_empty(), "{name}: {warnings:?}");
            found += 1;
        }
    }
    assert!(found >= 2, "the guide has two whole experiments, {found} were found");
}
