//! The control plane: [`blox::Control`] with its state in a file, so that it may be killed at any
//! time.

use crate::configs;
use crate::journal::State;
use crate::kept::Place;
use crate::role::{self, Carrier, Role, Running, Setup, Start};
use base::{NodeId, Program, Time};
use blox::{Control, ControlIn, ControlOut, ControlState, Packet};
use bytes::Bytes;
use plan::rack::Rack;
use runtime::error::StartError;
use runtime::metrics::{Number, counter};
use runtime::throttle::Throttle;

pub(crate) struct ControlRole {
    program: Control,
    switch: NodeId,
    /// Where it keeps its state; nowhere in a twin.
    place: Option<Place>,
    kept: Option<ControlState>,
    unkept: Throttle,
    out: Vec<ControlOut>,
    sent: u64,
    suspected: u64,
    restarted: u64,
    rebuilt: u64,
}

/// Starts the control plane of a rack, from the state in `control.json` of the rack's folder if it
/// is there.
///
/// # Errors
/// When an address is wrong or taken, or the state is of another rack.
pub fn start(rack: &Rack, start: Start) -> Result<Running, StartError> {
    let place = Place::take(rack.folder.join("control.json"))?;
    let kept: Option<ControlState> = place.read()?;
    let state = State::Control { state: kept.clone().map(Box::new) };
    let role = ControlRole::new(rack, kept, Some(place))?;
    let (node, metrics) = (configs::control_node(rack), rack.control.metrics);
    role::start(Setup { name: "control", rack, node, metrics, start, state, rows: None }, |_| role)
}

impl ControlRole {
    /// The control plane of a rack that had decided `kept` before.
    pub fn new(rack: &Rack, kept: Option<ControlState>, place: Option<Place>) -> Result<ControlRole, StartError> {
        let config = configs::control(rack);
        let wrong = |reason: String| match &place {
            Some(place) => StartError::State { path: place.path().into(), reason },
            None => StartError::plan(reason),
        };
        let program = match kept.clone() {
            None => Control::new(config).map_err(StartError::plan)?,
            Some(state) => Control::resume(config, state).map_err(|error| wrong(error.to_string()))?,
        };
        let (switch, out) = (configs::switch_node(rack), Vec::new());
        let unkept = Throttle::default();
        Ok(ControlRole { program, switch, place, kept, unkept, out, sent: 0, suspected: 0, restarted: 0, rebuilt: 0 })
    }

    /// A change is in the file before anybody hears of it. Where the file cannot be written, nobody
    /// hears of it: orders are sent again, and a server without an echo stops to serve.
    fn act(&mut self, now: Time, wire: &mut dyn Carrier) {
        let state = self.program.state();
        if self.kept.as_ref() != Some(&state) {
            if let Some(place) = &self.place
                && let Err(error) = place.write(&state)
            {
                let path = place.path().display();
                self.unkept.tell(now, |left_out| {
                    tracing::error!(%path, %error, left_out, "the state cannot be kept: nothing is sent");
                });
                return self.out.clear();
            }
            self.kept = Some(state);
        }
        for action in self.out.drain(..) {
            match action {
                ControlOut::Send(packet) => {
                    self.sent += 1;
                    wire.send(self.switch, &packet, None);
                }
                ControlOut::Happened(event) => {
                    tracing::info!(?event, "the rack has changed");
                    match event {
                        blox::Event::Suspected(_) => self.suspected += 1,
                        blox::Event::Restarted(_) => self.restarted += 1,
                        blox::Event::Rebuilt { .. } => self.rebuilt += 1,
                        blox::Event::Returned(_) | blox::Event::Rebuilding { .. } => {}
                    }
                }
            }
        }
    }
}

impl Role for ControlRole {
    fn on_packet(&mut self, now: Time, packet: Packet, _: &Bytes, wire: &mut dyn Carrier) {
        self.program.on(now, ControlIn::Packet(packet), &mut self.out);
        self.act(now, wire);
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.program.next_wakeup()
    }

    fn on_wakeup(&mut self, now: Time, wire: &mut dyn Carrier) {
        if self.program.next_wakeup().is_some_and(|due| due <= now) {
            self.program.on_wakeup(now, &mut self.out);
            self.act(now, wire);
        }
    }

    fn numbers(&self) -> Vec<Number> {
        vec![
            counter("orders", "Packets sent.", self.sent),
            counter("suspected", "Servers taken for dead.", self.suspected),
            counter("restarted", "Servers that had lost their memory.", self.restarted),
            counter("rebuilt", "Replicas brought up to date.", self.rebuilt),
        ]
    }
}
