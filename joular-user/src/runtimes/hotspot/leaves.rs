//! Names the methods at a place of compiled code where it was interrupted.
//!
//! By default a JVM describes few places, so that the next description is often of another method
//! than the one that ran. What is named is what the [`Places`] around tell for certain, which may
//! be a caller of that method.

use std::{cell::RefCell, collections::HashMap, sync::Arc};

use joular_data::model::frame::FrameKind;

use super::{
    answers::Level,
    code_cache::{CodeCache, blob_name},
    layout::Layout,
    memory::{RemoteMemory, Unreadable},
    method::Method,
    nmethod::{MethodAt, Nmethod},
    places::{Place, Places, Speaks},
    reader::levels,
    recent::{Measured, Recent},
};

use crate::bounds::Bound;

/// Descriptions, loops and chains in one half of what is kept of a JVM: a few megabytes.
const MAX_SIZE: usize = 1 << 17;
/// Descriptions of a loop that are compared.
const MAX_COMPARED: usize = 256;
pub static COMPARED: Bound = Bound::new(
    "loop_places_not_compared",
    MAX_COMPARED as u64,
    "described places of a loop in compiled code",
    "a leaf in a longer loop is named only as far as the places around it agree",
);
/// Its name in JDK 11 to 25.
const TRAP: &str = "UncommonTrapBlob";
/// Frame words have so many bits of a compile id.
const ID_MASK: u32 = (1 << 30) - 1;

/// Whether two compile ids are the same in a frame word.
pub const fn is_same_id(one: u32, other: u32) -> bool {
    (one ^ other) & ID_MASK == 0
}

/// What was read of a compiled method. A compile id is never given again, so this stays true of what has
/// the id, even when that is gone.
#[derive(Debug)]
pub struct Known {
    nmethod: Nmethod,
    places: Places,
    /// The methods of scopes, innermost first.
    chains: HashMap<u32, Vec<MethodAt>>,
    /// [`None`] until its levels were read once.
    kind: Option<FrameKind>,
    methods: HashMap<u64, Arc<Method>>,
}

impl Measured for Known {
    fn size(&self) -> usize {
        1 + self.places.size() + self.chains.values().map(|chain| 1 + chain.len()).sum::<usize>() + self.methods.len()
    }
}

impl Known {
    fn offset(&self, pc: u64) -> u32 {
        u32::try_from(pc.wrapping_sub(self.nmethod.blob.code_begin)).unwrap_or(u32::MAX)
    }
}

/// Compiled methods that were read, by the bits of their compile ids that frame words have.
#[derive(Debug)]
pub struct Leaves(Recent<u32, Known>);

impl Default for Leaves {
    fn default() -> Self {
        Self(Recent::new(MAX_SIZE))
    }
}

impl Leaves {
    /// The levels at an address, outermost first, if nothing has to be read for them.
    pub fn known_levels(&mut self, compile_id: u32, pc: u64) -> Option<Vec<Level>> {
        let known = self.0.get(compile_id & ID_MASK).filter(|known| known.nmethod.blob.contains(pc))?;
        let chain = |scope| known.chains.get(&scope).cloned().ok_or(());
        let places = around(&known.places, known.offset(pc), chain).ok()?;
        levels(&known.nmethod, known.kind?, places, |method| known.methods.get(&method).cloned().ok_or(())).ok()
    }

    /// The methods at an address, innermost first; none if only the compiled method is certain.
    pub fn methods_at(
        &mut self,
        memory: &dyn RemoteMemory,
        layout: &Layout,
        cache: &CodeCache,
        nmethod: &Nmethod,
        pc: u64,
    ) -> Result<Vec<MethodAt>, Unreadable> {
        let mut known = match self.forget(nmethod.compile_id).filter(|known| known.nmethod == *nmethod) {
            Some(known) => known,
            None => {
                let (mut callees, mut failed) = (HashMap::new(), None);
                let descriptors = nmethod.descriptors(memory, layout)?;
                let places = nmethod.places(memory, layout, &descriptors, |callee| {
                    *callees.entry(callee).or_insert_with(|| {
                        let is_trap = is_trap(memory, layout, cache, callee);
                        is_trap.map_err(|error| failed = Some(error)).unwrap_or_default()
                    })
                })?;
                if let Some(failed) = failed {
                    return Err(failed);
                }
                Known { nmethod: *nmethod, places, chains: HashMap::new(), kind: None, methods: HashMap::new() }
            }
        };
        let chains = RefCell::new(std::mem::take(&mut known.chains));
        let chain = |scope| {
            if let Some(read) = chains.borrow().get(&scope) {
                return Ok(read.clone());
            }
            let read = nmethod.chain(memory, layout, scope)?;
            chains.borrow_mut().insert(scope, read.clone());
            Ok(read)
        };
        let methods = around(&known.places, known.offset(pc), chain);
        known.chains = chains.into_inner();
        self.insert(known);
        methods
    }

