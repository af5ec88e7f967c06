//! Makes the pictures of the README, from a real run of the bundled Java program: the text of a
//! report, a flame graph and the page, drawn by Chromium.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use joular_tests::{
    browser::{self, Browser},
    java::Workload,
    paths,
};

use crate::{build, setup, shell};

/// How long is recorded, and how much of its start is not drawn: the JVM compiles then.
const DURATION: &str = "15s";
const WARM_UP: &str = "5s";

/// Pictures are as wide as a README on a wide screen.
const WIDTH: u32 = 1200;

/// A picture: its name, the page that is drawn, and how high it may be.
struct Picture {
    name: &'static str,
    page: PathBuf,
    most_height: u32,
}

pub fn run() -> Result<()> {
    setup::jdk()?;
    setup::browser();
    let browser = browser::program().context("no Chromium: install it to draw pictures")?;
    let program = match std::env::var_os("JOULAR_BPF") {
        Some(_) => paths::joular_bpf(),
        None => build::build(build::Profile::Dev)?,
    };
    let scratch = tempfile::tempdir()?;
    let data = scratch.path().join("joular-out");
    record(&program, &data)?;
    let pictures = [report(&program, &data)?, flamegraph(&program, &data)?, page(&program, &data)?];
    let images = paths::root().join("docs/images");
    fs::create_dir_all(&images).with_context(|| format!("creating {}", images.display()))?;
    for picture in pictures {
        let file = images.join(format!("{}.png", picture.name));
        draw(browser, &picture, &file).with_context(|| format!("drawing {}", file.display()))?;
        println!("docs/images/{}.png: {} KiB", picture.name, fs::metadata(&file)?.len() / 1024);
    }
    Ok(())
}

fn record(program: &Path, data: &Path) -> Result<()> {
    shell::step(&format!("recording the bundled Java program for {DURATION}"));
    let jvm = Workload::new("shop.Main").argument("60").start()?;
    let mut profiler = shell::as_root(program, &[]);
    profiler.args(["--pid", &jvm.pid().to_string(), "--duration", DURATION, "--quiet", "--output"]).arg(data);
    let status = profiler.status().context("starting joular-bpf")?;
    ensure!(status.success(), "joular-bpf: {status}");
    Ok(())
}

/// The text of a report as a terminal shows it.
fn report(program: &Path, data: &Path) -> Result<Picture> {
    let options = ["--top", "12", "--since", WARM_UP];
    let text = shell::capture(Command::new(program).arg("report").arg(data).args(options))?;
    let shown = format!("$ joular-bpf report joular-out {}\n\n{text}", options.join(" "));
    let html = format!(
        "<!DOCTYPE html><meta charset=utf-8><html data-ready=true><body style='margin:0;overflow:hidden;background:#fbfbfa;color:#1b1d21'>\
         <pre style='margin:0;padding:16px;font:13px/1.45 monospace'>{}</pre>",
        escaped(&shown)
    );
    let page = data.with_file_name("report.html");
    fs::write(&page, html).with_context(|| format!("writing {}", page.display()))?;
    Ok(Picture { name: "report", page, most_height: 700 })
}

/// The flame graph of the program's own threads: those of the compilers are deep and say little here.
fn flamegraph(program: &Path, data: &Path) -> Result<Picture> {
    let svg = data.with_file_name("flamegraph.svg");
    let options = ["--since", WARM_UP, "--category", "java", "--min-share", "0.5%", "--output"];
    shell::run(Command::new(program).arg("flamegraph").arg(data).args(options).arg(&svg))?;
    // In a document of its own, so that its script lays out the texts; ready when that has run.
    let html = "<!DOCTYPE html><meta charset=utf-8><html><body style='margin:0'>\
                <object type='image/svg+xml' data='flamegraph.svg' style='display:block;width:100%' \
                onload='document.documentElement.dataset.ready = true'></object>";
    let page = data.with_file_name("flamegraph.html");
    fs::write(&page, html).with_context(|| format!("writing {}", page.display()))?;
    Ok(Picture { name: "flamegraph", page, most_height: 1000 })
}

fn page(program: &Path, data: &Path) -> Result<Picture> {
    let page = data.with_file_name("page.html");
    shell::run(Command::new(program).arg("html").arg(data).args(["--since", WARM_UP, "--output"]).arg(&page))?;
    Ok(Picture { name: "page", page, most_height: 900 })
}

fn draw(program: &str, picture: &Picture, file: &Path) -> Result<()> {
    let mut browser = Browser::start(program)?;
    browser.prefer("light")?;
    browser.resize(WIDTH, picture.most_height)?;
    browser.open(&picture.page)?;
    let content = browser.eval("Math.ceil(document.body.getBoundingClientRect().height)")?;
    let content = content.as_u64().and_then(|height| u32::try_from(height).ok()).context("the page has no height")?;
    browser.resize(WIDTH, content.min(picture.most_height))?;
    browser.picture(file)
}

/// Text that is shown as it is.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
