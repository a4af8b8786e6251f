//! Compiles the gates with Verilator into C++ classes, each behind four C functions. With `RTL_UNITS`
//! it compiles only these, by name and between commas: what plays another one is ended.
//!
//! With `RTL_PROFILE=write`, tests write beside the objects how often each branch is taken, of one
//! unit. With `RTL_PROFILE=read`, the compiler lays out its code by that.
//!
//! Clang compiles where it is installed with what its profiles need: its gates are faster than
//! those of GCC. With `CXX` another compiler does.

mod share;
#[path = "src/units.rs"]
mod units;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::{env, fs, iter, thread};
use units::{LARGE, UNITS, Unit};

/// Which modules have one copy of their code for all instances.
const SHARED_MODULES: &str = "shared.vlt";

fn main() {
    let sources = sources();
    for source in &sources {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    for file in ["src/units.rs", "share.rs", SHARED_MODULES] {
        println!("cargo::rerun-if-changed={file}");
    }
    for name in ["RTL_UNITS", "RTL_PROFILE", "CXX"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let root = verilator_root();
    let large = if cfg!(feature = "large") { LARGE } else { &[] };
    let mut archive = cc::Build::new();
    let has_profile = |unit: &Unit| !Profile::Read.of(&out.join(unit.name).with_extension("objects")).1.is_empty();
    // Other features are another folder: what was written there is not found here.
    let is_missing = Profile::wanted() == Profile::Read && !UNITS.iter().any(has_profile);
    assert!(!is_missing, "RTL_PROFILE=read, and no unit has a profile: write one with the same features");
    let wanted = env::var("RTL_UNITS").ok();
    let is_wanted = |unit: &&Unit| wanted.as_ref().is_none_or(|names| names.split(',').any(|name| name == unit.name));
    let (units, others): (Vec<&Unit>, Vec<&Unit>) = UNITS.iter().chain(large).partition(is_wanted);
    // The counters of all units would be in one file.
    assert!(Profile::wanted() != Profile::Write || units.len() == 1, "RTL_PROFILE=write: name one unit in RTL_UNITS");
    for objects in beside_each_other(&units, |unit| {
        let folder = out.join(unit.name);
        verilate(unit, &sources, &folder);
        compile(unit, &folder, &root)
    }) {
        archive.objects(objects);
    }
    archive.objects(common(&root, &out, &others)).cpp(true).compile("gates");
    if Profile::wanted() == Profile::Write {
        link_counters();
    }
}

/// What all units share, and the functions of those that are not compiled.
fn common(root: &Path, out: &Path, others: &[&Unit]) -> Vec<PathBuf> {
    let stop = out.join("stop.cpp");
    let stubs: String = others.iter().map(|unit| stub_of(unit)).collect();
    fs::write(&stop, format!("{STOP}{stubs}")).expect("the build folder is writable");
    let mut common = cpp(root, 2);
    common.file(stop);
    for file in ["verilated.cpp", "verilated_threads.cpp"] {
        common.file(root.join("include").join(file));
    }
    common.compile_intermediates()
}

/// What Clang needs for a profile.
struct Clang {
    /// The program that makes a profile of what a test has written.
    merge: PathBuf,
    /// The library that writes it.
    counters: PathBuf,
}

/// Clang, where it and all that it needs are installed.
static CLANG: LazyLock<Option<Clang>> = LazyLock::new(|| {
    if env::var_os("CXX").is_some() {
        return None;
    }
    let said = |question: String| {
        let output = Command::new("clang++").arg(question).output().ok()?;
        // What it does not find it names without a folder.
        let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
        path.is_absolute().then_some(path)
    };
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo names the target");
    let counters = said(format!("--print-file-name=libclang_rt.profile-{architecture}.a"))?;
    Some(Clang { merge: said("--print-prog-name=llvm-profdata".into())?, counters })
});

/// Links what writes a profile.
fn link_counters() {
    let Some(clang) = &*CLANG else { return println!("cargo::rustc-link-lib=gcov") };
    let folder = clang.counters.parent().expect("a file has a folder");
    let name = clang.counters.file_stem().and_then(|name| name.to_str()?.strip_prefix("lib")).expect("a library");
    println!("cargo::rustc-link-search=native={}", folder.display());
    // Nothing calls it.
    println!("cargo::rustc-link-lib=static:+whole-archive={name}");
}

/// What is done with the profile of the code that runs each cycle.
#[derive(Clone, Copy, PartialEq)]
enum Profile {
    /// There is none.
    None,
    /// The tests write it.
    Write,
    /// The compiler reads it.
    Read,
}

impl Profile {
    fn wanted() -> Profile {
        match env::var("RTL_PROFILE").as_deref() {
            Err(_) => Profile::None,
            Ok("write") => Profile::Write,
            Ok("read") => Profile::Read,
            Ok(other) => panic!("RTL_PROFILE is {other}: write or read"),
        }
    }

    /// Options of the compiler for a unit, and the text of the profile that it reads. A profile is
    /// beside its object. A unit that no test has played has none, and is compiled as without.
    fn of(self, objects: &Path) -> (Vec<String>, Vec<u8>) {
        let listed = fs::read_dir(objects).into_iter().flatten();
        let mut files = listed.map(|entry| entry.expect("a readable folder").path());
        let file = files.find(|path| path.extension().is_some_and(|end| end == "gcda" || end == "profraw"));
        let text = |file: &Path| fs::read(file).expect("a readable profile");
        match (self, &*CLANG, file) {
            (Profile::Write, None, _) => (vec!["-fprofile-generate".into()], Vec::new()),
            (Profile::Write, Some(_), _) => {
                let raw = objects.join("counted.profraw");
                (vec![format!("-fprofile-instr-generate={}", raw.display())], Vec::new())
            }
            (Profile::Read, None, Some(file)) => (vec!["-fprofile-use".into()], text(&file)),
            (Profile::Read, Some(clang), Some(file)) => {
                let merged = file.with_extension("profdata");
                let status = Command::new(&clang.merge).arg("merge").arg(&file).arg("-o").arg(&merged).status();
                assert!(status.is_ok_and(|status| status.success()), "{} is no profile of Clang", file.display());
                let layout = format!("-fprofile-instr-use={}", merged.display());
                (iter::once(layout).chain(processor()).collect(), text(&file))
            }
            _ => (Vec::new(), Vec::new()),
        }
    }
}

/// Lets Clang use the instructions that processors have since 2013, where this one has them. Code
/// without a profile has those of all: it may be kept for another machine.
fn processor() -> Option<String> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("movbe")
    {
        return Some("-march=x86-64-v3".into());
    }
    None
}

/// The results of `make` for all units, in order; as many at a time as there are processors.
fn beside_each_other<T: Send>(units: &[&Unit], make: impl Fn(&Unit) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut made = Vec::new();
        loop {
            let index = next.fetch_add(1, Relaxed);
            let Some(unit) = units.get(index) else { return made };
            made.push((index, make(unit)));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut made: Vec<(usize, T)> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("the unit compiles")).collect()
    });
    made.sort_by_key(|(index, _)| *index);
    made.into_iter().map(|(_, made)| made).collect()
}

