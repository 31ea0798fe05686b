/**
 * What happened to a request, whose fault it is, and which advice applies.
 */
import type { RequestRecord } from "../../state/requests.ts"

export interface Verdict {
  readonly tone: "" | "good" | "warn" | "bad"
  /**
   * `cut`: the reply ended at a limit on its length. `filtered`: a content filter ended it. `left`, `leftEarly`: the caller left during the
   * reply, or before it.
   */
  readonly kind:
    | "queued"
    | "upstream"
    | "streaming"
    | "answered"
    | "cut"
    | "filtered"
    | "left"
    | "leftEarly"
    | "failed"
  /** Who has to act, if somebody has. */
  readonly fault: RequestRecord["fault"]
  /** Names of advice, the most specific first. */
  readonly advice: ReadonlyArray<string>
}

const present = (...names: ReadonlyArray<string | null | undefined>): ReadonlyArray<string> =>
  names.filter((name) => name !== null && name !== undefined)

type Judged = Pick<
  RequestRecord,
  "outcome" | "state" | "finish" | "error" | "fault" | "first_event_ms" | "tries" | "key" | "duration_ms"
>

const kindOf = ({ error, finish, first_event_ms, outcome, state }: Judged): Verdict["kind"] => {
  switch (outcome) {
    case "open":
      return state === "queued" || state === "streaming" ? state : "upstream"
    case "cancelled":
      return first_event_ms === null ? "leftEarly" : "left"
    case "failed":
      return "failed"
    case "ok":
      if (error !== null) return "failed"
      return finish === "length" ? "cut" : finish === "content_filter" ? "filtered" : "answered"
  }
}

const tones: Readonly<Record<Verdict["kind"], Verdict["tone"]>> = {
  queued: "",
  upstream: "",
  streaming: "",
  answered: "good",
  cut: "warn",
  filtered: "warn",
  left: "warn",
  leftEarly: "warn",
  failed: "bad"
}

/** Whether the queue has refused a request: it does with the code of a key's limits. */
export const isOfQueue = (error: string | null, fault: string | null): boolean =>
  error === "rate_limit_exceeded" && fault === "gateway"

/** Judges a request. */
export const judge = (record: Judged): Verdict => {
  const kind = kindOf(record)
  const { error, fault, key, tries } = record
  const cause = tries.at(-1)?.cause
  if (kind !== "failed") {
    const advice = kind === "filtered" ? ["content_filter"] : kind === "answered" || kind === "streaming" ? [] : [kind]
    return { tone: tones[kind], kind, fault: null, advice }
  }
  // A caller's own token stands in for an account.
  const special = isOfQueue(error, fault)
    ? "queue_full"
    : key === "direct" && fault === "caller" && typeof cause === "string"
    ? "own_token"
    : undefined
  return { tone: "bad", kind, fault, advice: present(special, cause, error, fault) }
}
