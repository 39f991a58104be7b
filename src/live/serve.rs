//! Connections: their number, duration and permissions.
//!
//! A request must know the token, must name this server by an IP address or as `localhost` (others could point a name to this machine), and
//! must be GET or HEAD. No part of it names a file.

use std::{convert::Infallible, net::IpAddr, net::TcpListener, sync::Arc, time::Duration};

use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{
        ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderValue, LOCATION, REFERRER_POLICY,
        X_CONTENT_TYPE_OPTIONS,
    },
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use railgauge_report::live;
use tokio::{
    sync::{Semaphore, oneshot},
    time::{sleep, timeout},
};

use super::{
    shelf::{NotDrawn, Pages},
    token::Token,
};

/// Connections at once; further ones wait until one of them ends.
const CONNECTIONS: usize = 32;
const REQUEST: Duration = Duration::from_secs(5);
/// Time for a connection, including rendering and sending.
const CONNECTION: Duration = Duration::from_secs(120);
/// Longest request with all its headers, in bytes: the least that the library allows, which is more than browsers send.
const LONGEST: usize = 8192;
const HEADERS: usize = 64;
/// Time between two tries where no connection can be accepted, for example for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(200);

/// Time to accept clients that connected before the end of the run.
const COMING: Duration = Duration::from_millis(20);
/// Time to answer accepted clients after the end of the run.
pub(super) const LAST: Duration = Duration::from_secs(1);

type Answer = Response<Full<Bytes>>;

/// Serves until asked to stop, or until the sender is dropped. Earlier requests are answered, for at most [`LAST`].
pub(super) async fn serve(listener: TcpListener, token: Token, pages: Pages, stopped: oneshot::Receiver<()>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let (token, pages) = (Arc::new(token), Arc::new(pages));
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let take = async || loop {
        // Never closed, so a permit becomes available eventually.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            sleep(PAUSE).await;
            continue;
        };
        let (token, pages) = (Arc::clone(&token), Arc::clone(&pages));
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let (token, pages) = (Arc::clone(&token), Arc::clone(&pages));
                async move { Ok::<_, Infallible>(answer(&request, &token, &pages).await) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new())
                .header_read_timeout(REQUEST)
                .max_buf_size(LONGEST)
                .max_headers(HEADERS)
                .keep_alive(false);
            // Drops clients that send nothing, or read nothing.
            let _ = timeout(CONNECTION, http.serve_connection(TokioIo::new(stream), service)).await;
            drop(place);
        });
    };
    tokio::select! {
        () = take() => {}
        _ = stopped => {}
    }
    // Connections that hold all permits may be idle.
    places.add_permits(CONNECTIONS);
    let _ = timeout(COMING, take()).await;
    drop(listener);
    #[expect(clippy::cast_possible_truncation, reason = "64")]
    let _ = timeout(LAST, places.acquire_many(2 * CONNECTIONS as u32)).await;
}

/// The host of a `Host` header, if it is one that others cannot point to this machine.
fn is_own(host: Option<&HeaderValue>) -> bool {
    let Some(host) = host.and_then(|host| host.to_str().ok()) else { return false };
    let is_port = |port: &str| port.is_empty() || port.parse::<u16>().is_ok();
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or((host, ""), |(name, port)| (name, port)),
        None => host.split_once(':').map_or((host, ""), |(name, _)| (name, &host[name.len()..])),
    };
    let is_name = name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok();
    is_name && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
}

async fn answer(request: &Request<Incoming>, token: &Token, pages: &Pages) -> Answer {
    let answer = answered(request, token, pages).await;
    let mut answer = answer.unwrap_or_else(|(status, why)| text(status, why.into()));
    if answer.status() == StatusCode::METHOD_NOT_ALLOWED {
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    let headers = answer.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    answer
}

async fn answered(request: &Request<Incoming>, token: &Token, pages: &Pages) -> Result<Answer, (StatusCode, String)> {
    let refused = |status, why: &str| Err((status, format!("{why}\n")));
    if !is_own(request.headers().get(HOST)) {
        return refused(StatusCode::MISDIRECTED_REQUEST, "open this page by an IP address or as localhost");
    }
    if request.method() != Method::GET && request.method() != Method::HEAD {
        return refused(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD");
    }
    let Some(path) = token.behind(request.uri().path()) else {
        return refused(StatusCode::FORBIDDEN, "the address lacks the secret that `railgauge run --live` printed");
    };
    match path {
        "/" => {
            let page = pages.report().await.map_err(|why: NotDrawn| (StatusCode::SERVICE_UNAVAILABLE, why + "\n"))?;
            let mut answer = of("text/html; charset=utf-8", page);
            if let Ok(policy) = HeaderValue::from_str(&live::policy()) {
                answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
            }
            Ok(answer)
        }
        "/course" => Ok(text(StatusCode::OK, (pages.course)().into())),
        // Links of the page are relative to an address with a slash.
        "" => {
            let mut answer = text(StatusCode::TEMPORARY_REDIRECT, "the address ends with a slash\n".into());
            let whole = HeaderValue::try_from(format!("{}/", request.uri().path()));
            whole.into_iter().for_each(|whole| drop(answer.headers_mut().insert(LOCATION, whole)));
            Ok(answer)
        }
        _ => refused(StatusCode::NOT_FOUND, "no such page exists"),
    }
}

fn of(kind: &'static str, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

fn text(status: StatusCode, body: Bytes) -> Answer {
    let mut answer = of("text/plain; charset=utf-8", body);
    *answer.status_mut() = status;
    answer
}

#[cfg(test)]
mod tests {
    use std::{
        io::{ErrorKind, Read, Write},
        net::TcpStream,
    };

    use super::*;

    #[test]
    fn who_asked_before_the_end_is_answered_and_who_says_nothing_is_not_waited_for() {
        // Silent clients are awaited for as long as an answer may take, so few tries have them. Some have all the permits of a run.
        const SILENT: [usize; 12] = [1, CONNECTIONS, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        for silent in SILENT {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            listener.set_nonblocking(true).unwrap();
            let silent: Vec<_> = (0..silent).map(|_| TcpStream::connect(address).unwrap()).collect();
            let mut asked = TcpStream::connect(address).unwrap();
            asked.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
            let (stop, stopped) = oneshot::channel();
            drop(stop);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(serve(
                listener,
                Token::new().unwrap(),
                Pages::of("records.jsonl".into(), Arc::new(String::new)),
                stopped,
            ));
            // During a run a silent connection is closed after a while, and no client waited for that.
            for mut one in silent {
                one.set_nonblocking(true).unwrap();
                assert_eq!(one.read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
            }
            drop(runtime);
            let mut answer = String::new();
            asked.read_to_string(&mut answer).unwrap();
            assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
            assert!(TcpStream::connect(address).is_err());
        }
    }

    #[test]
    fn only_names_that_nobody_else_can_give_are_taken() {
        let own = |host: &'static str| is_own(Some(&HeaderValue::from_static(host)));
        for host in ["127.0.0.1", "127.0.0.1:80", "localhost", "LOCALHOST:8080", "[::1]", "[::1]:9", "10.0.0.7:8080"] {
            assert!(own(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:80",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "localhost:x",
            "localhost:80:80",
            "[::1",
            "[::1]x",
            "[evil]:80",
            "127.0.0.1@evil",
            "127.0.0.1:99999",
        ] {
            assert!(!own(host), "{host}");
        }
        assert!(!is_own(None));
    }
}
