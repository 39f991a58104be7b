//! Texts of kubectl 1.32 against an API server, and documents as Kubernetes writes them.

use std::time::Duration;

use railgauge_model::plan::model::Kubectl;

use super::*;
use crate::cluster::launcher::kubectl::pod::read;

/// What is told of an end: the remedy and whether another try may help.
fn told(container: Option<&str>, end: Option<i32>, words: &str, known: &Known) -> (String, bool, String) {
    let client = Client::new(&Kubectl {
        namespace: Some("bench".into()),
        container: container.map(str::to_owned),
        ..Kubectl::default()
    });
    let exec = Exec { client: &client, pod: "rg-a", began: "2026-11-25T08:00:00Z".parse().unwrap() };
    match ended(end.map(ProcessEnd::Code).as_ref(), words, known, &exec) {
        Some(Trouble { failure, passing }) => {
            (failure.remedy.map_or("nothing".into(), |remedy| remedy.id.into_owned()), passing, failure.cause)
        }
        None => ("none".into(), false, String::new()),
    }
}

fn pod(status: &str) -> Known {
    let text = format!(
        r#"{{"metadata": {{"name": "rg-a"}}, "spec": {{"nodeName": "gpu1", "containers": [{{"name": "agent"}}]}}, "status": {status}}}"#
    );
    Known::Pod(read(text.as_bytes()).unwrap())
}

fn well() -> Known {
    pod(
        r#"{"phase": "Running", "containerStatuses": [{"name": "agent", "state": {"running": {"startedAt": "2026-11-25T07:00:00Z"}}}]}"#,
    )
}

fn refused(words: &str) -> Known {
    Known::Nothing(NoAnswer::Refused(words.to_owned()))
}

