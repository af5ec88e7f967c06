//! Finds the machine's disks, and what a byte from and to them costs.

use std::{fs, path::Path};

use joular_data::model::byte_costs::ByteCosts;

use super::{Devices, DiskFigures, thousandths};
use crate::energy::{Adds, EnergyOptions, Opened, SourceKind, Unusable, UnusableKind, sysfs::read_value};

const NAME: &str = "disk";

/// What [`crate::energy::SOURCES`] has of it.
pub const KIND: SourceKind = SourceKind {
    name: NAME,
    measures: "nothing: an estimate from bytes read and written, and published power of disks",
    permission: "as --io",
    adds: Adds::IfAsked,
    open,
};

const SECTOR_BYTES: u64 = 512;

/// More than any machine has.
const MAX_DISKS: usize = 4096;

/// What disks of a kind draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Published {
    words: &'static str,
    idle_mw: u64,
    /// Above idle power, while the disk does nothing but reads, or writes, that are far apart.
    reading_mw: u64,
    writing_mw: u64,
    byte_read_pj: u64,
    byte_written_pj: u64,
}

/// Seagate Constellation ES.3, SATA, 4 TB (product manual 100671511, Rev. E, table 2; current × voltage): idle, and random
/// reads and writes. Nearly all that it draws is for moving its arm, so a request costs by its time, and a byte nothing.
const HARD_DISK: Published = Published {
    words: "a hard disk",
    idle_mw: 7_400,
    reading_mw: 3_870,
    writing_mw: 3_460,
    byte_read_pj: 0,
    byte_written_pj: 0,
};

/// Intel DC S4500, SATA (product specification): active 5.6 W, idle 1.1 W; 500 MB/s read, 490 MB/s written.
const SSD: Published = Published {
    words: "an SSD",
    idle_mw: 1_100,
    reading_mw: 0,
    writing_mw: 0,
    byte_read_pj: 9_000,
    byte_written_pj: 9_184,
};

/// Intel DC P3500, NVMe (product specification): active 25 W, idle 4 W; 2700 MB/s read, 1800 MB/s written.
const NVME: Published = Published {
    words: "an NVMe SSD",
    idle_mw: 4_000,
    reading_mw: 0,
    writing_mw: 0,
    byte_read_pj: 7_778,
    byte_written_pj: 11_667,
};

/// The host's disk draws its idle power, and nobody knows what it is: bytes cost what they cost an SSD.
const VIRTUAL: Published = Published { words: "a virtual disk", idle_mw: 0, ..SSD };

/// What a disk has done since the machine started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Done {
    reads: u64,
    bytes_read: u64,
    writes: u64,
    bytes_written: u64,
    /// How long it had requests to serve.
    busy_ms: u64,
}

/// What is taken for a disk that has done nothing yet.
const NOTHING_YET: Done = Done { reads: 1, bytes_read: 1 << 17, writes: 1, bytes_written: 1 << 17, busy_ms: 10 };

#[derive(Clone, Debug)]
struct Disk {
    name: String,
    published: Published,
    done: Done,
}

fn open(options: &EnergyOptions) -> Result<Opened, Unusable> {
    let given = options.disk.ok_or_else(|| Unusable::new(UnusableKind::NotAsked, "give --disk"))?;
    let directory = options.sys_root.join("block");
    let disks = disks(&directory);
    if disks.is_empty() {
        let text = format!("looking for disks in {}: there is none", directory.display());
        return Err(Unusable::new(UnusableKind::Absent, text));
    }
    let idle = |disk: &Disk| given.idle_uw.unwrap_or(disk.published.idle_mw * 1000);
    let idle_uw = disks.iter().map(idle).fold(0, u64::saturating_add);
    let costs = costs(&disks, &given);
    let names: Vec<String> =
        disks.iter().map(|disk| format!("{} ({})", disk.name.escape_debug(), disk.published.words)).collect();
    let basis = format!(
        "estimated for {}: {} nJ a byte read, {} written, {} mW always",
        names.join(", "),
        thousandths(costs.device_read_pj),
        thousandths(costs.device_written_pj),
        idle_uw / 1000
    );
    Ok(Devices::open(NAME, idle_uw, costs, basis))
}

