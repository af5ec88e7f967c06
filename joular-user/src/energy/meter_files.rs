//! Reads domains that are one sysfs file each: a running total in µJ or a power in µW. The sources
//! that find such files share it.

use std::path::PathBuf;

use joular_data::model::domain::{Domain, FaultCause, Meter, ReadFault, Reading, Role};

use super::{EnergySource, Unusable, UnusableKind, powercap::counter_file::CounterFile, watts::MOST_POWER_UW};

/// A source of such domains.
#[derive(Debug)]
pub struct MeterFiles {
    name: &'static str,
    domains: Vec<Domain>,
    files: Vec<CounterFile>,
}

impl MeterFiles {
    /// Reads each file once. A file that cannot be read while others can is no
    /// error: its failures are reported window by window, and it may come back.
    /// Nor are devices that refuse, all of them asleep.
    ///
    /// # Errors
    /// If no file can be read, or one of a shared domain may not be: then it is
    /// a matter of privileges, and processes would go without their energy.
    pub fn open(name: &'static str, meters: Vec<(Domain, PathBuf)>) -> Result<Self, Unusable> {
        let (domains, paths): (Vec<_>, Vec<_>) = meters.into_iter().unzip();
        let mut source = Self { name, domains, files: paths.into_iter().map(CounterFile::new).collect() };
        let readings = source.read();
        match refusal(&source.domains, &readings) {
            Some(fault) if fault.cause == FaultCause::Denied => {
                Err(Unusable::new(UnusableKind::Denied, fault.text.clone()))
            }
            Some(fault) => Err(Unusable::new(UnusableKind::Broken, fault.text.clone())),
            None => Ok(source),
        }
    }

    /// Names of the domains, for people.
    pub fn names(&self) -> String {
        self.domains.iter().map(|domain| domain.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

impl EnergySource for MeterFiles {
    fn name(&self) -> &'static str {
        self.name
    }

    fn domains(&self) -> &[Domain] {
        &self.domains
    }

    fn read(&mut self) -> Vec<Reading> {
        self.files.iter_mut().zip(&self.domains).map(|(file, domain)| read(file, domain.meter)).collect()
    }

    fn totals_uj(&mut self) -> Vec<Option<u64>> {
        let total = |(file, domain): (&mut CounterFile, &Domain)| match domain.meter {
            Meter::Counter { .. } => file.read().ok(),
            _ => None,
        };
        self.files.iter_mut().zip(&self.domains).map(total).collect()
    }
}

/// The fault that makes these first readings unusable as a source, if there is one.
fn refusal<'a>(domains: &[Domain], readings: &'a [Reading]) -> Option<&'a ReadFault> {
    let fault = |reading: &'a Reading| match reading {
        Reading::Failed(fault) => Some(fault),
        _ => None,
    };
    let shared = domains.iter().zip(readings).filter(|(domain, _)| domain.role == Role::Shared);
    let denied = shared.filter_map(|(_, reading)| fault(reading)).find(|fault| fault.cause == FaultCause::Denied);
    let is_device = |domain: &Domain| domain.role != Role::Shared;
    let is_asleep = |reading| fault(reading).is_some_and(|fault| fault.cause == FaultCause::Denied);
    let may_wake = domains.iter().all(is_device) && readings.iter().any(is_asleep);
    let is_hopeless = !may_wake && readings.iter().all(|reading| fault(reading).is_some());
    denied.or_else(|| readings.iter().find_map(fault).filter(|_| is_hopeless))
}

fn read(file: &mut CounterFile, meter: Meter) -> Reading {
    match file.read() {
        Ok(value) if matches!(meter, Meter::Counter { .. }) => Reading::CounterUj(value),
        Ok(value) if value <= MOST_POWER_UW => Reading::PowerUw(value),
        Ok(value) => {
            let text =
                format!("reading the power in {file}: {value} µW is more than any machine draws: the value is ignored");
            Reading::failed(FaultCause::Malformed, text)
        }
        Err(failure) => Reading::failed(FaultCause::of(&failure.cause), failure.to_string()),
    }
}

/// Trees of such files, for the tests of sources that find them.
#[cfg(test)]
pub mod fake {
    use std::{
        fs,
        path::{Path, PathBuf},
    };

    pub struct FakeTree(tempfile::TempDir);

    impl FakeTree {
        /// A tree with these files, written `path=text`.
        pub fn new(files: &[&str]) -> Self {
            let tree = Self(tempfile::tempdir().unwrap());
            files.iter().for_each(|file| {
                let (path, text) = file.split_once('=').unwrap();
                tree.set(path, text);
            });
            tree
        }

        pub fn root(&self) -> &Path {
            self.0.path()
        }

        pub fn path(&self, path: &str) -> PathBuf {
            self.root().join(path)
        }

