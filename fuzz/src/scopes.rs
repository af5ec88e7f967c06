//! Frame words of a JVM whose code cache, debug information and methods are not what
//! they were: the words of all its threads, and any others.

use std::sync::{Arc, LazyLock};

use joular_data::model::units::Address;
use joular_ebpf::abi::{FrameWord, StackId, walk_end};
use joular_user::runtimes::hotspot::{JvmBuild, image::JvmImage, jvm::Jvm, pinned::ArrivedStack};

use crate::patches::Patches;

struct Target {
    image: JvmImage,
    build: Arc<JvmBuild>,
    patches: Patches,
    words: Vec<FrameWord>,
}

/// One with debug information inside the code's blob, and one with it apart.
static TARGETS: LazyLock<[Target; 2]> = LazyLock::new(|| {
    let files: [&[u8]; 2] = [
        include_bytes!("../../tests/fixtures/jvm_images/17.jimg"),
        include_bytes!("../../tests/fixtures/jvm_images/25.jimg"),
    ];
    files.map(|bytes| {
        let image = JvmImage::decode(bytes).expect("the fixture");
        let build = Arc::new(image.build().expect("the fixture's layout"));
        let jvm = image.attach().expect("the fixture's JVM");
        let mut words: Vec<FrameWord> =
            image.threads.iter().flat_map(|thread| image.walk(&image.memory, &jvm, thread).words).collect();
        words.sort();
        words.dedup();
        Target { patches: Patches::of(&image.memory), image, build, words }
    })
});

pub fn run(input: &[u8]) {
    let Some((which, rest)) = input.split_first() else { return };
    let target = &TARGETS[usize::from(which % 2)];
    let Some((word, rest)) = rest.split_first_chunk() else { return };
    let memory = target.patches.apply(rest);
    let Ok(mut jvm) = Jvm::attach(Box::new(memory), Arc::clone(&target.build), target.image.bias) else { return };
    target.words.iter().for_each(|word| drop(jvm.resolve_all(&[*word])));
    let word = FrameWord(u64::from_le_bytes(*word));
    assert!(!word.is_of_a_jvm() || !jvm.resolve_all(&[word]).concat().is_empty(), "nothing is left out");
    jvm.resolve_address(word.0);
    let mut words: Vec<Address> = target.words.iter().map(|word| Address(word.0)).collect();
    jvm.pin([ArrivedStack { id: StackId(1), generation: 0, end: walk_end::ROOT, words: &mut words }]);
    jvm.end_window();
}
