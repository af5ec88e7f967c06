//! Reads domains that sysfs files show: a running total in µJ or a power in µW. The sources that find
//! such files share it.

use std::{fmt, io, path::PathBuf};

use joular_data::model::domain::{Domain, FaultCause, Meter, ReadFault, Reading, Role};

use super::{
    EnergySource, Unusable, UnusableKind,
    powercap::counter_file::{CounterFile, ReadFailure},
    watts::MOST_POWER_UW,
};

/// Where a domain's figure is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In one file.
    File(PathBuf),
    /// In several, which are added up.
    Sum(Vec<PathBuf>),
    /// The product of what is in two: mV and mA make µW.
    Product([PathBuf; 2]),
}

impl From<PathBuf> for Place {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

/// The open files of a figure.
#[derive(Debug)]
struct MeterFile {
    files: Vec<CounterFile>,
    is_product: bool,
}

impl MeterFile {
    fn new(place: Place) -> Self {
        let (paths, is_product) = match place {
            Place::File(path) => (vec![path], false),
            Place::Sum(paths) => (paths, false),
            Place::Product(paths) => (paths.into(), true),
        };
        Self { files: paths.into_iter().map(CounterFile::new).collect(), is_product }
    }

    /// # Errors
    /// Of the first file that cannot be read, or `InvalidData` if the figures together are too large.
    fn read(&mut self) -> Result<u64, ReadFailure> {
        let mut together = u64::from(self.is_product);
        for file in &mut self.files {
            let value = file.read()?;
            let both = if self.is_product { together.checked_mul(value) } else { together.checked_add(value) };
            together = both.ok_or_else(|| ReadFailure {
                path: file.to_string().into(),
                cause: io::Error::new(io::ErrorKind::InvalidData, "too large together with others"),
            })?;
        }
        Ok(together)
    }
}

/// Its first path, for messages.
impl fmt::Display for MeterFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.first().map_or(Ok(()), |file| file.fmt(f))
    }
}

/// A source of such domains.
#[derive(Debug)]
pub struct MeterFiles {
    name: &'static str,
    domains: Vec<Domain>,
    files: Vec<MeterFile>,
}

impl MeterFiles {
    /// Reads each figure once. One that cannot be read while others can is no
    /// error: its failures are reported window by window, and it may come back.
    /// Nor are devices that refuse, all of them asleep.
    ///
    /// # Errors
    /// If no figure can be read, or one of a shared domain may not be: then it is
    /// a matter of privileges, and processes would go without their energy.
    pub fn open(name: &'static str, meters: Vec<(Domain, impl Into<Place>)>) -> Result<Self, Unusable> {
        let (domains, places): (Vec<_>, Vec<_>) = meters.into_iter().unzip();
        let files = places.into_iter().map(|place| MeterFile::new(place.into())).collect();
        let mut source = Self { name, domains, files };
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
        let total = |(file, domain): (&mut MeterFile, &Domain)| match domain.meter {
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

fn read(file: &mut MeterFile, meter: Meter) -> Reading {
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
    fn figures_of_several_files_are_one() {
        let tree = FakeTree::new(&["a=5", "b=7", "volts=5000", "amperes=300"]);
        let path = |name| tree.path(name);
        let counter = Meter::Counter { range_uj: 0, unit_uj: 1, max_watts: 1000 };
        let domain = |name, meter| Domain::new(name, None, "test", Label::Reported, meter);
        let meters = vec![
            (domain("sum", counter), Place::Sum(vec![path("a"), path("b")])),
            (domain("product", Meter::Power), Place::Product([path("volts"), path("amperes")])),
        ];
        let mut source = MeterFiles::open("test", meters).unwrap();
        assert_eq!(source.read(), [Reading::CounterUj(12), Reading::PowerUw(1_500_000)]);
        assert_eq!(source.totals_uj(), [Some(12), None]);
        let causes = |source: &mut MeterFiles| -> Vec<Option<FaultCause>> {
            let cause = |reading| if let Reading::Failed(fault) = reading { Some(fault.cause) } else { None };
            source.read().into_iter().map(cause).collect()
        };
        tree.set("b", &u64::MAX.to_string());
        tree.set("amperes", "-3");
        assert_eq!(causes(&mut source), [Some(FaultCause::Malformed); 2]);
        tree.set("b", "1");
        tree.remove("volts");
        assert_eq!(causes(&mut source), [None, Some(FaultCause::Gone)]);
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
