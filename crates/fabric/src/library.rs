//! libfabric itself, opened when it is wanted.

use crate::abi::{Fabric, FabricAttr, Info};
use libc::{c_char, c_int, c_void};
use std::error::Error;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::{Mutex, PoisonError};

/// The name of libfabric 1.x and 2.x.
const NAME: &str = "libfabric.so.1";

/// Why there is no access.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FabricError {
    /// The library is not there.
    #[error("libfabric cannot be opened ({0}); on Debian: apt-get install libfabric1")]
    Missing(String),
    /// The library is there, and does not have the provider on this machine.
    #[error("libfabric {version} has no provider {provider:?} for {place} on this machine: {reason}")]
    Provider {
        /// The version of the library.
        version: String,
        /// What was asked for.
        provider: String,
        /// The address at which it should be.
        place: String,
        /// What the library says.
        reason: String,
    },
    /// A call has failed, or an operation.
    #[error("libfabric, {what}: {reason}")]
    Call {
        /// What was called or done.
        what: &'static str,
        /// What the library says.
        reason: String,
    },
    /// It cannot do what is wanted.
    #[error("the provider {provider:?} {lack}")]
    Unable {
        /// The provider.
        provider: String,
        /// What it does not do.
        lack: &'static str,
    },
}

/// The library, and the functions that it exports. All others are reached through its objects.
pub struct Library {
    pub(crate) getinfo:
        unsafe extern "C" fn(u32, *const c_char, *const c_char, u64, *const Info, *mut *mut Info) -> c_int,
    pub(crate) freeinfo: unsafe extern "C" fn(*mut Info),
    pub(crate) dupinfo: unsafe extern "C" fn(*const Info) -> *mut Info,
    pub(crate) fabric: unsafe extern "C" fn(*mut FabricAttr, *mut *mut Fabric, *mut c_void) -> c_int,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    version: unsafe extern "C" fn() -> u32,
}

/// The library of this process. It is never closed: threads of providers may still run.
static OPENED: Mutex<Option<&'static Library>> = Mutex::new(None);

impl Library {
    /// The library; opened by the first call.
    ///
    /// Libraries that Debian's libfabric brings (libpsm2, libpsm_infinipath) catch SIGTERM and
    /// SIGINT when they are loaded, and end the process with code 1. The signals are therefore
    /// blocked meanwhile, and what they did before is restored.
    ///
    /// # Errors
    /// When it is not installed, or lacks a function.
    pub fn open() -> Result<&'static Library, FabricError> {
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(library) = *opened {
            return Ok(library);
        }
        let library = Library::open_as(NAME)?;
        Ok(opened.insert(library))
    }

    #[expect(unsafe_code, reason = "a library runs code when it is loaded, and its functions have no types")]
    fn open_as(name: &str) -> Result<&'static Library, FabricError> {
        let _kept = Signals::keep();
        let missing = |error: libloading::Error| {
            let cause = error.source().map_or_else(|| name.to_owned(), ToString::to_string);
            FabricError::Missing(format!("{error}: {cause}"))
        };
        // SAFETY: libfabric may be loaded by any thread, and signals are as before afterwards. The
        // functions have the types of its headers, and it is never unloaded.
        unsafe {
            let file = Box::leak(Box::new(libloading::Library::new(name).map_err(missing)?));
            let library = Library {
                getinfo: *file.get(c"fi_getinfo").map_err(missing)?,
                freeinfo: *file.get(c"fi_freeinfo").map_err(missing)?,
                dupinfo: *file.get(c"fi_dupinfo").map_err(missing)?,
                fabric: *file.get(c"fi_fabric").map_err(missing)?,
                strerror: *file.get(c"fi_strerror").map_err(missing)?,
                version: *file.get(c"fi_version").map_err(missing)?,
            };
            // Providers begin with the first question, and some of them catch signals too.
            let mut found = std::ptr::null_mut();
            let hints = library.hints();
            (*(*hints).fabric_attr).prov_name = c"none".as_ptr().cast_mut();
            (library.getinfo)(crate::abi::VERSION, std::ptr::null(), std::ptr::null(), 0, hints, &mut found);
            (*(*hints).fabric_attr).prov_name = std::ptr::null_mut();
            (library.freeinfo)(hints);
            if !found.is_null() {
                (library.freeinfo)(found);
            }
            Ok(Box::leak(Box::new(library)))
        }
    }

    /// Hints in which nothing is wanted.
    #[expect(unsafe_code, reason = "a function of the library")]
    pub(crate) fn hints(&self) -> *mut Info {
        // SAFETY: without an argument it makes a new one, with all of its parts.
        let hints = unsafe { (self.dupinfo)(std::ptr::null()) };
        assert!(!hints.is_null(), "there is memory for a few hundred bytes");
        hints
    }

    /// What a number of an error means; negative or not.
    #[expect(unsafe_code, reason = "a function of the library")]
    pub(crate) fn meaning(&self, number: i64) -> String {
        let number = c_int::try_from(number.unsigned_abs()).unwrap_or(c_int::MAX);
        // SAFETY: it returns a constant text for any number.
        let text = unsafe { CStr::from_ptr((self.strerror)(number)) };
        format!("{} (error {number})", text.to_string_lossy())
    }

    /// An error of a call.
    pub(crate) fn failed(&self, what: &'static str, number: i64) -> FabricError {
        FabricError::Call { what, reason: self.meaning(number) }
    }

    /// Its version, such as 1.17.
    #[expect(unsafe_code, reason = "a function of the library")]
    pub fn version(&self) -> String {
        // SAFETY: it takes nothing and returns a number.
        let version = unsafe { (self.version)() };
        format!("{}.{}", version >> 16, version & 0xffff)
    }
}

