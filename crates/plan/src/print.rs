//! Prints a plan as the file of all its values.

use crate::design_file::{DesignFile, EdmFile};
use crate::file::{
    ArrivalsName, BackgroundFile, ClassFile, DistributionFile, ExperimentFile, FabricFile, FaultFile, MemoryFile,
    PatternName, RecordFile, RunFile, SizeFile, WorkloadFile,
};
use crate::idle::forget_idle_keys;
use crate::plan::{Design, Fabric, Fault, Messages, Plan, Run, RunLimits, Scene};
use crate::quantity::{Plain, Quantity};
use crate::scene::SceneName;
use crate::schema::shared_schema;
use crate::table::{part, variants};
use crate::wear::file::WearFile;
use base::Span;
use workload::{Arrivals, Class, Pattern, SizeDistribution, TraceMessage};

/// The file of all values of `plan`.
pub(crate) fn file_of(plan: &Plan) -> ExperimentFile {
    let mut file = match &plan.scene {
        Scene::Messages(messages) => file_of_messages(messages),
        Scene::Blox(blox) => crate::blox::file_of(blox),
        Scene::San(san) => crate::san::file_of(san),
        Scene::Wear(wear) => ExperimentFile { wear: Some(WearFile::of(wear)), ..ExperimentFile::default() },
        Scene::SDirect(sdirect) => crate::sdirect::file_of(sdirect),
        Scene::Scalio(scalio) => crate::scalio::file_of(scalio),
    };
    file.title = Some(plan.title.clone());
    file.design.get_or_insert_default().name = Some(plan.design());
    match &plan.seeds[..] {
        [_] => file.seed = Some(plan.seed),
        seeds => file.seeds = Some(seeds.to_vec()),
    }
    file.files.clone_from(&plan.files);
    file.record = plan.series.map(|interval| RecordFile { series: Some(Quantity(interval)) });
    without_idle_keys(&file, plan.design().scene())
}

/// Removes keys without a meaning: those of other designs, or of an alternative that is not chosen.
fn without_idle_keys(file: &ExperimentFile, scene: SceneName) -> ExperimentFile {
    let mut whole = serde_json::to_value(file).expect("every value of a plan can be written in JSON");
    forget_idle_keys(shared_schema(), &mut whole, Some(scene));
    serde_json::from_value(whole).expect("a file without some of its keys is one")
}

fn file_of_messages(plan: &Messages) -> ExperimentFile {
    let mut fabric = FabricFile::default();
    fabric.write_rack(&plan.fabric);
    ExperimentFile {
        fabric: Some(fabric),
        design: Some(design_of(&plan.design)),
        memory: Some(MemoryFile::of(&plan.memory)),
        workload: Some(workload_of(plan)),
        background: plan.background.as_ref().map(BackgroundFile::of),
        run: Some(written_run(plan.workload.requests, plan.workload.duration, plan.run)),
        fault: (!plan.faults.is_empty()).then(|| plan.faults.iter().map(fault_of).collect()),
        ..ExperimentFile::default()
    }
}

part! {
    FabricFile => Fabric by rack, write_rack { (nodes, rate) { propagation, transceiver } }
}

/// Its table and its stack.
fn design_of(design: &Design) -> DesignFile {
    match design {
        Design::Edm(edm) => DesignFile { edm: Some(EdmFile::of(edm)), ..DesignFile::default() },
        Design::Packet(packet) => DesignFile { stack: Some(packet.stack_name), ..packet.protocol.table() },
    }
}

fn workload_of(plan: &Messages) -> WorkloadFile {
    let mut file = WorkloadFile::default();
    file.write_arrivals(&plan.workload.arrivals);
    if let Some(trace) = &plan.trace {
        file.file = Some(trace.file.clone());
        file.digest = Some(trace.digest.clone());
        file.inversions = Some(Plain::written(trace.inversions));
        return file;
    }
    file.write_pattern(&plan.workload.pattern);
    file.local_fraction = Some(plan.workload.local_fraction);
    file.load = plan.load.map(|load| load.fraction);
    file.load_basis = plan.load.map(|load| load.basis);
    file.mix = Some(plan.workload.mix.iter().map(class_of).collect());
    file
}

variants! {
    WorkloadFile.pattern: PatternName => Pattern by pattern_of, write_pattern {
        AllToAll,
        RoleSplit(compute),
        Incast(sources) { target },
        Permutation,
    }
}

variants! {
    WorkloadFile.arrivals: ArrivalsName => Arrivals
    by arrivals_of(gap: f64, trace: Vec<TraceMessage>), write_arrivals {
        Poisson [mean_gap_ps: gap],
        Deterministic [gap_ps: gap],
        OnOff(on, off) [mean_gap_ps: gap],
        Closed { depth, think },
        Trace [messages: trace],
    }
}

fn class_of(class: &Class) -> ClassFile {
    ClassFile {
        operation: Some(Plain::written(class.operation)),
        weight: Some(class.weight),
        size: Some(size_of(&class.size)),
    }
}

fn size_of(size: &SizeDistribution) -> SizeFile {
    let distribution = match size {
        SizeDistribution::Constant { bytes } => return SizeFile::Constant(Quantity(*bytes)),
        SizeDistribution::Table { entries } => {
            let table = entries.iter().map(|(bytes, weight)| (Quantity(*bytes), *weight)).collect();
            DistributionFile { table: Some(table), ..DistributionFile::default() }
        }
        SizeDistribution::Cdf { name, points } => {
            DistributionFile { name: Some(name.clone()), points: Some(points.clone()), ..DistributionFile::default() }
        }
    };
    SizeFile::Distribution(distribution)
}

/// The table that says when a workload ends and what of it is measured.
pub(crate) fn written_run(requests: Option<u64>, duration: Option<Span>, run: Run) -> RunFile {
    RunFile::of(&RunLimits { requests, duration, run })
}

pub(crate) fn fault_of(fault: &Fault) -> FaultFile {
    let mut file = FaultFile { at: Some(Quantity(fault.at)), ..FaultFile::default() };
    file.write_rack_kind(&fault.kind);
    file
}
