//! A host's storage stack: the Linux kernel's, with interrupts, or SPDK's, with polling and
//! batches.
//!
//! Each core has a queue pair on every device. A command uses core time for its submission and for
//! its completion. In between it waits for its batch to fill, for a coalesced interrupt, or for the
//! poller. The program requests core time from the host with [`StackOut::Run`] and continues at
//! [`Ran`](StackIn::Ran). Work on a core runs in the order of these requests.

use crate::slots::Slots;
use crate::{DeviceId, DeviceOperation};
use base::{Program, Span, Time};
use std::collections::VecDeque;

/// How a core learns of completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The device interrupts the core.
    Interrupt {
        /// Entering and leaving the handler.
        handler: Span,
        /// Waking the thread that waits, for each command.
        context_switch: Span,
        /// Number of waiting completions that trigger an interrupt (NVMe feature 08h); 1 disables
        /// coalescing.
        threshold: u32,
        /// It is held back no longer than this.
        time: Span,
    },
    /// The core polls continuously and never sleeps.
    Poll {
        /// Duration of one poll.
        look: Span,
    },
}

/// What a stack takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackConfig {
    /// Cores that issue, each with queue pairs of its own.
    pub cores: u32,
    /// Devices.
    pub devices: u16,
    /// Commands of a queue pair at once.
    pub queue_depth: u16,
    /// From the application's call until the command is in memory: system call and block layer, or
    /// SPDK's path.
    pub submission: Span,
    /// One doorbell, for all commands that are submitted with it.
    pub doorbell: Span,
    /// From the completion in memory until the application's callback, without notice.
    pub completion: Span,
    /// Commands that are submitted together; 1 is at once.
    pub batch: u32,
    /// A batch waits no longer than this for more, and not at all when its core has nothing else
    /// underway: no completion could then bring another command.
    pub batch_time: Span,
    /// How completions are noticed.
    pub notice: Notice,
}

/// Request of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackCommand {
    /// The host's name for it, given back at its end.
    pub ticket: u32,
    /// The device.
    pub device: DeviceId,
    /// The operation.
    pub operation: DeviceOperation,
    /// First byte.
    pub address: u64,
    /// Length in bytes.
    pub bytes: u32,
}

/// Inputs of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackIn {
    /// An application submits a command. Cores take turns.
    Issue(StackCommand),
    /// Work of a core is done.
    Ran {
        /// Number of the core.
        core: u32,
        /// The completed work.
        work: Work,
    },
    /// A device has posted a completion.
    Completed {
        /// Into whose queue.
        core: u32,
        /// The device.
        device: DeviceId,
        /// The command.
        slot: u16,
    },
}

/// Decisions of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StackOut {
    /// A core is busy for so long, behind what it has already.
    Run {
        /// Number of the core.
        core: u32,
        /// With what.
        work: Work,
        /// Duration of the work.
        span: Span,
    },
    /// A command is in its queue and the doorbell is rung.
    Submit {
        /// From which core.
        core: u32,
        /// Its slot.
        slot: u16,
        /// The command.
        command: StackCommand,
    },
    /// A command is back at its application.
    Finish {
        /// The caller's identifier of the command.
        ticket: u32,
    },
}

/// What a core is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Submission of a command.
    Submission(StackCommand),
    /// The doorbell of a batch.
    Doorbell,
    /// An interrupt's handler.
    Interrupt,
    /// A poll that finds completions.
    Poll,
    /// Completion of a command.
    Completion {
        /// The command.
        ticket: u32,
    },
    /// The thread of a command is woken.
    ContextSwitch {
        /// The command.
        ticket: u32,
    },
}

impl Work {
    /// Its name in a report.
    pub const fn name(self) -> &'static str {
        match self {
            Work::Submission(_) => "submission",
            Work::Doorbell => "doorbell",
            Work::Interrupt => "interrupt",
            Work::Poll => "poll",
            Work::Completion { .. } => "completion",
            Work::ContextSwitch { .. } => "context_switch",
        }
    }
}

/// One core's part of the stack.
#[derive(Clone, Debug)]
struct Core {
    /// Commands that were issued and have not finished.
    underway: usize,
    /// Slots of its queue pairs, by device, with the ticket.
    slots: Vec<Slots<u32>>,
    /// Ready for a doorbell.
    batch: VecDeque<StackCommand>,
    /// Time at which the batch is submitted, full or not.
    batch_at: Option<Time>,
    /// Whether a doorbell is in flight.
    is_ringing: bool,
    /// Rung, and without a slot.
    waiting: VecDeque<StackCommand>,
    /// Completions that have not been processed.
    unseen: VecDeque<(DeviceId, u16)>,
    /// Time at which the interrupt comes, enough completions or not.
    interrupt_at: Option<Time>,
    /// Whether the handler or the poller is scheduled.
    is_looking: bool,
}

