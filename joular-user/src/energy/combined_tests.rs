use joular_data::model::domain::{Label, Meter};

use super::*;

/// A source whose k-th domain reads k µJ.
struct Numbered(Vec<Domain>);

impl EnergySource for Numbered {
    fn name(&self) -> &str {
        "numbered"
    }

    fn domains(&self) -> &[Domain] {
        &self.0
    }

    fn read(&mut self) -> Vec<Reading> {
        (0..self.0.len() as u64).map(Reading::CounterUj).collect()
    }

    fn totals_uj(&mut self) -> Vec<Option<u64>> {
        (0..self.0.len() as u64).map(Some).collect()
    }
}

/// Name, socket, role and what is taken off.
type Given<'a> = (&'a str, Option<u32>, Role, &'a [usize]);

fn source(domains: &[Given<'_>]) -> Box<dyn EnergySource> {
    let meter = Meter::Counter { range_uj: 0, unit_uj: 1, max_watts: 1 };
    let domain = |(name, socket, role, less): &Given<'_>| Domain {
        role: *role,
        less: less.to_vec(),
        ..Domain::new(name, *socket, "numbered", Label::Measured, meter)
    };
    Box::new(Numbered(domains.iter().map(domain).collect()))
}

const fn shared<'a>(name: &'a str, socket: Option<u32>) -> Given<'a> {
    (name, socket, Role::Shared, &[])
}

fn seen(source: &dyn EnergySource) -> Vec<Given<'_>> {
    source.domains().iter().map(|domain| (&*domain.name, domain.socket, domain.role, &domain.less[..])).collect()
}