/// What a byte costs with its part of a request, on the average over the disks: nobody knows which of them has a byte.
fn costs(disks: &[Disk], given: &DiskFigures) -> ByteCosts {
    let (mut read_pj, mut bytes_read, mut written_pj, mut bytes_written) = (0_u128, 0_u128, 0_u128, 0_u128);
    for Disk { published, done, .. } in disks {
        // A request has its part of the time in which the disk was busy. mW × ms = µJ = 10⁶ pJ.
        let requests = u128::from(done.reads.saturating_add(done.writes).max(1));
        let request_pj = |mw: u64| u128::from(mw) * 1_000_000 * u128::from(done.busy_ms) / requests;
        let read = given.read_pj.map_or_else(|| request_pj(published.reading_mw), u128::from);
        let write = given.write_pj.map_or_else(|| request_pj(published.writing_mw), u128::from);
        let byte_read = u128::from(given.byte_read_pj.unwrap_or(published.byte_read_pj));
        let byte_written = u128::from(given.byte_written_pj.unwrap_or(published.byte_written_pj));
        read_pj += u128::from(done.bytes_read) * byte_read + u128::from(done.reads) * read;
        written_pj += u128::from(done.bytes_written) * byte_written + u128::from(done.writes) * write;
        bytes_read += u128::from(done.bytes_read);
        bytes_written += u128::from(done.bytes_written);
    }
    let mean = |pj: u128, bytes: u128| pj.checked_div(bytes).and_then(|pj| u64::try_from(pj).ok()).unwrap_or(0);
    ByteCosts {
        device_read_pj: mean(read_pj, bytes_read),
        device_written_pj: mean(written_pj, bytes_written),
        ..ByteCosts::default()
    }
}

/// Whole physical disks, by name: no partitions, loop devices, RAIDs or logical volumes.
fn disks(directory: &Path) -> Vec<Disk> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().take(MAX_DISKS);
    let disk = |entry: fs::DirEntry| {
        let device = fs::canonicalize(entry.path().join("device")).ok()?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let done = read_value(&entry.path().join("stat")).ok().and_then(|text| parse_stat(&text))?;
        let done = if done.reads == 0 || done.writes == 0 { NOTHING_YET } else { done };
        let is_rotational = read_value(&entry.path().join("queue/rotational")).is_ok_and(|text| text == "1");
        let is_virtual = ["virtio", "xen", "vmbus", "vbd-"].iter().any(|bus| device.to_string_lossy().contains(bus));
        let published = if is_virtual {
            VIRTUAL
        } else if name.starts_with("nvme") {
            NVME
        } else if is_rotational {
            HARD_DISK
        } else {
            SSD
        };
        Some(Disk { name, published, done })
    };
    let mut disks: Vec<Disk> = entries.filter_map(disk).collect();
    disks.sort_by(|one, other| one.name.cmp(&other.name));
    disks
}

