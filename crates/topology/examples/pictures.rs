//! Draws a picture of `docs/reference/topologies.md`: reads its name from standard input and writes
//! the SVG to standard output.
//!
//! ```sh
//! echo ring | cargo run --package topology --example pictures > docs/images/topologies/ring.svg
//! ```

#[path = "../tests/common/mod.rs"]
mod common;

use std::io::{self, BufRead};

fn main() -> io::Result<()> {
    for name in io::stdin().lock().lines() {
        let name = name?;
        let picture = common::documented().into_iter().find(|(known, _)| *known == name.trim());
        let Some((_, config)) = picture else {
            let known: Vec<&str> = common::documented().iter().map(|(known, _)| *known).collect();
            return Err(io::Error::other(format!("`{name}` is none of {}", known.join(", "))));
        };
        topology::picture::write(&common::built(&config), io::stdout().lock())?;
    }
    Ok(())
}
