//! The page of a run while it runs: local agents over TCP, and viewers of every kind.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::Path,
    time::{Duration, Instant},
};

use crate::{
    axe, browser,
    driver::Driver,
    railgauge::{Running, Scene, program},
    skip,
};

/// Twelve cases of a quarter of a second each, in one round for each of two repeats.
const PLAN: &str = r#"
name = "live"
launch = { via = "local" }
hosts = { names = ["a", "b"] }
localise = { confirm = false }

[[test]]
name = "write"
op = "write"
metric = "bandwidth"
transport = "tcp"
sizes = "1KiB..32KiB x2"
repeats = 2
measure = "250ms"
warm_up = "10ms"
"#;

/// A run that serves its page, and where.
struct Served {
    run: Running,
    address: String,
    token: String,
}

fn served(scene: &Scene, plan: &str) -> Served {
    let plan = scene.write("plan.toml", plan);
    let mut command = program();
    command.args(["run", "--live", "-o"]).arg(scene.run_directory()).arg(plan);
    let run = scene.spawn(command, "run");
    let deadline = Instant::now() + Duration::from_secs(60);
    let url = loop {
        let said = fs::read_to_string(scene.path("run.err")).unwrap_or_default();
        if let Some(url) = said.lines().find_map(|line| line.strip_prefix("live: http://")) {
            break url.to_owned();
        }
        assert!(Instant::now() < deadline, "no address is told:\n{said}");
        std::thread::sleep(Duration::from_millis(20));
    };
    let (address, token) = url.trim_end_matches('/').split_once('/').unwrap();
    Served { run, address: address.to_owned(), token: token.to_owned() }
}

