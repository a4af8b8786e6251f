//! One clock for what several machines have noted.
//!
//! A message never comes before it was sent. So what went from one machine to another is a bound
//! of how far their clocks are apart, and what came back is the other one. Between the two bounds
//! lies the truth: the middle is taken. Clocks run at rates of their own, so each bound is a line
//! under all messages (Moon, Skelly and Towsley, INFOCOM 1999).

use base::{Span, Time};
use std::collections::{BTreeMap, VecDeque};

/// Messages of a direction that are looked at.
const SEEN_MAX: usize = 1_000_000;

/// Clocks that are right differ by less in their rates: NTP corrects by 500 millionths at most.
const RATE_MAX: f64 = 1e-3;
/// Where bounds contradict each other by more nanoseconds, one of the clocks is none. Less comes of
/// rates that change.
const CONTRADICTION_MAX: f64 = 1e6;
/// The latest time that a journal's zero can have: 53 days, a quarter of what a [`Time`] can say.
const ZERO_MAX: Time = Time::ps(u64::MAX / 4);

/// Nanoseconds of one machine, and how far the other's clock is ahead then.
type Seen = Vec<(f64, f64)>;

/// Messages between machines, which are numbers from 0 on. Times are nanoseconds of each one's own
/// clock, from any zero.
#[derive(Clone, Debug, Default)]
pub struct Messages {
    /// By two machines, the lower first: from that one, and to it.
    between: BTreeMap<[usize; 2], [Seen; 2]>,
}

/// How a machine's clock runs beside that of the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    /// Nanoseconds of the first machine at the machine's zero.
    zero_ns: f64,
    /// Nanoseconds of the first machine in one of its own.
    rate: f64,
    /// How far off its times may be, in nanoseconds: half of the shortest way there and back, from
    /// the first message to the last.
    pub within_ns: f64,
}

impl Clock {
    /// The first machine's.
    pub const FIRST: Clock = Clock { zero_ns: 0.0, rate: 1.0, within_ns: 0.0 };

    /// The first machine's time at `own_ns` of this one.
    pub fn first_ns(&self, own_ns: u64) -> f64 {
        self.zero_ns + own_ns as f64 * self.rate
    }