    /// Keeps the names of methods that were read at some address of a compiled method.
    pub fn keep(&mut self, compile_id: u32, kind: FrameKind, methods: impl IntoIterator<Item = (u64, Arc<Method>)>) {
        if let Some(mut known) = self.forget(compile_id) {
            known.kind = Some(kind);
            known.methods.extend(methods);
            self.insert(known);
        }
    }

    /// Forgets a compiled method, such as one that was not what it seemed.
    pub fn forget(&mut self, compile_id: u32) -> Option<Known> {
        self.0.take(compile_id & ID_MASK)
    }

    pub fn end_window(&mut self) {
        self.0.end_window();
    }

    fn insert(&mut self, known: Known) {
        self.0.put(known.nmethod.compile_id & ID_MASK, known);
    }
}

/// Whether an address is where compiled code goes when what it was compiled for turns out wrong.
pub fn is_trap(memory: &dyn RemoteMemory, layout: &Layout, cache: &CodeCache, callee: u64) -> Result<bool, Unreadable> {
    let Some(blob) = cache.find_blob(memory, layout, callee)? else { return Ok(false) };
    let name = blob_name(memory, &blob).ok_or(Unreadable { address: blob.name, length: 1 })?;
    Ok(name == TRAP)
}

/// What the places around an offset tell of it, innermost first; `chain` gives a scope's methods.
pub fn around<E>(
    places: &Places,
    offset: u32,
    chain: impl Fn(u32) -> Result<Vec<MethodAt>, E>,
) -> Result<Vec<MethodAt>, E> {
    let (before, behind) = match places.speaks_for(offset) {
        Speaks::Itself(scope) => return chain(scope),
        Speaks::Between(before, behind) => (before, behind),
    };
    if let Some(same) = agreed(places.in_loop(offset), &chain)? {
        return Ok(same);
    }
    match before.zip(behind) {
        Some((before, behind)) => Ok(common(&chain(before)?, &chain(behind)?)),
        None => Ok(Vec::new()),
    }
}

/// The methods of all these descriptions, if they are the same.
fn agreed<E>(places: &[Place], chain: impl Fn(u32) -> Result<Vec<MethodAt>, E>) -> Result<Option<Vec<MethodAt>>, E> {
    COMPARED.cut(u64::from(places.len() > MAX_COMPARED));
    let Some((first, others)) = places.split_first().filter(|_| places.len() <= MAX_COMPARED) else { return Ok(None) };
    let methods = chain(first.scope)?;
    let mut last = first.scope;
    for place in others {
        if place.scope != last && !is_same(&chain(place.scope)?, &methods) {
            return Ok(None);
        }
        last = place.scope;
    }
    Ok(Some(methods))
}

fn is_same(one: &[MethodAt], other: &[MethodAt]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.method == other.method)
}