/// What `second` becomes behind `first`.
#[track_caller]
fn check(first: &[Given<'_>], second: &[Given<'_>], take: Take, expected: Option<&[Given<'_>]>) {
    let mut combined = CombinedSource::of(source(first));
    let added = combined.add(source(second), take);
    let domains = seen(&combined);
    match expected {
        None => assert!(added.is_err(), "{domains:?}"),
        Some(expected) => {
            assert_eq!(&domains[first.len()..], expected);
            assert_eq!(added, Ok(expected.len()));
        }
    }
}

#[test]
fn a_source_that_is_alone_stays_itself() {
    let mut combined = CombinedSource::of(source(&[shared("package", Some(0))]));
    assert_eq!(combined.add(source(&[shared("package", Some(0))]), Take::New), Ok(0));
    assert_eq!(combined.into_source().name(), "numbered");
}

#[test]
fn readings_follow_their_domains() {
    let mut combined = CombinedSource::of(source(&[shared("package", Some(0))]));
    let second =
        source(&[shared("package", Some(0)), ("gpu0", None, Role::Unshared, &[]), ("gpu1", None, Role::Unshared, &[])]);
    assert_eq!(combined.add(second, Take::New), Ok(2));
    let mut source = combined.into_source();
    assert_eq!(source.name(), "numbered,numbered");
    assert_eq!(source.read(), [0, 1, 2].map(Reading::CounterUj));
    assert_eq!(source.totals_uj(), [0, 1, 2].map(Some));
}

#[test]
fn the_same_domain_is_a_check_and_indices_move() {
    let packages = [shared("package", Some(0)), shared("package", Some(1))];
    let second = [
        shared("package", Some(1)),
        ("core", Some(1), Role::Part { of: 0 }, &[]),
        shared("package", Some(0)),
        ("platform", None, Role::Unshared, &[0, 2]),
    ];
    // The platform holds the packages that are counted already.
    check(&packages, &second, Take::All, None);
    let platform: Given<'_> = ("platform", None, Role::Unshared, &[0, 1]);
    let expected: [Given<'_>; 4] = [
        ("package", Some(1), Role::Check { of: 1 }, &[]),
        ("core", Some(1), Role::Part { of: 3 }, &[]),
        ("package", Some(0), Role::Check { of: 0 }, &[]),
        ("platform", None, Role::Check { of: 2 }, &[3, 5]),
    ];
    check(&[packages[0], packages[1], platform], &second, Take::All, Some(&expected));
}

#[test]
fn dies_are_checked_in_their_order() {
    let dies = [shared("package", Some(0)), shared("package", Some(0))];
    let expected: [Given<'_>; 2] =
        [("package", Some(0), Role::Check { of: 0 }, &[]), ("package", Some(0), Role::Check { of: 1 }, &[])];
    check(&dies, &dies, Take::Checks, Some(&expected));
    // One of them with both would compare a die with a package.
    check(&dies, &dies[..1], Take::Checks, Some(&[]));
}

#[test]
fn only_packages_are_checks() {
    let all = [shared("package", Some(0)), shared("dram", Some(0)), ("core", Some(0), Role::Part { of: 0 }, &[])];
    check(&all, &all, Take::Checks, Some(&[("package", Some(0), Role::Check { of: 0 }, &[])]));
}

#[test]
fn partial_overlaps_cannot_be_combined() {
    let per_core = [shared("core", Some(0)), ("uncore", Some(0), Role::Shared, &[0])];
    for (first, second) in [
        (&per_core[..], &[shared("package", Some(0))][..]),
        (&[shared("package", Some(1))], &[shared("cpu", None)]),
        (&[shared("package", Some(1))], &[shared("machine", None)]),
        (&[shared("platform", None)], &[shared("machine", None)]),
    ] {
        check(first, second, Take::All, None);
        check(first, second, Take::New, Some(&[]));
        check(first, second, Take::Checks, Some(&[]));
    }
}

#[test]
fn what_the_machine_holds_is_a_part_of_it() {
    let gpu: Given<'_> = ("gpu0", None, Role::Unshared, &[]);
    for whole in ["machine", "platform", "a_rail_of_unknown_extent"] {
        check(&[shared(whole, None)], &[gpu], Take::New, Some(&[("gpu0", None, Role::Part { of: 0 }, &[])]));
    }
    check(&[shared("cpu", None)], &[gpu], Take::New, Some(&[gpu]));
    check(&[gpu], &[("gpu1", None, Role::Unshared, &[])], Take::All, Some(&[("gpu1", None, Role::Unshared, &[])]));
}

#[test]
fn platforms_of_unequal_extent_are_not_compared() {
    let package = shared("package", Some(0));
    let alone = shared("platform", None);
    let rest: Given<'_> = ("platform", None, Role::Unshared, &[0]);
    let check_of = |of| ("platform", None, Role::Check { of }, &[][..]);
    for (first, second, expected) in [
        (&[alone][..], &[alone][..], Some(&[check_of(0)][..])),
        (&[package, rest], &[alone], None),
        (&[alone], &[package, rest], None),
        (
            &[package, rest],
            &[package, rest],
            Some(&[("package", Some(0), Role::Check { of: 0 }, &[]), ("platform", None, Role::Check { of: 1 }, &[2])]),
        ),
    ] {
        check(first, second, Take::All, expected);
    }
}

#[test]
fn domains_of_which_one_source_has_more_are_not_compared() {
    let (package, die) = (shared("package", Some(0)), shared("package", Some(0)));
    for (first, second) in [(&[package][..], &[die, die][..]), (&[die, die], &[package]), (&[die, die], &[die; 3])] {
        check(first, second, Take::All, None);
        check(first, second, Take::Checks, Some(&[]));
    }
}

#[test]
fn parts_of_equal_names_are_one_energy() {
    let gpu: Given<'_> = ("gpu0", None, Role::Unshared, &[]);
    let part: Given<'_> = ("gpu0", None, Role::Part { of: 0 }, &[]);
    let platform = shared("platform", None);
    // The platform's own part, found once more by itself.
    check(&[platform, part], &[gpu], Take::New, Some(&[]));
    check(&[platform, part], &[gpu], Take::All, Some(&[("gpu0", None, Role::Check { of: 1 }, &[])]));
    // Parts of the second's own domains follow these.
    let core: Given<'_> = ("core", Some(0), Role::Part { of: 0 }, &[]);
    let package = shared("package", Some(0));
    check(
        &[package, core],
        &[package, core],
        Take::All,
        Some(&[("package", Some(0), Role::Check { of: 0 }, &[]), ("core", Some(0), Role::Part { of: 2 }, &[])]),
    );
}

#[test]
fn sockets_that_differ_do_not_overlap() {
    let second = [shared("package", Some(1))];
    check(&[shared("package", Some(0))], &second, Take::All, Some(&second));
}

/// A source whose last domain is known when it is asked for the second time, and whose windows are someone else's.
struct Late(Vec<Domain>, bool);

impl EnergySource for Late {
    fn name(&self) -> &str {
        "late"
    }

    fn domains(&self) -> &[Domain] {
        &self.0
    }

    fn read(&mut self) -> Vec<Reading> {
        vec![Reading::CounterUj(7); self.0.len()]
    }

    fn complete(&mut self, read_at: MonotonicNs, readings: &mut [Reading]) -> bool {
        readings[self.0.len() - 1] = Reading::CounterUj(read_at.0);
        std::mem::replace(&mut self.1, true)
    }

    fn boundary_near(&self, wanted: MonotonicNs, within_ns: u64) -> MonotonicNs {
        MonotonicNs(wanted.0 + within_ns)
    }
}

#[test]
fn readings_are_complete_when_those_of_every_source_are() {
    let gpu: Given<'_> = ("gpu0", None, Role::Unshared, &[]);
    let mut combined = CombinedSource::of(source(&[shared("package", Some(0))]));
    // The package is not used a second time.
    let late = source(&[shared("package", Some(0)), gpu]).domains().to_vec();
    assert_eq!(combined.add(Box::new(Late(late, false)), Take::New), Ok(1));
    assert_eq!(combined.add(source(&[("gpu1", None, Role::Unshared, &[])]), Take::New), Ok(1));
    let mut readings = combined.read();
    assert_eq!(readings, [0, 7, 0].map(Reading::CounterUj));
    assert_eq!([(); 2].map(|()| combined.complete(MonotonicNs(99), &mut readings)), [false, true]);
    assert_eq!(readings, [0, 99, 0].map(Reading::CounterUj));
    assert_eq!(combined.boundary_near(MonotonicNs(5), 10), MonotonicNs(15));
}