        pub fn set(&self, path: &str, text: &str) {
            let path = self.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("{text}\n")).unwrap();
        }

        /// An open sysfs file fails once its device is gone; an open plain file
        /// lives on, so it is emptied first.
        pub fn remove(&self, path: &str) {
            self.set(path, "");
            fs::remove_file(self.path(path)).unwrap();
        }

        /// Reading a directory fails (EISDIR), as a broken meter does (EIO).
        pub fn break_file(&self, path: &str) {
            self.remove(path);
            fs::create_dir(self.path(path)).unwrap();
        }
    }
}

#[cfg(test)]
mod tests {
    use joular_data::model::domain::Label;

    use super::{fake::FakeTree, *};

    fn source(tree: &FakeTree) -> Result<MeterFiles, Unusable> {
        let counter = Meter::Counter { range_uj: 0, unit_uj: 1, max_watts: 1000 };
        let domain = |name, meter| Domain::new(name, None, "test", Label::Measured, meter);
        let meters = vec![(domain("a", counter), tree.path("energy")), (domain("b", Meter::Power), tree.path("power"))];
        MeterFiles::open("test", meters)
    }

    #[test]
    fn faults_are_readings_and_pass() {
        let tree = FakeTree::new(&["energy=5", "power=7"]);
        let mut source = source(&tree).unwrap();
        assert_eq!(source.totals_uj(), [Some(5), None], "a power is not watched");
        let cause = |reading: &Reading| match reading {
            Reading::Failed(fault) => Some(fault.cause),
            _ => None,
        };
        for (fault, expected) in [
            (FakeTree::remove as fn(&FakeTree, &str), FaultCause::Gone),
            (FakeTree::break_file, FaultCause::Unreadable),
            (|tree, path| tree.set(path, "watts"), FaultCause::Malformed),
            (|tree, path| tree.set(path, "-1"), FaultCause::Malformed),
            (|tree, path| tree.set(path, "100000000001"), FaultCause::Malformed),
            (|tree, path| tree.set(path, "18446744073709551616"), FaultCause::Malformed),
        ] {
            assert_eq!(source.read(), [Reading::CounterUj(5), Reading::PowerUw(7)], "before {expected:?}");
            fault(&tree, "power");
            let readings = source.read();
            assert_eq!((&readings[0], cause(&readings[1])), (&Reading::CounterUj(5), Some(expected)));
            let _ = std::fs::remove_dir(tree.path("power"));
            tree.set("power", "7");
        }
    }

    #[test]
    fn what_may_not_be_read_is_refused_where_processes_would_go_without() {
        let good = || Reading::PowerUw(1);
        let failed = |cause| Reading::failed(cause, "why");
        for (roles, readings, expected) in [
            ([Role::Shared, Role::Unshared], [good(), good()], None),
            ([Role::Shared, Role::Shared], [good(), failed(FaultCause::Denied)], Some(FaultCause::Denied)),
            ([Role::Shared, Role::Unshared], [good(), failed(FaultCause::Denied)], None),
            ([Role::Shared, Role::Shared], [good(), failed(FaultCause::Unreadable)], None),
            (
                [Role::Shared, Role::Unshared],
                [failed(FaultCause::Gone), failed(FaultCause::Unreadable)],
                Some(FaultCause::Gone),
            ),
            ([Role::Unshared; 2], [failed(FaultCause::Denied), failed(FaultCause::Denied)], None),
            ([Role::Unshared; 2], [failed(FaultCause::Denied), failed(FaultCause::Gone)], None),
            ([Role::Unshared; 2], [failed(FaultCause::Gone), failed(FaultCause::Gone)], Some(FaultCause::Gone)),
            (
                [Role::Shared, Role::Part { of: 0 }],
                [failed(FaultCause::Unreadable), failed(FaultCause::Denied)],
                Some(FaultCause::Unreadable),
            ),
            ([Role::Shared, Role::Part { of: 0 }], [good(), failed(FaultCause::Denied)], None),
        ] {
            let domain = |role| Domain { role, ..Domain::new("x", None, "test", Label::Reported, Meter::Power) };
            let found = refusal(&roles.map(domain), &readings).map(|fault| fault.cause);
            assert_eq!(found, expected, "{roles:?} {readings:?}");
        }
    }

    #[test]
    fn one_readable_file_is_enough_and_none_is_not() {
        let tree = FakeTree::new(&["energy=5", "power=7"]);
        tree.remove("power");
        assert!(source(&tree).is_ok());
        tree.break_file("energy");
        let refused = source(&tree).unwrap_err();
        assert_eq!(refused.kind, UnusableKind::Broken);
        assert!(refused.text.starts_with("reading "), "{refused}");
    }
}