/// A host's stack.
#[derive(Clone, Debug)]
pub struct Stack {
    config: StackConfig,
    cores: Vec<Core>,
    /// The core of the next command.
    next_core: u32,
    doorbells: u64,
}

impl Stack {
    /// A stack with nothing to do.
    pub fn new(config: StackConfig) -> Stack {
        let core = || Core {
            underway: 0,
            slots: (0..config.devices).map(|_| Slots::new(config.queue_depth)).collect(),
            batch: VecDeque::new(),
            batch_at: None,
            is_ringing: false,
            waiting: VecDeque::new(),
            unseen: VecDeque::new(),
            interrupt_at: None,
            is_looking: false,
        };
        Stack { config, cores: (0..config.cores).map(|_| core()).collect(), next_core: 0, doorbells: 0 }
    }

    /// Doorbells rung so far.
    pub fn doorbells(&self) -> u64 {
        self.doorbells
    }

    fn core(&mut self, core: u32) -> &mut Core {
        &mut self.cores[core as usize]
    }

    fn ran(&mut self, now: Time, number: u32, work: Work, out: &mut Vec<StackOut>) {
        match work {
            Work::Submission(command) => self.gather(now, number, command, out),
            Work::Doorbell => self.rung(number, out),
            Work::Interrupt | Work::Poll => self.poll(number, out),
            Work::Completion { ticket } => match self.config.notice {
                Notice::Interrupt { context_switch, .. } => {
                    out.push(StackOut::Run {
                        core: number,
                        work: Work::ContextSwitch { ticket },
                        span: context_switch,
                    });
                }
                Notice::Poll { .. } => self.finish(number, ticket, out),
            },
            Work::ContextSwitch { ticket } => self.finish(number, ticket, out),
        }
    }

    fn finish(&mut self, number: u32, ticket: u32, out: &mut Vec<StackOut>) {
        self.core(number).underway -= 1;
        out.push(StackOut::Finish { ticket });
    }

    /// A command joins its core's batch. The batch is submitted when it is full, or contains every
    /// outstanding command.
    fn gather(&mut self, now: Time, number: u32, command: StackCommand, out: &mut Vec<StackOut>) {
        let StackConfig { batch, batch_time, .. } = self.config;
        let core = self.core(number);
        core.batch.push_back(command);
        if core.batch.len() >= (batch as usize).min(core.underway) {
            return self.ring(number, out);
        }
        core.batch_at.get_or_insert(now + batch_time);
    }

    fn ring(&mut self, number: u32, out: &mut Vec<StackOut>) {
        let span = self.config.doorbell;
        let core = self.core(number);
        core.batch_at = None;
        if !std::mem::replace(&mut core.is_ringing, true) {
            out.push(StackOut::Run { core: number, work: Work::Doorbell, span });
        }
    }

    /// All that is in the batch by now is the device's.
    fn rung(&mut self, number: u32, out: &mut Vec<StackOut>) {
        self.doorbells += 1;
        let core = self.core(number);
        core.is_ringing = false;
        core.batch_at = None;
        let batch = std::mem::take(&mut core.batch);
        core.waiting.extend(batch);
        self.submit(number, out);
    }

    /// Submits what has a slot, in order.
    fn submit(&mut self, number: u32, out: &mut Vec<StackOut>) {
        let core = self.core(number);
        while let Some(command) = core.waiting.front().copied() {
            let Some(slot) = core.slots[command.device.0 as usize].take(command.ticket) else { return };
            core.waiting.pop_front();
            out.push(StackOut::Submit { core: number, slot, command });
        }
    }

    fn completed(&mut self, now: Time, number: u32, device: DeviceId, slot: u16, out: &mut Vec<StackOut>) {
        let notice = self.config.notice;
        let core = self.core(number);
        core.unseen.push_back((device, slot));
        if core.is_looking {
            return;
        }
        match notice {
            Notice::Interrupt { threshold, time, .. } if core.unseen.len() < threshold as usize => {
                core.interrupt_at.get_or_insert(now + time);
            }
            Notice::Interrupt { .. } | Notice::Poll { .. } => self.notice(number, out),
        }
    }

