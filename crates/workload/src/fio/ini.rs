//! Sections and options of a job file, with their lines.

use super::job::JobFile;
use super::options::job;
use crate::file::{FileError, Lines, Reason};
use std::io::BufRead;

/// An option as it is written.
#[derive(Clone, Debug)]
pub(super) struct Written {
    pub key: String,
    pub value: String,
    pub line: u64,
}

/// A section.
struct Section {
    name: String,
    line: u64,
    options: Vec<Written>,
}

/// Reads a job file. Errors and notes contain `name`.
///
/// Options of a `[global]` section apply to the following jobs; the latest of several counts. `;`
/// and `#` begin a comment.
///
/// # Errors
/// An unsupported option, an invalid value, a line that is no option; a file without jobs.
pub fn read_job_file(name: &str, reader: impl BufRead) -> Result<JobFile, FileError> {
    let sections = sections(name, reader)?;
    let mut file = JobFile { jobs: Vec::new(), notes: Vec::new() };
    let mut global: Vec<Written> = Vec::new();
    for section in sections {
        if section.name == "global" {
            global.extend(section.options);
            continue;
        }
        let own = global.iter().cloned().chain(section.options).collect();
        file.jobs.push(job(name, &section.name, own, &mut file.notes)?);
    }
    file.notes.dedup();
    if file.jobs.is_empty() {
        return Err(FileError { file: name.into(), line: 1, reason: Reason::Empty });
    }
    Ok(file)
}

fn sections(name: &str, reader: impl BufRead) -> Result<Vec<Section>, FileError> {
    let mut lines = Lines::new(name, reader);
    let mut sections: Vec<Section> = Vec::new();
    let mut number = 0;
    while let Some(line) = lines.next()? {
        number += 1;
        let text = line.text.trim_start_matches('\u{feff}');
        let text = text.split([';', '#']).next().unwrap_or("").trim().to_owned();
        if text.is_empty() {
            continue;
        }
        let reason = |why| Reason::Syntax { got: text.clone(), why };
        if let Some(inner) = text.strip_prefix('[') {
            let section = inner.strip_suffix(']').map(str::trim).filter(|section| !section.is_empty());
            let section = section.ok_or_else(|| lines.error(reason("no section: [name] is expected")))?;
            sections.push(Section { name: section.into(), line: number, options: Vec::new() });
            continue;
        }
        let Some(section) = sections.last_mut() else {
            return Err(lines.error(reason("an option before the first [section]")));
        };
        let (key, value) = text.split_once('=').unwrap_or((&text, ""));
        section.options.push(Written {
            key: key.trim().to_ascii_lowercase(),
            value: value.trim().into(),
            line: number,
        });
    }
    check_names(name, &sections)?;
    Ok(sections)
}

/// fio lets jobs share a name; their made-up files would then be the same, which is hardly meant.
fn check_names(file: &str, sections: &[Section]) -> Result<(), FileError> {
    for (index, section) in sections.iter().enumerate().filter(|(_, section)| section.name != "global") {
        if sections[..index].iter().any(|before| before.name == section.name) {
            let reason = Reason::Syntax { got: format!("[{}]", section.name), why: "the name of two jobs" };
            return Err(FileError { file: file.into(), line: section.line, reason });
        }
    }
    Ok(())
}