impl Served {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// The whole answer to a request as it is.
    fn says(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // A server that refuses early may close before all is read.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    /// Status, headers and body.
    fn get(&self, path: &str) -> (u16, String, String) {
        self.ask("GET", path, &self.address)
    }

    fn ask(&self, method: &str, path: &str, host: &str) -> (u16, String, String) {
        let answer = self.says(&format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer}"));
        let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
        (status, head.to_lowercase(), body.to_owned())
    }

    /// The line on how far the run is.
    fn course(&self) -> String {
        let (status, _, body) = self.get(&format!("/{}/course", self.token));
        assert_eq!(status, 200, "{body}");
        body
    }

    /// Percent.
    fn measured(&self) -> u64 {
        let course = self.course();
        let words: Vec<&str> = course.split_whitespace().take(3).collect();
        let [percent, "%", "measured,"] = words[..] else { panic!("{course}") };
        percent.parse().unwrap()
    }
}

/// What of a page can be read: without styles, scripts and tags.
fn readable(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some((before, tag)) = rest.split_once('<') {
        text += before;
        let silent = ["style", "script"].into_iter().find(|name| tag.starts_with(name));
        rest = match silent {
            Some(name) => tag.split_once(&format!("</{name}>")).map_or("", |(_, rest)| rest),
            None => tag.split_once('>').map_or("", |(_, rest)| rest),
        };
        text.push(' ');
    }
    text + rest
}

fn says_pass(page: &str) -> bool {
    readable(page).to_lowercase().split(|c: char| !c.is_alphabetic()).any(|word| word == "pass" || word == "passed")
}

#[test]
fn the_page_tells_how_far_the_run_is_and_judges_nothing() {
    let scene = Scene::new();
    // Every case of this is met, and the page must not say so before the end.
    // What is asked for below is rendered while ten cases are still to come: a busy machine takes seconds for it.
    let plan = PLAN.replace("250ms", "6s") + "expect = [{ metric = \"bandwidth\", at_least = \"1 Mb/s\" }]\n";
    let mut live = served(&scene, &plan);
    live.run.wait_for_outcomes(2);
    let percent = live.measured();
    assert!((16..100).contains(&percent), "{percent} %");
    let (status, head, page) = live.get(&format!("/{}/", live.token));
    assert_eq!(status, 200);
    for header in [
        "cache-control: no-store",
        "default-src 'none'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
        "nosniff",
        "no-referrer",
    ] {
        assert!(head.contains(header), "{header}: {head}");
    }
    assert!(page.contains("id=\"course\"") && page.contains("% measured"), "{}", readable(&page));
    assert!(!says_pass(&page) && !page.contains("class=\"status pass\""), "{}", readable(&page));
    let (status, head, body) = live.ask("HEAD", &format!("/{}/", live.token), &live.address);
    assert_eq!((status, body.as_str()), (200, ""), "{head}");
    live.run.send("-INT");
    live.run.end().expect(130);
    assert!(TcpStream::connect(&live.address).is_err(), "the page outlives the run");
}

#[test]
fn nothing_of_the_run_is_told_without_the_secret_or_to_other_names() {
    let scene = Scene::new();
    // Some thirty questions while cases are to come.
    let mut live = served(&scene, &PLAN.replace("250ms", "6s"));
    live.run.wait_for_outcomes(1);
    let token = live.token.clone();
    let mut wrong = token.clone().into_bytes();
    wrong[31] = if wrong[31] == b'0' { b'1' } else { b'0' };
    let wrong = String::from_utf8(wrong).unwrap();
    let upper = format!("/{}/", "F".repeat(32));
    for path in ["/", "/course", &format!("/{wrong}/"), &format!("/{}", &token[..31]), &upper, "/../run/records.jsonl"]
    {
        let (status, head, body) = live.get(path);
        assert_eq!(status, 403, "{path}: {body}");
        assert!(!body.contains("live") || body.contains("--live"), "{body}");
        for word in ["write", "local", "\"a\"", scene.run_directory().to_str().unwrap()] {
            assert!(!body.contains(word) && !head.contains(word), "{path}: {word}: {body}");
        }
    }
    // With the secret no file can be named.
    for path in
        ["records.jsonl", "../records.jsonl", "plan.toml", "report.html", "%2e%2e/plan.toml", "course/../plan.toml"]
    {
        assert_eq!(live.get(&format!("/{token}/{path}")).0, 404, "{path}");
    }
    // Who leaves the slash away is led to the page; what is wrong with an address is told before that.
    let (status, head, _) = live.get(&format!("/{token}"));
    assert_eq!(status, 307, "{head}");
    assert!(head.contains(&format!("location: /{}/\r\n", token.to_lowercase())), "{head}");
    assert_eq!(live.ask("GET", &format!("/{token}"), "evil.example").0, 421);
    // A page of somebody else, whose name was pointed to this machine.
    for host in ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""] {
        let (status, _, body) = live.ask("GET", &format!("/{token}/"), host);
        assert_eq!(status, 421, "{host}: {body}");
    }
    let port = live.address.rsplit(':').next().unwrap();
    assert_eq!(live.ask("GET", &format!("/{token}/"), &format!("localhost:{port}")).0, 200);
    for method in ["POST", "PUT", "DELETE", "OPTIONS"] {
        assert_eq!(live.ask(method, &format!("/{token}/"), &live.address).0, 405, "{method}");
    }
    let long = format!("GET /{token}/ HTTP/1.1\r\nHost: 127.0.0.1\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    assert!(!live.says(&long).starts_with("HTTP/1.1 200"), "100 kB of headers are taken");
    assert!(!live.says("\u{0}\u{1}\r\n\r\n").starts_with("HTTP/1.1 200"));
    assert!(live.measured() < 100, "the run ended before all was asked");
    live.run.send("-INT");
    live.run.end().expect(130);
    let log = fs::read_to_string(scene.results().path("log.txt")).unwrap();
    assert!(!log.contains(&token), "the secret is in log.txt");
}

#[test]
fn viewers_that_say_or_read_nothing_hold_nothing_up() {
    visited(&Scene::new());
}

/// The tries take what they should, and not longer because somebody looks.
#[test]
#[ignore = "rate: runs alone in ./test --all"]
fn viewers_that_say_or_read_nothing_cost_no_time() {
    let scene = Scene::new();
    visited(&scene);
    let journal = scene.results().journal();
    let time = |line: &serde_json::Value| line["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let rounds: Vec<_> = journal.iter().filter(|line| line["event"]["Round"].is_object()).map(time).collect();
    let last = journal.iter().rfind(|line| line["event"]["Outcome"].is_object()).map(time).unwrap();
    let took = last.duration_since(rounds[0]).as_secs_f64();
    assert!(took < 12.0 * 0.25 + 6.0, "{took} s for twelve windows of 0.25 s");
}

/// A run with viewers that say or read nothing, to its end.
fn visited(scene: &Scene) {
    let mut live = served(scene, PLAN);
    live.run.wait_for_outcomes(1);
    // More than are served at once: some say nothing, some a part of a request, some do not read what they asked for.
    let silent: Vec<TcpStream> = (0..20).map(|_| live.connect()).collect();
    let mut slow: Vec<TcpStream> = (0..20).map(|_| live.connect()).collect();
    slow.iter_mut().for_each(|stream| stream.write_all(b"GET / HTTP/1.1\r\nHost: 1").unwrap());
    let mut deaf: Vec<TcpStream> = (0..4).map(|_| live.connect()).collect();
    let path = format!("GET /{}/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", live.token);
    deaf.iter_mut().for_each(|stream| stream.write_all(path.as_bytes()).unwrap());
    // Those are let go after a while, and others have their turn.
    let before = scene.results().outcomes().len();
    live.run.end();
    assert!(before < 12, "the run was over before anybody looked");
    assert_eq!(scene.results().measured().len(), 12 / 2);
    // They were there all the time.
    drop((silent, slow, deaf));
}

/// An idle connection is closed by the server, so that others have their turn.
#[test]
fn a_connection_that_says_nothing_is_closed() {
    let scene = Scene::new();
    // An hour: what is asked for is answered before the run is over, or not at all.
    let live = served(&scene, &PLAN.replace("250ms", "5min"));
    // More than are served at once.
    let idle: Vec<TcpStream> = (0..40).map(|_| live.connect()).collect();
    assert_ne!(live.course(), "");
    let mut first = &idle[0];
    let mut rest = Vec::new();
    assert_eq!(first.read_to_end(&mut rest).unwrap(), 0);
    assert_ne!(live.course(), "", "it was the run's end that closed it");
    live.run.kill();
}

#[test]
fn an_address_that_cannot_be_used_is_told_before_anything_is_made() {
    let scene = Scene::new();
    let plan = scene.write("plan.toml", PLAN);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (address, code, words) in [
        (address.as_str(), 4, address.as_str()),
        // TEST-NET-1 of RFC 5737: of no machine.
        ("192.0.2.1:8080", 4, "192.0.2.1:8080"),
        ("head01:8080", 2, "head01:8080"),
    ] {
        let output = program()
            .arg("run")
            .arg(format!("--live={address}"))
            .arg("-o")
            .arg(scene.run_directory())
            .arg(&plan)
            .output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.contains(words), "{said}");
        assert!(!Path::new(&scene.run_directory()).exists(), "{address}: a run directory was made");
    }
}

#[test]
fn an_address_that_others_reach_is_warned_of() {
    let scene = Scene::new();
    let plan = scene.write("plan.toml", &PLAN.replace("250ms", "10ms"));
    let mut command = program();
    // The whole network 127/8 is loopback; the unspecified address is not.
    command.args(["run", "--live=0.0.0.0", "-o"]).arg(scene.run_directory()).arg(&plan);
    let ended = scene.spawn(command, "run").end();
    ended.says("not encrypted");
    ended.says("live: http://");
}

/// The page in a real browser, which reaches nothing but the run.
#[test]
fn the_page_is_read_on_a_phone_and_without_scripts() {
    let browser = match browser::browser() {
        Ok(browser) => browser,
        Err(reason) => return skip::skipped(&reason),
    };
    let scene = Scene::new();
    let mut live = served(&scene, &PLAN.replace("250ms", "4s").replace("repeats = 2", "repeats = 9"));
    live.run.wait_for_outcomes(1);
    let mut driver = Driver::start_beside_loopback(browser);
    let page = format!("http://{}/{}/", live.address, live.token);
    for (width, dark) in [(390, true), (1440, false)] {
        driver.window(width, 844, dark);
        driver.go(&page);
        let wide = driver.ask("document.documentElement.scrollWidth").as_u64().unwrap();
        assert!(wide <= u64::from(width), "{wide} px");
        if let Some(axe) = axe::axe() {
            let found = axe::breaches(&mut driver, &axe);
            assert!(found.is_empty(), "at {width}: {found:#?}");
        }
    }
    // The line on how far the run is changes by itself.
    let anew = "new Promise(done => { const line = document.getElementById('course'), old = line.textContent; const look = () => \
                line.textContent === old ? setTimeout(look, 50) : done(true); look(); })";
    assert_eq!(driver.ask(anew), true);
    assert!(driver.complaints.is_empty(), "{:?}", driver.complaints);
    let elsewhere: Vec<_> = driver.requests.iter().filter(|url| !url.starts_with(&page)).collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    driver.scripts(false);
    driver.go(&page);
    let words = driver.ask("document.querySelector('main').innerText");
    assert!(words.as_str().unwrap().contains("% measured"), "{words}");
    live.run.kill();
}
