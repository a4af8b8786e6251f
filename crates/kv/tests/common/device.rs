//! A block device of its own: a loop device over a file that lies on a small file system.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The device; dropped, it is gone.
pub struct Device {
    pub path: PathBuf,
    disk: PathBuf,
}

impl Device {
    /// One of `bytes`, of which those up to `room` can be written. `None` where this process may
    /// not make one: that takes root. Linux takes a write that ends beyond `room` for whole, so
    /// none may begin before it and do so.
    pub fn over(folder: &Path, bytes: u64, room: u64) -> Option<Device> {
        let disk = folder.join("disk");
        std::fs::create_dir(&disk).expect("a folder");
        let size = format!("size={room}");
        let is_mounted =
            run("mount", &["-t".as_ref(), "tmpfs".as_ref(), "-o".as_ref(), size.as_ref(), "tmpfs".as_ref(), &disk]);
        if is_mounted.is_none() {
            eprintln!("SKIPPED: no block device can be made; it takes root");
            return None;
        }
        let mut device = Device { path: PathBuf::new(), disk };
        let file = device.disk.join("file");
        std::fs::write(&file, vec![0; room as usize]).expect("there is room");
        std::fs::File::options().append(true).open(&file).and_then(|file| file.set_len(bytes)).expect("a file");
        let Some(made) = run("losetup", &["--find".as_ref(), "--show".as_ref(), &file]) else {
            eprintln!("SKIPPED: no loop device can be made");
            return None;
        };
        device.path = String::from_utf8_lossy(&made.stdout).trim().into();
        Some(device)
    }

    /// Has all of it take writes from now on.
    pub fn mend(&self) {
        let size = "remount,size=100%";
        run("mount", &["-o".as_ref(), size.as_ref(), &self.disk]).expect("it is mounted");
    }
}

/// What a program said; `None` if it failed, or is not there.
fn run(program: &str, arguments: &[&Path]) -> Option<Output> {
    Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())
}

impl Drop for Device {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            run("losetup", &["--detach".as_ref(), &self.path]);
        }
        run("umount", &[&self.disk]);
    }
}
