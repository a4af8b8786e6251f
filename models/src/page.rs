//! Traces inside a page: a line `<!-- trace H5 -->` is followed by a code block with the trace of
//! that case.

use crate::catalog;
use crate::explore::explore;

/// A page could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// There is no such case.
    #[error("line {line}: no case is called {name}")]
    UnknownCase {
        /// Where, from 1.
        line: usize,
        /// The requested name.
        name: String,
    },
    /// Nothing is found in that case.
    #[error("line {line}: nothing is wrong in {name}, so it has no trace")]
    NoTrace {
        /// Where, from 1.
        line: usize,
        /// The requested name.
        name: String,
    },
    /// A marker has no code block.
    #[error("line {line}: after the marker of {name} comes no code block")]
    NoBlock {
        /// Where, from 1.
        line: usize,
        /// The requested name.
        name: String,
    },
}

/// The page with all traces as the model has them now.
pub fn refresh(page: &str) -> Result<String, PageError> {
    let mut lines = page.lines().enumerate();
    let mut fresh = String::new();
    while let Some((number, text)) = lines.next() {
        fresh.push_str(text);
        fresh.push('\n');
        let Some(name) = marked(text) else { continue };
        let (line, name) = (number + 1, name.to_owned());
        if lines.next().is_none_or(|(_, fence)| !fence.starts_with("```")) {
            return Err(PageError::NoBlock { line, name });
        }
        if !lines.any(|(_, text)| text == "```") {
            return Err(PageError::NoBlock { line, name });
        }
        fresh.push_str(&format!("```text\n{}\n```\n", trace(line, &name)?));
    }
    Ok(fresh)
}

fn marked(line: &str) -> Option<&str> {
    line.strip_prefix("<!-- trace ")?.strip_suffix(" -->")
}

fn trace(line: usize, name: &str) -> Result<String, PageError> {
    let case = catalog::find(name).ok_or_else(|| PageError::UnknownCase { line, name: name.to_owned() })?;
    let outcome = explore(case.variant, case.scenario, None);
    let trace = outcome.trace.ok_or_else(|| PageError::NoTrace { line, name: name.to_owned() })?;
    Ok(trace.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_takes_the_place_of_the_block_after_its_marker() {
        let page = "# Title\n<!-- trace H17 -->\n```text\nold\n```\nend\n";
        let fresh = refresh(page).expect("H17 has a trace");
        assert!(fresh.contains("PUT x=2") && !fresh.contains("old\n"), "{fresh}");
        assert!(fresh.starts_with("# Title\n") && fresh.ends_with("```\nend\n"), "{fresh}");
        assert_eq!(refresh(&fresh).expect("H17 has a trace"), fresh);
    }

    #[test]
    fn what_has_no_trace_is_named_with_its_line() {
        for (page, message) in [
            ("<!-- trace H99 -->\n```\n```\n", "line 1: no case is called H99"),
            ("\n<!-- trace paper -->\n```\n```\n", "line 2: nothing is wrong in paper, so it has no trace"),
            ("<!-- trace H5 -->\ntext\n", "line 1: after the marker of H5 comes no code block"),
            ("<!-- trace H5 -->\n```text\nnever closed\n", "line 1: after the marker of H5 comes no code block"),
        ] {
            assert_eq!(refresh(page).expect_err("there is no trace").to_string(), message);
        }
    }
}
