//! A module of the gates as Verilator compiles it: ports to set and to read, and a clock.
//!
//! All `unsafe` of the harness is here: calls of the C functions that build.rs writes, and access
//! to the storage of a port, which lives as long as the module.

#![allow(unsafe_code)]

use std::ffi::c_void;

unsafe extern "C" {
    fn gates_failures() -> u64;
}

/// The C functions of one unit.
pub struct Functions {
    new: unsafe extern "C" fn() -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    eval: unsafe extern "C" fn(*mut c_void, bool, bool),
    port: unsafe extern "C" fn(*mut c_void, u32, *mut u32) -> *mut c_void,
    ports: usize,
}

/// Declares the functions of a unit and returns them.
#[macro_export]
macro_rules! unit_functions {
    ($ports:expr, $new:ident, $free:ident, $eval:ident, $port:ident) => {{
        unsafe extern "C" {
            fn $new() -> *mut std::ffi::c_void;
            fn $free(gates: *mut std::ffi::c_void);
            fn $eval(gates: *mut std::ffi::c_void, rises: bool, is_set: bool);
            fn $port(gates: *mut std::ffi::c_void, port: u32, size: *mut u32) -> *mut std::ffi::c_void;
        }
        $crate::gates::Functions::new($new, $free, $eval, $port, $ports.len())
    }};
}

impl Functions {
    /// The functions of a unit with this many ports.
    #[doc(hidden)]
    pub const fn new(
        new: unsafe extern "C" fn() -> *mut c_void,
        free: unsafe extern "C" fn(*mut c_void),
        eval: unsafe extern "C" fn(*mut c_void, bool, bool),
        port: unsafe extern "C" fn(*mut c_void, u32, *mut u32) -> *mut c_void,
        ports: usize,
    ) -> Functions {
        Functions { new, free, eval, port, ports }
    }
}

/// Where a port is stored.
#[derive(Clone, Copy)]
struct Storage {
    bytes: *mut u8,
    size: usize,
}

/// A module of the gates. Ports 0 and 1 are its clock and its reset (active low).
pub struct Gates {
    functions: Functions,
    handle: *mut c_void,
    ports: Vec<Storage>,
    cycles: u64,
    /// An input has changed that the gates have not seen.
    is_set: bool,
}

const RESET: usize = 1;
/// Bits of a block on a line.
const BLOCK_BITS: usize = 66;

impl Gates {
    /// A module in reset state.
    pub fn new(functions: Functions) -> Gates {
        // SAFETY: the functions are those of one unit, by `unit_functions`.
        let handle = unsafe { (functions.new)() };
        let ports = (0..functions.ports as u32)
            .map(|port| {
                let mut size = 0;
                // SAFETY: as above; the storage lives until `free`.
                let bytes = unsafe { (functions.port)(handle, port, &mut size) };
                assert!(!bytes.is_null(), "port {port} is not in the unit's list");
                Storage { bytes: bytes.cast(), size: size as usize }
            })
            .collect();
        let mut gates = Gates { functions, handle, ports, cycles: 0, is_set: true };
        gates.reset();
        gates
    }

    /// Clears all inputs and all state.
    pub fn reset(&mut self) {
        self.set(RESET, 0, 1, 0);
        // Verilator sees no edge in the very first evaluation.
        self.eval();
        self.tick();
        self.set(RESET, 0, 1, 1);
        self.eval();
    }

    /// Cycles so far, resets included.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Sets `width` bits (at most 64) of an input from bit `low` on.
    pub fn set(&mut self, port: usize, low: usize, width: usize, value: u64) {
        let storage = self.storage(port);
        debug_assert!(width <= 64 && (width == 64 || value >> width == 0), "{width} bits hold {value:#x}");
        if width == 64 && low % 8 == 0 {
            return self.set_word(port, low / 8, value);
        }
        let (first, shift) = (low / 8, low % 8);
        let mask = (u128::MAX >> (128 - width)) << shift;
        let end = (low + width).div_ceil(8).min(storage.len());
        let before = window(storage, first, end);
        let word = before & !mask | u128::from(value) << shift;
        if word == before {
            return;
        }
        let storage = self.storage_mut(port);
        match storage.get_mut(first..first + 16) {
            Some(whole) => whole.copy_from_slice(&word.to_le_bytes()),
            None => storage[first..end].copy_from_slice(&word.to_le_bytes()[..end - first]),
        }
    }

    /// Sets eight bytes of an input.
    #[inline]
    fn set_word(&mut self, port: usize, first: usize, value: u64) {
        let bytes = value.to_le_bytes();
        if self.storage(port)[first..first + 8] != bytes {
            self.storage_mut(port)[first..first + 8].copy_from_slice(&bytes);
        }
    }

