//! Walks of stacks through a JVM whose memory and registers are anything.

use joular_data::model::quality::WalkEnd;
use joular_ebpf::abi::MAX_USER_FRAMES;
use joular_user::runtimes::hotspot::{image::JvmImage, jvm::Jvm};

use crate::patches::Patches;

/// A JVM belongs to one thread, and so does the fuzzer.
type Target = (JvmImage, Jvm, Patches);

thread_local! {
    static TARGETS: [Target; 3] = {
        let files: [&[u8]; 3] = [
            include_bytes!("../../tests/fixtures/jvm_images/11.jimg"),
            include_bytes!("../../tests/fixtures/jvm_images/25.jimg"),
            include_bytes!("../../tests/fixtures/jvm_images/aarch64-21.jimg"),
        ];
        files.map(|bytes| {
            let image = JvmImage::decode(bytes).expect("the fixture");
            let jvm = image.attach().expect("the fixture's JVM");
            let patches = Patches::of(&image.memory);
            (image, jvm, patches)
        })
    };
}

pub fn run(input: &[u8]) {
    TARGETS.with(|targets| walk(input, targets));
}

fn walk(input: &[u8], targets: &[Target; 3]) {
    let Some(([which, mask, rest_of_pc @ ..], rest)) = input.split_first_chunk::<10>() else { return };
    let (image, jvm, patches) = &targets[usize::from(which % 3)];
    let memory = patches.apply(rest);
    let value = u64::from_le_bytes(*rest_of_pc);
    for thread in image.threads.iter().skip(usize::from(which / 3) % image.threads.len()).take(3) {
        let mut thread = thread.clone();
        for (index, register) in thread.registers.iter_mut().enumerate() {
            if mask >> index & 1 == 1 {
                *register = register.wrapping_add(value >> (index * 8));
            }
        }
        if mask >> 6 & 1 == 1 {
            let heaps = jvm.unwind_info().code_heaps;
            let code = heaps[value as usize % 2].memory;
            thread.registers[0] = code.start + value % (code.end - code.start).max(1);
        }
        let stack = image.walk(&memory, jvm, &thread);
        assert!(stack.words.len() <= MAX_USER_FRAMES);
        assert_ne!(stack.quality.end, WalkEnd::Budget, "each step adds a frame, or is the last");
    }
}
