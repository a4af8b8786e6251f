//! What a reader must know about a rack that wears before believing its numbers.

use super::{ArmName, Wear};

/// More days of vSSDs than this take minutes.
const VSSD_DAYS_MANY: u64 = 2_000_000_000;

impl Wear {
    /// Values that are legal but probably unintended.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        self.used_up(&mut out);
        self.local_without_use(&mut out);
        self.global_without_use(&mut out);
        self.too_late(&mut out);
        self.size(&mut out);
        out
    }

    fn used_up(&self, out: &mut Vec<String>) {
        let used = self.used_mean();
        if used > 1.0 {
            out.push(format!(
                "in {} days the mean drive uses {used:.2} times the {} erases that a block endures: a real rack would not last that long",
                self.days, self.drive.endurance
            ));
        }
    }

    fn local_without_use(&self, out: &mut Vec<String>) {
        let (days, period) = (self.days, self.local.period_days);
        if self.arm == ArmName::None {
            return;
        }
        if self.ssds == 1 {
            out.push("a server of one drive has nothing to swap it with".into());
        } else if days < period {
            out.push(format!("a run of {days} days ends before the first check within servers, on day {period}"));
        }
    }

    fn global_without_use(&self, out: &mut Vec<String>) {
        let (days, period) = (self.days, self.global.period_days);
        if self.arm != ArmName::LocalAndGlobal {
            return;
        }
        if self.servers == 1 {
            out.push("a rack of one server has nothing to swap between servers".into());
        } else if days < period {
            out.push(format!("a run of {days} days ends before the first check between servers, on day {period}"));
        }
    }

    fn too_late(&self, out: &mut Vec<String>) {
        let late = self.replacements.iter().filter(|each| each.day > self.days).count();
        if late > 0 {
            out.push(format!("{late} drives would be replaced after the last day, {}", self.days));
        }
    }

    fn size(&self, out: &mut Vec<String>) {
        let days = self.vssd_days();
        if days > VSSD_DAYS_MANY {
            let vssds = self.vssds_in_rack();
            out.push(format!("{vssds} vSSDs over {} days are {days} steps: minutes or more", self.days));
        }
    }
}
