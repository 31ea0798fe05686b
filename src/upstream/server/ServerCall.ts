/** One request at a server whose answer is passed on as it arrives. */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { UpstreamFailure } from "../../domain/UpstreamFailure.ts"
import type { RequestBudget } from "../budget.ts"
import type { Exchange, ExchangeLimits } from "../Exchange.ts"
import type { RequestBody } from "../ExchangeRequest.ts"
import type { CallerHeaders, Recorder, RoundRecorder } from "../Upstream.ts"
import type { RequestedModel } from "./serverAnswers.ts"

/** One request at the server. */
export interface ServerCall {
  /** The kind of the request in recordings. */
  readonly label: "completion" | "carried"
  readonly request: {
    readonly budget: RequestBudget
    readonly recorder: Recorder | undefined
    readonly callerHeaders: CallerHeaders | undefined
  }
  readonly model: RequestedModel
  readonly token: string | undefined
  /** Below the base URL, with its query. */
  readonly path: string
  readonly body: RequestBody
  /** What recordings keep of the body. */
  readonly recorded: string
  /** The id of the upstream's session or reply, by which recordings belong together. */
  readonly session: string | undefined
  readonly limits: ExchangeLimits
  /** Headers of this request beside those of the protocol. */
  readonly headers: { readonly [name: string]: string }
  /** The reply is asked for as a whole. */
  readonly isWhole: boolean
  /** Called when the exchange is over, with its status; 0 without one. */
  readonly ended: (status: number) => void
}

/** Sends a request, waits for the head of the response, and continues with an answer. The scope owns the connection. */
export type SendCall = <A>(
  call: ServerCall,
  scope: Scope.Scope,
  answered: (exchange: Exchange, round: RoundRecorder | undefined) => Effect.Effect<A, UpstreamFailure>
) => Effect.Effect<A, UpstreamFailure>
