//! An engine among devices of real bytes, whose every step is drawn.

use base::{Bytes, Program, Span, Stream, Time};
use sdirect::{
    ClientId, Command, CommandId, DeviceId, DeviceOperation, Engine, EngineConfig, EngineIn, EngineOut, Extent,
    Geometry, Outcome,
};
use std::collections::BTreeMap;

pub const BLOCK: u64 = 64;
pub const BLOCKS: u64 = 32;

pub fn config(devices: usize) -> EngineConfig {
    let geometry = Geometry { capacity: Bytes::new(BLOCK * BLOCKS), block: Bytes::new(BLOCK) };
    EngineConfig {
        devices: vec![geometry; devices],
        queue_depth: 3,
        piece: 128,
        fifo: 256,
        packet: 48,
        commands_max: 64,
        targets_max: 4,
        remembered: 16,
        grant_timeout: Span::us(10),
        grants_max: 50,
    }
}

pub fn id(number: u32) -> CommandId {
    CommandId { client: ClientId((number % 3) as u16), number }
}

pub fn at(device: u16, address: u64) -> Extent {
    Extent { device: DeviceId(device), address }
}

/// A command at a device.
struct Job {
    device: u16,
    slot: u16,
    operation: DeviceOperation,
    address: u64,
    bytes: u32,
    /// Read or fetched so far.
    moved: u32,
    /// Fetched and not supplied yet.
    wanted: u32,
    is_aborted: bool,
}

/// Devices, clients and the fabric around an engine.
pub struct World {
    pub engine: Engine<Vec<u8>>,
    pub media: Vec<Vec<u8>>,
    jobs: Vec<Job>,
    inbox: Vec<EngineIn<Vec<u8>>>,
    /// What clients send in their writes, and have received by their reads.
    pub sent: BTreeMap<CommandId, Vec<u8>>,
    pub received: BTreeMap<CommandId, Vec<u8>>,
    pub answers: BTreeMap<CommandId, Vec<Outcome>>,
    /// Of a device's commands, how many in a hundred fail.
    pub failing: Vec<u64>,
    /// Of a client's packets, how many in a hundred are lost.
    pub losing: u64,
    /// Gone devices take no steps.
    pub gone: Vec<bool>,
    random: Stream,
    now: Time,
    out: Vec<EngineOut<Vec<u8>>>,
    pub fifo: u64,
}

impl World {
    pub fn new(config: EngineConfig, random: Stream) -> World {
        let (devices, fifo) = (config.devices.len(), config.fifo);
        let fresh =
            |device: usize| (0..BLOCK * BLOCKS).map(|byte| (byte * 31 + device as u64 * 7 + byte / 64) as u8).collect();
        World {
            engine: Engine::new(config).expect("the tests' numbers fit"),
            media: (0..devices).map(fresh).collect(),
            jobs: Vec::new(),
            inbox: Vec::new(),
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            answers: BTreeMap::new(),
            failing: vec![0; devices],
            losing: 0,
            gone: vec![false; devices],
            random,
            now: Time::ZERO,
            out: Vec::new(),
            fifo,
        }
    }

    pub fn command(&mut self, id: CommandId, command: Command) {
        if let Command::Read { bytes, .. } = &command {
            self.received.insert(id, vec![0; *bytes as usize]);
        }
        self.tell(EngineIn::Command { id, command });
    }

    /// A client's write of bytes that depend on its number.
    pub fn write(&mut self, id: CommandId, to: Extent, bytes: u64) {
        let data = (0..bytes).map(|byte| (byte as u32 * 13 + id.number * 101 + 5) as u8).collect();
        self.sent.insert(id, data);
        self.tell(EngineIn::Command { id, command: Command::Write { to, bytes } });
    }

    pub fn remove(&mut self, device: u16) {
        self.gone[device as usize] = true;
        self.jobs.retain(|job| job.device != device);
        self.tell(EngineIn::Gone(DeviceId(device)));
    }

    pub fn bring_back(&mut self, device: u16) {
        self.gone[device as usize] = false;
        self.tell(EngineIn::Back(DeviceId(device)));
    }

    fn tell(&mut self, input: EngineIn<Vec<u8>>) {
        self.engine.on(self.now, input, &mut self.out);
        self.obey();
    }

    fn obey(&mut self) {
        let out = std::mem::take(&mut self.out);
        out.into_iter().for_each(|action| self.carry_out(action));
        assert!(self.engine.fifo_highest() <= self.fifo, "a FIFO is over its bound");
    }

