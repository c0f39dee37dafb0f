//! The man pages and completions that are committed are those of the command line as it is defined.
//! `make generate` (`FENCED_REGENERATE=1`) writes them instead.

use clap::Command;
use clap_complete::Shell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

#[test]
fn man_pages_are_current() {
    check("man", &man_pages());
}

#[test]
fn completions_are_current() {
    check("completions", &completions());
}

type Files = BTreeMap<String, Vec<u8>>;

/// One page for the command and one for each subcommand.
fn man_pages() -> Files {
    let mut root = fenced::cli::command().disable_help_subcommand(true);
    root.build();
    let mut files = Files::new();
    let mut open = vec![root];
    while let Some(command) = open.pop() {
        open.extend(command.get_subcommands().filter(|below| !below.is_hide_set()).cloned());
        let page = clap_mangen::Man::new(command);
        let mut text = Vec::new();
        page.render(&mut text).unwrap();
        files.insert(page.get_filename(), text);
    }
    files
}

/// One file for each shell.
fn completions() -> Files {
    let mut files = Files::new();
    for (shell, name) in [(Shell::Bash, "fenced.bash"), (Shell::Zsh, "_fenced"), (Shell::Fish, "fenced.fish")] {
        let mut text = Vec::new();
        let mut command: Command = fenced::cli::command();
        clap_complete::generate(shell, &mut command, "fenced", &mut text);
        files.insert(name.to_owned(), text);
    }
    files
}

/// Compares the files of a directory with what they should be, or writes them.
fn check(directory: &str, wanted: &Files) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    if env::var_os("FENCED_REGENERATE").is_some() {
        write(&directory, wanted);
    }
    let committed: Files = listed(&directory).iter().map(|path| (file_name(path), fs::read(path).unwrap())).collect();
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&committed), names(wanted), "run `make generate` and commit {}", directory.display());
    for (name, text) in wanted {
        assert!(committed[name] == *text, "{name} is not current: run `make generate` and commit it");
    }
}

fn write(directory: &Path, wanted: &Files) {
    fs::create_dir_all(directory).unwrap();
    for stale in listed(directory).iter().filter(|path| !wanted.contains_key(&file_name(path))) {
        fs::remove_file(stale).unwrap();
    }
    for (name, text) in wanted {
        fs::write(directory.join(name), text).unwrap();
    }
}

/// The files of a directory; none if there is no such directory.
fn listed(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).map_or_else(|_| Vec::new(), |entries| entries.map(|entry| entry.unwrap().path()).collect())
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}
