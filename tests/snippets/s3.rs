//! S3 by Amazon's own client, with a store of the tests that has conditional writes.

use crate::bench::Bench;
use crate::rule::{Resource, holds_for};
use crate::server::has;
use crate::service::{Answer, Request, serve};
use crate::support::run::Ended;
use crate::text::Snippet;
use hmac_sha256::Hash;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const POINTER: &str = "/bucket/report.json.current";

/// Objects by their path, and what gets in the way.
#[derive(Default)]
struct Store {
    objects: BTreeMap<String, Vec<u8>>,
    /// The metadata of the pointer's last write.
    metadata: BTreeMap<String, String>,
    ignores_conditions: bool,
    /// What somebody else makes the pointer right before it is next replaced.
    overtaken_by: Vec<&'static str>,
    refused: usize,
}

fn etag(body: &[u8]) -> String {
    let sum = Hash::hash(body);
    let number = sum[..16].iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
    format!("\"{number:032x}\"")
}

fn failure(status: u16, code: &str) -> Answer {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>{code}</Message></Error>");
    (status, vec![("Content-Type".into(), "application/xml".into())], body.into_bytes())
}

fn handle(store: &mut Store, request: &Request) -> Answer {
    let path = request.path.split('?').next().unwrap().to_owned();
    if request.method == "PUT"
        && path == POINTER
        && let Some(pointer) = store.overtaken_by.pop()
    {
        store.objects.insert(path.clone(), pointer.into());
    }
    let there = store.objects.get(&path);
    let tag = there.map(|body| etag(body));
    match request.method.as_str() {
        "PUT" => {
            let exists = request.header("if-none-match") == Some("*") && there.is_some();
            let changed = request.header("if-match").is_some_and(|wanted| tag.as_deref() != Some(wanted));
            if (exists || changed) && !store.ignores_conditions {
                store.refused += usize::from(path == POINTER);
                return failure(412, "PreconditionFailed");
            }
            if path == POINTER {
                store.metadata = request.headers.clone().into_iter().collect();
            }
            store.objects.insert(path, request.body.clone());
            (200, vec![("ETag".into(), etag(&request.body))], Vec::new())
        }
        "DELETE" => {
            store.objects.remove(&path);
            (204, Vec::new(), Vec::new())
        }
        _ => match there {
            Some(body) => {
                let modified = ("Last-Modified".into(), "Fri, 02 Jan 2026 03:04:05 GMT".into());
                (200, vec![("ETag".into(), tag.unwrap()), modified], body.clone())
            }
            None => failure(404, "NoSuchKey"),
        },
    }
}

struct S3 {
    bench: Bench,
    snippet: Snippet,
    store: Arc<Mutex<Store>>,
}

impl S3 {
    fn start(store: Store) -> Option<Self> {
        if !has(&["aws"]) {
            return None;
        }
        let (mut bench, store) = (Bench::new(), Arc::new(Mutex::new(store)));
        let address = serve(Arc::clone(&store), handle);
        for (name, value) in [
            ("AWS_ENDPOINT_URL", &*format!("http://{address}")),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("AWS_CONFIG_FILE", "/nonexistent"),
            ("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent"),
            ("BUCKET", "bucket"),
        ] {
            bench.env(name, value);
        }
        bench.write("report.json", "none");
        Some(Self { bench, snippet: Snippet::of("s3"), store })
    }

    fn install(self) -> Self {
        self.bench.run(&format!("set -e\n{}", self.snippet.once())).exits(0);
        self
    }

    fn pointer(&self) -> Vec<String> {
        let store = self.store.lock().unwrap();
        let pointer = String::from_utf8_lossy(&store.objects[POINTER]).into_owned();
        pointer.split_whitespace().map(ToOwned::to_owned).collect()
    }
}

impl Resource for S3 {
    fn bench(&self) -> &Bench {
        &self.bench
    }

    fn snippet(&self) -> &Snippet {
        &self.snippet
    }

    fn next(&self, word: &str) {
        self.bench.write("report.json", word);
    }

    fn word(&self) -> String {
        if !self.store.lock().unwrap().objects.contains_key(POINTER) {
            return "no pointer".into();
        }
        let name = format!("/bucket/{}", self.pointer()[2]);
        String::from_utf8_lossy(&self.store.lock().unwrap().objects[&name]).into_owned()
    }

    fn token(&self) -> String {
        self.pointer()[1].clone()
    }

    fn forget(&self) {
        self.store.lock().unwrap().objects.remove(POINTER);
    }

    fn start_afresh(&self, _: &dyn Fn(&str) -> Ended) {
        self.bench.run(&self.snippet.commented("aws s3api delete-object")).exits(0);
        self.bench.run("sh s3-init.sh report.json").exits(0);
    }
}

#[test]
fn s3_refuses_a_stale_writer_and_its_command_line_fails() {
    let Some(s3) = S3::start(Store::default()) else { return };
    let s3 = s3.install();
    assert_ne!(s3.bench.run("sh s3-init.sh report.json").code(), Some(0), "what is there is left alone");
    holds_for(&s3);
}

#[test]
fn s3_looks_again_when_it_was_overtaken_and_writes_only_if_it_still_may() {
    let Some(s3) = S3::start(Store::default()) else { return };
    let s3 = s3.install();
    s3.put("first", "4", "a").exits(0);
    assert_eq!(s3.store.lock().unwrap().metadata["x-amz-meta-fenced-token"], "4");
    s3.store.lock().unwrap().overtaken_by = vec!["a 6 somewhere\n", "a 5 somewhere\n"];
    s3.put("later than both", "7", "a").exits(0);
    assert_eq!((s3.word(), s3.store.lock().unwrap().refused), ("later than both".into(), 2));

    s3.store.lock().unwrap().overtaken_by = vec!["a 9 somewhere\n"];
    let ended = s3.put("too late", "8", "a").exits(77);
    assert!(ended.stderr.contains("token 8 is stale, 9"), "{ended:?}");
    assert_eq!(s3.token(), "9");
    let reader = s3.snippet.commented("aws s3 cp");
    s3.put("for readers", "9", "a").exits(0);
    s3.bench.write("report.json", "");
    s3.bench.run(&reader).exits(0);
    assert_eq!(std::fs::read_to_string(s3.bench.work().join("report.json")).unwrap(), "for readers");
}

#[test]
fn s3_that_ignores_conditions_is_found_out_before_anything_relies_on_it() {
    let Some(s3) = S3::start(Store { ignores_conditions: true, ..Store::default() }) else { return };
    let ended = s3.bench.run(&format!("set -e\n{}", s3.snippet.once())).exits(1);
    assert!(ended.stderr.contains("ignores conditions"), "{ended:?}");
}
