//! Makes the container image: the static program on nothing, as an archive of the OCI layout.
//!
//! The layout is that of <https://github.com/opencontainers/image-spec/blob/v1.1.0/image-layout.md>: blobs by their
//! SHA-256, and an index that names the image.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{
    Program, Release,
    tree::{Tree, gzip, pack, read, sha256},
};

/// Authorities that the servers of object stores are known by, as Debian has them.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Of several programs it is an index of images, of which a machine takes the one for its processor.
pub fn make(release: &Release, programs: &[Program]) -> Result<PathBuf> {
    let layout = Tree::new()?;
    let images = programs.iter().map(|program| image(&layout, release, program)).collect::<Result<Vec<Value>>>()?;
    let mut named = match images.as_slice() {
        [image] => image.clone(),
        images => blob(&layout, INDEX, index(images).to_string().as_bytes())?,
    };
    // What podman calls an image that it loads, and what Docker and containerd do.
    let name = format!("localhost/joular-bpf:{}", release.version);
    named["annotations"] = json!({ "org.opencontainers.image.ref.name": name, "io.containerd.image.name": name });
    layout.write("index.json", index(&[named]).to_string())?;
    layout.write("oci-layout", json!({ "imageLayoutVersion": "1.0.0" }).to_string())?;
    let processors: Vec<&str> = programs.iter().map(|program| program.target.processor.debian()).collect();
    let name = format!("joular-bpf-{}-{}.oci.tar", release.version, processors.join("-"));
    let archive = release.output.join(name);
    pack(layout.root(), ".", &archive, release.epoch)?;
    Ok(archive)
}

fn index(manifests: &[Value]) -> Value {
    json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests })
}

/// Stores an image for a processor, and describes it.
fn image(layout: &Tree, release: &Release, program: &Program) -> Result<Value> {
    let processor = program.target.processor.debian();
    let (layer, diff) = layer(release, program)?;
    let layer = blob(layout, LAYER, &layer)?;
    let config = blob(layout, CONFIG, config(release, processor, &diff)?.to_string().as_bytes())?;
    let manifest = json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer] });
    let mut image = blob(layout, MANIFEST, manifest.to_string().as_bytes())?;
    image["platform"] = json!({ "architecture": processor, "os": "linux" });
    Ok(image)
}

/// The files of the image: compressed, and the digest of what they are unpacked.
fn layer(release: &Release, program: &Program) -> Result<(Vec<u8>, String)> {
    let root = Tree::new()?;
    root.write_executable("usr/bin/joular-bpf", &program.stripped)?;
    root.copy("packaging/agent.toml", "etc/joular-bpf/agent.toml")?;
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        root.copy(licence, &format!("usr/share/doc/joular-bpf/{licence}"))?;
    }
    // Small: the whole image is to be at most 30 MiB unpacked.
    root.write("usr/share/doc/joular-bpf/LICENSES-OF-LIBRARIES.txt.gz", gzip(program.notices.as_bytes())?)?;
    root.write(
        CERTIFICATES.trim_start_matches('/'),
        read(Path::new(CERTIFICATES)).context("install ca-certificates")?,
    )?;
    root.directory("var/lib/joular-bpf", 0o750)?;
    root.directory("tmp", 0o1777)?;
    let packed = tempfile::tempdir().context("making a temporary directory")?;
    let packed = packed.path().join("layer.tar");
    pack(root.root(), ".", &packed, release.epoch)?;
    let packed = read(&packed)?;
    Ok((gzip(&packed)?, format!("sha256:{}", sha256(&packed)?)))
}

fn config(release: &Release, processor: &str, diff: &str) -> Result<Value> {
    let created = release.time()?;
    Ok(json!({
        "created": created,
        "architecture": processor,
        "os": "linux",
        "config": {
            "Env": ["PATH=/usr/bin"],
            "Entrypoint": ["/usr/bin/joular-bpf"],
            "Cmd": ["agent"],
            "WorkingDir": "/var/lib/joular-bpf",
            "Labels": {
                "org.opencontainers.image.title": "joular-bpf",
                "org.opencontainers.image.description": "Joules per Java method",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
                "org.opencontainers.image.created": created,
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [diff] },
        "history": [{ "created": created, "created_by": "cargo xtask dist" }],
    }))
}

/// Stores a blob, and describes it for those that name it.
fn blob(layout: &Tree, kind: &str, content: &[u8]) -> Result<Value> {
    let digest = format!("sha256:{}", sha256(content)?);
    layout.write(&format!("blobs/{}", digest.replace(':', "/")), content)?;
    Ok(json!({ "mediaType": kind, "digest": digest, "size": content.len() }))
}
