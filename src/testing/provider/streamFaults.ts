/**
 * Faults of an event stream: each changes the draft of a round.
 */
import type { FaultSpec } from "./Reply.ts"
import type { Draft, EventItem, Item, StopItem, Wire } from "./wire.ts"

/** The index at which the end of the reply begins. */
const endingOf = (draft: Draft): number => {
  const index = draft.items.indexOf(draft.ending)
  return index === -1 ? draft.items.length : index
}

/** The index of the first item after `pieces` pieces of the round; the end of the reply if the round has fewer. */
const indexAfter = (draft: Draft, pieces: number): number => {
  if (pieces <= 0) return draft.items.findIndex((item) => !(item._tag === "Event" && item.event === "ready"))
  const found = draft.items.findIndex((item) => item._tag !== "Stop" && item.sent >= draft.from + pieces)
  return found === -1 ? endingOf(draft) : Math.min(found + 1, endingOf(draft))
}

const cutAt = (draft: Draft, at: number, ...rest: ReadonlyArray<Item>): Draft => ({
  ...draft,
  items: [...draft.items.slice(0, at), ...rest]
})

const stop = (how: StopItem["how"]): StopItem => ({ _tag: "Stop", how })

const sentAt = (draft: Draft, index: number): number => {
  const before = draft.items[index - 1]
  return before === undefined || before._tag === "Stop" ? draft.from : before.sent
}

const event = (name: string | undefined, data: string, sent: number): EventItem => ({
  _tag: "Event",
  event: name,
  data,
  sent,
  wait: 0
})

const closing = (sent: number): EventItem => event("close", "{\"click_behavior\":\"none\"}", sent)

/** The service gives up: a `hint` or a `toast`, then the end. */
const giveUp = (name: "hint" | "toast") => (fault: FaultSpec, draft: Draft): Draft => {
  const at = indexAfter(draft, fault.after ?? 0)
  const sent = sentAt(draft, at)
  const data = {
    type: "error",
    content: fault.message ?? "The service is busy. Try again later.",
    finish_reason: fault.reason ?? "rate_limit_reached"
  }
  return cutAt(draft, at, event(name, JSON.stringify(data), sent), closing(sent))
}

/** The reply ends with another status. */
const endWith = (status: string, fragments: boolean) => (fault: FaultSpec, draft: Draft): Draft => {
  const at = indexAfter(draft, fault.after ?? 0)
  const sent = sentAt(draft, at)
  const withdrawn = {
    p: "response/fragments",
    o: "SET",
    v: [{ id: 1, type: "TEMPLATE_RESPONSE", content: fault.message ?? "Let us talk about something else." }]
  }
  return cutAt(
    draft,
    at,
    ...(fragments ? [event(undefined, JSON.stringify(withdrawn), sent)] : []),
    event(undefined, JSON.stringify({ p: "response/status", o: "SET", v: status }), sent),
    closing(sent)
  )
}

const stopAfter = (how: StopItem["how"], fallback: number) => (fault: FaultSpec, draft: Draft): Draft =>
  cutAt(draft, indexAfter(draft, fault.after ?? fallback), stop(how))

/** A snapshot of the pieces that have left, if the round starts with a snapshot. */
const repeated = (draft: Draft): ReadonlyArray<Item> => draft.repeated === undefined ? [] : [draft.repeated]

const isClose = (item: Item): boolean => item._tag === "Event" && item.event === "close"

const onWire = (change: (fault: FaultSpec) => Partial<Wire>) => (fault: FaultSpec, draft: Draft): Draft => ({
  ...draft,
  wire: { ...draft.wire, ...change(fault) }
})

const lastSent = (draft: Draft): number => sentAt(draft, draft.items.length)

const chatter = (i: number, sent: number): EventItem => {
  switch (i % 4) {
    case 0:
      return event("update_session", "{\"updated_at\":1760000000.1}", sent)
    case 1:
      return event("title", "{\"content\":\"A title, never reply text\"}", sent)
    case 2:
      return event("something_new", "{\"v\":\"never reply text\"}", sent)
    default:
      return event("finish", "{}", sent)
  }
}

/** What a stream fault does. */
interface StreamFaultRow {
  readonly about: string
  readonly stream: (fault: FaultSpec, draft: Draft) => Draft
  /** The fault applies to continued streams only. */
  readonly continued?: true
}

