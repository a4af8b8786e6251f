//! SVG pictures of graphs: equal graphs give equal bytes.
//!
//! Every vertex shows its name. Cables that wrap around a grid (or join the panels of its fourth
//! and later dimensions) are dashed arcs beside the row. Parallel cables bend away from each other.
//! Failed vertices are faded and crossed by a red line; failed links are dotted and red.

mod layout;

use crate::graph::{Graph, LinkId, Medium, VertexId, VertexKind};
use layout::{Layout, Point};
use std::collections::BTreeMap;
use std::io::{self, Write};
use svg::Document;
use svg::node::element::{Group, Line, Path, Rectangle, Text, Title};

/// Colour of text.
const INK: &str = "#1f2937";
/// Colour of cables.
const CABLE: &str = "#64748b";
/// Colour of cables that wrap around.
const ROUND: &str = "#b08968";
/// Colour of failed parts.
const FAILED: &str = "#dc2626";
/// Space around the drawing, and above it for the title and the key.
const MARGIN: f64 = 34.0;
const HEAD: f64 = 58.0;
/// Minimum width of a picture, which the key needs.
const WIDTH_MIN: f64 = 460.0;
/// Distance of parallel cables at their middle.
const BEND: f64 = 9.0;

/// Writes the picture.
///
/// # Errors
///
/// When the writer fails.
pub fn write(graph: &Graph, writer: impl Write) -> io::Result<()> {
    svg::write(writer, &document(graph))
}

fn document(graph: &Graph) -> Document {
    let mut layout = Layout::of(graph);
    let size = layout.settle(MARGIN, HEAD + MARGIN, WIDTH_MIN - 2.0 * MARGIN);
    let (width, height) = (size.x + MARGIN, size.y + MARGIN);
    let title = title(graph);
    let background = Rectangle::new().set("width", number(width)).set("height", number(height)).set("fill", "#ffffff");
    Document::new()
        .set("viewBox", format!("0 0 {} {}", number(width), number(height)))
        .set("width", number(width))
        .set("height", number(height))
        .set("font-family", "Helvetica, Arial, sans-serif")
        .set("role", "img")
        .add(Title::new(title.clone()))
        .add(background)
        .add(text(&title, Point { x: MARGIN, y: 26.0 }, 15.0, "start").set("font-weight", "bold"))
        .add(key(graph))
        .add(links(graph, &layout))
        .add(vertices(graph, &layout))
}

fn title(graph: &Graph) -> String {
    let name = graph.config().map_or("custom network".to_owned(), |config| config.kind.to_string());
    let bill = graph.bill();
    let mut rates: Vec<String> = bill.cables.keys().map(|(_, rate)| rate.to_string()).collect();
    rates.dedup();
    let rates = if let [rate] = &rates[..] { format!(" of {rate}") } else { String::new() };
    let count = bill.cable_count();
    format!("{name}: {count} cable{}{rates}", if count == 1 { "" } else { "s" })
}

/// Draws the key: the colour and the number of each kind of vertex.
fn key(graph: &Graph) -> Group {
    let mut group = Group::new();
    let mut x = MARGIN;
    for (kind, count) in graph.bill().vertices {
        let at = Point { x: x + 8.0, y: 44.0 };
        let words = format!("{count} {kind}{}", plural(kind, count));
        group = group.add(shape(kind, at, 7.0)).add(text(&words, Point { x: x + 21.0, y: 48.0 }, 12.0, "start"));
        x += 36.0 + 6.8 * words.len() as f64;
    }
    group
}

fn plural(kind: VertexKind, count: u64) -> &'static str {
    match (kind, count) {
        (_, 1) => "",
        (VertexKind::Switch, _) => "es",
        _ => "s",
    }
}

fn links(graph: &Graph, layout: &Layout) -> Group {
    let mut bundles: BTreeMap<[VertexId; 2], Vec<LinkId>> = BTreeMap::new();
    for index in 0..graph.links().len() as u32 {
        let [first, second] = graph.link(LinkId(index)).ends.map(|end| end.vertex);
        bundles.entry([first.min(second), first.max(second)]).or_default().push(LinkId(index));
    }
    let mut group = Group::new().set("fill", "none");
    for bundle in bundles.into_values() {
        for (index, link) in bundle.iter().enumerate() {
            let aside = BEND * (index as f64 - (bundle.len() - 1) as f64 / 2.0);
            group = group.add(draw_link(graph, layout, *link, aside));
        }
    }
    group
}

