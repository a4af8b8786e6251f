//! `rackweave check`: the plan of an experiment file or of the file of a live target, and
//! whether that of a rack is right.

use crate::arguments::CheckArguments;
use crate::estimate;
use crate::failure::{Failure, bad_input, print};
use crate::load;
use crate::play::printed;
use crate::{rack, target, twin};
use campaign::terminal::say;
use plan::Point;

/// Prints plans with their hashes and warnings. What is printed is an experiment file again, when
/// it is one point.
pub fn check(arguments: &CheckArguments) -> Result<(), Failure> {
    if let Some(plan) = target::plan_of_file(&arguments.source.file)? {
        return print(&plan.without_secrets().to_toml());
    }
    if twin::run::is_rack(&arguments.source.file) {
        return rack::read(&arguments.source.file).and_then(|_| print("the file is right\n"));
    }
    let points = load::points(&arguments.source)?;
    let count = points.len();
    let shown = chosen(&points, arguments)?;
    for (index, point) in shown {
        print(&text(index, count, point))?;
        for warning in &point.plan.warnings {
            say(format_args!("warning: {}{warning}", prefix(point)));
        }
        for estimate in estimate::texts(&point.plan) {
            say(format_args!("{}{estimate}", prefix(point)));
        }
    }
    Ok(())
}

/// The points to print, with their numbers from 1.
fn chosen<'a>(points: &'a [Point], arguments: &CheckArguments) -> Result<Vec<(usize, &'a Point)>, Failure> {
    let mut numbered = (1..).zip(points);
    if arguments.all {
        return Ok(numbered.collect());
    }
    let wanted = arguments.point.unwrap_or(1);
    let found = numbered.find(|(number, _)| *number == wanted);
    let count = points.len();
    found.map(|found| vec![found]).ok_or_else(|| bad_input(format!("--point {wanted}: allowed is 1 to {count}")))
}

fn text(number: usize, count: usize, point: &Point) -> String {
    let plan = printed(point, &point.plan.seeds, point.plan.files.clone());
    match count {
        1 => plan,
        _ => format!("# point {number} of {count} of the sweep\n{plan}"),
    }
}

fn prefix(point: &Point) -> String {
    let place = load::describe(point);
    if place.is_empty() { place } else { format!("{place}: ") }
}