fn cpp(root: &Path, level: u32) -> cc::Build {
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").opt_level(level).debug(false).warnings(false).flag("-w");
    build.define("VL_USER_STOP", None).include(root.join("include")).include(root.join("include/vltstd"));
    build
}

/// As `cpp`, for a unit. What all units share is compiled by the usual compiler: Clang would ask for
/// a library of atomics.
fn unit_cpp(root: &Path, level: u32) -> cc::Build {
    let mut build = cpp(root, level);
    if CLANG.is_some() {
        build.compiler("clang++");
    }
    build
}

/// Compiles what Verilator has made of a unit, or takes the objects of last time if that is the
/// same. Two files a unit: the headers of Verilator take longer than the code. What runs each cycle
/// is optimized; what runs once is not, which halves the time of the compiler.
fn compile(unit: &Unit, folder: &Path, root: &Path) -> Vec<PathBuf> {
    let shim = folder.join("shim.cpp");
    fs::write(&shim, shim_of(unit, folder)).expect("the build folder is writable");
    let parts: Vec<PathBuf> = generated(folder).into_iter().chain([shim]).collect();
    let (once, always): (Vec<_>, Vec<_>) = parts.into_iter().partition(|part| runs_once(part));
    // Large schedulers are compiled longer than they run.
    let often = if unit.options.is_empty() { 2 } else { 1 };
    let all = [("once", 1, once), ("always", often, always)]
        .map(|(name, level, parts)| (in_one(&parts, folder.join(name).with_extension("cpp")), level));
    let objects = folder.with_extension("objects");
    let (seen, list) = (objects.join("seen"), objects.join("list"));
    let (flags, profile) = if often == 2 { Profile::wanted().of(&objects) } else { Default::default() };
    // Another build.rs may compile it otherwise.
    let how = format!("{:?} {flags:?}", unit_cpp(root, often).get_compiler().path());
    let text = [include_bytes!("build.rs").as_slice(), how.as_bytes(), &text_of(folder), &profile].concat();
    if fs::read(&seen).is_ok_and(|before| before == text) && list.exists() {
        let list = fs::read_to_string(&list).expect("a readable file");
        return list.lines().map(PathBuf::from).collect();
    }
    if profile.is_empty() {
        let _ = fs::remove_dir_all(&objects);
    }
    fs::create_dir_all(&objects).expect("the build folder is writable");
    let compile = |(file, level)| {
        let mut build = unit_cpp(root, level);
        for flag in flags.iter().filter(|_| level == often) {
            build.flag(flag);
        }
        build.include(folder).file(file).out_dir(&objects).compile_intermediates()
    };
    let made: Vec<PathBuf> = all.into_iter().flat_map(compile).collect();
    let lines: String = made.iter().map(|object| format!("{}\n", object.display())).collect();
    fs::write(&list, lines).expect("the build folder is writable");
    fs::write(&seen, text).expect("the build folder is writable");
    made
}