fn draw_link(graph: &Graph, layout: &Layout, id: LinkId, aside: f64) -> Path {
    let link = graph.link(id);
    let ends = link.ends.map(|end| end.vertex);
    // Bundles are sorted by their lower end, so that all bends of a bundle have the same
    // orientation.
    let [from, to] = [ends[0].min(ends[1]), ends[0].max(ends[1])].map(|end| layout.at(end));
    let round = layout.arc(ends);
    let failed = !graph.link_works(id);
    let colour = if failed {
        FAILED
    } else if round.is_some() {
        ROUND
    } else {
        CABLE
    };
    let path = Path::new()
        .set("d", curve(from, to, round.unwrap_or(0.0), aside))
        .set("stroke", colour)
        .set("stroke-width", if link.medium == Medium::Board { "4" } else { "1.6" });
    match (failed, round) {
        (true, _) => path.set("stroke-dasharray", "2 4"),
        (false, Some(_)) => path.set("stroke-dasharray", "6 3"),
        (false, None) => path,
    }
}

/// Returns a line, or an arc that leaves both ends sideways. The handles are displaced to the left
/// by `round` and, scaled, by `aside`.
fn curve(from: Point, to: Point, round: f64, aside: f64) -> String {
    let (dx, dy) = (to.x - from.x, to.y - from.y);
    let length = dx.hypot(dy).max(1.0);
    // A cubic bulges three quarters as far as its handles.
    let out = round + aside / 0.75;
    let (left_x, left_y) = (dy / length * out, -dx / length * out);
    if out == 0.0 {
        return format!("M{} {}L{} {}", number(from.x), number(from.y), number(to.x), number(to.y));
    }
    // Arcs around a row rise steeply, to clear the next vertex; bundles bend evenly.
    let lean = if round == 0.0 { 0.3 } else { 0.06 };
    let handles =
        [lean, 1.0 - lean].map(|along| Point { x: from.x + dx * along + left_x, y: from.y + dy * along + left_y });
    let points = [from, handles[0], handles[1], to].map(|point| format!("{} {}", number(point.x), number(point.y)));
    format!("M{}C{} {} {}", points[0], points[1], points[2], points[3])
}

fn vertices(graph: &Graph, layout: &Layout) -> Group {
    let mut group = Group::new();
    for id in graph.vertex_ids() {
        let (vertex, at, radius) = (graph.vertex(id), layout.at(id), layout.radius(id));
        let works = graph.works(id);
        let mut drawn = shape(vertex.kind, at, radius);
        if !works {
            drawn = drawn.set("opacity", "0.45");
        }
        let label = shortened(&vertex.name);
        let size = (2.4 * radius / label.chars().count().max(2) as f64).clamp(6.5, 12.0);
        let hover =
            Title::new(format!("{} {}, {} of {} ports", vertex.kind, vertex.name, used(graph, id), vertex.ports));
        let caption = text(&label, Point { x: at.x, y: at.y + size * 0.35 }, size, "middle");
        group = group.add(Group::new().add(hover).add(drawn).add(caption));
        if !works {
            group = group.add(strike(at, radius));
        }
    }
    group
}

/// Shortens a name to fit its vertex; the full name is in the hover text.
fn shortened(name: &str) -> String {
    if name.chars().count() <= 6 { name.into() } else { name.chars().take(5).chain(['…']).collect() }
}

fn used(graph: &Graph, id: VertexId) -> usize {
    graph.hops(id).iter().filter(|hop| graph.egress_port(hop.channel).is_some()).count()
}

/// Draws adapters and hosts round, targets and switches square.
fn shape(kind: VertexKind, at: Point, radius: f64) -> Rectangle {
    let (fill, stroke, corner) = match kind {
        VertexKind::Host => ("#dbeafe", "#2563eb", radius),
        VertexKind::Target => ("#fef3c7", "#b45309", 2.0),
        VertexKind::Adapter => ("#dcfce7", "#15803d", radius),
        VertexKind::Switch => ("#ede9fe", "#6d28d9", 4.0),
    };
    Rectangle::new()
        .set("x", number(at.x - radius))
        .set("y", number(at.y - radius))
        .set("width", number(2.0 * radius))
        .set("height", number(2.0 * radius))
        .set("rx", number(corner))
        .set("fill", fill)
        .set("stroke", stroke)
        .set("stroke-width", "1.5")
}

fn strike(at: Point, radius: f64) -> Line {
    Line::new()
        .set("x1", number(at.x - radius))
        .set("y1", number(at.y + radius))
        .set("x2", number(at.x + radius))
        .set("y2", number(at.y - radius))
        .set("stroke", FAILED)
        .set("stroke-width", "2.5")
}

fn text(words: &str, at: Point, size: f64, anchor: &str) -> Text {
    Text::new(words)
        .set("x", number(at.x))
        .set("y", number(at.y))
        .set("font-size", number(size))
        .set("text-anchor", anchor)
        .set("fill", INK)
}

/// A tenth of a pixel is precise enough, and formats identically everywhere.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".into(),
        Some(whole) => whole.into(),
        None => text,
    }
}
