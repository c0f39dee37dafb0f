//! What the documents name exists.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

fn sources(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, text);
        } else if path.extension().is_some_and(|end| end == "rs") {
            text.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_test_that_the_architecture_names_exists() {
    let mut text = String::new();
    for directory in ["src", "tests"] {
        sources(Path::new(directory), &mut text);
    }
    let tests: HashSet<&str> =
        text.split("#[test]").skip(1).filter_map(|test| test.split("fn ").nth(1)?.split('(').next()).collect();
    let architecture = fs::read_to_string("ARCHITECTURE.md").unwrap();
    let named: Vec<&str> =
        architecture.lines().filter_map(|line| line.strip_prefix("- `")?.strip_suffix('`')).collect();
    assert!(named.len() > 20, "{named:?}");
    let missing: Vec<_> = named.iter().filter(|name| !tests.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_option_of_run_stands_in_the_readme() {
    let readme = fs::read_to_string("README.md").unwrap();
    let command = fenced::cli::command();
    let run = command.find_subcommand("run").unwrap();
    let missing: Vec<_> = run
        .get_arguments()
        .filter_map(|option| option.get_long())
        .filter(|long| !readme.contains(&format!("--{long}")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
