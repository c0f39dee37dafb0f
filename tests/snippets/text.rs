//! The printed text in its parts: what is done once, what is done each time, and what is commented out.

use crate::support::run::binary;
use std::process::Command;

/// A snippet as the program printed it.
pub struct Snippet(String);

impl Snippet {
    /// Asks the program.
    pub fn of(resource: &str) -> Self {
        let printed = Command::new(binary()).args(["snippet", resource]).output().unwrap();
        assert!(printed.status.success() && printed.stderr.is_empty(), "{printed:?}");
        Self(String::from_utf8(printed.stdout).unwrap())
    }

    /// What is done once.
    pub fn once(&self) -> String {
        self.section("1. Once")
    }

    /// The command line.
    pub fn each_time(&self) -> String {
        self.section("2. Each time")
    }

    /// From one heading to the next: `# 1. …`, `# A. …`.
    pub fn section(&self, heading: &str) -> String {
        let begins = |line: &&str| line.starts_with(&format!("# {heading}"));
        let is_heading = |line: &str| {
            let mark: Vec<char> = line.chars().take(4).collect();
            matches!(mark[..], ['#', ' ', kind, '.'] if kind.is_ascii_digit() || kind.is_ascii_uppercase())
        };
        let mut lines = self.0.lines().skip_while(|line| !begins(line));
        let first = lines.next().unwrap_or_else(|| panic!("no section {heading}"));
        let rest: Vec<&str> = lines.take_while(|line| !is_heading(line)).collect();
        format!("{first}\n{}\n", rest.join("\n"))
    }

    /// A command line that is commented out, by what it begins with.
    pub fn commented(&self, beginning: &str) -> String {
        let mut lines = self.0.lines().filter_map(|line| line.strip_prefix("#     "));
        lines.find(|line| line.starts_with(beginning)).expect("such a line").to_owned()
    }
}

#[test]
fn each_snippet_is_a_shell_script_that_fits_a_terminal_and_names_its_grade() {
    for resource in ["postgres", "mysql", "sqlite", "redis", "etcd", "s3", "http"] {
        let Snippet(text) = Snippet::of(resource);
        let checked = Command::new("sh").args(["-n", "-c", &text]).output().unwrap();
        assert!(checked.status.success(), "{resource}: {checked:?}");
        assert!(text.contains("tomic"), "{resource} does not say what it gives");
        let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 120).collect();
        assert!(long.is_empty(), "{resource}: {long:?}");
    }
}
