//! What a cluster wants to see: certificates by their files, a user and a password. Nothing is read here.

use super::given::{Environment, Given, from, pick};
use super::url::{Named, StoreUrl, member};
use super::{DEFAULT_PREFIX, url};
use crate::cli;
use std::fmt;
use std::path::{Path, PathBuf};

/// How to get at a store. Nothing of it for a local one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Who signed the members' certificates; the system's authorities where there is none.
    pub cacert: Option<PathBuf>,
    /// The client's own certificate and its private key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Who asks.
    pub user: Option<User>,
}

/// A user of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The password.
    pub password: Password,
}

/// A password, or where it is.
#[derive(Clone, PartialEq, Eq)]
pub enum Password {
    /// From a variable.
    Given(String),
    /// The first line of a file.
    File(PathBuf),
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(_) => f.write_str("Given(…)"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

impl Access {
    /// The variables that give a run inside this one the same access, as far as files go: a password that came by a
    /// variable is not among them.
    #[must_use]
    pub fn exports(&self) -> Vec<(&'static str, PathBuf)> {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut set = Vec::new();
        set.extend(self.cacert.as_ref().map(|path| ("FENCED_CACERT", absolute(path))));
        if let Some((cert, key)) = &self.identity {
            set.extend([("FENCED_CERT", absolute(cert)), ("FENCED_KEY_FILE", absolute(key))]);
        }
        // Without its password a name is worth nothing, and would only hide what ETCDCTL_USER says.
        if let Some(User { name, password: Password::File(path) }) = &self.user {
            set.extend([("FENCED_USER", name.clone().into()), ("FENCED_PASSWORD_FILE", absolute(path))]);
        }
        set
    }
}

/// The store that was named, and how to get at it.
pub(super) struct Chosen {
    pub store: StoreUrl,
    pub unconfigured: bool,
    pub access: Access,
}

/// Chooses the store and the access to it. `etcd:` alone takes what flags and `FENCED_*` leave open from `ETCDCTL_*`.
pub(super) fn choose(typed: cli::Store, environment: Environment) -> Result<Chosen, String> {
    let given = pick("--store", typed.store.clone(), "FENCED_STORE", environment)?;
    let unconfigured = given.is_none();
    let named = given.map_or(Ok(Named::Store(StoreUrl::File { directory: None })), |g| g.as_a(url::store_url))?;
    let options = Options { typed, environment, etcdctl: named == Named::AsEtcdctl };
    let store = match named {
        Named::Store(store @ StoreUrl::File { .. }) => {
            options.refuse_flags("file: needs none, leave it out")?;
            return Ok(Chosen { store, unconfigured, access: Access::default() });
        }
        Named::Store(store) => store,
        Named::AsEtcdctl => options.etcdctls_store()?,
    };
    let (cacert, cert, key) = (options.cacert()?, options.cert()?, options.key()?);
    if !matches!(store, StoreUrl::Etcd { tls: true, .. })
        && let Some(given) = cacert.as_ref().or(cert.as_ref()).or(key.as_ref())
    {
        return Err(format!("{}: is for TLS, but the store is plain, use etcds:// or leave it out", given.source));
    }
    let identity = match (cert, key) {
        (Some(cert), Some(key)) => Some((cert.value.into(), key.value.into())),
        (None, None) => None,
        (Some(cert), None) => return Err(format!("{}: is nothing without --key", cert.source)),
        (None, Some(key)) => return Err(format!("{}: is nothing without --cert", key.source)),
    };
    let access = Access { cacert: cacert.map(|given| given.value.into()), identity, user: options.user()? };
    Ok(Chosen { store, unconfigured, access })
}

/// The store options, each looked up in the order of flag, `FENCED_*` and, for `etcd:` alone, `ETCDCTL_*`.
struct Options<'a> {
    typed: cli::Store,
    environment: Environment<'a>,
    etcdctl: bool,
}

impl Options<'_> {
    fn cacert(&self) -> Result<Option<Given>, String> {
        self.find("--cacert", self.typed.cacert.as_ref(), "FENCED_CACERT", "ETCDCTL_CACERT")
    }

    fn cert(&self) -> Result<Option<Given>, String> {
        self.find("--cert", self.typed.cert.as_ref(), "FENCED_CERT", "ETCDCTL_CERT")
    }

