//! A stream of collection: dies that take turns, so that the others serve requests meanwhile.

/// What a step of collection has done to a die.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectionStep {
    /// The die has nothing to collect.
    Nothing,
    /// Its victim is nearer to its erase.
    Moved,
    /// Its victim is erased, and the vSSD has a free block more.
    Freed,
}

/// The dies of one stream, and whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionStream<D> {
    dies: Vec<D>,
    turn: usize,
}

impl<D: Copy> CollectionStream<D> {
    /// Deals the dies of a vSSD out to `streams` streams, one after the other. Consecutive dies lie
    /// on different streams.
    pub fn deal(dies: &[D], streams: u32) -> Vec<CollectionStream<D>> {
        let count = streams as usize;
        let of = |stream| dies.iter().copied().skip(stream).step_by(count).collect();
        (0..count).map(|stream| CollectionStream { dies: of(stream), turn: 0 }).collect()
    }

    /// Takes up to `burst` steps in a row, until one frees a block or no die has anything to
    /// collect. `step` executes a step on a die.
    ///
    /// # Errors
    /// The first error of `step`.
    pub fn collect<E>(&mut self, burst: u32, mut step: impl FnMut(D) -> Result<CollectionStep, E>) -> Result<(), E> {
        for _ in 0..burst {
            if self.step(&mut step)? != CollectionStep::Moved {
                break;
            }
        }
        Ok(())
    }

    /// One step on the die whose turn it is, or on the next one that has anything to collect. A die
    /// keeps its turn until its victim is erased.
    fn step<E>(&mut self, step: &mut impl FnMut(D) -> Result<CollectionStep, E>) -> Result<CollectionStep, E> {
        for place in (self.turn..self.dies.len()).chain(0..self.turn) {
            let taken = step(self.dies[place])?;
            if taken != CollectionStep::Nothing {
                let next = if taken == CollectionStep::Freed { place + 1 } else { place };
                self.turn = next % self.dies.len();
                return Ok(taken);
            }
        }
        Ok(CollectionStep::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::CollectionStep::{Freed, Moved, Nothing};
    use super::*;

    /// Collects on dies of which each needs so many more steps, the last of which frees a block.
    /// Returns the dies that took a step.
    fn collect(stream: &mut CollectionStream<usize>, burst: u32, left: &mut [u32]) -> Vec<usize> {
        let mut taken = Vec::new();
        let step = |die: usize| -> Result<CollectionStep, ()> {
            let Some(rest) = left[die].checked_sub(1) else { return Ok(Nothing) };
            left[die] = rest;
            taken.push(die);
            Ok(if rest == 0 { Freed } else { Moved })
        };
        stream.collect(burst, step).expect("no step fails");
        taken
    }

    #[test]
    fn dies_are_dealt_out_in_turn() {
        let streams = CollectionStream::deal(&[10, 11, 12, 13, 14], 2);
        assert_eq!(streams.iter().map(|one| one.dies.clone()).collect::<Vec<_>>(), [vec![10, 12, 14], vec![11, 13]]);
    }

    #[test]
    fn a_die_keeps_its_turn_until_its_victim_is_erased() {
        let mut stream = CollectionStream::deal(&[0, 1], 1).remove(0);
        let mut left = [3, 3];
        assert_eq!(collect(&mut stream, 2, &mut left), [0, 0]);
        assert_eq!(collect(&mut stream, 2, &mut left), [0], "a burst ends with a free block");
        assert_eq!(collect(&mut stream, 9, &mut left), [1, 1, 1]);
        assert_eq!(collect(&mut stream, 9, &mut left), [0; 0]);
    }

    #[test]
    fn a_die_with_nothing_to_collect_is_passed_over_and_the_turns_wrap_round() {
        let mut stream = CollectionStream::deal(&[0, 1, 2], 1).remove(0);
        let mut left = [0, 1, 0];
        assert_eq!(collect(&mut stream, 1, &mut left), [1]);
        left = [2, 2, 0];
        assert_eq!(collect(&mut stream, 4, &mut left), [0, 0], "die 2 had its turn and nothing to do");
        assert_eq!(collect(&mut stream, 4, &mut left), [1, 1]);
    }

    #[test]
    fn an_error_of_a_step_ends_the_burst_and_leaves_the_turn() {
        let mut stream = CollectionStream::deal(&[0, 1], 1).remove(0);
        assert_eq!(stream.collect(3, |die| if die == 0 { Ok(Nothing) } else { Err("worn out") }), Err("worn out"));
        assert_eq!(stream.turn, 0);
    }
}