    /// Sets one bit of an input.
    #[inline]
    pub fn set_bit(&mut self, port: usize, at: usize, value: bool) {
        if self.bit(port, at) != value {
            self.storage_mut(port)[at / 8] ^= 1 << (at % 8);
        }
    }

    /// Reads one bit of a port.
    #[inline]
    pub fn bit(&self, port: usize, at: usize) -> bool {
        self.storage(port)[at / 8] >> (at % 8) & 1 == 1
    }

    /// Reads one of the blocks of a port.
    #[inline]
    pub fn block(&self, port: usize, place: usize) -> u128 {
        let low = place * BLOCK_BITS;
        // It begins in a word of 32 bits at an even place, so it is in three of them.
        let bytes = self.storage(port)[low / 32 * 4..].first_chunk::<12>().expect("three words");
        let (words, rest) = bytes.split_first_chunk::<8>().expect("twelve bytes");
        let (words, shift) = (u64::from_le_bytes(*words), low % 32);
        let rest = u64::from(u32::from_le_bytes(rest.try_into().expect("four bytes")));
        let below = words >> shift | rest << 1 << (63 - shift);
        u128::from(below) | u128::from(rest >> shift & 3) << 64
    }

    /// Sets one of the blocks of an input.
    pub fn set_block(&mut self, port: usize, place: usize, bits: u128) {
        self.set(port, place * BLOCK_BITS, 64, bits as u64);
        self.set(port, place * BLOCK_BITS + 64, 2, (bits >> 64) as u64 & 3);
    }

    /// Clears an input.
    pub fn clear(&mut self, port: usize) {
        self.storage_mut(port).fill(0);
    }

    /// Reads `width` bits (at most 64) of a port from bit `low` on.
    #[inline]
    pub fn get(&self, port: usize, low: usize, width: usize) -> u64 {
        self.get_wide(port, low, width) as u64
    }

    /// Reads `width` bits of a port from bit `low` on: at most 96 of them and of those before in the
    /// word of 32 in which they begin.
    #[inline]
    fn get_wide(&self, port: usize, low: usize, width: usize) -> u128 {
        let value = match self.storage(port) {
            [only] => u128::from(*only) >> low,
            [first, second] => u128::from(u16::from_le_bytes([*first, *second])) >> low,
            words => match words[low / 32 * 4..] {
                [a, b, c, d, ref rest @ ..] => {
                    let first = u128::from(u32::from_le_bytes([a, b, c, d]));
                    let rest = match *rest {
                        [a, b, c, d, e, f, g, h, ..] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
                        [a, b, c, d, ..] => u64::from(u32::from_le_bytes([a, b, c, d])),
                        _ => 0,
                    };
                    (first | u128::from(rest) << 32) >> (low % 32)
                }
                _ => 0,
            },
        };
        value & (u128::MAX >> (128 - width))
    }

    /// Computes outputs that depend on inputs of this cycle. If none was set, they are what they
    /// were.
    pub fn eval(&mut self) {
        if self.is_set {
            self.evaluate(false);
        }
    }

    /// One cycle: the registers take their next values.
    pub fn tick(&mut self) {
        self.cycles += 1;
        self.evaluate(true);
    }

    fn evaluate(&mut self, rises: bool) {
        let is_set = std::mem::take(&mut self.is_set);
        // SAFETY: the handle is that of `new`, and not freed before `drop`.
        unsafe { (self.functions.eval)(self.handle, rises, is_set) };
    }

    /// How many assertions of this thread's gates have failed since the last call.
    pub fn failures() -> u64 {
        // SAFETY: it reads and clears a counter of this thread.
        unsafe { gates_failures() }
    }

    #[inline]
    fn storage(&self, port: usize) -> &[u8] {
        let Storage { bytes, size } = self.ports[port];
        // SAFETY: the storage of a port, of that size, borrowed with `self`.
        unsafe { std::slice::from_raw_parts(bytes, size) }
    }

    #[inline]
    fn storage_mut(&mut self, port: usize) -> &mut [u8] {
        self.is_set = true;
        let Storage { bytes, size } = self.ports[port];
        // SAFETY: as above; `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(bytes, size) }
    }
}

/// The bytes from `first` on: sixteen where there are so many, otherwise those up to `end`.
#[inline]
fn window(storage: &[u8], first: usize, end: usize) -> u128 {
    match storage.get(first..first + 16) {
        Some(whole) => u128::from_le_bytes(whole.try_into().expect("sixteen bytes")),
        None => {
            let mut some = [0; 16];
            some[..end - first].copy_from_slice(&storage[first..end]);
            u128::from_le_bytes(some)
        }
    }
}

impl Drop for Gates {
    fn drop(&mut self) {
        // SAFETY: nothing uses the handle after this.
        unsafe { (self.functions.free)(self.handle) };
    }
}