/// Writes a file that has many.
fn in_one(parts: &[PathBuf], file: PathBuf) -> PathBuf {
    let includes: String = parts.iter().map(|part| format!("#include \"{}\"\n", part.display())).collect();
    fs::write(&file, format!("{ASSERTIONS}#include \"shared.h\"\n{includes}")).expect("the build folder is writable");
    file
}

/// Constructors, initial values, and the tables of names.
fn runs_once(part: &Path) -> bool {
    let name = part.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    name.ends_with("__Slow") || name.ends_with("__Syms") || name.contains("__ConstPool")
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
    let list = |folder| fs::read_dir(folder).expect("rtl/edm is beside the harness");
    let listed = list("../edm").chain(list("."));
    let mut sources: Vec<PathBuf> = listed.map(|entry| entry.expect("a readable folder").path()).collect();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "sv"));
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
    command
        .args(unit.options)
        .args(["--top-module", unit.top, "--prefix", unit.name, "--Mdir"])
        .arg(folder)
        .arg(SHARED_MODULES)
        .args(sources);
    command.args(unit.parameters.iter().map(|(name, value)| format!("-G{name}={value}")));
    let status = command.status().expect("Verilator starts");
    assert!(status.success(), "Verilator refuses {}", unit.name);
    let files: Vec<PathBuf> = generated(folder).into_iter().filter(|file| !runs_once(file)).collect();
    let mut texts: Vec<String> =
        files.iter().map(|file| fs::read_to_string(file).expect("Verilator has written a file")).collect();
    let lines = share::share(&mut texts);
    fs::write(folder.join("shared.h"), lines).expect("the build folder is writable");
    for (file, text) in files.iter().zip(texts) {
        fs::write(file, text).expect("the build folder is writable");
    }
}

