//! Tests images of JVMs. The walk of an image gives what the walk of the held JVM gave, and only
//! what the workload's threads can be doing.
//!
//! With `UPDATE_FIXTURES=1` the images are kept, for tests that have no JVM.

use std::{env, fs, time::Duration};

use anyhow::{Context as _, Result};
use joular_tests::{
    java::{Collector, Jdk},
    paths,
};

use crate::capture::capture;

/// Time for each thread to be where its whole path is seen, compiled.
const LIMIT: Duration = Duration::from_secs(90);
/// Collectors differ, so that their threads do.
const RELEASES: [(u32, Collector); 4] =
    [(11, Collector::Serial), (17, Collector::Parallel), (21, Collector::G1), (25, Collector::Z)];

#[test]
fn an_image_gives_what_the_jvm_gave() -> Result<()> {
    let dir = paths::fixtures().join("jvm_images");
    for (release, collector) in RELEASES {
        let jdk = Jdk::pinned()?.find(|jdk| jdk.release == release).context("a pinned JDK")?;
        let capture = capture(&jdk.java, collector, LIMIT)?;
        let file = capture.file().with_context(|| jdk.to_string())?;
        println!("{jdk}: {} threads, {} bytes", capture.image.threads.len(), file.len());
        if env::var_os("UPDATE_FIXTURES").is_some() {
            fs::create_dir_all(&dir)?;
            fs::write(dir.join(format!("{release}.jimg")), &file)?;
            fs::write(dir.join(format!("{release}.txt")), capture.image.text()?)?;
        }
    }
    Ok(())
}
