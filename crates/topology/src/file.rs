//! Files of custom graphs, in TOML. All keys are mandatory, and no others are allowed; cables use
//! ports in the order of the file.
//!
//! ```toml
//! [[vertex]]
//! name = "a0"
//! kind = "adapter"     # host, target, adapter, switch
//! ports = 4
//!
//! [[link]]
//! ends = ["a0", "a1"]
//! medium = "cable"     # cable, board
//! rate = "100Gbps"
//! length = "2m"        # of a board "0mm"
//! ```

use crate::builder::Builder;
use crate::error::BuildError;
use crate::graph::{Graph, Link, LinkId, Vertex, VertexId, VertexKind};
use base::{Length, Rate};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use toml::Spanned;

/// Maximum length of a file; about 60 bytes per link for [`LINKS_MAX`](crate::LINKS_MAX) links.
const FILE_BYTES_MAX: u64 = 128 << 20;
/// Maximum length of a vertex name, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// Reason why a file is no valid graph, with the file, the line (from 1), and the text found.
#[derive(Debug, thiserror::Error)]
#[error("{file}:{line}: {reason}")]
pub struct FileError {
    /// The file's name, as it was given to the reader.
    pub file: String,
    /// The line, from 1; 1 if the error concerns the whole file.
    pub line: usize,
    /// The error, and what is allowed.
    pub reason: Reason,
}

/// The error in a line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// Reading the file failed.
    #[error("cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The file is too long.
    #[error("is longer than {FILE_BYTES_MAX} bytes")]
    TooLong,
    /// The bytes are not UTF-8 text.
    #[error("is not UTF-8 text")]
    NotUtf8,
    /// The file is not TOML, a key is missing, unknown or duplicate, or a value is invalid.
    #[error("{0}")]
    Syntax(String),
    /// A name is empty, too long, or contains invisible characters.
    #[error("name `{got}` is not 1 to {NAME_BYTES_MAX} bytes of visible characters")]
    BadName {
        /// The name, shortened.
        got: String,
    },
    /// A link does not have two ends.
    #[error("{got} ends, a link has 2")]
    Ends {
        /// The given number.
        got: usize,
    },
    /// A link ends at a vertex that is not in the file.
    #[error("`{got}` is not the name of a vertex")]
    UnknownVertex {
        /// The name.
        got: String,
    },
    /// A board has a length.
    #[error("a board of {got}, its length must be 0mm")]
    BoardLength {
        /// The length.
        got: Length,
    },
    /// The parts are no valid network.
    #[error("{0}")]
    Build(#[source] BuildError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default)]
    vertex: Vec<Spanned<RawVertex>>,
    #[serde(default)]
    link: Vec<Spanned<RawLink>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawVertex {
    name: Spanned<String>,
    kind: RawKind,
    ports: Spanned<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLink {
    /// Two. A fixed-size array would silently accept more.
    ends: Spanned<Vec<Spanned<String>>>,
    medium: RawMedium,
    rate: Spanned<Rate>,
    length: Spanned<Length>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawKind {
    Host,
    Target,
    Adapter,
    Switch,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawMedium {
    Cable,
    Board,
}

/// Reads and checks a graph. Errors contain `name`; the function opens no file.
///
/// # Errors
///
/// If the file is not in the format, or [`Builder::finish`] rejects its graph.
pub fn read(name: &str, reader: impl Read) -> Result<Graph, FileError> {
    let text = read_text(name, reader)?;
    let source = Source { name, text: &text };
    let raw: RawFile = toml::from_str(&text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        source.error(offset, Reason::Syntax(error.message().trim().replace('\n', ", ")))
    })?;
    let mut builder = Builder::new();
    let names = add_vertices(&source, &raw.vertex, &mut builder)?;
    add_links(&source, &raw.link, &names, &mut builder)?;
    builder.finish().map_err(|error| source.error(raw.offset_of(&error), Reason::Build(error)))
}

/// Writes a graph's vertices and links so that [`read`] restores them. Failed parts are written
/// too: a file describes all parts. The parameters from which a graph was built are lost.
///
/// # Errors
///
/// When the writer fails.
pub fn write(graph: &Graph, mut writer: impl Write) -> io::Result<()> {
    let entries = graph.vertices().iter().map(vertex_entry);
    for (index, entry) in entries.chain(graph.links().iter().map(|link| link_entry(graph, link))).enumerate() {
        writer.write_all(if index == 0 { b"" } else { b"\n" })?;
        writer.write_all(entry.as_bytes())?;
    }
    Ok(())
}

/// A text that maps offsets of errors to lines.
struct Source<'a> {
    name: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn error(&self, offset: usize, reason: Reason) -> FileError {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        FileError { file: self.name.into(), line, reason }
    }
}

impl RawFile {
    /// Returns the offset of the part that `error` concerns, or 0 if it concerns the whole file.
    fn offset_of(&self, error: &BuildError) -> usize {
        let link = |id: &LinkId| self.link.get(id.index()).map(|link| link.span().start);
        let named = |wanted: &str| {
            let vertex = self.vertex.iter().find(|vertex| vertex.get_ref().name.get_ref() == wanted);
            vertex.map(|vertex| vertex.get_ref().name.span().start)
        };
        let offset = match error {
            BuildError::JoinsItself { link: id, .. }
            | BuildError::BadRate { link: id, .. }
            | BuildError::BadBoard { link: id, .. } => link(id),
            BuildError::PortsOverRadix { name, .. } => named(name),
            BuildError::Disconnected { unreached, .. } => named(unreached),
            _ => None,
        };
        offset.unwrap_or(0)
    }
}

fn read_text(name: &str, reader: impl Read) -> Result<String, FileError> {
    let whole = |reason| FileError { file: name.into(), line: 1, reason };
    let mut bytes = Vec::new();
    let read = reader.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    match read {
        Err(error) => Err(whole(Reason::Read(error))),
        Ok(length) if length as u64 > FILE_BYTES_MAX => Err(whole(Reason::TooLong)),
        Ok(_) => String::from_utf8(bytes).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            FileError { file: name.into(), line, reason: Reason::NotUtf8 }
        }),
    }
}

