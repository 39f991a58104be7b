//! The texts of reasons, by id. `{name}` is a value, `{name:noun}` a count with its noun, `{subject}` the subject of
//! the reason, `{place}` its case. A part in brackets is left out if a value in it is absent.

use serde::Serialize;

macro_rules! reasons {
    ($($id:ident: $text:expr,)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Id {
            $($id,)*
        }

        impl Id {
            pub const ALL: &[Self] = &[$(Self::$id,)*];

            pub const fn text(self) -> &'static str {
                match self {
                    $(Self::$id => $text,)*
                }
            }
        }
    };
}

macro_rules! hit {
    ($text:literal) => {
        concat!($text, "[, {flows:flow} hit][, {stalls:stall} of {stalled} in all][, longest {longest_stall}]")
    };
}

reasons! {
    // The run as a whole.
    Interrupted: "the run was interrupted",
    Prevented: "the run could not continue: {cause}",
    BrokeOff: "the run broke off (the controller was killed, or its machine went down)",
    StillRunning: "the run has not finished",
    Unreadable: "{places:place} of records.jsonl cannot be read; first line {line}: {cause}",
    Contradictory: "{lines:line} of records.jsonl cannot be right; first line {line}: {cause}",
    Lost: "[{several:host} lost: {hosts}; first: ][{one}host lost: ]{failure}",
    CameBack: "lost and back: {hosts}[ ({several:host}); first]: {failure}",
    MissedSoak: "lost in the soak and back, what was missed is not measured again: {hosts}[ ({several:host}); first]: {failure}",
    Silent: "the records have neither an answer nor a failure of {hosts}",
    Unused: "no case measures {hosts}",
    UndoFailed: "`{test}`: {failure}",
    UndoNotReached: "`undo` of `{test}`[ at `{value}`] did not run",
    // Values that `[preflight]` wants.
    Unmet: "[{key} is ]{departures}[; the plan requires {wanted}] ({times} of {of} differ)",
    Unread: "[{key}: ]{times} of {of} could not be read: {departures}",
    NotPresent: "no host has it",
    Met: "met on {times:host}",
    // That every case was measured.
    NonePlanned: "no case was planned",
    FurtherWrongBytes: "wrong bytes in {cases:further case}: {place}: {error}",
    WrongMemory: "memory does not keep what is written to it: {subject}",
    Incomplete: "{cases} of {of:case} incomplete: {states}; worst: {place}: {error}",
    NoneRun: "none of {of:case} ran: [{place}: ]{error}",
    VerificationOff: "{of:case} measured, but the plan switches verification off (verify = false)",
    Measured: "{of:case} measured[; {verified_bytes} verified, 0 bytes wrong]",
    LostPackets: "packets lost[ at {parts}] in {cases:case}; most: {place}: {error}",
    // Limits.
    WrongBytes: "wrong bytes in {cases} of {of:case}: {place}: {error}",
    Broken: "{cases} of {of:case} missed the limit of {required}; worst: {place}: {observed} ({share} it)[, meanwhile {gpus}][: {nics}][: {flow}]",
    NotYielded: "the test does not yield {metric}",
    NothingInScope: "no case is in scope ({scope})",
    NotMeasured: "{cases} of {of:case} not measured: {error}",
    NotTrusted: "{cases} of {of:case} not trusted: {place}: {error}",
    Unlimited: "{cases} of {of:case} not judged: {why}",
    OthersKept: "the other {cases} met the limit",
    Kept: "limit met in {of:case}[; closest: {place}: {observed} ({share} {required})]",
    // Why a value has no limit.
    OtherThanSource: "the limit of {system} does not apply: it is published for {required}, and this is {observed}",
    NoCeiling: "the ceiling of the link is unknown (its rate is not reported or not proven, or software emulates it)",
    AboveCeiling: "{subject} reached {observed}, and its ceiling is {required}: the rate of the link or its slot was read wrong \
        (docs/methods.md; what was read is in facts.json)",
    FewPeers: "fewer than {required} other links of the same size and rail were measured",
    NoBaseline: "the plan has no baseline",
    BaselineWithoutTest: "the baseline has no test {test}",
    BaselineOfOtherSettings: "the baseline was measured with other settings: {difference}",
    BaselineScatters: "{value} is worse than the limit, but within {deviations} standard deviations of the baseline, whose values scatter by {spread_percent}",
    NothingCarried: "nothing carried its bytes",
    BaselineWithoutLink: "the baseline has no {metric} of such a link",
    HostsUnknown: "what its hosts are is not known",
    BaselineOfOtherHardware: "the baseline is of other hardware: {differences}",
    BaselineOfFewValues: "the baseline rests on {values:value} of such a link, and {needed} are needed",
    TooFewOperations: "{few}",
    OneMachine: "{subject} are one machine: its ports share more than the fabric",
    NoScatter: "{repeats:repeat} are too few to separate it from noise",
    WithinNoise: "{observed} is within the noise of the repeats ({low} to {high})",
    // Components of a test.
    Faulty: "{parts} {change} {metric} (confirmed)",
    FaultyAtTimes: "{parts} {change} {metric}[ in {bad_share} of the results] (intermittent)",
    Suspect: "{parts} {change} {metric} (suspect, not measured again)",
    Undecided: "{parts} {change} {metric} (undecided)",
    TwoClusters: "{good} and {bad} form two clusters ({high} and {low}); the component that separates them is unknown",
    LinksStandOut: "{links:outlier link}, not measured again: {subject} ({size}[, {change}])[; all are flows of {shared_host}]",
    GroupsUnlike: "{detail}",
    CarryLess: "{detail}",
    Unexplained: "{detail}",
    OverTime: "{detail}",
    TooNoisy: "values scatter too much: {detail}",
    Waived: "waived by the plan: {parts}",
    NothingStandsOut: "no outlier among {among}[ (a flow below {below} of good flows would be one)]",
    AcrossRails: "{detail}",
    NotTested: "{detail}",
    // Links between switches.
    LinkStandsOut: "[{several}one of ]{subject} ({standing}): {change}[ ({interval})], {low:flow} through it low, {good} good",
    LinkCleared: "{subject} was good when measured again",
    LinksSearched: "[{none}no outlier: ]{flows:judged flow} passed {passed} of {of:direction} of switch cables",
    LinksUnexplained: "{flows:low flow} that no link explains: their links are good in other flows",
    LinksTooNoisy: "values scatter too much: a link at half its rate would not be an outlier",
    LinksNotMeasured: "no trusted value of {flows:flow} with a known path",
    LinksUndecided: "{flows:low flow} not judged: other traffic was on links of unknown rate",
    LinksFull: "{flows:low flow} not judged: other traffic filled its links",
    LinksLoaded: "{loaded} of {of} directions of switch links carried {from} of their rate or more",
    LinksNotLoaded: "not loaded: {subject}",
    LinksImpossible: "{links:direction} carried more than the rate, {subject} {percent} of it: set the right `link_rate`, or check the topology",
    LinksNoRate: "the rate of {links:direction} is unknown",
    LinksOpenFlows: "which of several equal paths {flows:flow} took is unknown without forwarding tables",
    LinksUnknownWays: "the path of {flows:flow} is unknown: {why}",
    NoLinks: "the topology has no link between switches",
    LinksNothingMeasured: "no flow of this test was measured",
    // The soak.
    SoakLasted: "{observed} of traffic, {flows:flow}",
    SoakShort: "{observed} of traffic, {missing} missing[; {running}the run has not finished]",
    SoakNothing: "no traffic of the soak was recorded[; {running}the run has not finished]",
    SoakIdleFlows: "no window of {count:planned flow} was measured: {subject}",
    SoakWatched: "{ports:port} watched, least {subject} ({percent} of the time)",
    SoakNotWatched: "{ports} of {of:port} watched for less than {required} of the time, least {subject} ({percent})[: {failure}]",
    SoakUnknownEnds: "the device of {ends:end} is unknown, and so is whether its port was watched",
    SoakNotReported: "no agent has reported its ports yet",
    SoakHole: "{subject} not watched for {length} from {from}",
    SoakDown: hit!("{subject} down for {observed} from {begin}"),
    SoakBreaks: hit!("{subject}: {breaks:break} shorter than the time between two readings, by its counter, after {begin}"),
    SoakStalled: "[{host}: agent lost at {lost_at}: ]{flow} stalled for {observed} from {begin}[ until the traffic ended at {until}]\
        [, longest of {stalls:stall} of {stalled} in all, {flows:flow} hit][; {ports_watched}]",
    SoakWindowFailed: "[{host}: agent lost at {lost_at}: ]{flow}: a window failed at {begin}[, one of {stalls}][; {ports_watched}]",
    SoakLower: "{subject} ran at {lower} for {observed} from {begin}",
    SoakPerhapsTooLong: "perhaps too long: {event}",
    SoakShorter: "{events:event} within the limit, longest: {event}",
    SoakMore: "and {more}",
    SoakNoOutage: "[{unseen}in what was seen ]{ports:watched port} stayed up and {flows:flow} never stalled",
    SoakFullRate: "{ports:watched port} kept their rate and lanes",
    SoakUnknownRate: "{ports} of {of:watched port} report neither rate nor lanes",
    SoakOverLimit: "{counter} of {subject}: {observed} at {at}",
    SoakLimitKept: "[at most {observed}, at {subject}][{never}never rose]; {counted_by} of {ports:watched port} count it",
    SoakLevel: "{observed} at {subject}[, {ports:port} in all]: {level} from {required} on ({source})",
    SoakLevelKept: "{observed} at most, at {subject}",
    SoakLevelUnjudged: "{ports} of {of:port} not judged, such as {subject}: {why}",
    SoakNotCounted: "{counted_by} of {ports:watched port} count it",
    SoakWrongBytes: "{observed:wrong byte} in {subject}[, all with {host}]",
    SoakFailed: "[{host}: agent lost at {lost_at}: ]{windows:window} of {subject} failed[; {unexplained}no outage of their ports][: {failure}]",
    SoakFailedInOutages: "{windows:window} failed in outages of their ports",
    SoakNotVerified: "no byte of {subject} was verified",
    SoakVerified: "{verified_bytes} verified in {windows:window}",
    SoakVerificationOff: "{windows:window}; the plan switches verification off",
    SoakGpuError: "{subject}: {error}[, in {parts:part}]",
    SoakGpuSlowed: "{subject}: {slowed}[, in {parts:part}]",
    SoakGpuFailed: "a window of {subject} failed: {failure}",
    SoakGpusUnread: "{subject} not read in {unread} of {windows:window}[: {failure}]",
    SoakGpusBlind: "{count:GPU} report neither errors nor Xids: {subject}",
    SoakGpusSilent: "{count:host} reported no GPU: {subject}",
    SoakGpusWell: "{gpus:GPU} without an error",
    SoakWithoutXids: "Xids of {gpus:GPU} could not be read in every window",
    // Places of the hosts, where the plan has them.
    Where: "location: {places}",
}
