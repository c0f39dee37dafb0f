//! The heart: a pure machine that decides, and the loop that feeds it and does what it says.

mod asking;
pub mod driver;
mod ending;
pub mod event;
mod holding;
pub mod machine;
mod sweep;

#[cfg(test)]
mod table;
#[cfg(test)]
mod walk;
