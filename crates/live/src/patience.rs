//! How long the loop looks for work before it sleeps.
//!
//! A sleeping processor is woken by another in tens of microseconds where that takes a virtual machine to be left and entered, which is more than a
//! request costs. So where sleeps have been short the loop looks again for a while: little at first, twice as long after each sleep that a longer look would have
//! spared, and not at all after one that no look would have. Linux does the same for virtual processors (`halt_poll_ns`,
//! Documentation/virt/kvm/halt-polling.rst).

use base::Span;

/// The first look.
const FIRST: Span = Span::us(5);

/// Learns from sleeps how long to look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    longest: Span,
    look: Span,
}

impl Patience {
    /// One that has seen nothing yet. It never looks for longer than `longest`; zero: never.
    pub(crate) fn new(longest: Span) -> Patience {
        Patience { longest, look: Span::ZERO }
    }

    /// How long to look now.
    pub(crate) fn look(&self) -> Span {
        self.look
    }

    /// Looking was in vain or was not done: work came after `span`, being woken included, which is taken to cost no more than the longest look.
    pub(crate) fn slept(&mut self, span: Span) {
        self.look = if span > self.longest * 2 { Span::ZERO } else { (self.look * 2).max(FIRST).min(self.longest) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: Span = Span::us(50);

    #[test]
    fn short_sleeps_double_the_look_up_to_the_longest() {
        let mut patience = Patience::new(LONGEST);
        let looks: Vec<u64> = (0..6)
            .map(|_| {
                let look = patience.look();
                patience.slept(LONGEST * 2);
                look.as_ps() / Span::us(1).as_ps()
            })
            .collect();
        assert_eq!(looks, [0, 5, 10, 20, 40, 50]);
    }

    #[test]
    fn one_long_sleep_ends_looking() {
        let mut patience = Patience::new(LONGEST);
        (0..6).for_each(|_| patience.slept(Span::ZERO));
        patience.slept(LONGEST * 2 + Span::ps(1));
        assert_eq!(patience.look(), Span::ZERO);
    }

    #[test]
    fn without_a_longest_look_there_is_none() {
        let mut patience = Patience::new(Span::ZERO);
        patience.slept(Span::ZERO);
        assert_eq!(patience.look(), Span::ZERO);
    }
}