    /// The machine at this clock, which is `line` ahead of the one at `near`.
    fn beyond(near: Clock, line: Line, within_ns: f64) -> Clock {
        // far = near + at_zero + slope * near
        let (zero, rate) = (-line.at_zero / (1.0 + line.slope), 1.0 / (1.0 + line.slope));
        let (zero_ns, rate) = (near.zero_ns + zero * near.rate, near.rate * rate);
        Clock { zero_ns, rate, within_ns: near.within_ns + within_ns }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Line {
    at_zero: f64,
    slope: f64,
}

impl Line {
    fn at(self, x: f64) -> f64 {
        self.at_zero + self.slope * x
    }

    /// Its mean with another one.
    fn mean(self, other: Line) -> Line {
        Line { at_zero: (self.at_zero + other.at_zero) / 2.0, slope: (self.slope + other.slope) / 2.0 }
    }
}

impl Messages {
    /// A message was sent by a machine at a time of its clock, and came to another at a time of
    /// that one's.
    pub fn saw(&mut self, (from, sent_ns): (usize, u64), (to, came_ns): (usize, u64)) {
        let (direction, ends, near, far) =
            if from < to { (0, [from, to], sent_ns, came_ns) } else { (1, [to, from], came_ns, sent_ns) };
        let seen = &mut self.between.entry(ends).or_default()[direction];
        if from != to && seen.len() < SEEN_MAX {
            seen.push((near as f64, far as f64 - near as f64));
        }
    }

    /// The clocks of so many machines.
    ///
    /// # Errors
    /// A machine that no messages there and back join to the first, or whose clock is no clock.
    pub fn clocks(&self, machines: usize) -> Result<Vec<Clock>, usize> {
        let mut known: Vec<Option<Clock>> = vec![None; machines];
        let mut next = VecDeque::from([(0, Clock::FIRST)]);
        while let Some((one, clock)) = next.pop_front() {
            let Some(place @ None) = known.get_mut(one) else { continue };
            *place = Some(clock);
            for (ends, seen) in self.between.iter().filter(|(ends, _)| ends.contains(&one)) {
                let other = ends[0] + ends[1] - one;
                if let Some((ahead, within)) = apart(seen, ends[0] == one) {
                    next.push_back((other, Clock::beyond(clock, ahead, within)));
                }
            }
        }
        known.into_iter().enumerate().map(|(machine, clock)| clock.ok_or(machine)).collect()
    }
}

/// How far the other clock is ahead of the near one, and how far off that may be. What was seen is
/// by the lower machine's time, so it is turned around where the near one `is_lower` not. None
/// where nothing went one way, or the bounds are none of any clock.
fn apart([there, back]: &[Seen; 2], is_lower: bool) -> Option<(Line, f64)> {
    let turned = |seen: &Seen| -> Seen { seen.iter().map(|(x, y)| (x + y, -y)).collect() };
    let (above, below) = if is_lower { (there.clone(), back.clone()) } else { (turned(back), turned(there)) };
    let ends = above.iter().fold([f64::MAX, f64::MIN], |[first, last], (x, _)| [first.min(*x), last.max(*x)]);
    let least = line_under(above)?;
    let mirrored = line_under(below.into_iter().map(|(x, y)| (x, -y)).collect())?;
    let most = Line { at_zero: -mirrored.at_zero, slope: -mirrored.slope };
    let apart = ends.map(|x| least.at(x) - most.at(x));
    let within = apart.iter().fold(0.0, |most: f64, apart| most.max(apart.abs() / 2.0));
    apart.iter().all(|apart| *apart > -CONTRADICTION_MAX).then_some((least.mean(most), within))
}

/// The line under all points that is the closest to them: the edge of their lower hull at the mean
/// of their times. In a moment of messages luck makes it steeper than a clock can be.
fn line_under(mut points: Seen) -> Option<Line> {
    points.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.total_cmp(&other.1)));
    points.dedup_by_key(|point| point.0);
    let mean = points.iter().map(|(x, _)| x).sum::<f64>() / points.len() as f64;
    let mut hull: Seen = Vec::new();
    for (x, y) in points {
        let is_over = |hull: &Seen| match hull[..] {
            [.., (ax, ay), (bx, by)] => (bx - ax) * (y - ay) <= (by - ay) * (x - ax),
            _ => false,
        };
        while is_over(&hull) {
            hull.pop();
        }
        hull.push((x, y));
    }
    let edge = hull.windows(2).find(|edge| edge[1].0 >= mean);
    let slope = edge.map_or(0.0, |edge| (edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0));
    let slope = slope.clamp(-RATE_MAX, RATE_MAX);
    let at_zero = hull.iter().map(|(x, y)| y - slope * x).reduce(f64::min)?;
    Some(Line { at_zero, slope })
}

/// The machines whose journals are read together. The first one's clock is that of all.
#[derive(Clone, Debug, Default)]
pub struct Machines {
    known: Vec<Machine>,
}

#[derive(Clone, Debug)]
struct Machine {
    boot: String,
    /// Its clock when its first journal began.
    base_ns: u64,
    clock: Option<Clock>,
}

/// How the times of a journal are times of all.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    zero: Time,
    rate: f64,
}

impl Axis {
    /// The times of all themselves.
    pub const SAME: Axis = Axis { zero: Time::ZERO, rate: 1.0 };

    /// The times of a journal that began at `zero`.
    pub const fn from(zero: Time) -> Axis {
        Axis { zero, rate: 1.0 }
    }

    /// The journal's time zero.
    pub fn zero(self) -> Time {
        self.zero
    }

    /// The time of all at `own`, a time of the journal.
    pub fn at(self, own: Time) -> Time {
        let own = own - Time::ZERO;
        self.zero + if self.rate == 1.0 { own } else { Span::ps((own.as_ps() as f64 * self.rate) as u64) }
    }
}

