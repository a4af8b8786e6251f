//! A storage whose failures are logged: the disk, the address, and the system's reason. A failing
//! disk fails often; see [`Throttle`].

use super::storage::{DiskFile, Leave, Lender, Storage};
use crate::clock::Clock;
use crate::state::NamespaceName;
use runtime::lock::lock;
use runtime::throttle::Throttle;
use std::io;
use std::sync::{Arc, Mutex};

pub(crate) struct Watched {
    storage: Arc<dyn Storage>,
    /// The file, or the namespace without one.
    path: Arc<str>,
    clock: Clock,
    throttle: Arc<Mutex<Throttle>>,
}

impl Watched {
    pub(crate) fn new(storage: Arc<dyn Storage>, name: &NamespaceName, clock: Clock) -> Watched {
        let path = match storage.file() {
            Some(file) => file.path().display().to_string(),
            None => format!("namespace {} of {}", name.namespace, name.subsystem),
        };
        Watched { storage, path: path.into(), clock, throttle: Arc::default() }
    }

    /// A range beyond the end is a host's error, or of a namespace that has shrunk. Of a request
    /// that its host has left nobody wants to know.
    fn note<T>(&self, operation: &'static str, at: u64, bytes: u64, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && !matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionAborted)
            && let Some(left_out) = lock(&self.throttle).admit(self.clock.now())
        {
            tracing::error!(path = &*self.path, operation, at, bytes, %error, left_out, "I/O error");
        }
        result
    }
}

impl Storage for Watched {
    fn bytes(&self) -> u64 {
        self.storage.bytes()
    }
    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.note("read", at, buffer.len() as u64, self.storage.read(at, buffer))
    }
    fn read_cached(&self, at: u64, buffer: &mut [u8]) -> bool {
        self.storage.read_cached(at, buffer)
    }
    fn lend(&self, alone: bool) -> Option<Lender<'_>> {
        self.storage.lend(alone)
    }
    fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        self.note("write", at, data.len() as u64, self.storage.write(at, data))
    }
    fn zero(&self, at: u64, bytes: u64, gives_back: bool) -> io::Result<()> {
        self.note("zero", at, bytes, self.storage.zero(at, bytes, gives_back))
    }
    fn give_back(&self, at: u64, bytes: u64) -> io::Result<()> {
        self.note("deallocate", at, bytes, self.storage.give_back(at, bytes))
    }
    /// A file reports itself that its sync has failed, and what follows from it.
    fn sync(&self) -> io::Result<()> {
        let result = self.storage.sync();
        if self.storage.file().is_some() { result } else { self.note("sync", 0, 0, result) }
    }
    fn leavable(&self) -> Option<(Arc<dyn Storage>, Leave)> {
        let (storage, leave) = self.storage.leavable()?;
        let (path, clock, throttle) = (self.path.clone(), self.clock, self.throttle.clone());
        Some((Arc::new(Watched { storage, path, clock, throttle }), leave))
    }
    fn file(&self) -> Option<&DiskFile> {
        self.storage.file()
    }
    fn resize(&self, bytes: u64) -> io::Result<()> {
        self.storage.resize(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A disk that the system cannot read.
    struct Broken;

    impl Storage for Broken {
        fn bytes(&self) -> u64 {
            4096
        }
        fn read(&self, at: u64, _: &mut [u8]) -> io::Result<()> {
            let beyond = || Err(io::ErrorKind::UnexpectedEof.into());
            if at < self.bytes() { Err(io::Error::from_raw_os_error(5)) } else { beyond() }
        }
        fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn zero(&self, _: u64, _: u64, _: bool) -> io::Result<()> {
            Ok(())
        }
        fn give_back(&self, _: u64, _: u64) -> io::Result<()> {
            Ok(())
        }
        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
        fn resize(&self, _: u64) -> io::Result<()> {
            Ok(())
        }
    }

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            lock(&self.0).extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_failing_disk_is_named_with_what_the_system_says_and_not_at_every_request() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        let name = NamespaceName { subsystem: "nqn.a".into(), namespace: 7 };
        let watched = Watched::new(Arc::new(Broken), &name, Clock::start());
        tracing::subscriber::with_default(subscriber, || {
            watched.read(8192, &mut [0; 512]).expect_err("it is outside");
            for _ in 0..100 {
                watched.read(512, &mut [0; 512]).expect_err("it is broken");
            }
        });
        let said = String::from_utf8(lock(&log.0).clone()).expect("text");
        assert_eq!(said.lines().count(), 1, "{said}");
        let words = ["namespace 7 of nqn.a", "operation=\"read\"", "at=512", "(os error 5)", "I/O error"];
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}
