/**
 * What a record reads of the request that it is of: facts that others write while it runs.
 */
import type { FinishReason, Usage } from "../../domain/ReplyEvent.ts"

/** Times are monotonic milliseconds; counts start at 0. */
export interface RequestFacts {
  /** The id that the caller was told. */
  readonly id: string
  readonly startedAt: number
  readonly style: string | undefined
  readonly requestedModel: string | undefined
  readonly model: string | undefined
  readonly stream: boolean
  readonly attempts: number
  readonly failovers: number
  readonly queued: number
  readonly firstEventAt: number | undefined
  readonly usage: Usage | undefined
  readonly finish: FinishReason | undefined
  readonly status: number | undefined
  readonly error: string | undefined
  readonly calls: number
}

/** True where the caller left before the reply was over. */
export const hasLeft = ({ attempts, error, finish, status }: RequestFacts): boolean =>
  error === undefined && (status === undefined || (attempts > 0 && status === 200 && finish === undefined))