/// The callers that two chains share, innermost first, as the second has them.
fn common(before: &[MethodAt], behind: &[MethodAt]) -> Vec<MethodAt> {
    let pairs = before.iter().rev().zip(behind.iter().rev());
    let shared = pairs.take_while(|(before, behind)| before.method == behind.method).count();
    behind.get(behind.len() - shared..).unwrap_or_default().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        arch::X86_64,
        runtimes::hotspot::{code_cache::Blob, machine_code::CodeOf},
    };

    /// `InlinedSplit.outer`, compiled by C2 of JDK 11.0.13: a loop of its own from 80 to 130, and one
    /// of `inlined` from 160 to 211. Each has a poll, which is described, and ends two instructions
    /// behind it.
    const CODE: &str = "4881ec1800000048896c24104c63de49baa82c07f000000000458b92800000004963ca458bc241ffc085f60f8eb50000\
         0049b94f8167f77e7b051448bf2d7f954c2df45158eb0c660f1f8400000000004c8bd84c0fafdf4d8bb7080100004d03\
         d9498bc348c1e81d4933c34c8bd84c23d9418bdb4103da2bf3ffce41850685f67fce85d27e504c63dabb2df304b548bf\
         fdb0b087e62ebb27eb09660f1f4400004c8bde4d8b8f080100004c0fafdf4c03db498bf348c1ee1f4933f34c8bde4c23\
         d9458bdb4503da412bd3ffca41850185d27fcd4803c64883c4105d4d8b9708010000418502c3498bc3eb97";
    const OUTER: u64 = 0x1000;
    const INLINED: u64 = 0x2000;

    fn named(places: &Places, offset: u32) -> Vec<u64> {
        let at = |method| MethodAt { method, bci: 0 };
        let chain = |scope| Ok::<_, ()>(if scope == 1 { vec![at(OUTER)] } else { vec![at(INLINED), at(OUTER)] });
        around(places, offset, chain).unwrap().into_iter().map(|place| place.method).collect()
    }

    fn compiled(blob: Blob, compile_id: u32, method: u64) -> Nmethod {
        let mut nmethod = Nmethod::default();
        (nmethod.blob, nmethod.compile_id, nmethod.method) = (blob, compile_id, method);
        nmethod
    }

    #[test]
    fn code_behind_a_loops_only_description_is_of_that_loop() {
        let bytes: Vec<u8> =
            (0..CODE.len()).step_by(2).map(|at| u8::from_str_radix(&CODE[at..at + 2], 16).unwrap()).collect();
        let descriptors = [Place { at: 123, scope: 1 }, Place { at: 204, scope: 2 }];
        let places = Places::new(&descriptors, &[], CodeOf::<X86_64>::new(&bytes, 0x7f00_0000), |_| false);
        for (offsets, expected) in [(80..130, &[OUTER][..]), (160..211, &[INLINED, OUTER])] {
            assert!(offsets.clone().all(|offset| named(&places, offset) == expected), "{offsets:?}");
        }
        // Between the loops both are in doubt, and their caller is not.
        assert_eq!([named(&places, 130), named(&places, 152)], [[OUTER], [OUTER]]);
        // Before the first and behind the last description only the compiled method is certain.
        assert!(named(&places, 12).is_empty() && named(&places, 214).is_empty());
    }

    #[test]
    fn what_was_read_of_a_method_names_other_places_in_it() {
        let descriptors = [Place { at: 4, scope: 1 }, Place { at: 8, scope: 2 }, Place { at: 12, scope: 3 }];
        let places = Places::new(&descriptors, &[], CodeOf::<X86_64>::new(&[], 0), |_| false);
        let blob = Blob { start: 0x1000, size: 64, code_begin: 0x1010, ..Blob::default() };
        let nmethod = compiled(blob, ID_MASK + 6, OUTER);
        let [outer, inlined] = [OUTER, INLINED].map(|method| MethodAt { method, bci: 0 });
        let chains = HashMap::from([(1, vec![outer]), (2, vec![inlined, outer])]);
        let mut leaves = Leaves::default();
        leaves.insert(Known { nmethod, places, chains, kind: None, methods: HashMap::new() });
        let kinds = |leaves: &mut Leaves, id, pc| {
            let levels = leaves.known_levels(id, pc)?;
            Some(levels.into_iter().map(|level| level.kind).collect::<Vec<_>>())
        };
        assert_eq!(kinds(&mut leaves, 5, 0x1014), None, "its names were not read");
        let method = |address| (address, Arc::new(Method::of_test()));
        leaves.keep(nmethod.compile_id, FrameKind::CompiledC2, [method(OUTER)]);
        assert_eq!(kinds(&mut leaves, 5, 0x1018), None, "one of its methods was not read");
        leaves.keep(nmethod.compile_id, FrameKind::CompiledC2, [method(INLINED)]);
        let c2 = FrameKind::CompiledC2;
        for (offset, expected) in [
            (4, Some(vec![c2])),
            (5, Some(vec![c2])),
            (8, Some(vec![c2, FrameKind::Inlined])),
            // Between this place and the next one, whose scope was not read.
            (9, None),
            (12, None),
        ] {
            assert_eq!(kinds(&mut leaves, 5, 0x1010 + offset), expected, "{offset}");
        }
        assert_eq!(
            (kinds(&mut leaves, 6, 0x1014), kinds(&mut leaves, 5, 0x2014)),
            (None, None),
            "another method's code"
        );
        assert!(leaves.forget(5).is_some() && kinds(&mut leaves, 5, 0x1014).is_none());
    }

    #[test]
    fn a_loop_with_descriptions_of_several_methods_tells_none_of_them() {
        // 0: nop; 1: nop; 2: nop; 3: je 0
        let descriptors = [Place { at: 0, scope: 1 }, Place { at: 2, scope: 2 }];
        let places =
            Places::new(&descriptors, &[], CodeOf::<X86_64>::new(&[0x90, 0x90, 0x90, 0x74, 0xfb], 0), |_| false);
        assert_eq!(named(&places, 1), [OUTER]);
        assert_eq!(named(&places, 2), [INLINED, OUTER], "it is described itself");
    }
}
