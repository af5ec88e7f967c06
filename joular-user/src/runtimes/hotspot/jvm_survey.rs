//! Lists all that lives in a JVM, for tests that ask for each.

use joular_data::model::units::Address;
use joular_ebpf::{abi::walk_end, walk::identity::hash_words};

use super::{ArrivedStack, Blob, FrameWord, Jvm, MethodIdentity, Nmethod, Pages, Remote};
use crate::runtimes::hotspot::{code_cache::blob_name, pinned::method_of};

impl Jvm {
    pub fn all_compiled(&self) -> Vec<Blob> {
        let mut blobs = Vec::new();
        let pages = Pages::new(&*self.memory);
        self.cache.walk(&pages, &self.build.layout, |blob| {
            if blob_name(&pages, &blob).is_some_and(|name| name.ends_with("nmethod")) {
                blobs.push(blob);
            }
            true
        });
        blobs
    }

    fn all_nmethods(&self) -> Vec<Nmethod> {
        let pages = Pages::new(&*self.memory);
        self.all_compiled()
            .into_iter()
            .filter_map(|blob| Nmethod::read(&pages, &self.build.layout, blob).ok())
            .collect()
    }

    pub fn all_debug_information(&self) -> Vec<(u64, u64)> {
        self.all_nmethods().iter().flat_map(Nmethod::debug_information).collect()
    }

    /// Compile id and address of every place that compilers have described.
    pub fn all_described(&self) -> Vec<(u32, u64)> {
        let pages = Pages::new(&*self.memory);
        let mut places = Vec::new();
        for nmethod in self.all_nmethods() {
            let described = nmethod.described(&pages, &self.build.layout);
            places.extend(described.into_iter().map(|pc| (nmethod.compile_id, pc)));
        }
        places
    }

    /// A word for the method at an address, as of a stack that has just arrived.
    pub fn pinned(&mut self, word: FrameWord) -> FrameWord {
        let (generation, end) = (0, walk_end::ROOT);
        let identity = self.identity(method_of(word).unwrap_or_default());
        let id = hash_words(generation, std::iter::once((word, Some(identity))), end);
        let mut words = [Address(word.0)];
        self.pin([ArrivedStack { id, generation, end, words: &mut words }]);
        FrameWord(words[0].0)
    }

    pub fn identity(&self, method: u64) -> MethodIdentity {
        MethodIdentity::read(&Remote(&*self.memory), &self.unwind, method)
    }

    /// `Method*`s that have code.
    pub fn all_methods(&self) -> Vec<u64> {
        self.all_nmethods().iter().map(|nmethod| nmethod.method).collect()
    }
}
