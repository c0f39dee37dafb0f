//! What can be typed after `fenced check`.

use super::Store;
use clap::Args;

/// `fenced check`.
#[derive(Debug, Args)]
pub struct Check {
    /// The lock [default: FENCED_LOCK]
    #[arg(short, long, value_name = "NAME")]
    pub lock: Option<String>,

    /// The token [default: FENCED_TOKEN]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub token: Option<String>,

    /// What the token may be compared in [default: FENCED_LINEAGE, where the token is FENCED_TOKEN]
    #[arg(long, value_name = "WORD")]
    pub lineage: Option<String>,

    /// Say on stderr what was found
    #[arg(short, long)]
    pub verbose: bool,

    /// The store options.
    #[command(flatten)]
    pub store: Store,
}
