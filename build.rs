//! The unwinder is linked into the program: the shared library costs each start more than all of fenced's own code.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|c_library| c_library == "gnu") {
        println!("cargo:rustc-link-lib=static:-bundle=gcc_eh");
    }
}