/// Fields as the kernel's Documentation/block/stat.rst numbers them.
fn parse_stat(text: &str) -> Option<Done> {
    let fields: Vec<u64> = text.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let field = |place: usize| fields.get(place).copied();
    Some(Done {
        reads: field(0)?,
        bytes_read: field(2)?.saturating_mul(SECTOR_BYTES),
        writes: field(4)?,
        bytes_written: field(6)?.saturating_mul(SECTOR_BYTES),
        busy_ms: field(9)?,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use joular_data::model::domain::{DividedBy, Meter};

    use super::*;

    /// 1000 reads of 4 KiB and 1000 writes of 8 KiB in 10 s.
    const STAT: &str = "1000 0 8000 900 1000 0 16000 900 0 10000 1800\n";

    /// A disk: name, its device's path, whether it turns.
    fn machine(disks: &[(&str, &str, bool, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, device, is_rotational, stat) in disks {
            let at = root.path().join("block").join(name);
            fs::create_dir_all(at.join("queue")).unwrap();
            fs::write(at.join("queue/rotational"), if *is_rotational { "1\n" } else { "0\n" }).unwrap();
            fs::write(at.join("stat"), stat).unwrap();
            if !device.is_empty() {
                let device = root.path().join("devices").join(device);
                fs::create_dir_all(&device).unwrap();
                symlink(device, at.join("device")).unwrap();
            }
        }
        root
    }

    #[track_caller]
    fn check(disks: &[(&str, &str, bool, &str)], given: &str, expected: (u64, u64, u64)) {
        let root = machine(disks);
        let options = EnergyOptions {
            disk: Some(given.parse().unwrap()),
            sys_root: root.path().into(),
            ..EnergyOptions::default()
        };
        let opened = open(&options).unwrap();
        let domain = &opened.source.domains()[0];
        let (Meter::PerByte { idle_uw }, DividedBy::Bytes(costs)) = (domain.meter, &domain.divided_by) else {
            panic!("{domain:?}");
        };
        assert_eq!((idle_uw, costs.device_read_pj, costs.device_written_pj), expected, "{}", opened.basis);
        assert_eq!((costs.sent_pj, costs.received_pj), (0, 0));
    }

    #[test]
    fn a_kind_of_disk_has_its_published_figures() {
        check(&[("sda", "ata1", false, STAT)], "published", (1_100_000, 9_000, 9_184));
        check(&[("nvme0n1", "nvme0", false, STAT)], "published", (4_000_000, 7_778, 11_667));
        // It says that it turns, as virtual disks do.
        check(&[("vda", "virtio1", true, STAT)], "published", (0, 9_000, 9_184));
        // A request takes 5 ms: 19.35 and 17.3 mJ, on 4096 and 8192 bytes.
        let (read, written) = (3_870 * 5_000_000 / 4_096, 3_460 * 5_000_000 / 8_192);
        check(&[("sdb", "ata2", true, STAT)], "published", (7_400_000, read, written));
    }

    #[test]
    fn what_the_user_knows_counts_by_the_requests_that_the_disk_has_had() {
        let given = "idle-watts=2,read-uj=4.096,write-uj=0,byte-read-nj=3,byte-written-nj=5";
        check(&[("sda", "ata1", true, STAT)], given, (2_000_000, 3_000 + 1_000, 5_000));
    }

    #[test]
    fn several_disks_count_by_what_they_have_moved() {
        let busy = "3000 0 24000 900 3000 0 48000 900 0 10000 1800\n";
        let disks = [("sda", "ata1", false, STAT), ("nvme0n1", "nvme0", false, busy), ("dm-0", "", false, busy)];
        check(&disks, "published", (5_100_000, (9_000 + 3 * 7_778) / 4, (9_184 + 3 * 11_667) / 4));
    }

    #[test]
    fn a_disk_that_has_done_nothing_has_figures_all_the_same() {
        let new = [("sda", "ata1", true, "0 0 0 0 0 0 0 0 0 0 0\n")];
        check(&new, "published", (7_400_000, 3_870 * 5_000_000 / (1 << 17), 3_460 * 5_000_000 / (1 << 17)));
    }

    #[test]
    fn without_a_disk_or_the_flag_there_is_no_energy_of_disks() {
        let root = machine(&[("loop0", "", false, STAT), ("sda", "ata1", false, "what is this")]);
        let why = |disk| {
            open(&EnergyOptions { disk, sys_root: root.path().into(), ..EnergyOptions::default() }).err().unwrap().kind
        };
        assert_eq!(why(None), UnusableKind::NotAsked);
        assert_eq!(why(Some(DiskFigures::default())), UnusableKind::Absent);
    }

    #[test]
    fn the_document_has_these_figures() {
        let document = include_str!("../../../../docs/energy-model.md");
        for Published { words, idle_mw, reading_mw, writing_mw, byte_read_pj, byte_written_pj } in
            [HARD_DISK, SSD, NVME, VIRTUAL]
        {
            let row = format!(
                "| {words} | {} | {} | {} | {} | {} |",
                thousandths(idle_mw),
                thousandths(reading_mw),
                thousandths(writing_mw),
                thousandths(byte_read_pj),
                thousandths(byte_written_pj)
            );
            assert!(document.contains(&row), "{row}");
        }
    }
}
