//! Combines several sources into one, without counting a joule twice.
//!
//! Domains are joined into one list. One that an earlier source has too (same name, socket and
//! core, as many of them, and others taken off both or neither) is a check of the earlier. One
//! within a domain that holds the whole machine, or whose extent nobody knows, is a part of that
//! domain. Any other overlap (a model of the processor beside its counters) has no meaning.

use joular_data::model::{
    domain::{Domain, FaultCause, Reading, Role},
    units::MonotonicNs,
};

use super::EnergySource;

/// Sources that are read together.
pub struct CombinedSource {
    name: String,
    domains: Vec<Domain>,
    members: Vec<Member>,
}

struct Member {
    source: Box<dyn EnergySource>,
    /// Which of its domains are used, ascending.
    used: Vec<usize>,
}

/// Which domains of another source to add.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// All of them; otherwise the two cannot be combined.
    All,
    /// Those that measure what no source here measures yet.
    New,
    /// Packages that are measured here already, to compare.
    Checks,
}

/// Two domains that share energy which cannot be told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    pub domain: String,
    pub earlier: String,
    pub earlier_source: String,
}

/// The relation of a domain to those of earlier sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    New,
    Same(usize),
    Within(usize),
    Overlapping(usize),
}

/// The part of a machine that a name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Realm {
    Processor,
    Memory,
    /// A GPU, the network or the disks: different names are different devices.
    Device,
    /// The machine, or an unknown part of it.
    Everything,
}

impl Realm {
    fn of(domain: &Domain) -> Self {
        match domain.name.as_str() {
            "package" | "core" | "uncore" | "cpu" | "io" => Self::Processor,
            "dram" => Self::Memory,
            "network" | "disk" => Self::Device,
            name if name.starts_with("gpu") => Self::Device,
            _ => Self::Everything,
        }
    }
}

impl CombinedSource {
    pub fn of(source: Box<dyn EnergySource>) -> Self {
        let domains = source.domains().to_vec();
        Self {
            name: source.name().to_owned(),
            members: vec![Member { source, used: (0..domains.len()).collect() }],
            domains,
        }
    }

    /// Adds domains of another source and returns how many; if none, the source is dropped.
    ///
    /// # Errors
    /// With [`Take::All`], if two domains share energy in part.
    pub fn add(&mut self, source: Box<dyn EnergySource>, take: Take) -> Result<usize, Overlap> {
        let theirs = source.domains();
        let relations: Vec<Relation> = (0..theirs.len()).map(|index| self.relation(theirs, index)).collect();
        let overlapping = relations.iter().zip(theirs).find_map(|(relation, domain)| match relation {
            Relation::Overlapping(earlier) => Some((domain, self.domains.get(*earlier)?)),
            _ => None,
        });
        if let Some((domain, earlier)) = overlapping.filter(|_| take == Take::All) {
            let (domain, earlier_source) = (domain.name.clone(), earlier.source.clone());
            return Err(Overlap { domain, earlier: earlier.name.clone(), earlier_source });
        }
        let used = self.used(theirs, &relations, take);
        let added = self.adopted(theirs, &relations, &used);
        if !used.is_empty() {
            self.name = format!("{},{}", self.name, source.name());
            self.domains.extend(added);
            self.members.push(Member { source, used: used.clone() });
        }
        Ok(used.len())
    }

    /// One source, which is itself if nothing was added.
    pub fn into_source(mut self) -> Box<dyn EnergySource> {
        match self.members.pop() {
            Some(only) if self.members.is_empty() => only.source,
            last => {
                self.members.extend(last);
                Box::new(self)
            }
        }
    }

    fn relation(&self, theirs: &[Domain], index: usize) -> Relation {
        let Some(domain) = theirs.get(index).filter(|domain| is_counted(domain)) else { return Relation::New };
        let counted = || self.domains.iter().enumerate().filter(|(_, earlier)| is_counted(earlier));
        // A device that is a part of the machine here may be by itself there.
        let ours = alike(&self.domains, domain);
        if let Some(first) = ours.first() {
            // Dies of a package are told apart by their order only, and not at
            // all from a package of which both are the halves.
            let theirs = alike(theirs, domain);
            let twin = theirs.iter().zip(&ours).find(|(own, _)| **own == index).map(|(_, twin)| *twin);
            let is_whole = |other: usize| self.domains.get(other).is_some_and(|other| other.less.is_empty());
            return match twin.filter(|twin| ours.len() == theirs.len() && is_whole(*twin) == domain.less.is_empty()) {
                Some(twin) => Relation::Same(twin),
                None => Relation::Overlapping(*first),
            };
        }
        let realm = Realm::of(domain);
        let is_near =
            |earlier: &Domain| earlier.socket.is_none() || domain.socket.is_none() || earlier.socket == domain.socket;
        let overlaps = |earlier: &Domain| match (Realm::of(earlier), realm) {
            (_, Realm::Everything) => true,
            (Realm::Device, _) | (_, Realm::Device) => false,
            (theirs, own) => theirs == own && is_near(earlier),
        };
        if let Some((earlier, _)) = counted().find(|(_, earlier)| overlaps(earlier)) {
            return Relation::Overlapping(earlier);
        }
        counted()
            .find(|(_, earlier)| Realm::of(earlier) == Realm::Everything && is_near(earlier))
            .map_or(Relation::New, |(earlier, _)| Relation::Within(earlier))
    }

