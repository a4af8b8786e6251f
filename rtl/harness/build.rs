//! Compiles the gates with Verilator into C++ classes, each behind four C functions.

#[path = "src/units.rs"]
mod units;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};
use units::{LARGE, UNITS, Unit};

fn main() {
    let sources = sources();
    for source in &sources {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    println!("cargo::rerun-if-changed=src/units.rs");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let root = verilator_root();
    let large = if cfg!(feature = "large") { LARGE } else { &[] };
    let mut archive = cc::Build::new();
    for unit in UNITS.iter().chain(large) {
        let folder = out.join(unit.name);
        verilate(unit, &sources, &folder);
        archive.objects(compile(unit, &folder, &root));
    }
    let stop = out.join("stop.cpp");
    fs::write(&stop, STOP).expect("the build folder is writable");
    let mut common = cpp(&root);
    common.file(stop);
    for file in ["verilated.cpp", "verilated_threads.cpp"] {
        common.file(root.join("include").join(file));
    }
    archive.objects(common.compile_intermediates()).cpp(true).compile("gates");
}

fn cpp(root: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(1).debug(false).warnings(false);
    build.define("VL_USER_STOP", None).include(root.join("include")).include(root.join("include/vltstd"));
    build
}

/// Compiles what Verilator has made of a unit, or takes the objects of last time if that is the
/// same. One file a unit: the headers of Verilator take longer than the code.
fn compile(unit: &Unit, folder: &Path, root: &Path) -> Vec<PathBuf> {
    let shim = folder.join("shim.cpp");
    fs::write(&shim, shim_of(unit)).expect("the build folder is writable");
    let all = folder.join("all.cpp");
    let parts: Vec<PathBuf> = generated(folder).into_iter().chain([shim]).collect();
    let includes: String = parts.iter().map(|part| format!("#include \"{}\"\n", part.display())).collect();
    fs::write(&all, includes).expect("the build folder is writable");
    let objects = folder.with_extension("objects");
    let (seen, list) = (objects.join("seen"), objects.join("list"));
    let text = text_of(folder);
    if let (Ok(before), Ok(list)) = (fs::read(&seen), fs::read_to_string(&list))
        && before == text
    {
        return list.lines().map(PathBuf::from).collect();
    }
    fs::create_dir_all(&objects).expect("the build folder is writable");
    let made = cpp(root).include(folder).file(all).out_dir(&objects).compile_intermediates();
    let lines: String = made.iter().map(|object| format!("{}\n", object.display())).collect();
    fs::write(&list, lines).expect("the build folder is writable");
    fs::write(&seen, text).expect("the build folder is writable");
    made
}

/// All that Verilator has written, but for the date in its dependencies.
fn text_of(folder: &Path) -> Vec<u8> {
    let listed = fs::read_dir(folder).expect("Verilator has written a folder");
    let mut files: Vec<PathBuf> = listed.map(|entry| entry.expect("a readable folder").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "cpp" || extension == "h"));
    files.sort();
    files.iter().flat_map(|path| fs::read(path).expect("a readable file")).collect()
}

/// The package first: the other files import it.
fn sources() -> Vec<PathBuf> {
    let listed = fs::read_dir("../edm").expect("rtl/edm is beside the harness");
    let mut sources: Vec<PathBuf> = listed.map(|entry| entry.expect("a readable folder").path()).collect();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "sv"));
    sources.push(PathBuf::from("edm_system.sv"));
    sources.sort_by_key(|path| (!path.ends_with("edm_pkg.sv"), path.clone()));
    sources
}

fn verilator_root() -> PathBuf {
    let output = Command::new("verilator").arg("--getenv").arg("VERILATOR_ROOT").output();
    let output = output.expect("Verilator is missing: run tools/setup-rtl.sh");
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}

fn verilate(unit: &Unit, sources: &[PathBuf], folder: &Path) {
    let _ = fs::remove_dir_all(folder);
    let mut command = Command::new("verilator");
    command.args(["--cc", "--assert", "-Wall", "-O3", "--x-assign", "fast", "--x-initial", "fast"]);
    command.args(["--top-module", unit.top, "--prefix", unit.name, "--Mdir"]).arg(folder).args(sources);
    command.args(unit.parameters.iter().map(|(name, value)| format!("-G{name}={value}")));
    let status = command.status().expect("Verilator starts");
    assert!(status.success(), "Verilator refuses {}", unit.name);
}

fn generated(folder: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).expect("Verilator has written a folder");
    let mut files: Vec<PathBuf> = listed.map(|entry| entry.expect("a readable folder").path()).collect();
    files.retain(|path| {
        path.extension().is_some_and(|extension| extension == "cpp")
            && !path.ends_with("shim.cpp")
            && !path.ends_with("all.cpp")
    });
    files.sort();
    files
}

/// A failed assertion is counted; the harness asks after each cycle.
const STOP: &str = r#"
#include <verilated.h>
#include <cstdio>
#include <cstdint>
static thread_local uint64_t failures = 0;
void vl_stop(const char* file, int line, const char*) VL_MT_UNSAFE {
    if (failures++ == 0) std::fprintf(stderr, "assertion failed: %s:%d\n", file, line);
}
double sc_time_stamp() { return 0; }
extern "C" uint64_t gates_failures() { uint64_t all = failures; failures = 0; return all; }
"#;

/// `new`, `free`, `eval`, and the storage of a port.
fn shim_of(unit: &Unit) -> String {
    let Unit { name, ports, .. } = unit;
    let cases: String = ports
        .iter()
        .enumerate()
        .map(|(index, port)| format!("        case {index}: *size = sizeof(top->{port}); return &top->{port};\n"))
        .collect();
    format!(
        r#"#include "{name}.h"
#include <verilated.h>
extern "C" {{
// All share the default context: Verilator 5.006 frees a module with the context that its thread
// made last, which may be gone.
void* {name}_new() {{ return new {name}; }}
void {name}_free(void* gates) {{
    auto* top = static_cast<{name}*>(gates);
    top->final();
    delete top;
}}
void {name}_eval(void* gates) {{ static_cast<{name}*>(gates)->eval(); }}
void* {name}_port(void* gates, uint32_t port, uint32_t* size) {{
    auto* top = static_cast<{name}*>(gates);
    switch (port) {{
{cases}        default: return nullptr;
    }}
}}
}}
"#
    )
}