fn generated(folder: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).expect("Verilator has written a folder");
    let mut files: Vec<PathBuf> = listed.map(|entry| entry.expect("a readable folder").path()).collect();
    files.retain(|path| {
        path.extension().is_some_and(|extension| extension == "cpp")
            && !["shim.cpp", "once.cpp", "always.cpp"].iter().any(|ours| path.ends_with(ours))
    });
    files.sort();
    files
}

/// Nothing turns assertions off, so no code asks before each of them whether they are on.
const ASSERTIONS: &str = "#include <verilated.h>\n#define assertOn() assertOn() || true\n";

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

/// The functions of a unit that is not compiled.
fn stub_of(unit: &Unit) -> String {
    let functions = [("void*", "new", ""), ("void", "free", "void*"), ("void", "eval", "void*, bool, bool")];
    let port = ("void*", "port", "void*, uint32_t, uint32_t*");
    let stub = |(result, function, parameters): &(&str, &str, &str)| {
        format!("extern \"C\" {result} {}_{function}({parameters}) {{ __builtin_trap(); }}\n", unit.name)
    };
    functions.iter().chain([&port]).map(stub).collect()
}

/// How the clock of a unit is set before an evaluation in which it `rises`, or does not. Where it is
/// one variable and Verilator keeps its last value in another, it is high for ever, and its last
/// value is cleared for an edge: no evaluation is needed for it to fall.
fn clock_of(name: &str, folder: &Path) -> &'static str {
    let root = fs::read_to_string(folder.join(format!("{name}___024root.h"))).unwrap_or_default();
    let is_kept = root.contains(" __Vtrigrprev__TOP__clk_i;");
    if is_kept && root.matches("clk_i;").count() == 1 {
        "    top->clk_i = 1;\n    if (rises) top->rootp->__Vtrigrprev__TOP__clk_i = 0;\n"
    } else {
        "    top->clk_i = 0;\n    if (rises) {\n        top->eval();\n        top->clk_i = 1;\n    }\n"
    }
}

/// How the clock rises where no input has changed since the last evaluation: only its blocks are
/// evaluated, and neither what hangs on inputs nor what else could have caused them. Where the clock
/// itself is not all that each of them waits for, nothing.
fn edge_of(name: &str, folder: &Path) -> String {
    const RISES: &str = "(IData)(vlSelf->clk_i) & (~ (IData)(vlSelf->__Vtrigrprev__TOP__clk_i))";
    let text: String = generated(folder).iter().map(|file| fs::read_to_string(file).unwrap_or_default()).collect();
    let after = text.split("vlSelf->__VactTriggered.at(").skip(1).filter_map(|text| text.split_once(") = "));
    let triggers: Vec<String> = after
        .filter(|(index, _)| !index.contains(')'))
        .map(|(_, text)| text.split(';').next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    if triggers.is_empty() || !triggers.iter().all(|trigger| trigger.contains(RISES)) {
        return String::new();
    }
    let set: String =
        (0..triggers.len()).map(|at| format!("        root->__VnbaTriggered.at({at}) = true;\n")).collect();
    format!(
        "    if (rises && !is_set) {{\n        auto* const root = top->rootp;\n{set}        \
         {name}___024root___eval_nba(root);\n        return;\n    }}\n"
    )
}

/// `new`, `free`, `eval`, and the storage of a port.
fn shim_of(unit: &Unit, folder: &Path) -> String {
    let Unit { name, ports, .. } = unit;
    let (clock, edge) = (clock_of(name, folder), edge_of(name, folder));
    let cases: String = ports
        .iter()
        .enumerate()
        .map(|(index, port)| format!("        case {index}: *size = sizeof(top->{port}); return &top->{port};\n"))
        .collect();
    format!(
        r#"#include "{name}.h"
#include "{name}___024root.h"
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
void {name}_eval(void* gates, bool rises, bool is_set) {{
    auto* top = static_cast<{name}*>(gates);
{edge}{clock}    top->eval();
}}
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