#[test]
fn what_the_api_server_says_of_a_pod_goes_first() {
    // As after a pod is gone: the stream just ends.
    let cut =
        "error: error reading from error stream: next reader: websocket: close 1006 (abnormal closure): unexpected EOF";
    for (status, remedy, passing, says) in [
        (
            r#"{"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."}"#,
            "kubectl-pod-ended",
            false,
            "rg-a in namespace bench was evicted: The node was low on resource: memory.",
        ),
        (r#"{"phase": "Succeeded"}"#, "kubectl-pod-ended", false, "has ended"),
        (r#"{"phase": "Unknown", "reason": "NodeLost"}"#, "kubectl-node", true, "NodeLost"),
        (
            r#"{"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/9 nodes: Insufficient rdma/hca"}]}"#,
            "kubectl-pod-pending",
            true,
            "Unschedulable: 0/9 nodes: Insufficient rdma/hca",
        ),
        (
            r#"{"phase": "Pending", "containerStatuses": [{"name": "agent", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}"#,
            "kubectl-pod-pending",
            true,
            "ImagePullBackOff",
        ),
        (
            r#"{"phase": "Running", "containerStatuses": [{"name": "agent", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}"#,
            "kubectl-pod-pending",
            true,
            "CrashLoopBackOff",
        ),
        (
            r#"{"phase": "Running", "containerStatuses": [{"name": "agent", "state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}}]}"#,
            "kubectl-pod-ended",
            false,
            "OOMKilled, exit code 137",
        ),
        (
            r#"{"phase": "Running", "containerStatuses": [{"name": "agent", "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-11-25T08:00:09Z"}}}]}"#,
            "kubectl-pod-ended",
            true,
            "was restarted",
        ),
        // It was restarted long before.
        (
            r#"{"phase": "Running", "containerStatuses": [{"name": "agent", "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": "2026-11-25T07:00:09Z"}}}]}"#,
            "kubectl-cut",
            true,
            "was cut",
        ),
    ] {
        let (id, again, cause) = told(None, Some(1), cut, &pod(status));
        assert_eq!((id.as_str(), again), (remedy, passing), "{status}");
        assert!(cause.contains(says), "{says}: {cause}");
    }
    let deleted = r#"{"metadata": {"deletionTimestamp": "2026-11-25T08:00:01Z"}, "status": {"phase": "Running"}}"#;
    let deleted = Known::Pod(read(deleted.as_bytes()).unwrap());
    assert!(told(None, Some(137), "command terminated with exit code 137", &deleted).2.contains("is being deleted"));
    let (id, _, cause) = told(Some("other"), Some(1), "", &well());
    assert_eq!(id, "kubectl-container");
    assert!(cause.contains("has no container other; it has agent"), "{cause}");
}

#[test]
fn words_of_kubectl_are_told_apart() {
    let forbidden = "Error from server (Forbidden): pods \"rg-a\" is forbidden: User \"u\" cannot create resource \"pods/exec\" in API \
                     group \"\" in the namespace \"bench\"";
    let unwatched = "Error from server (Forbidden): pods \"rg-a\" is forbidden: User \"u\" cannot get resource \"pods\" in API group \
                     \"\" in the namespace \"bench\"";
    let missing = "Error from server (NotFound): pods \"rg-a\" not found";
    let refuses = "The connection to the server 10.0.0.1:6443 was refused - did you specify the right host or port?";
    let no_sh = "error: Internal error occurred: error executing command in container: failed to exec in container: failed to start \
                 exec \"abc\": OCI runtime exec failed: exec failed: unable to start container process: exec: \"sh\": executable file \
                 not found in $PATH: unknown";
    let logged = "E1125 07:59:03.780000   28846 memcache.go:265] \"Unhandled Error\" err=\"couldn't get current server API group \
                  list: Get \\\"http://127.0.0.1:1/api\\\": dial tcp 127.0.0.1:1: connect: connection refused\"";
    let strange = "Unable to connect to the server: tls: failed to verify certificate: x509: certificate signed by unknown authority";
    for (end, words, known, expected) in [
        (1, "Error in configuration: context was not found for specified context: nope", well(), "kubectl-config"),
        (1, "error: context \"nope\" does not exist", refused(""), "kubectl-config"),
        (1, "error: stat /nope: no such file or directory", refused(""), "kubectl-config"),
        (1, "Error from server (NotFound): namespaces \"bench\" not found", refused(""), "kubectl-config"),
        (1, "error: auth info \"u\" does not exist", refused(""), "kubectl-config"),
        (
            1,
            "error: unable to read certificate-authority /x/ca.crt for c due to open /x/ca.crt: no such file or directory",
            refused(""),
            "kubectl-config",
        ),
        (1, "error: unable to upgrade connection: container does not exist", well(), "kubectl-container"),
        (1, "error: container nope not found in pod rg-a", well(), "kubectl-container"),
        (1, "error: unable to upgrade connection: pod does not exist", well(), "kubectl-node"),
        (1, strange, refused(strange), "kubectl-certificate"),
        (
            1,
            "Error from server: error dialing backend: tls: failed to verify certificate: x509: certificate has expired",
            well(),
            "kubectl-node",
        ),
        (1, "error: You must be logged in to the server (Unauthorized)", refused(""), "kubectl-login"),
        (1, forbidden, well(), "kubectl-forbidden"),
        (1, missing, refused(missing), "kubectl-no-pod"),
        // The pod was deleted during the run.
        (137, "command terminated with exit code 137", refused(missing), "kubectl-no-pod"),
        (0, "", refused(missing), "kubectl-no-pod"),
        (
            1,
            "Error from server: error dialing backend: dial tcp 10.0.0.1:10250: connect: connection refused",
            well(),
            "kubectl-node",
        ),
        (1, no_sh, well(), "container-image"),
        (1, "error: unable to upgrade connection: container not found (\"agent\")", well(), "kubectl-container"),
        (1, refuses, refused(refuses), "kubectl-server"),
        (1, &format!("{logged} / {refuses}"), refused(refuses), "kubectl-server"),
        (
            1,
            "Unable to connect to the server: dial tcp: lookup k8s on 10.0.0.2:53: no such host",
            refused(""),
            "kubectl-server",
        ),
        (0, "", Known::Nothing(NoAnswer::Late(Duration::from_secs(4))), "kubectl-cut"),
        // Who may not look at pods is told what is known all the same.
        (0, "", refused(unwatched), "kubectl-cut"),
        (137, "command terminated with exit code 137", refused(unwatched), "container-killed"),
        (137, "command terminated with exit code 137", well(), "container-killed"),
        // Ends of the process itself, and what it writes.
        (3, "the agent says: error from server (forbidden) / command terminated with exit code 3", well(), "none"),
        (127, "railgauge: 1: exec: /root/use-1: not found / command terminated with exit code 127", well(), "none"),
        (1, "command terminated with exit code 1", well(), "none"),
    ] {
        assert_eq!(told(None, Some(end), words, &known).0, expected, "{end} {words} {known:?}");
    }
}

#[test]
fn a_selector_that_the_api_server_does_not_take_is_told() {
    let words = "Error from server (BadRequest): Unable to find \"/v1, Resource=pods\" that match label selector \"a==b==c\", field \
                 selector \"\": unable to parse requirement: found '==', expected: ',' or 'end of string'";
    let (kind, remedy) = unlisted(&NoAnswer::Refused(words.into()));
    assert_eq!((kind, remedy.id), (Kind::Configuration, "kubectl-selector"));
}

#[test]
fn remedies_reach_what_the_plan_reaches() {
    let client = Client::new(&Kubectl {
        namespace: None,
        context: Some("far".into()),
        kubeconfig: Some("/x/config".into()),
        container: Some("agent".into()),
    });
    let exec = Exec { client: &client, pod: "rg-a", began: Timestamp::now() };
    let command = |entry: Entry| exec.with(entry).commands().remove(0).command;
    assert_eq!(
        command(remedy::KUBECTL_BY_HAND),
        "kubectl --kubeconfig /x/config --context far exec --stdin rg-a --container agent -- sh -c 'echo here'"
    );
    assert_eq!(command(remedy::KUBECTL_NODE), "kubectl --kubeconfig /x/config --context far describe node NODE");
}

#[test]
fn a_stream_that_was_cut_is_told_whatever_the_status_of_kubectl() {
    for end in [Some(0), Some(1)] {
        let (id, passing, cause) = told(None, end, "", &well());
        assert_eq!((id.as_str(), passing), ("kubectl-cut", true));
        assert!(cause.contains("was cut") && cause.contains("says that the pod runs"), "{cause}");
    }
    let (logged, over) = ("Unknown stream id 3, discarding message", "error: closed all streams");
    let dropped = format!("E1128 04:21:02.460687   20362 websocket.go:296] {logged}\n{over}");
    assert_eq!(told(None, Some(1), &dropped, &well()).0, "kubectl-dropped");
    // The words of a process.
    assert_eq!(told(None, Some(1), logged, &well()).0, "kubectl-cut");
    let late = Known::Nothing(NoAnswer::Late(Duration::from_secs(4)));
    assert_eq!(told(None, None, "", &late).0, "kubectl-server");
    let (id, _, cause) = told(None, None, "", &well());
    assert_eq!(id, "kubectl-cut");
    assert!(cause.contains("nothing comes from the pod rg-a"), "{cause}");
}
