/** What a record shows of its request beside the bytes. */
import type { Bill } from "../domain/bill.ts"
import type { ShownIdentity } from "../domain/clientIdentity.ts"
import type { FinishReason, Usage } from "../domain/ReplyEvent.ts"
import type { PromptCache } from "../domain/warmth.ts"
import type { ExclusionReason } from "../placement/reasons.ts"

/** A model of an upstream. */
interface RecordedTarget {
  readonly upstream: string
  readonly model: string
}

/** A try of a request at a target. Times are milliseconds: from the start of the request, and up to the first event or failure. */
export interface TryFacts extends RecordedTarget {
  /** The account as operators know it; empty for a caller's own token. */
  readonly account: string
  /** The class of the failure; `undefined` for a try that answered or still runs. */
  readonly cause: string | undefined
  /** The HTTP status of the upstream, if it failed with one. */
  readonly status: number | undefined
  /** Milliseconds in the queue before it. */
  readonly queued: number
  readonly began: number
  readonly took: number | undefined
}

/** A try that is charged. */
export interface BilledFacts {
  readonly usage: Usage
  readonly recorded: TryFacts | undefined
  readonly bill: Bill | undefined
}

/** The stats of a request that its record shows, current while the request runs. Times are monotonic milliseconds. */
export interface RequestFacts {
  /** The request id that the response carries. */
  readonly id: string
  readonly startedAt: number
  /** The client's address as far as it is kept. */
  readonly client: string | undefined
  readonly style: string | undefined
  /** Who called, as far as it is kept. */
  readonly identity: { readonly shown: ShownIdentity } | undefined
  readonly requestedModel: string | undefined
  readonly model: string | undefined
  readonly stream: boolean
  readonly attempts: number
  /** How many of them a rehearsal made fail; `undefined` for a request that rehearses nothing. */
  readonly rehearsed: number | undefined
  readonly failovers: number
  /** The target of the last try; `undefined` in a configuration of one upstream. */
  readonly target: RecordedTarget | undefined
  /** All tries in order; `undefined` before the first one. */
  readonly tries: ReadonlyArray<TryFacts> | undefined
  /** The targets of its route that were left out, each with a reason; `undefined` without any. */
  readonly excluded: ReadonlyArray<{ readonly target: string; readonly reason: ExclusionReason }> | undefined
  readonly queued: number
  readonly firstEventAt: number | undefined
  readonly usage: Usage | undefined
  /** What the cache of its server was to the reply; `undefined` until its usage is known, and where no cache is watched. */
  readonly promptCache: PromptCache | undefined
  /** The tries that are charged, each with its bill once the request is over. */
  readonly billed: ReadonlyArray<BilledFacts> | undefined
  /** The cost of all tries as an amount of 10^-9; `null` without a price, `undefined` until the request is over. */
  readonly cost: bigint | null | undefined
  /** What served in place of the model that was asked for, and the limit that it exceeded: its window and what it counts. */
  readonly fallback: { readonly model: string; readonly limit: string } | undefined
  readonly finish: FinishReason | undefined
  readonly status: number | undefined
  readonly error: string | undefined
  /** The sentence of the error. */
  readonly errorMessage: string | undefined
  /** The class of the failure of the last attempt. */
  readonly failureClass: string | undefined
  readonly calls: number
  /** Progress of a request whose reply is no conversation: embeddings, relayed requests; `undefined` for others. */
  readonly progress: "begun" | "done" | undefined
  /** Paths of the fields without effect, and the number of those that are not named. */
  readonly ignored: ReadonlyArray<string> | undefined
  readonly ignoredMore: number
}

/** True if the client disconnected before the end of the reply. */
export const hasLeft = ({ attempts, error, finish, progress, status }: RequestFacts): boolean => {
  const isCutShort = progress === undefined ? attempts > 0 && finish === undefined : progress === "begun"
  return error === undefined && (status === undefined || (status === 200 && isCutShort))
}