    /// Which of their domains to use.
    fn used(&self, theirs: &[Domain], relations: &[Relation], take: Take) -> Vec<usize> {
        let is_wanted = |domain: &Domain, relation: Relation| match (take, relation) {
            (Take::All, _) => true,
            (Take::New, Relation::New | Relation::Within(_)) => true,
            (Take::Checks, Relation::Same(_)) => domain.name == "package" && domain.less.is_empty(),
            _ => false,
        };
        let wanted = |index: usize| match (theirs.get(index), relations.get(index)) {
            (Some(domain), Some(relation)) => is_wanted(domain, *relation),
            _ => false,
        };
        // What refers to a domain that is not used means nothing without it.
        let kept = |index: &usize| {
            wanted(*index) && theirs.get(*index).is_some_and(|domain| domain.less.iter().all(|part| wanted(*part)))
        };
        let refers = |index: &usize| theirs.get(*index).and_then(|domain| domain_of(domain.role));
        (0..theirs.len()).filter(|index| kept(index) && refers(index).is_none_or(|of| kept(&of))).collect()
    }

    /// Their used domains with the roles and indices that they have here.
    fn adopted(&self, theirs: &[Domain], relations: &[Relation], used: &[usize]) -> Vec<Domain> {
        let here = |index: &usize| used.binary_search(index).ok().map(|position| self.domains.len() + position);
        let adopt = |index: &usize| {
            let mut domain = theirs.get(*index)?.clone();
            domain.less = domain.less.iter().filter_map(here).collect();
            domain.role = match (relations.get(*index)?, domain.role) {
                (Relation::Same(of), _) => Role::Check { of: *of },
                (Relation::Within(of), _) => Role::Part { of: *of },
                (_, Role::Part { of }) => Role::Part { of: here(&of)? },
                (_, Role::Check { of }) => Role::Check { of: here(&of)? },
                (_, role) => role,
            };
            Some(domain)
        };
        used.iter().filter_map(adopt).collect()
    }
}

/// Which of these domains have the name and the place of this one. A check does not count: it is
/// the same energy again.
fn alike(domains: &[Domain], domain: &Domain) -> Vec<usize> {
    let key = |domain: &Domain| (domain.name.clone(), domain.socket, domain.core);
    let is_alike = |other: &Domain| !matches!(other.role, Role::Check { .. }) && key(other) == key(domain);
    domains.iter().enumerate().filter(|(_, other)| is_alike(other)).map(|(index, _)| index).collect()
}

const fn is_counted(domain: &Domain) -> bool {
    matches!(domain.role, Role::Shared | Role::Unshared)
}

const fn domain_of(role: Role) -> Option<usize> {
    match role {
        Role::Part { of } | Role::Check { of } => Some(of),
        Role::Shared | Role::Unshared => None,
    }
}

/// Exchanges the readings of domains that are used for those of the same domains among all.
fn exchange(all: &mut [Reading], used: &[usize], readings: &mut [Reading]) {
    for (index, reading) in used.iter().zip(readings) {
        if let Some(other) = all.get_mut(*index) {
            std::mem::swap(other, reading);
        }
    }
}

impl EnergySource for CombinedSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn domains(&self) -> &[Domain] {
        &self.domains
    }

    fn read(&mut self) -> Vec<Reading> {
        let mut all = Vec::with_capacity(self.domains.len());
        for Member { source, used } in &mut self.members {
            let readings = source.read();
            all.extend(used.iter().map(|index| {
                let missing = || Reading::failed(FaultCause::Malformed, "the source gave no reading");
                readings.get(*index).cloned().unwrap_or_else(missing)
            }));
        }
        all
    }

    fn complete(&mut self, read_at: MonotonicNs, readings: &mut [Reading]) -> bool {
        let (mut are_complete, mut rest) = (true, readings);
        for Member { source, used } in &mut self.members {
            let Some((theirs, others)) = rest.split_at_mut_checked(used.len()) else { return true };
            // A source knows its own domains only, whether they are used or not.
            let mut all = vec![Reading::Modelled; source.domains().len()];
            exchange(&mut all, used, theirs);
            are_complete &= source.complete(read_at, &mut all);
            exchange(&mut all, used, theirs);
            rest = others;
        }
        are_complete
    }

    fn boundary_near(&self, wanted: MonotonicNs, within_ns: u64) -> MonotonicNs {
        let near = self.members.iter().map(|member| member.source.boundary_near(wanted, within_ns));
        near.into_iter().find(|boundary| *boundary != wanted).unwrap_or(wanted)
    }

    fn totals_uj(&mut self) -> Vec<Option<u64>> {
        let of_member = |Member { source, used }: &mut Member| {
            let totals = source.totals_uj();
            used.iter().map(|index| totals.get(*index).copied().flatten()).collect::<Vec<_>>()
        };
        self.members.iter_mut().flat_map(of_member).collect()
    }
}

#[cfg(test)]
#[path = "combined_tests.rs"]
mod tests;
