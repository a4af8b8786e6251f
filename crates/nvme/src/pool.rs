//! Buffers of commands, kept for the next ones: the steady state allocates nothing.

/// Size classes: powers of two from 512 B (index 0) to 2^31.
const CLASSES: usize = 23;
const CLASS_SHIFT_MIN: u32 = 9;

/// Free buffers by size.
#[derive(Debug)]
pub(crate) struct Pool {
    free: [Vec<Vec<u8>>; CLASSES],
    held: u64,
    held_max: u64,
}

/// The class whose buffers hold `length` bytes.
fn class(length: usize) -> usize {
    let shift = length.max(1).next_power_of_two().trailing_zeros().max(CLASS_SHIFT_MIN);
    ((shift - CLASS_SHIFT_MIN) as usize).min(CLASSES - 1)
}

impl Pool {
    /// Keeps at most `held_max` bytes.
    pub(crate) fn new(held_max: u64) -> Self {
        Pool { free: std::array::from_fn(|_| Vec::new()), held: 0, held_max }
    }

    /// A buffer of `length` bytes. It holds data of other commands; callers write all of it before
    /// anything reads it.
    pub(crate) fn take(&mut self, length: usize) -> Vec<u8> {
        let class = class(length);
        let mut buffer = match self.free[class].pop() {
            Some(buffer) => {
                self.held -= buffer.capacity() as u64;
                buffer
            }
            None => Vec::with_capacity(length.max(1 << CLASS_SHIFT_MIN).next_power_of_two()),
        };
        // Zeroes only what the last user's length left over: nothing if commands are of one size.
        buffer.resize(length, 0);
        buffer
    }

    /// Takes a buffer back. One that did not come from here, or is too many, is freed.
    pub(crate) fn give(&mut self, buffer: Vec<u8>) {
        let capacity = buffer.capacity();
        let class = class(capacity);
        let is_ours = capacity == 1usize << (class as u32 + CLASS_SHIFT_MIN);
        if is_ours && self.held + capacity as u64 <= self.held_max {
            self.held += capacity as u64;
            self.free[class].push(buffer);
        }
    }

    /// Bytes that are kept free.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_for_the_next_command_of_its_size() {
        let mut pool = Pool::new(1 << 20);
        let buffer = pool.take(4096);
        let place = buffer.as_ptr();
        pool.give(buffer);
        assert_eq!(pool.held(), 4096);
        let again = pool.take(4000);
        assert_eq!((again.as_ptr(), again.len(), pool.held()), (place, 4000, 0));
    }

    #[test]
    fn more_than_the_pool_may_keep_is_freed_and_the_last_byte_of_room_is_used() {
        let mut pool = Pool::new(8192);
        for _ in 0..3 {
            pool.give(Vec::with_capacity(4096));
        }
        assert_eq!(pool.held(), 8192);
    }

    #[test]
    fn a_stranger_is_not_kept() {
        let mut pool = Pool::new(8192);
        pool.give(Vec::with_capacity(1000));
        pool.give(Vec::new());
        assert_eq!(pool.held(), 0);
    }
}
