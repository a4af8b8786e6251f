//! `rackweave precondition`: drives in the initial state of an experiment, as a file for other runs
//! begin with.

use crate::arguments::PreconditionArguments;
use crate::failure::{Failure, bad_input, print};
use crate::load;
use crate::output::write;
use base::Seed;
use plan::Scene;
use plan::blox::FlashState;
use sim::Prepared;

/// Prepares the drives of the file's only point, writes their states, and says what they are.
pub fn precondition(arguments: &PreconditionArguments) -> Result<(), Failure> {
    let plan = load::only_point(&arguments.source)?.plan;
    let name = arguments.source.file.display();
    let Scene::Blox(blox) = &plan.scene else {
        return Err(bad_input(format!("{name}: the design {} has no drives", plan.design().word())));
    };
    if blox.flash.direct().is_some() {
        let preset = blox.flash.preset.word();
        return Err(bad_input(format!("{name}: flash.preset = {preset} is written in place and has no state")));
    }
    if let FlashState::Snapshot(snapshot) = &blox.flash.state {
        return Err(bad_input(format!("{name}: flash.snapshot = {} is prepared already", snapshot.file)));
    }
    let seed = Seed(arguments.seed.unwrap_or(plan.seed));
    let prepared = sim::precondition(blox, seed).map_err(|error| Failure::Failed(error.to_string()))?;
    let mut bytes = Vec::new();
    prepared.archive.save(&mut bytes).map_err(|error| Failure::Failed(error.to_string()))?;
    write(&arguments.out, &bytes)?;
    print(&format!("{}snapshot   {} ({} bytes)\n", facts(&prepared), arguments.out.display(), bytes.len()))
}

/// The state of the drives, in a few lines. Replicas have had the same writes, and the first vSSD
/// stands for all in what became steady.
fn facts(prepared: &Prepared) -> String {
    let vssds = &prepared.vssds;
    let pages: u64 = vssds.iter().map(|vssd| vssd.pages).sum();
    let least = vssds.iter().map(|vssd| vssd.free).fold(f64::INFINITY, f64::min);
    let most = vssds.iter().map(|vssd| vssd.free).fold(0.0, f64::max);
    let erases = vssds.iter().map(|vssd| vssd.wear.max).max().unwrap_or(0);
    let mut text = format!("vSSDs      {}, {pages} pages of data in all\n", vssds.len());
    text += &format!("free       {:.1} % to {:.1} % of their blocks\n", least * 100.0, most * 100.0);
    text += &format!("wear       {erases} erases of a block at most\n");
    if let Some(windows) = vssds.first().map(|vssd| &vssd.windows).filter(|windows| !windows.is_empty()) {
        let values: Vec<String> = windows.iter().map(|value| format!("{value:.3}")).collect();
        text += &format!("steady     write amplification of vSSD 0, window by window: {}\n", values.join(" "));
    }
    text
}
