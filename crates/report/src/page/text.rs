//! Text from files made safe for the page.

use super::wide;
use maud::{Markup, PreEscaped, html};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pulldown_cmark::{CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Light Markdown: no HTML of its own (it is shown as text), no images (their description stays),
/// links only as their text, headings two levels lower than they are written, since the page has
/// its own. A table scrolls sideways by itself, by keyboard too.
pub(super) fn markdown(text: &str) -> Markup {
    let mut tables = 0;
    let events = Parser::new_ext(text, Options::ENABLE_TABLES)
        .filter_map(tamed)
        .flat_map(|event| in_its_region(event, &mut tables).into_iter().flatten());
    let mut out = String::new();
    pulldown_cmark::html::push_html(&mut out, events);
    PreEscaped(out)
}

fn tamed(event: Event<'_>) -> Option<Event<'_>> {
    match event {
        Event::Html(html) | Event::InlineHtml(html) => Some(Event::Text(html)),
        Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::HtmlBlock)
        | Event::End(TagEnd::Link | TagEnd::Image | TagEnd::HtmlBlock) => None,
        Event::Start(Tag::Heading { level, .. }) => {
            Some(Event::Start(Tag::Heading { level: lower(level), id: None, classes: Vec::new(), attrs: Vec::new() }))
        }
        Event::End(TagEnd::Heading(level)) => Some(Event::End(TagEnd::Heading(lower(level)))),
        // An ordered list may start at any number; that number is all that a list carries into an
        // attribute.
        other => Some(other),
    }
}

/// A table between the tags of a region of its own, with a number, since regions need different
/// names.
fn in_its_region<'a>(event: Event<'a>, tables: &mut usize) -> [Option<Event<'a>>; 2] {
    const END: &str = "</div>";
    match event {
        Event::Start(Tag::Table(_)) => {
            *tables += 1;
            let region = wide(&format!("Table {tables} of the text"), &html! {}).into_string();
            let begin = region.strip_suffix(END).unwrap_or(&region).to_owned();
            [Some(Event::Html(begin.into())), Some(event)]
        }
        Event::End(TagEnd::Table) => [Some(event), Some(Event::Html(END.into()))],
        other => [Some(other), None],
    }
}

fn lower(level: HeadingLevel) -> HeadingLevel {
    match level {
        HeadingLevel::H1 => HeadingLevel::H3,
        HeadingLevel::H2 => HeadingLevel::H4,
        HeadingLevel::H3 => HeadingLevel::H5,
        _ => HeadingLevel::H6,
    }
}

/// Unreserved characters of RFC 3986 stay as they are.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `text` as an address that a browser saves as a file of a media type.
pub(super) fn data_address(media: &str, text: &str) -> String {
    format!("data:{media};charset=utf-8,{}", utf8_percent_encode(text, KEPT))
}

/// JSON for use inside a `script` element: no `<` that could end it.
pub(super) fn json_in_script(json: &serde_json::Value) -> Markup {
    PreEscaped(CowStr::from(json.to_string()).replace('<', "\\u003c"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_keeps_its_text_and_loses_what_could_act() {
        let text = "# Title\n\nSome *words* and [a link](javascript:alert(1)).\n\n<script>alert(2)</script>\n\n![picture](http://x/y.png)\n\nx <img src=z onerror=alert(3)>\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n";
        let html = markdown(text).into_string();
        for kept in [
            "<h3>Title</h3>",
            "<em>words</em>",
            "a link",
            "picture",
            "&lt;script&gt;",
            "&lt;img",
            "<td>1</td>",
            "Table 1 of the text\" tabindex=\"0\"><table>",
        ] {
            assert!(html.contains(kept), "{kept}: {html}");
        }
        for gone in ["javascript:", "<script", "<img", "http://"] {
            assert!(!html.contains(gone), "{gone}: {html}");
        }
    }

    #[test]
    fn addresses_and_json_cannot_end_their_element() {
        assert_eq!(data_address("text/csv", "a,\"b\"\n#é"), "data:text/csv;charset=utf-8,a%2C%22b%22%0A%23%C3%A9");
        assert_eq!(json_in_script(&serde_json::json!("</script>")).into_string(), "\"\\u003c/script>\"");
    }
}
