//! Writes what the gates do with one read of 64 B, alone in a system of two nodes: `read.vcd` for a
//! viewer such as GTKWave or Surfer, and `read.json` for WaveDrom.
//!
//! cargo run --example wave FOLDER

use rtl_harness::system::Access;
use rtl_harness::wave::Wave;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), None) = (arguments.next(), arguments.next()) else {
        eprintln!("wave: one argument is needed: the folder to write read.vcd and read.json into");
        return ExitCode::from(2);
    };
    match write(Path::new(&folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wave: {folder}: {error}");
            ExitCode::from(2)
        }
    }
}

fn write(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let (wave, _) = Wave::of(Access::Read { bytes: 64 });
    wave.write_vcd(BufWriter::new(File::create(folder.join("read.vcd"))?))?;
    fs::write(folder.join("read.json"), wave.picture())
}
