//! The drives: a preset, and what is different from it.

use crate::blox::file::{FlashFile, PresetName, VictimName};
use crate::blox::{Flash, OwnNumbers};
use crate::error::Problem;
use crate::quantity::{Plain, Quantity};
use crate::resolve::Resolver;
use base::Span;
use hardware::ssd::Suspension;

/// Nothing in an array takes longer, and no firmware.
const LONGEST: Span = Span::secs(1);

impl Resolver<'_> {
    pub(super) fn flash(&mut self, file: &FlashFile) -> Flash {
        let flash = Flash {
            preset: file.preset.unwrap_or(PresetName::PSsd),
            own: own_numbers(file),
            pages_per_block: file.pages_per_block,
            suspension: self.suspension(file),
            victim: file.victim.unwrap_or(VictimName::Greedy),
            hot_cold: file.hot_cold.unwrap_or(false),
        };
        if flash.direct().is_some() {
            self.refuse_own_numbers(&flash);
        } else {
            self.check_own_numbers(&flash);
        }
        flash
    }

    fn suspension(&mut self, file: &FlashFile) -> Option<Suspension> {
        match (file.suspension_overhead, file.suspension_limit) {
            (None, None) => None,
            (None, Some(0)) => Some(Suspension::None),
            (Some(Quantity(overhead)), Some(limit)) if limit > 0 => Some(Suspension::Reads { overhead, limit }),
            _ => {
                let reason = "suspension is given by `suspension_overhead` and `suspension_limit` together, or by \
                              suspension_limit = 0 alone";
                self.conflict("flash.suspension_limit", reason);
                None
            }
        }
    }

    /// A medium that is written in place has neither dies nor pages.
    fn refuse_own_numbers(&mut self, flash: &Flash) {
        const KEYS: [&str; 7] =
            ["dies_per_channel", "read", "program", "erase", "channel", "read_firmware", "write_firmware"];
        for key in KEYS {
            let reason =
                format!("`{key}` does not go with preset = {}, which is written in place", flash.preset.word());
            self.refuse_key(&format!("flash.{key}"), &reason);
        }
    }

    fn check_own_numbers(&mut self, flash: &Flash) {
        let OwnNumbers { read, program, erase, channel, read_firmware, write_firmware, .. } = &flash.own;
        for (key, times) in [("flash.read", read), ("flash.program", program)] {
            let Some(times) = times else { continue };
            let (got, kinds) = (times.len(), flash.kinds_of_pages());
            if got != kinds {
                let (times, preset) = (if got == 1 { "time" } else { "times" }, flash.preset.word());
                self.conflict(key, format!("{got} {times} for the {kinds} kinds of pages of {preset}"));
            }
            times.iter().for_each(|time| self.array_time(key, *time));
        }
        let spans =
            [("flash.erase", erase), ("flash.read_firmware", read_firmware), ("flash.write_firmware", write_firmware)];
        for (key, span) in spans {
            span.iter().for_each(|span| self.at_most(key, *span, LONGEST));
        }
        channel.iter().for_each(|channel| self.rate("flash.channel", *channel));
    }

    fn array_time(&mut self, key: &str, time: Span) {
        if !(Span::ns(1)..=LONGEST).contains(&time) {
            self.report(key, Problem::out_of_range(time, format!("1ns up to {LONGEST}")));
        }
    }
}

fn own_numbers(file: &FlashFile) -> OwnNumbers {
    let times = |list: &Option<Vec<Quantity<Span>>>| -> Option<Vec<Span>> {
        list.as_ref().map(|list| list.iter().map(|time| time.0).collect())
    };
    OwnNumbers {
        dies_per_channel: file.dies_per_channel,
        read: times(&file.read),
        program: times(&file.program),
        erase: file.erase.map(Plain::plain),
        channel: file.channel.map(Plain::plain),
        read_firmware: file.read_firmware.map(Plain::plain),
        write_firmware: file.write_firmware.map(Plain::plain),
    }
}