    fn carry_out(&mut self, action: EngineOut<Vec<u8>>) {
        match action {
            EngineOut::Submit { device, slot, operation, address, bytes, .. } => {
                assert!(!self.gone[device.0 as usize], "a command for a device that is gone");
                let device = device.0;
                self.jobs.push(Job { device, slot, operation, address, bytes, moved: 0, wanted: 0, is_aborted: false });
            }
            EngineOut::Supply { device, slot, data } => {
                let job =
                    self.jobs.iter_mut().find(|job| (job.device, job.slot) == (device.0, slot)).expect("a job fetched");
                let from = (job.address + u64::from(job.moved)) as usize;
                self.media[device.0 as usize][from..from + data.len()].copy_from_slice(&data);
                job.moved += data.len() as u32;
                job.wanted -= data.len() as u32;
            }
            EngineOut::Abort { device, slot } => {
                let job = self.jobs.iter_mut().find(|job| (job.device, job.slot) == (device.0, slot)).expect("a job");
                job.is_aborted = true;
            }
            EngineOut::Send { id, offset, data } => {
                let received = self.received.get_mut(&id).expect("only reads send");
                received[offset as usize..offset as usize + data.len()].copy_from_slice(&data);
                self.inbox.push(EngineIn::PortFree);
            }
            EngineOut::Grant { id, offset, bytes } => self.send_granted(id, offset, bytes),
            EngineOut::Answer { id, outcome } => self.answers.entry(id).or_default().push(outcome),
        }
    }

    fn send_granted(&mut self, id: CommandId, offset: u64, bytes: u32) {
        let end = offset + u64::from(bytes);
        let mut from = offset;
        while from < end {
            let to = end.min(from + 40);
            if self.random.below(100) >= self.losing {
                let data = self.sent[&id][from as usize..to as usize].to_vec();
                self.inbox.push(EngineIn::Data { id, offset: from, data });
            }
            from = to;
        }
    }

    /// One drawn step of somebody; false when nobody has anything to do.
    pub fn step(&mut self) -> bool {
        let can_move = |job: &Job| job.moved == job.bytes || job.is_aborted || job.moved + job.wanted < job.bytes;
        let jobs: Vec<usize> = (0..self.jobs.len()).filter(|place| can_move(&self.jobs[*place])).collect();
        let choices = jobs.len() + usize::from(!self.inbox.is_empty());
        if choices == 0 {
            return self.wake();
        }
        match jobs.get(self.random.below(choices as u64) as usize) {
            Some(job) => self.step_job(*job),
            None => {
                let input = self.inbox.remove(0);
                self.tell(input);
            }
        }
        true
    }

    fn wake(&mut self) -> bool {
        let Some(at) = self.engine.next_wakeup() else { return false };
        self.now = at;
        self.engine.on_wakeup(at, &mut self.out);
        self.obey();
        true
    }

    fn step_job(&mut self, place: usize) {
        let job = &mut self.jobs[place];
        let (device, slot) = (DeviceId(job.device), job.slot);
        let fails = self.random.below(100) < self.failing[job.device as usize];
        let left = job.bytes - job.moved - job.wanted;
        let ends = job.moved == job.bytes || fails || job.is_aborted;
        if ends {
            let is_success = job.moved == job.bytes && !fails;
            self.jobs.remove(place);
            return self.tell(EngineIn::Completed { device, slot, is_success });
        }
        let bytes = 1 + self.random.below(u64::from(left.min(50))) as u32;
        match job.operation {
            DeviceOperation::Read => {
                let from = (job.address + u64::from(job.moved)) as usize;
                job.moved += bytes;
                let data = self.media[job.device as usize][from..from + bytes as usize].to_vec();
                self.tell(EngineIn::Arrived { device, slot, data });
            }
            DeviceOperation::Write => {
                job.wanted += bytes;
                self.tell(EngineIn::Fetch { device, slot, bytes });
            }
        }
    }

    /// Steps until nothing is left to do.
    pub fn settle(&mut self) {
        for _ in 0..200_000 {
            if self.engine.is_idle() && self.inbox.is_empty() {
                return;
            }
            assert!(self.step(), "nobody can move, and commands are open: a deadlock");
        }
        panic!("no end in sight");
    }

    pub fn outcome(&self, id: CommandId) -> &Outcome {
        let answers = &self.answers[&id];
        assert_eq!(answers.len(), 1, "each command ends once");
        &answers[0]
    }

    pub fn bytes(&self, place: Extent, bytes: u64) -> &[u8] {
        &self.media[place.device.0 as usize][place.address as usize..(place.address + bytes) as usize]
    }
}
