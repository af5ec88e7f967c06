//! Runs one zone: its files, its faults, its log.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{
    Plan,
    log::{Entry, Log},
};
use crate::clock::unix_us;

/// What can be wrong with a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its directory is not there.
    Gone,
    /// Reading its counter fails, for root too: a directory is in its place.
    Unreadable,
    /// Its counter says something that is not a number.
    Garbage,
    /// Its counter says the same all the time.
    Still,
}

pub struct Zone {
    directory: PathBuf,
    counter: File,
    /// Where the counter begins anew.
    modulus_uj: u64,
    /// By how much what is shown differs from the energy, after jumps.
    shift_uj: u64,
    energy_uj: u64,
    fault: Option<Fault>,
    log: Log,
}

impl Zone {
    pub fn create(root: &Path, plan: &Plan) -> Result<Self> {
        let directory = root.join(&plan.entry);
        fs::create_dir(&directory).with_context(|| format!("creating {}", directory.display()))?;
        fs::write(directory.join("name"), format!("{}\n", plan.name))?;
        fs::write(directory.join("enabled"), "1\n")?;
        fs::write(directory.join("max_energy_range_uj"), format!("{}\n", plan.range_uj))?;
        let counter = File::create(directory.join("energy_uj"))?;
        // The range is the largest value of a register of 32 bits, in its unit.
        let unit_uj = ((plan.range_uj + 0x7fff_ffff) / 0xffff_ffff).max(1);
        let (modulus_uj, energy_uj) = (plan.range_uj + unit_uj, plan.start_uj);
        let mut zone =
            Self { directory, counter, modulus_uj, shift_uj: 0, energy_uj, fault: None, log: Log::default() };
        zone.show()?;
        Ok(zone)
    }

    /// Energy used since the start of all counting, never wrapped.
    pub fn advance(&mut self, energy_uj: u64) -> Result<()> {
        if self.fault.is_none() {
            self.energy_uj = energy_uj;
            self.show()?;
        }
        self.note();
        Ok(())
    }

    pub fn fail(&mut self, fault: Fault) -> Result<()> {
        match fault {
            // A reader's open sysfs file fails when its zone goes; an open plain
            // file lives on, so it is emptied, last: nobody meets it half gone.
            Fault::Gone => {
                fs::rename(&self.directory, self.away()).context("taking a zone away")?;
                self.counter.set_len(0)?;
            }
            Fault::Unreadable => {
                fs::create_dir(self.stand_in())?;
                self.exchange_counter()?;
                self.counter.set_len(0)?;
            }
            Fault::Garbage => self.write(&format!("{:>20}", "no figure"))?,
            Fault::Still => {}
        }
        self.fault = Some(fault);
        Ok(())
    }

    /// The last value comes back first; the next step brings the true one.
    pub fn mend(&mut self) -> Result<()> {
        self.show()?;
        self.note();
        match self.fault.take() {
            Some(Fault::Gone) => fs::rename(self.away(), &self.directory).context("bringing a zone back")?,
            Some(Fault::Unreadable) => {
                self.exchange_counter()?;
                fs::remove_dir(self.stand_in())?;
            }
            Some(Fault::Garbage | Fault::Still) | None => {}
        }
        Ok(())
    }

    pub fn jump_back(&mut self, energy_uj: u64) -> Result<()> {
        self.shift_uj = (self.shift_uj + self.modulus_uj - energy_uj % self.modulus_uj) % self.modulus_uj;
        self.show()
    }

    pub fn take_log(&mut self) -> Log {
        std::mem::take(&mut self.log)
    }

    fn note(&mut self) {
        self.log.push(Entry { wall_us: unix_us(), energy_uj: self.energy_uj });
    }

    fn show(&mut self) -> Result<()> {
        self.write(&format!("{:020}", (self.energy_uj + self.shift_uj) % self.modulus_uj))
    }

    /// Writes in place and always with the same width, so that a reader never meets an empty file.
    fn write(&self, text: &str) -> Result<()> {
        self.counter.write_all_at(format!("{text}\n").as_bytes(), 0).context("writing a counter")
    }

    /// Beside the tree's entries, under a name that no zone has.
    fn away(&self) -> PathBuf {
        let name = self.directory.file_name().unwrap_or_default();
        self.directory.with_file_name(format!("away-{}", name.display()))
    }

    fn stand_in(&self) -> PathBuf {
        self.directory.join("stand_in")
    }

    /// Exchanges the counter at once, so that there is always one.
    fn exchange_counter(&self) -> Result<()> {
        let counter = self.directory.join("energy_uj");
        renameat_with(CWD, self.stand_in(), CWD, &counter, RenameFlags::EXCHANGE)
            .with_context(|| format!("replacing {}", counter.display()))
    }
}