/// Adds the vertices in the order of the file.
fn add_vertices<'a>(
    source: &Source<'_>,
    raw: &'a [Spanned<RawVertex>],
    builder: &mut Builder,
) -> Result<BTreeMap<&'a str, VertexId>, FileError> {
    let mut names = BTreeMap::new();
    for vertex in raw.iter().map(Spanned::get_ref) {
        let name = vertex.name.get_ref();
        let is_visible = |c: char| !c.is_control() && !c.is_whitespace();
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_visible) {
            let got = name.chars().take(NAME_BYTES_MAX).flat_map(char::escape_debug).collect();
            return Err(source.error(vertex.name.span().start, Reason::BadName { got }));
        }
        let id = builder.vertex(vertex.kind.into(), name, *vertex.ports.get_ref());
        if let Some(first) = names.insert(name.as_str(), id) {
            let twice = BuildError::NameTwice { name: name.clone(), first: first.index(), second: id.index() };
            return Err(source.error(vertex.name.span().start, Reason::Build(twice)));
        }
    }
    Ok(names)
}

fn add_links(
    source: &Source<'_>,
    raw: &[Spanned<RawLink>],
    names: &BTreeMap<&str, VertexId>,
    builder: &mut Builder,
) -> Result<(), FileError> {
    let find = |end: &Spanned<String>| {
        let unknown = || Reason::UnknownVertex { got: end.get_ref().clone() };
        names.get(end.get_ref().as_str()).copied().ok_or_else(|| source.error(end.span().start, unknown()))
    };
    for link in raw.iter().map(Spanned::get_ref) {
        let [first, second] = &link.ends.get_ref()[..] else {
            let got = link.ends.get_ref().len();
            return Err(source.error(link.ends.span().start, Reason::Ends { got }));
        };
        let ends = [find(first)?, find(second)?];
        let (rate, length) = (*link.rate.get_ref(), *link.length.get_ref());
        match link.medium {
            RawMedium::Cable => builder.cable(ends, rate, length),
            RawMedium::Board if length == Length::mm(0) => builder.board(ends, rate),
            RawMedium::Board => {
                return Err(source.error(link.length.span().start, Reason::BoardLength { got: length }));
            }
        };
    }
    Ok(())
}

impl From<RawKind> for VertexKind {
    fn from(kind: RawKind) -> VertexKind {
        match kind {
            RawKind::Host => VertexKind::Host,
            RawKind::Target => VertexKind::Target,
            RawKind::Adapter => VertexKind::Adapter,
            RawKind::Switch => VertexKind::Switch,
        }
    }
}

fn vertex_entry(vertex: &Vertex) -> String {
    let name = toml::Value::from(vertex.name.as_str());
    format!("[[vertex]]\nname = {name}\nkind = \"{}\"\nports = {}\n", vertex.kind, vertex.ports)
}

fn link_entry(graph: &Graph, link: &Link) -> String {
    let [first, second] = link.ends.map(|end| toml::Value::from(graph.vertex(end.vertex).name.as_str()));
    let (medium, rate, length) = (link.medium.word(), link.rate, link.length);
    format!("[[link]]\nends = [{first}, {second}]\nmedium = \"{medium}\"\nrate = \"{rate}\"\nlength = \"{length}\"\n")
}
