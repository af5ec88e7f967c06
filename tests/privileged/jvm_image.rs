//! Holds a JVM and keeps its image, in an emulated machine (`slow/aarch64_images.rs`).
//!
//! `jvm_image JAVA COLLECTOR FILE` starts `JAVA` with a collector (`G1`) and writes `FILE.jimg`, and all stacks as `FILE.txt`.

mod capture;

use std::{env, fs, path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, bail};
use joular_tests::java::Collector;

/// Emulated, compilers take a minute.
const LIMIT: Duration = Duration::from_secs(400);

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [java, collector, file] = arguments.as_slice() else { bail!("usage: jvm_image JAVA COLLECTOR FILE") };
    let collector: Collector = collector.parse()?;
    let capture = capture::capture(&PathBuf::from(java), collector, LIMIT)?;
    for (extension, bytes) in [("txt", capture.image.text()?.into_bytes()), ("jimg", capture.file()?)] {
        let file = PathBuf::from(file).with_extension(extension);
        fs::write(&file, bytes).with_context(|| format!("writing {}", file.display()))?;
    }
    Ok(())
}
