//! The drives: a preset, and what is different from it.

use crate::blox::file::{FlashFile, FlashStateName, PresetName};
use crate::blox::{Blox, Flash, FlashSnapshot, FlashState, OwnNumbers};
use crate::error::Problem;
use crate::resolve::Resolver;
use base::Span;
use hardware::ssd::Steady;

/// Nothing in an array takes longer.
const LONGEST: Span = Span::secs(1);

impl Resolver<'_> {
    /// `[flash]` of a scene whose drives are whole, and filled unless it says otherwise. `table`
    /// names their preset too: `own` if the file says so there.
    pub(crate) fn whole_flash(
        &mut self,
        file: Option<&FlashFile>,
        table: &str,
        (own, default): (Option<PresetName>, PresetName),
    ) -> Option<Flash> {
        let written = file?;
        let preset = written.preset.or(own).unwrap_or(default);
        if let Some(other) = own.filter(|own| *own != preset) {
            let reason = format!("preset = {} here, and {} in [flash]", other.word(), preset.word());
            self.conflict(&format!("{table}.preset"), reason);
        }
        let state = written.state.unwrap_or(FlashStateName::Filled);
        if !matches!(state, FlashStateName::Filled | FlashStateName::Fragmented) {
            let reason = format!(
                "state = {} is valid only with drives that are divided; allowed are filled and fragmented",
                state.word()
            );
            self.conflict("flash.state", reason);
        }
        let flash = self.flash(&FlashFile { preset: Some(preset), state: Some(state), ..written.clone() });
        if flash.direct().is_some() {
            self.conflict("flash.preset", format!("{} is written in place; drives here are flash", preset.word()));
        }
        Some(flash)
    }

    pub(super) fn flash(&mut self, file: &FlashFile) -> Flash {
        self.check_suspension(file);
        let flash = file.resolve(self.flash_state(file));
        if flash.direct().is_none() {
            self.check_own_numbers(&flash);
        }
        flash
    }

    fn check_suspension(&mut self, file: &FlashFile) {
        match (file.suspension_overhead, file.suspension_limit) {
            (None, None | Some(0)) => {}
            (Some(_), Some(limit)) if limit > 0 => {}
            _ => {
                let reason = "suspension is given by `suspension_overhead` and `suspension_limit` together, or by \
                              suspension_limit = 0 alone";
                self.conflict("flash.suspension_limit", reason);
            }
        }
    }

    fn flash_state(&mut self, file: &FlashFile) -> FlashState {
        if let Some(snapshot) = &file.snapshot {
            // A file that cannot be read is reported, and no plan comes of it.
            return self.flash_snapshot(snapshot, file).map_or(FlashState::Used, FlashState::Snapshot);
        }
        match file.state.unwrap_or(FlashStateName::Used) {
            FlashStateName::Clean => FlashState::Clean,
            FlashStateName::Filled => FlashState::Filled,
            FlashStateName::Used => FlashState::Used,
            FlashStateName::Fragmented => FlashState::Fragmented(self.steady(file)),
        }
    }

    fn steady(&mut self, file: &FlashFile) -> Steady {
        let steady = file.steady.clone().unwrap_or_default().resolve();
        if steady.windows_max < steady.windows {
            let Steady { windows, windows_max, .. } = steady;
            self.conflict(
                "flash.steady.windows_max",
                format!("{windows} windows are compared, and {windows_max} written"),
            );
        }
        steady
    }

    fn flash_snapshot(&mut self, name: &str, file: &FlashFile) -> Option<FlashSnapshot> {
        let read = self.sources.snapshot(self.files, name);
        let shared = read.map_err(|problem| self.report("flash.snapshot", problem)).ok()?;
        if file.snapshot_digest.as_ref().is_some_and(|digest| *digest != shared.digest) {
            let reason = format!("`{name}` has the digest {}: it is another snapshot", shared.digest);
            self.conflict("flash.snapshot_digest", reason);
        }
        Some(FlashSnapshot { file: name.into(), digest: shared.digest, archive: shared.archive })
    }

    /// Whether a snapshot is one of such a rack.
    pub(super) fn check_snapshot(&mut self, blox: &Blox) {
        let FlashState::Snapshot(snapshot) = &blox.flash.state else { return };
        let shape = blox.snapshot_shape();
        let differences: Vec<String> = snapshot
            .archive
            .differences(&shape)
            .map(|(name, here, there)| {
                let there = there.map_or("no number".into(), |there| there.to_string());
                format!("{name}: {there} there, {here} here")
            })
            .collect();
        if !differences.is_empty() {
            let reason = format!("`{}` was made of other drives ({})", snapshot.file, differences.join("; "));
            self.conflict("flash.snapshot", reason);
        }
    }

    fn check_own_numbers(&mut self, flash: &Flash) {
        let OwnNumbers { read, program, .. } = &flash.own;
        for (key, times) in [("flash.read", read), ("flash.program", program)] {
            let Some(times) = times else { continue };
            let (got, kinds) = (times.len(), flash.kinds_of_pages());
            if got != kinds {
                let (times, preset) = (if got == 1 { "time" } else { "times" }, flash.preset.word());
                self.conflict(key, format!("{got} {times} for the {kinds} kinds of pages of {preset}"));
            }
            times.iter().for_each(|time| self.array_time(key, *time));
        }
    }

    fn array_time(&mut self, key: &str, time: Span) {
        if !(Span::ns(1)..=LONGEST).contains(&time) {
            self.report(key, Problem::out_of_range(time, format!("1ns up to {LONGEST}")));
        }
    }
}