/** Stream faults by name. */
export const streamFaults = {
  "empty-stream": { about: "the head of a stream, then its end", stream: (_, draft) => cutAt(draft, 0, stop("end")) },
  "reset-before-events": {
    about: "the connection breaks after the head",
    stream: (_, draft) => cutAt(draft, 0, stop("reset"))
  },
  "hang-before-events": { about: "silence after the head", stream: (_, draft) => cutAt(draft, 0, stop("hang")) },
  "reset-mid-stream": { about: "the connection breaks", stream: stopAfter("reset", 1) },
  "hang-mid-stream": { about: "the stream falls silent", stream: stopAfter("hang", 1) },
  "cut-off": { about: "the stream ends in mid-reply, without a status", stream: stopAfter("end", 1) },
  "no-status": {
    about: "the whole text, then the end without a status",
    stream: (_, draft) => cutAt(draft, endingOf(draft), stop("end"))
  },
  "broken-line": {
    about: "a `data` line whose JSON breaks off; the stream goes on",
    stream: (fault, draft) => {
      const at = indexAfter(draft, fault.after ?? 1)
      const broken = event(undefined, "{\"p\":\"response/fragments/-1/content\",\"o\":\"APP", sentAt(draft, at))
      return { ...draft, items: [...draft.items.slice(0, at), broken, ...draft.items.slice(at)] }
    }
  },
  "hint": {
    about: "the service gives up; `reason=` rate_limit_reached (default), input_exceeds_limit or another",
    stream: giveUp("hint")
  },
  "toast": { about: "as `hint`, in a `toast`", stream: giveUp("toast") },
  "content-filter": {
    about: "CONTENT_FILTER, with the fragments replaced by a canned one",
    stream: endWith("CONTENT_FILTER", true)
  },
  "timeout-status": { about: "status TIMEOUT", stream: endWith("TIMEOUT", false) },
  "error-status": { about: "status ERROR", stream: endWith("ERROR", false) },
  "no-ready": {
    about: "no `ready` event",
    stream: (_, draft) => ({
      ...draft,
      items: draft.items.filter((item) => !(item._tag === "Event" && item.event === "ready"))
    })
  },
  "no-close": {
    about: "no `close` event: the connection just ends",
    stream: (_, draft) => ({ ...draft, items: draft.items.filter((item) => !isClose(item)) })
  },
  "done": {
    about: "`[DONE]` after the `close` event",
    stream: (_, draft) => ({ ...draft, items: [...draft.items, event(undefined, "[DONE]", lastSent(draft))] })
  },
  "done-only": {
    about: "`[DONE]` in place of the `close` event",
    stream: (_, draft) => ({
      ...draft,
      items: draft.items.map((item) => isClose(item) ? event(undefined, "[DONE]", lastSent(draft)) : item)
    })
  },
  "linger": {
    about: "the connection stays open after the last event",
    stream: (_, draft) => ({ ...draft, items: [...draft.items, stop("hang")] })
  },
  "crlf": { about: "CR LF line ends", stream: onWire(() => ({ lineEnd: "\r\n" })) },
  "cr": { about: "CR line ends", stream: onWire(() => ({ lineEnd: "\r" })) },
  "comments": { about: "a comment before every event", stream: onWire(() => ({ comments: true })) },
  "retry-lines": { about: "`id` and `retry` lines in every event", stream: onWire(() => ({ retryLines: true })) },
  "multi-line-data": { about: "data over two lines", stream: onWire(() => ({ multiLine: true })) },
  "no-space": { about: "no space after the colon", stream: onWire(() => ({ space: false })) },
  "chatter": {
    about: "`update_session`, `title`, `finish` and unknown events between the others",
    stream: (_, draft) => ({
      ...draft,
      items: draft.items.flatMap((item, i): ReadonlyArray<Item> =>
        item._tag !== "Event" || item.event === "ready" ? [item] : [chatter(i, sentAt(draft, i)), item]
      )
    })
  },
  "trickle": {
    about: "byte by byte (`ms=N` between)",
    stream: onWire((fault) => ({ cut: "bytes", cutWait: fault.millis ?? 0 }))
  },
  "split-utf8": {
    about: "chunks that end inside characters",
    stream: onWire((fault) => ({ cut: "characters", cutWait: fault.millis ?? 0 }))
  },
  "disagree": {
    about: "a continued snapshot that differs from what was sent (on `continue`)",
    continued: true,
    stream: (_, draft) => ({
      ...draft,
      items: draft.items.map((item) =>
        item._tag === "Event" && item.data.startsWith("{\"v\":{\"response\":")
          ? { ...item, data: item.data.replaceAll("content\":\"", "content\":\"No. ") }
          : item
      )
    })
  },
  "nothing-new": {
    about: "a continued stream that repeats what was sent and ends without a status (on `continue`)",
    continued: true,
    stream: (_, draft) => cutAt(draft, indexAfter(draft, 0), ...repeated(draft), stop("end"))
  },
  "incomplete-nothing": {
    about: "INCOMPLETE again, without a new piece (on `continue`)",
    continued: true,
    stream: (_, draft) => {
      const at = indexAfter(draft, 0)
      const status = event(undefined, "{\"p\":\"response/status\",\"o\":\"SET\",\"v\":\"INCOMPLETE\"}", draft.from)
      return cutAt(draft, at, ...repeated(draft), status, closing(draft.from))
    }
  }
} as const satisfies Readonly<Record<string, StreamFaultRow>>
