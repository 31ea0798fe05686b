/**
 * Faults of an event stream.
 */
import type { Draft, EventItem, Item, StopItem, Wire } from "./Draft.ts"
import type { Fault, StreamFault } from "./Fault.ts"

/** Index at which the end of the reply begins. */
const endingOf = (draft: Draft): number => {
  const index = draft.items.indexOf(draft.ending)
  return index === -1 ? draft.items.length : index
}

/** Index of the first item after the first `pieces` pieces of the round; the end of the reply where there are fewer. */
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
const giveUp = (name: "hint" | "toast") => (fault: Fault, draft: Draft): Draft => {
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
const endWith = (status: string, fragments: boolean) => (fault: Fault, draft: Draft): Draft => {
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

const stopAfter = (how: StopItem["how"], fallback: number) => (fault: Fault, draft: Draft): Draft =>
  cutAt(draft, indexAfter(draft, fault.after ?? fallback), stop(how))

/** A snapshot of just what has been sent, where the round starts with one. */
const repeated = (draft: Draft): ReadonlyArray<Item> => draft.repeated === undefined ? [] : [draft.repeated]

const isClose = (item: Item): boolean => item._tag === "Event" && item.event === "close"

const onWire = (change: (fault: Fault) => Partial<Wire>) => (fault: Fault, draft: Draft): Draft => ({
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

interface StreamRow {
  readonly about: string
  readonly change: (fault: Fault, draft: Draft) => Draft
}

/** Stream faults by name. */
export const streams: Readonly<Record<StreamFault, StreamRow>> = {
  "empty-stream": { about: "the head of a stream and its end", change: (_, draft) => cutAt(draft, 0, stop("end")) },
  "reset-before-events": {
    about: "the connection breaks after the head",
    change: (_, draft) => cutAt(draft, 0, stop("reset"))
  },
  "hang-before-events": { about: "silence after the head", change: (_, draft) => cutAt(draft, 0, stop("hang")) },
  "reset-mid-stream": { about: "the connection breaks", change: stopAfter("reset", 1) },
  "hang-mid-stream": { about: "the stream falls silent", change: stopAfter("hang", 1) },
  "cut-off": { about: "the stream ends in mid-reply, without a status", change: stopAfter("end", 1) },
  "no-status": {
    about: "the whole text, then the end without a status",
    change: (_, draft) => cutAt(draft, endingOf(draft), stop("end"))
  },
  "broken-line": {
    about: "a `data` line whose JSON breaks off; the stream goes on",
    change: (fault, draft) => {
      const at = indexAfter(draft, fault.after ?? 1)
      const broken = event(undefined, "{\"p\":\"response/fragments/-1/content\",\"o\":\"APP", sentAt(draft, at))
      return { ...draft, items: [...draft.items.slice(0, at), broken, ...draft.items.slice(at)] }
    }
  },
  "hint": {
    about: "the service gives up; `reason=` rate_limit_reached (default), input_exceeds_limit or another",
    change: giveUp("hint")
  },
  "toast": { about: "as `hint`, in a `toast`", change: giveUp("toast") },
  "content-filter": {
    about: "CONTENT_FILTER, with the fragments replaced by a canned one",
    change: endWith("CONTENT_FILTER", true)
  },
  "timeout-status": { about: "status TIMEOUT", change: endWith("TIMEOUT", false) },
  "error-status": { about: "status ERROR", change: endWith("ERROR", false) },
  "no-ready": {
    about: "no `ready` event",
    change: (_, draft) => ({
      ...draft,
      items: draft.items.filter((item) => !(item._tag === "Event" && item.event === "ready"))
    })
  },
  "no-close": {
    about: "no `close` event: the connection just ends",
    change: (_, draft) => ({ ...draft, items: draft.items.filter((item) => !isClose(item)) })
  },
  "done": {
    about: "`[DONE]` after the `close` event",
    change: (_, draft) => ({ ...draft, items: [...draft.items, event(undefined, "[DONE]", lastSent(draft))] })
  },
  "done-only": {
    about: "`[DONE]` in place of the `close` event",
    change: (_, draft) => ({
      ...draft,
      items: draft.items.map((item) => isClose(item) ? event(undefined, "[DONE]", lastSent(draft)) : item)
    })
  },
  "linger": {
    about: "the connection stays open after the last event",
    change: (_, draft) => ({ ...draft, items: [...draft.items, stop("hang")] })
  },
  "crlf": { about: "CR LF line ends", change: onWire(() => ({ lineEnd: "\r\n" })) },
  "cr": { about: "CR line ends", change: onWire(() => ({ lineEnd: "\r" })) },
  "comments": { about: "a comment before every event", change: onWire(() => ({ comments: true })) },
  "retry-lines": { about: "`id` and `retry` lines in every event", change: onWire(() => ({ retryLines: true })) },
  "multi-line-data": { about: "data over two lines", change: onWire(() => ({ multiLine: true })) },
  "no-space": { about: "no space after the colon", change: onWire(() => ({ space: false })) },
  "chatter": {
    about: "`update_session`, `title`, `finish` and events that no page knows between the others",
    change: (_, draft) => ({
      ...draft,
      items: draft.items.flatMap((item, i): ReadonlyArray<Item> =>
        item._tag !== "Event" || item.event === "ready" ? [item] : [chatter(i, sentAt(draft, i)), item]
      )
    })
  },
  "trickle": {
    about: "byte by byte (`ms=N` between)",
    change: onWire((fault) => ({ cut: "bytes", cutWait: fault.millis ?? 0 }))
  },
  "split-utf8": {
    about: "chunks that end inside characters",
    change: onWire((fault) => ({ cut: "characters", cutWait: fault.millis ?? 0 }))
  },
  "disagree": {
    about: "a continued snapshot that differs from what was sent (on `continue`)",
    change: (_, draft) => ({
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
    change: (_, draft) => cutAt(draft, indexAfter(draft, 0), ...repeated(draft), stop("end"))
  },
  "incomplete-nothing": {
    about: "INCOMPLETE again, without a new piece (on `continue`)",
    change: (_, draft) => {
      const at = indexAfter(draft, 0)
      const status = event(undefined, "{\"p\":\"response/status\",\"o\":\"SET\",\"v\":\"INCOMPLETE\"}", draft.from)
      return cutAt(draft, at, ...repeated(draft), status, closing(draft.from))
    }
  }
}