    /// Not `FENCED_KEY`: that is the lock's key in the store, exported to the command.
    fn key(&self) -> Result<Option<Given>, String> {
        self.find("--key", self.typed.key.as_ref(), "FENCED_KEY_FILE", "ETCDCTL_KEY")
    }

    fn find(
        &self,
        flag: &'static str,
        typed: Option<&String>,
        variable: &'static str,
        etcdctls: &'static str,
    ) -> Result<Option<Given>, String> {
        match pick(flag, typed.cloned(), variable, self.environment)? {
            None if self.etcdctl => from(etcdctls, self.environment),
            found => Ok(found),
        }
    }

    fn user(&self) -> Result<Option<User>, String> {
        let named = self.find("--user", self.typed.user.as_ref(), "FENCED_USER", "ETCDCTL_USER")?;
        let mut password = self.password()?;
        let Some(Given { source, value }) = named else {
            return match password {
                Some((source, _)) => Err(format!("{source}: is nothing without --user")),
                None => Ok(None),
            };
        };
        let name = match value.split_once(':') {
            None => value,
            // As etcdctl reads it; where a password shows on a command line it is refused.
            Some((name, secret)) if source == "ETCDCTL_USER" => {
                password.get_or_insert((source, Password::Given(secret.into())));
                name.into()
            }
            Some(_) => {
                return Err(format!("{source}: holds a password for everyone to see, use --password-file"));
            }
        };
        let (_, password) =
            password.ok_or_else(|| format!("{source} {name}: no password, use --password-file or FENCED_PASSWORD"))?;
        Ok(Some(User { name, password }))
    }

    fn password(&self) -> Result<Option<(&'static str, Password)>, String> {
        let file = |given: Given| (given.source, Password::File(given.value.into()));
        let text = |given: Given| (given.source, Password::Given(given.value));
        if let Some(path) = self.typed.password_file.clone() {
            return Ok(Some(("--password-file", Password::File(path.into()))));
        }
        if let Some(given) = from("FENCED_PASSWORD", self.environment)? {
            return Ok(Some(text(given)));
        }
        if let Some(given) = from("FENCED_PASSWORD_FILE", self.environment)? {
            return Ok(Some(file(given)));
        }
        Ok(if self.etcdctl { from("ETCDCTL_PASSWORD", self.environment)?.map(text) } else { None })
    }

    fn refuse_flags(&self, why: &str) -> Result<(), String> {
        let typed = [
            ("--cacert", &self.typed.cacert),
            ("--cert", &self.typed.cert),
            ("--key", &self.typed.key),
            ("--user", &self.typed.user),
            ("--password-file", &self.typed.password_file),
        ];
        match typed.into_iter().find(|(_, value)| value.is_some()) {
            Some((flag, _)) => Err(format!("{flag}: {why}")),
            None => Ok(()),
        }
    }