impl Machines {
    /// The machines of journals, by their boots, which began at these times of their clocks.
    pub fn of<'a>(journals: impl IntoIterator<Item = (&'a str, u64)>) -> Machines {
        let mut known: Vec<Machine> = Vec::new();
        for (boot, clock_ns) in journals {
            match known.iter_mut().find(|machine| machine.boot == boot) {
                Some(machine) => machine.base_ns = machine.base_ns.min(clock_ns),
                None => {
                    let clock = known.is_empty().then_some(Clock::FIRST);
                    known.push(Machine { boot: boot.into(), base_ns: clock_ns, clock });
                }
            }
        }
        Machines { known }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.known.len()
    }

    /// A time of a machine's clock for [`Messages`].
    pub fn own(&self, boot: &str, clock_ns: u64) -> (usize, u64) {
        let place = self.known.iter().position(|machine| machine.boot == boot).unwrap_or(0);
        (place, clock_ns.saturating_sub(self.known.get(place).map_or(0, |machine| machine.base_ns)))
    }

    /// Learns how their clocks run beside each other. Those of which no messages tell stay unknown.
    pub fn learn(&mut self, messages: &Messages) {
        let clocks = messages.clocks(self.known.len()).unwrap_or_default();
        self.known.iter_mut().zip(clocks).for_each(|(machine, clock)| machine.clock = Some(clock));
    }

    /// How far off times of one may be to those of another, at most; `None` where a clock is
    /// unknown.
    pub fn within(&self) -> Option<Span> {
        let within_ns = self.known.iter().map(|machine| machine.clock.map(|clock| clock.within_ns));
        let most = within_ns.collect::<Option<Vec<f64>>>()?.into_iter().fold(0.0, f64::max);
        Some(Span::ns(most.ceil() as u64))
    }

    /// The times of a journal that began at this time of its machine's clock. Machines whose clocks
    /// are unknown began together.
    pub fn axis(&self, boot: &str, clock_ns: u64) -> Axis {
        let (place, own_ns) = self.own(boot, clock_ns);
        let clock = |machine: &Machine| machine.clock.unwrap_or(Clock::FIRST);
        let since = self.known.iter().map(|machine| clock(machine).zero_ns).fold(f64::INFINITY, f64::min);
        let clock = self.known.get(place).map_or(Clock::FIRST, clock);
        let zero_ns = if since.is_finite() { clock.first_ns(own_ns) - since } else { 0.0 };
        Axis { zero: Time::ps((zero_ns as u64).saturating_mul(1_000)).min(ZERO_MAX), rate: clock.rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks and answers of a minute between two machines. The second one's clock begins 5 s later
    /// and is `ppm` millionths faster. Ways take as long as here, and each but the tenth longer.
    fn minute((one, other): (usize, usize), ppm: f64, [there, back]: [u64; 2], messages: &mut Messages) {
        let clock = |ns: u64| ((ns as f64 - 5e9) * (1.0 + ppm / 1e6)) as u64;
        for number in 0..6_000u64 {
            let sent = 6_000_000_000 + number * 10_000_000;
            let longer = (number % 10) * 7_000;
            messages.saw((one, sent), (other, clock(sent + there + longer)));
            messages.saw((other, clock(sent + 500_000)), (one, sent + 500_000 + back + longer));
        }
    }

    /// How far the clock of a machine is off at half a minute, if that is `own_ns` of its own.
    fn off(clock: Clock, own_ns: f64, first_ns: f64) -> f64 {
        (clock.first_ns(own_ns as u64) - first_ns).abs()
    }

    #[test]
    fn equal_ways_tell_the_clock_and_its_rate() {
        for ppm in [0.0, 20.0, -300.0] {
            let mut messages = Messages::default();
            minute((0, 1), ppm, [30_000, 30_000], &mut messages);
            let clock = messages.clocks(2).expect("they talk")[1];
            for at in [6e9, 36e9, 66e9] {
                let own = (at - 5e9) * (1.0 + ppm / 1e6);
                assert!(off(clock, own, at) < 100.0, "{ppm} at {at}: {clock:?}");
            }
            assert!((clock.within_ns - 30_000.0).abs() < 100.0, "{clock:?}");
        }
    }

    #[test]
    fn ways_that_differ_mislead_by_half_of_their_difference_and_never_beyond_the_bound() {
        let mut messages = Messages::default();
        minute((0, 1), 20.0, [20_000, 80_000], &mut messages);
        let clock = messages.clocks(2).expect("they talk")[1];
        let error = off(clock, 31e9 * (1.0 + 20e-6), 36e9);
        assert!((error - 30_000.0).abs() < 200.0, "{error}");
        assert!((clock.within_ns - 50_000.0).abs() < 200.0, "{clock:?}");
    }

    #[test]
    fn a_machine_is_reached_over_others_in_any_order() {
        let mut messages = Messages::default();
        minute((0, 2), 10.0, [10_000, 10_000], &mut messages);
        minute((2, 1), 30.0, [10_000, 10_000], &mut messages);
        let clocks = messages.clocks(3).expect("they talk");
        let at_2 = 31e9 * (1.0 + 10e-6);
        let at_1 = (at_2 - 5e9) * (1.0 + 30e-6);
        assert!(off(clocks[2], at_2, 36e9) < 100.0 && off(clocks[1], at_1, 36e9) < 200.0, "{clocks:?}");
        assert!((clocks[1].within_ns - 20_000.0).abs() < 200.0, "bounds add up: {clocks:?}");
    }

    #[test]
    fn journals_of_all_machines_have_times_of_the_first() {
        let mut machines = Machines::of([("a", 7_000), ("b", 900), ("a", 2_000)]);
        assert_eq!((machines.count(), machines.own("b", 1_000), machines.within()), (2, (1, 100), None));
        let mut messages = Messages::default();
        // b's first journal begins 500 ns before a's does.
        for sent in [10_000, 20_000] {
            messages.saw((0, sent), (1, sent + 500 + 40));
            messages.saw((1, sent + 500), (0, sent + 40));
        }
        machines.learn(&messages);
        let zero = |boot, clock_ns| machines.axis(boot, clock_ns).zero();
        assert_eq!([zero("b", 900), zero("a", 2_000), zero("a", 7_000)].map(Time::as_ps), [0, 500_000, 5_500_000]);
        assert_eq!(machines.axis("b", 1_400).at(Time::ps(7)), Time::ps(500_007));
        assert_eq!(machines.within(), Some(Span::ns(40)));
    }

    #[test]
    fn a_moment_of_messages_is_enough() {
        let mut messages = Messages::default();
        // Within 3 ms the way there has become 40 us longer, and the way back as much shorter.
        for (sent, there, back) in [(0, 30_000, 80_000), (3_000_000, 70_000, 40_000)] {
            messages.saw((0, sent), (1, sent + there));
            messages.saw((1, sent + 100_000), (0, sent + 100_000 + back));
        }
        let clock = messages.clocks(2).expect("they talk")[1];
        let ([first, last], within) = ([0.0, 3e6].map(|at| clock.first_ns(at as u64) - at), clock.within_ns);
        assert!(first.abs() <= within && last.abs() <= within && within < 60_000.0, "{clock:?}");
    }

    #[test]
    fn a_clock_that_is_none_is_not_believed() {
        let mut messages = Messages::default();
        minute((0, 1), 2_000.0, [30_000, 30_000], &mut messages);
        assert_eq!(messages.clocks(2), Err(1));
    }

    #[test]
    fn without_an_answer_nothing_is_known() {
        let mut messages = Messages::default();
        assert_eq!(messages.clocks(2), Err(1));
        messages.saw((0, 5), (1, 9));
        assert_eq!(messages.clocks(2), Err(1), "nothing came back");
        messages.saw((1, 9), (0, 5));
        assert!(messages.clocks(2).is_ok(), "one message each way");
        assert_eq!(messages.clocks(3), Err(2));
        assert_eq!(Messages::default().clocks(1), Ok(vec![Clock::FIRST]));
    }
}
