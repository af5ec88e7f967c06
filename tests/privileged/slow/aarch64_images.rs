//! Makes images of JVMs on aarch64, in emulated machines: what is held and kept there is what tests of images have. With
//! `UPDATE_FIXTURES=1` all of them are made anew, and kept.

use std::{env, fs, time::Duration};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    java::{self, Collector},
    kernels::{Kernel, print_file, printed},
    machine::AARCH64,
    notes, paths,
};
use joular_user::runtimes::hotspot::image::JvmImage;

/// An emulated machine takes three minutes. It bounds a hang.
const LIMIT: Duration = Duration::from_secs(900);

/// As those of x86-64, but that there is no JVM 11 for Debian's release and none on PyPI.
const RELEASES: [(u32, Collector); 3] = [(17, Collector::Parallel), (21, Collector::G1), (25, Collector::Z)];

/// The stacks as a text, and the image, as the machine says them.
struct Kept {
    text: String,
    image: Vec<u8>,
}

/// The program looks for classes and their sources where it would find them here.
fn hold(kernel: &Kernel, program: &[u8], (release, collector): (u32, Collector)) -> Result<Kept> {
    let (classes, target) = (java::classes()?, paths::target());
    let script = format!(
        "export CARGO_TARGET_DIR={}\n\
         touch {}\n\
         jvm_image /jdk/bin/java {collector} /tmp/image; echo held $?\n\
         {}\n{}",
        target.display(),
        classes.join("compiled").display(),
        print_file("text", "/tmp/image.txt"),
        print_file("image", "/tmp/image.jimg")
    );
    let mut root = AARCH64.root(&script)?;
    root.file("/bin/jvm_image", program);
    AARCH64.put_jvm(&mut root, release)?;
    root.tree(&classes, &classes)?;
    let sources = paths::fixtures().join("java");
    root.tree(&sources, &sources)?;
    // A serial console ends its lines as teletypes do.
    let said = kernel.boot(root, LIMIT)?.stdout.replace('\r', "");
    ensure!(said.contains("held 0\n"), "{said}");
    let one = |name: &str| printed(&said, name)?.pop().with_context(|| format!("no {name}"));
    Ok(Kept { text: String::from_utf8(one("text")?)?, image: one("image")? })
}

#[test]
fn an_image_of_a_jvm_on_aarch64_gives_what_the_jvm_gave() -> Result<()> {
    if let Some(reason) = AARCH64.missing() {
        notes::skipped(reason);
        return Ok(());
    }
    let Some(program) = paths::jvm_image_for_aarch64() else {
        notes::skipped("no program for aarch64 was built (`cargo xtask test --slow` does that)");
        return Ok(());
    };
    let program = fs::read(&program).with_context(|| format!("reading {}", program.display()))?;
    let kernel = AARCH64.kernels().pop().context("a kernel")?;
    let is_kept = env::var_os("UPDATE_FIXTURES").is_some();
    // One of them shows that images can be made.
    let wanted = if is_kept { &RELEASES[..] } else { &RELEASES[2..] };
    for &(release, collector) in wanted {
        let kept = hold(&kernel, &program, (release, collector)).with_context(|| format!("{release} {collector}"))?;
        let walked_here = JvmImage::decode(&kept.image)?.text()?;
        ensure!(walked_here == kept.text, "{walked_here}\nis not what the machine walked:\n{}", kept.text);
        ensure!(kept.text.contains("known.Recursion.descend"), "{}", kept.text);
        println!("{release}: {} bytes", kept.image.len());
        if is_kept {
            let file = paths::fixtures().join("jvm_images").join(format!("aarch64-{release}"));
            fs::write(file.with_extension("jimg"), kept.image)?;
            fs::write(file.with_extension("txt"), kept.text)?;
        }
    }
    Ok(())
}