    /// The members that etcdctl would ask, by its variables.
    fn etcdctls_store(&self) -> Result<StoreUrl, String> {
        let of = |variable| from(variable, self.environment);
        if let Some(given) = of("ETCDCTL_DISCOVERY_SRV")? {
            return Err(format!("{}: fenced does not ask DNS for members, use ETCDCTL_ENDPOINTS", given.source));
        }
        if let Some(given) = of("ETCDCTL_INSECURE_SKIP_TLS_VERIFY")?.filter(|given| given.value != "false") {
            return Err(format!("{}: fenced verifies the members' certificates, unset it", given.source));
        }
        let endpoints = of("ETCDCTL_ENDPOINTS")?;
        let endpoints = endpoints.as_ref().map_or("127.0.0.1:2379", |given| given.value.as_str());
        let (mut members, mut schemes) = (Vec::new(), Vec::new());
        for endpoint in endpoints.split(',').map(str::trim) {
            let (scheme, host) = endpoint.split_once("://").map_or((None, endpoint), |(s, host)| (Some(s), host));
            schemes.push(match scheme {
                None => None,
                Some("http") => Some(false),
                Some("https") => Some(true),
                Some(_) => return Err(format!("ETCDCTL_ENDPOINTS: {endpoint:?} is neither http:// nor https://")),
            });
            let host = host.trim_end_matches('/');
            members.push(member(host).ok_or_else(|| format!("ETCDCTL_ENDPOINTS: {endpoint:?} is no HOST:PORT"))?);
        }
        // Without a scheme etcdctl speaks TLS when it is given anything that TLS needs.
        let by_options = self.cacert()?.is_some() || self.cert()?.is_some() || self.key()?.is_some();
        let secure = of("ETCDCTL_INSECURE_TRANSPORT")?.is_some_and(|given| given.value == "false");
        let mut tls = schemes.iter().map(|scheme| scheme.unwrap_or(by_options || secure));
        let first = tls.next().unwrap_or_default();
        if tls.any(|other| other != first) {
            return Err("ETCDCTL_ENDPOINTS: some are http:// and some https://, use one of them".into());
        }
        Ok(StoreUrl::Etcd { members, prefix: DEFAULT_PREFIX.into(), tls: first })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use std::ffi::OsString;

    fn choose_by(words: &[&str], variables: &[(&str, &str)]) -> Result<Chosen, String> {
        let words = ["fenced", "run", "--lock", "a"].iter().chain(words).chain(&["true"]);
        let typed = cli::Cli::try_parse_from(words).map_err(|error| cli::one_line(&error))?;
        let cli::Command::Run(typed) = typed.command else { panic!("not a run") };
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value));
        choose(typed.store, &find)
    }

    fn refused(words: &[&str], variables: &[(&str, &str)], expected: &[&str]) {
        let why = choose_by(words, variables).err().expect("accepted");
        for word in expected {
            assert!(why.contains(word), "{why:?} does not say {word:?}");
        }
        assert!(!why.contains("s3cret"), "{why}");
    }

    const TLS: [&str; 2] = ["--store", "etcds://h"];

    #[test]
    fn certificates_and_a_user_come_from_flags_and_else_from_variables() {
        let words = [&TLS[..], &["--cacert", "ca", "--cert", "c", "--key", "k", "--user", "ci"]].concat();
        let access = choose_by(&words, &[("FENCED_PASSWORD", "s3cret"), ("FENCED_CACERT", "other")]).unwrap().access;
        let user = User { name: "ci".into(), password: Password::Given("s3cret".into()) };
        let identity = Some(("c".into(), "k".into()));
        assert_eq!(access, Access { cacert: Some("ca".into()), identity, user: Some(user) });

        let variables = [
            ("FENCED_STORE", "etcds://h"),
            ("FENCED_CACERT", "ca"),
            ("FENCED_CERT", "c"),
            ("FENCED_KEY_FILE", "k"),
            ("FENCED_USER", "ci"),
            ("FENCED_PASSWORD_FILE", "p"),
            ("FENCED_KEY", "/fenced/v1/q/a/7"),
        ];
        let access = choose_by(&[], &variables).unwrap().access;
        assert_eq!(access.identity, Some(("c".into(), "k".into())));
        assert_eq!(access.user.unwrap().password, Password::File("p".into()));
    }

    #[test]
    fn a_password_file_that_was_typed_wins_over_a_password_in_the_environment() {
        let words = [&TLS[..], &["--user", "ci", "--password-file", "p"]].concat();
        let user = choose_by(&words, &[("FENCED_PASSWORD", "s3cret")]).unwrap().access.user.unwrap();
        assert_eq!(user.password, Password::File("p".into()));
    }

    #[test]
    fn half_of_something_is_refused_by_its_name() {
        refused(&[&TLS[..], &["--cert", "c"]].concat(), &[], &["--cert", "--key"]);
        refused(&TLS, &[("FENCED_KEY_FILE", "k")], &["FENCED_KEY_FILE", "--cert"]);
        refused(&[&TLS[..], &["--user", "ci"]].concat(), &[], &["--user ci", "--password-file", "FENCED_PASSWORD"]);
        refused(&[&TLS[..], &["--password-file", "p"]].concat(), &[], &["--password-file", "--user"]);
        refused(&TLS, &[("FENCED_PASSWORD", "s3cret")], &["FENCED_PASSWORD", "--user"]);
    }

    #[test]
    fn a_password_on_the_command_line_is_refused() {
        refused(&[&TLS[..], &["--user", "ci:s3cret"]].concat(), &[], &["--user", "--password-file"]);
        refused(&TLS, &[("FENCED_USER", "ci:s3cret")], &["FENCED_USER", "--password-file"]);
    }

    #[test]
    fn options_that_the_store_has_no_use_for_are_refused_and_variables_for_another_store_are_not() {
        refused(&["--store", "etcd://h", "--cacert", "ca"], &[], &["--cacert", "etcds://"]);
        refused(&["--store", "etcd://h"], &[("FENCED_CACERT", "ca")], &["FENCED_CACERT", "etcds://"]);
        for flag in ["--cacert", "--cert", "--key", "--user", "--password-file"] {
            refused(&["--store", "file:", flag, "x"], &[], &[flag, "file:"]);
        }
        let local = choose_by(&["--store", "file:"], &[("FENCED_USER", "ci"), ("FENCED_CACERT", "ca")]).unwrap();
        assert_eq!(local.access, Access::default());
    }

    fn by_etcdctl(variables: &[(&str, &str)]) -> Result<(StoreUrl, Access), String> {
        choose_by(&["--store", "etcd:"], variables).map(|chosen| (chosen.store, chosen.access))
    }

    #[test]
    fn etcd_alone_asks_whom_etcdctl_would_ask() {
        for (variables, expected, secure) in [
            (&[][..], &["127.0.0.1:2379"][..], false),
            (&[("ETCDCTL_ENDPOINTS", "h1:1,h2:2")], &["h1:1", "h2:2"], false),
            (&[("ETCDCTL_ENDPOINTS", "http://h1:1, http://h2")], &["h1:1", "h2:2379"], false),
            (&[("ETCDCTL_ENDPOINTS", "https://h1:1/")], &["h1:1"], true),
            (&[("ETCDCTL_ENDPOINTS", "h1:1"), ("ETCDCTL_CACERT", "ca")], &["h1:1"], true),
            (&[("ETCDCTL_ENDPOINTS", "h1:1"), ("ETCDCTL_INSECURE_TRANSPORT", "false")], &["h1:1"], true),
        ] {
            let (store, _) = by_etcdctl(variables).unwrap();
            let StoreUrl::Etcd { members, prefix, tls } = store else { panic!("{store:?}") };
            assert_eq!(
                (members, prefix.as_str(), tls),
                (expected.iter().map(|&m| m.into()).collect(), "/fenced/v1", secure)
            );
        }
    }

    #[test]
    fn etcd_alone_shows_what_etcdctl_would_show_unless_told_otherwise() {
        let tls = ("ETCDCTL_ENDPOINTS", "https://h");
        let (_, access) = by_etcdctl(&[tls, ("ETCDCTL_USER", "root:s3c:ret"), ("ETCDCTL_CACERT", "ca")]).unwrap();
        let user = User { name: "root".into(), password: Password::Given("s3c:ret".into()) };
        assert_eq!(access, Access { cacert: Some("ca".into()), identity: None, user: Some(user) });
        let variables = [tls, ("ETCDCTL_USER", "root"), ("ETCDCTL_PASSWORD", "p"), ("FENCED_USER", "ci")];
        let user = by_etcdctl(&variables).unwrap().1.user.unwrap();
        assert_eq!((user.name.as_str(), user.password), ("ci", Password::Given("p".into())));
    }

    #[test]
    fn variables_of_etcdctl_are_read_for_etcd_alone() {
        let variables = [("ETCDCTL_USER", "root:p"), ("ETCDCTL_CACERT", "ca")];
        let chosen = choose_by(&["--store", "etcd://h"], &variables).unwrap();
        assert_eq!(chosen.access, Access::default());
    }

    #[test]
    fn what_etcdctl_can_and_fenced_cannot_is_refused_by_its_name() {
        for (variable, value) in [
            ("ETCDCTL_DISCOVERY_SRV", "example.org"),
            ("ETCDCTL_INSECURE_SKIP_TLS_VERIFY", "true"),
            ("ETCDCTL_ENDPOINTS", "unix:///run/etcd"),
            ("ETCDCTL_ENDPOINTS", "http://a,https://b"),
            ("ETCDCTL_ENDPOINTS", "h:x"),
            ("ETCDCTL_ENDPOINTS", "http://"),
        ] {
            refused(&["--store", "etcd:"], &[(variable, value)], &[variable]);
        }
    }

    #[test]
    fn a_password_is_not_shown_with_what_surrounds_it() {
        let user = User { name: "ci".into(), password: Password::Given("s3cret".into()) };
        assert!(!format!("{user:?}").contains("s3cret"));
    }
}
