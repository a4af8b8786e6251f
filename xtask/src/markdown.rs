//! Markdown by lines: prose, tables and code, which have different rules.

/// The kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An empty line.
    Blank,
    /// A heading.
    Heading,
    /// A row of a table.
    Table,
    /// Part of a code block, its fences included, or an HTML comment.
    Code,
    /// The first line of a list item.
    Item,
    /// Any other text.
    Prose,
}

/// A code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The words after the opening fence; empty for an indented block.
    pub info: String,
    /// The line of the fence, or the first line, from 1.
    pub line: usize,
    /// The code, without fences and indentation.
    pub text: String,
}

/// Returns the kind of each line of `text`.
pub fn kinds(text: &str) -> Vec<Kind> {
    let (mut is_fenced, mut is_list, mut before) = (false, false, Kind::Blank);
    let mut kinds = Vec::new();
    for line in text.lines() {
        let is_fence = line.trim_start().starts_with("```");
        let kind = match line {
            _ if is_fenced || is_fence => Kind::Code,
            _ if line.trim().is_empty() => Kind::Blank,
            _ if line.starts_with("<!--") => Kind::Code,
            _ if line.starts_with('#') => Kind::Heading,
            _ if line.starts_with('|') => Kind::Table,
            _ if line.starts_with("    ") && !is_list && before != Kind::Prose => Kind::Code,
            _ if is_item(line) => Kind::Item,
            _ => Kind::Prose,
        };
        is_fenced ^= is_fence;
        // Indented code follows unindented prose; indented prose continues a list.
        is_list = match kind {
            Kind::Item => true,
            Kind::Blank => is_list,
            _ => is_list && line.starts_with(' '),
        };
        before = kind;
        kinds.push(kind);
    }
    kinds
}

fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let number = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    line.starts_with("- ") || line.starts_with("* ") || number.len() < line.len() && number.starts_with(". ")
}

/// Returns the code blocks of `text`, fenced and indented.
pub fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut is_fenced, mut before) = (false, Kind::Blank);
    for ((number, line), kind) in text.lines().enumerate().zip(kinds(text)) {
        let fence = line.trim_start().strip_prefix("```");
        if kind == Kind::Code && !line.starts_with("<!--") {
            let is_new = if fence.is_some() { !is_fenced } else { !is_fenced && before != Kind::Code };
            if is_new {
                blocks.push(Block { info: fence.unwrap_or("").into(), line: number + 1, text: String::new() });
            }
            if fence.is_none() {
                let block = blocks.last_mut().expect("a block was opened above");
                block.text += if is_fenced { line } else { line.trim_start() };
                block.text += "\n";
            }
            is_fenced ^= fence.is_some();
        }
        before = if fence.is_some() { Kind::Blank } else { kind };
    }
    blocks
}

/// Returns the sentences of the prose and the list items of `text`, each with its first line from
/// 1. Code spans are one word, and links are their text.
pub fn sentences(text: &str) -> Vec<(usize, String)> {
    let mut sentences = Vec::new();
    let (mut paragraph, mut start) = (String::new(), 0);
    let lines = text.lines().zip(kinds(text)).chain([("", Kind::Blank)]);
    for (number, (line, kind)) in lines.enumerate() {
        if kind != Kind::Prose {
            sentences.extend(split(&plain(&paragraph)).map(|sentence| (start, sentence)));
            paragraph.clear();
        }
        if matches!(kind, Kind::Prose | Kind::Item) {
            if paragraph.is_empty() {
                start = number + 1;
            }
            paragraph += line.trim();
            paragraph.push(' ');
        }
    }
    sentences
}

/// Replaces code spans by a word and removes the targets of links.
fn plain(text: &str) -> String {
    let spans = text.split('`').enumerate();
    let spanless: String = spans.map(|(number, part)| if number % 2 == 1 { "Code" } else { part }).collect();
    let mut parts = spanless.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + "]" + part.split_once(')').map_or(part, |(_, rest)| rest))
}

/// Splits at a full stop, question or exclamation mark before a word that can begin a sentence.
fn split(text: &str) -> impl Iterator<Item = String> {
    let mut sentences = vec![String::new()];
    for word in text.split_whitespace() {
        let begins = word.starts_with(|letter: char| !letter.is_lowercase());
        let last = sentences.last_mut().expect("there is always one");
        let ends = last.trim_end_matches([')', '*', '"', '_', ']']).ends_with(['.', '?', '!']);
        if begins && ends {
            sentences.push(String::new());
        }
        let last = sentences.last_mut().expect("there is always one");
        *last += if last.is_empty() { "" } else { " " };
        *last += word;
    }
    sentences.into_iter().filter(|sentence| !sentence.is_empty())
}
