/**
 * The course of a request as lanes of spans: the queue, each try, the stream, and what happened in between. Times are milliseconds
 * since the request began.
 */
import type { RequestRecord } from "../../state/requests.ts"

export interface Interval {
  readonly from: number
  readonly to: number
}

/**
 * `queue`: waits for an account. `try`: waits for the upstream's first event. `stream`: the reply arrives. `gateway`: neither the queue
 * nor an upstream is waited for.
 */
export interface Span extends Interval {
  readonly kind: "queue" | "try" | "stream" | "gateway"
  /** It ended with a failure. */
  readonly failed: boolean
  /** It has not ended. */
  readonly open: boolean
}

/** The spans of one try; `place` counts from 0, and is `undefined` if the request did not get as far as a try. */
export interface Lane {
  readonly place: number | undefined
  readonly spans: ReadonlyArray<Span>
}

/** Time in which nothing is seen. `silence`: between frames. `between`: between two tries. `behind`: the client lags behind the upstream. */
export interface Gap extends Interval {
  readonly kind: "silence" | "between" | "behind"
}

export interface Waterfall {
  /** The length of the scale. */
  readonly end: number
  readonly lanes: ReadonlyArray<Lane>
  /** In order of time; the longest five silences at most. */
  readonly gaps: ReadonlyArray<Gap>
}

export type Course =
  & Pick<RequestRecord, "outcome" | "queued_ms" | "first_event_ms" | "duration_ms" | "tries">
  & {
    /** The times of frames in order. */
    readonly upstream: ReadonlyArray<number>
    readonly client: ReadonlyArray<number>
  }

const mostSilences = 5

const spansOf = (course: Course, place: number, end: number): ReadonlyArray<Span> => {
  const { began_ms, cause, queued_ms, took_ms } = course.tries[place]!
  const next = course.tries[place + 1]
  const isOpen = course.outcome === "open" && next === undefined
  const until = next === undefined ? end : Math.max(began_ms, next.began_ms - next.queued_ms)
  const answered = took_ms === null ? until : Math.min(end, began_ms + took_ms)
  // A try that fails after its first event has streamed.
  const streams = next === undefined && took_ms !== null &&
    (cause === null || (course.first_event_ms !== null && course.first_event_ms <= answered + 1))
  const failed = cause !== null || (next === undefined && course.outcome === "failed")
  const spans: Array<Span> = [
    { kind: "queue", from: Math.max(0, began_ms - queued_ms), to: began_ms, failed: false, open: false },
    {
      kind: "try",
      from: began_ms,
      to: answered,
      failed: failed && !streams,
      open: isOpen && took_ms === null
    }
  ]
  if (streams) spans.push({ kind: "stream", from: answered, to: end, failed, open: isOpen })
  return spans.filter(({ from, kind, open, to }) => open || kind === "try" || to - from >= 0.05)
}

const silencesOf = (times: ReadonlyArray<number>, least: number): ReadonlyArray<Gap> =>
  times.slice(1)
    .map((to, i): Gap => ({ kind: "silence", from: times[i]!, to }))
    .filter(({ from, to }) => to - from >= least)
    .sort((a, b) => (b.to - b.from) - (a.to - a.from))
    .slice(0, mostSilences)

/** The course of a request; `now` is how long it has been running, for one that still runs. */
export const waterfallOf = (course: Course, now: number): Waterfall => {
  const { client, outcome, tries, upstream } = course
  const lastUpstream = upstream.at(-1) ?? 0
  const lastClient = client.at(-1) ?? 0
  const end = Math.max(
    1,
    outcome === "open" ? now : course.duration_ms ?? 0,
    lastUpstream,
    lastClient,
    ...tries.map(({ began_ms, took_ms }) => began_ms + (took_ms ?? 0))
  )
  const isOpen = outcome === "open"
  if (tries.length === 0) {
    const queued = Math.min(end, course.queued_ms ?? (isOpen ? end : 0))
    const waits = isOpen && queued >= end
    const spans: ReadonlyArray<Span> = [
      { kind: "queue", from: 0, to: queued, failed: false, open: waits },
      { kind: "gateway", from: queued, to: end, failed: outcome === "failed", open: isOpen && !waits }
    ]
    return {
      end,
      lanes: [{ place: undefined, spans: spans.filter(({ from, to }) => to - from >= 0.05) }],
      gaps: []
    }
  }
  const lanes = tries.map((_, place): Lane => ({ place, spans: spansOf(course, place, end) }))
  const between = tries.slice(1).flatMap(({ began_ms, queued_ms }, i): ReadonlyArray<Gap> => {
    const before = tries[i]!
    const from = before.began_ms + (before.took_ms ?? 0)
    const to = began_ms - queued_ms
    return before.took_ms !== null && to - from >= Math.max(1, end / 100) ? [{ kind: "between", from, to }] : []
  })
  const behind = outcome !== "open" && lastUpstream > 0 && lastClient - lastUpstream >= Math.max(250, end / 20)
    ? [{ kind: "behind", from: lastUpstream, to: lastClient } as const]
    : []
  const silences = silencesOf(upstream, Math.max(1_000, end / 10))
  return { end, lanes, gaps: [...between, ...silences, ...behind].sort((a, b) => a.from - b.from) }
}

/** Part of a scale. */
export interface Bin extends Interval {
  readonly frames: number
  /** Characters that its frames add. */
  readonly length: number
}

/** Sums frames in equal parts of the scale. */
export const binsOf = (
  frames: ReadonlyArray<{ readonly at: number; readonly length: number }>,
  end: number,
  count: number
): ReadonlyArray<Bin> => {
  const bins = Array.from({ length: count }, (_, i) => ({
    from: (end * i) / count,
    to: (end * (i + 1)) / count,
    frames: 0,
    length: 0
  }))
  for (const { at, length } of frames) {
    const bin = bins[Math.max(0, Math.min(count - 1, Math.floor((at / end) * count)))]!
    bin.frames += 1
    bin.length += length
  }
  return bins
}

/** Tokens a second in each bin: the tokens of a reply, spread over its characters. */
export const ratesOf = (bins: ReadonlyArray<Bin>, tokens: number): ReadonlyArray<number> => {
  const total = bins.reduce((sum, { length }) => sum + length, 0)
  return bins.map(({ from, length, to }) =>
    total === 0 || to <= from ? 0 : (tokens * length * 1000) / (total * (to - from))
  )
}

/** The places of ticks from 0 on: between 3 and 6 steps of 1, 2 or 5 of a decimal unit. */
export const ticksOf = (end: number): { readonly step: number; readonly ticks: ReadonlyArray<number> } => {
  const unit = 10 ** Math.floor(Math.log10(end / 3))
  const step = [1, 2, 5, 10].map((times) => times * unit).findLast((each) => end / each >= 3) ?? unit
  const ticks = Array.from({ length: Math.floor(end / step + 1e-9) + 1 }, (_, i) => i * step)
  return { step, ticks }
}
