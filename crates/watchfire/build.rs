//! Builds the simulated driver library that the binary carries, and sees that the page is there.
//!
//! The library is a second artefact (a shared object) of the workspace's `sim` package; cargo cannot hand one to a
//! stable build, so it is built here, in a target folder of its own, offline from the same lock file.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let root = Path::new("../..");
    for watched in [
        "sim/src",
        "sim/Cargo.toml",
        "data/sim",
        "Cargo.lock",
        "ui/dist/index.html",
    ] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    if !root.join("ui/dist/index.html").is_file() {
        println!("cargo::error=the web page is not built yet: run `make ui` once (needs Node 20 and npm)");
        return;
    }
    match build_simulator(root) {
        Ok(library) => println!("cargo::rustc-env=WATCHFIRE_SIM_LIBRARY={}", library.display()),
        Err(reason) => println!("cargo::error=cannot build the simulated driver library: {reason}"),
    }
}

fn build_simulator(root: &Path) -> Result<PathBuf, String> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?).join("sim");
    let release = env::var("PROFILE").is_ok_and(|profile| profile == "release");
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(root)
        .args(["build", "--package", "sim", "--lib", "--locked", "--target-dir"])
        .arg(&out);
    if release {
        cargo.arg("--release");
    }
    // What this build was told about itself does not hold for the other.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_") && name != "CARGO_HOME" && !name.starts_with("CARGO_NET")
            || name == "RUSTC_WORKSPACE_WRAPPER"
        {
            cargo.env_remove(name);
        }
    }
    let output = cargo.output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr)
            .lines()
            .last()
            .unwrap_or("cargo failed")
            .to_owned());
    }
    let library = out.join(if release { "release" } else { "debug" }).join("libsim.so");
    library
        .canonicalize()
        .map_err(|e| format!("{}: {e}", library.display()))
}
