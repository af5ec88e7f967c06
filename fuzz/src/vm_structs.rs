//! libjvm's tables → layout → what the kernel side needs, from a JVM that lies.

use std::sync::LazyLock;

use joular_user::runtimes::hotspot::{JvmBuild, image::JvmImage, jvm::Jvm};

use crate::patches::Patches;

static IMAGE: LazyLock<(JvmImage, Patches)> = LazyLock::new(|| {
    let bytes = include_bytes!("../../tests/fixtures/jvm_images/21.jimg");
    let image = JvmImage::decode(bytes).expect("the fixture");
    let patches = Patches::of(&image.memory);
    (image, patches)
});

pub fn run(input: &[u8]) {
    let (image, patches) = &*IMAGE;
    let memory = patches.apply(input);
    if let Ok(build) = JvmBuild::read(&memory, image.libjvm.clone(), image.bias) {
        let _ = Jvm::attach(Box::new(memory), build.into(), image.bias);
    }
}
