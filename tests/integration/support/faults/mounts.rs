//! File systems that are full or cannot be written, in a mount namespace.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write as _},
    path::{Path, PathBuf},
};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

/// A file system of 1 MiB and 256 files, on a directory until this is dropped.
pub struct SmallDisk(PathBuf);

/// The directory with the files that fill a disk.
const BALLAST: &str = "ballast";

impl SmallDisk {
    pub fn at(place: &Path) -> Self {
        fs::create_dir_all(place).expect("it is writable");
        let size = Some("size=1m,nr_inodes=256,mode=700");
        mount(Some("tmpfs"), place, Some("tmpfs"), MsFlags::empty(), size).expect("it is mounted");
        Self(place.to_owned())
    }

    /// Takes up all bytes and all files.
    pub fn fill(&self) {
        let ballast = self.0.join(BALLAST);
        fs::create_dir_all(&ballast).expect("there is room for a directory");
        let mut bytes = File::create(ballast.join("bytes")).expect("there is room for a file");
        let is_full = |error: std::io::Error| error.kind() == ErrorKind::StorageFull;
        while bytes.write_all(&[b'x'; 4096]).map_err(is_full) != Err(true) {}
        let mut files = 0..;
        let mut create = || File::create(ballast.join(files.next().unwrap().to_string()));
        while create().map(drop).map_err(is_full) != Err(true) {}
    }

    /// Frees what [`Self::fill`] took up.
    pub fn free(&self) {
        fs::remove_dir_all(self.0.join(BALLAST)).expect("it was filled");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        detach(&self.0);
    }
}

/// A directory that cannot be written to until this is dropped.
pub struct ReadOnly(PathBuf);

impl ReadOnly {
    pub fn at(place: &Path) -> Self {
        fs::create_dir_all(place).expect("it is writable");
        let no = None::<&str>;
        mount(Some(place), place, no, MsFlags::MS_BIND, no).expect("it is mounted");
        let read_only = MsFlags::MS_BIND | MsFlags::MS_REMOUNT | MsFlags::MS_RDONLY;
        mount(no, place, no, read_only, no).expect("it is mounted again");
        Self(place.to_owned())
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        detach(&self.0);
    }
}

/// Removes a mount from the tree, also if files in it are open.
fn detach(place: &Path) {
    umount2(place, MntFlags::MNT_DETACH).expect("it is mounted");
}