    /// Schedules the handler or the poller.
    fn notice(&mut self, number: u32, out: &mut Vec<StackOut>) {
        let (work, span) = match self.config.notice {
            Notice::Interrupt { handler, .. } => (Work::Interrupt, handler),
            Notice::Poll { look } => (Work::Poll, look),
        };
        let core = self.core(number);
        core.interrupt_at = None;
        core.is_looking = true;
        out.push(StackOut::Run { core: number, work, span });
    }

    /// Takes all completions there are; their slots are free at once.
    fn poll(&mut self, number: u32, out: &mut Vec<StackOut>) {
        let span = self.config.completion;
        let core = self.core(number);
        core.is_looking = false;
        for (device, slot) in std::mem::take(&mut core.unseen) {
            let Some(ticket) = core.slots.get_mut(device.0 as usize).and_then(|slots| slots.release(slot)) else {
                continue;
            };
            out.push(StackOut::Run { core: number, work: Work::Completion { ticket }, span });
        }
        self.submit(number, out);
    }
}

impl Program for Stack {
    type In = StackIn;
    type Out = StackOut;

    fn on(&mut self, now: Time, input: StackIn, out: &mut Vec<StackOut>) {
        match input {
            StackIn::Issue(command) => {
                let core = self.next_core;
                self.next_core = (core + 1) % self.config.cores;
                self.core(core).underway += 1;
                out.push(StackOut::Run { core, work: Work::Submission(command), span: self.config.submission });
            }
            StackIn::Ran { core, work } => self.ran(now, core, work, out),
            StackIn::Completed { core, device, slot } => self.completed(now, core, device, slot, out),
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.cores.iter().flat_map(|core| [core.batch_at, core.interrupt_at]).flatten().min()
    }

    fn on_wakeup(&mut self, now: Time, out: &mut Vec<StackOut>) {
        let is_due = |at: Option<Time>| at.is_some_and(|at| at <= now);
        for number in 0..self.config.cores {
            if is_due(self.core(number).batch_at) {
                self.ring(number, out);
            }
            if is_due(self.core(number).interrupt_at) {
                self.notice(number, out);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX: StackConfig = StackConfig {
        cores: 1,
        devices: 1,
        queue_depth: 4,
        submission: Span::us(2),
        doorbell: Span::ns(100),
        completion: Span::us(1),
        batch: 1,
        batch_time: Span::ZERO,
        notice: Notice::Interrupt {
            handler: Span::us(3),
            context_switch: Span::us(4),
            threshold: 1,
            time: Span::us(100),
        },
    };
    const POLLED: StackConfig =
        StackConfig { batch: 4, batch_time: Span::us(50), notice: Notice::Poll { look: Span::ns(200) }, ..LINUX };

    /// A stack, one core, and a device that takes 80 us for everything, all at once.
    struct Host {
        stack: Stack,
        core_free: Time,
        due: Vec<(Time, StackIn)>,
        finished: Vec<(u32, Time)>,
        doorbells: Vec<usize>,
    }

    impl Host {
        fn run(config: StackConfig, issues: &[Time]) -> Host {
            let due = (0..).zip(issues).map(|(ticket, at)| {
                let command = StackCommand {
                    ticket,
                    device: DeviceId(0),
                    operation: DeviceOperation::Read,
                    address: 0,
                    bytes: 4096,
                };
                (*at, StackIn::Issue(command))
            });
            let mut host = Host {
                stack: Stack::new(config),
                core_free: Time::ZERO,
                due: due.collect(),
                finished: Vec::new(),
                doorbells: Vec::new(),
            };
            while host.step() {}
            host
        }

        fn step(&mut self) -> bool {
            let mut out = Vec::new();
            self.due.sort_by_key(|(at, _)| *at);
            let next = self.due.first().map(|(at, _)| *at);
            let wake = self.stack.next_wakeup().filter(|at| next.is_none_or(|next| *at < next));
            let now = match (wake, next) {
                (Some(at), _) => {
                    self.stack.on_wakeup(at, &mut out);
                    at
                }
                (None, Some(at)) => {
                    let (_, input) = self.due.remove(0);
                    self.stack.on(at, input, &mut out);
                    at
                }
                (None, None) => return false,
            };
            let submitted = out.iter().filter(|action| matches!(action, StackOut::Submit { .. })).count();
            self.doorbells.extend((submitted > 0).then_some(submitted));
            out.into_iter().for_each(|action| self.carry_out(now, action));
            true
        }

        fn carry_out(&mut self, now: Time, action: StackOut) {
            match action {
                StackOut::Run { core, work, span } => {
                    self.core_free = self.core_free.max(now) + span;
                    self.due.push((self.core_free, StackIn::Ran { core, work }));
                }
                StackOut::Submit { core, slot, command } => {
                    let done = StackIn::Completed { core, device: command.device, slot };
                    self.due.push((now + Span::us(80), done));
                }
                StackOut::Finish { ticket } => self.finished.push((ticket, now)),
            }
        }
    }

    #[test]
    fn one_command_through_the_kernel_takes_the_sum_of_its_costs() {
        let host = Host::run(LINUX, &[Time::us(10)]);
        // 2 + 0.1 down, 80 in the device, 3 + 1 + 4 up.
        assert_eq!(host.finished, [(0, Time::us(100) + Span::ns(100))]);
    }

    #[test]
    fn a_batch_goes_when_it_is_full_or_when_its_time_is_over() {
        let full = Host::run(POLLED, &[Time::ZERO; 4]);
        // Four times 2 us for submission, one doorbell, then 0.2 us for the poll and 1 us for each
        // completion.
        let first = Time::us(8) + Span::ns(100) + Span::us(80) + Span::ns(200) + Span::us(1);
        assert_eq!((full.finished[0], full.doorbells.clone()), ((0, first), vec![4]));
        // The second comes while the first is in the device, and waits 50 us for two more.
        let late = Host::run(POLLED, &[Time::ZERO, Time::us(10)]);
        assert_eq!(late.finished[1], (1, Time::us(10 + 2 + 50 + 80 + 1) + Span::ns(300)));
    }

    /// No other command is outstanding that could end and trigger another: 2 us for submission, a
    /// doorbell, the device, a poll, 1 us for completion.
    #[test]
    fn a_batch_that_holds_all_that_is_underway_goes_at_once() {
        let alone = Host::run(POLLED, &[Time::ZERO]);
        assert_eq!(alone.finished, [(0, Time::us(2 + 80 + 1) + Span::ns(300))]);
        let pair = Host::run(POLLED, &[Time::ZERO; 2]);
        assert_eq!((pair.doorbells, pair.finished[0].1), (vec![2], Time::us(4 + 80 + 1) + Span::ns(300)));
    }

    #[test]
    fn completions_share_an_interrupt_that_is_held_back() {
        let notice =
            Notice::Interrupt { handler: Span::us(3), context_switch: Span::us(4), threshold: 2, time: Span::us(100) };
        let pair = Host::run(StackConfig { notice, ..LINUX }, &[Time::ZERO; 2]);
        // The second is down after 4.1 or 4.2 us; one handler, then 1 us up each, then 4 us to wake
        // each.
        assert_eq!(pair.finished.len(), 2);
        assert!(pair.finished[0].1 < Time::us(4 + 80 + 3 + 2 + 4) + Span::us(1));
        let alone = Host::run(StackConfig { notice, ..LINUX }, &[Time::ZERO]);
        assert_eq!(alone.finished, [(0, Time::us(2 + 80 + 100 + 3 + 1 + 4) + Span::ns(100))]);
    }

    #[test]
    fn commands_go_to_the_cores_in_turn() {
        let mut stack = Stack::new(StackConfig { cores: 3, ..LINUX });
        let mut cores = Vec::new();
        for ticket in 0..7 {
            let command =
                StackCommand { ticket, device: DeviceId(0), operation: DeviceOperation::Read, address: 0, bytes: 4096 };
            let mut out = Vec::new();
            stack.on(Time::ZERO, StackIn::Issue(command), &mut out);
            let [StackOut::Run { core, work: Work::Submission(_), .. }] = out[..] else { panic!("{out:?}") };
            cores.push(core);
        }
        assert_eq!(cores, [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn what_has_no_slot_waits_for_one_and_everything_ends_once() {
        for config in [LINUX, POLLED] {
            let host = Host::run(config, &[Time::ZERO; 23]);
            let mut tickets: Vec<_> = host.finished.iter().map(|(ticket, _)| *ticket).collect();
            tickets.sort_unstable();
            assert_eq!(tickets, (0..23).collect::<Vec<_>>());
            assert!(host.doorbells.iter().all(|count| *count <= 4), "a queue pair has four slots");
        }
    }
}
