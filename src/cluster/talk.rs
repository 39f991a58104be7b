use std::io::Cursor;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{
    Output, Pipe, Sink,
    pipe::{KEPT, Source},
    script,
};

/// Most bytes of other output that are passed on: less than what may precede an agent's greeting.
const CHATTER: usize = 16 << 10;

/// A running script that answers line by line. Other output is kept for the log.
pub(super) struct Talk {
    pipe: Pipe,
    heard: Heard,
}

#[derive(Default)]
struct Heard {
    begun: Vec<u8>,
    chatter: Vec<u8>,
    errors: Vec<u8>,
    is_silent: bool,
}

impl Talk {
    pub(super) fn new(pipe: Pipe) -> Self {
        Self { pipe, heard: Heard::default() }
    }

    /// `None` once its output has ended. Cancel-safe.
    pub(super) async fn answer(&mut self) -> Option<String> {
        self.heard.answer(&mut self.pipe.stdout, &mut self.pipe.stderr).await
    }

    /// Sends bytes and returns the next answer, which may arrive before all are sent, for example on a full disk.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> Option<String> {
        let Self { pipe: Pipe { stdin, stdout, stderr, .. }, heard } = self;
        tokio::select! {
            answer = heard.answer(stdout, stderr) => answer,
            never = feed(stdin, bytes) => match never {},
        }
    }

    pub(super) async fn over(self) -> Output {
        let Self { pipe, heard } = self;
        pipe.run_on(b"", heard.errors).await
    }

    pub(super) fn agent(self) -> Pipe {
        let Self { pipe, heard: Heard { begun, mut chatter, errors, .. } } = self;
        chatter.extend(begun);
        let Pipe { stdout, stderr, .. } = pipe;
        let again = |bytes: Vec<u8>, rest: Source| -> Source { Box::new(Cursor::new(bytes).chain(rest)) };
        Pipe { stdout: again(chatter, stdout), stderr: again(errors, stderr), ..pipe }
    }
}

/// Writes everything, then stays pending: the script's answer counts, not whether writing succeeded.
async fn feed(stdin: &mut Sink, bytes: &[u8]) -> std::convert::Infallible {
    let _ = stdin.write_all(bytes).await;
    let _ = stdin.flush().await;
    std::future::pending().await
}

impl Heard {
    async fn answer(&mut self, stdout: &mut Source, stderr: &mut Source) -> Option<String> {
        let (mut out, mut err) = ([0; 4096], [0; 4096]);
        loop {
            if let Some(answer) = self.line() {
                return Some(answer);
            }
            tokio::select! {
                read = stdout.read(&mut out) => match read {
                    Ok(count @ 1..) => self.begun.extend(&out[..count]),
                    _ => return None,
                },
                read = stderr.read(&mut err), if !self.is_silent => match read {
                    Ok(count @ 1..) => keep(&mut self.errors, &err[..count], KEPT as usize),
                    _ => self.is_silent = true,
                },
            }
        }
    }

    fn line(&mut self) -> Option<String> {
        while let Some(end) = self.begun.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.begun.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line);
            match script::answer(&text) {
                Some((chatter, answer)) => {
                    if !chatter.is_empty() {
                        keep(&mut self.chatter, format!("{chatter}\n").as_bytes(), CHATTER);
                    }
                    return Some(answer.to_owned());
                }
                None => keep(&mut self.chatter, &line, CHATTER),
            }
        }
        // A line without an end holds no answer, whatever its length.
        if self.begun.len() > KEPT as usize {
            keep(&mut self.chatter, &self.begun, CHATTER);
            self.begun.clear();
        }
        None
    }
}

fn keep(kept: &mut Vec<u8>, bytes: &[u8], most: usize) {
    kept.extend(&bytes[..bytes.len().min(most.saturating_sub(kept.len()))]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::pipe::{Behind, ProcessEnd};

    fn said(stdout: &'static [u8], stderr: &'static [u8]) -> (Talk, tokio::io::DuplexStream) {
        let (here, there) = tokio::io::duplex(1 << 20);
        let pipe = Pipe {
            stdin: Box::new(here),
            stdout: Box::new(stdout),
            stderr: Box::new(stderr),
            end: Box::pin(std::future::ready(ProcessEnd::Code(1))),
            kill: None,
            way: Behind::default(),
        };
        (Talk::new(pipe), there)
    }

    #[tokio::test]
    async fn answers_come_one_by_one_and_all_else_is_the_agents() {
        let out = b"Welcome\nno newline: @railgauge machine m\r\n@railgauge have\nbinary \x00 without an end";
        let (mut talk, _stdin) = said(out, b"careful\n");
        assert_eq!(talk.answer().await.as_deref(), Some("machine m"));
        assert_eq!(talk.answer().await.as_deref(), Some("have"));
        let mut pipe = talk.agent();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        pipe.stdout.read_to_end(&mut stdout).await.unwrap();
        pipe.stderr.read_to_end(&mut stderr).await.unwrap();
        assert_eq!(stdout, b"Welcome\nno newline: \nbinary \x00 without an end");
        assert_eq!(stderr, b"careful\n");
    }

    #[tokio::test]
    async fn a_script_that_ends_early_tells_why() {
        let (mut talk, _stdin) = said(b"@railgauge missing\n", b"mkdir: no\n");
        assert_eq!(talk.answer().await.as_deref(), Some("missing"));
        assert_eq!(talk.send(&[7; 10]).await, None);
        let output = talk.over().await;
        assert_eq!((output.end, output.stderr), (ProcessEnd::Code(1), b"mkdir: no\n".to_vec()));
    }

    #[tokio::test]
    async fn what_is_sent_arrives_whole() {
        let (mut talk, mut stdin) = said(b"", b"");
        let (here, mut there) = tokio::io::duplex(64);
        talk.pipe.stdout = Box::new(here);
        let bytes = vec![7; 3000];
        let reading = async {
            let mut read = vec![0; 3000];
            stdin.read_exact(&mut read).await.unwrap();
            there.write_all(b"@railgauge stored\n").await.unwrap();
            read
        };
        let (answer, read) = tokio::join!(talk.send(&bytes), reading);
        assert_eq!((answer.as_deref(), read), (Some("stored"), bytes.clone()));
    }
}