/// What signals do, and which are blocked in this thread; restored when it is dropped.
struct Signals {
    actions: Vec<(c_int, libc::sigaction)>,
    blocked: libc::sigset_t,
}

impl Signals {
    #[expect(unsafe_code, reason = "calls of the system without a safe wrapper")]
    fn keep() -> Signals {
        let (mut all, mut blocked) = (MaybeUninit::uninit(), MaybeUninit::zeroed());
        // SAFETY: each call fills what it is given; one that fails leaves zeros, which are valid.
        unsafe {
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), blocked.as_mut_ptr());
            let action = |signal| {
                let mut action = MaybeUninit::zeroed();
                let is_known = libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0;
                is_known.then(|| (signal, action.assume_init()))
            };
            Signals { actions: (1..=libc::SIGRTMAX()).filter_map(action).collect(), blocked: blocked.assume_init() }
        }
    }
}

impl Drop for Signals {
    #[expect(unsafe_code, reason = "calls of the system without a safe wrapper")]
    fn drop(&mut self) {
        for (signal, action) in &self.actions {
            // SAFETY: the system said that this is what the signal did. It refuses to set some
            // signals, which nobody has changed either.
            unsafe { libc::sigaction(*signal, action, std::ptr::null_mut()) };
        }
        // SAFETY: the set is that of this thread before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.blocked, std::ptr::null_mut()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What every signal does: the function, and how.
    fn actions() -> Vec<(c_int, usize, c_int)> {
        let kept = Signals::keep();
        kept.actions.iter().map(|(signal, action)| (*signal, action.sa_sigaction, action.sa_flags)).collect()
    }

    #[test]
    fn signals_do_after_it_is_opened_what_they_did_before() {
        let before = actions();
        assert!(before.iter().any(|(signal, ..)| *signal == libc::SIGTERM), "{before:?}");
        if let Err(error) = Library::open() {
            assert!(std::env::var_os("CI").is_none(), "{error}");
            return eprintln!("SKIPPED: {error}");
        }
        assert_eq!(before, actions());
    }

    #[test]
    fn a_library_that_is_not_there_is_named_with_its_package() {
        let error = Library::open_as("libfabric-of-nobody.so.1").err().expect("there is none").to_string();
        assert!(error.contains("libfabric-of-nobody.so.1") && error.contains("apt-get install libfabric1"), "{error}");
        let error = Library::open_as("libc.so.6").err().expect("it is another one").to_string();
        assert!(error.contains("fi_getinfo"), "{error}");
    }
}
