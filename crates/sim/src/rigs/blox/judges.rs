//! Judges of a run: the servers' predictions, and the history of operations.

use super::track::Asked;
use base::{Span, Time};
use blox::{Body, Emulation, JobKind, Packet, ReturnPredictor, Tag, Value};
use history::History;
use record::metric::{self, Meter};

/// A prediction within this span of the truth counts as right (RackBlox, 3.4).
const CLOSE: Span = Span::us(25);

/// The predictors of all servers once more, and the history, if it is kept.
pub struct Judges {
    window: usize,
    emulation: Emulation,
    /// By the number of the vSSD.
    predictors: Vec<Option<ReturnPredictor>>,
    predictions: u64,
    close: u64,
    history: Option<History>,
}

impl Judges {
    /// Judges that have seen nothing. Predictions are over `window` requests.
    pub fn new(window: u32, emulation: Emulation, keeps_history: bool) -> Judges {
        let history = keeps_history.then(History::default);
        Judges { window: window as usize, emulation, predictors: Vec::new(), predictions: 0, close: 0, history }
    }

    /// A request has reached a server: its predictor and ours learn the same. Where networks are
    /// labels, answers have no way back of their own, and what was predicted before is compared
    /// with the next delay of the path: this request's.
    pub fn learn(&mut self, packet: &Packet) {
        let kind = match packet.body {
            Body::Read { .. } => JobKind::Read,
            Body::Write { .. } => JobKind::Write,
            _ => return,
        };
        let (place, window) = (packet.vssd.index(), self.window);
        if self.predictors.len() <= place {
            self.predictors.resize(place + 1, None);
        }
        if self.emulation.adds_labels() {
            self.compare(place, kind, Span::ns(u64::from(packet.latency_ns)));
        }
        let predictor = self.predictors[place].get_or_insert_with(|| ReturnPredictor::new(window));
        predictor.on_packet(kind, packet.latency_ns);
    }

    /// An answer has taken `back` to return: compares that with its server's prediction.
    pub fn judge(&mut self, answer: &Packet, back: Span) {
        let kind = match answer.body {
            Body::ReadReply { .. } => JobKind::Read,
            Body::WriteReply { .. } => JobKind::Write,
            _ => return,
        };
        if !self.emulation.adds_labels() {
            self.compare(answer.vssd.index(), kind, back);
        }
    }

    fn compare(&mut self, place: usize, kind: JobKind, truth: Span) {
        let Some(Some(predictor)) = self.predictors.get(place) else { return };
        let predicted = predictor.predict(kind);
        self.predictions += 1;
        self.close += u64::from(predicted.max(truth) - predicted.min(truth) <= CLOSE);
    }

    /// Records an operation with its answer, if the history is kept. A write without one may have
    /// happened or not.
    pub fn record(&mut self, tag: Tag, asked: &Asked, answer: Option<(Time, Value)>) {
        if let Some(history) = &mut self.history {
            history.record(asked.in_history(tag, answer));
        }
    }

    /// Reads what was counted.
    pub fn measure(&self, meter: &mut Meter) {
        meter.ratio(metric::predictions_within_25us_fraction, self.close as f64, self.predictions as f64);
    }

    /// The same of the history.
    pub fn measure_history(&self, meter: &mut Meter) {
        if let Some(history) = &self.history {
            meter.count(metric::history_operations, history.operations() as f64);
        }
    }

    /// Checks the history, if it was kept. A violation is a warning as well.
    pub fn check(&self, meter: &mut Meter) {
        let Some(history) = &self.history else { return };
        let verdict = history.check();
        meter.count(metric::history_violations, f64::from(u8::from(verdict.is_err())));
        if let Err(violation) = verdict {
            meter.warn(format!("the history of operations is not linearizable: {violation}"));
        }
    }
}
