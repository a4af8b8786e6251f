//! Figures and claims as files for papers and other programs.

use crate::figure::{Styles, gather, specification};
use crate::page::{PageFile, anchor, csv, picture_name};
use crate::value::{Accept, show_number, show_with_unit};
use crate::{ClaimResult, PageInput, Picture, Verdict};
use std::fmt::Write;

/// The ending of a figure's specification in Vega-Lite.
pub const SPECIFICATION: &str = ".vl.json";

/// The ending of a picture.
pub const SVG: &str = ".svg";

/// For each figure its numbers as `NAME.csv` and, unless it is a table, its drawing as
/// `NAME.vl.json`; each picture as `NAME.svg`; for the claims `claims.tex`.
pub fn exports(input: &PageInput) -> Vec<PageFile> {
    let styles = Styles::built_in();
    let mut files = Vec::new();
    for section in &input.sections {
        for (index, figure) in section.figures.iter().enumerate() {
            let data = gather(figure, &section.points);
            if data.data.is_empty() {
                continue;
            }
            let name = format!("{}-figure-{}", anchor(&section.experiment), index + 1);
            files.push(PageFile { name: format!("{name}.csv"), text: csv(&data) });
            if let Some(drawing) = specification(&figure.definition, &data, &styles) {
                files.push(PageFile { name: name + SPECIFICATION, text: drawing.to_string() });
            }
        }
        let named = |(index, picture): (usize, &Picture)| PageFile {
            name: picture_name(&section.experiment, index) + SVG,
            text: picture.svg.clone(),
        };
        files.extend(section.pictures.iter().enumerate().map(named));
    }
    let claims: Vec<&ClaimResult> = input.sections.iter().flat_map(|section| &section.claims).collect();
    if !claims.is_empty() {
        files.push(PageFile { name: "claims.tex".to_owned(), text: latex(&claims) });
    }
    files
}

/// A table for the LaTeX packages `longtable` and `booktabs`.
fn latex(claims: &[&ClaimResult]) -> String {
    let mut text = String::from(
        "% \\usepackage{booktabs,longtable}\n\\begin{longtable}{llrrll}\n\\toprule\nClaim & Quantity & Paper & Ours & \
         Accepted & Verdict \\\\\n\\midrule\n\\endhead\n",
    );
    for claim in claims {
        let ours = claim.ours.as_ref().map_or_else(|| "--".to_owned(), |ours| show_with_unit(ours, &claim.unit));
        let verdict = match claim.verdict {
            Verdict::NotComparable => "not comparable",
            other => other.name(),
        };
        let cells = [
            &claim.place,
            &claim.metric,
            &show_with_unit(&claim.paper, &claim.unit),
            &ours,
            &accepted(&claim.accept),
            verdict,
        ];
        let cells: Vec<String> = cells.into_iter().map(escaped).collect();
        let _ = writeln!(text, "{} \\\\", cells.join(" & "));
    }
    text + "\\bottomrule\n\\end{longtable}\n"
}

fn accepted(accept: &Accept) -> String {
    match accept {
        Accept::Between { low, high } => format!("{} to {}", show_number(*low), show_number(*high)),
        Accept::Truth(truth) => if *truth { "yes" } else { "no" }.to_owned(),
        Accept::Each(parts) => parts.iter().map(accepted).collect::<Vec<_>>().join(", "),
    }
}

/// Text without what LaTeX reads as a command.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' => out.push_str("\\textless{}"),
            '>' => out.push_str("\\textgreater{}"),
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => out.extend(['\\', letter]),
            '\u{202f}' | '\u{a0}' => out.push('~'),
            '–' => out.push_str("--"),
            '≥' => out.push_str("$\\geq$"),
            '×' => out.push_str("$\\times$"),
            'µ' | 'μ' => out.push_str("\\textmu{}"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::ledgers;
    use crate::judge;

    #[test]
    fn no_text_is_a_command_of_latex() {
        assert_eq!(
            escaped("50 % of_a {b} \\c ~d^ <e> f & $g #h"),
            "50 \\% of\\_a \\{b\\} \\textbackslash{}c \\textasciitilde{}d\\textasciicircum{} \\textless{}e\\textgreater{} f \\& \\$g \\#h"
        );
    }

    #[test]
    fn every_claim_is_a_row_of_six_cells() {
        for ledger in ledgers() {
            let results = judge(&ledger.claims, &[]).unwrap().results;
            let text = latex(&results.iter().collect::<Vec<_>>());
            let rows: Vec<&str> = text.lines().filter(|line| line.ends_with("\\\\")).collect();
            assert_eq!(rows.len(), results.len() + 1, "{text}");
            for row in rows {
                assert_eq!(row.replace("\\&", "").matches('&').count(), 5, "{row}");
                assert!(row.is_ascii(), "pdflatex knows no other letters without packages: {row}");
            }
        }
    }
}
